/**
 * What goes wrong, as `Error`s with a stable `code`. The table of codes is the module's (`src/error.rs`); `code` is what programs
 * should look at, never the message and never `instanceof` alone, since a page may hold two copies of this package.
 */

/** The stable codes. Each is explained in the README's table of errors. */
export type ErrorCode =
  | "fold_incomplete"
  | "payload_not_json"
  | "text_not_utf8"
  | "entry_conflict"
  | "entry_out_of_order"
  | "run_out_of_order"
  | "run_repeated"
  | "bound_below_floor"
  | "bound_invalid"
  | "seq_invalid"
  | "state_malformed"
  | "base_not_object"
  | "page_malformed"
  | "answer_malformed"
  | "answer_missing"
  | "call_out_of_order"
  | "too_large"
  | "row_malformed"
  | "row_version"
  | "row_sequence"
  | "corrupt_row"
  | "request_refused"
  | "append_misuse"
  | "assigned_sequence"
  | "append_unresolved"
  | "sequence_conflict"
  | "outcome_unknown"
  | "store_failed"
  | "payload_too_deep"
  | "value_not_json"
  | "argument_invalid"
  | "option_unknown"
  | "option_invalid"
  | "not_initialized"
  | "engine_trap"
  | "engine_restarted"
  | "disposed"
  | "store_not_sqlite"
  | "store_unreadable"
  | "store_corrupt"
  | "store_busy"
  | "store_table_missing"
  | "store_column_missing"
  | "store_read_only"
  | "store_too_old"
  | "stale_plan"
  | "plan_refused"
  | "deletes_pending"
  | "clears_consumption"
  | "rows_changed_mismatch"
  | "row_not_writable"
  | "nested_transaction"
  | "aborted"
  | "export_malformed"
  | "run_unknown"
  | "stream_unknown"

/** Where an error was met, what was expected there and what was found. */
export interface ErrorDetails {
  /** The run concerned. */
  readonly runId?: string
  /** The seq of the entry concerned, in decimal. */
  readonly seq?: string
  /** A byte offset into the text concerned. */
  readonly offset?: number
  /** What was expected. */
  readonly expected?: string
  /** What was found instead. */
  readonly found?: string
  /** The table concerned, as the store names it. */
  readonly table?: string
  /** The column concerned, as the store names it. */
  readonly column?: string
  /** Of the observer log: the failure as the log's format spells it. */
  readonly failure?: FailureDetails
  /** Of the observer log: why the aggregate refused a request. */
  readonly refusal?: RefusalDetails
  /** Of the observer log: how far a restore had come, `foldedFrom` in decimal. */
  readonly restore?: { readonly hint?: string; readonly foldedFrom?: string }
  /** Of the observer log: arms that fired in earlier appends, found out before this change failed. They are to be reported. */
  readonly publications?: readonly {
    readonly conversationId: bigint
    readonly refusedEpoch: bigint
    readonly observerProgress: bigint
  }[]
}

/** A failure of the observer log as its format spells it: a kind, and the numbers it goes with as decimal text. */
export interface FailureDetails {
  readonly kind:
    | "json"
    | "schema_version"
    | "sequence"
    | "assigned_sequence"
    | "corrupt_row"
    | "append_misuse"
    | "append_unresolved"
    | "store"
    | "answer"
  /** The version found. */
  readonly version?: number
  readonly expected?: string
  readonly actual?: string
  readonly sequence?: string
  /** Of a store: what it answered. */
  readonly name?: "sequence_conflict" | "value_conflict" | "outcome_unknown" | "failed"
  /** Why the aggregate refused the row. */
  readonly reason?: RefusalDetails
  /** What the caller of an append got wrong. */
  readonly misuse?: "snapshot_missing" | "snapshot_not_due" | "row_is_snapshot" | "snapshot_is_another_row"
  readonly wanted?: string
  readonly given?: string
}

/** Why an aggregate refused, as the log's format spells it: a kind, and numbers as decimal text. */
export interface RefusalDetails {
  readonly kind: string
  readonly [name: string]: string
}

/** A reference of the journal that the store does not join. */
export interface Unjoined {
  /** Why it does not join. */
  readonly reason: "checkpoint_missing" | "run_missing" | "clock_conflict" | "row_missing" | "digest_mismatch"
  /** The run, for a checkpoint; else the execution of the row. */
  readonly executionId: string
  /** The row's flow; absent for a checkpoint. */
  readonly flowName?: string
  /** The clock's or the deferred's name; absent for a checkpoint. */
  readonly name?: string
}

const brand = Symbol.for("journal-fold/error")

/** Every error that this package throws. */
export class JournalFoldError extends Error {
  override readonly name: string = "JournalFoldError"
  /** The stable code. */
  readonly code: ErrorCode
  /** Where, what was expected, what was found. */
  readonly details: ErrorDetails

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.details = details
    Object.defineProperty(this, brand, { value: true })
  }
}

/** The journal refers to what the store does not hold, so nothing may be written. */
export class FoldIncomplete extends JournalFoldError {
  override readonly name = "FoldIncomplete"
  override readonly code = "fold_incomplete" as const
  /** Every reference that does not join, in a fixed order. */
  readonly unjoined: readonly Unjoined[]

  constructor(message: string, unjoined: readonly Unjoined[], details: ErrorDetails = {}) {
    super("fold_incomplete", message, details)
    this.unjoined = unjoined
  }
}

/**
 * The module trapped: a bug of ours, or memory running out. The instance has been made anew, so the next call works; objects
 * made before it are gone (`engine_restarted`).
 */
export class EngineTrapError extends JournalFoldError {
  override readonly name = "EngineTrapError"
  override readonly code = "engine_trap" as const

  constructor(message: string, cause: unknown) {
    super("engine_trap", message, {}, { cause })
  }
}

/** Whether `value` is an error of this package, of this copy of it or another; with `code`, whether it has that code. */
export function isJournalFoldError<Code extends ErrorCode = ErrorCode>(
  value: unknown,
  code?: Code
): value is JournalFoldError & { readonly code: Code } {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as Record<symbol, unknown>)[brand] === true &&
    (code === undefined || (value as JournalFoldError).code === code)
  )
}

/** Whether `value` is a {@link FoldIncomplete}, of this copy of the package or another. */
export function isFoldIncomplete(value: unknown): value is FoldIncomplete {
  return isJournalFoldError(value, "fold_incomplete")
}

/** The error whose JSON text the module threw. */
export function fromThrown(json: string): JournalFoldError {
  const { code, message, unjoined, ...details } = JSON.parse(json) as {
    code: ErrorCode
    message: string
    unjoined?: Unjoined[]
  } & ErrorDetails
  return code === "fold_incomplete"
    ? new FoldIncomplete(message, unjoined ?? [], details)
    : new JournalFoldError(code, message, details)
}

/** An error about an argument: what was expected, and a short description of what came. */
export function invalid(
  code: ErrorCode,
  expected: string,
  found: unknown,
  details: ErrorDetails = {}
): JournalFoldError {
  const description = describe(found)
  return new JournalFoldError(code, `expected ${expected}, found ${description}`, {
    ...details,
    expected,
    found: description
  })
}

/** A value in a few characters. */
export function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === "bigint") return `${value}n`
  if (typeof value === "function") return "a function"
  if (value === null || typeof value !== "object") return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  return `an object of ${Object.prototype.toString.call(value).slice(8, -1)}`
}
