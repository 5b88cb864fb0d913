/** Verifying a store, and making its tables equal to its journal. */
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { checkOptions } from "../../core/options.js"
import type { Plan, Rebuilt, Verification } from "../../folds/deferred-clock/types.js"
import { checkIsPlan, checkStale, planOf } from "../plans.js"
import { failureOf, type DeferredClockError } from "./errors.js"
import type { Applied, FoldApplyOptions, FoldVerifyOptions } from "./host.js"
import { reading, writing, type DurableWriter } from "./transactions.js"

const verifyOptionNames = [
  "strict",
  "maxUnexplained",
  "asOfMs",
  "baseline",
  "heads",
  "digest",
  "names",
  "runs",
  "except"
] as const satisfies readonly (keyof FoldVerifyOptions)[]

const applyOptionNames = [...verifyOptionNames, "allowDeletePending", "allowUnconsume"] as const

/** What a check throws, as a failure. */
const checked = <Result>(check: () => Result): Effect.Effect<Result, DeferredClockError> => Effect.try({ try: check, catch: failureOf })

/**
 * Verifies the store in one snapshot: its journal folded and joined with its tables. Says what it found; whatever does not join is in the
 * result and no failure. Writers may go on meanwhile.
 *
 * Inside a transaction of the caller's it sees what that sees, and in Postgres fails with `nested_transaction` when that is no snapshot
 * (`READ COMMITTED`). Other failures: `store_table_missing`, `store_column_missing`, `store_busy`, `store_unreadable`, `option_unknown`, ….
 */
export const verify = Effect.fn("DeferredClockFold.verify")(function* (
  options?: FoldVerifyOptions
): Effect.fn.Return<Verification, DeferredClockError, SqlClient> {
  const given = yield* checked(() => checkOptions(options, verifyOptionNames))
  return yield* reading((host, connection, own) => host.verify(connection, given, own))
})

/**
 * The changes that make the tables equal to the journal: plain data, which can be kept and applied later. Reads only. Fails with
 * {@link FoldIncomplete} when something does not join, and as {@link verify}.
 */
export const plan = Effect.fn("DeferredClockFold.plan")(function* (
  options?: FoldVerifyOptions
): Effect.fn.Return<Plan, DeferredClockError, SqlClient> {
  const verification = yield* verify(options)
  return yield* checked(() => planOf(verification))
})

const write = (options: FoldApplyOptions, check: (made: Plan) => void): Effect.Effect<Applied, DeferredClockError, SqlClient | DurableWriter> =>
  writing((host, connection) => host.apply(connection, options, check))

/**
 * Applies a plan in one transaction of the {@link DurableWriter}'s. The plan is made again there and compared, so a store that changed
 * meanwhile is refused, and so is a plan that was applied already. When another writer's commit makes the transaction impossible, all of
 * it is done again, three times at the most.
 *
 * Fails with `stale_plan`; `deletes_pending` and `clears_consumption` unless allowed; {@link FoldIncomplete}; `row_not_writable`;
 * `rows_changed_mismatch`; `nested_transaction` inside a transaction of the caller's, where the isolation cannot be chosen any more;
 * `store_busy` when another rebuild is at work, or other writers were in the way each time. Nothing is written then.
 */
export const apply = Effect.fn("DeferredClockFold.apply")(function* (
  planned: Plan,
  options?: FoldApplyOptions
): Effect.fn.Return<Applied, DeferredClockError, SqlClient | DurableWriter> {
  const given = yield* checked(() => {
    checkIsPlan(planned)
    return checkOptions(options, applyOptionNames)
  })
  return yield* write(given, (made) => checkStale(planned, made))
})

/**
 * Makes both tables equal to the journal, in one transaction that folds once, and says what was folded. Pending clocks that no entry
 * explains are deleted and consumptions that none records are cleared, unless `allowDeletePending` or `allowUnconsume` is false: who
 * wants to look first makes a {@link plan}. Fails as {@link apply}, but for `stale_plan`.
 */
export const rebuild = Effect.fn("DeferredClockFold.rebuild")(function* (
  options?: FoldApplyOptions
): Effect.fn.Return<Rebuilt, DeferredClockError, SqlClient | DurableWriter> {
  const given = yield* checked(() => checkOptions(options, applyOptionNames))
  return (yield* write({ allowDeletePending: true, allowUnconsume: true, ...given }, () => {})).rebuilt
})
