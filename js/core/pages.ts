/**
 * Pages of rows on their way into the module: seqs (8 bytes each), ends (4), types (1), then the payloads. Framing is by length alone.
 */
import { memoryBuffer, type Glue } from "./engine.js"
import { byteLength, countedUnits, encoder, inbox, wellFormedJson } from "./inbox.js"

/** Rows a page holds at most. More gains nothing, and the joined text of a page stays small. */
const rowsAPage = 512
/** UTF-16 units after which a page is full. Joined to one string of more than 128 KiB, V8 would give it pages of its own each time. */
const unitsAPage = 60_000

/** Gathers rows until a page is full. */
export class PageBuilder {
  /** Each seq as two words, the lower one first. */
  readonly seqWords = new Uint32Array(rowsAPage * 2)
  readonly types = new Uint8Array(rowsAPage)
  /** Room for as many ends. */
  readonly ends = new Uint32Array(rowsAPage)
  texts: (string | Uint8Array)[] = []
  /** How many rows there are. */
  count = 0
  /** UTF-16 units of all texts together, and bytes of those that are bytes. */
  units = 0
  /** Whether any payload is bytes. */
  bytes = false

  /** Adds a row, whose seq is a safe whole number or a `bigint` of 64 bits; `true` when the page is full and has to be taken away. */
  put(seq: number | bigint, type: number, payload: string | Uint8Array): boolean {
    const row = this.count
    if (typeof seq === "number") {
      // No bigint for each row: that would cost more than the row.
      this.seqWords[row * 2] = seq
      this.seqWords[row * 2 + 1] = seq / 2 ** 32
    } else {
      this.seqWords[row * 2] = Number(seq & 0xffff_ffffn)
      this.seqWords[row * 2 + 1] = Number(seq >> 32n)
    }
    this.types[row] = type
    this.texts.push(payload)
    this.count = row + 1
    if (typeof payload !== "string") this.bytes = true
    this.units += payload.length
    return this.count === rowsAPage || this.units >= unitsAPage
  }

  /** Forgets the rows, for the next page. */
  clear(): void {
    this.texts = []
    this.count = 0
    this.units = 0
    this.bytes = false
  }
}

const spare: PageBuilder[] = []

/** Lends a builder to `work`. Small runs would otherwise cost one each; entries that come from another fold need one of their own. */
export function withPageBuilder<Result>(work: (builder: PageBuilder) => Result): Result {
  const builder = spare.pop() ?? new PageBuilder()
  try {
    return work(builder)
  } finally {
    builder.clear()
    if (spare.length < 4) spare.push(builder)
  }
}

/** Texts shorter than this, on average, are joined first and written at once, as long as they are ASCII. */
const joinedUnits = 512
/** Whether there is a way to copy a string's UTF-16: it takes a third of the time that encoding it in the host does. */
const utf16Written = typeof Buffer === "function" && typeof Buffer.prototype.write === "function"
/** Whether the page before was ASCII. What is written does not depend on it, only how fast. */
let asciiLately = true

/** Writes a page and says how many bytes the payloads took. Those of texts are UTF-8. */
export function writePage(module: Glue, rows: PageBuilder): number {
  const { count, texts, units, ends } = rows
  const head = count * 13
  const room = head + 1 + (units < countedUnits ? units * 3 : texts.reduce((sum, text) => sum + lengthOf(text), 0))
  let into = inbox(module, room)
  const joined = !rows.bytes && units < count * joinedUnits
  let length = joined && asciiLately ? writeJoined(into.subarray(head), rows) : undefined
  if (length === undefined && joined && utf16Written) {
    length = writeUnits(module, into, rows)
    // That call may have moved the module's memory.
    into = inbox(module, room)
  }
  if (length === undefined) {
    length = writeEach(into.subarray(head), texts, ends, count)
    asciiLately = length === units
    // What is not well formed has left a U+FFFD behind: looking for that costs less than looking at every text.
    if (!asciiLately && module.inbox_has_replacement(head, length) && !texts.every(isWellFormed)) {
      const safe = texts.map((text) => (typeof text === "string" ? wellFormedJson(text) : text))
      into = inbox(module, head + safe.reduce((sum, text) => sum + lengthOf(text), 0))
      length = writeEach(into.subarray(head), safe, ends, count)
    }
  }
  const { buffer, byteOffset } = into
  new Uint32Array(buffer, byteOffset, count * 2).set(rows.seqWords.subarray(0, count * 2))
  new Uint32Array(buffer, byteOffset + count * 8, count).set(ends.subarray(0, count))
  into.set(rows.types.subarray(0, count), count * 12)
  return length
}

/** Copies texts as the UTF-16 that they are, for the module to encode; nothing when they are not well formed. */
function writeUnits(module: Glue, into: Uint8Array, { texts, units, ends, count }: PageBuilder): number | undefined {
  let end = 0
  for (let row = 0; row < count; row++) ends[row] = end += (texts[row] as string).length
  const { buffer, byteOffset } = into
  new Uint32Array(buffer, byteOffset + count * 8, count).set(ends.subarray(0, count))
  const start = count * 13 + (count & 1)
  Buffer.from(buffer, byteOffset + start, units * 2).write(texts.join(""), "utf16le")
  const length = module.inbox_to_utf8(count, units)
  if (length === undefined) return undefined
  asciiLately = length === units
  ends.set(new Uint32Array(memoryBuffer(module), byteOffset + count * 8, count))
  return length
}

/** Writes ASCII texts at once, where length is length in bytes; nothing when they are none. */
function writeJoined(into: Uint8Array, { texts, units, ends, count }: PageBuilder): number | undefined {
  const { written } = encoder.encodeInto(texts.join(""), into)
  // Every unit takes a byte or more.
  if (written !== units) return undefined
  let end = 0
  for (let row = 0; row < count; row++) ends[row] = end += (texts[row] as string).length
  return written
}

/** Writes texts one by one: joining long ones, or some that are not ASCII, would cost more than it saves. */
function writeEach(into: Uint8Array, texts: readonly (string | Uint8Array)[], ends: Uint32Array, count: number): number {
  let end = 0
  for (let row = 0; row < count; row++) {
    const text = texts[row] as string | Uint8Array
    if (typeof text === "string") end += encoder.encodeInto(text, into.subarray(end)).written
    else {
      into.set(text, end)
      end += text.byteLength
    }
    ends[row] = end
  }
  return end
}

function lengthOf(text: string | Uint8Array): number {
  return typeof text === "string" ? byteLength(text) : text.byteLength
}

function isWellFormed(text: string | Uint8Array): boolean {
  return typeof text !== "string" || text.isWellFormed()
}

/**
 * Writes a page that is bytes already. Rows that have no types leave their room as it is. Of a slice of a larger page, `start` is where
 * it begins there: ends are counted from there on.
 */
export function writeBytePage(
  module: Glue,
  bytes: Uint8Array,
  ends: Uint32Array,
  seqs: BigInt64Array | BigUint64Array,
  types?: Uint8Array,
  start = 0
): void {
  const head = seqs.length * 13
  const into = inbox(module, head + bytes.byteLength)
  const { buffer, byteOffset } = into
  new BigInt64Array(buffer, byteOffset, seqs.length).set(seqs)
  const own = new Uint32Array(buffer, byteOffset + seqs.length * 8, ends.length)
  if (start === 0) own.set(ends)
  else for (let row = 0; row < ends.length; row++) own[row] = (ends[row] as number) - start
  if (types !== undefined) into.set(types, seqs.length * 12)
  into.set(bytes, head)
}
