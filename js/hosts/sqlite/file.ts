/** What can be told of a database file without SQLite: whether it is one, and whether it is whole. */
import { closeSync, openSync, readSync, statSync } from "node:fs"
import { isJournalFoldError, JournalFoldError } from "../../core/errors.js"
import type { Connection } from "./connection.js"

const magic = "SQLite format 3\0"
const headerBytes = 100

/** The first bytes of a file, as many as there are. */
function headerOf(path: string): Buffer {
  const file = openSync(path, "r")
  try {
    const header = Buffer.alloc(headerBytes)
    return header.subarray(0, readSync(file, header, 0, headerBytes, 0))
  } finally {
    closeSync(file)
  }
}

/**
 * Looks at a file before SQLite does, which would create a missing one and call an empty one an empty database.
 *
 * @throws `store_unreadable`; `store_not_sqlite`
 */
export function checkIsDatabase(path: string): void {
  let header: Buffer
  try {
    if (!statSync(path).isFile()) throw new Error("it is no file")
    header = headerOf(path)
  } catch (error) {
    throw new JournalFoldError("store_unreadable", `${path} cannot be read: ${(error as Error).message}`, { found: path }, { cause: error })
  }
  if (header.byteLength < headerBytes || header.toString("latin1", 0, 16) !== magic) {
    throw new JournalFoldError("store_not_sqlite", `${path} is no SQLite database`, { found: path })
  }
}

/**
 * Refuses a file that is shorter than it should be. SQLite itself sees only whole pages that are missing, and says no more than that
 * the file is malformed. Called inside the transaction, while nobody else can be changing the file's length.
 *
 * @throws `store_corrupt`
 */
export function checkWhole(connection: Connection): void {
  let failure: unknown
  try {
    // Takes the lock, so that nobody is changing the file's length.
    connection.all("SELECT page_count AS c0 FROM pragma_page_count")
  } catch (error) {
    if (!isJournalFoldError(error, "store_corrupt")) throw error
    failure = error
  }
  // Opening the file here and closing it again would drop the locks that SQLite holds on it for the whole process, so its header is only
  // looked at once SQLite has given it up as broken.
  if (failure === undefined) return
  const file = fileOf(connection)
  if (file !== undefined && file.walBytes === 0) checkLength(bytesByHeader(file.path), file.bytes)
  throw failure
}

function checkLength(expected: number, found: number): void {
  if (found >= expected) return
  throw new JournalFoldError("store_corrupt", `the file is truncated: it should have ${expected} bytes, and there are ${found}`, {
    expected: `${expected} bytes`,
    found: `${found} bytes`
  })
}

/** How long a file should be by its header. */
function bytesByHeader(path: string): number {
  const header = headerOf(path)
  if (header.byteLength < headerBytes) return headerBytes
  // The count of pages is only sound when both change counters agree.
  if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return headerBytes
  const pageBytes = header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16)
  return header.readUInt32BE(28) * pageBytes
}

/** The file of a connection and how long it is; `undefined` for a database in memory, or where files are none. */
function fileOf(connection: Connection): { path: string; bytes: number; walBytes: number } | undefined {
  const path = connection.all("PRAGMA database_list").find(([, name]) => name === "main")?.[2]
  if (typeof path !== "string" || path === "") return undefined
  try {
    const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
    return { path, bytes: statSync(path).size, walBytes }
  } catch {
    return undefined
  }
}
