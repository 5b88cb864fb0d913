/**
 * `journal-fold/sqlite`: a workflow engine's store in SQLite, with a `better-sqlite3` database or `node:sqlite`'s `DatabaseSync`.
 *
 * `verify` reads; `plan` says what to change; `apply` and `rebuild` change it in one transaction. `capture` and the checkpoint functions
 * serve a compaction. A store of another shape is served by views, or by mapped names. `ObserverLogStore` keeps a stream of an observer log.
 */
export { apply, plan, rebuild, type Applied, type ApplyOptions } from "./apply.js"
export {
  capture,
  checkCheckpoint,
  checkpointState,
  checkpointStateText,
  type CaptureOptions
} from "./checkpoint.js"
export type { BetterSqlite3Database, NodeSqliteDatabase, SqliteDatabase } from "./connection.js"
export type { NameMapping } from "./names.js"
export { ObserverLogStore, type Durability, type ObserverLogStoreOptions } from "./observer-log-store.js"
export { openFile, type OpenFile, type OpenOptions } from "./open.js"
export { verifyFile, type VerifyFileOptions } from "./verify-file.js"
export { verify, type Progress, type SqliteVerifyOptions } from "./verify.js"
