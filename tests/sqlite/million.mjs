// One piece of work on a large store in a process of its own:  node million.mjs PATH write|verify|rebuild
// Prints what it did and the most memory that the process has held at any time, in MB (maxRSS is in KiB).
import { createHash } from "node:crypto"
import Database from "better-sqlite3"
import { rebuild, verify } from "journal-fold/sqlite"

const [, , path, work] = process.argv
const [runs, clocks] = [4000, 50]

/** Five entries a clock, runs mixed as when many are alive at once; the tables say what the journal says. */
function write(db) {
  db.pragma("journal_mode = OFF")
  db.pragma("synchronous = OFF")
  db.exec(`
    CREATE TABLE flows_runs (run_id TEXT PRIMARY KEY);
    CREATE TABLE flows_journal_events (run_id TEXT, seq INTEGER, event_type TEXT, payload_json TEXT, PRIMARY KEY (run_id, seq));
    CREATE TABLE flows_journal_checkpoints (run_id TEXT, seq INTEGER, state_json TEXT, compacted_at_ms INTEGER, PRIMARY KEY (run_id, seq));
    CREATE TABLE flows_clock_deadlines (flow_name TEXT, execution_id TEXT, clock_name TEXT, deferred_name TEXT, due_at_ms INTEGER,
      completed_at_ms INTEGER, PRIMARY KEY (flow_name, execution_id, clock_name));
    CREATE TABLE flows_deferred_completions (flow_name TEXT, execution_id TEXT, deferred_name TEXT, exit_json TEXT, metadata_json TEXT,
      completed_at_ms INTEGER, consumed_at_ms INTEGER, PRIMARY KEY (flow_name, execution_id, deferred_name));`)
  const entry = db.prepare("INSERT INTO flows_journal_events VALUES (?, ?, ?, ?)")
  const clock = db.prepare("INSERT INTO flows_clock_deadlines VALUES ('billing/invoice', ?, ?, ?, ?, ?)")
  const completion = db.prepare("INSERT INTO flows_deferred_completions VALUES ('billing/invoice', ?, ?, ?, NULL, ?, ?)")
  db.transaction(() => {
    for (let run = 0; run < runs; run++) db.prepare("INSERT INTO flows_runs VALUES (?)").run(`run-${run}`)
    for (let name = 0; name < clocks; name++) {
      for (let run = 0; run < runs; run++) {
        const executionId = `run-${run}`
        const address = { flowName: "billing/invoice", executionId }
        const [clockName, deferredName, dueAtMs] = [`sleep-${name}`, `clock/sleep-${name}`, 1_735_689_600_000 + name * 1000 + run]
        const exit = JSON.stringify({ _tag: "Success", value: `${name}/${run}` })
        const exitDigest = createHash("sha256").update(exit).digest("hex")
        const seq = name * 5
        entry.run(executionId, seq, "flows.engine.clock-scheduled", JSON.stringify({ ...address, clockName, deferredName, dueAtMs }))
        entry.run(executionId, seq + 1, "flows.engine.clock-completed", JSON.stringify({ ...address, clockName, completedAtMs: dueAtMs + 1 }))
        entry.run(executionId, seq + 2, "flows.engine.deferred-completed",
          JSON.stringify({ ...address, deferredName, completedAtMs: dueAtMs + 1, exitDigest, metadataDigest: null }))
        entry.run(executionId, seq + 3, "flows.engine.deferred-consumed", JSON.stringify({ ...address, deferredName, consumedAtMs: dueAtMs + 2 }))
        entry.run(executionId, seq + 4, "flows.engine.noted", JSON.stringify({ note: `step ${name} of run ${run} went on`, tags: ["a", "b", "c"] }))
        clock.run(executionId, clockName, deferredName, dueAtMs, dueAtMs + 1)
        completion.run(executionId, deferredName, exit, dueAtMs + 1, dueAtMs + 2)
      }
    }
  })()
  return { clocks: runs * clocks }
}

const db = new Database(path)
const started = performance.now()
let told
if (work === "write") told = write(db)
else if (work === "verify") {
  const { verdict, rebuilt } = verify(db)
  told = { verdict, rebuilt, entries: db.prepare("SELECT count(*) FROM flows_journal_events").pluck().get() }
} else {
  const { rebuilt, rows } = rebuild(db, { allowDeletePending: true, allowUnconsume: true })
  told = { rebuilt, rows }
}
const seconds = (performance.now() - started) / 1000
db.close()
console.log(JSON.stringify({ ...told, seconds, megabytes: Math.round((process.resourceUsage().maxRSS * 1024) / 1e6) }))
