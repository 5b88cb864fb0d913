/** What the engine does before it takes up any work: it looks whether its tables say what its journal says. */
import { Effect } from "effect"
import { apply, plan, verify, type Verification } from "journal-fold/effect"

/** What was found at boot, and what was done about it. */
export interface Boot {
  /** What the store was like; after a repair it matches. */
  readonly found: "match" | "drift"
  /** How many rows were repaired. */
  readonly repaired: number
  readonly coverage: Verification["coverage"]
}

/**
 * Verifies the store and repairs what a rebuild can repair. Fails with `FoldIncomplete`, which lists everything that does not join, when
 * the store must not be worked on; and with `deletes_pending` or `clears_consumption` when a repair would change what runs, which a person
 * has to allow.
 *
 * @param nowMs by which clocks are overdue
 */
export const boot = Effect.fn("engine.boot")(function* (nowMs: number) {
  const { verdict, coverage } = yield* verify({ asOfMs: nowMs })
  if (verdict === "match") return { found: verdict, repaired: 0, coverage } satisfies Boot
  // A refused store has no plan, and says here why.
  const repair = yield* plan({ asOfMs: nowMs })
  yield* Effect.logInfo("repairing the tables from the journal", repair.rows, repair.effects)
  const { rows } = yield* apply(repair, { asOfMs: nowMs })
  return { found: "drift", repaired: rows, coverage } satisfies Boot
})
