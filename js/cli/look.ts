/** A verification as the verbs do it: with progress, a Ctrl-C that stops it cleanly, and a limit of time. */
import type { Verification } from "../folds/deferred-clock/types.js"
import type { Arguments } from "./arguments.js"
import { busyTimeoutFrom, judgingFrom, namesFrom, scopeFrom } from "./inputs.js"
import { Interrupt } from "./interrupt.js"
import { Progress, type Step } from "./progress.js"
import { runUnknown, sourceOf, type Source, type SourceOptions } from "./source.js"

/** Why a verification ended before its end. */
export type StoppedBy = "limit" | "signal"

/** What a look at a source gave. */
export interface Look {
  readonly kind: Source["kind"]
  readonly verification: Verification
  readonly asOfMs: number
  readonly stoppedBy?: StoppedBy
}

/** What a verb asks of a look besides what its options say. */
export interface LookOptions {
  readonly heads?: boolean
  /** In place of the scope and the names that options give. */
  readonly scope?: Pick<SourceOptions, "runs" | "except">
  readonly names?: ReturnType<typeof namesFrom>
}

/** Looks at the file of a command. */
export async function look(args: Arguments, startMs: number, asked: LookOptions = {}): Promise<Look> {
  const scope = asked.scope ?? scopeFrom(args)
  const judging = judgingFrom(args)
  const source = sourceOf(args, asked.names ?? namesFrom(args), busyTimeoutFrom(args).busyTimeoutMs)
  await expectRuns(source, scope.runs)
  return watched(args, startMs, async (onProgress, stoppedBy, signal) => {
    const verification = await source.verify({ ...scope, ...judging, heads: asked.heads === true, onProgress, signal })
    return lookOf(source.kind, verification, judging.asOfMs, stoppedBy())
  })
}

/** A look from a verification. */
export function lookOf(kind: Source["kind"], verification: Verification, asOfMs: number, stoppedBy?: StoppedBy): Look {
  // Stopped at the very end, it is whole all the same.
  const partial = verification.verdict === "partial"
  return { kind, verification, asOfMs, ...(partial && stoppedBy && { stoppedBy }) }
}

/** A run that is named and is not there is a slip of the pen, not a match. */
async function expectRuns(source: Source, runs: SourceOptions["runs"]): Promise<void> {
  if (runs === undefined || runs === "live") return
  const unknown = await source.unknown(Array.from(runs))
  if (unknown.length > 0) throw runUnknown(source.path, unknown)
}

/** Milliseconds after which work that does not hear that it is to stop is cut off. */
const graceMs = 2000

/** Does work that says how far it is, and stops it when it is time or somebody asks. */
export async function watched<Result>(
  args: Arguments,
  startMs: number,
  work: (onProgress: (step: Step) => boolean | undefined, stoppedBy: () => StoppedBy | undefined, signal: AbortSignal) => Promise<Result>
): Promise<Result> {
  const limit = args.verb.options.includes("max-seconds") ? args.count("max-seconds") : undefined
  const progress = new Progress(process.stderr)
  const abort = new AbortController()
  let grace: NodeJS.Timeout | undefined
  const interrupt = new Interrupt(() => {
    progress.say("stopping; Ctrl-C once more ends at once")
    // Work that is asked how it goes on ends with a report. A server that is busy with one long statement asks nobody.
    grace = setTimeout(() => abort.abort(), graceMs)
  })
  let stoppedBy: StoppedBy | undefined
  try {
    return await work(
      (step) => {
        if (interrupt.stopped) stoppedBy = "signal"
        else if (limit !== undefined && performance.now() - startMs >= limit * 1000) stoppedBy = "limit"
        if (stoppedBy !== undefined) return false
        progress.update(step)
        return undefined
      },
      () => stoppedBy,
      abort.signal
    )
  } finally {
    clearTimeout(grace)
    interrupt.dispose()
    progress.erase()
  }
}
