/** Whether a store has what is about to be read, and of which types. Said by name before any work begins. */
import { JournalFoldError } from "../../core/errors.js"
import type { Row } from "./connection.js"
import { quote, type Names, type PostgresNames, type TableKey } from "./names.js"

/** What a column holds, as far as it matters here. */
export type Kind = "text" | "json" | "jsonb" | "bytea" | "integer" | "other"

/** A column of the store. */
export interface Column {
  /** Its name as SQL. */
  readonly name: string
  readonly kind: Kind
  /** Its type as SQL, without a length: a text that is too long is refused, not cut. */
  readonly type: string
  /** Whether two of its values are the same exactly when their texts are: false where a collation takes different texts for equal. */
  readonly exact: boolean
}

/** A table of the store. */
export type Table<Key extends TableKey> = { readonly table: string } & {
  readonly [Name in Exclude<keyof Names[Key], "table">]: Column
}

/** What had to be found out about a store. Only the tables that were asked for are there. */
export type Schema = { readonly [Key in TableKey]: Table<Key> } & {
  /** Whether texts are kept as UTF-8. Otherwise their order by bytes is another, and lengths are others. */
  readonly utf8: boolean
  readonly eventTypes: Names["eventTypes"]
}

/** What tells about a store. */
export const schemaStatements = {
  server: "SELECT current_setting('server_version_num') AS c0, current_setting('server_version') AS c1, current_setting('server_encoding') AS c2",
  /** Every column of some tables: table key, whether it is there, column, type, its SQL, exact. Bound: a JSON array of [key, table]. */
  columns: `SELECT w ->> 0 AS c0, (r.oid IS NOT NULL)::text AS c1, a.attname::text AS c2, coalesce(b.typname, t.typname)::text AS c3,
      format_type(t.oid, NULL) AS c4, coalesce(c.collisdeterministic, true)::text AS c5
    FROM jsonb_array_elements(CAST($1 AS text)::jsonb) AS w
    LEFT JOIN pg_catalog.pg_class AS r ON r.oid = to_regclass(w ->> 1)
    LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype
    LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation`
} as const

/** What is bound to {@link schemaStatements}`.columns`. */
export function tablesBound({ tables }: PostgresNames, keys: readonly TableKey[]): string {
  return JSON.stringify(keys.map((key) => [key, tables[key]]))
}

const kinds: Readonly<Record<string, Kind>> = {
  text: "text",
  varchar: "text",
  json: "json",
  jsonb: "jsonb",
  bytea: "bytea",
  int2: "integer",
  int4: "integer",
  int8: "integer"
}

/** The oldest server this host works with: it has `sha256` and collations that are not deterministic. */
const oldest = 120000

/**
 * The schema of a store.
 *
 * @throws `store_too_old`; `store_table_missing`, `store_column_missing`
 */
export function schemaOf(names: PostgresNames, keys: readonly TableKey[], server: readonly Row[], columns: readonly Row[]): Schema {
  const [version, shownVersion, encoding] = server[0] ?? []
  if (!(Number(version) >= oldest)) {
    throw new JournalFoldError("store_too_old", `expected Postgres 12 or newer, found ${shownVersion}`, {
      expected: "12",
      found: String(shownVersion)
    })
  }
  const tables = keys.map((key) => [key, tableOf(names, key, columns.filter(([of]) => of === key))])
  return {
    ...(Object.fromEntries(tables) as { readonly [Key in TableKey]: Table<Key> }),
    utf8: encoding === "UTF8",
    eventTypes: names.names.eventTypes
  }
}

function tableOf({ names, tables, shown }: PostgresNames, key: TableKey, found: readonly Row[]): Record<string, unknown> {
  const { table: _, ...columns } = names[key] as { table: string } & Record<string, string>
  const table = shown[key]
  if (!found.some(([, there]) => there === "true")) {
    throw new JournalFoldError("store_table_missing", `expected a table or view ${table}, found none`, { table, expected: table })
  }
  const members = Object.entries(columns).map(([member, column]) => {
    const row = found.find(([, , name]) => name === column)
    if (row === undefined) {
      throw new JournalFoldError("store_column_missing", `expected a column ${column} in ${table}, found none`, {
        table,
        column,
        expected: column,
        found: found.map(([, , name]) => name).join(", ")
      })
    }
    const [, , , type, sql, exact] = row
    const made: Column = {
      name: quote(column),
      kind: kinds[String(type)] ?? "other",
      type: String(sql),
      exact: exact === "true"
    }
    return [member, made]
  })
  return { table: tables[key], ...Object.fromEntries(members) }
}
