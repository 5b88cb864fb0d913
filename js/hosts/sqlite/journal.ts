/**
 * The journal, read in one ordered scan: pages assembled by SQLite, so that a thousand entries cost one row.
 *
 * Pages are cut by (run, seq) keyset, never one row a run: a text is limited to 1 GB. An ordered subquery keeps its order through
 * the aggregates; the core checks that seqs ascend all the same.
 */
import { JournalFoldError } from "../../core/errors.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { isTooBig } from "./errors.js"
import type { Connection, Row } from "./connection.js"
import { quoted, type Names } from "./names.js"

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

/** Which runs are looked at. */
export type Scope =
  | { readonly kind: "all" }
  | { readonly kind: "live" }
  | { readonly kind: "runs"; readonly ids: readonly string[] }

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
    const { journal, runs } = quoted(names)
    const payload = utf8 ? "p" : "CAST(p AS TEXT)"
    const inner = (where: string): string =>
      `SELECT run, seq, k, CASE WHEN k < 9 THEN p ELSE '' END AS p FROM (
         SELECT j.${journal.runId} AS run, j.${journal.seq} AS seq,
           CASE j.${journal.eventType} WHEN ? THEN 0 WHEN ? THEN 1 WHEN ? THEN 2 WHEN ? THEN 3 ELSE 9 END AS k,
           j.${journal.payload} AS p
         FROM ${journal.table} AS j WHERE ${where} LIMIT ?)`
    const page = (where: string): string =>
      `SELECT CAST(run AS BLOB) AS c0, CAST(max(seq) AS TEXT) AS c1, count(*) AS c2,
         CAST(group_concat(${payload}, '') AS BLOB) AS c3,
         CAST(group_concat(coalesce(octet_length(p), -1)) AS BLOB) AS c4,
         CAST(group_concat(seq) AS BLOB) AS c5,
         CAST(group_concat(k, '') AS BLOB) AS c6
       FROM (${inner(where)}) GROUP BY run`
    const live =
      scope.kind === "live" ? ` AND EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE r.${runs.runId} = j.${journal.runId})` : ""
    const order = `ORDER BY j.${journal.runId}, j.${journal.seq}`
    this.#all = page(
      `(j.${journal.runId}, j.${journal.seq}) > (CAST(? AS TEXT), CAST(? AS INTEGER))${live} ${order}`
    )
    this.#one = page(`j.${journal.runId} = ? AND j.${journal.seq} > CAST(? AS INTEGER) ${order}`)
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
  readonly #between: string
  readonly #one: string
  readonly #state: string

  constructor(connection: Connection, names: Names, scope: Scope) {
    this.#connection = connection
    const { checkpoints: c, runs } = quoted(names)
    const live =
      scope.kind === "live" ? ` AND EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE r.${runs.runId} = k.${c.runId})` : ""
    this.#between = `SELECT k.${c.runId} AS c0, CAST(max(CAST(k.${c.seq} AS INTEGER)) AS TEXT) AS c1 FROM ${c.table} AS k
      WHERE k.${c.compactedAtMs} IS NOT NULL AND k.${c.runId} > ?${live} GROUP BY k.${c.runId} ORDER BY k.${c.runId} LIMIT 1024`
    this.#one = `SELECT k.${c.runId} AS c0, CAST(max(CAST(k.${c.seq} AS INTEGER)) AS TEXT) AS c1 FROM ${c.table} AS k
      WHERE k.${c.compactedAtMs} IS NOT NULL AND k.${c.runId} = ? GROUP BY k.${c.runId}`
    this.#state = `SELECT CAST(k.${c.state} AS TEXT) AS c0 FROM ${c.table} AS k
      WHERE k.${c.runId} = ? AND CAST(k.${c.seq} AS INTEGER) = CAST(? AS INTEGER) AND k.${c.compactedAtMs} IS NOT NULL`
  }

  /** Every run's floor, in order of run. */
  *floors(): Generator<StoredFloor> {
    let after = ""
    let first = true
    for (;;) {
      const rows = this.#connection.all(first ? this.#between.replace("> ?", ">= ?") : this.#between, after)
      first = false
      for (const [run, seq] of rows) yield { runId: String(run), seq: String(seq) }
      const last = rows.at(-1)
      if (last === undefined) return
      after = String(last[0])
    }
  }

  /** A run's floor, if it has one. */
  floorOf(runId: string): StoredFloor | undefined {
    const [row] = this.#connection.all(this.#one, runId)
    return row === undefined ? undefined : { runId, seq: String(row[1]) }
  }

  /** The text of a floor's state. One that is NULL is no JSON. */
  stateOf({ runId, seq }: StoredFloor): string {
    return String(this.#connection.all(this.#state, runId, seq)[0]?.[0] ?? "")
  }
}

/** All run ids of the journal and of compacted checkpoints, sorted by UTF-8 bytes: for stores whose own order is another. */
export function allRunIds(connection: Connection, names: Names, scope: Scope): string[] {
  const { journal, checkpoints, runs } = quoted(names)
  const live = scope.kind === "live" ? ` WHERE run IN (SELECT ${runs.runId} FROM ${runs.table})` : ""
  const rows = connection.all(
    `SELECT DISTINCT run AS c0 FROM (
       SELECT ${journal.runId} AS run FROM ${journal.table}
       UNION ALL
       SELECT ${checkpoints.runId} FROM ${checkpoints.table} WHERE ${checkpoints.compactedAtMs} IS NOT NULL)${live}`
  )
  return rows.map(([run]) => String(run)).sort(compareUtf8)
}
