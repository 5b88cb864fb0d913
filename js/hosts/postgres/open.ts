/** Connects to a `postgres://` URL with `pg`. */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { checkCount, checkOptions } from "../../core/options.js"
import { throwIfAborted } from "../slices.js"
import type { PostgresPool } from "./connection.js"
import { postgresError } from "./errors.js"

/** How a connection is made. */
export interface OpenUrlOptions {
  /** How long to wait for the server to answer, and then for a lock, in ms. Default: 5,000. */
  readonly busyTimeoutMs?: number
  /** Gives up connecting. */
  readonly signal?: AbortSignal
}

/** An open store. */
export interface OpenUrl {
  readonly db: PostgresPool
  close(): Promise<void>
}

interface Pool extends PostgresPool {
  on(event: "error", listener: () => void): unknown
  end(): Promise<void>
}

type PoolConstructor = new (config: Record<string, unknown>) => Pool

/** Whether a text is the URL of a store in Postgres. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:\/\//i.test(text)
}

/**
 * Opens the store behind a URL, and asks the server one thing, so that what is wrong is said here. Two connections at the most: one for
 * the work, and one to cancel it.
 *
 * @throws `store_unreadable` when there is no server, no such database, no leave to enter, or no `pg`
 */
export async function openUrl(url: string, options?: OpenUrlOptions): Promise<OpenUrl> {
  const { busyTimeoutMs, signal } = checkOptions(options, ["busyTimeoutMs", "signal"])
  const timeoutMs = checkCount("busyTimeoutMs", busyTimeoutMs) ?? 5000
  // The URL may hold a password: it is in no message.
  if (typeof url !== "string" || !isPostgresUrl(url)) throw invalid("argument_invalid", "a postgres:// URL", typeof url === "string" ? "another text" : url)
  throwIfAborted(signal)
  const db = new (await poolConstructor())({
    connectionString: url,
    max: 2,
    connectionTimeoutMillis: timeoutMs,
    lock_timeout: timeoutMs,
    application_name: "journal-fold"
  })
  // An idle connection that drops is told as an event; the next statement says so too.
  db.on("error", () => {})
  try {
    await db.query("SELECT 1")
    throwIfAborted(signal)
  } catch (error) {
    await db.end()
    const typed = postgresError(error)
    throw typed === error && typed instanceof Error
      ? new JournalFoldError("store_unreadable", `the store cannot be opened: ${typed.message}`, {}, { cause: error })
      : typed
  }
  return { db, close: () => db.end() }
}

async function poolConstructor(): Promise<PoolConstructor> {
  try {
    const { default: pg } = (await import("pg" as string)) as { default: { Pool: PoolConstructor } }
    return pg.Pool
  } catch (error) {
    throw new JournalFoldError("store_unreadable", "no Postgres driver here: install pg", {}, { cause: error })
  }
}
