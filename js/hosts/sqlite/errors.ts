/** SQLite's errors as typed ones. */
import { isJournalFoldError, JournalFoldError, type ErrorCode } from "../../core/errors.js"

interface DriverError {
  readonly code?: unknown
  readonly errcode?: unknown
  readonly message?: unknown
}

/** SQLite's primary result codes, and what they mean to the caller of a verification. */
const byResult: Readonly<Record<number, ErrorCode>> = {
  5: "store_busy",
  6: "store_busy",
  8: "store_read_only",
  10: "store_unreadable",
  11: "store_corrupt",
  14: "store_unreadable",
  19: "row_not_writable",
  24: "store_corrupt",
  26: "store_not_sqlite"
}
const resultByName: Readonly<Record<string, number>> = {
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_READONLY: 8,
  SQLITE_IOERR: 10,
  SQLITE_CORRUPT: 11,
  SQLITE_FULL: 10,
  SQLITE_CANTOPEN: 14,
  SQLITE_CONSTRAINT: 19,
  SQLITE_FORMAT: 24,
  SQLITE_NOTADB: 26
}

/** SQLite's primary result code of a driver's error. */
function resultOf(error: DriverError): number | undefined {
  if (typeof error.errcode === "number") return error.errcode & 0xff
  if (typeof error.code !== "string") return undefined
  const name = /^SQLITE_[A-Z]+/.exec(error.code)?.[0]
  return name === undefined ? undefined : resultByName[name]
}

/** The typed error of what a driver threw. What is none of SQLite's stays what it is. */
export function sqliteError(error: unknown): unknown {
  if (isJournalFoldError(error) || typeof error !== "object" || error === null) return error
  const { message } = error as DriverError
  const text = typeof message === "string" ? message : String(error)
  const result = resultOf(error as DriverError)
  // A statement that SQLite cannot compile: something that the schema check has promised is gone meanwhile, or a view is broken.
  const missing = /no such (table|column): (.*)/.exec(text)
  if (missing) {
    const [, kind, name = ""] = missing
    return new JournalFoldError(kind === "table" ? "store_table_missing" : "store_column_missing", text, { found: name }, { cause: error })
  }
  const code = result === undefined ? undefined : byResult[result]
  if (code === undefined) return error
  const column = code === "row_not_writable" ? /failed: (\S+)\.(\S+)/.exec(text) : null
  return new JournalFoldError(
    code,
    `SQLite: ${text}`,
    column === null ? {} : { table: column[1] as string, column: column[2] as string },
    { cause: error }
  )
}

/** Whether SQLite found a value larger than it can hold. */
export function isTooBig(error: unknown): boolean {
  return typeof error === "object" && error !== null && /string or blob too big/.test(String((error as DriverError).message))
}
