/**
 * `journal-fold/deferred-clock`: a workflow engine's durable clocks and deferred completions.
 *
 * Payloads cross into the module as text. Entries whose payload is a live value are accepted wherever text is, but have to be turned
 * into text first, which costs more than folding them in plain JavaScript would: the gain is on stored text.
 */
export { init, type ModuleSource } from "../../core/engine.js"
export { checkpointKey, eventTypes } from "./names.js"
export {
  capture,
  checkCheckpoint,
  checkpointState,
  checkpointStateText,
  Fold,
  fromCheckpoint,
  fromCheckpointText,
  initial,
  reduce,
  type FoldOptions
} from "./fold.js"
export { Rebuild, type RebuildOptions } from "./rebuild.js"
export { orThrow, verifyRebuild } from "./verify.js"
export type {
  Answer,
  CheckpointCheck,
  Clock,
  Deferred,
  Effects,
  Encoded,
  Entry,
  EntryText,
  ExecutionAddress,
  Finding,
  FindingClass,
  FindingId,
  Floor,
  Head,
  Ignored,
  NotChecked,
  Note,
  Page,
  Plan,
  PlanPage,
  Rebuilt,
  Run,
  RunReport,
  Seq,
  StateDigest,
  Store,
  StoredClock,
  StoredCompletion,
  Unjoined,
  Verdict,
  Verification,
  VerifyOptions,
  Wanted
} from "./types.js"
