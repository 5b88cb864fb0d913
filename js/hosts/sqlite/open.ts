/** Opens a file with whichever driver is installed: better-sqlite3, else node:sqlite. */
import { JournalFoldError } from "../../core/errors.js"
import type { SqliteDatabase } from "./connection.js"
import { sqliteError } from "./errors.js"
import { checkIsFile } from "./file.js"

/** How a file is opened. */
export interface OpenOptions {
  /** Refuse every write. */
  readonly readOnly: boolean
  /** How long to wait for a lock, in ms. */
  readonly busyTimeoutMs: number
}

/** An open file. */
export interface OpenFile {
  readonly db: SqliteDatabase
  close(): void
}

interface BetterSqlite3Constructor {
  new (path: string, options: { readonly?: boolean; fileMustExist?: boolean; timeout?: number }): SqliteDatabase & {
    close(): void
  }
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string, options: { readOnly?: boolean }) => SqliteDatabase & { close(): void }
}

/**
 * Opens a database file.
 *
 * @throws `store_unreadable` when the file is not there, or no driver is installed; `store_not_sqlite`
 */
export async function openFile(path: string, { readOnly, busyTimeoutMs }: OpenOptions): Promise<OpenFile> {
  checkIsFile(path)
  try {
    return (await withBetterSqlite3(path, readOnly, busyTimeoutMs)) ?? (await withNodeSqlite(path, readOnly, busyTimeoutMs))
  } catch (error) {
    throw sqliteError(error)
  }
}

/** Nothing where the driver is not installed, or was built for another runtime. */
async function withBetterSqlite3(path: string, readOnly: boolean, busyTimeoutMs: number): Promise<OpenFile | undefined> {
  try {
    const { default: Better } = (await import("better-sqlite3" as string)) as { default: BetterSqlite3Constructor }
    const db = new Better(path, { readonly: readOnly, fileMustExist: true, timeout: busyTimeoutMs })
    return { db, close: () => db.close() }
  } catch (error) {
    if (sqliteError(error) !== error) throw error
    return undefined
  }
}

async function withNodeSqlite(path: string, readOnly: boolean, busyTimeoutMs: number): Promise<OpenFile> {
  const { DatabaseSync } = await nodeSqlite()
  const db = new DatabaseSync(path, { readOnly })
  db.exec(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}`)
  return { db, close: () => db.close() }
}

async function nodeSqlite(): Promise<NodeSqlite> {
  try {
    return (await import("node:sqlite" as string)) as NodeSqlite
  } catch (error) {
    throw new JournalFoldError(
      "store_unreadable",
      "no SQLite driver here: install better-sqlite3, or use a Node that has node:sqlite (22.13 or later)",
      {},
      { cause: error }
    )
  }
}
