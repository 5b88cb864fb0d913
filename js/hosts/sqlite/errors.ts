/** SQLite's errors as typed ones. */
import { isJournalFoldError, JournalFoldError, type ErrorCode } from "../../core/errors.js"

interface DriverError {
  readonly name?: unknown
  readonly code?: unknown
  readonly errcode?: unknown
  readonly message?: unknown
}

/** SQLite's primary result codes, and what they mean to the caller of a verification. All others: the store cannot be read. */
const byResult: Readonly<Record<number, ErrorCode>> = {
  5: "store_busy",
  6: "store_busy",
  8: "store_read_only",
  11: "store_corrupt",
  13: "row_not_writable",
  15: "store_busy",
  18: "too_large",
  19: "row_not_writable",
  20: "row_not_writable",
  24: "store_corrupt",
  26: "store_not_sqlite"
}
const resultByName: Readonly<Record<string, number>> = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 13,
  SQLITE_PROTOCOL: 15,
  SQLITE_TOOBIG: 18,
  SQLITE_CONSTRAINT: 19,
  SQLITE_MISMATCH: 20,
  SQLITE_FORMAT: 24,
  SQLITE_NOTADB: 26
}

/** SQLite's primary result code of a driver's error; `undefined` for an error that is none of SQLite's. */
function resultOf(error: DriverError): number | undefined {
  if (typeof error.errcode === "number") return error.errcode & 0xff
  if (typeof error.code !== "string") return undefined
  const name = /^SQLITE_[A-Z]+/.exec(error.code)?.[0]
  return name === undefined ? undefined : (resultByName[name] ?? 1)
}

/** What a driver says by itself, before SQLite is asked. */
function driverErrorOf(message: string): ErrorCode | undefined {
  // better-sqlite3 lets nobody begin or write while one of its iterators is open on the connection.
  if (/connection is busy executing a query/.test(message)) return "store_busy"
  return /database (connection )?is not open/.test(message) ? "argument_invalid" : undefined
}

/** The typed error of what a driver threw. What is none of SQLite's, such as an error of a user's own function, stays what it is. */
export function sqliteError(error: unknown): unknown {
  if (isJournalFoldError(error) || typeof error !== "object" || error === null) return error
  const { message } = error as DriverError
  const text = typeof message === "string" ? message : String(error)
  const own = driverErrorOf(text)
  if (own !== undefined) return new JournalFoldError(own, text, {}, { cause: error })
  const result = resultOf(error as DriverError)
  if (result === undefined) return error
  // A statement that SQLite cannot compile: something that the schema check has promised is gone meanwhile, or a view is broken.
  const missing = /no such (table|column): (.*)/.exec(text)
  if (missing) {
    const [, kind, name = ""] = missing
    return new JournalFoldError(kind === "table" ? "store_table_missing" : "store_column_missing", text, { found: name }, { cause: error })
  }
  return new JournalFoldError(byResult[result] ?? "store_unreadable", `SQLite: ${text}`, {}, { cause: error })
}

/** What a refused change comes as: a constraint, whatever SQLite says of a trigger or a view, and what a trigger misses. */
const refusals: ReadonlySet<ErrorCode> = new Set(["row_not_writable", "store_unreadable", "store_table_missing", "store_column_missing"])

/**
 * The typed error of a change to `table` that SQLite refused: a constraint, a trigger, a type, a view, with the column where SQLite names
 * it. Errors of the store itself stay what they are.
 */
export function notWritable(error: unknown, table: string): unknown {
  const typed = sqliteError(error)
  if (!isJournalFoldError(typed)) return typed
  if (!refusals.has(typed.code)) return typed
  const column = columnOf(typed.message, table)
  return new JournalFoldError(
    "row_not_writable",
    `${table} refused a planned row: ${typed.message}`,
    { table, ...(column !== undefined && { column }) },
    { cause: typed.cause }
  )
}

/** The column of "NOT NULL constraint failed: table.column" and its like, whatever characters the names have. */
function columnOf(message: string, table: string): string | undefined {
  const [, named = ""] = /(?:NOT NULL|UNIQUE) constraint failed: (.*)$/s.exec(message) ?? /value in [A-Z]+ column (.*)$/s.exec(message) ?? []
  const [first = ""] = named.split(`, ${table}.`)
  return first.startsWith(`${table}.`) ? first.slice(table.length + 1) : undefined
}

/** Whether SQLite found a value larger than it can hold. */
export function isTooBig(error: unknown): boolean {
  return typeof error === "object" && error !== null && /string or blob too big/.test(String((error as DriverError).message))
}
