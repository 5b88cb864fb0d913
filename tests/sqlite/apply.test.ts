/** Plans: what they say, when they are refused, and that a store is either as planned afterwards or as it was. */
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import type { Plan } from "journal-fold/deferred-clock"
import { apply, plan, rebuild, verify } from "journal-fold/sqlite"
import { checkStatements, planStatements } from "../../pkg/hosts/sqlite/statements.js"
import { namesOf } from "../../pkg/hosts/sqlite/names.js"
import { emptyAndAlter } from "../../js/demo/damages.js"
import { codeOf, copyOf, demoStore, derivedRows, emptyStore, errorOf, fileOf, scheduled, storyOf, tablesSql, type Db } from "./stores.js"

const { db: sound, summary } = demoStore()
const soundRows = derivedRows(sound)

function drifted(): Db {
  const db = copyOf(sound)
  emptyAndAlter(db)
  return db
}

/** A store in which one clock is missing, one differs, one is unexpected, and a completion's stamps are others. */
function smallStore(options: { clockColumns?: string; extra?: string } = {}): Db {
  const db = new Database(":memory:")
  db.exec(tablesSql(options))
  storyOf(db).run("r").clock("r", "missing", { row: false }).clock("r", "differs").completion("r", "x")
  db.exec(`UPDATE flows_clock_deadlines SET due_at_ms = 1;
    INSERT INTO flows_clock_deadlines (flow_name, execution_id, clock_name, deferred_name, due_at_ms, completed_at_ms) VALUES ('F', 'r', 'stray', 'd', 1, 2);
    UPDATE flows_deferred_completions SET completed_at_ms = 1, consumed_at_ms = NULL;`)
  if (options.extra !== undefined) db.exec(options.extra)
  return db
}

/** What must not change when a rebuild is refused: every table, and the schema. */
const everything = (db: Db): string => {
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all() as string[]
  return JSON.stringify(tables.map((table) => [table, db.prepare(`SELECT * FROM "${table}"`).raw().all()]))
}

function expectRefused(db: Db, code: string, details: object = {}): Error & { details?: Record<string, unknown> } {
  const before = everything(db)
  const error = errorOf(() => rebuild(db))
  expect(error).toMatchObject({ code, details })
  expect(db.inTransaction).toBe(false)
  expect(everything(db)).toBe(before)
  // The connection is sound: what it may write, it writes.
  db.exec("CREATE TABLE after_all (a); DROP TABLE after_all")
  return error
}

describe("a plan", () => {
  it("makes both tables what they were, byte for byte", () => {
    const db = drifted()
    const made = plan(db, { asOfMs: summary.nowMs })
    expect(made.rows).toBeGreaterThan(100)
    expect(made.effects.clocksArmed).toBeGreaterThan(0)
    const { rows, rebuilt, effects } = apply(db, made)
    expect({ rows, rebuilt }).toEqual({ rows: made.rows, rebuilt: made.rebuilt })
    expect(effects.clocksArmed).toBe(made.effects.clocksArmed)
    expect(derivedRows(db)).toBe(soundRows)
    expect(plan(db)).toMatchObject({ rows: 0, pages: [] })
  })

  it("says what will run differently", () => {
    const db = smallStore()
    storyOf(db).run("s").clock("s", "pending", { row: false, dueAtMs: 50 })
    expect(plan(db, { asOfMs: 60 })).toMatchObject({
      rows: 5,
      effects: { clocksArmed: 3, clocksOverdue: 1, pendingDeleted: 0, pendingCompleted: 0, consumptionsCleared: 0, consumptionsSet: 0 }
    })
  })

  it("is plain data: it survives JSON, and is applied later, also by another connection", () => {
    const path = fileOf(drifted())
    const [one, two] = [new Database(path), new Database(path)]
    const stored = JSON.stringify(plan(one))
    one.close()
    apply(two, JSON.parse(stored) as Plan)
    expect(derivedRows(two)).toBe(soundRows)
    two.close()
  })

  it("reads only", () => {
    const db = drifted()
    const before = everything(db)
    plan(db)
    expect(everything(db)).toBe(before)
  })

  it("that is none is refused", () => {
    for (const none of [undefined, null, "plan", {}, { digest: 7 }]) expect(codeOf(() => apply(sound, none as never))).toBe("argument_invalid")
    expect(codeOf(() => apply(sound, plan(sound), { allowDelete: true } as never))).toBe("option_unknown")
  })
})

describe("a stale plan", () => {
  it("because it was applied already", () => {
    const db = drifted()
    const made = plan(db)
    apply(db, made)
    expect(codeOf(() => apply(db, made))).toBe("stale_plan")
    expect(derivedRows(db)).toBe(soundRows)
  })

  it("because the tables or the journal changed meanwhile", () => {
    for (const change of [
      "UPDATE flows_clock_deadlines SET due_at_ms = 3 WHERE clock_name = 'missing'; DELETE FROM flows_clock_deadlines WHERE clock_name = 'stray'",
      "UPDATE flows_journal_events SET payload_json = json_set(payload_json, '$.dueAtMs', 7) WHERE seq = 0",
      "DELETE FROM flows_journal_events WHERE seq = 0"
    ]) {
      const db = smallStore()
      const made = plan(db)
      db.exec(change)
      const before = everything(db)
      expect(codeOf(() => apply(db, made))).toBe("stale_plan")
      expect(everything(db)).toBe(before)
    }
  })

  it("because it was altered, or made for another scope", () => {
    const db = smallStore()
    storyOf(db).run("s").clock("s", "c", { row: false })
    expect(codeOf(() => apply(db, { ...plan(db), digest: "0".repeat(32) }))).toBe("stale_plan")
    const made = plan(db, { runs: ["s"] })
    expect(codeOf(() => apply(db, made))).toBe("stale_plan")
    expect(apply(db, made, { runs: ["s"] }).rows).toBe(1)
  })

  it("but not because entries came that change nothing", () => {
    const db = smallStore()
    const made = plan(db)
    storyOf(db).append("r", "another.type", {}, 99)
    expect(apply(db, made).rows).toBe(4)
  })
})

describe("what changes what will run", () => {
  it("deletes a pending clock only when allowed", () => {
    const db = smallStore({ extra: "UPDATE flows_clock_deadlines SET completed_at_ms = NULL WHERE clock_name = 'stray'" })
    expectRefused(db, "deletes_pending")
    expect(codeOf(() => apply(db, plan(db), { allowUnconsume: true }))).toBe("deletes_pending")
    expect(rebuild(db, { allowDeletePending: true }).effects.pendingDeleted).toBe(1)
    expect(verify(db).verdict).toBe("match")
  })

  it("clears a consumption only when allowed", () => {
    const db = smallStore({ extra: "UPDATE flows_deferred_completions SET consumed_at_ms = 5" })
    expectRefused(db, "clears_consumption")
    expect(codeOf(() => apply(db, plan(db), { allowDeletePending: true }))).toBe("clears_consumption")
    expect(rebuild(db, { allowUnconsume: true }).effects.consumptionsCleared).toBe(1)
    expect(verify(db).verdict).toBe("match")
  })

  it("is not done while something does not join", () => {
    const db = smallStore()
    storyOf(db).completion("s", "lost", { row: false })
    expectRefused(db, "fold_incomplete")
    db.exec("DELETE FROM flows_journal_events WHERE run_id = 's'")
    storyOf(db).append("r", scheduled, "{", 50)
    expectRefused(db, "fold_incomplete")
  })
})

describe("columns and constraints of the user's own", () => {
  it("a column keeps its value in a row that only changes", () => {
    const db = smallStore({ clockColumns: ", note TEXT", extra: "UPDATE flows_clock_deadlines SET note = 'mine'" })
    rebuild(db)
    expect(db.prepare("SELECT clock_name, note FROM flows_clock_deadlines ORDER BY 1").raw().all()).toEqual([["differs", "mine"], ["missing", null]])
  })

  it("a column that must be given refuses a new row, and is named", () => {
    const db = smallStore({ clockColumns: ", owner TEXT NOT NULL ON CONFLICT ABORT DEFAULT 'nobody'" })
    rebuild(db)
    expect(db.prepare("SELECT owner FROM flows_clock_deadlines WHERE clock_name = 'missing'").pluck().get()).toBe("nobody")
    const strict = new Database(":memory:")
    strict.exec(tablesSql({ clockColumns: `, "the ""owner"".of it" TEXT NOT NULL` }).replace("flows_clock_deadlines", `"my clocks. all"`))
    storyOf(strict).run("r").append("r", scheduled, { flowName: "F", executionId: "r", clockName: "c", deferredName: "d", dueAtMs: 1 })
    expect(errorOf(() => rebuild(strict, { names: { clocks: { table: "my clocks. all" } } }))).toMatchObject({
      code: "row_not_writable", details: { table: "my clocks. all", column: 'the "owner".of it' }
    })
    expect(strict.inTransaction).toBe(false)
  })

  it("a row that only changes needs no such column", () => {
    const db = new Database(":memory:")
    db.exec(tablesSql({ clockColumns: ", owner TEXT NOT NULL DEFAULT 'x'" }))
    storyOf(db).run("r").clock("r", "differs")
    db.exec("UPDATE flows_clock_deadlines SET due_at_ms = 1, owner = 'me'")
    rebuild(db)
    expect(db.prepare("SELECT due_at_ms, owner FROM flows_clock_deadlines").raw().all()).toEqual([[100, "me"]])
  })

  it.each([
    ["a CHECK", ", CHECK (due_at_ms < 50 OR clock_name <> 'missing')", "", {}],
    ["a UNIQUE column", ", UNIQUE (deferred_name)", "UPDATE flows_clock_deadlines SET deferred_name = 'd/missing' WHERE clock_name = 'differs'; UPDATE flows_journal_events SET payload_json = replace(payload_json, 'd/differs', 'd/missing')", { column: "deferred_name" }],
    ["a trigger that raises", "", "CREATE TRIGGER no BEFORE INSERT ON flows_clock_deadlines BEGIN SELECT RAISE(ABORT, 'not in my house'); END", {}],
    ["a trigger that rolls back", "", "CREATE TRIGGER no AFTER UPDATE ON flows_deferred_completions BEGIN SELECT RAISE(ROLLBACK, 'all of it'); END", { table: "flows_deferred_completions" }],
    ["a trigger that fails", "", "CREATE TRIGGER no AFTER DELETE ON flows_clock_deadlines BEGIN INSERT INTO nowhere VALUES (1); END", {}]
  ])("%s refuses, and everything is as before", (_, clockColumns, extra, details) => {
    const db = smallStore({ clockColumns, extra })
    const error = expectRefused(db, "row_not_writable", { table: "flows_clock_deadlines", ...details })
    expect(error.message).toMatch(/constraint|not in my house|all of it|nowhere/)
  })

  it("a table that is strict in its types", () => {
    const db = new Database(":memory:")
    db.exec(tablesSql({ suffix: "STRICT" }).replace("due_at_ms INTEGER", "due_at_ms BLOB"))
    storyOf(db).run("r").clock("r", "c", { row: false })
    expectRefused(db, "row_not_writable", { table: "flows_clock_deadlines", column: "due_at_ms" })
  })

  it("foreign keys: at once, or when it is committed", () => {
    for (const deferred of ["", "DEFERRABLE INITIALLY DEFERRED"]) {
      const db = new Database(":memory:")
      db.pragma("foreign_keys = OFF")
      db.exec(tablesSql({ clockColumns: `, owner INTEGER DEFAULT 7 REFERENCES owners (id) ${deferred}` }))
      db.exec("CREATE TABLE owners (id INTEGER PRIMARY KEY)")
      storyOf(db).run("r").clock("r", "c", { row: false })
      db.pragma("foreign_keys = ON")
      const before = everything(db)
      expect(codeOf(() => rebuild(db))).toBe("row_not_writable")
      expect([db.inTransaction, everything(db)]).toEqual([false, before])
      db.exec("INSERT INTO owners VALUES (7)")
      expect(rebuild(db).rows).toBe(1)
    }
  })

  it("triggers are fired, once a row", () => {
    const db = smallStore({ extra: `
      CREATE TABLE seen (what TEXT, name TEXT);
      CREATE TRIGGER i AFTER INSERT ON flows_clock_deadlines BEGIN INSERT INTO seen VALUES ('insert', new.clock_name); END;
      CREATE TRIGGER u AFTER UPDATE ON flows_clock_deadlines BEGIN INSERT INTO seen VALUES ('update', new.clock_name); END;
      CREATE TRIGGER d AFTER DELETE ON flows_clock_deadlines BEGIN INSERT INTO seen VALUES ('delete', old.clock_name), ('gone', ''); END;
      CREATE TRIGGER c AFTER UPDATE OF completed_at_ms ON flows_deferred_completions BEGIN INSERT INTO seen VALUES ('stamp', new.deferred_name); END` })
    // What triggers change is not counted among the rows.
    expect(rebuild(db).rows).toBe(4)
    expect(db.prepare("SELECT * FROM seen ORDER BY 1").raw().all()).toEqual([
      ["delete", "stray"], ["gone", ""], ["insert", "missing"], ["stamp", "x"], ["update", "differs"]
    ])
  })

  it.each([
    ["insert", "CREATE TRIGGER no BEFORE INSERT ON flows_clock_deadlines BEGIN SELECT RAISE(IGNORE); END"],
    ["update", "CREATE TRIGGER no BEFORE UPDATE ON flows_clock_deadlines BEGIN SELECT RAISE(IGNORE); END"],
    ["delete", "CREATE TRIGGER no BEFORE DELETE ON flows_clock_deadlines BEGIN SELECT RAISE(IGNORE); END"]
  ])("a trigger that swallows an %s is noticed", (op, extra) => {
    const error = expectRefused(smallStore({ extra }), "rows_changed_mismatch", { table: "flows_clock_deadlines", expected: "1", found: "0" })
    expect(error.message).toContain(`to ${op} 1 rows`)
  })

  it("a trigger that makes of a written row what was not planned is noticed", () => {
    for (const extra of [
      "CREATE TRIGGER no AFTER INSERT ON flows_clock_deadlines BEGIN UPDATE flows_clock_deadlines SET due_at_ms = 9 WHERE clock_name = new.clock_name; END",
      "CREATE TRIGGER no AFTER UPDATE ON flows_clock_deadlines BEGIN DELETE FROM flows_clock_deadlines WHERE clock_name = new.clock_name; END",
      "CREATE TRIGGER no AFTER DELETE ON flows_clock_deadlines BEGIN INSERT INTO flows_clock_deadlines VALUES ('F', 'r', old.clock_name, 'd', 1, 1); END",
      "CREATE TRIGGER no AFTER UPDATE ON flows_deferred_completions BEGIN UPDATE flows_deferred_completions SET consumed_at_ms = 9; END"
    ]) expectRefused(smallStore({ extra }), "rows_changed_mismatch")
  })
})

describe("a column's own ways", () => {
  it("that make other values of those planned are noticed", () => {
    const db = new Database(":memory:")
    db.exec(tablesSql().replace("due_at_ms INTEGER", "due_at_ms TEXT"))
    storyOf(db).run("r").clock("r", "c")
    // A time that is text is never the recorded one, so writing it again would not help.
    expect(verify(db).findings).toMatchObject([{ id: "clock_differs", expected: 100, found: expect.stringMatching(/^100/) }])
    expectRefused(db, "rows_changed_mismatch")
  })

  it("that replace another row are noticed", () => {
    const db = new Database(":memory:")
    db.exec(tablesSql({ clockColumns: ", UNIQUE (due_at_ms) ON CONFLICT REPLACE" }))
    storyOf(db).run("r").clock("r", "a", { row: false, dueAtMs: 7 }).clock("r", "b", { row: false, dueAtMs: 7 })
    expectRefused(db, "rows_changed_mismatch", { expected: "2", found: "1" })
  })

  it("that keep whole numbers as reals are no difference", () => {
    const db = new Database(":memory:")
    db.exec(tablesSql({ integer: "REAL" }))
    storyOf(db).run("r").clock("r", "c", { row: false }).clock("r", "d").completion("r", "x")
    expect(rebuild(db).rows).toBe(1)
    expect(verify(db).verdict).toBe("match")
  })
})

describe("names that a store cannot hold", () => {
  it("refuse the plan before anything is written", () => {
    const db = smallStore()
    storyOf(db).append("r", scheduled, `{"flowName":"F","executionId":"r","clockName":"\\ud800","deferredName":"d","dueAtMs":1}`, 60)
    expect(plan(db).unstorable).toBe(1)
    expectRefused(db, "row_not_writable")
  })
})

describe("writing in bulk", () => {
  it("finds each row by the key's index: no page reads the whole table", () => {
    for (const suffix of ["", "WITHOUT ROWID"]) {
      const db = emptyStore({ suffix })
      const names = namesOf(undefined)
      for (const [name, sql] of [...Object.entries(planStatements(names)), ...Object.entries(checkStatements(names))]) {
        const steps = (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all("[]") as { detail: string }[]).map(({ detail }) => detail)
        const onTables = steps.filter((detail) => /flows_| t /.test(detail))
        expect(onTables.filter((detail) => !/^SEARCH (flows_\w+|t) .*\(flow_name=\? AND execution_id=\? AND \w+=\?\)/.test(detail)), name).toEqual([])
        expect(onTables.length, name).toBe(sql.startsWith("INSERT") ? 0 : 1)
      }
    }
  })

  it("writes more rows than a page holds", () => {
    const db = emptyStore()
    const story = storyOf(db).run("r")
    db.transaction(() => {
      for (let clock = 0; clock < 5001; clock++) story.clock("r", `c${clock}`, { row: clock % 2 === 0, dueAtMs: clock })
    })()
    db.exec("UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1 WHERE due_at_ms > 10")
    const made = plan(db)
    expect(made.pages.length).toBeGreaterThan(3)
    expect(apply(db, made).rows).toBe(2500 + 2495)
    expect(verify(db).verdict).toBe("match")
  })
})
