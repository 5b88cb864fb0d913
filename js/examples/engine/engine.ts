/**
 * A workflow engine, small enough to read in one sitting. It keeps one rule: whatever happens is one transaction, which appends to the
 * journal and changes the rows that follow from it. So at every commit the tables say what the journal says, and after a crash as well.
 *
 * A flow here sleeps until a time (a clock), waits for values from outside (deferreds), and takes each value once (consumption).
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import { contentDigest } from "journal-fold/digest"
import { checkCheckpoint, checkpointStateText, DurableWriter, eventTypes } from "journal-fold/effect"
import { rebuildLockKey } from "journal-fold/postgres"

/** A run of a flow. Here a run has one execution, whose id is the run's. */
export interface Run {
  readonly runId: string
  readonly flowName: string
}

/** The journal contradicts what was asked for, such as a value taken twice. Nothing was written. */
export class EngineError extends Error {
  override readonly name = "EngineError"
}

const [clockScheduled, clockCompleted, deferredCompleted, deferredConsumed] = eventTypes

/**
 * Everything that the engine does is written by this. In Postgres its transactions share the lock that a rebuild takes, so none of them
 * falls into one; and one that another writer's commit made impossible is done again.
 */
const durably = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const writer = yield* DurableWriter
    const share = sql.onDialectOrElse({
      pg: () => Effect.asVoid(sql.unsafe(`SELECT pg_advisory_xact_lock_shared(${rebuildLockKey})`)),
      orElse: () => Effect.void
    })
    return yield* Effect.retry(writer.write(Effect.andThen(share, work)), {
      while: (error) => isSqlError(error) && error.reason._tag === "SerializationError",
      times: 5
    })
  })

/** Appends an entry; part of the transaction that also changes the rows. */
const append = Effect.fn("engine.append")(function* (runId: string, eventType: string, payload: object) {
  const sql = yield* SqlClient
  // Entries that were compacted away leave their seqs behind in the checkpoint.
  const [last] = yield* sql<{ seq: number | bigint }>`
    SELECT coalesce(max(seq), -1) AS seq FROM (
      SELECT seq FROM flows_journal_events WHERE run_id = ${runId} UNION ALL
      SELECT seq FROM flows_journal_checkpoints WHERE run_id = ${runId}) AS seqs`
  const seq = Number(last?.seq ?? -1) + 1
  yield* sql`INSERT INTO flows_journal_events (run_id, seq, event_type, payload_json)
    VALUES (${runId}, ${seq}, ${eventType}, ${JSON.stringify(payload)})`
  return seq
})

const addressOf = ({ flowName, runId }: Run) => ({ flowName, executionId: runId })

/** Starts a run. */
export const start = Effect.fn("engine.start")(function* (run: Run) {
  const sql = yield* SqlClient
  yield* durably(Effect.gen(function* () {
    yield* append(run.runId, "flows.engine.run-started", addressOf(run))
    yield* sql`INSERT INTO flows_runs (run_id, flow_name) VALUES (${run.runId}, ${run.flowName})`
  }))
})

/** Arms a clock: when it is due, {@link fireDue} completes the deferred `clock/NAME`. */
export const sleepUntil = Effect.fn("engine.sleepUntil")(function* (run: Run, clockName: string, dueAtMs: number) {
  const sql = yield* SqlClient
  const deferredName = `clock/${clockName}`
  yield* durably(Effect.gen(function* () {
    yield* append(run.runId, clockScheduled, { ...addressOf(run), clockName, deferredName, dueAtMs })
    yield* sql`INSERT INTO flows_clock_deadlines (flow_name, execution_id, clock_name, deferred_name, due_at_ms)
      VALUES (${run.flowName}, ${run.runId}, ${clockName}, ${deferredName}, ${dueAtMs})`
  }))
})

/** A value arrives. The row keeps it; the journal keeps its digest, by which a changed or lost value is found later. */
const complete = Effect.fn("engine.complete")(function* (run: Run, deferredName: string, value: unknown, nowMs: number) {
  const sql = yield* SqlClient
  const exit = JSON.stringify({ _tag: "Success", value })
  yield* append(run.runId, deferredCompleted, {
    ...addressOf(run), deferredName, completedAtMs: nowMs, exitDigest: contentDigest(exit), metadataDigest: null
  })
  yield* sql`INSERT INTO flows_deferred_completions (flow_name, execution_id, deferred_name, exit_json, completed_at_ms)
    VALUES (${run.flowName}, ${run.runId}, ${deferredName}, ${exit}, ${nowMs})`
})

/** Sends a value to a run that waits for it, or will. */
export const signal = (run: Run, deferredName: string, value: unknown, nowMs: number) => durably(complete(run, deferredName, value, nowMs))

/** Fires every clock that is due, each in a transaction of its own, and says how many there were. */
export const fireDue = Effect.fn("engine.fireDue")(function* (nowMs: number) {
  const sql = yield* SqlClient
  const due = yield* sql<{ flowName: string; runId: string; clockName: string; deferredName: string }>`
    SELECT flow_name AS ${sql("flowName")}, execution_id AS ${sql("runId")}, clock_name AS ${sql("clockName")}, deferred_name AS ${sql("deferredName")}
    FROM flows_clock_deadlines WHERE completed_at_ms IS NULL AND due_at_ms <= ${nowMs} ORDER BY due_at_ms, execution_id, clock_name`
  for (const { clockName, deferredName, ...run } of due) {
    yield* durably(Effect.gen(function* () {
      yield* append(run.runId, clockCompleted, { ...addressOf(run), clockName, completedAtMs: nowMs })
      yield* sql`UPDATE flows_clock_deadlines SET completed_at_ms = ${nowMs}
        WHERE flow_name = ${run.flowName} AND execution_id = ${run.runId} AND clock_name = ${clockName}`
      yield* complete(run, deferredName, null, nowMs)
    }))
  }
  return due.length
})

/** Takes a value, once. */
export const consume = Effect.fn("engine.consume")(function* (run: Run, deferredName: string, nowMs: number) {
  const sql = yield* SqlClient
  return yield* durably(Effect.gen(function* () {
    const [row] = yield* sql<{ exit: string }>`SELECT exit_json AS exit FROM flows_deferred_completions
      WHERE flow_name = ${run.flowName} AND execution_id = ${run.runId} AND deferred_name = ${deferredName} AND consumed_at_ms IS NULL`
    if (row === undefined) return yield* Effect.fail(new EngineError(`${deferredName} of ${run.runId} has no value, or it was taken`))
    yield* append(run.runId, deferredConsumed, { ...addressOf(run), deferredName, consumedAtMs: nowMs })
    yield* sql`UPDATE flows_deferred_completions SET consumed_at_ms = ${nowMs}
      WHERE flow_name = ${run.flowName} AND execution_id = ${run.runId} AND deferred_name = ${deferredName}`
    return (JSON.parse(row.exit) as { value: unknown }).value
  }))
})

/**
 * Shortens a run's journal: the fold of its entries goes into a checkpoint, is proved against the entries, and only then are these
 * deleted, all in one transaction. Without the fold in it, a compacted checkpoint could never be folded on from again.
 */
export const compact = Effect.fn("engine.compact")(function* (run: Run, nowMs: number) {
  const sql = yield* SqlClient
  yield* durably(Effect.gen(function* () {
    const [last] = yield* sql<{ seq: number | bigint | null }>`SELECT max(seq) AS seq FROM flows_journal_events WHERE run_id = ${run.runId}`
    if (last === undefined || last.seq === null) return
    const upTo = Number(last.seq)
    // Beside the fold stands what the engine itself wants to remember.
    const state = yield* checkpointStateText(run.runId, upTo, JSON.stringify({ engine: { flowName: run.flowName } }))
    const proof = yield* checkCheckpoint(run.runId, upTo, state)
    if (!proof.matches) return yield* Effect.fail(new EngineError(`the checkpoint of ${run.runId} does not say what its entries say`))
    yield* sql`INSERT INTO flows_journal_checkpoints (run_id, seq, state_json, compacted_at_ms) VALUES (${run.runId}, ${upTo}, ${state}, ${nowMs})`
    yield* sql`DELETE FROM flows_journal_events WHERE run_id = ${run.runId} AND seq <= ${upTo}`
    yield* sql`DELETE FROM flows_journal_checkpoints WHERE run_id = ${run.runId} AND seq < ${upTo}`
  }))
})
