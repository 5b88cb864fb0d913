// Verifies a store with payloads and completions of 8 MB in a process of its own, and says what it took. No file: what is measured is
// neither the page cache nor a disk.
import Database from "better-sqlite3"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { verify } from "journal-fold/sqlite"

const folder = mkdtempSync(join(tmpdir(), "journal-fold-large-"))
const path = join(folder, "store.db")
let db = new Database(path)
db.pragma("journal_mode = OFF")
db.pragma("synchronous = OFF")
db.exec(`
  CREATE TABLE flows_runs (run_id TEXT PRIMARY KEY);
  CREATE TABLE flows_journal_events (run_id TEXT, seq INTEGER, event_type TEXT, payload_json TEXT, PRIMARY KEY (run_id, seq));
  CREATE TABLE flows_journal_checkpoints (run_id TEXT, seq INTEGER, state_json TEXT, compacted_at_ms INTEGER, PRIMARY KEY (run_id, seq));
  CREATE TABLE flows_clock_deadlines (flow_name TEXT, execution_id TEXT, clock_name TEXT, deferred_name TEXT, due_at_ms INTEGER, completed_at_ms INTEGER, PRIMARY KEY (flow_name, execution_id, clock_name));
  CREATE TABLE flows_deferred_completions (flow_name TEXT, execution_id TEXT, deferred_name TEXT, exit_json TEXT, metadata_json TEXT, completed_at_ms INTEGER, consumed_at_ms INTEGER, PRIMARY KEY (flow_name, execution_id, deferred_name));
  INSERT INTO flows_runs VALUES ('r')`)
// Texts of 8 MB that never come into this process while they are written.
const eightMB = 8 << 20
const pad = `hex(zeroblob(${eightMB / 2}))`
const digest = createHash("sha256").update("0".repeat(eightMB)).digest("hex")
const [payloads, completions] = [36, 16]
const counted = (count) => `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count} - 1)`
// Small entries first, so that pages have grown when the large ones come.
db.exec(`
  INSERT INTO flows_journal_events ${counted(20_000)} SELECT 'r', i, 'another.type', '{}' FROM n;
  INSERT INTO flows_journal_events ${counted(payloads)} SELECT 'r', 20000 + i, iif(i % 4 = 0, 'another.type', 'flows.engine.clock-scheduled'),
    '{"pad":"' || ${pad} || '","flowName":"F","executionId":"r","clockName":"c' || i || '","deferredName":"d","dueAtMs":1}' FROM n;
  INSERT INTO flows_clock_deadlines ${counted(payloads)} SELECT 'F', 'r', 'c' || i, 'd', 1, NULL FROM n WHERE i % 4 <> 0;
  INSERT INTO flows_journal_events ${counted(completions)} SELECT 'r', 30000 + i, 'flows.engine.deferred-completed',
    '{"flowName":"F","executionId":"r","deferredName":"d' || i || '","completedAtMs":1,"exitDigest":"${digest}","metadataDigest":null}' FROM n;
  INSERT INTO flows_deferred_completions ${counted(completions)} SELECT 'F', 'r', 'd' || i, ${pad}, NULL, 1, NULL FROM n;`)
db.close()
db = new Database(path, { readonly: true })
const before = process.resourceUsage().maxRSS
const { verdict } = verify(db)
const peak = Math.round(process.resourceUsage().maxRSS / 1024)
const megabytes = Math.round(((payloads + completions) * eightMB) / 1e6)
db.close()
rmSync(folder, { recursive: true })
process.send({ verdict, payloads, completions, megabytes, peak, before: Math.round(before / 1024) })
