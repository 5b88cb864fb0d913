/** What the effects fail with. Nothing that a store or a caller's argument does is a defect. */
import * as Schema from "effect/Schema"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { isFoldIncomplete, isJournalFoldError, JournalFoldError, type ErrorCode } from "../../core/errors.js"
import { Unjoined } from "./schemas.js"

/**
 * The journal refers to what the store does not hold, so nothing is written. `unjoined` lists every such reference, in a fixed order:
 * checkpoints, then clocks, then completions.
 */
export class FoldIncomplete extends Schema.TaggedError<FoldIncomplete>("@smthrs/engine-store/DeferredClockFold/FoldIncomplete")(
  "@smthrs/engine-store/DeferredClockFold/FoldIncomplete",
  {
    code: Schema.Literal("fold_incomplete"),
    message: Schema.String,
    unjoined: Schema.Array(Unjoined)
  }
) {}

/** What every effect of this module may fail with. */
export type DeferredClockError = FoldIncomplete | JournalFoldError

/** The error of what a host threw. What is none of this package's comes from a function of the caller's or from a driver. */
export function failureOf(thrown: unknown): DeferredClockError {
  if (isFoldIncomplete(thrown)) {
    return new FoldIncomplete({ code: "fold_incomplete", message: thrown.message, unjoined: thrown.unjoined })
  }
  if (isJournalFoldError(thrown)) return thrown
  return new JournalFoldError("store_unreadable", `the store cannot be read: ${String(thrown)}`, {}, { cause: thrown })
}

/** What an `SqlError` means where the driver's own error tells no more. All others: the store cannot be read. */
const byReason: Readonly<Record<string, ErrorCode>> = {
  SerializationError: "store_busy",
  DeadlockError: "store_busy",
  LockTimeoutError: "store_busy",
  StatementTimeoutError: "store_busy",
  AuthorizationError: "store_read_only",
  UniqueViolation: "row_not_writable",
  ConstraintError: "row_not_writable"
}

/**
 * The typed error of an `SqlError`: as the host takes the driver's own error, with the `SqlError` as its cause.
 *
 * @param hostError how the host types what its driver throws; gives back what is none of the driver's
 */
export function sqlFailure(error: SqlError, hostError: (driverError: unknown) => unknown): JournalFoldError {
  const typed = hostError(error.reason.cause)
  return isJournalFoldError(typed)
    ? new JournalFoldError(typed.code, typed.message, typed.details, { cause: error })
    : new JournalFoldError(byReason[error.reason._tag] ?? "store_unreadable", error.message, {}, { cause: error })
}

/** Whether an error came of an `SqlError` that says, whatever the driver, that another writer was in the way. */
export function isConflict(error: unknown): boolean {
  const { cause } = error as { readonly cause?: unknown }
  return isSqlError(cause) && ["SerializationError", "DeadlockError", "UniqueViolation"].includes(cause.reason._tag)
}
