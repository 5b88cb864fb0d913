/** The shapes of the fold as Effect Schemas. What they refuse in a kept fold, the module refuses too. */
import * as Schema from "effect/Schema"

/** Any text but the empty one: no trimming, no normalisation. */
const Name = Schema.String.check(Schema.isNonEmpty())
/** Milliseconds since 1970, whole, 0 to 2^53-1. */
const Time = Schema.Number.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
/** A SHA-256 in lower-case hexadecimal. */
const Digest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** A clock row. Its address is flow, execution and clock name; the deferred's name is no part of it. Times in ms since 1970. */
export const Clock = Schema.Struct({
  flowName: Name,
  executionId: Name,
  clockName: Name,
  deferredName: Name,
  dueAtMs: Time,
  completedAtMs: Schema.NullOr(Time)
})
/** A clock row. */
export type Clock = typeof Clock.Type

/**
 * A completion row. An absent digest was not recorded, so the stored text cannot be checked; a null metadata digest says that there is
 * no metadata. Times in ms since 1970.
 */
export const Deferred = Schema.Struct({
  flowName: Name,
  executionId: Name,
  deferredName: Name,
  completedAtMs: Schema.NullOr(Time),
  exitDigest: Schema.optionalKey(Digest),
  metadataDigest: Schema.optionalKey(Schema.NullOr(Digest)),
  consumedAtMs: Schema.NullOr(Time)
})
/** A completion row. */
export type Deferred = typeof Deferred.Type

/** The fold as a checkpoint keeps it: rows in the order in which they first appeared. */
export const Encoded = Schema.Struct({ clocks: Schema.Array(Clock), deferreds: Schema.Array(Deferred) })
/** The fold as a checkpoint keeps it. */
export type Encoded = typeof Encoded.Type

/**
 * Why a reference of the journal does not join: a floor that keeps no fold, a clock of a run that has no row, a clock that two runs
 * record, a completion that the store does not hold, or one whose stored text is another.
 */
export const FoldIncompleteReason = Schema.Literals([
  "checkpoint_missing",
  "run_missing",
  "clock_conflict",
  "row_missing",
  "digest_mismatch"
])
/** Why a reference of the journal does not join. */
export type FoldIncompleteReason = typeof FoldIncompleteReason.Type

/** A reference of the journal that the store does not join. A checkpoint has no flow and no name; its `executionId` is the run's id. */
export const Unjoined = Schema.Struct({
  reason: FoldIncompleteReason,
  executionId: Schema.String,
  flowName: Schema.optionalKey(Schema.String),
  name: Schema.optionalKey(Schema.String)
})
/** A reference of the journal that the store does not join. */
export type Unjoined = typeof Unjoined.Type
