/**
 * The SQLite host over an Effect connection.
 *
 * That host is synchronous, and so are the SQLite drivers that live in this process (better-sqlite3, `node:sqlite`, Bun's): a query of
 * theirs is an effect that ends at once. A client that answers later, from a worker or over a network, is refused by name.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { SafeIntegers } from "effect/sql/SqlClient"
import type { Connection as SqlConnection } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { JournalFoldError } from "../../core/errors.js"
import { applyingWithin } from "../sqlite/apply.js"
import { folding } from "../sqlite/checkpoint.js"
import type { Connection, Row, Value } from "../sqlite/connection.js"
import { sqliteError } from "../sqlite/errors.js"
import type { NameMapping } from "../sqlite/names.js"
import { verifying, type SqliteVerifyOptions } from "../sqlite/verify.js"
import { inSlices } from "./driving.js"
import { isConflict, sqlFailure } from "./errors.js"
import type { FoldApplyOptions, Host } from "./host.js"

/** The host for SQLite. */
export const sqliteHost: Host = {
  begin: { read: "BEGIN", write: "BEGIN IMMEDIATE" },
  errorOf: sqliteError,
  // Only a writer who has not taken the write lock at the beginning is told of another's commit.
  isInTheWay: (error) => isConflict(error) || isBusySnapshot(error),
  verify: (connection, options) => inSlices(() => verifying(connectionOf(connection), sqliteOptions(options))),
  apply: (connection, options, check) => inSlices(() => applyingWithin(connectionOf(connection), sqliteOptions(options), { check })),
  fold: (connection, runId, upTo, { names }, use) =>
    inSlices(() => folding(connectionOf(connection), runId, upTo, names as NameMapping | undefined, use))
}

/** SQLite's extended code for a snapshot that is no longer the newest: by name from better-sqlite3, by number from `node:sqlite`. */
function isBusySnapshot(error: unknown): boolean {
  const { cause } = error as { readonly cause?: unknown }
  if (!isSqlError(cause)) return false
  const { code, errcode } = cause.reason.cause as { readonly code?: unknown; readonly errcode?: unknown }
  return code === "SQLITE_BUSY_SNAPSHOT" || errcode === 517
}

/** SQLite has no schemas to name: one that is named is refused with the other names. */
function sqliteOptions(options: FoldApplyOptions): SqliteVerifyOptions {
  return options as SqliteVerifyOptions
}

function connectionOf(connection: SqlConnection): Connection {
  const all = (sql: string, ...values: Value[]): Row[] => atOnce(connection.executeValues(sql, values)) as Row[]
  return {
    inTransaction: true,
    all,
    each: (sql, values, take) => all(sql, ...values).forEach(take),
    run: (sql, ...values) => {
      all(sql, ...values)
      return Number(all("SELECT changes() AS c0")[0]?.[0])
    },
    exec: (sql) => void atOnce(connection.executeUnprepared(sql, [], undefined))
  }
}

/** The result of a query that ends at once. A reader of 64-bit integers as `bigint` is turned off: the host asks for them as text. */
function atOnce<Result>(query: Effect.Effect<Result, SqlError>): Result {
  const exit = Effect.runSyncExit(Effect.provideService(query, SafeIntegers, false))
  if (Exit.isSuccess(exit)) return exit.value
  const error = Cause.squash(exit.cause)
  if (isSqlError(error)) throw sqlFailure(error, sqliteError)
  if (!Cause.isAsyncFiberError(error)) throw error
  throw new JournalFoldError(
    "argument_invalid",
    "expected a SQLite client whose queries end at once, as those of better-sqlite3, node:sqlite and Bun do, found one that answers later",
    { expected: "a synchronous SQLite client", found: "an asynchronous one" }
  )
}
