/** The options, each said once: what it takes, what it does. Verbs name those that they have. */

/** One option. */
export interface OptionSpec {
  /** What its value is called; absent for a switch. */
  readonly value?: string
  readonly repeatable?: boolean
  /** The value is a whole number. */
  readonly isCount?: boolean
  /** One or two lines of help. */
  readonly help: readonly string[]
}

const specs = {
  fold: { value: "NAME", help: ["whose journal it is: deferred-clock (default) of a", "workflow engine, or observer-log"] },
  stream: { value: "NAME", help: ["the stream of an observer log; default: the only one"] },
  run: { value: "ID", repeatable: true, help: ["only this run; may be repeated"] },
  "runs-from": { value: "LIST", help: ["only the runs in a file: exact ids, one a line,", "or a JSON array; - is standard input"] },
  live: { help: ["only runs that have a row"] },
  except: { value: "LIST", help: ["all runs but those in a file, listed as above"] },
  strict: { help: ["completions recorded without a sound digest are", "findings, and refuse a rebuild"] },
  baseline: { value: "REPORT", help: ["an earlier --json report: a run whose journal is now", "shorter, or was rewritten, is a finding"] },
  "max-unexplained": { value: "N", isCount: true, help: ["more stored completions than this that no entry", "explains are a finding"] },
  "as-of": { value: "TIME", help: ["the time by which a clock is overdue: ms since 1970,", "or ISO 8601 with a zone; default: now"] },
  digest: { value: "WHO", help: ["who computes digests of stored texts: host (default),", "or module"] },
  "max-findings": { value: "N", isCount: true, help: ["print no more than N findings; all are counted"] },
  "max-seconds": { value: "N", isCount: true, help: ["stop after N seconds with a partial report"] },
  names: { value: "FILE", help: ["what the store calls its tables, columns and event", "types, as JSON"] },
  "busy-timeout": { value: "MS", isCount: true, help: ["how long to wait for a lock; default: 5000"] },
  json: { help: ["one JSON document on standard output"] },
  "no-color": { help: ["no colour, on a terminal either (also: NO_COLOR)"] },
  out: { value: "PLAN", help: ["write the plan to a file, for apply"] },
  write: { help: ["write; without it, apply only says what it would do"] },
  "allow-delete-pending": { help: ["pending clocks that no entry explains may be deleted:", "what they would have started will not run"] },
  "allow-unconsume": { help: ["consumptions that no entry records may be cleared: a", "completion will be consumed once more"] },
  "up-to": { value: "SEQ", help: ["the last seq to fold, inclusive; default: all"] },
  "checkpoint-state": { value: "BASE", help: ["print a checkpoint's state instead: the JSON object", "in this file, with the fold in it"] },
  "show-values": { help: ["completions with their values, not only digests"] },
  help: { help: ["this help"] }
} as const satisfies Record<string, OptionSpec>

/** The name of an option. */
export type OptionName = keyof typeof specs

/** Every option by its name. */
export const optionSpecs: Readonly<Record<OptionName, OptionSpec>> = specs

/** Which runs. */
export const scopeOptions = ["run", "runs-from", "live", "except"] as const satisfies readonly OptionName[]
/** How they are judged. */
export const judgingOptions = ["strict", "baseline", "max-unexplained", "as-of", "digest"] as const satisfies readonly OptionName[]
/** How the store is read, and what is printed. */
export const readingOptions = ["names", "busy-timeout", "json", "no-color", "help"] as const satisfies readonly OptionName[]
