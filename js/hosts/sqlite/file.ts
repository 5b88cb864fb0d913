/**
 * What can be told of a database file beside SQLite: whether it is there, and whether it is whole.
 *
 * The file is never opened here. Closing any descriptor of a file drops every POSIX lock that this process holds on it, so that another
 * connection of the caller would go on without the locks it relies on (https://www.sqlite.org/howtocorrupt.html, section 2.2).
 */
import { accessSync, constants, statSync } from "node:fs"
import { isJournalFoldError, JournalFoldError } from "../../core/errors.js"
import type { Connection } from "./connection.js"

/** The bytes of a database's header; no database is shorter. */
const headerBytes = 100

/**
 * Looks at a file before SQLite does, which would create a missing one and call an empty one an empty database. Whether the content of
 * a file is a database's, SQLite says itself.
 *
 * @throws `store_unreadable`; `store_not_sqlite`
 */
export function checkIsFile(path: string): void {
  let bytes: number
  try {
    const stat = statSync(path)
    if (!stat.isFile()) throw new Error("it is no file")
    accessSync(path, constants.R_OK)
    bytes = stat.size
  } catch (error) {
    throw new JournalFoldError("store_unreadable", `${path} cannot be read: ${(error as Error).message}`, { found: path }, { cause: error })
  }
  if (bytes < headerBytes) throw new JournalFoldError("store_not_sqlite", `${path} is no SQLite database`, { found: path })
}

/**
 * Refuses a file that is shorter than it should be; SQLite says no more than that such a file is malformed, and nothing when less than a
 * page is missing. Called inside the transaction, while nobody else can be changing the file's length.
 *
 * @throws `store_corrupt`
 */
export function checkWhole(connection: Connection): void {
  try {
    // Reads the first page and no schema: there SQLite compares the count of pages in the header with the file, and nothing else that is
    // in the file can be found corrupt.
    connection.all("PRAGMA schema_version")
  } catch (error) {
    if (!isJournalFoldError(error, "store_corrupt")) throw error
    throw truncated(fileOf(connection)?.bytes, error)
  }
  const file = fileOf(connection)
  if (file === undefined || file.walBytes > 0) return
  // Pages that the caller's own transaction adds are counted before they are in the file, so only a broken page tells.
  const pageBytes = Number(connection.all("SELECT page_size AS c0 FROM pragma_page_size")[0]?.[0])
  if (file.bytes % pageBytes !== 0) throw truncated(file.bytes)
}

function truncated(bytes: number | undefined, cause?: unknown): JournalFoldError {
  const found = bytes === undefined ? "fewer" : `${bytes} bytes`
  const message = `the file is truncated: it ends after ${found}, before the last page that its header counts`
  return new JournalFoldError("store_corrupt", message, { expected: "every page that the header counts", found }, { cause })
}

/** The file of a connection and how long it is; `undefined` for a database in memory, or where files are none. */
function fileOf(connection: Connection): { bytes: number; walBytes: number } | undefined {
  const path = connection.all("PRAGMA database_list").find(([, name]) => name === "main")?.[2]
  if (typeof path !== "string" || path === "") return undefined
  try {
    return { bytes: statSync(path).size, walBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0 }
  } catch {
    return undefined
  }
}
