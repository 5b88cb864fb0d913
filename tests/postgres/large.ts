/** A large store, made inside of the server: every run schedules, completes and consumes, and notes something in between. */
import type pg from "pg"
import { tablesSql } from "./stores.js"

/** Entries that a run writes for each clock. */
const entriesAClock = 5

/**
 * Writes `runs` runs of `clocks` clocks each, five entries a clock. Entries of all runs lie mixed on disk, as when many runs are alive
 * at once. The tables say what the journal says.
 */
export async function writeLargeStore(client: pg.ClientBase, runs: number, clocks: number): Promise<{ entries: number; clocks: number }> {
  await client.query(tablesSql())
  const address = `'flowName', 'billing/invoice', 'executionId', 'run-' || r`
  const exit = `'{"_tag":"Success","value":"' || c || '/' || r || '"}'`
  const at = (offset: number): string => `1735689600000 + c * 1000 + r + ${offset}`
  await client.query(`INSERT INTO flows_runs (run_id) SELECT 'run-' || r FROM generate_series(0, ${runs - 1}) AS r`)
  await client.query(`
    INSERT INTO flows_journal_events (run_id, seq, event_type, payload_json)
    SELECT 'run-' || r, c * ${entriesAClock} + k,
      (ARRAY['flows.engine.clock-scheduled', 'flows.engine.clock-completed', 'flows.engine.deferred-completed', 'flows.engine.deferred-consumed', 'flows.engine.noted'])[k + 1],
      CASE k
        WHEN 0 THEN json_build_object(${address}, 'clockName', 'sleep-' || c, 'deferredName', 'clock/sleep-' || c, 'dueAtMs', ${at(0)})
        WHEN 1 THEN json_build_object(${address}, 'clockName', 'sleep-' || c, 'completedAtMs', ${at(1)})
        WHEN 2 THEN json_build_object(${address}, 'deferredName', 'clock/sleep-' || c, 'completedAtMs', ${at(1)},
          'exitDigest', encode(sha256(convert_to(${exit}, 'UTF8')), 'hex'), 'metadataDigest', NULL)
        WHEN 3 THEN json_build_object(${address}, 'deferredName', 'clock/sleep-' || c, 'consumedAtMs', ${at(2)})
        ELSE json_build_object('note', 'step ' || c || ' of run ' || r || ' went on as it should', 'tags', ARRAY['a', 'b', 'c'])
      END::text
    FROM generate_series(0, ${clocks - 1}) AS c, generate_series(0, ${runs - 1}) AS r, generate_series(0, ${entriesAClock - 1}) AS k`)
  await client.query(`
    INSERT INTO flows_clock_deadlines
    SELECT 'billing/invoice', 'run-' || r, 'sleep-' || c, 'clock/sleep-' || c, ${at(0)}, ${at(1)}
    FROM generate_series(0, ${clocks - 1}) AS c, generate_series(0, ${runs - 1}) AS r`)
  await client.query(`
    INSERT INTO flows_deferred_completions
    SELECT 'billing/invoice', 'run-' || r, 'clock/sleep-' || c, ${exit}, NULL, ${at(1)}, ${at(2)}
    FROM generate_series(0, ${clocks - 1}) AS c, generate_series(0, ${runs - 1}) AS r`)
  return { entries: runs * clocks * entriesAClock, clocks: runs * clocks }
}
