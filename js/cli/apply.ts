/** `apply FILE [PLAN] [--write]`: makes the tables say what the journal says, or only says what it would do. */
import { describe, isJournalFoldError, JournalFoldError, type ErrorCode } from "../core/errors.js"
import type { Plan, Verification } from "../folds/deferred-clock/types.js"
import { checkAllowed, checkStale } from "../hosts/plans.js"
import { isPostgresUrl } from "../hosts/postgres/open.js"
import { applyFile } from "../hosts/sqlite/apply.js"
import { usageError } from "./arguments.js"
import type { Context } from "./context.js"
import { busyTimeoutFrom, judgingFrom, namesFrom, scopeFrom } from "./inputs.js"
import { reportDocument } from "./json.js"
import { look, lookOf, watched, type Look } from "./look.js"
import { command, commandAgain, fileWord } from "./next.js"
import { carried } from "./plan.js"
import { readPlanFile } from "./plan-file.js"
import { reportLines, type Outcome } from "./report.js"
import { defaultBusyTimeoutMs, looksLikeRun } from "./source.js"
import { codeOf, nextAfter } from "./verify.js"
import { exitCodes } from "./verbs.js"

/** What is applied, and to which runs. */
interface Task {
  readonly planned?: Plan
  readonly scope: ReturnType<typeof scopeFrom>
  readonly names: ReturnType<typeof namesFrom>
}

/** Applies, or says what it would do. */
export async function apply(context: Context): Promise<number> {
  const { args } = context
  if (looksLikeRun(args.file)) {
    throw new JournalFoldError("store_not_sqlite", `${describe(args.file)} is an exported run, and apply needs the store`, { found: args.file })
  }
  return args.has("write") ? write(context, taskOf(context)) : rehearse(context, taskOf(context))
}

function taskOf({ args }: Context): Task {
  const path = args.positionals[1]
  if (path === undefined) return { scope: scopeFrom(args), names: namesFrom(args) }
  const given = carried.find((name) => args.has(name))
  if (given !== undefined) throw usageError(`--${given}: a plan carries its scope and names along, so leave it out`, "option_invalid")
  const { plan, scope, names } = readPlanFile(path)
  return { planned: plan, scope, names }
}

/** The dry run: verifies, and says what it would do and whether it may. */
async function rehearse(context: Context, { planned, scope, names }: Task): Promise<number> {
  const { args } = context
  const seen = await look(args, context.startMs, { scope, names, heads: args.has("json") })
  const { plan: made, verdict } = seen.verification
  if (planned !== undefined && made !== undefined) checkStale(planned, made)
  const refusal = made && refusalOf(context, made)
  const said = refusal === undefined ? "nothing was written" : `nothing was written, and --write would be refused: ${refusal}`
  await report(context, seen, { rows: [["dry run", said]], next: verdict === "drift" ? [nextOf(context, refusal)] : nextAfter(args, seen) })
  return codeOf(verdict)
}

function allowances({ args }: Context): { allowDeletePending: boolean; allowUnconsume: boolean } {
  return { allowDeletePending: args.has("allow-delete-pending"), allowUnconsume: args.has("allow-unconsume") }
}

/** The code of the error with which writing this plan would end. */
function refusalOf(context: Context, made: Plan): ErrorCode | undefined {
  try {
    checkAllowed(made, allowances(context))
    return undefined
  } catch (error) {
    if (!isJournalFoldError(error)) throw error
    return error.code
  }
}

/** What to run next: the writing, or what to know before. */
function nextOf({ args }: Context, refusal: ErrorCode | undefined): string {
  if (refusal !== undefined) return command(["explain", refusal])
  const plan = args.positionals[1]
  return commandAgain(args, "apply", [...(plan === undefined ? [] : [fileWord(plan)]), "--write"])
}

/** Writes, in the transaction that verifies. What it found is reported even when nothing is written. */
async function write(context: Context, { planned, scope, names }: Task): Promise<number> {
  const { args, startMs } = context
  const judging = judgingFrom(args)
  let found: Look | undefined
  try {
    await watched(args, startMs, async (onProgress, stoppedBy, signal) => {
      const options = {
        ...scope,
        ...judging,
        ...allowances(context),
        ...busyTimeoutFrom(args),
        ...(names && { names }),
        heads: args.has("json"),
        onProgress,
        onVerified: (verification: Verification) => {
          found = lookOf("store", verification, judging.asOfMs, stoppedBy())
        }
      }
      if (!isPostgresUrl(args.store)) return applyFile(args.store, planned, options)
      const { applyUrl } = await import("../hosts/postgres/apply.js")
      // As long as for the write lock of a file.
      const lockTimeoutMs = options.busyTimeoutMs ?? defaultBusyTimeoutMs
      return applyUrl(args.store, planned, { ...options, lockTimeoutMs, signal })
    })
  } catch (error) {
    if (found === undefined || !isJournalFoldError(error)) throw error
    // Refused for what was found, or stopped: the report says so. Refused for anything else: the error says why, and of a plan that is
    // stale nothing more is to be said.
    const ofReport: readonly ErrorCode[] = ["fold_incomplete", "plan_refused"]
    const reported = ofReport.includes(error.code)
    if (!reported && (args.has("json") || error.code === "stale_plan")) throw error
    const next = reported ? nextAfter(args, found) : [nextOf(context, error.code)]
    await report(context, found, { rows: [["wrote", "nothing: everything was rolled back"]], next })
    if (reported) return codeOf(found.verification.verdict)
    throw error
  }
  if (found === undefined) throw usageError("nothing was verified")
  await report(context, found, { written: true, next: [commandAgain(args, "verify")] })
  return exitCodes.match
}

async function report({ args, output, style, startMs }: Context, seen: Look, outcome: Outcome): Promise<void> {
  const made = { args, look: seen, outcome, startMs }
  if (!args.has("json")) return output.lines(reportLines(made, style))
  const written = outcome.written === true
  const code = written ? exitCodes.match : codeOf(seen.verification.verdict)
  return output.write(reportDocument(made, code, { dryRun: !args.has("write"), written }))
}
