/** What every host checks before and while it applies a plan. */
import { invalid, JournalFoldError } from "../core/errors.js"
import type { Plan, PlanPage, Verification } from "../folds/deferred-clock/types.js"
import { orThrow } from "../folds/deferred-clock/verify.js"

/** What a plan may do that changes what will run. */
export interface Allowances {
  /** Pending clocks may be deleted: what they would have started will not run. */
  readonly allowDeletePending?: boolean
  /** Consumptions may be cleared: a completion will be consumed once more. */
  readonly allowUnconsume?: boolean
}

/**
 * The plan of a verification.
 *
 * @throws `fold_incomplete`; `plan_refused` when the work was stopped
 */
export function planOf(verification: Verification): Plan {
  const { plan: made } = orThrow(verification)
  if (made === undefined) {
    throw new JournalFoldError("plan_refused", `there is no plan, because the verdict is ${verification.verdict}`)
  }
  return made
}

/** @throws `argument_invalid` for what is no plan */
export function checkIsPlan(planned: unknown): asserts planned is Plan {
  if (typeof planned !== "object" || planned === null || typeof (planned as Plan).digest !== "string") {
    throw invalid("argument_invalid", "a plan", planned)
  }
}

/** @throws `stale_plan` when the plan made now is not the one that was made before */
export function checkStale(planned: Pick<Plan, "digest">, made: Plan): void {
  if (made.digest !== planned.digest) {
    throw new JournalFoldError(
      "stale_plan",
      "the store has changed since the plan was made, or the plan was applied already: plan again",
      { expected: planned.digest, found: made.digest }
    )
  }
}

/**
 * @throws `row_not_writable` for a row that no store of UTF-8 text can hold; `deletes_pending` and `clears_consumption` unless allowed
 */
export function checkAllowed({ effects, unstorable }: Plan, { allowDeletePending, allowUnconsume }: Allowances): void {
  if (unstorable > 0) {
    throw new JournalFoldError(
      "row_not_writable",
      `${unstorable} planned rows have a name with an unpaired surrogate, which a store of UTF-8 text cannot hold`
    )
  }
  if (effects.pendingDeleted > 0 && allowDeletePending !== true) {
    throw new JournalFoldError(
      "deletes_pending",
      `the plan deletes ${effects.pendingDeleted} pending clocks, which no entry explains: what they would have started will not run. Set allowDeletePending to go on`
    )
  }
  if (effects.consumptionsCleared > 0 && allowUnconsume !== true) {
    throw new JournalFoldError(
      "clears_consumption",
      `the plan clears ${effects.consumptionsCleared} consumptions, which no entry records: they will be consumed once more. Set allowUnconsume to go on`
    )
  }
}

/** @throws `rows_changed_mismatch` when a page changed more or fewer rows than it has */
export function checkChanged({ op, count }: PlanPage, table: string, changed: number): void {
  if (changed !== count) {
    throw new JournalFoldError(
      "rows_changed_mismatch",
      `expected to ${op} ${count} rows of ${table}, found ${changed} changed; everything was rolled back`,
      { table, expected: String(count), found: String(changed) }
    )
  }
}

/**
 * Once all is written: a trigger, a conflict clause or a column's type may have made something else of a row that was counted.
 *
 * @throws `rows_changed_mismatch` when the store has other rows than those planned
 */
export function checkWritten({ op, count }: PlanPage, table: string, found: number): void {
  if (found !== count) {
    throw new JournalFoldError(
      "rows_changed_mismatch",
      `expected ${count} rows of ${table} as planned once they were written (${op}), found ${found}: a trigger, a conflict clause or a column's type changed them; everything was rolled back`,
      { table, expected: String(count), found: String(found) }
    )
  }
}
