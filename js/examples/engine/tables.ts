/** The tables: a journal with its checkpoints, and what follows from it. One spelling serves SQLite and Postgres. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

const tables = [
  `flows_runs (
    run_id TEXT PRIMARY KEY, flow_name TEXT NOT NULL)`,
  `flows_journal_events (
    run_id TEXT, seq BIGINT, event_type TEXT NOT NULL, payload_json TEXT NOT NULL,
    PRIMARY KEY (run_id, seq))`,
  `flows_journal_checkpoints (
    run_id TEXT, seq BIGINT, state_json TEXT NOT NULL, compacted_at_ms BIGINT,
    PRIMARY KEY (run_id, seq))`,
  `flows_clock_deadlines (
    flow_name TEXT, execution_id TEXT, clock_name TEXT, deferred_name TEXT NOT NULL, due_at_ms BIGINT NOT NULL, completed_at_ms BIGINT,
    PRIMARY KEY (flow_name, execution_id, clock_name))`,
  `flows_deferred_completions (
    flow_name TEXT, execution_id TEXT, deferred_name TEXT, exit_json TEXT NOT NULL, metadata_json TEXT, completed_at_ms BIGINT NOT NULL,
    consumed_at_ms BIGINT,
    PRIMARY KEY (flow_name, execution_id, deferred_name))`
]

/** Makes the tables that are not there yet. */
export const createTables = Effect.gen(function* () {
  const sql = yield* SqlClient
  for (const table of tables) yield* sql.unsafe(`CREATE TABLE IF NOT EXISTS ${table}`)
})
