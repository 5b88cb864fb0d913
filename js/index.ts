/**
 * What all subpaths share: errors and their guards, and the version. Loads nothing.
 *
 * The folds are `journal-fold/deferred-clock`, and hosts and tools have subpaths of their own.
 */
export {
  EngineTrapError,
  FoldIncomplete,
  isFoldIncomplete,
  isJournalFoldError,
  JournalFoldError,
  type ErrorCode,
  type ErrorDetails,
  type Unjoined
} from "./core/errors.js"
export { version } from "./version.js"
