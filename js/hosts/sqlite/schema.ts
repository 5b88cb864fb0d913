/** Whether a store has what is about to be read, and in which encoding. Said by name before any work begins. */
import { JournalFoldError } from "../../core/errors.js"
import type { Connection } from "./connection.js"
import type { Names, TableKey } from "./names.js"

/** What had to be found out about a store. */
export interface Schema {
  /** Whether texts are kept as UTF-8. Otherwise bytes are not what a digest is over, and binary order is another. */
  readonly utf8: boolean
}

/** Checks that the tables and columns named are there, and that SQLite is new enough. */
export function checkSchema(connection: Connection, names: Names, tables: readonly TableKey[]): Schema {
  const version = String(connection.all("SELECT sqlite_version() AS c0")[0]?.[0])
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major < 3 || (major === 3 && minor < 43)) {
    throw new JournalFoldError("store_too_old", `expected SQLite 3.43 or newer, found ${version}`, {
      expected: "3.43",
      found: version
    })
  }
  for (const key of tables) {
    const { table, ...columns } = names[key] as { table: string } & Record<string, string>
    const there = new Set(connection.all("SELECT name AS c0 FROM pragma_table_xinfo(?)", table).map(([name]) => String(name).toLowerCase()))
    if (there.size === 0) {
      throw new JournalFoldError("store_table_missing", `expected a table or view ${table}, found none`, { table, expected: table })
    }
    for (const column of Object.values(columns)) {
      // SQLite's names are alike whatever their case.
      if (!there.has(column.toLowerCase())) {
        throw new JournalFoldError("store_column_missing", `expected a column ${column} in ${table}, found none`, {
          table,
          column,
          expected: column,
          found: [...there].join(", ")
        })
      }
    }
  }
  const encoding = String(connection.all("SELECT encoding AS c0 FROM pragma_encoding")[0]?.[0])
  return { utf8: encoding === "UTF-8" }
}
