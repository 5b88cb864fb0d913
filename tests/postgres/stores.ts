/** Stores in Postgres for the tests: tables of several kinds, and copies of stores that were written in SQLite. */
import type Database from "better-sqlite3"
import pg from "pg"
import { tableKeys, type TableName } from "../../js/demo/tables.js"
import { freshDatabase } from "./server.js"

/** The types of the columns that a store may choose. */
export interface ColumnTypes {
  readonly payload?: string
  readonly state?: string
  readonly exit?: string
  readonly metadata?: string
  readonly time?: string
  readonly id?: string
}

/** The tables of a store, without constraints but their keys. */
export function tablesSql({ payload = "text", state = "text", exit = "text", metadata = "text", time = "bigint", id = "text" }: ColumnTypes = {}): string {
  return `
    CREATE TABLE flows_runs (run_id ${id} PRIMARY KEY, flow_name text, status text, created_at_ms bigint, updated_at_ms bigint);
    CREATE TABLE flows_journal_events (run_id ${id} NOT NULL, seq bigint NOT NULL, event_type text NOT NULL, payload_json ${payload},
      PRIMARY KEY (run_id, seq));
    CREATE TABLE flows_journal_checkpoints (run_id ${id} NOT NULL, seq bigint NOT NULL, state_json ${state}, compacted_at_ms bigint,
      PRIMARY KEY (run_id, seq));
    CREATE TABLE flows_clock_deadlines (flow_name text NOT NULL, execution_id ${id} NOT NULL, clock_name text NOT NULL, deferred_name text,
      due_at_ms ${time}, completed_at_ms ${time}, PRIMARY KEY (flow_name, execution_id, clock_name));
    CREATE TABLE flows_deferred_completions (flow_name text NOT NULL, execution_id ${id} NOT NULL, deferred_name text NOT NULL,
      exit_json ${exit}, metadata_json ${metadata}, completed_at_ms ${time}, consumed_at_ms ${time},
      PRIMARY KEY (flow_name, execution_id, deferred_name));`
}

const tableNames = Object.keys(tableKeys) as TableName[]

/** Rows that one statement inserts. */
const rowsAnInsert = 2000

/** A client of pg, or PGlite. */
export interface Queryable {
  query(text: any, values?: any): Promise<{ rows: any[] }>
}

/** Copies every row of a store in SQLite, bytes as they are. */
export async function copyInto(client: Queryable, db: Database.Database, types: ColumnTypes = {}): Promise<void> {
  for (const table of tableNames) {
    const columns = db.prepare(`SELECT * FROM ${table}`).columns().map(({ name }) => name)
    const kindOf = (column: string): string =>
      ({ payload_json: types.payload, state_json: types.state, exit_json: types.exit, metadata_json: types.metadata })[column] ??
      (column.endsWith("_ms") || column === "seq" ? "bigint" : "text")
    // Bytes go as hex, so that those which are no UTF-8 get through to a column of bytes.
    const shown = columns.map((column) => (kindOf(column) === "bytea" ? `CASE WHEN ${column} IS NULL THEN NULL ELSE hex(${column}) END AS ${column}` : column))
    const rows = db.prepare(`SELECT ${shown.join(", ")} FROM ${table}`).raw().safeIntegers().all() as unknown[][]
    for (let at = 0; at < rows.length; at += rowsAnInsert) {
      const some = rows.slice(at, at + rowsAnInsert)
      const lists = columns.map((_, place) => some.map((row) => (row[place] === null ? null : String(row[place]))))
      const values = columns.map((column, place) => {
        const kind = kindOf(column)
        return kind === "bytea" ? `decode(v${place}, 'hex')` : `v${place}::${kind}`
      })
      const names = columns.map((_, place) => `v${place}`)
      await client.query(
        `INSERT INTO ${table} (${columns.join(", ")}) SELECT ${values.join(", ")}
         FROM unnest(${columns.map((_, place) => `$${place + 1}::text[]`).join(", ")}) AS w(${names.join(", ")})`,
        lists
      )
    }
  }
}

/** A client on a fresh database with tables. */
export async function freshStore(
  types: ColumnTypes = {},
  database?: string,
  encoding?: string
): Promise<{ client: pg.Client; url: string }> {
  const url = await freshDatabase(database, encoding)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(tablesSql(types))
  return { client, url }
}

/** Every row of both derived tables, in order of their keys by bytes: equal means equal to the last byte. */
export async function derivedRows(client: Queryable): Promise<unknown> {
  const rows = async (table: TableName): Promise<unknown[]> =>
    (await client.query(
      `SELECT to_json(t)::text AS row FROM ${table} AS t ORDER BY ${tableKeys[table].map((key) => `${key}::text COLLATE "C"`).join(", ")}`
    )).rows.map(({ row }) => row)
  return { clocks: await rows("flows_clock_deadlines"), completions: await rows("flows_deferred_completions") }
}

/** Empties every table. */
export async function emptyTables(client: Queryable): Promise<void> {
  await client.query(`TRUNCATE ${tableNames.join(", ")}`)
}
