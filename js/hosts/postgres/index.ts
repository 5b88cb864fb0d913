/**
 * `journal-fold/postgres`: a workflow engine's store in Postgres, with a client or a pool of `pg`, or a PGlite database.
 *
 * `verify` reads; `plan` says what to change; `apply` and `rebuild` change it in one transaction. `capture` and the checkpoint functions
 * serve a compaction. A store of another shape is served by views, or by mapped names.
 */
export { apply, plan, rebuild, type Applied, type ApplyOptions } from "./apply.js"
export {
  capture,
  checkCheckpoint,
  checkpointState,
  checkpointStateText,
  type CaptureOptions
} from "./checkpoint.js"
export type { PGliteDatabase, PostgresClient, PostgresDatabase, PostgresPool } from "./connection.js"
export { rebuildLockKey } from "./lock.js"
export type { PostgresNameMapping } from "./names.js"
export { isPostgresUrl, openUrl, type OpenUrl, type OpenUrlOptions } from "./open.js"
export { verify, verifyUrl, type PostgresVerifyOptions, type Progress, type VerifyUrlOptions } from "./verify.js"
