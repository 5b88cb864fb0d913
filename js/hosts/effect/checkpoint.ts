/** Checkpoints from a store: what a compaction asks for, inside its own transaction, before it marks anything compacted. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { invalid } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import type { Fold } from "../../folds/deferred-clock/fold.js"
import { checkpointKey } from "../../folds/deferred-clock/names.js"
import type { CheckpointCheck, Encoded } from "../../folds/deferred-clock/types.js"
import { failureOf, type DeferredClockError } from "./errors.js"
import type { StoreOptions } from "./host.js"
import { stateOf, type State } from "./state.js"
import { reading } from "./transactions.js"

const folded = <Result>(
  runId: string,
  upTo: number,
  options: StoreOptions | undefined,
  use: (fold: Fold) => Result
): Effect.Effect<Result, DeferredClockError, SqlClient> =>
  Effect.flatMap(
    Effect.try({ try: () => checkOptions(options, ["names"]), catch: failureOf }),
    (checked) => reading((host, connection) => host.fold(connection, runId, upTo, checked, use))
  )

/**
 * One run's fold up to a seq, inclusive, from its floor. Joins the caller's transaction, of any isolation.
 *
 * Fails with {@link FoldIncomplete} when the floor keeps no fold; `bound_below_floor`, `payload_not_json`, `entry_conflict`, ….
 */
export const capture = Effect.fn("DeferredClockFold.capture")(function* (runId: string, upTo: number, options?: StoreOptions): Effect.fn.Return<
  State,
  DeferredClockError,
  SqlClient
> {
  return stateOf(yield* folded(runId, upTo, options, (fold) => fold.state()))
})

/**
 * The state of a checkpoint at `upTo`: the base's members, and the fold under `checkpointKey`. Fails as {@link capture}, and with
 * `base_not_object`.
 */
export const checkpointState = Effect.fn("DeferredClockFold.checkpointState")(function* (
  runId: string,
  upTo: number,
  base?: Readonly<Record<string, unknown>>,
  options?: StoreOptions
): Effect.fn.Return<Record<string, unknown>, DeferredClockError, SqlClient> {
  if (base !== undefined && (typeof base !== "object" || base === null || Array.isArray(base))) {
    return yield* Effect.fail(invalid("base_not_object", "a JSON object as the base", base))
  }
  const kept: Encoded = yield* folded(runId, upTo, options, (fold) => fold.state())
  return { ...base, [checkpointKey]: kept }
})

/**
 * The state of a checkpoint at `upTo` as text; the base's own spelling is kept. A compaction asks for it in its transaction, before it marks
 * the checkpoint compacted or deletes an entry: afterwards the entries are no longer there to fold. Fails as {@link checkpointState}.
 */
export const checkpointStateText = Effect.fn("DeferredClockFold.checkpointStateText")(function* (
  runId: string,
  upTo: number,
  baseText?: string,
  options?: StoreOptions
): Effect.fn.Return<string, DeferredClockError, SqlClient> {
  return yield* folded(runId, upTo, options, (fold) => fold.checkpointStateText(baseText))
})

/** Whether a checkpoint's state keeps exactly what the entries say up to `upTo`: proof, before they are deleted. Fails as {@link capture}. */
export const checkCheckpoint = Effect.fn("DeferredClockFold.checkCheckpoint")(function* (
  runId: string,
  upTo: number,
  stateText: string,
  options?: StoreOptions
): Effect.fn.Return<CheckpointCheck, DeferredClockError, SqlClient> {
  return yield* folded(runId, upTo, options, (fold) => fold.checkCheckpoint(stateText))
})
