/** Captures and checkpoints from a store: what a compaction calls inside its own transaction. */
import { describe, expect, it } from "vitest"
import { capture, checkCheckpoint, checkpointState, checkpointStateText, verify } from "journal-fold/sqlite"
import { plainCheckpointStateText } from "../demo/plain-fold.js"
import { codeOf, completed, consumed, copyOf, demoStore, emptyStore, errorOf, fired, scheduled, storyOf } from "./stores.js"

const key = "flows.engine.deferred-clock"

function store() {
  const db = emptyStore()
  const story = storyOf(db).run("r").clock("r", "c").completion("r", "x")
  story.append("r", fired, { flowName: "F", executionId: "r", clockName: "c", completedAtMs: 110 })
  story.append("r", consumed, { flowName: "F", executionId: "r", deferredName: "x", consumedAtMs: 130 })
  db.exec("UPDATE flows_clock_deadlines SET completed_at_ms = 110; UPDATE flows_deferred_completions SET consumed_at_ms = 130")
  return db
}

describe("a compaction", () => {
  it("keeps the fold before it deletes the entries, all in one transaction, and the store says the same afterwards", () => {
    const db = store()
    const before = verify(db)
    db.transaction(() => {
      // Its own spelling: digits, spaces and repeated keys that no JSON.parse would keep.
      const base = `{"engine":{"step":7.0,"big":12345678901234567890},  "engine" : {"step":7}}`
      const text = checkpointStateText(db, "r", 2, base)
      expect(text.startsWith(base.slice(0, -1))).toBe(true)
      expect(JSON.parse(text)[key].clocks).toEqual([{ flowName: "F", executionId: "r", clockName: "c", deferredName: "d/c", dueAtMs: 100, completedAtMs: 110 }])
      expect(checkCheckpoint(db, "r", 2, text)).toEqual({ matches: true, differences: [] })
      db.prepare("INSERT INTO flows_journal_checkpoints VALUES ('r', 2, ?, 1)").run(text)
      db.exec("DELETE FROM flows_journal_events WHERE seq <= 2")
      // From the new floor on, the same: still inside.
      expect(capture(db, "r", 3).deferreds[0]).toMatchObject({ consumedAtMs: 130 })
    })()
    const after = verify(db)
    expect([after.verdict, after.rebuilt, after.stateDigest]).toEqual([before.verdict, before.rebuilt, before.stateDigest])
  })

  it("that is rolled back has left nothing", () => {
    const db = store()
    expect(() => db.transaction(() => {
      db.prepare("INSERT INTO flows_journal_checkpoints VALUES ('r', 3, ?, 1)").run(checkpointStateText(db, "r", 3))
      throw new Error("no")
    })()).toThrow("no")
    expect(verify(db)).toMatchObject({ verdict: "match", coverage: { floors: 0 } })
  })

  it("gives what a plain fold gives, in every run of a store that an engine wrote", () => {
    const { db } = demoStore({ runs: 30 })
    for (const runId of db.prepare("SELECT run_id FROM flows_runs").pluck().all() as string[]) {
      const upTo = 1e6
      expect(JSON.parse(checkpointStateText(db, runId, upTo, '{"a":1}'))).toEqual(JSON.parse(plainCheckpointStateText(db, runId, upTo, '{"a":1}')))
    }
  })
})

describe("capture", () => {
  it("takes any finite bound, inclusive", () => {
    const db = store()
    expect(capture(db, "r", -1)).toEqual({ clocks: [], deferreds: [] })
    expect(capture(db, "r", 0)).toMatchObject({ clocks: [{ completedAtMs: null }], deferreds: [] })
    expect(capture(db, "r", 1.5)).toMatchObject({ clocks: [{ completedAtMs: null }], deferreds: [{ consumedAtMs: null }] })
    expect(capture(db, "r", 1e300)).toEqual(capture(db, "r", 3))
    for (const bound of [Number.NaN, Number.POSITIVE_INFINITY, "3"]) expect(codeOf(() => capture(db, "r", bound as number))).toBe("bound_invalid")
  })

  it("of a run that nobody knows is empty", () => {
    expect(capture(store(), "nobody", 9)).toEqual({ clocks: [], deferreds: [] })
    expect(codeOf(() => capture(store(), 7 as never, 9))).toBe("argument_invalid")
    expect(codeOf(() => capture(store(), "r", 9, { upTo: 1 } as never))).toBe("option_unknown")
  })

  it("begins at the floor, the compacted checkpoint with the highest seq, and refuses a bound below it", () => {
    const db = store()
    const insert = db.prepare("INSERT INTO flows_journal_checkpoints VALUES ('r', ?, ?, ?)")
    insert.run(0, "{}", 5)
    insert.run(1, checkpointStateText(copyOf(store()), "r", 1), 0)
    insert.run(2, "no floor", null)
    db.exec("DELETE FROM flows_journal_events WHERE seq <= 1")
    expect(capture(db, "r", 3)).toEqual(capture(store(), "r", 3))
    expect(codeOf(() => capture(db, "r", 0))).toBe("bound_below_floor")
    insert.run(3, "{}", 1)
    expect(errorOf(() => capture(db, "r", 3))).toMatchObject({ code: "fold_incomplete", unjoined: [{ reason: "checkpoint_missing", executionId: "r" }] })
  })

  it("names the entry that it cannot take", () => {
    const db = store()
    db.exec("UPDATE flows_journal_events SET payload_json = '{' WHERE seq = 2")
    expect(errorOf(() => capture(db, "r", 3))).toMatchObject({ code: "payload_not_json", details: { seq: "2" } })
    expect(capture(db, "r", 1)).toMatchObject({ deferreds: [{ deferredName: "x" }] })
    db.exec("UPDATE flows_journal_events SET payload_json = CAST(x'7b22ff227d' AS TEXT) WHERE seq = 2")
    expect(errorOf(() => capture(db, "r", 3))).toMatchObject({ code: "text_not_utf8", details: { seq: "2" } })
  })

  it("reads a run of more entries than a page holds", () => {
    const db = emptyStore()
    const story = storyOf(db)
    db.transaction(() => {
      for (let clock = 0; clock < 9000; clock++) story.append("r", clock % 3 === 0 ? "other" : scheduled, { flowName: "F", executionId: "r", clockName: `c${clock}`, deferredName: "d", dueAtMs: clock })
    })()
    expect(capture(db, "r", 8999).clocks).toHaveLength(6000)
    expect(capture(db, "r", 4095).clocks).toHaveLength(2730)
  })
})

describe("checkpointState", () => {
  it("puts the fold where the base had it, else at the end", () => {
    const db = store()
    expect(Object.keys(checkpointState(db, "r", 3, { a: 1, [key]: "old", b: 2 }))).toEqual(["a", key, "b"])
    expect(Object.keys(checkpointState(db, "r", 3, { a: 1 }))).toEqual(["a", key])
    expect(checkpointState(db, "r", 3)).toEqual({ [key]: capture(db, "r", 3) })
    for (const base of [[], "text", 7, null]) expect(codeOf(() => checkpointState(db, "r", 3, base as never))).toBe("base_not_object")
    for (const base of ["[]", "7", "{", "null"]) expect(codeOf(() => checkpointStateText(db, "r", 3, base))).toBe("base_not_object")
  })
})

describe("checkCheckpoint", () => {
  it("says which rows a state keeps otherwise, and why it keeps none", () => {
    const db = store()
    const { clocks, deferreds } = capture(db, "r", 3)
    const check = (fold: unknown) => checkCheckpoint(db, "r", 3, JSON.stringify({ [key]: fold }))
    expect(check({ clocks: clocks.map((clock) => ({ ...clock, dueAtMs: 5 })), deferreds })).toMatchObject({
      matches: false, differences: [{ expected: { dueAtMs: 100 }, found: { dueAtMs: 5 } }]
    })
    expect(check({ clocks: [], deferreds })).toMatchObject({ matches: false, differences: [{ expected: clocks[0] }] })
    expect(check({ clocks, deferreds: [...deferreds, { ...deferreds[0], deferredName: "y" }] })).toMatchObject({ matches: false, differences: [{ found: { deferredName: "y" } }] })
    for (const text of ["{", "{}", "7", `{"${key}":{}}`]) expect(checkCheckpoint(db, "r", 3, text)).toMatchObject({ matches: false, found: expect.any(String) })
  })

  it("is what keeps a compaction from losing a fold that another fold wrote wrongly", () => {
    const db = store()
    storyOf(db).append("r", completed, { flowName: "F", executionId: "r", deferredName: "late", completedAtMs: 9 }, 4)
    // Made one entry too early.
    expect(checkCheckpoint(db, "r", 4, checkpointStateText(db, "r", 3)).matches).toBe(false)
  })
})
