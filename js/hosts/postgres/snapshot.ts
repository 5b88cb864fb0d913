/** One snapshot to read from: the caller's, or one of our own. */
import { JournalFoldError } from "../../core/errors.js"
import type { Connection, Session } from "./connection.js"

/**
 * Does `work` on one snapshot: in the caller's transaction, if there is one, or in its own.
 *
 * @throws `nested_transaction` when the caller's transaction is `READ COMMITTED` and one snapshot is needed: each statement would see
 *   another state of the store
 */
export async function reading<Result>(session: Session, oneSnapshot: boolean, work: () => Promise<Result>): Promise<Result> {
  if (!(await session.inTransaction())) {
    return session.transaction("read", async () => {
      await session.connection.rows(settings)
      return work()
    })
  }
  if (oneSnapshot && !session.alone) await checkOneSnapshot(session.connection)
  return work()
}

/** @throws `nested_transaction` when the transaction that the connection is inside of is not one snapshot */
export async function checkOneSnapshot(connection: Connection): Promise<void> {
  const [row] = await connection.rows("SELECT current_setting('transaction_isolation') AS c0")
  const found = String(row?.[0])
  if (found === "repeatable read" || found === "serializable") return
  throw new JournalFoldError(
    "nested_transaction",
    `the connection is inside a transaction that is ${found}: each statement of it sees another state of the store. Begin it with ISOLATION LEVEL REPEATABLE READ, or verify outside of a transaction`,
    { expected: "repeatable read", found }
  )
}

/** For a transaction of ours: plans that are made for all rows of a cursor, and no time spent on compiling them. */
export const settings =
  "SELECT set_config('cursor_tuple_fraction', '1', true) AS c0, set_config('jit', 'off', true) AS c1"
