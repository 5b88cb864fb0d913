/**
 * One way to talk to both drivers. Every query runs to its end at once, so that no statement is ever left open.
 *
 * Rows come as arrays: a view may name two columns alike, and arrays are what both drivers give fastest.
 */
import { invalid } from "../../core/errors.js"
import { sqliteError } from "./errors.js"

/** What a column holds. */
export type Value = string | number | bigint | Uint8Array | null
/** A row, column by column. */
export type Row = Value[]

interface BetterStatement {
  raw(toggle?: boolean): BetterStatement
  safeIntegers(toggle?: boolean): BetterStatement
  all(...values: Value[]): Row[]
  iterate(...values: Value[]): IterableIterator<Row>
  run(...values: Value[]): { changes: number }
}

/** A `better-sqlite3` database, as far as this host uses it. */
export interface BetterSqlite3Database {
  readonly inTransaction: boolean
  prepare(sql: string): unknown
  exec(sql: string): unknown
}

interface NodeStatement {
  setReadBigInts(enabled: boolean): void
  all(...values: Value[]): Record<string, Value>[]
  iterate?(...values: Value[]): IterableIterator<Record<string, Value>>
  run(...values: Value[]): { changes: number | bigint }
}

/** A `node:sqlite` `DatabaseSync`, as far as this host uses it. */
export interface NodeSqliteDatabase {
  readonly isTransaction?: boolean
  prepare(sql: string): unknown
  exec(sql: string): unknown
  applyChangeset?: unknown
}

/** A database of either driver. */
export type SqliteDatabase = BetterSqlite3Database | NodeSqliteDatabase

/** A connection, whichever driver it comes from. */
export interface Connection {
  readonly inTransaction: boolean
  all(sql: string, ...values: Value[]): Row[]
  /** Rows one by one, for those that may be large. No other query may run meanwhile. */
  each(sql: string, values: Value[], take: (row: Row) => void): void
  /** Runs a change and says how many rows it changed, without those of triggers. */
  run(sql: string, ...values: Value[]): number
  exec(sql: string): void
}

/** The connection of a database of either driver. */
export function connect(db: SqliteDatabase): Connection {
  if (typeof db !== "object" || db === null || typeof db.prepare !== "function" || typeof db.exec !== "function") {
    throw invalid("argument_invalid", "a database of better-sqlite3 or node:sqlite", db)
  }
  return "inTransaction" in db ? betterSqlite3(db) : nodeSqlite(db)
}

/** Remembers the statements of one piece of work; the driver finalizes them once they are forgotten. */
function remember<Statement>(prepare: (sql: string) => Statement): (sql: string) => Statement {
  const statements = new Map<string, Statement>()
  return (sql) => {
    let statement = statements.get(sql)
    if (statement === undefined) statements.set(sql, (statement = prepare(sql)))
    return statement
  }
}

function guarded<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw sqliteError(error)
  }
}

function betterSqlite3(db: BetterSqlite3Database): Connection {
  const reading = remember((sql) => (db.prepare(sql) as BetterStatement).raw().safeIntegers(false))
  const writing = remember((sql) => db.prepare(sql) as BetterStatement)
  return {
    get inTransaction() {
      return db.inTransaction
    },
    all: (sql, ...values) => guarded(() => reading(sql).all(...values)),
    each: (sql, values, take) =>
      guarded(() => {
        for (const row of reading(sql).iterate(...values)) take(row)
      }),
    run: (sql, ...values) => guarded(() => Number(writing(sql).run(...values).changes)),
    exec: (sql) => guarded(() => void db.exec(sql))
  }
}

function nodeSqlite(db: NodeSqliteDatabase): Connection {
  const statement = remember((sql) => db.prepare(sql) as NodeStatement)
  return {
    get inTransaction() {
      return guarded(() => {
        if (typeof db.isTransaction === "boolean") return db.isTransaction
        // Older versions do not say; a transaction does not nest.
        try {
          db.exec("BEGIN")
        } catch (error) {
          if (/within a transaction/.test(String((error as Error).message))) return true
          throw error
        }
        db.exec("ROLLBACK")
        return false
      })
    },
    // Every column is named c0, c1, … where it is read, so its place is the place of its key.
    all: (sql, ...values) => guarded(() => statement(sql).all(...values).map((row) => Object.values(row))),
    each: (sql, values, take) =>
      guarded(() => {
        const prepared = statement(sql)
        for (const row of prepared.iterate?.(...values) ?? prepared.all(...values)) take(Object.values(row))
      }),
    run: (sql, ...values) => guarded(() => Number(statement(sql).run(...values).changes)),
    exec: (sql) => guarded(() => void db.exec(sql))
  }
}

/** Runs `work` in a read transaction: the caller's, if there is one, or its own, so that everything is read from one snapshot. */
export function reading<Result>(connection: Connection, work: () => Result): Result {
  if (connection.inTransaction) return work()
  connection.exec("BEGIN")
  try {
    return work()
  } finally {
    // Nothing was written, so there is nothing to keep; after some errors SQLite has rolled back already.
    if (connection.inTransaction) connection.exec("ROLLBACK")
  }
}
