/** Stores that call things otherwise, keep them otherwise, or lack what makes reading quick. */
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { capture, checkpointStateText, rebuild, verify, type NameMapping } from "journal-fold/sqlite"
import { tableKeys, type TableName } from "../../js/demo/tables.js"
import { codeOf, copyOf, demoStore, derivedRows, emptyStore, errorOf, short, storyOf, tablesSql, type Db } from "./stores.js"

const { db: sound } = demoStore({ runs: 30 })
const expected = verify(sound, { heads: true })
const tableNames = Object.keys(tableKeys) as TableName[]

/** Copies the rows that a store needs into tables of another kind. */
function copyInto(db: Db, from: Db = sound): Db {
  for (const table of tableNames) {
    const columns = db.prepare(`SELECT * FROM ${table}`).columns().map(({ name }) => name)
    const insert = db.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => "?").join(", ")})`)
    // Backwards, so that no order is found by chance.
    const rows = from.prepare(`SELECT ${columns.join(", ")} FROM ${table} ORDER BY rowid DESC`).raw().all() as unknown[][]
    db.transaction(() => rows.forEach((row) => insert.run(...row)))()
  }
  return db
}

describe("tables of another kind", () => {
  it.each([
    ["without rowids", { suffix: "WITHOUT ROWID" }],
    ["that are strict", { suffix: "STRICT" }],
    ["without any key or index", { keys: false }],
    ["whose columns have no type", { text: "", integer: "" }],
    ["whose texts are compared without regard to case", { text: "TEXT COLLATE NOCASE" }],
    ["whose texts are compared without trailing spaces", { text: "TEXT COLLATE RTRIM" }]
  ])("%s", (_, options) => {
    const db = copyInto(emptyStore(options))
    expect(verify(db, { heads: true })).toEqual(expected)
    expect(verify(db, { runs: "live" })).toEqual(verify(sound, { runs: "live" }))
    db.exec("DELETE FROM flows_clock_deadlines WHERE completed_at_ms IS NULL")
    db.exec("UPDATE flows_clock_deadlines SET completed_at_ms = completed_at_ms + 1")
    db.exec("UPDATE flows_deferred_completions SET consumed_at_ms = NULL")
    const drifted = verify(db)
    expect(drifted.verdict).toBe("drift")
    expect(rebuild(db).rows).toBe(drifted.plan?.rows)
    expect(verify(db, { heads: true })).toEqual(expected)
    expect(derivedRows(db)).toBe(derivedRows(copyInto(emptyStore())))
  })

  it("where ids differ only by what a collation ignores, and each is its own", () => {
    // Keys would not let both in.
    const db = emptyStore({ text: "TEXT COLLATE NOCASE", keys: false })
    storyOf(db).run("run").run("RUN").clock("run", "c", { dueAtMs: 1 }).clock("RUN", "c", { dueAtMs: 2 }).clock("Run", "c", { row: false })
    db.exec("INSERT INTO flows_runs VALUES ('rUN')")
    expect(short(verify(db).findings)).toEqual(["run_missing Run/c", "clock_missing Run/c"])
    expect(capture(db, "RUN", 9).clocks).toMatchObject([{ executionId: "RUN", dueAtMs: 2 }])
  })
})

/** The demo store with every name changed by `rename`. */
function renamed(rename: (name: string) => string): { db: Db; names: NameMapping } {
  const db = copyOf(sound)
  const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
  const members = {
    runs: ["flows_runs", { runId: "run_id" }],
    journal: ["flows_journal_events", { runId: "run_id", seq: "seq", eventType: "event_type", payload: "payload_json" }],
    checkpoints: ["flows_journal_checkpoints", { runId: "run_id", seq: "seq", state: "state_json", compactedAtMs: "compacted_at_ms" }],
    clocks: ["flows_clock_deadlines", { flowName: "flow_name", executionId: "execution_id", clockName: "clock_name", deferredName: "deferred_name", dueAtMs: "due_at_ms", completedAtMs: "completed_at_ms" }],
    completions: ["flows_deferred_completions", { flowName: "flow_name", executionId: "execution_id", deferredName: "deferred_name", exit: "exit_json", metadata: "metadata_json", completedAtMs: "completed_at_ms", consumedAtMs: "consumed_at_ms" }]
  } as const
  const names: Record<string, Record<string, string>> = {}
  for (const [key, [table, columns]] of Object.entries(members)) {
    const mapped: Record<string, string> = (names[key] = { table: rename(table) })
    for (const [member, column] of Object.entries(columns)) {
      mapped[member] = rename(column)
      db.exec(`ALTER TABLE ${table} RENAME COLUMN ${column} TO ${quote(rename(column))}`)
    }
    db.exec(`ALTER TABLE ${table} RENAME TO ${quote(rename(table))}`)
  }
  const types = ["clock-scheduled", "clock-completed", "deferred-completed", "deferred-consumed"]
  const update = db.prepare(`UPDATE ${quote(rename("flows_journal_events"))} SET ${quote(rename("event_type"))} = ? WHERE ${quote(rename("event_type"))} = ?`)
  for (const type of types) update.run(rename(type), `flows.engine.${type}`)
  return { db, names: { ...names, eventTypes: types.map(rename) as never } }
}

describe("other names", () => {
  it.each<[string, (name: string) => string]>([
    ["plain", (name) => `my_${name}`],
    ["with spaces and quotes", (name) => `the "${name}" of 'yours'`],
    ["that are words of SQL", (name) => `select from ${name} where`],
    ["that would be statements if they were spliced", (name) => `${name}"; DROP TABLE flows_runs; --`],
    ["beyond ASCII", (name) => `ä署👩‍👩‍👧 ${name}`],
    ["with brackets, dots and backticks", (name) => `[main].\`${name}\`%?:@$`]
  ])("%s", (_, rename) => {
    const { db, names } = renamed(rename)
    expect(verify(db, { names, heads: true })).toEqual(expected)
    const table = `"${names.clocks?.table?.replaceAll('"', '""')}"`
    const runId = expected.heads?.[0]?.runId as string
    expect(checkpointStateText(db, runId, 1e9, undefined, { names })).toBe(checkpointStateText(sound, runId, 1e9))
    db.exec(`DELETE FROM ${table}`)
    expect(rebuild(db, { names }).rows).toBe(expected.rebuilt.clocks)
    expect(verify(db, { names, heads: true })).toEqual(expected)
  })

  it("alone are looked at: the old ones are not", () => {
    const { db, names } = renamed((name) => `my_${name}`)
    expect(codeOf(() => verify(db))).toBe("store_table_missing")
    expect(errorOf(() => verify(db, { names: { ...names, clocks: { ...names.clocks, dueAtMs: "my_due" } } }))).toMatchObject({
      code: "store_column_missing", details: { table: "my_flows_clock_deadlines", column: "my_due" }
    })
  })

  it("that are none are refused", () => {
    for (const table of ["", "a\0b", 7]) expect(codeOf(() => verify(sound, { names: { journal: { table } } as never }))).toBe("option_invalid")
    expect(codeOf(() => verify(sound, { names: { events: { table: "x" } } } as never))).toBe("option_unknown")
    for (const eventTypes of [["a", "b", "c"], ["a", "b", "c", "c"], "abcd"]) expect(codeOf(() => verify(sound, { names: { eventTypes } as never }))).toBe("option_invalid")
  })

  it("tell tables and columns apart as SQLite does: not by the case of ASCII letters, and by that of all others", () => {
    expect(verify(sound, { names: { runs: { table: "FLOWS_RUNS", runId: "Run_Id" } } }).verdict).toBe("match")
    const db = emptyStore()
    db.exec("ALTER TABLE flows_runs RENAME COLUMN run_id TO Läufer")
    expect(verify(db, { names: { runs: { runId: "lÄufer".replace("Ä", "ä") } } }).verdict).toBe("match")
    expect(codeOf(() => verify(db, { names: { runs: { runId: "lÄufer" } } }))).toBe("store_column_missing")
  })
})

describe("a store of another shape, served by views", () => {
  /** One table of jobs with ids that are numbers, one log with times in seconds, timers and results in the jobs' own tables. */
  function otherStore(): Db {
    const db = new Database(":memory:")
    db.exec(`
      CREATE TABLE job (id INTEGER PRIMARY KEY, kind TEXT, deleted INTEGER);
      CREATE TABLE log (id INTEGER PRIMARY KEY, job INTEGER, what TEXT, body TEXT);
      CREATE INDEX log_by_job ON log (job, id);
      CREATE TABLE timer (job INTEGER, name TEXT, target TEXT, due_s INTEGER, fired_s INTEGER, PRIMARY KEY (job, name));
      CREATE TABLE result (job INTEGER, name TEXT, value BLOB, at_s INTEGER, read_s INTEGER, PRIMARY KEY (job, name));

      -- What journal-fold looks at.
      CREATE VIEW flows_runs AS SELECT CAST(id AS TEXT) AS run_id FROM job WHERE NOT deleted;
      CREATE VIEW flows_journal_events AS
        SELECT CAST(log.job AS TEXT) AS run_id, log.id AS seq, 'flows.engine.' || what AS event_type,
          json_set(body, '$.flowName', kind, '$.executionId', CAST(log.job AS TEXT)) AS payload_json
        FROM log JOIN job ON job.id = log.job;
      CREATE VIEW flows_journal_checkpoints AS SELECT '' AS run_id, 0 AS seq, '' AS state_json, 0 AS compacted_at_ms WHERE false;
      CREATE VIEW flows_clock_deadlines AS
        SELECT kind AS flow_name, CAST(job AS TEXT) AS execution_id, name AS clock_name, target AS deferred_name, due_s * 1000 AS due_at_ms,
          fired_s * 1000 AS completed_at_ms FROM timer JOIN job ON job.id = timer.job;
      CREATE VIEW flows_deferred_completions AS
        SELECT kind AS flow_name, CAST(job AS TEXT) AS execution_id, name AS deferred_name, value AS exit_json, NULL AS metadata_json,
          at_s * 1000 AS completed_at_ms, read_s * 1000 AS consumed_at_ms FROM result JOIN job ON job.id = result.job;`)
    db.exec(`
      INSERT INTO job VALUES (9, 'mail', 0), (10, 'mail', 0), (100, 'bill', 0);
      INSERT INTO log (id, job, what, body) VALUES
        (1, 10, 'clock-scheduled', '{"clockName":"remind","deferredName":"reminded","dueAtMs":5000}'),
        (2, 9, 'clock-scheduled', '{"clockName":"remind","deferredName":"reminded","dueAtMs":6000}'),
        (3, 10, 'clock-completed', '{"clockName":"remind","completedAtMs":7000}'),
        (4, 100, 'noise', '{}'),
        (5, 100, 'deferred-completed', '{"deferredName":"paid","completedAtMs":8000}');
      INSERT INTO timer VALUES (10, 'remind', 'reminded', 5, 7), (9, 'remind', 'reminded', 6, NULL);
      INSERT INTO result VALUES (100, 'paid', x'7b7d', 8, NULL);`)
    return db
  }

  it("is verified, its ids ordered as texts", () => {
    const { verdict, coverage, heads, notChecked } = verify(otherStore(), { heads: true })
    expect([verdict, coverage.runs, coverage.entries]).toEqual(["match", 3, 4])
    expect(heads?.map(({ runId }) => runId)).toEqual(["10", "100", "9"])
    expect(notChecked).toMatchObject([{ what: "digest_absent", count: 1 }])
  })

  it("has its findings", () => {
    const db = otherStore()
    db.exec("UPDATE timer SET due_s = 1 WHERE job = 10; INSERT INTO timer VALUES (100, 'stray', 'd', 1, NULL); DELETE FROM result; UPDATE job SET deleted = 1 WHERE id = 9")
    expect(short(verify(db).findings)).toEqual(["run_missing 9/remind", "row_missing 100/paid", "clock_unexpected 100/stray", "clock_differs 10/remind dueAtMs"])
  })

  it("is not written to", () => {
    const db = otherStore()
    db.exec("UPDATE timer SET due_s = 1")
    expect(errorOf(() => rebuild(db))).toMatchObject({ code: "row_not_writable", details: { table: "flows_clock_deadlines" } })
    // A trigger on a view writes what it likes, and SQLite counts none of it.
    db.exec(`CREATE TRIGGER back INSTEAD OF UPDATE ON flows_clock_deadlines BEGIN
      UPDATE timer SET due_s = new.due_at_ms / 1000 WHERE job = CAST(new.execution_id AS INTEGER); END`)
    expect(errorOf(() => rebuild(db))).toMatchObject({ code: "rows_changed_mismatch", details: { expected: "2", found: "0" } })
    expect(db.prepare("SELECT sum(due_s) FROM timer").pluck().get()).toBe(2)
  })

  it("says when a view is broken", () => {
    const db = otherStore()
    db.exec("DROP VIEW flows_runs; CREATE VIEW flows_runs AS SELECT nonsense(id) AS run_id FROM job")
    expect(codeOf(() => verify(db))).toBe("store_unreadable")
  })
})

it("reads tables that a temporary view hides", () => {
  const db = copyOf(sound)
  db.exec("CREATE TEMP VIEW flows_clock_deadlines AS SELECT flow_name, execution_id, clock_name, deferred_name, due_at_ms + 1 AS due_at_ms, completed_at_ms FROM main.flows_clock_deadlines")
  expect(verify(db).counts).toEqual({ clock_differs: expected.rebuilt.clocks })
})

it("needs no other columns, and lets others be", () => {
  const db = new Database(":memory:")
  db.exec(tablesSql({ clockColumns: ", note TEXT DEFAULT 'yours', doubled AS (due_at_ms * 2) STORED" }))
  storyOf(db).run("r").clock("r", "c").clock("r", "d", { row: false })
  rebuild(db)
  expect(db.prepare("SELECT clock_name, note, doubled FROM flows_clock_deadlines").raw().all()).toEqual([["c", "yours", 200], ["d", "yours", 200]])
})
