/**
 * Checkpoints from a store: what a compaction calls, inside its own transaction, before it marks anything compacted.
 */
import { invalid } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import { Fold } from "../../folds/deferred-clock/fold.js"
import { checkpointKey } from "../../folds/deferred-clock/names.js"
import type { CheckpointCheck, Encoded, Floor } from "../../folds/deferred-clock/types.js"
import { withSession, type Connection, type PostgresDatabase } from "./connection.js"
import { FloorReader, namingSeqs, segmentsOf } from "./journal.js"
import { namesOf, type PostgresNameMapping, type PostgresNames } from "./names.js"
import { reading } from "./snapshot.js"
import { checkpointStatements, journalStatements } from "./statements.js"
import { lookAt } from "./verify.js"

/** How one run is read. */
export interface CaptureOptions {
  /** What the store calls its schemas, tables, columns and event types. */
  readonly names?: PostgresNameMapping
  /** Stops the work: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal
}

/** @internal One run's fold, to use before it is disposed of. */
export async function foldOf<Result>(
  db: PostgresDatabase,
  runId: string,
  upTo: number,
  options: CaptureOptions | undefined,
  use: (fold: Fold) => Result
): Promise<Result> {
  const { names: mapping, signal } = checkOptions(options, ["names", "signal"])
  const names = namesOf(mapping)
  return withSession(db, signal, (session) =>
    // Entries up to the bound are written once and never change, so a transaction of any isolation does.
    reading(session, false, () => folding(session.connection, runId, upTo, names, use))
  )
}

/** Folds one run, from what the connection sees. */
export async function folding<Result>(
  connection: Connection,
  runId: string,
  upTo: number,
  names: PostgresNames,
  use: (fold: Fold) => Result
): Promise<Result> {
  if (typeof runId !== "string") throw invalid("argument_invalid", "a run's id", runId)
  if (typeof upTo !== "number") throw invalid("bound_invalid", "a finite number", upTo)
  const schema = await lookAt(connection, names, ["journal", "checkpoints"])
  const scope = { kind: "runs", ids: [runId] } as const
  const floor = await new FloorReader(connection, checkpointStatements(schema, scope)).floorOf(runId)
  const floors: Floor[] = floor === undefined ? [] : [{ seq: floor.seq, compactedAtMs: 0, stateText: floor.stateText }]
  const fold = new Fold({ runId, floors, upTo })
  try {
    for await (const segment of segmentsOf(connection, journalStatements(schema, scope), schema.eventTypes, runId, upTo)) {
      namingSeqs(runId, () => fold.pushLists(segment.payloads, segment.lengths, segment.seqs, segment.types))
    }
    return use(fold)
  } finally {
    fold.dispose()
  }
}

/**
 * One run's fold up to a seq, inclusive, from its floor. Joins the caller's transaction, of any isolation.
 *
 * @throws `fold_incomplete` when the floor keeps no fold; `bound_below_floor`; `payload_not_json`, …
 */
export function capture(db: PostgresDatabase, runId: string, upTo: number, options?: CaptureOptions): Promise<Encoded> {
  return foldOf(db, runId, upTo, options, (fold) => fold.state())
}

/** The state of a checkpoint at `upTo`: the base's members, and the fold. */
export async function checkpointState(
  db: PostgresDatabase,
  runId: string,
  upTo: number,
  base?: Record<string, unknown>,
  options?: CaptureOptions
): Promise<Record<string, unknown>> {
  if (base !== undefined && (typeof base !== "object" || base === null || Array.isArray(base))) {
    throw invalid("base_not_object", "a JSON object as the base", base)
  }
  return { ...base, [checkpointKey]: await capture(db, runId, upTo, options) }
}

/**
 * The state of a checkpoint at `upTo` as text; the base's own spelling is kept. A compaction calls this in its transaction, before it
 * marks the checkpoint compacted or deletes an entry: afterwards the entries are no longer there to fold.
 */
export function checkpointStateText(
  db: PostgresDatabase,
  runId: string,
  upTo: number,
  baseText?: string,
  options?: CaptureOptions
): Promise<string> {
  return foldOf(db, runId, upTo, options, (fold) => fold.checkpointStateText(baseText))
}

/** Whether a checkpoint's state keeps exactly what the entries say up to `upTo`: proof, before they are deleted. */
export function checkCheckpoint(
  db: PostgresDatabase,
  runId: string,
  upTo: number,
  stateText: string,
  options?: CaptureOptions
): Promise<CheckpointCheck> {
  return foldOf(db, runId, upTo, options, (fold) => fold.checkCheckpoint(stateText))
}
