/** `export FILE RUN`: one run as lines of JSON on standard output. */
import { contentDigest } from "../digest.js"
import { hostDigest } from "../hosts/sqlite/rows.js"
import type { Oddities } from "../hosts/export.js"
import type { Context } from "./context.js"
import { busyTimeoutFrom, digestByModule, namesFrom, oneRunFrom } from "./inputs.js"
import { counted } from "./numbers.js"
import { sourceOf, type ExportLines } from "./source.js"
import { exitCodes } from "./verbs.js"

/** Exports one run. */
export async function exportVerb({ args, output }: Context): Promise<number> {
  const digest = digestByModule(args) ? contentDigest : (hostDigest ?? contentDigest)
  const source = sourceOf(args, namesFrom(args), busyTimeoutFrom(args).busyTimeoutMs)
  let odd: Oddities = { base64: 0, leftOut: 0 }
  const watching = async function* (lines: ExportLines): AsyncGenerator<string> {
    odd = yield* lines
  }
  await source.export(oneRunFrom(args), { showValues: args.has("show-values"), digest }, (lines) => output.write(watching(lines)))
  if (odd.base64 > 0) process.stderr.write(`journal-fold: written as base64, because not UTF-8: ${counted(odd.base64, "text")}\n`)
  if (odd.leftOut > 0) process.stderr.write(`journal-fold: left out, because their names are not UTF-8: ${counted(odd.leftOut, "row")}\n`)
  if (odd.respelled !== undefined && odd.respelled > 0) {
    process.stderr.write(`journal-fold: kept as jsonb, so the same JSON value in another text than was stored: ${counted(odd.respelled, "value")}\n`)
  }
  return exitCodes.match
}
