/** An exported run exported once more: the same lines, but for completions' values, which become digests unless they are to be shown. */
import { contentDigest } from "../digest.js"
import { JournalFoldError } from "../core/errors.js"
import type { StoredCompletion } from "../folds/deferred-clock/types.js"
import type { RunFile } from "./read.js"
import { RunFileWriter } from "./write.js"

/** How a run is exported again. */
export interface AgainOptions {
  readonly showValues?: boolean
  readonly digest?: (text: string | Uint8Array) => string
}

/** The lines, each with its line feed. What was odd was said when the file was written first. */
export function* exportAgain(file: RunFile, { showValues = false, digest = contentDigest }: AgainOptions): Generator<string, { base64: number; leftOut: number }> {
  const { header } = file
  if (showValues && header.values !== "texts") {
    throw new JournalFoldError("option_invalid", "the exported run holds digests of its completions' values, not the values", {
      expected: "an export made with the values",
      found: "digests"
    })
  }
  const writer = new RunFileWriter()
  yield writer.header({ ...header, values: showValues ? "texts" : "digests" })
  for (const record of file.records()) {
    if (record.kind === "completion" && !showValues) yield writer.row("completion", digested(record.row, digest))
    else yield writer.again(record.kind, record.line)
  }
  yield writer.end()
  return { base64: 0, leftOut: 0 }
}

function digested(row: StoredCompletion, digest: (text: string | Uint8Array) => string): string[] {
  const of = (text: string | Uint8Array | null | undefined, given: string | null | undefined): string | null =>
    text === undefined ? (given ?? null) : text === null ? null : digest(text)
  return Object.entries({
    flowName: row.flowName,
    executionId: row.executionId,
    deferredName: row.deferredName,
    exitDigest: of(row.exitText, row.exitDigest),
    metadataDigest: of(row.metadataText, row.metadataDigest),
    completedAtMs: row.completedAtMs,
    consumedAtMs: row.consumedAtMs
  }).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
}
