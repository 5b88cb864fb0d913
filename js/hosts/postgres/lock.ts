/** The lock that keeps a second rebuild out, and an engine's writers, if they take it too. */
import { JournalFoldError } from "../../core/errors.js"
import { throwIfAborted } from "../slices.js"
import type { Connection, Session } from "./connection.js"

/**
 * The key of the advisory lock that `apply` and `rebuild` hold. One lock for a whole database.
 *
 * An engine whose writers are to wait for a rebuild, rather than make it begin again, says at the beginning of each of their transactions
 * `SELECT pg_advisory_xact_lock_shared(7669477824773844070)`: as many of them as like hold it together, and none beside a rebuild.
 */
export const rebuildLockKey = 0x6a6f75726e616c66n

/** Waiting is cut into pieces of this length, between which the caller's signal is looked at. */
const sliceMs = 1000

/** Takes the lock in the current transaction, if it is free. */
export async function tryLock(connection: Connection): Promise<boolean> {
  const [row] = await connection.rows(`SELECT pg_try_advisory_xact_lock(${rebuildLockKey})::text AS c0`)
  return row?.[0] === "true"
}

/**
 * Waits for the lock outside of any transaction and takes it for the connection. A transaction that waited by itself would see the store
 * as it was before the wait. The one who waits is in the queue, so that writers who share the lock cannot go on passing it for ever.
 *
 * @returns how to let go of it
 * @throws `store_busy` when it is not free in time
 */
export async function waitForLock(session: Session, timeoutMs: number, signal: AbortSignal | undefined): Promise<() => Promise<void>> {
  const until = performance.now() + timeoutMs
  for (;;) {
    const left = until - performance.now()
    if (left <= 0) throw held(timeoutMs)
    if (await waited(session, Math.max(1, Math.min(left, sliceMs)))) break
    throwIfAborted(signal)
  }
  return async () => {
    // A connection that is gone has let go already.
    await session.connection.rows(`SELECT pg_advisory_unlock(${rebuildLockKey})::text AS c0`).catch(() => {})
  }
}

async function waited(session: Session, timeoutMs: number): Promise<boolean> {
  try {
    return await session.transaction("wait", async () => {
      await session.connection.rows(`SELECT set_config('lock_timeout', '${Math.ceil(timeoutMs)}', true) AS c0`)
      await session.connection.rows(`SELECT pg_advisory_lock(${rebuildLockKey})::text AS c0`)
      return true
    })
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}

function isLockTimeout(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } }
  return cause?.code === "55P03"
}

/** The lock is not free. */
export function held(timeoutMs: number): JournalFoldError {
  return new JournalFoldError(
    "store_busy",
    `another rebuild of this database, or an engine's writer, holds the lock ${rebuildLockKey}${timeoutMs > 0 ? `, and has held it for ${timeoutMs} ms` : ""}: try again, or set lockTimeoutMs to wait`
  )
}
