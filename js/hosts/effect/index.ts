/**
 * `journal-fold/effect`: the deferred/clock fold of an engine store on Effect, in SQLite or Postgres.
 *
 * The effects need an `SqlClient` alone, and those that write a {@link DurableWriter} beside it. Whatever goes wrong is in the error
 * channel: {@link FoldIncomplete}, to be caught by its tag, or a `JournalFoldError`, to be told apart by its `code`. An interrupted effect
 * stops between two queries or two slices of work, and has written nothing.
 */
export { isJournalFoldError, JournalFoldError, type ErrorCode, type ErrorDetails } from "../../core/errors.js"
export { checkpointKey, eventTypes } from "../../folds/deferred-clock/names.js"
export type { CheckpointCheck, Finding, Plan, Rebuilt, Verification } from "../../folds/deferred-clock/types.js"
export { capture, checkCheckpoint, checkpointState, checkpointStateText } from "./checkpoint.js"
export { FoldIncomplete, type DeferredClockError } from "./errors.js"
export type { Applied, FoldApplyOptions, FoldVerifyOptions, StoreOptions } from "./host.js"
export { apply, plan, rebuild, verify } from "./rebuild.js"
export { projection, reduce, type JournalEntry } from "./reduce.js"
export { Clock, Deferred, Encoded, FoldIncompleteReason, Unjoined } from "./schemas.js"
export { clockKey, deferredKey, encode, fromCheckpoint, initial, type State } from "./state.js"
export { DurableWriter, layerSql } from "./transactions.js"
