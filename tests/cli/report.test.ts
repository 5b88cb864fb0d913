/** The report as text: the same every time, in a fixed order, no wider than a terminal, and with everything at its end that there is to say. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { asOf, damaged, emptyAndAlter, emptyStore, linesOf, row, run, soundStore, steady, store } from "./harness.js"

const version = (JSON.parse(readFileSync(new URL("../../pkg/package.json", import.meta.url), "utf8")) as { version: string }).version

/** A small store of every kind of thing, whose report can be read at a glance. */
function smallStore(): string {
  return emptyStore("small.db", (db) => {
    const run = db.prepare("INSERT INTO flows_runs VALUES (?, 'orders', 'running', 0, 0)")
    const entry = db.prepare("INSERT INTO flows_journal_events VALUES (?, ?, ?, ?)")
    const clock = db.prepare("INSERT INTO flows_clock_deadlines VALUES ('orders', ?, ?, ?, ?, ?)")
    const completion = db.prepare("INSERT INTO flows_deferred_completions VALUES ('orders', ?, ?, ?, NULL, ?, ?)")
    const put = (runId: string, seq: number, type: string, payload: object): void => {
      entry.run(runId, seq, `flows.engine.${type}`, JSON.stringify({ flowName: "orders", executionId: runId, ...payload }))
    }
    for (const runId of ["run-1", "run-2"]) run.run(runId)
    put("run-1", 0, "run-started", {})
    put("run-1", 1, "clock-scheduled", { clockName: "timeout", deferredName: "payment", dueAtMs: 1_735_689_700_000 })
    put("run-1", 2, "clock-scheduled", { clockName: "late fee", deferredName: "fee", dueAtMs: 1_735_700_000_000 })
    put("run-1", 3, "clock-completed", { clockName: "nobody scheduled this", completedAtMs: 1 })
    put("run-1", 4, "deferred-completed", { deferredName: "payment", completedAtMs: 1_735_689_650_000 })
    put("run-2", 0, "clock-scheduled", { clockName: "timeout", deferredName: "payment", dueAtMs: 1_735_689_700_000 })
    clock.run("run-1", "timeout", "payment", 1_735_689_700_999, null)
    clock.run("run-2", "timeout", "payment", 1_735_689_700_000, null)
    clock.run("run-2", "by hand", "payment", 1_735_689_800_000, null)
    completion.run("run-1", "payment", '"paid"', 1_735_689_650_000, 1_735_689_660_000)
    completion.run("run-2", "came early", '"hello"', 1_735_689_650_000, null)
  })
}

describe("a report", () => {
  it("reads like this", () => {
    const ran = run(["verify", smallStore(), "--as-of", asOf])
    expect(steady(ran.stdout)).toBe(`# journal-fold ${version} verify /small.db
clock_missing class=drift run=run-1 flow=orders execution=run-1 name="late fee" expected="deferredName=fee dueAtMs=1735700000000 completedAtMs=null"
clock_differs class=drift run=run-1 flow=orders execution=run-1 name=timeout field=dueAtMs expected=1735689700000 found=1735689700999
clock_unexpected class=drift flow=orders execution=run-2 name="by hand" found="deferredName=payment dueAtMs=1735689800000 completedAtMs=null"
stamp_differs class=drift run=run-1 flow=orders execution=run-1 name=payment field=consumedAtMs expected=null found=1735689660000
#
# DRIFT  4 findings: tables and journal differ; apply repairs it
#
#   covered      2 runs, 5 entries, 0 floors, in one snapshot
#                3 clocks and 1 completion recorded
#   findings     1  clock_missing     drift  apply inserts it
#                1  clock_differs     drift  apply changes it
#                1  clock_unexpected  drift  apply deletes it
#                1  stamp_differs     drift  apply changes it
#   apply would  write 4 rows: delete 1 clock, change 1 clock, insert 1 clock,
#                change 1 completion
#                arm 2 clocks (overdue as of 2025-01-01T00:20:00.000Z: 1)
#                delete 1 pending clock, which needs --allow-delete-pending
#                clear 1 consumption, which needs --allow-unconsume
#   unexplained  1 stored completion that no entry explains
#   not checked  1  digest_absent  completions recorded without a digest: their
#                                  values were not compared
#   ignored      1  other_type           an entry of another type
#                1  nothing_to_complete  no such clock was scheduled; first:
#                                        run=run-1 seq=3
#   state        sum-xxh3-128 e76b5415e0fe0f8f3b8246d0eaef2004
#   took         …
#   next         journal-fold plan /small.db --out plan.json --as-of 2025-01-01T00:20:00Z
`)
    expect(ran.status).toBe(1)
  })

  it("is the same every time", () => {
    const store = smallStore()
    const [first, second] = [1, 2].map(() => steady(run(["verify", store, "--as-of", asOf]).stdout))
    expect(second).toBe(first)
  })

  it("says of a sound store that there is nothing to do", () => {
    const ran = run(["verify", store("sound.db")])
    const { findings, notes } = linesOf(ran)
    expect(ran.status).toBe(0)
    expect(findings).toEqual([])
    expect(notes).toContain("# MATCH  the tables say what the journal says")
    expect(row(ran, "findings")).toBe("none")
    expect(row(ran, "apply would")).toBe("write nothing")
    expect(row(ran, "not checked")).toBe("nothing")
    expect(ran.stdout).not.toContain("#   next")
  })

  it("counts what it covered as the store does", () => {
    const db = soundStore()
    const count = (sql: string): string => Number(db.prepare(sql).pluck().get()).toLocaleString("en-US")
    const types = "('flows.engine.clock-scheduled', 'flows.engine.clock-completed', 'flows.engine.deferred-completed', 'flows.engine.deferred-consumed')"
    const runs = count("SELECT count(*) FROM flows_runs")
    const entries = count(`SELECT count(*) FROM flows_journal_events WHERE event_type IN ${types}`)
    const floors = count("SELECT count(DISTINCT run_id) FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL")
    const clocks = count("SELECT count(*) FROM flows_clock_deadlines")
    const completions = count("SELECT count(*) FROM flows_deferred_completions")
    expect(row(run(["verify", store("sound.db")]), "covered")).toBe(
      `${runs} runs, ${entries} entries, ${floors} floors, in one snapshot ${clocks} clocks and ${completions} completions recorded`
    )
  })

  it("begins every line that is no finding with #, and is no wider than a terminal but for findings and commands", () => {
    for (const made of [store("altered.db", emptyAndAlter), damaged("payload-cut-short").path, damaged("clock-recorded-twice").path]) {
      const { notes, findings } = linesOf(run(["verify", made]))
      for (const line of findings) expect(line).toMatch(/^[a-z_]+ class=(unjoined|drift|refused)( [a-z]+=("([^"\\]|\\.)*"|[A-Za-z0-9._:\/@-]+))+$/)
      for (const line of notes.slice(1).filter((note) => !note.includes("journal-fold "))) expect([...line].length, line).toBeLessThanOrEqual(80)
    }
  })

  it("caps what it prints and never what it counts", () => {
    const altered = store("altered.db", emptyAndAlter)
    const all = run(["verify", altered, "--as-of", asOf])
    const { findings } = linesOf(all)
    expect(findings.length).toBeGreaterThan(100)
    const capped = run(["verify", altered, "--max-findings", "3"])
    expect(linesOf(capped).findings).toEqual(findings.slice(0, 3))
    expect(capped.stdout).toContain(`# … and ${(findings.length - 3).toLocaleString("en-US")} more findings, not printed (--max-findings 3)\n`)
    expect(row(capped, "findings")).toBe(row(all, "findings"))
    expect(capped.status).toBe(1)
    expect(linesOf(run(["verify", altered, "--max-findings", "0"])).findings).toEqual([])
    const whole = run(["verify", altered, "--max-findings", String(findings.length), "--as-of", asOf])
    expect(steady(whole.stdout)).toBe(steady(all.stdout))
  })

  it("says what refuses, in which order to look, and what could not be judged", () => {
    const ran = run(["verify", damaged("payload-cut-short").path])
    expect(linesOf(ran).notes).toContain("# REFUSED  1 finding: nothing may be written until this is looked into")
    expect(row(ran, "covered")).toContain("1 run of these could not be folded")
    expect(row(ran, "apply would")).toBe("refuse, for 1 finding that no rebuild repairs")
    expect(row(ran, "not checked")).toMatch(/^1 runs_unfolded .* clock_rows .* completion_rows /)
    expect(row(ran, "findings")).toBe("1 payload_not_json refused restore the entry from a backup")
    expect(row(ran, "next")).toBe("journal-fold explain payload_not_json")
  })

  it("says what stands first among the findings of several classes", () => {
    const both = store("both.db", (db) => {
      db.exec("DELETE FROM flows_deferred_completions WHERE rowid = (SELECT min(rowid) FROM flows_deferred_completions)")
      db.exec("UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1 WHERE rowid = (SELECT min(rowid) FROM flows_clock_deadlines)")
    })
    const ran = run(["verify", both])
    expect(ran.status).toBe(3)
    expect(linesOf(ran).findings.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual(["row_missing class=unjoined", "clock_differs class=drift"])
    expect(row(ran, "apply would")).toBe("refuse, for 1 finding that no rebuild repairs")
  })

  it("tells of notes", () => {
    const beyond = store("beyond.db", (db) => db.exec("UPDATE flows_journal_checkpoints SET seq = seq + 1000000 WHERE compacted_at_ms IS NOT NULL"))
    expect(row(run(["verify", beyond]), "notes")).toMatch(/^\d+ checkpoint_beyond_head runs whose floor lies beyond .*; first: run=\S+$/)
  })

  it("names the file as a shell would", () => {
    const ran = run(["verify", store("it's here.db")])
    expect(ran.stdout.split("\n")[0]).toContain("it'\\''s here.db'")
  })
})
