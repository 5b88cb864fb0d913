/**
 * `journal-fold/observer-log`: a durable stream of rows with snapshots inside it and a hint outside it, and the aggregate that they fold to.
 *
 * Sequences, heads, ids, progress and epochs are 64 bits wide: `bigint` here, decimal text in JSON.
 */
export { init, type ModuleSource } from "../../core/engine.js"
export type { FailureDetails, RefusalDetails } from "../../core/errors.js"
export { Aggregate, aggregateOf, capture, fromCheckpoint, initial, reduce, type Pending } from "./aggregate.js"
export { headAfter, planAppend, snapshotDue, snapshotInterval } from "./cadence.js"
export { ObserverLog, ObserverLogSync, type ObserverLogOptions, type Standing } from "./log.js"
export { MemoryStore } from "./memory-store.js"
export {
  append,
  appendSync,
  recoverTail,
  recoverTailSync,
  restore,
  restoreSync,
  type Appended,
  type Recovered,
  type Restored
} from "./protocol.js"
export {
  Rebuild,
  verifyRebuild,
  verifyStore,
  verifyStoreSync,
  type Stream,
  type StreamNumbers,
  type VerifyStoreOptions
} from "./rebuild.js"
export { decodeRow, encodeRow } from "./rows.js"
export {
  isStoreConflict,
  isStoreRefused,
  StoreConflict,
  StoreRefused,
  type DurableStore,
  type DurableStoreSync,
  type StreamReader,
  type StreamReaderSync
} from "./store.js"
export type {
  Advanced,
  AppendPlan,
  ArmLimits,
  Armed,
  Change,
  Fired,
  HintState,
  HintVerdict,
  Pair,
  PairInput,
  Publication,
  RestoredFrom,
  RestoreForecast,
  Row,
  RowInput,
  RowPage,
  Rows,
  Segment,
  State,
  StateInput,
  Status,
  StoredRow,
  StreamFinding,
  StreamFindingId,
  StreamVerification,
  U64
} from "./types.js"
