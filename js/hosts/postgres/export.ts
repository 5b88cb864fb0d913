/**
 * One run of a store as lines of JSON (`js/journal-file`): its floor, every entry as stored, and the stored rows that a verification of
 * that run looks at, with those of its own execution. The same lines as from the same store in SQLite; the text of a `json` or `jsonb`
 * column is what Postgres gives for it.
 */
import { JournalFoldError } from "../../core/errors.js"
import { contentDigest } from "../../digest.js"
import { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress, Wanted } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { RunFileWriter } from "../../journal-file/write.js"
import { addressed, askedFor, exportedWith, type Exported, type Oddities, type RunExportOptions } from "../exports.js"
import { withSession, type Connection, type PostgresDatabase, type Row } from "./connection.js"
import { Cursor } from "./cursor.js"
import { bytesOf, FetchSize, FloorReader, segmentsOf, namingSeqs, type StoredFloor } from "./journal.js"
import { namesOf, type PostgresNameMapping } from "./names.js"
import { RowReader } from "./rows.js"
import type { Column, Schema } from "./schema.js"
import { reading } from "./snapshot.js"
import { boundIds, checkpointStatements, exportStatements, journalStatements, type ExportStatements } from "./statements.js"
import { lookAt } from "./verify.js"

/** How a run is exported. */
export interface ExportOptions extends RunExportOptions {
  /** What the store calls its schemas, tables, columns and event types. */
  readonly names?: PostgresNameMapping
  /** Stops the work: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal
}

const rowsAFetch = 256
const mostEntries = 512

/** Those of some run ids of which the store has neither a row nor an entry nor a checkpoint. */
export async function unknownRuns(db: PostgresDatabase, ids: readonly string[], mapping?: PostgresNameMapping): Promise<string[]> {
  return withSession(db, undefined, (session) =>
    reading(session, false, async () =>
      unknownOf(session.connection, exportStatements(await lookAt(session.connection, namesOf(mapping), ["runs", "journal", "checkpoints", "clocks", "completions"])), ids)
    )
  )
}

async function unknownOf(connection: Connection, statements: ExportStatements, ids: readonly string[]): Promise<string[]> {
  // What no text of Postgres can be is not there.
  const places = new Map(ids.map((id, place) => [id, place]))
  const storable = JSON.parse(boundIds(ids)) as string[]
  for (const id of storable) places.delete(id)
  const rows = await connection.rows(statements.unknown, JSON.stringify(storable))
  const missing = new Set([...places.keys(), ...rows.map(([place]) => storable[Number(place)] as string)])
  return ids.filter((id) => missing.has(id))
}

/**
 * Hands on the lines of one run's export, each with its line feed, read from one snapshot.
 *
 * @throws `run_unknown`; `store_table_missing`, …; `aborted`
 */
export async function exportRun<Result>(
  db: PostgresDatabase,
  runId: string,
  options: ExportOptions,
  take: (lines: AsyncGenerator<string, Oddities>) => Promise<Result>
): Promise<Result> {
  const names = namesOf(options.names)
  return withSession(db, options.signal, (session) =>
    reading(session, true, async () => {
      const schema = await lookAt(session.connection, names, ["runs", "journal", "checkpoints", "clocks", "completions"])
      return take(new RunExport(session.connection, schema, runId, options).lines())
    })
  )
}

class RunExport {
  readonly #connection: Connection
  readonly #schema: Schema
  readonly #statements: ExportStatements
  readonly #runId: string
  readonly #options: ExportOptions
  readonly #writer = new RunFileWriter()

  constructor(connection: Connection, schema: Schema, runId: string, options: ExportOptions) {
    this.#connection = connection
    this.#schema = schema
    this.#statements = exportStatements(schema)
    this.#runId = runId
    this.#options = options
  }

  async *lines(): AsyncGenerator<string, Oddities> {
    const runId = this.#runId
    if ((await unknownOf(this.#connection, this.#statements, [runId])).length > 0) {
      throw new JournalFoldError("run_unknown", `the store has no row, no entry and no checkpoint of run ${JSON.stringify(runId)}`, { runId })
    }
    const scope = { kind: "runs", ids: [runId] } as const
    const floor = await new FloorReader(this.#connection, checkpointStatements(this.#schema, scope)).floorOf(runId)
    const values = this.#options.showValues === true ? "texts" : "digests"
    yield this.#writer.header({ runId, ...(floor && { floor: floor.seq }), eventTypes: this.#schema.eventTypes, values })
    if (floor !== undefined) yield await this.#checkpoint(floor)
    yield* this.#entries()
    const { runs, addresses } = await this.#exported(floor)
    const live = await new RowReader(this.#connection, this.#schema, {}).liveAmong(runs)
    for (const run of live.sort(compareUtf8)) yield this.#writer.run(run)
    for (const address of addresses) yield* this.#clocks(address)
    for (const address of addresses) yield* this.#completions(address, values === "texts")
    yield this.#writer.end()
    return { base64: this.#writer.base64, leftOut: 0 }
  }

  async #checkpoint({ seq }: StoredFloor): Promise<string> {
    const [row] = await this.#connection.rows(this.#statements.checkpoint, this.#runId, seq)
    return this.#writer.checkpoint(seq, row?.[0] ?? "null", stored(row?.[1], this.#schema.checkpoints.state))
  }

  async *#entries(): AsyncGenerator<string> {
    const size = new FetchSize(16, mostEntries)
    for await (const rows of this.#fetched(size, this.#statements.entries, this.#runId)) {
      size.saw(rows.reduce((sum, [, , payload]) => sum + (payload?.length ?? 0), 0))
      for (const [seq, type, payload] of rows) yield this.#writer.entry(String(seq), type ?? null, stored(payload, this.#schema.journal.payload))
    }
  }

  async #exported(floor: StoredFloor | undefined): Promise<Exported> {
    const scope = { kind: "runs", ids: [this.#runId] } as const
    const rebuild = new Rebuild({ wholeStore: false })
    let wanted: Wanted[]
    try {
      rebuild.beginRun(this.#runId, floor && [{ seq: floor.seq, compactedAtMs: 0, stateText: floor.stateText }])
      const statements = journalStatements(this.#schema, scope)
      for await (const { payloads, lengths, seqs, types } of segmentsOf(this.#connection, statements, this.#schema.eventTypes, this.#runId, Number.POSITIVE_INFINITY)) {
        namingSeqs(this.#runId, () => rebuild.pushLists(payloads, lengths, seqs, types, 0))
      }
      wanted = askedFor(rebuild)
    } finally {
      rebuild.dispose()
    }
    const flows = await this.#connection.rows(this.#statements.flows, this.#runId)
    return exportedWith(this.#runId, wanted, flows.map(([flow]) => String(flow)))
  }

  async *#clocks(address: ExecutionAddress): AsyncGenerator<string> {
    for await (const rows of this.#ofExecution(this.#statements.clocks, address)) {
      for (const [clock, deferred, due, completed] of rows) {
        yield this.#writer.row("clock", [
          ...addressed(address),
          `"clockName":${JSON.stringify(clock)}`,
          `"deferredName":${deferred}`,
          `"dueAtMs":${due}`,
          `"completedAtMs":${completed}`
        ])
      }
    }
  }

  async *#completions(address: ExecutionAddress, texts: boolean): AsyncGenerator<string> {
    const { digest } = this.#options
    // The server's own digests, unless a function is given.
    const inServer = !texts && (digest === undefined || digest === contentDigest)
    const { exit: exitColumn, metadata: metadataColumn } = this.#schema.completions
    const value = (member: string, given: string | null | undefined, column: Column): string => {
      if (inServer) return `"${member}Digest":${JSON.stringify(given ?? null)}`
      const text = stored(given, column)
      if (texts) return this.#writer.text(member, text)
      return `"${member}Digest":${text === null ? "null" : `"${(digest ?? contentDigest)(text)}"`}`
    }
    for await (const rows of this.#ofExecution(inServer ? this.#statements.digests : this.#statements.completions, address)) {
      for (const [deferred, exit, metadata, completed, consumed] of rows) {
        yield this.#writer.row("completion", [
          ...addressed(address),
          `"deferredName":${JSON.stringify(deferred)}`,
          value("exit", exit, exitColumn),
          value("metadata", metadata, metadataColumn),
          `"completedAtMs":${completed}`,
          `"consumedAtMs":${consumed}`
        ])
      }
    }
  }

  #ofExecution(sql: string, { flowName, executionId }: ExecutionAddress): AsyncGenerator<Row[]> {
    return this.#fetched({ rows: rowsAFetch }, sql, flowName, executionId)
  }

  async *#fetched(size: { readonly rows: number }, sql: string, ...values: readonly string[]): AsyncGenerator<Row[]> {
    const cursor = await Cursor.open(this.#connection, sql, ...values)
    for (;;) {
      const rows = await cursor.next(size.rows)
      if (rows.length === 0) break
      yield rows
    }
    await cursor.close()
  }
}

/** A stored value: bytes where the column holds bytes, which come in hex. */
function stored(value: string | null | undefined, { kind }: Column): string | Uint8Array | null {
  if (value === null || value === undefined) return null
  return kind === "bytea" ? bytesOf(value, true) : value
}
