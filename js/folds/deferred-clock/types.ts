/** The shapes of the deferred/clock fold. Times are milliseconds since 1970, whole, 0 to 2^53-1. */
import type { ErrorDetails, Unjoined } from "../../core/errors.js"

/** A seq: 0 to 2^63-1. Beyond 2^53-1 a `number` has lost digits and is refused: give a `bigint` or decimal text. */
export type Seq = number | bigint | string

/** An entry whose payload is a live JSON value. Turning it into text costs several times what folding it does. */
export interface Entry {
  readonly runId: string
  readonly seq: Seq
  readonly eventType: string
  readonly payload: unknown
}

/** An entry as stored: its payload is JSON text. Fast. */
export interface EntryText {
  readonly runId: string
  readonly seq: Seq
  readonly eventType: string
  readonly payloadText: string
}

/**
 * Many entries of one run as bytes: the fastest way in. A type is the place of its name in {@link eventTypes}; 255 stands for
 * every other one. `ends` says where each payload ends in `bytes`.
 */
export interface Page {
  readonly runId: string
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
  readonly seqs: BigInt64Array
  readonly types: Uint8Array
}

/** A clock row. Its address is flow, execution and clock name; the deferred's name is no part of it. */
export interface Clock {
  readonly flowName: string
  readonly executionId: string
  readonly clockName: string
  readonly deferredName: string
  readonly dueAtMs: number
  readonly completedAtMs: number | null
}

/**
 * A completion row. An absent digest was not recorded, so the stored text cannot be checked; a null metadata digest says that there
 * is no metadata.
 */
export interface Deferred {
  readonly flowName: string
  readonly executionId: string
  readonly deferredName: string
  readonly completedAtMs: number | null
  readonly exitDigest?: string
  readonly metadataDigest?: string | null
  readonly consumedAtMs: number | null
}

/** The encoded fold: rows in the order in which they first appeared. */
export interface Encoded {
  readonly clocks: readonly Clock[]
  readonly deferreds: readonly Deferred[]
}

/** A checkpoint of a run. One that was never compacted to (`compactedAtMs: null`) is no floor. */
export type Floor =
  | { readonly seq: Seq; readonly compactedAtMs: number | null; readonly state: unknown }
  | { readonly seq: Seq; readonly compactedAtMs: number | null; readonly stateText: string }

/** One run: its checkpoints, of which the floor is picked, and its entries in ascending seq. */
export interface Run {
  readonly runId: string
  readonly floors?: Iterable<Floor>
  readonly entries: Iterable<Entry | EntryText | Page>
}

/** A clock row as the store has it. */
export interface StoredClock {
  readonly flowName: string
  readonly executionId: string
  readonly clockName: string
  readonly deferredName: unknown
  readonly dueAtMs: unknown
  readonly completedAtMs: unknown
}

/**
 * A completion row as the store has it: its texts, or their digests where only those are known, as in an exported run. Names, times and
 * texts as stored; `null` is SQL's NULL.
 */
export interface StoredCompletion {
  readonly flowName: string
  readonly executionId: string
  readonly deferredName: string
  readonly exitText?: string | Uint8Array | null
  readonly metadataText?: string | Uint8Array | null
  /** In place of `exitText`. */
  readonly exitDigest?: string | null
  /** In place of `metadataText`. */
  readonly metadataDigest?: string | null
  readonly completedAtMs: unknown
  readonly consumedAtMs: unknown
}

/** A flow's execution: what stored rows are asked for by. */
export interface ExecutionAddress {
  readonly flowName: string
  readonly executionId: string
}

/** What a rebuild wants to see of the store. Empty lists: nothing, and no answer is due. */
export interface Wanted {
  /** Run ids to look up among the runs that have a row. */
  readonly runs: readonly string[]
  /** Executions of which every clock and every completion is wanted. */
  readonly addresses: readonly ExecutionAddress[]
}

/** Stored rows that were wanted. */
export interface Answer {
  /** Those of the wanted runs that have a row. */
  readonly liveRuns?: Iterable<string>
  /** Clocks of the wanted executions. */
  readonly clocks?: Iterable<StoredClock>
  /** Completions of the wanted executions. */
  readonly completions?: Iterable<StoredCompletion>
  /** More of the same answer follows. Otherwise whatever was wanted and not given counts as missing. */
  readonly more?: boolean
}

/** What the findings come to. */
export type Verdict = "match" | "drift" | "refused" | "partial"

/** What a class of findings means: `drift` is repaired by a rebuild, any other refuses it. */
export type FindingClass = "refused" | "unjoined" | "unverifiable" | "drift"

/** The stable ids of findings. */
export type FindingId =
  | "entry_conflict"
  | "entry_out_of_order"
  | "payload_not_json"
  | "text_not_utf8"
  | "too_large"
  | "journal_shorter"
  | "journal_rewritten"
  | "checkpoint_missing"
  | "run_missing"
  | "clock_conflict"
  | "row_missing"
  | "digest_mismatch"
  | "digest_absent"
  | "digest_malformed"
  | "metadata_unchecked"
  | "unexplained_above_limit"
  | "clock_missing"
  | "clock_differs"
  | "clock_unexpected"
  | "stamp_differs"

/** One thing found: what, where, and both values. Completion values never appear, only their digests. */
export interface Finding {
  readonly id: FindingId
  readonly class: FindingClass
  /** The run whose journal says so. */
  readonly runId?: string
  /** The entry's seq, in decimal. */
  readonly seq?: string
  /** A byte offset in the entry's payload. */
  readonly offset?: number
  readonly flowName?: string
  readonly executionId?: string
  /** The clock's or the deferred's name. */
  readonly name?: string
  /** The member that differs, as the encoded fold names it. */
  readonly field?: string
  readonly expected?: unknown
  readonly found?: unknown
  /** All runs that record the row, in byte order. */
  readonly runs?: readonly string[]
}

/** What a rebuild reports. */
export interface Rebuilt {
  /** Runs with an entry of the four types, even a refused one, or a floor. */
  readonly runs: number
  /** Folded clocks. */
  readonly clocks: number
  /** Folded completions; one that two runs record counts twice. */
  readonly deferreds: number
  /** Stored completions that nothing explains; null when that cannot be said, because a run was left out or not folded. */
  readonly unexplained: number | null
}

/** What will run differently once a plan is applied. */
export interface Effects {
  /** Clocks that will be pending and were not, or not with this due time and deferred. */
  readonly clocksArmed: number
  /** Of these, clocks due at or before the time given. */
  readonly clocksOverdue: number
  /** Pending clocks that will be gone. */
  readonly pendingDeleted: number
  /** Pending clocks that will have completed. */
  readonly pendingCompleted: number
  /** Consumptions that will be gone, so that a completion is consumed once more. */
  readonly consumptionsCleared: number
  /** Completions that will count as consumed. */
  readonly consumptionsSet: number
}

/** Rows of one table to which one thing is done. */
export interface PlanPage {
  readonly table: "clocks" | "deferreds"
  readonly op: "delete" | "update" | "insert"
  readonly count: number
  /**
   * The rows as JSON text, an array of arrays, ready for a database's JSON functions. `delete`: flow, execution, name. Clocks:
   * flow, execution, name, deferred, due, completed. Completions: flow, execution, name, completed, consumed, where a null completed
   * leaves the stored one.
   */
  readonly rows: string
}

/** The exact changes that make the tables equal to the journal. Plain data: it can be stored and applied later. */
export interface Plan {
  /** A digest of what would be written. `apply` makes the plan again and compares. */
  readonly digest: string
  /** How many rows change. */
  readonly rows: number
  /** Rows that no store of UTF-8 text can hold. A plan that has any cannot be applied. */
  readonly unstorable: number
  readonly rebuilt: Rebuilt
  readonly effects: Effects
  /** A digest of every run and its last seq, as they were when the plan was made. */
  readonly headsDigest: string
  readonly pages: readonly PlanPage[]
}

/** A digest with the name of its algorithm. */
export interface StateDigest {
  /** `sum-xxh3-128`: additive and not cryptographic. `sha256`: over the sorted rows. */
  readonly algorithm: "sum-xxh3-128" | "sha256"
  /** Lower-case hexadecimal. */
  readonly value: string
}

/** What was covered of one run. */
export interface Head {
  readonly runId: string
  /** The floor's seq, in decimal. */
  readonly floor?: string
  /** The first seq folded, in decimal. */
  readonly first?: string
  /** The last seq folded, or else the floor's, in decimal. */
  readonly last?: string
  /** A digest of all that was recorded; absent for a run that was not folded. */
  readonly digest?: string
}

/** Entries that changed nothing, for one reason. */
export interface Ignored {
  readonly reason: string
  readonly meaning?: string
  readonly count: number
  readonly firstRunId?: string
  readonly firstSeq?: string
}

/** Something that could not be checked: neither a pass nor a finding. */
export interface NotChecked {
  readonly what: string
  readonly meaning: string
  readonly count: number
}

/** Something worth knowing that is no finding. */
export interface Note {
  readonly what: string
  readonly meaning: string
  readonly count: number
  readonly firstRunId: string
}

/** What a verification found. */
export interface Verification {
  readonly verdict: Verdict
  /** Every finding, in a fixed order, never capped. */
  readonly findings: readonly Finding[]
  /** How many there are of each id. */
  readonly counts: Readonly<Partial<Record<FindingId, number>>>
  /** The references that do not join, as the reference fold reports them. */
  readonly unjoined: readonly Unjoined[]
  readonly rebuilt: Rebuilt
  /** The changes to make; absent when nothing may be written, or clocks were not given. */
  readonly plan?: Plan
  readonly coverage: {
    readonly runs: number
    readonly entries: number
    readonly floors: number
    /** Runs that could not be folded. */
    readonly unfolded: number
    readonly headsDigest: string
    /** What the caller left out of scope, in words; absent when nothing was. */
    readonly leftOut?: string
  }
  /** What was covered of each run, in byte order; present when asked for. A later verification takes it as a baseline. */
  readonly heads?: readonly Head[]
  readonly ignored: readonly Ignored[]
  readonly notChecked: readonly NotChecked[]
  readonly notes: readonly Note[]
  /** The digest of the folded state, merged over runs. */
  readonly stateDigest: StateDigest
  /** Which function computed the digests of stored texts. */
  readonly digestFunction: "host" | "module"
}

/** How a verification is done. */
export interface VerifyOptions {
  /** Completions recorded without a sound digest become findings. */
  readonly strict?: boolean
  /** More stored completions than this that no entry explains become a finding. */
  readonly maxUnexplained?: number
  /** The time by which a clock to be armed counts as overdue, in ms. The module has no clock of its own. */
  readonly asOfMs?: number
  /** What an earlier report covered: its `heads`. */
  readonly baseline?: Iterable<Head>
  /** Give `heads` in the result. They grow with the number of runs. */
  readonly heads?: boolean
  /** Computes digests of stored texts in place of the module, such as Node's `crypto.hash`. Must give the same for every text. */
  readonly digest?: (text: string | Uint8Array) => string
}

/** A whole store in memory, or a part of one. */
export interface Store {
  /** In any order; they are sorted by the UTF-8 bytes of their ids. */
  readonly runs: Iterable<Run>
  /** The ids of runs that have a row. */
  readonly liveRuns: Iterable<string>
  readonly completions: Iterable<StoredCompletion>
  /** When given, drift of clocks is found and a plan is made. */
  readonly clocks?: Iterable<StoredClock>
}

/** What a run's fold covers, and what of it changed nothing. */
export interface RunReport {
  readonly entries: number
  readonly floor?: string
  readonly first?: string
  readonly last?: string
  readonly ignored: readonly Ignored[]
}

/** Whether a checkpoint's state keeps the fold that the entries give. */
export interface CheckpointCheck {
  readonly matches: boolean
  /** Why no fold was found in the state. */
  readonly found?: string
  /** Rows that differ, in fold order. */
  readonly differences: readonly { readonly expected?: Clock | Deferred; readonly found?: Clock | Deferred }[]
}

export type { ErrorDetails, Unjoined }
