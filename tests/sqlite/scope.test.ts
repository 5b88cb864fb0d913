/** Some runs only, and earlier reports: what is then checked, what is not, and that the report says so. */
import { describe, expect, it } from "vitest"
import type { Head } from "journal-fold/deferred-clock"
import { checkpointStateText, plan, rebuild, verify } from "journal-fold/sqlite"
import { codeOf, copyOf, demoStore, derivedRows, emptyStore, scheduled, short, storyOf } from "./stores.js"

/** Runs a, b and c, each with a clock that is missing in the table, and a clock that nothing explains. */
function driftedStore() {
  const db = emptyStore()
  storyOf(db).run("a").run("b").clock("a", "x", { row: false }).clock("b", "x", { row: false }).clock("c", "x", { row: false })
  db.exec("INSERT INTO flows_clock_deadlines VALUES ('F', 'a', 'stray', 'd', 1, NULL), ('F', 'nobody', 'stray', 'd', 1, NULL)")
  db.exec("INSERT INTO flows_deferred_completions VALUES ('F', 'a', 'early', '1', NULL, 1, NULL)")
  return db
}

describe("runs", () => {
  it("looks at those and no others, and says what was left out", () => {
    const db = driftedStore()
    const { findings, coverage, rebuilt, verdict } = verify(db, { runs: ["b"] })
    expect(short(findings)).toEqual(["clock_missing b/x"])
    expect(coverage).toMatchObject({ runs: 1, leftOut: 'all runs but "b"' })
    expect([verdict, rebuilt.unexplained]).toEqual(["drift", null])
    expect(verify(db, { runs: new Set(["b", "a", "b"]) }).coverage).toMatchObject({ runs: 2, leftOut: "all runs but 2" })
  })

  it("calls no row unexpected, because a run that was left out may explain it, and counts it as not checked", () => {
    const { findings, notChecked, rebuilt } = verify(driftedStore(), { runs: ["a"] })
    expect(short(findings)).toEqual(["clock_missing a/x"])
    expect(rebuilt.unexplained).toBeNull()
    expect(notChecked.map(({ what, count }) => [what, count])).toEqual(
      expect.arrayContaining([["completion_rows", 1], ["clock_rows", 1]])
    )
  })

  it("in any order, and those that have only a floor or nothing at all", () => {
    const { db } = demoStore({ runs: 30 })
    const floorOnly = db.prepare(`SELECT DISTINCT run_id FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL
      AND run_id NOT IN (SELECT run_id FROM flows_journal_events)`).pluck().all() as string[]
    expect(floorOnly.length).toBeGreaterThan(0)
    const ids = db.prepare("SELECT run_id FROM flows_runs ORDER BY random()").pluck().all() as string[]
    expect(verify(db, { runs: floorOnly })).toMatchObject({ verdict: "match", coverage: { runs: floorOnly.length, entries: 0 } })
    expect(verify(db, { runs: [...ids, "nobody"] })).toMatchObject({ verdict: "match", coverage: { runs: 30 }, stateDigest: verify(db).stateDigest })
    expect(verify(db, { runs: [] })).toMatchObject({ verdict: "match", coverage: { runs: 0, leftOut: "all runs but 0" } })
  })

  it("'live' are those that have a row", () => {
    const db = driftedStore()
    const { findings, coverage } = verify(db, { runs: "live" })
    expect(short(findings)).toEqual(["clock_missing a/x", "clock_missing b/x"])
    expect(coverage).toMatchObject({ runs: 2, leftOut: "runs without a row" })
    expect(verify(db).counts).toEqual({ run_missing: 1, clock_missing: 3, clock_unexpected: 2 })
  })

  it("are rebuilt alone", () => {
    const db = driftedStore()
    expect(codeOf(() => rebuild(db))).toBe("fold_incomplete")
    expect(plan(db, { runs: "live" })).toMatchObject({ rows: 2, effects: { clocksArmed: 2, pendingDeleted: 0 } })
    expect(rebuild(db, { runs: "live" }).rows).toBe(2)
    expect(verify(db, { runs: "live" })).toMatchObject({ verdict: "match", findings: [] })
    expect(db.prepare("SELECT count(*) FROM flows_clock_deadlines").pluck().get()).toBe(4)
  })

  it("must be a list of texts", () => {
    for (const runs of ["a", 7, [7]]) expect(codeOf(() => verify(driftedStore(), { runs } as never))).toBe("option_invalid")
  })
})

describe("except", () => {
  it("looks at all others, wherever the run stands among them", () => {
    const { db } = demoStore({ runs: 30 })
    const sound = verify(db)
    for (const runId of db.prepare("SELECT run_id FROM flows_runs").pluck().all() as string[]) {
      const copy = copyOf(db)
      copy.prepare("UPDATE flows_journal_events SET payload_json = '{' WHERE run_id = ?").run(runId)
      copy.prepare("UPDATE flows_journal_checkpoints SET state_json = '{' WHERE run_id = ?").run(runId)
      const { verdict, findings, coverage, rebuilt } = verify(copy, { except: [runId] })
      expect([verdict, findings, coverage.runs, rebuilt.unexplained]).toEqual(["match", [], sound.coverage.runs - 1, null])
      expect(coverage.leftOut).toBe(`run ${JSON.stringify(runId)}`)
    }
  })

  it("goes with runs, and of several only the number is said", () => {
    const db = driftedStore()
    expect(verify(db, { except: ["a", "zz"] }).coverage).toMatchObject({ runs: 2, leftOut: "2 runs named" })
    expect(verify(db, { runs: ["a", "b"], except: ["a"] }).coverage).toMatchObject({ runs: 1, leftOut: 'all runs but "b"' })
    expect(verify(db, { runs: "live", except: ["a"] }).coverage).toMatchObject({ runs: 1, leftOut: 'runs without a row, run "a"' })
    expect(verify(db, { except: [] }).coverage).not.toHaveProperty("leftOut")
  })

  it("gets past a run whose seqs are none", () => {
    const db = emptyStore({ integer: "" })
    storyOf(db).run("a").run("c").clock("a", "x").clock("c", "x")
    for (const seq of [1.5, "abc", null, -3]) db.prepare("INSERT INTO flows_journal_events VALUES ('b', ?, ?, '{}')").run(seq, scheduled)
    expect(codeOf(() => verify(db))).toBe("seq_invalid")
    expect(verify(db, { except: ["b"] })).toMatchObject({ verdict: "match", coverage: { runs: 2 } })
  })
})

describe("baseline", () => {
  const { db: earlier } = demoStore({ runs: 30 })
  const { heads = [] } = verify(earlier, { heads: true })
  const rich = heads.find(({ first }) => first !== undefined) as Head

  it("is met by the same store, by one that was written on, and by one that was compacted since", () => {
    expect(verify(earlier, { baseline: heads }).findings).toEqual([])
    const later = copyOf(earlier)
    storyOf(later).append(rich.runId, scheduled, { flowName: "F", executionId: rich.runId, clockName: "later", deferredName: "d", dueAtMs: 1 }, BigInt(rich.last as string) + 5n)
    later.prepare("INSERT INTO flows_clock_deadlines VALUES ('F', ?, 'later', 'd', 1, NULL)").run(rich.runId)
    expect(verify(later, { baseline: heads }).findings).toEqual([])
    const compacted = copyOf(earlier)
    compacted.transaction(() => {
      const upTo = Number(rich.last)
      const state = checkpointStateText(compacted, rich.runId, upTo)
      compacted.prepare("INSERT OR REPLACE INTO flows_journal_checkpoints VALUES (?, ?, ?, 1)").run(rich.runId, upTo, state)
      compacted.prepare("DELETE FROM flows_journal_events WHERE run_id = ? AND seq <= ?").run(rich.runId, upTo)
    })()
    expect(verify(compacted, { baseline: heads })).toMatchObject({ verdict: "match", findings: [] })
    expect(verify(compacted, { baseline: JSON.parse(JSON.stringify(heads)) }).verdict).toBe("match")
  })

  it("names a run whose journal is shorter now", () => {
    const cut = copyOf(earlier)
    cut.prepare("DELETE FROM flows_journal_events WHERE run_id = ? AND seq >= ?").run(rich.runId, Number(rich.last))
    expect(verify(cut).counts).not.toHaveProperty("journal_shorter")
    const { findings, verdict } = verify(cut, { baseline: heads })
    expect(findings[0]).toMatchObject({ id: "journal_shorter", class: "refused", runId: rich.runId, expected: rich.last })
    expect(verdict).toBe("refused")
  })

  it("names a run that is gone altogether", () => {
    const gone = copyOf(earlier)
    for (const table of ["flows_runs", "flows_journal_events", "flows_journal_checkpoints"]) gone.prepare(`DELETE FROM ${table} WHERE run_id = ?`).run(rich.runId)
    for (const table of ["flows_clock_deadlines", "flows_deferred_completions"]) gone.prepare(`DELETE FROM ${table} WHERE execution_id = ?`).run(rich.runId)
    expect(verify(gone).verdict).toBe("match")
    expect(verify(gone, { baseline: heads }).findings).toMatchObject([{ id: "journal_shorter", runId: rich.runId }])
    expect(verify(gone, { baseline: heads, runs: [rich.runId] }).findings).toMatchObject([{ id: "journal_shorter", runId: rich.runId }])
  })

  it("names a run whose covered part was rewritten, though its tables agree", () => {
    const rewritten = copyOf(earlier)
    const clock = rewritten.prepare(`SELECT run_id AS runId, seq, payload_json AS payload FROM flows_journal_events WHERE event_type = ?
      AND run_id IN (SELECT execution_id FROM flows_clock_deadlines) LIMIT 1`).get(scheduled) as { runId: string; seq: number; payload: string }
    const payload = { ...JSON.parse(clock.payload), dueAtMs: 12345 }
    rewritten.prepare("UPDATE flows_journal_events SET payload_json = ? WHERE run_id = ? AND seq = ?").run(JSON.stringify(payload), clock.runId, clock.seq)
    rebuild(rewritten)
    expect(verify(rewritten).verdict).toBe("match")
    expect(verify(rewritten, { baseline: heads }).findings).toMatchObject([{ id: "journal_rewritten", class: "refused", runId: clock.runId }])
    const before = derivedRows(rewritten)
    expect(codeOf(() => rebuild(rewritten, { baseline: heads }))).toBe("fold_incomplete")
    expect(derivedRows(rewritten)).toBe(before)
  })

  it("is silent about runs out of scope", () => {
    const gone = copyOf(earlier)
    for (const table of ["flows_runs", "flows_journal_events", "flows_journal_checkpoints"]) gone.prepare(`DELETE FROM ${table} WHERE run_id = ?`).run(rich.runId)
    const other = heads.find(({ runId }) => runId !== rich.runId) as Head
    expect(verify(gone, { baseline: heads, except: [rich.runId] }).findings).toEqual([])
    expect(verify(gone, { baseline: heads, runs: [other.runId] }).findings).toEqual([])
    expect(verify(gone, { baseline: heads, runs: "live" }).findings).toEqual([])
  })

  it("that is none is refused", () => {
    expect(codeOf(() => verify(earlier, { baseline: [{ runId: "r", last: "x", digest: "y" }] }))).toBe("option_invalid")
  })
})
