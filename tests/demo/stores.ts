/** Stores for the tests of the example engine, in memory, and what tells two of them apart. */

import Database from "better-sqlite3"
import { type StoreOptions, type StoreSummary, writeStore } from "../../js/demo/engine.js"
import { tableKeys, type TableName } from "../../js/demo/tables.js"
import { plainCheckpointStateText } from "./plain-fold.js"

export const tableNames = Object.keys(tableKeys) as TableName[]

export type Row = Record<string, unknown>

/** A store of 120 runs that was compacted by the plain fold, unless the options say otherwise. */
export function storeWith(options: StoreOptions = {}): { db: Database.Database; summary: StoreSummary } {
  const db = new Database(":memory:")
  return { db, summary: writeStore(db, { runs: 120, checkpointStateText: plainCheckpointStateText, ...options }) }
}

export function copyOf(db: Database.Database): Database.Database {
  return new Database(db.serialize())
}

export function rowsOf(db: Database.Database, table: TableName): Row[] {
  return db.prepare<[], Row>(`SELECT * FROM ${table} ORDER BY ${tableKeys[table].join(", ")}`).all()
}

/** All rows of a table by key, each as text with its texts as bytes: what a driver shows of broken UTF-8 hides what broke. */
export function rowTexts(db: Database.Database, table: TableName): Map<string, string> {
  const columns = rowsOf(db, table).slice(0, 1).flatMap((row) => Object.keys(row))
  const asBytes = columns.map((column) => `CASE typeof(${column}) WHEN 'text' THEN hex(${column}) ELSE ${column} END AS ${column}`)
  const keys = tableKeys[table].length
  const rows = db.prepare<[], unknown[]>(`SELECT ${tableKeys[table].join(", ")}, ${asBytes.join(", ")} FROM ${table}`).raw().all()
  return new Map(rows.map((row) => [JSON.stringify(row.slice(0, keys)), JSON.stringify(row.slice(keys))]))
}

export function countOf(db: Database.Database, sql: string): number {
  return db.prepare<[], number>(sql).pluck().get() ?? 0
}
