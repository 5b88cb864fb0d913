/**
 * One run of a store as lines of JSON (`js/journal-file`): its floor, every entry as stored, and the stored rows that a verification of
 * that run looks at, with those of its own execution.
 */
import { isUtf8 } from "node:buffer"
import { contentDigest, type DigestFunction } from "../../digest.js"
import { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { RunFileWriter } from "../../journal-file/write.js"
import { clockLine, completionLine, unknownRun, WantedRows, type Oddities, type StoredText } from "../export.js"
import { connect, type Connection, type SqliteDatabase, type Value } from "./connection.js"
import { FloorReader } from "./floors.js"
import { JournalReader, pushSegment } from "./journal.js"
import { namesOf, quoted, type NameMapping, type Names } from "./names.js"
import { hostDigest, liveAmong } from "./rows.js"
import { checkSchema } from "./schema.js"
import { exact, json, rowStatements } from "./statements.js"

export type { Oddities } from "../export.js"

/** How a run is exported. */
export interface ExportOptions {
  /** What the store calls its tables, columns and event types. */
  readonly names?: NameMapping
  /** Write the texts of completions, not only their digests. */
  readonly showValues?: boolean
  /** Computes the digests of stored texts. */
  readonly digest?: DigestFunction
}

/** Entries a query gives at the least and at the most, and bytes of payloads after which it is asked for fewer. */
const fewestRows = 16
const mostRows = 512
const bytesAPage = 4 << 20
const rowsAPage = 256

/** Those of some run ids of which the store has neither a row nor an entry nor a checkpoint. */
export function unknownRuns(db: SqliteDatabase, ids: readonly string[], mapping?: NameMapping): string[] {
  const names = namesOf(mapping)
  const connection = connect(db)
  checkSchema(connection, names, ["runs", "journal", "checkpoints"])
  return unknownOf(connection, names, ids)
}

function unknownOf(connection: Connection, names: Names, ids: readonly string[]): string[] {
  const { runs: r, journal: j, checkpoints: k } = quoted(names)
  const rows = connection.all(
    `SELECT w.key AS c0 FROM json_each(?) AS w
     WHERE NOT EXISTS (SELECT 1 FROM ${r.table} AS r WHERE ${exact(`r.${r.runId}`)} = w.value)
       AND NOT EXISTS (SELECT 1 FROM ${j.table} AS j WHERE ${exact(`j.${j.runId}`)} = w.value)
       AND NOT EXISTS (SELECT 1 FROM ${k.table} AS k WHERE ${exact(`k.${k.runId}`)} = w.value)`,
    JSON.stringify(ids)
  )
  return rows.map(([key]) => ids[Number(key)] as string)
}

/**
 * The lines of one run's export, each with its line feed. The caller holds the snapshot.
 *
 * @throws `run_unknown`; `store_table_missing`, …
 */
export function* exportRun(db: SqliteDatabase, runId: string, options: ExportOptions = {}): Generator<string, Oddities> {
  const names = namesOf(options.names)
  const connection = connect(db)
  const { utf8 } = checkSchema(connection, names, ["runs", "journal", "checkpoints", "clocks", "completions"])
  if (unknownOf(connection, names, [runId]).length > 0) throw unknownRun(runId)
  const writer = new RunFileWriter()
  const reader = new ExportReader(connection, names, utf8, options.digest ?? hostDigest ?? contentDigest)
  const floor = new FloorReader(connection, names, { kind: "runs", ids: [runId] }, utf8).floorOf(runId)
  const values = options.showValues === true ? "texts" : "digests"
  yield writer.header({ runId, ...(floor && { floor: floor.seq }), eventTypes: names.eventTypes, values })
  if (floor !== undefined) yield reader.checkpoint(writer, runId, floor.seq)
  yield* reader.entries(writer, runId)
  const { runs, addresses } = reader.wanted(runId)
  for (const run of reader.live(runs)) yield writer.run(run)
  for (const address of addresses) yield* reader.clocks(writer, address)
  for (const address of addresses) yield* reader.completions(writer, address, values === "texts")
  yield writer.end()
  return { base64: writer.base64, leftOut: reader.leftOut }
}

/** Reads what an export is made of. */
class ExportReader {
  readonly #connection: Connection
  readonly #names: Names
  readonly #utf8: boolean
  readonly #digest: DigestFunction
  leftOut = 0

  constructor(connection: Connection, names: Names, utf8: boolean, digest: DigestFunction) {
    this.#connection = connection
    this.#names = names
    this.#utf8 = utf8
    this.#digest = digest
  }

  /** A text as its stored bytes, where the store keeps texts in UTF-8. */
  #text(column: string): string {
    return this.#utf8 ? `CAST(${column} AS BLOB)` : `CASE typeof(${column}) WHEN 'blob' THEN ${column} ELSE CAST(${column} AS TEXT) END`
  }

  checkpoint(writer: RunFileWriter, runId: string, seq: string): string {
    const { checkpoints: k } = quoted(this.#names)
    const [row] = this.#connection.all(
      `SELECT ${this.#spelled(`k.${k.compactedAtMs}`)} AS c0, ${this.#text(`k.${k.state}`)} AS c1 FROM ${k.table} AS k
       WHERE ${exact(`k.${k.runId}`)} = ? AND CAST(k.${k.seq} AS INTEGER) = CAST(? AS INTEGER) AND k.${k.compactedAtMs} IS NOT NULL`,
      runId,
      seq
    )
    return writer.checkpoint(seq, spelling(row?.[0]), stored(row?.[1]))
  }

  *entries(writer: RunFileWriter, runId: string): Generator<string> {
    const { journal: j } = quoted(this.#names)
    const sql = `SELECT CAST(j.${j.seq} AS TEXT) AS c0, ${this.#text(`j.${j.eventType}`)} AS c1, ${this.#text(`j.${j.payload}`)} AS c2
      FROM ${j.table} AS j WHERE ${exact(`j.${j.runId}`)} = ? AND j.${j.seq} > CAST(? AS INTEGER) ORDER BY j.${j.seq} LIMIT ?`
    let after = "-1"
    let limit = fewestRows
    for (;;) {
      const rows = this.#connection.all(sql, runId, after, limit)
      let bytes = 0
      for (const [seq, type, payload] of rows) {
        after = String(seq)
        bytes += lengthOf(payload)
        yield writer.entry(after, stored(type), stored(payload))
      }
      if (rows.length === 0) return
      limit = bytes > bytesAPage ? Math.max(fewestRows, limit >> 1) : Math.min(mostRows, limit << 1)
    }
  }

  /** The runs and executions that the run's fold asks for, and its own execution in every flow that has rows of it, in byte order. */
  wanted(runId: string): WantedRows {
    const wanted = new WantedRows(runId)
    const rebuild = new Rebuild({ wholeStore: false })
    try {
      const scope = { kind: "runs", ids: [runId] } as const
      const floors = new FloorReader(this.#connection, this.#names, scope, this.#utf8)
      const floor = floors.floorOf(runId)
      rebuild.beginRun(runId, floor && [floors.read(floor)])
      const journal = new JournalReader(this.#connection, this.#names, scope, this.#utf8)
      for (const segment of journal.segmentsOf(runId)) pushSegment(segment, rebuild)
      wanted.ask(rebuild)
    } finally {
      rebuild.dispose()
    }
    const { clocks: c, completions: d } = quoted(this.#names)
    const flows = (table: string, flow: string, execution: string): string =>
      `SELECT DISTINCT ${this.#text(`t.${flow}`)} AS c0 FROM ${table} AS t WHERE ${exact(`t.${execution}`)} = ? AND typeof(t.${flow}) = 'text'`
    const ofTables = [flows(c.table, c.flowName, c.executionId), flows(d.table, d.flowName, d.executionId)]
    for (const [flow] of ofTables.flatMap((sql) => this.#connection.all(sql, runId))) {
      const flowName = readable(flow)
      if (flowName !== undefined) wanted.add({ flowName, executionId: runId })
    }
    return wanted
  }

  live(runs: readonly string[]): string[] {
    return liveAmong(this.#connection, rowStatements(this.#names, this.#utf8), runs).sort(compareUtf8)
  }

  *clocks(writer: RunFileWriter, address: ExecutionAddress): Generator<string> {
    const { clocks: c } = quoted(this.#names)
    const columns = [c.deferredName, c.dueAtMs, c.completedAtMs].map((column) => this.#spelled(`t.${column}`))
    for (const [clock, ...values] of this.#rows(c.table, c.flowName, c.executionId, c.clockName, columns, address)) {
      yield clockLine(writer, address, String(clock), values.map(spelling))
    }
  }

  *completions(writer: RunFileWriter, address: ExecutionAddress, texts: boolean): Generator<string> {
    const { completions: d } = quoted(this.#names)
    const columns = [this.#text(`t.${d.exit}`), this.#text(`t.${d.metadata}`), this.#spelled(`t.${d.completedAtMs}`), this.#spelled(`t.${d.consumedAtMs}`)]
    const digest = texts ? undefined : this.#digest
    for (const [deferred, exit, metadata, ...stamps] of this.#rows(d.table, d.flowName, d.executionId, d.deferredName, columns, address)) {
      yield completionLine(writer, address, String(deferred), { exit: stored(exit), metadata: stored(metadata) }, stamps.map(spelling), digest)
    }
  }

  /** A value as JSON, spelled by SQLite: a 64-bit integer keeps all its digits. */
  #spelled(column: string): string {
    return this.#text(`json_quote(${json(column)})`)
  }

  /** An execution's rows of one table, in order of name: the name, then the columns. */
  *#rows(table: string, flow: string, execution: string, key: string, columns: readonly string[], address: ExecutionAddress): Generator<Value[]> {
    const name = exact(`t.${key}`)
    const named = [this.#text(`t.${key}`), ...columns].map((column, place) => `${column} AS c${place}`)
    const page = (comparison: string): string =>
      `SELECT ${named.join(", ")} FROM ${table} AS t WHERE ${exact(`t.${flow}`)} = ? AND ${exact(`t.${execution}`)} = ?
       AND ${name} ${comparison} CAST(? AS TEXT) AND ${name} < x'' ORDER BY ${name} LIMIT ${rowsAPage}`
    let after: Value = ""
    // An empty name is a name too: begin at it.
    let sql = page(">=")
    for (;;) {
      const rows = this.#connection.all(sql, address.flowName, address.executionId, after)
      for (const [key, ...values] of rows) {
        const text = readable(key)
        if (text === undefined) this.leftOut += 1
        else yield [text, ...values]
      }
      if (rows.length < rowsAPage) return
      sql = page(">")
      after = rows.at(-1)?.[0] ?? ""
    }
  }
}

/** A text from its stored bytes; nothing when they are no UTF-8. */
function readable(value: Value | undefined): string | undefined {
  if (typeof value === "string") return value
  return value instanceof Uint8Array && isUtf8(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString() : undefined
}

/** A spelling that SQLite gave. A text that is no UTF-8 is only not the recorded one. */
function spelling(value: Value | undefined): string {
  return readable(value) ?? JSON.stringify("text that is no UTF-8")
}

function stored(value: Value | undefined): StoredText {
  return typeof value === "string" || value instanceof Uint8Array ? value : null
}

function lengthOf(value: Value | undefined): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 0
}
