/**
 * The names of a store in Postgres: those of every store, and the schemas that its tables are in. A table without a schema is looked for
 * on the connection's `search_path`. Identifiers are quoted, so their case counts; values are bound; nothing is ever spliced.
 */
import { invalid } from "../../core/errors.js"
import { namesOf as sharedNamesOf, quote, type NameMapping, type Names, type TableKey } from "../names.js"

export type { Names, TableKey }

/** What a store calls its schemas, tables, columns and event types, where that differs from the defaults. */
export type PostgresNameMapping = {
  readonly [Table in TableKey]?: NonNullable<NameMapping[Table]> & {
    /** The schema that this table is in. */
    readonly schema?: string
  }
} & Pick<NameMapping, "eventTypes"> & {
    /** The schema of every table that names none of its own. */
    readonly schema?: string
  }

/** All names, as they are. */
export interface PostgresNames {
  readonly names: Names
  /** Every table as SQL, quoted and with its schema. */
  readonly tables: Readonly<Record<TableKey, string>>
  /** Every table as a person would say it. */
  readonly shown: Readonly<Record<TableKey, string>>
}

const tableKeys: readonly TableKey[] = ["runs", "journal", "checkpoints", "clocks", "completions"]

function schemaName(option: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== "string" || value === "" || value.includes("\0")) {
    throw invalid("option_invalid", `${option} as an identifier`, value)
  }
  return value
}

/** The names of a store. */
export function namesOf(mapping: PostgresNameMapping | undefined): PostgresNames {
  if (mapping !== undefined && (typeof mapping !== "object" || mapping === null)) {
    throw invalid("option_invalid", "names as an object", mapping)
  }
  const { schema: everySchema, ...given } = mapping ?? {}
  const common = schemaName("names.schema", everySchema)
  const schemas: Partial<Record<TableKey, string>> = {}
  const plain: Record<string, unknown> = { ...given }
  for (const key of tableKeys) {
    const table = given[key]
    const schema = typeof table === "object" && table !== null ? schemaName(`names.${key}.schema`, table.schema) : undefined
    const of = schema ?? common
    if (of !== undefined) schemas[key] = of
    if (schema !== undefined) {
      const { schema: _, ...rest } = table as Record<string, unknown>
      plain[key] = rest
    }
  }
  const names = sharedNamesOf(plain as NameMapping)
  const each = (name: (key: TableKey, schema: string | undefined) => string): Record<TableKey, string> =>
    Object.fromEntries(tableKeys.map((key) => [key, name(key, schemas[key])])) as Record<TableKey, string>
  return {
    names,
    tables: each((key, schema) => (schema === undefined ? "" : `${quote(schema)}.`) + quote(names[key].table)),
    shown: each((key, schema) => (schema === undefined ? "" : `${schema}.`) + names[key].table)
  }
}

export { quote }
