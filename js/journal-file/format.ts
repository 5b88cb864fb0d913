/**
 * One run as lines of JSON (`journal-fold/run`): what `export` writes and whatever reads a journal reads too.
 *
 *     {"format":"journal-fold/run","version":1,"fold":"deferred-clock","foldVersion":"…","runId":"…","floor":"12","eventTypes":[…],"values":"digests"}
 *     {"checkpoint":{"seq":"12","compactedAtMs":1735689600000,"state":"…"}}
 *     {"entry":{"seq":"13","type":"…","payload":"…"}}
 *     {"run":{"runId":"…"}}
 *     {"clock":{"flowName":"…","executionId":"…","clockName":"…","deferredName":"…","dueAtMs":…,"completedAtMs":…}}
 *     {"completion":{"flowName":"…","executionId":"…","deferredName":"…","exitDigest":"…","metadataDigest":null,"completedAtMs":…,"consumedAtMs":…}}
 *     {"end":{"checkpoints":1,"entries":20,"runs":1,"clocks":3,"completions":4}}
 *
 * The rules: kinds come in this order; entries are of all types and ascend by seq; a seq is decimal text; a payload and a state are the
 * stored text as a JSON string, or `payloadBase64` and `stateBase64` where the stored bytes are no UTF-8. A `run` line says that a run has
 * a row. With `"values":"texts"` a completion has `exit` and `metadata` in place of the digests. Without its end line a file was cut off.
 */
import { JournalFoldError } from "../core/errors.js"

/** What the first line names. */
export const runFormat = "journal-fold/run"
/** The version that is written, and the highest that is read. */
export const runFormatVersion = 1
/** The fold whose entries and rows these are. */
export const runFold = "deferred-clock"

/** The kinds of lines between the first and the last, in order, and the name of each kind's count in the last. */
export const kinds = {
  checkpoint: "checkpoints",
  entry: "entries",
  run: "runs",
  clock: "clocks",
  completion: "completions"
} as const

/** A kind of line. */
export type Kind = keyof typeof kinds

/** What the last line says. */
export type Counts = { [Count in (typeof kinds)[Kind]]: number }

/** What the first line says. */
export interface RunFileHeader {
  readonly runId: string
  /** The floor's seq in decimal. */
  readonly floor?: string
  /** What the journal calls the four types of entries. */
  readonly eventTypes: readonly [string, string, string, string]
  /** Whether completions carry their texts, or only digests of them. */
  readonly values: "digests" | "texts"
  /** The version of what folded and wrote. */
  readonly foldVersion?: string
}

/** Whether a file that begins with these bytes says that it is an exported run, of whatever version. */
export function isRunFile(head: Uint8Array): boolean {
  const text = new TextDecoder("utf-8").decode(head.subarray(0, 256))
  return /^\s*\{\s*"format"\s*:\s*"journal-fold\//.test(text)
}

/** What is wrong with a line, which counts from 1. */
export function malformed(line: number, expected: string, found: string): JournalFoldError {
  return new JournalFoldError("export_malformed", `line ${line} of the exported run: expected ${expected}, found ${found}`, {
    expected: `${expected} (line ${line})`,
    found
  })
}

// What a terminal shows as something else than it is, or not at all. All of it can only stand inside a JSON text's strings.
const invisible = /[\p{C}\p{Zl}\p{Zp}\p{DI}]/gu

/** A JSON text with everything invisible as escapes: the same value, and safe to show. */
export function visibleJson(json: string): string {
  return json.replace(invisible, (character) => {
    let escaped = ""
    for (let at = 0; at < character.length; at++) escaped += `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
    return escaped
  })
}
