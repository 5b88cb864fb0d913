/** SqlClients for the tests: over better-sqlite3, over PGlite, and the pool of `@effect/sql-pg`. */
import type { PGlite } from "@electric-sql/pglite"
import type Database from "better-sqlite3"
import { Cache, Effect, Exit, Layer, Redacted, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError, Statement } from "effect/sql"
import type { Connection } from "effect/sql/SqlConnection"
import { PgClient } from "@effect/sql-pg"
import { DurableWriter, layerSql } from "journal-fold/effect"

/** What the effects of the module need. */
export type Needs = SqlClient.SqlClient | DurableWriter

/** A connection from one function that runs a statement and gives rows as objects or as arrays. */
function connectionFrom(query: (sql: string, params: readonly unknown[], arrays: boolean) => Effect.Effect<any[], SqlError.SqlError>): Connection {
  const objects = (sql: string, params: readonly unknown[]): Effect.Effect<any[], SqlError.SqlError> => query(sql, params, false)
  const arrays = (sql: string, params: readonly unknown[]): Effect.Effect<any[], SqlError.SqlError> => query(sql, params, true)
  return {
    execute: objects,
    executeRaw: objects,
    executeUnprepared: objects,
    executeValues: arrays,
    executeValuesUnprepared: arrays,
    executeStream: () => Stream.die("no test reads a stream")
  }
}

/** A client over an open better-sqlite3 database, as the drivers for SQLite make theirs. */
export const sqliteClient = (db: Database.Database): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function* () {
      const attempt = <Value>(work: () => Value): Effect.Effect<Value, SqlError.SqlError> =>
        Effect.try({ try: work, catch: (cause) => new SqlError.SqlError({ reason: SqlError.classifySqliteError(cause) }) })
      const statements = yield* Cache.make({ capacity: 200, lookup: (sql: string) => attempt(() => db.prepare(sql)) })
      const connection = connectionFrom((sql, params, arrays) =>
        Effect.flatMap(Cache.get(statements, sql), (statement) =>
          attempt(() => {
            if (statement.reader) return statement.raw(arrays).all(...params) as any[]
            statement.run(...params)
            return []
          })))
      return yield* SqlClient.make({
        ...SqlClient.makeSqliteAcquirers({
          connection: Effect.succeed(connection),
          semaphore: yield* Semaphore.make(1),
          isTransaction: () => db.inTransaction
        }),
        compiler: Statement.makeCompilerSqlite(),
        driver: "better-sqlite3",
        spanAttributes: []
      })
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** A client over a PGlite database. */
export const pgliteClient = (db: PGlite): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function* () {
      const semaphore = yield* Semaphore.make(1)
      const connection = connectionFrom((sql, params, arrays) =>
        Effect.tryPromise({
          try: async () => (await db.query(sql, [...params], { rowMode: arrays ? "array" : "object" })).rows as any[],
          catch: (cause) => new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause, message: String(cause) }) })
        }))
      const acquirer = Effect.as(Effect.uninterruptibleMask((restore) => restore(semaphore.takeScoped(1))), connection)
      return yield* SqlClient.make({ acquirer, compiler: PgClient.makeCompiler(), driver: "pglite", spanAttributes: [] })
    })
  ).pipe(Layer.provide(Reactivity.layer))

/** The pool of `@effect/sql-pg`. */
export const pgClient = (url: string): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  PgClient.layer({ url: Redacted.make(url) }) as Layer.Layer<SqlClient.SqlClient, SqlError.SqlError>

/** A client, and the writer over it. */
export const withWriter = <E>(client: Layer.Layer<SqlClient.SqlClient, E>): Layer.Layer<Needs, E> => Layer.provideMerge(layerSql, client)

/** What an effect fails with, as the recorded cases say it; a defect is thrown. */
export async function outcomeOf<A, E>(effect: Effect.Effect<A, E>): Promise<any> {
  const exit = await Effect.runPromiseExit(Effect.result(effect))
  if (Exit.isFailure(exit)) throw new Error(`a defect: ${String(exit.cause)}`)
  const result = exit.value
  if (result._tag === "Success") return result.success
  const { code, unjoined } = result.failure as { code?: string; unjoined?: unknown }
  if (typeof code !== "string") throw result.failure
  return { error: { code, ...(unjoined === undefined ? {} : { unjoined }) } }
}
