/**
 * The statements of the example engine: every change it makes to its tables stands here. The first time wins in the tables as it
 * does in the journal, so a completion and a consumption change only a row that has none yet.
 */

import type Database from "better-sqlite3"

/** A change with values bound by place. */
export type Change = Database.Statement<(string | number | null)[]>

/** What an engine runs against its store; see {@link prepareStatements}. */
export interface Statements {
  /** run, flow, created, updated */
  startRun: Change
  /** status, updated, run */
  setStatus: Change
  /** run, seq, event type, payload text */
  append: Change
  /** flow, execution, clock, deferred, due */
  scheduleClock: Change
  /** time, flow, execution, clock */
  completeClock: Change
  /** flow, execution, deferred, exit text, metadata text or null, time */
  completeDeferred: Change
  /** time, flow, execution, deferred */
  consumeDeferred: Change
  /** run, seq, state text */
  checkpoint: Change
  /** The state text of a checkpoint, by run and seq. */
  stateOf: Database.Statement<[string, number], string>
  /** state text, time, run, seq */
  markCompacted: Change
  /** run, last seq to delete */
  deleteEntries: Change
  /** run, first seq to keep */
  deleteCheckpoints: Change
}

/** Prepares them all, once for an engine. The tables have to be there. */
export function prepareStatements(db: Database.Database): Statements {
  return {
    startRun: db.prepare(`
      INSERT INTO flows_runs (run_id, flow_name, status, created_at_ms, updated_at_ms)
      VALUES (?, ?, 'running', ?, ?)`),
    setStatus: db.prepare(`
      UPDATE flows_runs SET status = ?, updated_at_ms = ? WHERE run_id = ?`),
    append: db.prepare(`
      INSERT INTO flows_journal_events (run_id, seq, event_type, payload_json)
      VALUES (?, ?, ?, ?)`),
    scheduleClock: db.prepare(`
      INSERT INTO flows_clock_deadlines (flow_name, execution_id, clock_name, deferred_name, due_at_ms, completed_at_ms)
      VALUES (?, ?, ?, ?, ?, NULL)`),
    completeClock: db.prepare(`
      UPDATE flows_clock_deadlines SET completed_at_ms = ?
      WHERE flow_name = ? AND execution_id = ? AND clock_name = ? AND completed_at_ms IS NULL`),
    completeDeferred: db.prepare(`
      INSERT INTO flows_deferred_completions
        (flow_name, execution_id, deferred_name, exit_json, metadata_json, completed_at_ms, consumed_at_ms)
      VALUES (?, ?, ?, ?, ?, ?, NULL)`),
    consumeDeferred: db.prepare(`
      UPDATE flows_deferred_completions SET consumed_at_ms = ?
      WHERE flow_name = ? AND execution_id = ? AND deferred_name = ? AND consumed_at_ms IS NULL`),
    checkpoint: db.prepare(`
      INSERT INTO flows_journal_checkpoints (run_id, seq, state_json, compacted_at_ms)
      VALUES (?, ?, ?, NULL)`),
    stateOf: db.prepare<[string, number], string>(`
      SELECT state_json FROM flows_journal_checkpoints WHERE run_id = ? AND seq = ?`).pluck(),
    markCompacted: db.prepare(`
      UPDATE flows_journal_checkpoints SET state_json = ?, compacted_at_ms = ? WHERE run_id = ? AND seq = ?`),
    deleteEntries: db.prepare(`
      DELETE FROM flows_journal_events WHERE run_id = ? AND seq <= ?`),
    deleteCheckpoints: db.prepare(`
      DELETE FROM flows_journal_checkpoints WHERE run_id = ? AND seq < ?`)
  }
}
