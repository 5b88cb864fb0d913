/** Entries on their way to pages: seqs and types as numbers, live payloads as text. */
import { invalid, JournalFoldError } from "../../core/errors.js"
import type { PageBuilder } from "../../core/pages.js"
import { typeCodeOf } from "./names.js"
import type { Entry, EntryText, Page, Seq } from "./types.js"

const maxSeq = 2n ** 63n - 1n

/** A seq as a `bigint`; anything that is no whole number from 0 to 2^63-1 is `seq_invalid`. */
export function seqOf(seq: Seq): bigint {
  if (typeof seq === "number") {
    if (Number.isSafeInteger(seq) && seq >= 0) return BigInt(seq)
  } else if (typeof seq === "bigint") {
    if (seq >= 0n && seq <= maxSeq) return seq
  } else if (typeof seq === "string" && /^[0-9]{1,19}$/.test(seq)) {
    const value = BigInt(seq)
    if (value <= maxSeq) return value
  }
  throw invalid("seq_invalid", "a seq from 0 to 2^63-1 (beyond 2^53-1 as bigint or decimal text)", seq)
}

/** The JSON text of a live value, as the module reads it. */
export function jsonOf(value: unknown, what: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) {
      throw new JournalFoldError("payload_too_deep", `${what} is nested too deep for JSON.stringify: give its text instead`)
    }
    throw new JournalFoldError("value_not_json", `${what} has no JSON text: ${(error as Error).message}`, {}, { cause: error })
  }
  // What JSON.stringify leaves out is read like null: no record, so it names no row.
  return text ?? "null"
}

/** Whether an entry of a run is a page of bytes. */
export function isPage(entry: Entry | EntryText | Page): entry is Page {
  return (entry as Page).bytes instanceof Uint8Array
}

/** Checks a page's parts, whose lengths the module checks. */
export function checkPage(page: Page): Page {
  const { bytes, ends, seqs, types } = page
  if (
    bytes instanceof Uint8Array &&
    ends instanceof Uint32Array &&
    seqs instanceof BigInt64Array &&
    types instanceof Uint8Array
  ) {
    if (ends.length === seqs.length && ends.length === types.length) return page
    throw new JournalFoldError(
      "page_malformed",
      `expected as many ends as seqs and types, found ${ends.length}, ${seqs.length} and ${types.length}`
    )
  }
  throw invalid("page_malformed", "bytes: Uint8Array, ends: Uint32Array, seqs: BigInt64Array, types: Uint8Array", page)
}

/** Adds an entry to a page; `true` when the page is full and has to be taken away. */
export function addEntry(page: PageBuilder, entry: Entry | EntryText): boolean {
  let text: string
  const { payloadText } = entry as EntryText
  if (typeof payloadText === "string") text = payloadText
  else if (payloadText === undefined && "payload" in entry) text = jsonOf(entry.payload, "the payload")
  else throw invalid("argument_invalid", "payloadText as text, or a payload", payloadText)
  const { seq } = entry
  const small = typeof seq === "number" && Number.isSafeInteger(seq) && seq >= 0
  return page.put(small ? seq : seqOf(seq), typeCodeOf(entry.eventType), text)
}
