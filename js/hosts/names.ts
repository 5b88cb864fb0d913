/**
 * The names of a store: tables, columns and event types. Identifiers are quoted and values are bound; nothing is ever spliced.
 */
import { invalid } from "../core/errors.js"
import { checkOptions } from "../core/options.js"
import { eventTypes as defaultEventTypes } from "../folds/deferred-clock/names.js"

const defaults = {
  runs: { table: "flows_runs", runId: "run_id" },
  journal: {
    table: "flows_journal_events",
    runId: "run_id",
    seq: "seq",
    eventType: "event_type",
    payload: "payload_json"
  },
  checkpoints: {
    table: "flows_journal_checkpoints",
    runId: "run_id",
    seq: "seq",
    state: "state_json",
    compactedAtMs: "compacted_at_ms"
  },
  clocks: {
    table: "flows_clock_deadlines",
    flowName: "flow_name",
    executionId: "execution_id",
    clockName: "clock_name",
    deferredName: "deferred_name",
    dueAtMs: "due_at_ms",
    completedAtMs: "completed_at_ms"
  },
  completions: {
    table: "flows_deferred_completions",
    flowName: "flow_name",
    executionId: "execution_id",
    deferredName: "deferred_name",
    exit: "exit_json",
    metadata: "metadata_json",
    completedAtMs: "completed_at_ms",
    consumedAtMs: "consumed_at_ms"
  }
} as const

type Defaults = typeof defaults
/** Which table a name belongs to. */
export type TableKey = keyof Defaults

/** What a store calls its tables, columns and event types, where that differs from the defaults. */
export type NameMapping = {
  readonly [Table in TableKey]?: { readonly [Name in keyof Defaults[Table]]?: string }
} & {
  /** The four event types: clock scheduled, clock completed, deferred completed, deferred consumed. */
  readonly eventTypes?: readonly [string, string, string, string]
}

/** All names, as they are. */
export type Names = {
  readonly [Table in TableKey]: { readonly [Name in keyof Defaults[Table]]: string }
} & { readonly eventTypes: readonly [string, string, string, string] }

/** An identifier in SQL. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** The names of a store. */
export function namesOf(mapping: NameMapping | undefined): Names {
  const given = checkOptions(mapping, ["runs", "journal", "checkpoints", "clocks", "completions", "eventTypes"])
  const eventTypes = given.eventTypes ?? defaultEventTypes
  if (!Array.isArray(eventTypes) || eventTypes.length !== 4 || new Set(eventTypes).size !== 4) {
    throw invalid("option_invalid", "four different event types", given.eventTypes)
  }
  const tables = Object.entries(defaults).map(([key, names]) => {
    const changed: Partial<Record<string, string>> = given[key as TableKey] ?? {}
    checkOptions(changed, Object.keys(names))
    for (const [name, value] of Object.entries(changed)) {
      if (typeof value !== "string" || value === "" || value.includes("\0")) {
        throw invalid("option_invalid", `names.${key}.${name} as an identifier`, value)
      }
    }
    return [key, { ...names, ...changed }]
  })
  return { ...(Object.fromEntries(tables) as Names), eventTypes: eventTypes as Names["eventTypes"] }
}

/** The same names, quoted. */
export function quoted(names: Names): Omit<Names, "eventTypes"> {
  const tables = (Object.keys(defaults) as TableKey[]).map((key) => [
    key,
    Object.fromEntries(Object.entries(names[key]).map(([name, value]) => [name, quote(value)]))
  ])
  return Object.fromEntries(tables) as Omit<Names, "eventTypes">
}
