/** The database: a Postgres by its URL, or an SQLite file by its path. Nothing else in the engine knows which. */
import { PgClient } from "@effect/sql-pg"
import Database from "better-sqlite3"
import { Effect, Layer, Redacted, Semaphore } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError, Statement } from "effect/sql"
import type { Connection } from "effect/sql/SqlConnection"
import { layerSql, type DurableWriter } from "journal-fold/effect"

/** Connects to a database, with the writer that the engine and the fold share. */
export const databaseAt = (at: string): Layer.Layer<SqlClient.SqlClient | DurableWriter, SqlError.SqlError> =>
  Layer.provideMerge(layerSql, /^postgres(ql)?:\/\//.test(at) ? postgres(at) : sqlite(at))

const postgres = (url: string): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> => PgClient.layer({ url: Redacted.make(url) })

// Effect's own package for SQLite in Node does not run on this release of Effect yet; this is all that it takes.
const sqlite = (path: string): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function* () {
      const db = yield* Effect.acquireRelease(Effect.sync(() => open(path)), (db) => Effect.sync(() => db.close()))
      return yield* SqlClient.make({
        ...SqlClient.makeSqliteAcquirers({
          connection: Effect.succeed(connectionOf(db)),
          semaphore: yield* Semaphore.make(1),
          isTransaction: () => db.inTransaction
        }),
        compiler: Statement.makeCompilerSqlite(),
        driver: "better-sqlite3",
        spanAttributes: []
      })
    })
  ).pipe(Layer.provide(Reactivity.layer))

function open(path: string): Database.Database {
  const db = new Database(path)
  db.pragma("journal_mode = WAL")
  return db
}

function connectionOf(db: Database.Database): Connection {
  const query = (raw: boolean) => (sql: string, params: readonly unknown[]) =>
    Effect.try({
      try: () => {
        const statement = db.prepare(sql)
        if (statement.reader) return statement.raw(raw).all(...params) as never[]
        statement.run(...params)
        return []
      },
      catch: (cause) => new SqlError.SqlError({ reason: SqlError.classifySqliteError(cause) })
    })
  const [objects, arrays] = [query(false), query(true)]
  return {
    execute: objects,
    executeUnprepared: objects,
    executeRaw: objects,
    executeValues: arrays,
    executeValuesUnprepared: arrays,
    executeStream: () => {
      throw new Error("this engine streams no rows")
    }
  }
}
