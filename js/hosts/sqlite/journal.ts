/**
 * The journal, read in one ordered scan: pages assembled by SQLite, so that a thousand entries cost one row.
 *
 * Pages are cut by (run, seq) keyset, never one row a run: a text is limited to 1 GB. An ordered subquery keeps its order through
 * the aggregates; the core checks that seqs ascend all the same.
 */
import { JournalFoldError } from "../../core/errors.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import type { Scope } from "../scope.js"
import { isTooBig } from "./errors.js"
import type { Connection, Row } from "./connection.js"
import type { Names } from "./names.js"
import { checkpointStatements, journalStatements, runIdsStatement, type CheckpointStatements } from "./statements.js"

/** Entries of one run, as SQLite assembled them. */
export interface Segment {
  readonly runId: string
  /** How many entries, those of other types included. */
  readonly entries: number
  readonly payloads: Uint8Array
  readonly lengths: Uint8Array
  readonly seqs: Uint8Array
  readonly types: Uint8Array
}

/** Entries a query reads at the most, and at the least while payloads are large. */
const mostRows = 4096
const fewestRows = 16
/** Bytes of payloads that a query should not give more than. */
const bytesAPage = 4 << 20

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Reads a journal's entries in order of run and seq. */
export class JournalReader {
  readonly #connection: Connection
  readonly #names: Names
  readonly #all: string
  readonly #one: string
  #limit = 512

  constructor(connection: Connection, names: Names, scope: Scope, utf8: boolean) {
    this.#connection = connection
    this.#names = names
    const { all, one } = journalStatements(names, scope, utf8)
    this.#all = all
    this.#one = one
  }

  /** Every run's entries, in order of run and seq. */
  *segments(): Generator<Segment[]> {
    let run: Uint8Array = new Uint8Array(0)
    let seq = "-1"
    for (;;) {
      const rows = this.#read(this.#all, run, seq)
      const last = rows.at(-1)
      if (last === undefined) return
      run = last[0] as Uint8Array
      seq = last[1] as string
      yield rows.map((row) => segmentOf(row, runIdOf(row[0] as Uint8Array)))
    }
  }

  /** One run's entries. */
  *segmentsOf(runId: string): Generator<Segment> {
    let seq = "-1"
    for (;;) {
      const [row] = this.#read(this.#one, runId, seq)
      if (row === undefined) return
      seq = row[1] as string
      yield segmentOf(row, runId)
    }
  }

  #read(sql: string, run: string | Uint8Array, seq: string): Row[] {
    for (;;) {
      try {
        const rows = this.#connection.all(sql, ...this.#names.eventTypes, run, seq, this.#limit)
        const bytes = rows.reduce((sum, row) => sum + ((row[3] as Uint8Array | null)?.byteLength ?? 0), 0)
        if (bytes > bytesAPage) this.#limit = Math.max(fewestRows, this.#limit >> 1)
        else if (bytes * 2 < bytesAPage) this.#limit = Math.min(mostRows, this.#limit << 1)
        return rows
      } catch (error) {
        if (!isTooBig(error) || this.#limit === 1) throw error
        this.#limit = Math.max(1, this.#limit >> 2)
      }
    }
  }
}

const none = new Uint8Array(0)

function segmentOf(row: Row, runId: string): Segment {
  const bytes = (value: unknown): Uint8Array => (value as Uint8Array | null) ?? none
  return {
    runId,
    entries: Number(row[2]),
    payloads: bytes(row[3]),
    lengths: bytes(row[4]),
    seqs: bytes(row[5]),
    types: bytes(row[6])
  }
}

function runIdOf(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch (error) {
    throw new JournalFoldError(
      "text_not_utf8",
      `expected run ids in UTF-8, found the bytes ${Buffer.from(bytes).toString("hex")}`,
      { found: Buffer.from(bytes).toString("hex") },
      { cause: error }
    )
  }
}

/** A run's floor: the compacted checkpoint with the highest seq. */
export interface StoredFloor {
  readonly runId: string
  readonly seq: string
}

/** Reads checkpoints. Their states may be large, so each is read when its run comes. */
export class CheckpointReader {
  readonly #connection: Connection
  readonly #statements: CheckpointStatements

  constructor(connection: Connection, names: Names, scope: Scope) {
    this.#connection = connection
    this.#statements = checkpointStatements(names, scope)
  }

  /** Every run's floor, in order of run. */
  *floors(): Generator<StoredFloor> {
    let after = ""
    // An empty id is an id too: begin at it.
    let sql = this.#statements.from
    for (;;) {
      const rows = this.#connection.all(sql, after)
      sql = this.#statements.after
      for (const [run, seq] of rows) yield { runId: String(run), seq: String(seq) }
      const last = rows.at(-1)
      if (last === undefined) return
      after = String(last[0])
    }
  }

  /** A run's floor, if it has one. */
  floorOf(runId: string): StoredFloor | undefined {
    const [row] = this.#connection.all(this.#statements.one, runId)
    return row === undefined ? undefined : { runId, seq: String(row[1]) }
  }

  /** The text of a floor's state. One that is NULL is no JSON. */
  stateOf({ runId, seq }: StoredFloor): string {
    return String(this.#connection.all(this.#statements.state, runId, seq)[0]?.[0] ?? "")
  }
}

/** All run ids of the journal and of compacted checkpoints, sorted by UTF-8 bytes: for stores whose own order is another. */
export function allRunIds(connection: Connection, names: Names, scope: Scope): string[] {
  const rows = connection.all(runIdsStatement(names, scope))
  return rows.map(([run]) => String(run)).sort(compareUtf8)
}
