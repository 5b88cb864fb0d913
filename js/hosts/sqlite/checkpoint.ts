/**
 * Checkpoints from a store: what a compaction calls, inside its own transaction, before it marks anything compacted.
 */
import { invalid } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import { Fold } from "../../folds/deferred-clock/fold.js"
import { checkpointKey } from "../../folds/deferred-clock/names.js"
import type { CheckpointCheck, Encoded } from "../../folds/deferred-clock/types.js"
import { connect, reading, type Connection, type SqliteDatabase } from "./connection.js"
import { FloorReader } from "./floors.js"
import { JournalReader, pushSegment } from "./journal.js"
import { namesOf, type NameMapping } from "./names.js"
import { checkSchema } from "./schema.js"
import { runAll } from "./verify.js"

/** How one run is read. */
export interface CaptureOptions {
  /** What the store calls its tables, columns and event types. */
  readonly names?: NameMapping
}

/** @internal One run's fold, to use before it is disposed of. */
export function foldOf<Result>(
  db: SqliteDatabase,
  runId: string,
  upTo: number,
  options: CaptureOptions | undefined,
  use: (fold: Fold) => Result
): Result {
  const { names } = checkOptions(options, ["names"])
  const connection = connect(db)
  return reading(connection, () => runAll(folding(connection, runId, upTo, names, use)))
}

/** The work of folding one run, in steps. The caller holds the snapshot. */
export function* folding<Result>(
  connection: Connection,
  runId: string,
  upTo: number,
  mapping: NameMapping | undefined,
  use: (fold: Fold) => Result
): Generator<undefined, Result, boolean | undefined> {
  const names = namesOf(mapping)
  if (typeof runId !== "string") throw invalid("argument_invalid", "a run's id", runId)
  const { utf8 } = checkSchema(connection, names, ["journal", "checkpoints"])
  const scope = { kind: "runs", ids: [runId] } as const
  const floors = new FloorReader(connection, names, scope, utf8)
  const floor = floors.floorOf(runId)
  const fold = new Fold({ runId, floors: floor === undefined ? [] : [floors.read(floor)], upTo })
  try {
    for (const segment of new JournalReader(connection, names, scope, utf8).segmentsOf(runId)) {
      pushSegment(segment, fold)
      yield
    }
    return use(fold)
  } finally {
    fold.dispose()
  }
}

/**
 * One run's fold up to a seq, inclusive, from its floor. Joins the caller's transaction.
 *
 * @throws `fold_incomplete` when the floor keeps no fold; `bound_below_floor`; `payload_not_json`, …
 */
export function capture(db: SqliteDatabase, runId: string, upTo: number, options?: CaptureOptions): Encoded {
  return foldOf(db, runId, upTo, options, (fold) => fold.state())
}

/** The state of a checkpoint at `upTo`: the base's members, and the fold. */
export function checkpointState(
  db: SqliteDatabase,
  runId: string,
  upTo: number,
  base?: Record<string, unknown>,
  options?: CaptureOptions
): Record<string, unknown> {
  if (base !== undefined && (typeof base !== "object" || base === null || Array.isArray(base))) {
    throw invalid("base_not_object", "a JSON object as the base", base)
  }
  return { ...base, [checkpointKey]: capture(db, runId, upTo, options) }
}

/**
 * The state of a checkpoint at `upTo` as text; the base's own spelling is kept. A compaction calls this in its transaction, before it
 * marks the checkpoint compacted or deletes an entry: afterwards the entries are no longer there to fold.
 */
export function checkpointStateText(
  db: SqliteDatabase,
  runId: string,
  upTo: number,
  baseText?: string,
  options?: CaptureOptions
): string {
  return foldOf(db, runId, upTo, options, (fold) => fold.checkpointStateText(baseText))
}

/** Whether a checkpoint's state keeps exactly what the entries say up to `upTo`: proof, before they are deleted. */
export function checkCheckpoint(
  db: SqliteDatabase,
  runId: string,
  upTo: number,
  stateText: string,
  options?: CaptureOptions
): CheckpointCheck {
  return foldOf(db, runId, upTo, options, (fold) => fold.checkCheckpoint(stateText))
}
