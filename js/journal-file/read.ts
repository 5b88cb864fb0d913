/**
 * Reads an exported run from bytes, line by line, in bounded memory. Nothing is taken on trust: a line that is not as the format says,
 * a kind out of its order, a count that does not agree and a missing end line are `export_malformed`, naming the line.
 */
import { describe, JournalFoldError } from "../core/errors.js"
import { seqOf } from "../folds/deferred-clock/entries.js"
import { eventTypes as defaultEventTypes } from "../folds/deferred-clock/names.js"
import type { StoredClock, StoredCompletion } from "../folds/deferred-clock/types.js"
import { kinds, malformed, runFold, runFormat, runFormatVersion, type Counts, type Kind, type RunFileHeader } from "./format.js"

/** One line between the first and the last. `line` is its text, and `at` its number. */
export type RunFileRecord = { readonly line: string; readonly at: number } & (
  | { readonly kind: "checkpoint"; readonly seq: string; readonly compactedAtMs: number | null; readonly stateText: string }
  | { readonly kind: "entry"; readonly seq: bigint; readonly type: string | undefined; readonly payload: Uint8Array }
  | { readonly kind: "run"; readonly runId: string }
  | { readonly kind: "clock"; readonly row: StoredClock }
  | { readonly kind: "completion"; readonly row: StoredCompletion }
)

type Members = Readonly<Record<string, unknown>>

const order = Object.keys(kinds) as Kind[]
const encoder = new TextEncoder()

/** An exported run being read. */
export class RunFile {
  readonly header: RunFileHeader
  readonly #lines: Iterator<Line>

  /** Reads the first line. */
  constructor(chunks: Iterable<Uint8Array>) {
    this.#lines = linesOf(chunks)
    const first = this.#lines.next()
    if (first.done === true) throw malformed(1, "a header", "an empty file")
    this.header = headerOf(first.value.text)
  }

  /** The lines after the first, up to the end line, which is checked. To be read once. */
  *records(): Generator<RunFileRecord> {
    const counts: Counts = { checkpoints: 0, entries: 0, runs: 0, clocks: 0, completions: 0 }
    let stage = 0
    let at = 1
    for (;;) {
      const next = this.#lines.next()
      if (next.done === true) throw malformed(at + 1, "an end line", "the end of the file: it was cut off")
      const { text } = next.value
      at = next.value.at
      const line = objectOf(parsed(text, at), at, "an object")
      const kind = Object.keys(line)[0] ?? ""
      if (kind === "end") {
        checkEnd(objectOf(line["end"], at, "counts"), counts, at)
        const rest = this.#lines.next()
        if (rest.done !== true) throw malformed(rest.value.at, "nothing after the end line", "a line")
        return
      }
      const place = order.indexOf(kind as Kind)
      if (place < 0) throw malformed(at, `a line of ${order.join(", ")} or end`, describe(kind))
      if (place < stage) throw malformed(at, `no ${kind} line after a line of ${order[stage]}`, "one")
      stage = place
      counts[kinds[kind as Kind]] += 1
      yield { line: text, at, ...recordOf(kind as Kind, objectOf(line[kind], at, `the members of a ${kind}`), at) }
    }
  }
}

/** The text of a line without its end, and its number. */
interface Line {
  readonly text: string
  readonly at: number
}

function* linesOf(chunks: Iterable<Uint8Array>): Generator<Line> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  let begun: Uint8Array[] = []
  let at = 0
  const text = (bytes: Uint8Array): string => {
    at += 1
    try {
      const decoded = decoder.decode(bytes)
      return at === 1 && decoded.startsWith("\ufeff") ? decoded.slice(1) : decoded
    } catch {
      throw malformed(at, "UTF-8 of a length that a text can have", "other bytes")
    }
  }
  for (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const piece = chunk.subarray(from, end)
      from = end + 1
      if (begun.length === 0) yield { text: text(piece), at }
      else {
        begun.push(piece)
        yield { text: text(joined(begun)), at }
        begun = []
      }
    }
    if (from < chunk.length) begun.push(chunk.slice(from))
  }
  if (begun.length > 0) yield { text: text(joined(begun)), at }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.byteLength
  }
  return whole
}

function parsed(text: string, at: number): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed(at, "a JSON text", text.trim() === "" ? "an empty line" : describe(text))
  }
}

function objectOf(value: unknown, at: number, expected: string): Members {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed(at, expected, describe(value))
  return value as Members
}

function headerOf(text: string): RunFileHeader {
  const line = objectOf(parsed(text, 1), 1, "a header")
  const { format, version, fold, runId, floor = null, values = "digests", eventTypes = defaultEventTypes, foldVersion } = line
  if (format !== runFormat) throw malformed(1, `the format ${runFormat}`, describe(format))
  if (typeof version !== "number" || !Number.isSafeInteger(version) || version < 1) throw malformed(1, "a version", describe(version))
  if (version > runFormatVersion) {
    throw malformed(1, `a version up to ${runFormatVersion}`, `${version}: a newer journal-fold wrote it`)
  }
  if (fold !== runFold) throw malformed(1, `the fold ${runFold}`, describe(fold))
  if (typeof runId !== "string") throw malformed(1, "a runId", describe(runId))
  if (values !== "digests" && values !== "texts") throw malformed(1, 'values as "digests" or "texts"', describe(values))
  if (!Array.isArray(eventTypes) || eventTypes.length !== 4 || new Set(eventTypes).size !== 4 || !eventTypes.every(isText)) {
    throw malformed(1, "four different eventTypes", describe(eventTypes))
  }
  return {
    runId,
    values,
    eventTypes: eventTypes as unknown as RunFileHeader["eventTypes"],
    ...(floor !== null && { floor: String(seqAt(floor, 1)) }),
    ...(isText(foldVersion) && { foldVersion })
  }
}

function checkEnd(end: Members, counts: Counts, at: number): void {
  for (const [count, found] of Object.entries(counts)) {
    if (end[count] !== found) throw malformed(at, `${describe(end[count])} ${count}, as it says`, String(found))
  }
}

function recordOf(kind: Kind, members: Members, at: number): DistributiveOmit<RunFileRecord, "line" | "at"> {
  switch (kind) {
    case "checkpoint": {
      const { compactedAtMs } = members
      if (compactedAtMs === undefined) throw malformed(at, "compactedAtMs", "none")
      // What is no UTF-8 is no JSON either, so it keeps no fold.
      const state = "stateBase64" in members ? "" : (members["state"] ?? "")
      if (!isText(state)) throw malformed(at, "a state as text", describe(state))
      // Only NULL says that nothing was compacted; a column may hold anything else.
      const compacted = compactedAtMs === null ? null : typeof compactedAtMs === "number" ? compactedAtMs : 0
      return { kind, seq: String(seqAt(members["seq"], at)), compactedAtMs: compacted, stateText: state }
    }
    case "entry": {
      const { type } = members
      if (!isText(type) && type !== null && !("typeBase64" in members)) throw malformed(at, "a type as text", describe(type))
      return { kind, seq: seqAt(members["seq"], at), type: isText(type) ? type : undefined, payload: payloadOf(members, at) }
    }
    case "run":
      return { kind, runId: textAt(members, "runId", at) }
    case "clock":
      return {
        kind,
        row: {
          ...addressAt(members, at),
          clockName: textAt(members, "clockName", at),
          deferredName: valueAt(members, "deferredName", at),
          dueAtMs: valueAt(members, "dueAtMs", at),
          completedAtMs: valueAt(members, "completedAtMs", at)
        }
      }
    case "completion":
      return {
        kind,
        row: {
          ...addressAt(members, at),
          deferredName: textAt(members, "deferredName", at),
          ...storedAt(members, "exit", at),
          ...storedAt(members, "metadata", at),
          completedAtMs: valueAt(members, "completedAtMs", at),
          consumedAtMs: valueAt(members, "consumedAtMs", at)
        }
      }
  }
}

type DistributiveOmit<Type, Key extends PropertyKey> = Type extends unknown ? Omit<Type, Key> : never

function isText(value: unknown): value is string {
  return typeof value === "string"
}

function textAt(members: Members, name: string, at: number): string {
  const value = members[name]
  if (!isText(value)) throw malformed(at, `${name} as text`, describe(value))
  return value
}

function addressAt(members: Members, at: number): { flowName: string; executionId: string } {
  return { flowName: textAt(members, "flowName", at), executionId: textAt(members, "executionId", at) }
}

/** A stored value: whatever the column held, but something. */
function valueAt(members: Members, name: string, at: number): unknown {
  if (!(name in members)) throw malformed(at, name, "none")
  return members[name]
}

function seqAt(value: unknown, at: number): bigint {
  try {
    if (isText(value)) return seqOf(value)
  } catch (error) {
    if (!(error instanceof JournalFoldError)) throw error
  }
  throw malformed(at, "a seq as decimal text", describe(value))
}

function bytesAt(value: unknown, name: string, at: number): Uint8Array {
  if (!isText(value) || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) throw malformed(at, `${name} as base64`, describe(value))
  return Uint8Array.from(atob(value), (character) => character.charCodeAt(0))
}

/** The payload's bytes; one that was NULL is empty, which is no JSON. */
function payloadOf(members: Members, at: number): Uint8Array {
  if ("payloadBase64" in members) return bytesAt(members["payloadBase64"], "payloadBase64", at)
  const payload = members["payload"]
  if (payload !== null && !isText(payload)) throw malformed(at, "a payload as text", describe(payload))
  return encoder.encode(payload ?? "")
}

const digest = /^[0-9a-f]{64}$/

/** A completion's exit or metadata: its digest, its text or its bytes. */
function storedAt(members: Members, name: "exit" | "metadata", at: number): Partial<StoredCompletion> {
  if (`${name}Base64` in members) return { [`${name}Text`]: bytesAt(members[`${name}Base64`], `${name}Base64`, at) }
  if (name in members) {
    const text = members[name]
    if (text !== null && !isText(text)) throw malformed(at, `${name} as text`, describe(text))
    return { [`${name}Text`]: text }
  }
  const given = members[`${name}Digest`]
  if (given !== null && !(isText(given) && digest.test(given))) throw malformed(at, `${name}Digest or ${name}`, describe(given))
  return { [`${name}Digest`]: given }
}
