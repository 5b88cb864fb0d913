/** PGlite: Postgres in one process and on one connection, which a transaction has for itself. */
import { describe, JournalFoldError } from "../../core/errors.js"
import { throwIfAborted } from "../slices.js"
import { arrays, asked, type PGliteDatabase, type QueryResult, type Session } from "./connection.js"
import { postgresError } from "./errors.js"

interface PGliteTransaction extends PGliteDatabase {
  readonly rollback: () => Promise<void>
}

interface PGliteWhole extends PGliteDatabase {
  readonly transaction: <Result>(work: (transaction: PGliteTransaction) => Promise<Result>) => Promise<Result>
}

const isolating = {
  read: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE READ WRITE",
  wait: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
} as const

/** A session on a PGlite database, or in one of its transactions. */
export function pgliteSession(db: PGliteDatabase, signal: AbortSignal | undefined): Session {
  // A transaction of PGlite's is an object of its own, which has everything but `transaction`.
  const nested = !("transaction" in db)
  let current = db
  const query = async (sql: string, values: readonly string[]): Promise<QueryResult> =>
    (await current.query(sql, values, { rowMode: "array" })) as QueryResult
  return {
    connection: {
      rows: (sql, ...values) => asked(signal, async () => arrays((await query(sql, values)).rows)),
      run: (table, sql, ...values) => asked(signal, async () => (await query(sql, values)).affectedRows ?? 0, table)
    },
    // It is one connection, and a transaction has it for itself.
    alone: true,
    inTransaction: () => Promise.resolve(nested),
    async transaction(purpose, work) {
      if (nested) throw new JournalFoldError("nested_transaction", `expected a PGlite database, found ${describe(db)}`)
      try {
        return await (db as PGliteWhole).transaction(async (transaction) => {
          current = transaction
          await query(isolating[purpose], [])
          const result = await work()
          throwIfAborted(signal)
          if (purpose === "read") await transaction.rollback()
          return result
        })
      } catch (error) {
        throw postgresError(error)
      } finally {
        current = db
      }
    }
  }
}
