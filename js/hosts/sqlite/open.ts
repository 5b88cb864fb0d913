/** Opens a file with whichever driver is installed: better-sqlite3, else node:sqlite. */
import { closeSync, openSync, readSync, statSync } from "node:fs"
import { JournalFoldError } from "../../core/errors.js"
import type { SqliteDatabase } from "./connection.js"
import { sqliteError } from "./errors.js"

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
 * @throws `store_unreadable` when the file is not there, or no driver is installed; `store_not_sqlite`; `store_corrupt` when it is
 *   shorter than its header says
 */
export async function openFile(path: string, { readOnly, busyTimeoutMs }: OpenOptions): Promise<OpenFile> {
  lookAt(path)
  try {
    const Better = await betterSqlite3()
    if (Better !== undefined) {
      const db = new Better(path, { readonly: readOnly, fileMustExist: true, timeout: busyTimeoutMs })
      return { db, close: () => db.close() }
    }
    const { DatabaseSync } = await nodeSqlite()
    const db = new DatabaseSync(path, { readOnly })
    db.exec(`PRAGMA busy_timeout = ${Math.trunc(busyTimeoutMs)}`)
    return { db, close: () => db.close() }
  } catch (error) {
    throw sqliteError(error)
  }
}

async function betterSqlite3(): Promise<BetterSqlite3Constructor | undefined> {
  try {
    return ((await import("better-sqlite3" as string)) as { default: BetterSqlite3Constructor }).default
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_MODULE_NOT_FOUND") return undefined
    throw error
  }
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

const magic = "SQLite format 3\0"

/** Looks at a file before SQLite does, which would call an empty file an empty database and a cut one sound until it reads there. */
function lookAt(path: string): void {
  let file: number
  try {
    if (!statSync(path).isFile()) throw new Error("it is no file")
    file = openSync(path, "r")
  } catch (error) {
    throw new JournalFoldError("store_unreadable", `${path} cannot be read: ${(error as Error).message}`, { found: path }, { cause: error })
  }
  try {
    const header = Buffer.alloc(100)
    const length = readSync(file, header, 0, 100, 0)
    if (length < 100 || header.toString("latin1", 0, 16) !== magic) {
      throw new JournalFoldError("store_not_sqlite", `${path} is no SQLite database`, { found: path })
    }
    const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
    const pages = header.readUInt32BE(28)
    // The page count is only sound when both change counters agree; with a WAL, pages may lie there yet.
    const sound = header.readUInt32BE(24) === header.readUInt32BE(92)
    const wal = header[18] === 2
    const size = statSync(path).size
    if (sound && !wal && size < pages * pageBytes) {
      throw new JournalFoldError(
        "store_corrupt",
        `${path} is truncated: its header says ${pages * pageBytes} bytes, and there are ${size}`,
        { expected: String(pages * pageBytes), found: String(size) }
      )
    }
  } finally {
    closeSync(file)
  }
}
