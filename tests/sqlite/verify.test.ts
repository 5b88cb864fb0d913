/** What `verify` says of a store: verdict, coverage, counts, and what its options change. */
import { describe, expect, it, vi } from "vitest"
import { contentDigest } from "journal-fold/digest"
import { plan, rebuild, verify } from "journal-fold/sqlite"
import { damages } from "../../js/demo/damages.js"
import { codeOf, copyOf, demoStore, emptyStore, scheduled, short, sha256, storyOf } from "./stores.js"

const { db: sound, summary } = demoStore()
const matched = verify(sound)

describe("a sound store", () => {
  it("matches, and the report says what was covered", () => {
    expect(matched).toMatchObject({ verdict: "match", findings: [], counts: {}, unjoined: [], notChecked: [], notes: [] })
    expect(matched.rebuilt).toEqual({ runs: summary.runs, clocks: summary.clocks, deferreds: summary.completions, unexplained: 0 })
    expect(matched.coverage).toMatchObject({ runs: summary.runs, floors: summary.compactedRuns, unfolded: 0 })
    const others = matched.ignored.find(({ reason }) => reason === "other_type")?.count ?? 0
    expect(matched.coverage.entries + others).toBe(summary.entries)
    expect(matched.coverage).not.toHaveProperty("leftOut")
    expect(matched.plan).toMatchObject({ rows: 0, pages: [] })
  })

  it("says the same the second time, and in a copy", () => {
    expect(verify(sound)).toEqual(matched)
    expect(verify(copyOf(sound))).toEqual(matched)
  })

  it("agrees with its uncompacted twin in findings, what was rebuilt, and the state's digest", () => {
    const twin = verify(demoStore({ checkpointStateText: undefined as never }).db)
    expect(twin.coverage.floors).toBe(0)
    expect([twin.findings, twin.rebuilt, twin.stateDigest]).toEqual([matched.findings, matched.rebuilt, matched.stateDigest])
  })

  it("is covered to the end when it is empty", () => {
    expect(verify(emptyStore())).toMatchObject({ verdict: "match", coverage: { runs: 0, entries: 0 }, rebuilt: { unexplained: 0 } })
  })
})

describe("a damaged store", () => {
  it.each(damages)("$name: $why", (damage) => {
    const copy = copyOf(sound)
    const { address } = damage.apply(copy)
    const { findings, verdict, rebuilt } = verify(copy)
    expect(findings.map(({ id }) => id)).toEqual(damage.expects)
    for (const { executionId, runId } of findings) expect([address.executionId, address.runId]).toContain(executionId ?? runId)
    const verdicts = { unjoined: "refused", refused: "refused", drift: "drift", counted: "match" }
    expect(verdict).toBe(verdicts[damage.class])
    if (damage.class === "counted") expect(rebuilt.unexplained).toBe(1)
  })

  it("with every damage at once names each of them", () => {
    const copy = copyOf(sound)
    for (const damage of damages.filter(({ class: kind }) => kind === "drift")) damage.apply(copy)
    const { counts } = verify(copy)
    expect(Object.keys(counts).sort()).toEqual(["clock_differs", "clock_missing", "clock_unexpected", "stamp_differs"])
  })

  it("shows no value of a completion, only digests", () => {
    const copy = copyOf(sound)
    copy.exec(`UPDATE flows_deferred_completions SET exit_json = '"a secret of the house"', metadata_json = '"another secret"'`)
    const report = JSON.stringify(verify(copy))
    expect(["a secret of the house", "another secret"].filter((value) => report.includes(value))).toEqual([])
  })
})

describe("rows of one run that name another's execution", () => {
  it("are joined, and hide no row that nothing explains", () => {
    const db = emptyStore()
    // Both runs record for b's execution, so its rows are read twice; an unexplained clock stands where no run looks.
    storyOf(db).run("a").run("b").clock("b", "by-a", { runId: "a" }).clock("b", "own").completion("b", "x", { runId: "a" })
    db.exec("INSERT INTO flows_clock_deadlines VALUES ('G', 'nobody', 'c', 'd', 1, NULL)")
    expect(short(verify(db).findings)).toEqual(["clock_unexpected nobody/c"])
    rebuild(db, { allowDeletePending: true })
    expect(verify(db)).toMatchObject({ verdict: "match", plan: { rows: 0 } })
  })

  it("are found missing and differing", () => {
    const db = emptyStore()
    storyOf(db).run("a").run("b").clock("b", "gone", { runId: "a", row: false }).clock("b", "late", { runId: "a" }).completion("b", "x", { runId: "a", row: false })
    db.exec("UPDATE flows_clock_deadlines SET due_at_ms = 7")
    expect(short(verify(db).findings)).toEqual(["row_missing b/x", "clock_missing b/gone", "clock_differs b/late dueAtMs"])
  })
})

describe("options", () => {
  it("that nobody knows are refused", () => {
    expect(codeOf(() => verify(sound, { sctrict: true } as never))).toBe("option_unknown")
    expect(codeOf(() => verify(sound, { names: { journal: { tabel: "x" } } } as never))).toBe("option_unknown")
    expect(codeOf(() => verify(sound, { maxUnexplained: -1 }))).toBe("option_invalid")
    expect(codeOf(() => verify(sound, { digest: "sha256" } as never))).toBe("option_invalid")
    expect(codeOf(() => verify(sound, { runs: "r1" } as never))).toBe("option_invalid")
    expect(codeOf(() => verify("store.db" as never))).toBe("argument_invalid")
  })

  it("digest: the host's function and the module's give the same, and are named", () => {
    const module = verify(sound, { digest: contentDigest })
    expect([matched.digestFunction, module.digestFunction]).toEqual(["host", "module"])
    expect({ ...module, digestFunction: "host" }).toEqual(matched)
    const own = vi.fn(sha256)
    expect(verify(sound, { digest: own })).toEqual(matched)
    expect(own.mock.calls.length).toBeGreaterThan(summary.completions)
    expect(verify(sound, { digest: () => "0".repeat(64) }).counts).toEqual({ digest_mismatch: summary.completions })
  })

  it("strict: completions without a sound digest are findings", () => {
    const db = emptyStore()
    storyOf(db).completion("r", "x", { digest: "no digest" }).completion("r", "y")
    expect(verify(db)).toMatchObject({ verdict: "match", notChecked: [{ what: "digest_malformed", count: 1 }] })
    expect(verify(db, { strict: true })).toMatchObject({ verdict: "refused", findings: [{ id: "digest_malformed", class: "unverifiable", name: "x" }] })
    expect(codeOf(() => rebuild(db, { strict: true }))).toBe("fold_incomplete")
  })

  it("maxUnexplained: more stored completions that nothing explains are a finding", () => {
    const db = emptyStore()
    storyOf(db).completion("r", "x")
    db.exec(`INSERT INTO flows_deferred_completions VALUES ('F', 'r', 'early', '1', NULL, 1, NULL), ('F', 'elsewhere', 'early', '1', NULL, 1, NULL)`)
    expect(verify(db)).toMatchObject({ verdict: "match", rebuilt: { unexplained: 2 } })
    expect(verify(db, { maxUnexplained: 2 }).verdict).toBe("match")
    expect(verify(db, { maxUnexplained: 1 })).toMatchObject({ verdict: "refused", findings: [{ id: "unexplained_above_limit", expected: 1, found: 2 }] })
  })

  it("asOfMs: clocks to be armed that are due count as overdue", () => {
    const db = emptyStore()
    storyOf(db).run("r").clock("r", "soon", { dueAtMs: 10, row: false }).clock("r", "late", { dueAtMs: 20, row: false })
    expect(plan(db).effects).toMatchObject({ clocksArmed: 2, clocksOverdue: 0 })
    expect(plan(db, { asOfMs: 10 }).effects).toMatchObject({ clocksArmed: 2, clocksOverdue: 1 })
  })

  it("heads: what was covered of each run, in byte order", () => {
    const { heads = [] } = verify(sound, { heads: true })
    expect(heads).toHaveLength(summary.runs)
    expect(heads.filter(({ floor }) => floor !== undefined)).toHaveLength(summary.compactedRuns)
    const ids = heads.map(({ runId }) => Buffer.from(runId))
    expect(ids).toEqual(ids.toSorted(Buffer.compare))
    expect(matched).not.toHaveProperty("heads")
  })

  it("onProgress: is told how far the work is, to the end", () => {
    const seen: number[] = []
    const totals = new Set<unknown>()
    verify(sound, { onProgress: ({ entries, total }) => { seen.push(entries); totals.add(total) } })
    expect(seen.at(-1)).toBe(summary.entries)
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    expect([...totals]).toEqual([summary.entries])
  })
})

describe("work that is stopped", () => {
  it("has compared every run that it says it has covered", () => {
    const db = copyOf(sound)
    db.exec("DELETE FROM flows_clock_deadlines")
    const whole = verify(db)
    for (const options of [{}, { runs: db.prepare("SELECT run_id FROM flows_runs").pluck().all() as string[] }]) {
      for (const calls of [1, 3]) {
        let left = calls
        const stopped = verify(db, { ...options, onProgress: () => --left > 0 })
        expect(stopped.verdict).toBe("partial")
        if (stopped.coverage.runs === 0) continue
        expect(stopped.coverage.runs).toBeLessThan(whole.coverage.runs)
        expect(stopped.findings.length).toBeGreaterThan(0)
        expect(stopped.findings.map(({ id }) => id)).toEqual(Array(stopped.rebuilt.clocks).fill("clock_missing"))
        expect(whole.findings).toEqual(expect.arrayContaining([...stopped.findings]))
        expect(stopped.notChecked.map(({ what }) => what)).not.toContain("runs_unanswered")
      }
    }
  })
})

describe("notes", () => {
  it("say that a checkpoint lies beyond the journal's head", () => {
    const db = emptyStore()
    storyOf(db).run("r").clock("r", "c")
    db.prepare("INSERT INTO flows_journal_checkpoints VALUES ('r', 9, ?, 1)").run(JSON.stringify({ "flows.engine.deferred-clock": {
      clocks: [{ flowName: "F", executionId: "r", clockName: "c", deferredName: "d/c", dueAtMs: 100, completedAtMs: null }], deferreds: []
    } }))
    expect(verify(db)).toMatchObject({ verdict: "match", notes: [{ what: "checkpoint_beyond_head", count: 1, firstRunId: "r" }] })
  })

  it("say that two runs record one completion", () => {
    const db = emptyStore()
    storyOf(db).completion("b", "x", { runId: "a" }).completion("b", "x", { row: false })
    expect(verify(db).notes).toMatchObject([{ what: "recorded_by_two_runs", count: 1 }])
  })
})

describe("one bad run", () => {
  it("hides no other, and while it is unfolded nothing is called unexplained", () => {
    const db = emptyStore()
    const story = storyOf(db).run("a").run("b").clock("b", "c", { row: false })
    story.append("a", scheduled, "{broken")
    db.exec("INSERT INTO flows_clock_deadlines VALUES ('F', 'a', 'maybe', 'd', 1, NULL)")
    const { findings, verdict, rebuilt, notChecked } = verify(db)
    expect(short(findings)).toEqual(["payload_not_json a", "clock_missing b/c"])
    expect([verdict, rebuilt.unexplained]).toEqual(["refused", null])
    expect(notChecked.map(({ what, count }) => [what, count])).toContainEqual(["runs_unfolded", 1])
  })
})
