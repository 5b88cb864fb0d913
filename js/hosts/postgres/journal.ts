/**
 * The journal, read in one ordered scan: pages assembled by Postgres, so that a thousand entries cost one row. Rows are fetched some at
 * a time, as many as have come to a few megabytes so far; the core checks that seqs ascend.
 */
import { isJournalFoldError, JournalFoldError } from "../../core/errors.js"
import type { Connection, Row } from "./connection.js"
import { Cursor } from "./cursor.js"
import type { CheckpointStatements, JournalStatements } from "./statements.js"

/** Entries of one run, as Postgres assembled them. */
export interface Segment {
  readonly runId: string
  /** How many entries, those of other types included. */
  readonly entries: number
  readonly payloads: Uint8Array
  readonly lengths: Uint8Array
  readonly seqs: Uint8Array
  readonly types: Uint8Array
}

/** Pages fetched at a time, at the most: none of them holds much more than 512 KiB, but the last of a fetch may. */
const mostPages = 64
/** Bytes that a fetch should not give more than. */
const bytesAFetch = 4 << 20
/** Entries that are read of one run at a time. */
const entriesARead = 4096
const floorsAFetch = 512

const encoder = new TextEncoder()

/** The bytes of a text, or those that a text in hex stands for. */
export function bytesOf(value: string | null | undefined, hex: boolean): Uint8Array {
  if (value === null || value === undefined) return new Uint8Array(0)
  if (!hex) return encoder.encode(value)
  const bytes = new Uint8Array(value.length / 2)
  for (let at = 0; at < bytes.length; at++) bytes[at] = (digit(value.charCodeAt(at * 2)) << 4) | digit(value.charCodeAt(at * 2 + 1))
  return bytes
}

const digit = (unit: number): number => (unit < 58 ? unit - 48 : unit - 87)

function segmentOf(runId: string, [entries, payloads, lengths, seqs, types]: Row, hex: boolean): Segment {
  return {
    runId,
    entries: Number(entries),
    payloads: bytesOf(payloads, hex),
    lengths: bytesOf(lengths, false),
    seqs: bytesOf(seqs, false),
    types: bytesOf(types, false)
  }
}

function runIdOf(run: string | null | undefined, [entries]: Row): string {
  if (typeof run === "string") return run
  throw new JournalFoldError("text_not_utf8", `expected a run id in every entry of the journal, found none in ${entries} of them`)
}

/** Pushes a run's lists. What stands there for a seq that is missing or negative does not fit together with the other lists. */
export function namingSeqs(runId: string, push: () => void): void {
  try {
    push()
  } catch (error) {
    if (!isJournalFoldError(error, "page_malformed") && !isJournalFoldError(error, "seq_invalid")) throw error
    const { found = "something else" } = error.details
    throw new JournalFoldError(
      "seq_invalid",
      `expected whole seqs from 0 to 2^63-1 in run ${JSON.stringify(runId)}, found ${found}; leave the run out (except) to look at the others`,
      { runId, expected: "whole seqs from 0 to 2^63-1", found },
      { cause: error }
    )
  }
}

/** How many of something to fetch, so that about {@link bytesAFetch} come. */
export class FetchSize {
  rows: number
  readonly #most: number

  constructor(first: number, most: number) {
    this.rows = first
    this.#most = most
  }

  /** Learns from what a fetch gave. */
  saw(bytes: number): void {
    if (bytes > bytesAFetch) this.rows = Math.max(1, this.rows >> 1)
    else if (bytes * 2 < bytesAFetch) this.rows = Math.min(this.#most, this.rows << 1)
  }
}

/** Every run's entries in scope, in order of run and seq. */
export async function* segments(connection: Connection, { pages, hex }: JournalStatements): AsyncGenerator<Segment[]> {
  const cursor = await Cursor.open(connection, pages.sql, ...pages.values)
  const size = new FetchSize(8, mostPages)
  for (;;) {
    const rows = await cursor.next(size.rows)
    if (rows.length === 0) break
    const page = rows.map(([run, ...of]) => segmentOf(runIdOf(run, of), of, hex))
    size.saw(page.reduce((sum, { payloads }) => sum + payloads.byteLength, 0))
    yield page
  }
  await cursor.close()
}

/** One run's entries, up to the first page that goes beyond `upTo`. */
export async function* segmentsOf(
  connection: Connection,
  { one, hex }: JournalStatements,
  eventTypes: readonly string[],
  runId: string,
  upTo: number
): AsyncGenerator<Segment> {
  let last = "-1"
  for (;;) {
    const [row] = await connection.rows(one, ...eventTypes, runId, last, String(entriesARead))
    const [seq, ...of] = row ?? []
    if (seq === undefined || seq === null) return
    last = seq
    yield segmentOf(runId, of, hex)
    if (Number(last) >= upTo) return
  }
}

/** A run's floor: the compacted checkpoint with the highest seq. */
export interface StoredFloor {
  readonly runId: string
  readonly seq: string
  readonly stateText: string
}

/** Reads floors in order of run, with their states: of so many at once as come to a few megabytes. */
export class FloorReader {
  readonly #connection: Connection
  readonly #statements: CheckpointStatements
  readonly #hex: boolean
  #cursor: Cursor | undefined
  #known: { runId: string; seq: string; bytes: number }[] = []
  #ready: StoredFloor[] = []
  #over = false

  constructor(connection: Connection, statements: CheckpointStatements) {
    this.#connection = connection
    this.#statements = statements
    this.#hex = statements.hex
  }

  /** The next floor, without taking it. */
  async peek(): Promise<StoredFloor | undefined> {
    if (this.#ready.length === 0 && !this.#over) await this.#fill()
    return this.#ready[0]
  }

  /** Takes the floor that was peeked at. */
  take(): void {
    this.#ready.shift()
  }

  /** One run's floor, if it has one. */
  async floorOf(runId: string): Promise<StoredFloor | undefined> {
    const [row] = await this.#connection.rows(this.#statements.one, runId)
    return row === undefined ? undefined : { runId, seq: String(row[0]), stateText: stateText(row[1], this.#hex) }
  }

  async #fill(): Promise<void> {
    if (this.#known.length === 0) {
      const { floors } = this.#statements
      this.#cursor ??= await Cursor.open(this.#connection, floors.sql, ...floors.values)
      const rows = await this.#cursor.next(floorsAFetch)
      this.#known = rows.map(([run, seq, bytes]) => ({ runId: String(run), seq: String(seq), bytes: Number(bytes) }))
      if (rows.length === 0) {
        this.#over = true
        await this.#cursor.close()
        return
      }
    }
    let bytes = 0
    let count = 0
    for (const floor of this.#known) {
      if (count > 0 && bytes + floor.bytes > bytesAFetch) break
      bytes += floor.bytes
      count += 1
    }
    const some = this.#known.splice(0, count)
    const rows = await this.#connection.rows(this.#statements.states, JSON.stringify(some.map(({ runId, seq }) => [runId, seq])))
    const states = new Map(rows.map(([place, state]) => [Number(place), stateText(state, this.#hex)]))
    this.#ready = some.map(({ runId, seq }, place) => ({ runId, seq, stateText: states.get(place + 1) ?? "" }))
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The text of a floor's state. One that is NULL, or no UTF-8, is no JSON. */
function stateText(state: string | null | undefined, hex: boolean): string {
  if (!hex) return state ?? ""
  try {
    return decoder.decode(bytesOf(state, true))
  } catch {
    return ""
  }
}
