/**
 * The journal, read in one ordered scan: pages assembled by SQLite, so that a thousand entries cost one row.
 *
 * Pages are cut by rows and by bytes, never one row a run: a text is limited to 1 GB, and what a page holds is held several times on
 * its way. An ordered subquery keeps its order through the aggregates; the core checks that seqs ascend all the same.
 */
import { isJournalFoldError, JournalFoldError } from "../../core/errors.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { eventTypes } from "../../folds/deferred-clock/names.js"
import type { EntryText } from "../../folds/deferred-clock/types.js"
import type { Scope } from "../scope.js"
import type { Connection, Row, Value } from "./connection.js"
import { isTooBig } from "./errors.js"
import type { Names } from "./names.js"
import { pageStatements, runIdsStatement, type PageStatements } from "./statements.js"

/** Joined payloads, and beside them byte lengths and seqs in decimal and types as one digit each. */
export type Lists = readonly [payloads: Uint8Array, lengths: Uint8Array, seqs: Uint8Array, types: Uint8Array]

/** Entries of one run, as SQLite assembled them, or row by row where it cannot. */
export interface Segment {
  readonly runId: string
  /** How many entries, those of other types included. */
  readonly entries: number
  /** Whether the highest seq is a whole number: one that is a text or a blob stands above all that are. */
  readonly whole: boolean
  readonly lists?: Lists
  readonly rows?: readonly EntryText[]
}

/** How pages are cut. */
export interface PageLimits {
  /** Entries a query reads at the most, and at the least while payloads are small. */
  readonly mostRows: number
  readonly fewestRows: number
  /** Bytes of payloads that a page should not give more than; one entry is always given. */
  readonly bytesAPage: number
  /** A payload longer than this makes its page be cut by bytes. With `mostRows` it bounds a page that nobody expected to be large. */
  readonly longPayload: number
}

export const pageLimits: PageLimits = { mostRows: 4096, fewestRows: 16, bytesAPage: 4 << 20, longPayload: 4096 }

const any = Number.MAX_SAFE_INTEGER
/** The type that a page gives an entry whose payload was too long to be joined. */
const longType = "8".charCodeAt(0)

/** What one query gave. */
interface Taken<Result> {
  readonly rows: Result[]
  /** Whether it gave as many entries as it was asked for, so that there may be more. */
  readonly full: boolean
}

/** Reads a journal's entries in order of run and seq. */
export class JournalReader {
  readonly #connection: Connection
  readonly #types: readonly string[]
  readonly #statements: PageStatements
  readonly #utf8: boolean
  readonly #limits: PageLimits
  #limit: number

  constructor(connection: Connection, names: Names, scope: Scope, utf8: boolean, limits = pageLimits) {
    this.#connection = connection
    this.#types = names.eventTypes
    this.#statements = pageStatements(names, scope)
    this.#utf8 = utf8
    this.#limits = limits
    this.#limit = Math.min(512, limits.mostRows)
  }

  /**
   * Every run's entries, in order of run and seq, page by page; of runs that are not looked at, not all. For stores in UTF-8, whose own
   * order is that of a verification.
   */
  *segments(except: ReadonlySet<string>): Generator<Segment[]> {
    // An empty id is an id too: begin with the rest of its entries.
    let run: Uint8Array = new Uint8Array(0)
    let seq: string | null = "-1"
    for (;;) {
      while (seq !== null) {
        const { rows, full } = this.#page(this.#statements.rest, run, seq)
        if (rows.length > 0) yield rows.map(segmentOf)
        seq = full ? lastSeq(rows) : null
      }
      const { rows, full } = this.#page(this.#statements.next, run)
      const last = rows.at(-1)
      if (last === undefined) return
      yield rows.map(segmentOf)
      if (!full) return
      run = last[0] as Uint8Array
      seq = except.size > 0 && except.has(runIdOf(run)) ? null : lastSeq(rows)
    }
  }

  /** One run's entries. */
  *segmentsOf(runId: string): Generator<Segment> {
    let seq: string | null = "-1"
    while (seq !== null) {
      if (this.#utf8) {
        const { rows, full } = this.#page(this.#statements.rest, Buffer.from(runId), seq)
        const [row] = rows
        if (row !== undefined) yield segmentOf(row)
        seq = full ? lastSeq(rows) : null
      } else {
        const { rows, full } = this.#rows(runId, seq)
        if (rows.length > 0) yield { runId, entries: rows.length, whole: true, rows: rows.map((row) => entryOf(runId, row)) }
        seq = full ? (rows.at(-1)?.[0] as string) : null
      }
    }
  }

  /** A page of joined payloads. */
  #page(sql: string, ...where: Value[]): Taken<Row> {
    return this.#take(sql, where, (row) => ({
      entries: Number(row[2]),
      bytes: (row[3] as Uint8Array | null)?.byteLength ?? 0,
      long: bytesOf(row[6]).includes(longType),
      lengths: () => Buffer.from(bytesOf(row[4])).toString("latin1").split(",").map(Number)
    }))
  }

  /** A page row by row. */
  #rows(runId: string, seq: string): Taken<Row> {
    return this.#take(this.#statements.rows, [runId, seq], ([, type, length]) => ({
      entries: 1,
      bytes: Number(length),
      long: type === 8,
      lengths: () => [Number(length)]
    }))
  }

  /** Asks for a page; when it is to be cut by bytes, asks again for exactly the entries that fit. */
  #take(sql: string, where: readonly Value[], measure: (row: Row) => Measures): Taken<Row> {
    const { mostRows, fewestRows, bytesAPage, longPayload } = this.#limits
    const ask = (longest: number, count: number): Row[] =>
      this.#connection.all(sql, ...this.#types, longest, ...where, count)
    for (;;) {
      const limit = this.#limit
      try {
        const rows = ask(longPayload, limit)
        const measured = rows.map(measure)
        if (measured.some(({ long }) => long)) {
          const fitting = countWithin(measured, bytesAPage)
          this.#limit = Math.min(mostRows, Math.max(fewestRows, fitting * 2))
          return { rows: ask(any, fitting), full: true }
        }
        const entries = measured.reduce((sum, row) => sum + row.entries, 0)
        const bytes = measured.reduce((sum, row) => sum + row.bytes, 0)
        if (bytes > bytesAPage) this.#limit = Math.max(Math.min(fewestRows, limit), limit >> 1)
        else if (bytes * 2 < bytesAPage) this.#limit = Math.min(mostRows, limit << 1)
        return { rows, full: entries === limit }
      } catch (error) {
        if (!isTooBig(error) || limit === 1) throw error
        this.#limit = Math.max(1, limit >> 2)
      }
    }
  }
}

/** What tells whether a page has to be cut. */
interface Measures {
  readonly entries: number
  readonly bytes: number
  readonly long: boolean
  readonly lengths: () => number[]
}

/** How many of the first entries hold no more than `bytes` together; at least one. */
function countWithin(measured: readonly Measures[], bytes: number): number {
  let count = 0
  let sum = 0
  for (const { lengths } of measured) {
    for (const length of lengths()) {
      sum += Math.max(0, length)
      if (sum > bytes) return Math.max(1, count)
      count += 1
    }
  }
  return Math.max(1, count)
}

const none = new Uint8Array(0)

function bytesOf(value: Value | undefined): Uint8Array {
  return (value as Uint8Array | null) ?? none
}

/** The last seq of a page. */
function lastSeq(rows: readonly Row[]): string {
  const row = rows.at(-1) as Row
  if (row[1] === null) throw seqInvalid(runIdOf(row[0] as Uint8Array))
  return row[1] as string
}

function segmentOf(row: Row): Segment {
  return {
    runId: runIdOf(row[0] as Uint8Array),
    entries: Number(row[2]),
    whole: row[1] !== null,
    lists: [bytesOf(row[3]), bytesOf(row[4]), bytesOf(row[5]), bytesOf(row[6])]
  }
}

const fatal = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** An entry of a store in UTF-16. A payload that is a blob counts by its bytes, as it does in UTF-8. */
function entryOf(runId: string, [seq, type, , payload]: Row): EntryText {
  if (seq === null) throw seqInvalid(runId)
  let payloadText = ""
  try {
    payloadText = payload instanceof Uint8Array ? fatal.decode(payload) : String(payload ?? "")
  } catch {
    // What is no UTF-8 is no JSON.
  }
  return { runId, seq: seq as string, eventType: eventTypes[type as number] ?? "", payloadText }
}

/** What takes a run's entries. */
interface Taker {
  push(rows: readonly EntryText[]): void
  pushLists(...lists: Lists): void
}

/**
 * Gives a segment to a fold or a rebuild.
 *
 * @throws `seq_invalid`, naming the run; nothing of the segment was taken then
 */
export function pushSegment({ runId, whole, lists, rows }: Segment, taker: Taker): void {
  if (!whole) throw seqInvalid(runId)
  if (lists === undefined) return taker.push(rows ?? [])
  try {
    taker.pushLists(...lists)
  } catch (error) {
    // Seqs that are no integers, or NULL, do not fit together with the other lists.
    if (!isJournalFoldError(error, "page_malformed") && !isJournalFoldError(error, "seq_invalid")) throw error
    // A column that is of no type, or of reals, keeps whole numbers as reals.
    const [payloads, lengths, seqs, types] = lists
    const text = Buffer.from(seqs).toString("latin1")
    const integers = text.replaceAll(/\.0(?=,|$)/g, "")
    if (integers === text) throw seqInvalid(runId, error.details.found, error)
    pushSegment({ runId, entries: 0, whole, lists: [payloads, lengths, Buffer.from(integers), types] }, taker)
  }
}

/** A journal with seqs that are none can be neither ordered nor paged: nothing can be said of the run. */
function seqInvalid(runId: string, found = "something else", cause?: unknown): JournalFoldError {
  return new JournalFoldError(
    "seq_invalid",
    `expected whole seqs from 0 to 2^63-1 in run ${JSON.stringify(runId)}, found ${found}; leave the run out (except) to look at the others`,
    { runId, expected: "whole seqs from 0 to 2^63-1", found },
    { cause }
  )
}

/** A run's id from its stored bytes. */
export function runIdOf(bytes: Uint8Array): string {
  try {
    return fatal.decode(bytes)
  } catch (error) {
    const found = Buffer.from(bytes).toString("hex")
    throw new JournalFoldError("text_not_utf8", `expected run ids in UTF-8, found the bytes ${found}`, { found }, { cause: error })
  }
}

/** All run ids of the journal and of compacted checkpoints, sorted by UTF-8 bytes: for stores whose own order is another. */
export function allRunIds(connection: Connection, names: Names, scope: Scope): string[] {
  const rows = connection.all(runIdsStatement(names, scope))
  return rows.map(([run]) => String(run)).sort(compareUtf8)
}
