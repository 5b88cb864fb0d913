/** Whether a store has what is about to be read, and in which encoding. Said by name before any work begins. */
import { JournalFoldError } from "../../core/errors.js"
import type { Connection } from "./connection.js"
import { checkWhole } from "./file.js"
import type { Names, TableKey } from "./names.js"

/** What had to be found out about a store. */
export interface Schema {
  /** Whether texts are kept as UTF-8. Otherwise bytes are not what a digest is over, and binary order is another. */
  readonly utf8: boolean
}

/** What tells about a store. Bound in `columns`: a table's name. */
export const schemaStatements = {
  version: "SELECT sqlite_version() AS c0",
  columns: "SELECT name AS c0 FROM pragma_table_xinfo(?)",
  encoding: "SELECT encoding AS c0 FROM pragma_encoding"
} as const

/** Checks that the file is whole, that the tables and columns named are there, and that SQLite is new enough. */
export function checkSchema(connection: Connection, names: Names, tables: readonly TableKey[]): Schema {
  checkVersion(connection.all(schemaStatements.version)[0]?.[0])
  checkWhole(connection)
  for (const key of tables) checkTable(names, key, connection.all(schemaStatements.columns, names[key].table).map(([name]) => name))
  return { utf8: isUtf8(connection.all(schemaStatements.encoding)[0]?.[0]) }
}

/** Whether a store's encoding is UTF-8. */
export function isUtf8(encoding: unknown): boolean {
  return encoding === "UTF-8"
}

/** Refuses a SQLite that is too old. */
export function checkVersion(found: unknown): void {
  const version = String(found)
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major < 3 || (major === 3 && minor < 43)) {
    throw new JournalFoldError("store_too_old", `expected SQLite 3.43 or newer, found ${version}`, {
      expected: "3.43",
      found: version
    })
  }
}

/** Refuses a store that lacks a table or one of its columns. */
export function checkTable(names: Names, key: TableKey, found: readonly unknown[]): void {
  const { table, ...columns } = names[key] as { table: string } & Record<string, string>
  const there = new Set(found.map((name) => lowerCase(String(name))))
  if (there.size === 0) {
    throw new JournalFoldError("store_table_missing", `expected a table or view ${table}, found none`, { table, expected: table })
  }
  for (const column of Object.values(columns)) {
    if (!there.has(lowerCase(column))) {
      throw new JournalFoldError("store_column_missing", `expected a column ${column} in ${table}, found none`, {
        table,
        column,
        expected: column,
        found: [...there].join(", ")
      })
    }
  }
}

/** SQLite's names are alike whatever the case of their ASCII letters, and of no others. */
function lowerCase(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
