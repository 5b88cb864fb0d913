/** Verifies a file beside a running engine: on a connection of its own, in slices between which the event loop runs. */
import { setTimeout as sleep } from "node:timers/promises"
import { isJournalFoldError } from "../../core/errors.js"
import { checkCount, checkOptions } from "../../core/options.js"
import type { Verification } from "../../folds/deferred-clock/types.js"
import { inSlices, throwIfAborted } from "../slices.js"
import { connect, type Connection } from "./connection.js"
import { checkWhole } from "./file.js"
import { openFile } from "./open.js"
import { verifying, verifyOptionNames, type SqliteVerifyOptions } from "./verify.js"

/** How a file is verified. */
export interface VerifyFileOptions extends SqliteVerifyOptions {
  /** Stops the work: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal
  /** How long to wait for a lock, in ms. Default: 5,000. */
  readonly busyTimeoutMs?: number
}

/** Milliseconds between two attempts to read a locked store. */
const retryMs = 10

/**
 * Verifies a store on a read-only connection of its own, in slices between which the event loop runs. Writers may go on meanwhile: all
 * is read from one snapshot. A long read holds back WAL checkpoints, and without WAL it keeps writers waiting.
 *
 * @throws as `verify`; `aborted`; `store_unreadable` when the file is not there
 */
export async function verifyFile(path: string, options?: VerifyFileOptions): Promise<Verification> {
  const { signal, busyTimeoutMs, ...rest } = checkOptions(options, [...verifyOptionNames, "signal", "busyTimeoutMs"])
  const waitMs = checkCount("busyTimeoutMs", busyTimeoutMs) ?? 5000
  throwIfAborted(signal)
  // SQLite would wait for a lock without giving the event loop a turn.
  const opened = await openFile(path, { readOnly: true, busyTimeoutMs: 0 })
  try {
    const connection = connect(opened.db)
    await begin(connection, waitMs, signal)
    try {
      return await inSlices(verifying(connection, rest), rest.onProgress, signal)
    } finally {
      if (connection.inTransaction) connection.exec("ROLLBACK")
    }
  } finally {
    opened.close()
  }
}

/** Begins to read: the first look at the file takes the snapshot, and from then on nothing can be locked any more. */
async function begin(connection: Connection, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  const until = performance.now() + waitMs
  for (;;) {
    try {
      connection.exec("BEGIN")
      checkWhole(connection)
      return
    } catch (error) {
      if (connection.inTransaction) connection.exec("ROLLBACK")
      if (!isJournalFoldError(error, "store_busy") || performance.now() >= until) throw error
    }
    await sleep(retryMs)
    throwIfAborted(signal)
  }
}
