/**
 * One run of a store as lines of JSON (`js/journal-file`): its floor, every entry as stored, and the stored rows that a verification of
 * that run looks at, with those of its own execution. The same lines as from a store in SQLite that holds the same texts; a column of
 * type `jsonb` holds other texts than were stored, and gives those.
 */
import { checkOptions } from "../../core/options.js"
import { contentDigest, type DigestFunction } from "../../digest.js"
import { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress } from "../../folds/deferred-clock/types.js"
import { RunFileWriter } from "../../journal-file/write.js"
import { clockLine, completionLine, unknownRun, WantedRows, type Oddities, type StoredText } from "../export.js"
import { withSession, type Connection, type PostgresDatabase, type Row } from "./connection.js"
import { Cursor } from "./cursor.js"
import { bytesOf, FetchSize, FloorReader, segmentsOf } from "./journal.js"
import { namesOf, type PostgresNameMapping } from "./names.js"
import type { Column, Schema } from "./schema.js"
import { reading } from "./snapshot.js"
import { boundIds, checkpointStatements, exportStatements, isStorable, journalStatements, rowStatements, type ExportStatements } from "./statements.js"
import { lookAt } from "./verify.js"

export type { Oddities } from "../export.js"

/** How a run is exported. */
export interface ExportOptions {
  /** What the store calls its schemas, tables, columns and event types. */
  readonly names?: PostgresNameMapping
  /** Write the texts of completions, not only their digests. */
  readonly showValues?: boolean
  /** Computes the digests of stored texts in place of Postgres. */
  readonly digest?: DigestFunction
  /** Stops the work: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal
}

/** Rows that a fetch gives at the most. */
const mostRows = 512

/** Those of some run ids of which the store has neither a row nor an entry nor a checkpoint. */
export function unknownRuns(
  db: PostgresDatabase,
  ids: readonly string[],
  options?: Pick<ExportOptions, "names" | "signal">
): Promise<string[]> {
  const { names: mapping, signal } = checkOptions(options, ["names", "signal"])
  const names = namesOf(mapping)
  return withSession(db, signal, (session) =>
    reading(session, false, async () => {
      const schema = await lookAt(session.connection, names, ["runs", "journal", "checkpoints", "clocks", "completions"])
      return unknownOf(session.connection, exportStatements(schema), ids)
    })
  )
}

async function unknownOf(connection: Connection, statements: ExportStatements, ids: readonly string[]): Promise<string[]> {
  const storable = ids.filter(isStorable)
  const rows = await connection.rows(statements.unknown, JSON.stringify(storable))
  const missing = new Set(rows.map(([place]) => storable[Number(place)]))
  return ids.filter((id) => !isStorable(id) || missing.has(id))
}

/**
 * Hands the lines of one run's export, each with its line feed, to `use`, which has them as long as it runs. They are read from one
 * snapshot: the caller's transaction, if there is one, or one of its own.
 *
 * @throws `run_unknown`; `store_table_missing`, …; `nested_transaction` in a transaction that is READ COMMITTED; `aborted`
 */
export function exportRun<Result>(
  db: PostgresDatabase,
  runId: string,
  options: ExportOptions | undefined,
  use: (lines: AsyncGenerator<string, Oddities>) => Promise<Result>
): Promise<Result> {
  const { names: mapping, showValues, digest, signal } = checkOptions(options, ["names", "showValues", "digest", "signal"])
  const names = namesOf(mapping)
  return withSession(db, signal, (session) =>
    reading(session, true, async () => {
      const schema = await lookAt(session.connection, names, ["runs", "journal", "checkpoints", "clocks", "completions"])
      if ((await unknownOf(session.connection, exportStatements(schema), [runId])).length > 0) throw unknownRun(runId)
      return use(new ExportReader(session.connection, schema, runId, showValues === true, digest).lines())
    })
  )
}

/** Reads what an export is made of. */
class ExportReader {
  readonly #connection: Connection
  readonly #schema: Schema
  readonly #statements: ExportStatements
  readonly #runId: string
  readonly #showValues: boolean
  readonly #digest: DigestFunction | undefined
  #respelled = 0

  constructor(connection: Connection, schema: Schema, runId: string, showValues: boolean, digest: DigestFunction | undefined) {
    this.#connection = connection
    this.#schema = schema
    this.#statements = exportStatements(schema)
    this.#runId = runId
    this.#showValues = showValues
    this.#digest = digest
  }

  async *lines(): AsyncGenerator<string, Oddities> {
    const writer = new RunFileWriter()
    const scope = { kind: "runs", ids: [this.#runId] } as const
    const floor = await new FloorReader(this.#connection, checkpointStatements(this.#schema, scope)).floorOf(this.#runId)
    yield writer.header({
      runId: this.#runId,
      ...(floor && { floor: floor.seq }),
      eventTypes: this.#schema.eventTypes,
      values: this.#showValues ? "texts" : "digests"
    })
    if (floor !== undefined) {
      const [row] = await this.#connection.rows(this.#statements.checkpoint, this.#runId, floor.seq)
      yield writer.checkpoint(floor.seq, row?.[0] ?? "null", this.#stored(row?.[1], this.#schema.checkpoints.state))
    }
    for await (const [seq, type, payload] of this.#rows(this.#statements.entries, this.#runId)) {
      yield writer.entry(String(seq), type ?? null, this.#stored(payload, this.#schema.journal.payload))
    }
    const { runs, addresses } = await this.#wanted(floor && { seq: floor.seq, compactedAtMs: 0, stateText: floor.stateText })
    const [live] = await this.#connection.rows(rowStatements(this.#schema).batch, boundIds(runs), "[]")
    const alive = new Set(JSON.parse(live?.[0] ?? "[]") as string[])
    for (const run of runs) if (alive.has(run)) yield writer.run(run)
    const storable = addresses.filter(({ flowName, executionId }) => isStorable(flowName) && isStorable(executionId))
    for (const address of storable) {
      for await (const [name, ...columns] of this.#rows(this.#statements.clocks, address.flowName, address.executionId)) {
        yield clockLine(writer, address, String(name), columns.map(String))
      }
    }
    for (const address of storable) yield* this.#completions(writer, address)
    yield writer.end()
    return { base64: writer.base64, leftOut: 0, respelled: this.#respelled }
  }

  /** The runs and executions that the run's fold asks for, and its own execution in every flow that has rows of it. */
  async #wanted(floor: { seq: string; compactedAtMs: number; stateText: string } | undefined): Promise<WantedRows> {
    const wanted = new WantedRows(this.#runId)
    const rebuild = new Rebuild({ wholeStore: false })
    try {
      const journal = journalStatements(this.#schema, { kind: "runs", ids: [this.#runId] })
      rebuild.beginRun(this.#runId, floor && [floor])
      for await (const segment of segmentsOf(this.#connection, journal, this.#schema.eventTypes, this.#runId, Number.POSITIVE_INFINITY)) {
        rebuild.pushLists(segment.payloads, segment.lengths, segment.seqs, segment.types, 0)
      }
      wanted.ask(rebuild)
    } finally {
      rebuild.dispose()
    }
    for (const [flow] of await this.#connection.rows(this.#statements.flows, this.#runId)) {
      wanted.add({ flowName: String(flow), executionId: this.#runId })
    }
    return wanted
  }

  async *#completions(writer: RunFileWriter, address: ExecutionAddress): AsyncGenerator<string> {
    const { exit, metadata } = this.#schema.completions
    // Where Postgres computes the digests, no text leaves it.
    const byPostgres = !this.#showValues && this.#digest === undefined
    const digest = this.#showValues ? undefined : (this.#digest ?? contentDigest)
    const sql = byPostgres ? this.#statements.digests : this.#statements.completions
    for await (const [name, exitText = null, metadataText = null, ...stamps] of this.#rows(sql, address.flowName, address.executionId)) {
      const texts = byPostgres
        ? { exit: this.#counted(exitText, exit), metadata: this.#counted(metadataText, metadata) }
        : { exit: this.#stored(exitText, exit), metadata: this.#stored(metadataText, metadata) }
      yield completionLine(writer, address, String(name), texts, stamps.map(String), byPostgres ? String : digest)
    }
  }

  /** A text from its column, as bytes where those are kept. */
  #stored(text: string | null | undefined, column: Column): StoredText {
    if (text === null || text === undefined) return null
    return column.kind === "bytea" ? bytesOf(text, true) : this.#counted(text, column)
  }

  #counted(text: string | null, { kind }: Column): string | null {
    if (text !== null && kind === "jsonb") this.#respelled += 1
    return text
  }

  async *#rows(sql: string, ...values: readonly string[]): AsyncGenerator<Row> {
    const cursor = await Cursor.open(this.#connection, sql, ...values)
    const size = new FetchSize(16, mostRows)
    for (;;) {
      const rows = await cursor.next(size.rows)
      if (rows.length === 0) break
      size.saw(rows.reduce((sum, row) => sum + row.reduce((length, text) => length + (text?.length ?? 0), 0), 0))
      yield* rows
    }
    await cursor.close()
  }
}
