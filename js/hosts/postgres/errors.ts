/** Postgres' errors, and those of a connection, as typed ones. */
import { isJournalFoldError, JournalFoldError, type ErrorCode, type ErrorDetails } from "../../core/errors.js"

/** What a driver throws: the server's error fields, or a socket's code, or only a message. */
interface DriverError {
  readonly code?: unknown
  readonly message?: unknown
  readonly table?: unknown
  readonly schema?: unknown
  readonly column?: unknown
  readonly constraint?: unknown
}

/** SQLSTATEs, and what they mean to the caller. A class stands for all of its states that are not named. All others: the store cannot be read. */
const byState: Readonly<Record<string, ErrorCode>> = {
  "22021": "text_not_utf8",
  "22P05": "text_not_utf8",
  "25006": "store_read_only",
  "25P02": "nested_transaction",
  "3F000": "store_table_missing",
  "40001": "store_busy",
  "40P01": "store_busy",
  "42703": "store_column_missing",
  "42P01": "store_table_missing",
  "53300": "store_busy",
  "54": "too_large",
  "55P03": "store_busy",
  "57014": "store_busy",
  XX001: "store_corrupt",
  XX002: "store_corrupt"
}

/** Classes of what ends a statement whatever it does: the connection, leave to enter, resources, an operator, the system. */
const notOfTheRow = /^(08|25|28|3D|40|53|54|57|58|XX)/

const states = /^[0-9A-Z]{5}$/
const socketCodes = /^(E[A-Z]{3,}|EAI_AGAIN)$/
const lostMessages =
  /connection terminated|connection ended|client has encountered a connection error|client was closed|not queryable|timeout exceeded when trying to connect|timeout expired|pool after calling end/i

function textOf(error: object): string {
  const { message } = error as DriverError
  return typeof message === "string" ? message : String(error)
}

/** The SQLSTATE of an error: of a driver's, or of a typed one that a driver's caused. */
export function stateOf(error: unknown): string | undefined {
  for (let at = error; typeof at === "object" && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code } = at as DriverError
    if (!isJournalFoldError(at) && typeof code === "string" && states.test(code) && !isSocketCode(code)) return code
  }
  return undefined
}

// EPIPE has the shape of a SQLSTATE.
function isSocketCode(code: string): boolean {
  return socketCodes.test(code) && !/[0-9]/.test(code)
}

/** Whether the connection is gone. */
export function isLost(error: unknown): boolean {
  for (let at = error; typeof at === "object" && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code } = at as DriverError
    if (isJournalFoldError(at)) continue
    if (typeof code === "string" && isSocketCode(code)) return true
    if (typeof code === "string" && states.test(code)) return code.startsWith("08") || code.startsWith("57P")
    if (lostMessages.test(textOf(at))) return true
  }
  return false
}

/**
 * The typed error of what a driver threw. What is neither the server's nor the connection's stays what it is.
 *
 * @param table the table that was being written, or null when it is any: what the server has against it is a row that cannot be written
 */
export function postgresError(error: unknown, table?: string | null): unknown {
  if (isJournalFoldError(error) || typeof error !== "object" || error === null) return error
  const text = textOf(error)
  const state = stateOf(error)
  if (state === undefined) {
    return isLost(error)
      ? new JournalFoldError("store_unreadable", `the connection to Postgres failed: ${text}`, {}, { cause: error })
      : error
  }
  const details = detailsOf(error as DriverError)
  return table === undefined || notOfTheRow.test(state) || state === "55P03"
    ? new JournalFoldError(byState[state] ?? byState[state.slice(0, 2)] ?? "store_unreadable", `Postgres: ${text}`, details, { cause: error })
    : new JournalFoldError(
        state === "42501" ? "store_read_only" : "row_not_writable",
        `Postgres: ${text}`,
        { ...(table !== null && { table }), ...details },
        { cause: error }
      )
}

/** Where the server says that it was. */
function detailsOf({ table, schema, column, constraint }: DriverError): ErrorDetails {
  const text = (value: unknown): value is string => typeof value === "string" && value !== ""
  return {
    ...(text(table) && { table: text(schema) && schema !== "public" ? `${schema}.${table}` : table }),
    ...(text(column) && { column }),
    ...(text(constraint) && { expected: constraint })
  }
}
