/** `capture FILE RUN`: one run's fold, or the state of a checkpoint that keeps it. What is printed is nothing but that. */
import { JournalFoldError } from "../core/errors.js"
import type { Fold } from "../folds/deferred-clock/fold.js"
import { optionError, type Arguments } from "./arguments.js"
import type { Context } from "./context.js"
import { busyTimeoutFrom, fileText, foldFrom, namesFrom, oneRunFrom } from "./inputs.js"
import { documentPieces, Spelled } from "./json.js"
import { sourceOf } from "./source.js"
import { exitCodes } from "./verbs.js"

/** Above every seq. */
const everything = 2 ** 63

/** Captures one run. */
export async function capture(context: Context): Promise<number> {
  const { args, output } = context
  if (foldFrom(args) === "observer-log") return (await import("./stream-capture.js")).captureStream(context)
  const upTo = boundFrom(args)
  const basePath = args.text("checkpoint-state")
  const base = basePath === undefined ? undefined : fileText("checkpoint-state", basePath)
  const source = sourceOf(args, namesFrom(args), busyTimeoutFrom(args).busyTimeoutMs)
  const captured = await source.fold(oneRunFrom(args), upTo, (fold, runId) => ({ ...textOf(fold, base), runId, digest: fold.digest(), report: fold.report() }))
  if (!args.has("json")) {
    await output.lines([captured.text])
    return exitCodes.match
  }
  await output.write(
    documentPieces({
      format: "journal-fold/capture",
      version: 1,
      file: args.file,
      source: source.kind,
      runId: captured.runId,
      upTo: args.text("up-to"),
      coverage: captured.report,
      stateDigest: captured.digest,
      [captured.member]: new Spelled(captured.text)
    })
  )
  return exitCodes.match
}

function textOf(fold: Fold, base: string | undefined): { readonly member: string; readonly text: string } {
  return base === undefined
    ? { member: "state", text: fold.stateText() }
    : { member: "checkpointState", text: fold.checkpointStateText(base).trimEnd() }
}

/** The bound: any number, but one that a double holds, because it is compared as one. */
function boundFrom(args: Arguments): number {
  const text = args.text("up-to")
  if (text === undefined) return everything
  const bound = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isFinite(bound)) throw optionError("up-to", "a seq", text)
  if (/^-?\d+$/.test(text) && BigInt(text) !== BigInt(bound)) {
    throw new JournalFoldError("bound_invalid", `--up-to: ${text} lies beyond 2^53, where not every number can be a bound; the nearest one is ${BigInt(bound)}`, {
      expected: String(BigInt(bound)),
      found: text
    })
  }
  return bound
}
