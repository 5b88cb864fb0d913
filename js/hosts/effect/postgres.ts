/** The Postgres host over an Effect connection. */
import * as Effect from "effect/Effect"
import type { Connection as SqlConnection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { JournalFoldError } from "../../core/errors.js"
import { applyingWithin, isInTheWay } from "../postgres/apply.js"
import { folding } from "../postgres/checkpoint.js"
import { arrays, commitError, type Connection } from "../postgres/connection.js"
import { postgresError } from "../postgres/errors.js"
import { held } from "../postgres/lock.js"
import { namesOf } from "../postgres/names.js"
import { checkOneSnapshot, settings } from "../postgres/snapshot.js"
import { opening, verifying } from "../postgres/verify.js"
import { asking, type Ask } from "./driving.js"
import { isConflict, sqlFailure } from "./errors.js"
import type { Host } from "./host.js"

/** The host for Postgres. */
export const postgresHost: Host = {
  begin: {
    read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    write: "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"
  },
  errorOf: (error, committing) => (committing ? commitError(error) : postgresError(error)),
  isInTheWay: (error) => isInTheWay(error) || isConflict(error),
  verify: (connection, options, own) =>
    asking(async (ask) => {
      const asked = connectionOf(connection, ask)
      if (own) await asked.rows(settings)
      else await checkOneSnapshot(asked)
      return verifying(await opening(asked, namesOf(options.names), options), options)
    }),
  apply: (connection, { allowDeletePending, allowUnconsume, ...rest }, check) =>
    asking(async (ask) => {
      const asked = connectionOf(connection, ask)
      await checkOneSnapshot(asked)
      const allowed = { allowDeletePending: allowDeletePending === true, allowUnconsume: allowUnconsume === true }
      const applied = await applyingWithin(asked, namesOf(rest.names), rest, allowed, { check })
      if (applied === undefined) throw held(0)
      return applied
    }),
  fold: (connection, runId, upTo, { names }, use) =>
    asking(async (ask) => folding(connectionOf(connection, ask), runId, upTo, namesOf(names), use))
}

/** Statements are not prepared: each page of a plan and each fetch is its own, and none comes again often. */
function connectionOf(connection: SqlConnection, ask: Ask): Connection {
  const rows = (sql: string, values: readonly string[], errorOf: (error: unknown) => unknown) =>
    ask(connection.executeValuesUnprepared(sql, values).pipe(Effect.map(arrays), Effect.mapError(typed(errorOf))))
  return {
    rows: (sql, ...values) => rows(sql, values, (error) => postgresError(error)),
    // No two drivers say in the same way how many rows a statement changed.
    run: async (table, sql, ...values) => {
      const counted = `WITH changed AS (${sql} RETURNING 1) SELECT count(*)::text AS c0 FROM changed`
      const [row] = await rows(counted, values, (error) => postgresError(error, table))
      return Number(row?.[0])
    }
  }
}

const typed =
  (errorOf: (error: unknown) => unknown) =>
  (error: SqlError): JournalFoldError =>
    sqlFailure(error, errorOf)
