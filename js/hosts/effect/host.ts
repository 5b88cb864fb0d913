/** What a store's dialect decides: how its transactions begin, and how the host for it works on a connection inside of one. */
import type * as Effect from "effect/Effect"
import type { Connection } from "effect/sql/SqlConnection"
import type { Fold } from "../../folds/deferred-clock/fold.js"
import type { Effects, Plan, Rebuilt, Verification, VerifyOptions } from "../../folds/deferred-clock/types.js"
import type { Allowances } from "../plans.js"
import type { PostgresNameMapping } from "../postgres/names.js"
import type { ScopeOptions } from "../scope.js"
import type { DeferredClockError } from "./errors.js"

/** How a store is found. */
export interface StoreOptions {
  /** What the store calls its tables, columns and event types, and in Postgres its schemas, where that differs from the defaults. */
  readonly names?: PostgresNameMapping
}

/** How a store is verified: what is in scope, and how strictly. */
export interface FoldVerifyOptions extends StoreOptions, VerifyOptions, ScopeOptions {}

/** How a plan is applied. Scope and names must be those with which it was made. */
export interface FoldApplyOptions extends FoldVerifyOptions, Allowances {}

/** What was written. */
export interface Applied {
  /** How many rows changed. */
  readonly rows: number
  readonly rebuilt: Rebuilt
  readonly effects: Effects
}

/** The host for a dialect. Its work is done on a connection inside a transaction that others begin and end. */
export interface Host {
  /** How a transaction that reads one snapshot begins, and one that writes. */
  readonly begin: { readonly read: string; readonly write: string }
  /** The typed error of what the driver threw; of a COMMIT, when asked. What is none of the driver's stays what it is. */
  readonly errorOf: (driverError: unknown, committing: boolean) => unknown
  /** Whether another writer's commit made a transaction impossible, so that it may succeed when it is done again. */
  readonly isInTheWay: (error: unknown) => boolean
  /** @param own whether the transaction was begun for this alone */
  readonly verify: (connection: Connection, options: FoldVerifyOptions, own: boolean) => Effect.Effect<Verification, DeferredClockError>
  /** Makes the plan, has it checked, and writes it. */
  readonly apply: (
    connection: Connection,
    options: FoldApplyOptions,
    check: (made: Plan) => void
  ) => Effect.Effect<Applied, DeferredClockError>
  /** One run's fold, to use before it is disposed of. */
  readonly fold: <Result>(
    connection: Connection,
    runId: string,
    upTo: number,
    options: StoreOptions,
    use: (fold: Fold) => Result
  ) => Effect.Effect<Result, DeferredClockError>
}
