/**
 * The tables of the example store: the journal and its checkpoints, and beside them the tables that follow from the journal.
 * Their constraints are those a real store has: a repair has to live with NOT NULL and CHECK, not only a reader.
 */

import type Database from "better-sqlite3"

/** The tables of the store, in the order in which a reader would explain them. Every one is keyed by the columns given here. */
export const tableKeys = {
  flows_runs: ["run_id"],
  flows_journal_events: ["run_id", "seq"],
  flows_journal_checkpoints: ["run_id", "seq"],
  flows_clock_deadlines: ["flow_name", "execution_id", "clock_name"],
  flows_deferred_completions: ["flow_name", "execution_id", "deferred_name"]
} as const

/** The name of a table of the store. */
export type TableName = keyof typeof tableKeys

// Payloads and states carry no json_valid check. Stores rarely pay for one on every append, and one that does still meets broken
// text after a partial restore, which is what a verification has to name.
const schema = `
CREATE TABLE IF NOT EXISTS flows_runs (
  run_id        TEXT    NOT NULL PRIMARY KEY CHECK (run_id <> ''),
  flow_name     TEXT    NOT NULL CHECK (flow_name <> ''),
  status        TEXT    NOT NULL CHECK (status IN ('running', 'suspended', 'completed', 'failed')),
  created_at_ms INTEGER NOT NULL CHECK (created_at_ms >= 0),
  updated_at_ms INTEGER NOT NULL CHECK (updated_at_ms >= 0)
);
CREATE TABLE IF NOT EXISTS flows_journal_events (
  run_id       TEXT    NOT NULL,
  seq          INTEGER NOT NULL CHECK (seq >= 0),
  event_type   TEXT    NOT NULL CHECK (event_type <> ''),
  payload_json TEXT    NOT NULL CHECK (payload_json <> ''),
  PRIMARY KEY (run_id, seq)
);
CREATE TABLE IF NOT EXISTS flows_journal_checkpoints (
  run_id          TEXT    NOT NULL,
  seq             INTEGER NOT NULL CHECK (seq >= 0),
  state_json      TEXT    NOT NULL CHECK (state_json <> ''),
  compacted_at_ms INTEGER CHECK (compacted_at_ms IS NULL OR compacted_at_ms >= 0),
  PRIMARY KEY (run_id, seq)
);
CREATE TABLE IF NOT EXISTS flows_clock_deadlines (
  flow_name       TEXT    NOT NULL CHECK (flow_name <> ''),
  execution_id    TEXT    NOT NULL CHECK (execution_id <> ''),
  clock_name      TEXT    NOT NULL CHECK (clock_name <> ''),
  deferred_name   TEXT    NOT NULL CHECK (deferred_name <> ''),
  due_at_ms       INTEGER NOT NULL CHECK (typeof(due_at_ms) = 'integer' AND due_at_ms >= 0),
  completed_at_ms INTEGER CHECK (completed_at_ms IS NULL OR completed_at_ms >= 0),
  PRIMARY KEY (flow_name, execution_id, clock_name)
);
CREATE TABLE IF NOT EXISTS flows_deferred_completions (
  flow_name       TEXT    NOT NULL CHECK (flow_name <> ''),
  execution_id    TEXT    NOT NULL CHECK (execution_id <> ''),
  deferred_name   TEXT    NOT NULL CHECK (deferred_name <> ''),
  exit_json       TEXT    NOT NULL CHECK (exit_json <> ''),
  metadata_json   TEXT    CHECK (metadata_json IS NULL OR metadata_json <> ''),
  completed_at_ms INTEGER NOT NULL CHECK (typeof(completed_at_ms) = 'integer' AND completed_at_ms >= 0),
  consumed_at_ms  INTEGER CHECK (consumed_at_ms IS NULL OR consumed_at_ms >= 0),
  PRIMARY KEY (flow_name, execution_id, deferred_name)
);
`

/** Creates the tables that are not there yet. Changes nothing in a store that has them. */
export function createTables(db: Database.Database): void {
  db.exec(schema)
}
