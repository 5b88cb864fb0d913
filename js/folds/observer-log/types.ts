/** What the observer log's functions take and give. 64-bit numbers come out as `bigint`; objects that hold them have a `toJSON`. */
import type { JournalFoldError } from "../../core/errors.js"
import type { StateDigest, Verdict } from "../deferred-clock/types.js"
import type { U64 } from "./numbers.js"

export type { U64 }

/** A conversation and its progress, or the epoch of its arm. */
export type Pair = readonly [conversationId: bigint, value: bigint]
/** The same as it is taken. */
export type PairInput = readonly [conversationId: U64, value: U64]

/** An aggregate as its two lists, each in ascending order of the conversation. An arm's epoch is always its conversation's progress. */
export interface State {
  /** Every tracked conversation and its progress. */
  readonly progress: readonly Pair[]
  /** Every armed conversation and its epoch. */
  readonly armed: readonly Pair[]
}

/** The same as it is taken; the lists may be in any order. */
export interface StateInput {
  readonly progress: readonly PairInput[]
  readonly armed: readonly PairInput[]
}

/** A row: what a stored text says. */
export type Row =
  | { readonly row: "track" | "advance"; readonly conversationId: bigint; readonly observerProgress: bigint }
  | { readonly row: "arms"; readonly arms: readonly Pair[] }
  | { readonly row: "snapshot"; readonly progress: readonly Pair[]; readonly armed: readonly Pair[] }

/** The same as it is taken. */
export type RowInput =
  | { readonly row: "track" | "advance"; readonly conversationId: U64; readonly observerProgress: U64 }
  | { readonly row: "arms"; readonly arms: readonly PairInput[] }
  | ({ readonly row: "snapshot" } & StateInput)

/** A row as a store holds it. */
export interface StoredRow {
  /** Its place in the stream. */
  readonly sequence: U64
  /** Its text, or the text's UTF-8. */
  readonly payload: string | Uint8Array
}

/** Rows as bytes: the fastest form. */
export interface RowPage {
  /** All payloads, one behind another. */
  readonly bytes: Uint8Array
  /** Where each payload ends. */
  readonly ends: Uint32Array
  /** Each row's place in the stream. */
  readonly sequences: BigUint64Array
}

/** Rows in ascending sequence: one page, or rows and pages to iterate. */
export type Rows = RowPage | Iterable<StoredRow | RowPage>

/** An arm that an advance fired. */
export interface Fired {
  readonly conversationId: bigint
  /** The epoch at which it was installed. */
  readonly refusedEpoch: bigint
}

/** An arm that fired in an append whose outcome was only found out afterwards. */
export interface Publication extends Fired {
  /** The progress that fired it. */
  readonly observerProgress: bigint
}

/** What a request to arm says of one of its entries. */
export interface Status {
  readonly conversationId: bigint
  /** The epoch that the entry names. */
  readonly refusedEpoch: bigint
  /** The conversation's progress. */
  readonly current: bigint
  /** Whether the entry is armed: its epoch is the progress. If not, the progress has moved on already. */
  readonly armed: boolean
}

/** What bounds a request to arm. */
export interface ArmLimits {
  /** Entries allowed. Default: no limit. */
  readonly maxEntries?: U64
  /** Conversations that a connection may track. Default: no limit. */
  readonly connectionLimit?: U64
  /** Those that the asking connection tracks already; repeats count once. */
  readonly connectionTracks?: Iterable<U64>
}

/** What becomes of an append: the payloads to write together, and the head behind them. */
export interface AppendPlan {
  /** The head at which the first of them is to stand. */
  readonly head: bigint
  /** The snapshot's text when one is due, and the row's. */
  readonly payloads: readonly string[]
  /** The head afterwards. */
  readonly nextHead: bigint
}

/** What a restore made of the hint. */
export type HintVerdict = "used" | "missing" | "beyond_log" | "not_a_snapshot"

/** Where a restore began and what it did. */
export interface RestoredFrom {
  readonly hint: HintVerdict
  /** The sequence from which rows were folded. */
  readonly foldedFrom: bigint
  /** How many rows were folded. */
  readonly rows: bigint
  /** Whether a snapshot was appended. */
  readonly snapshotAppended: boolean
}

/** What every change of a log says. */
export interface Change {
  /** The head now. */
  readonly head: bigint
  /** Arms that fired in appends before, whose outcome was only found out now: they are to be reported like those that fire at once. */
  readonly publications: readonly Publication[]
  /** How often the hint could not be recorded. It does no harm: a later restore reads more. */
  readonly hintFailures: number
  /** The restore that came first, if there was one. */
  readonly restored?: RestoredFrom
}

/** What an advance did. */
export interface Advanced extends Change {
  /** The arm that it fired. */
  readonly fired?: Fired
}

/** What a request to arm did. */
export interface Armed extends Change {
  /** Of each entry, in the request's order, whether it is armed. */
  readonly statuses: readonly Status[]
}

/** Ids of what can be found in a stream. */
export type StreamFindingId =
  | "row_malformed"
  | "row_version"
  | "row_sequence"
  | "corrupt_row"
  | "snapshot_disagrees"
  | "page_short"
  | "rows_missing_at_end"
  | "head_below_rows"
  | "hint_too_high"
  | "hint_wrong"
  | "hint_unreadable"
  | "hint_disagrees"

/** One thing found in a stream. */
export interface StreamFinding {
  readonly id: StreamFindingId
  /** What it means for the whole: nothing may rest on the stream (`refused`), or a number beside it is wrong (`drift`). */
  readonly class: "refused" | "drift"
  /** The sequence of the row concerned, in decimal. */
  readonly seq?: string
  /** A byte offset in the row's text. */
  readonly offset?: number
  /** The list of a snapshot that differs. */
  readonly field?: "progress" | "armed"
  readonly expected?: unknown
  readonly found?: unknown
}

/** Rows that were folded without a break. */
export interface Segment {
  /** The first of them: a snapshot, unless it is the beginning of the stream. */
  readonly first: bigint
  readonly last: bigint
  /** Whether it begins at a snapshot that was believed, because nothing before it could be compared. */
  readonly believed: boolean
}

/** What a stored hint is worth. */
export type HintState = "not_needed" | "good" | "missing" | "stale" | "too_high" | "wrong" | "unreadable" | "disagrees"

/** What a verification of a stream says. */
export interface StreamVerification {
  readonly verdict: Verdict
  /** Everything found: in the order of the stream, then the end, then the hint. */
  readonly findings: readonly StreamFinding[]
  readonly counts: Readonly<Partial<Record<StreamFindingId, number>>>
  readonly coverage: {
    /** Rows that came. */
    readonly rows: bigint
    /** Rows that were folded, or believed. */
    readonly folded: bigint
    /** Sound rows that were read but not folded, because the state was not known there. */
    readonly notFolded: bigint
    /** Rows missing between those that came. */
    readonly missing: bigint
    readonly snapshots: bigint
    /** The first sequence there is, when it is not 0. */
    readonly prunedBelow?: bigint
    /** The last sequence that came. */
    readonly last?: bigint
    /** The latest snapshot from which a fold can begin. */
    readonly lastSnapshot?: bigint
    readonly segments: readonly Segment[]
  }
  /** The sequence that the next row would take. */
  readonly head: bigint
  /** The stored head, if it was given; none counts as 0. */
  readonly storedHead?: bigint
  /** The hint, if it was given. */
  readonly hint?: {
    readonly state: HintState
    /** The stored number. */
    readonly stored?: bigint
    /** The number of the latest snapshot, which is what the hint should be; 0 for none. */
    readonly latest: bigint
  }
  /** What a restore would do now, if the hint was given and everything was looked at. */
  readonly restore?: RestoreForecast
  /** What could not be checked: neither a pass nor a finding. */
  readonly notChecked: readonly { readonly what: string; readonly meaning: string; readonly count: bigint }[]
  /** What else is worth knowing. */
  readonly notes: readonly { readonly what: string; readonly meaning: string; readonly count: bigint; readonly firstSeq: bigint }[]
  /** How large the state at the end is, unless it is not known. */
  readonly state?: { readonly conversations: number; readonly armed: number }
  /** The digest of the state at the end, unless it is not known. */
  readonly stateDigest?: StateDigest
}

/** What a restore would do. */
export interface RestoreForecast {
  readonly hint?: HintVerdict
  readonly foldedFrom?: bigint
  /** Why it would fail. */
  readonly error?: JournalFoldError
  /** How many rows it would fold. */
  readonly rows?: bigint
  readonly head?: bigint
  readonly appendsSnapshot?: boolean
  /** The hint that would be stored afterwards. */
  readonly hintAfter?: bigint
}
