/** `plan` and `apply`: nothing is written unless it is asked for, allowed, and exactly what was planned. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { asOf, damaged, emptyAndAlter, file, folder, linesOf, path, row, run, runJson, soundStore, store } from "./harness.js"

const tables = ["flows_clock_deadlines", "flows_deferred_completions"] as const

/** Both tables, row for row. */
function rowsOf(at: string | Database.Database): unknown[] {
  const db = typeof at === "string" ? new Database(at, { readonly: true }) : at
  const rows = tables.map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).raw().all())
  if (typeof at === "string") db.close()
  return rows
}

const original = rowsOf(soundStore())

describe("plan", () => {
  it("says what it would do and writes nothing", () => {
    const altered = store("planned.db", emptyAndAlter)
    const before = readFileSync(altered)
    const ran = run(["plan", altered, "--as-of", asOf])
    expect(ran.status).toBe(1)
    expect(row(ran, "apply would")).toMatch(/^write \d+ rows: change \d+ clocks, insert \d+ clocks, change \d+ completions arm \d+ clocks \(overdue as of 2025-01-01T00:20:00.000Z: \d+\) complete \d+ pending clocks set \d+ consumptions$/)
    expect(readFileSync(altered).equals(before)).toBe(true)
    expect(row(ran, "next")).toMatch(/^journal-fold plan \S+ --out plan\.json --as-of /)
  })

  it("writes a plan to a file that has no half", () => {
    const altered = store("planned.db", emptyAndAlter)
    const out = path("out.json")
    const ran = run(["plan", altered, "--out", out])
    expect(ran.status).toBe(1)
    const planned = JSON.parse(readFileSync(out, "utf8")) as { format: string; plan: { digest: string; rows: number; pages: { count: number; rows: string }[] } }
    expect(planned.format).toBe("journal-fold/plan")
    expect(planned.plan.pages.reduce((sum, page) => sum + (JSON.parse(page.rows) as unknown[]).length, 0)).toBe(planned.plan.rows)
    expect(row(ran, "plan")).toBe(`written to ${out}, digest ${planned.plan.digest}`)
    expect(row(ran, "next")).toBe(`journal-fold apply ${altered} ${out} journal-fold apply ${altered} ${out} --write`)
    expect(readdirSync(folder).filter((name) => name.startsWith(".journal-fold"))).toEqual([])
  })

  it("of a sound store changes nothing, and is a plan all the same", () => {
    const sound = store("sound.db")
    expect(run(["plan", sound, "--out", path("empty.json")]).status).toBe(0)
    expect(run(["apply", sound, path("empty.json"), "--write"]).status).toBe(0)
  })

  it("of a store that refuses is none", () => {
    const { path: refused } = damaged("completion-deleted")
    const ran = run(["plan", refused, "--out", path("refused.json")])
    expect(ran.status).toBe(3)
    expect(row(ran, "plan")).toBe("not written")
    expect(existsSync(path("refused.json"))).toBe(false)
    expect(linesOf(ran).findings).toHaveLength(1)
  })

  it("that cannot be written is an error", () => {
    const ran = run(["plan", store("planned.db", emptyAndAlter), "--out", path("nix/plan.json")])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toMatch(/^journal-fold: option_invalid: --out: /)
  })
})

describe("apply", () => {
  it("is a dry run", () => {
    const altered = store("dry.db", emptyAndAlter)
    const before = readFileSync(altered)
    const ran = run(["apply", altered])
    expect(ran.status).toBe(1)
    expect(row(ran, "dry run")).toBe("nothing was written")
    expect(row(ran, "next")).toBe(`journal-fold apply ${altered} --write`)
    expect(readFileSync(altered).equals(before)).toBe(true)
    expect(run(["apply", store("sound.db")]).status).toBe(0)
    expect(run(["apply", damaged("completion-deleted").path]).status).toBe(3)
  })

  it("with --write makes the tables what they were", () => {
    const altered = store("written.db", emptyAndAlter)
    const ran = run(["apply", altered, "--write"])
    expect(ran).toMatchObject({ status: 0, stderr: "" })
    expect(ran.stdout).toContain("# REPAIRED  ")
    expect(row(ran, "wrote")).toMatch(/^\d+ rows: changed \d+ clocks, inserted \d+ clocks, changed \d+ completions armed /)
    expect(row(ran, "next")).toBe(`journal-fold verify ${altered}`)
    expect(rowsOf(altered)).toEqual(original)
    expect(run(["verify", altered]).status).toBe(0)
    const again = run(["apply", altered, "--write"])
    expect(again.status).toBe(0)
    expect(row(again, "wrote")).toBe("nothing")
  })

  it("with a plan writes exactly that, once", () => {
    const altered = store("twice.db", emptyAndAlter)
    const plan = path("twice.json")
    run(["plan", altered, "--out", plan])
    expect(run(["apply", altered, plan]).status).toBe(1)
    expect(run(["apply", altered, plan, "--write"]).status).toBe(0)
    expect(rowsOf(altered)).toEqual(original)
    const again = run(["apply", altered, plan, "--write"])
    expect(again).toMatchObject({ status: 3, stdout: "" })
    expect(again.stderr).toMatch(/^journal-fold: stale_plan: /)
  })

  it("refuses a plan for a store that has changed since", () => {
    const altered = store("stale.db", emptyAndAlter)
    const plan = path("stale.json")
    run(["plan", altered, "--out", plan])
    const db = new Database(altered)
    db.exec("UPDATE flows_deferred_completions SET completed_at_ms = completed_at_ms + 5")
    db.close()
    const before = rowsOf(altered)
    for (const args of [["apply", altered, plan], ["apply", altered, plan, "--write"]]) {
      const ran = run(args)
      expect(ran.status).toBe(3)
      expect(ran.stderr).toMatch(/^journal-fold: stale_plan: .*\n {2}what to do: plan again/)
    }
    expect(rowsOf(altered)).toEqual(before)
    const { status, document } = runJson<{ error: { code: string } }>(["apply", altered, plan, "--write"])
    expect(status).toBe(3)
    expect(document.error.code).toBe("stale_plan")
  })

  it("takes the scope from the plan", () => {
    const altered = store("scoped.db", emptyAndAlter)
    const runId = (new Database(altered).prepare("SELECT execution_id FROM flows_clock_deadlines ORDER BY 1 LIMIT 1").pluck().get() as string)
    const plan = path("scoped.json")
    run(["plan", altered, "--run", runId, "--out", plan])
    expect(run(["apply", altered, plan, "--write"]).status).toBe(0)
    expect(run(["verify", altered, "--run", runId]).status).toBe(0)
    expect(run(["verify", altered]).status).toBe(1)
    const ran = run(["apply", altered, plan, "--run", runId])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toContain("a plan carries its scope and names along")
  })

  it("deletes a pending clock only when told to", () => {
    const { path: invented } = damaged("clock-row-invented")
    const before = rowsOf(invented)
    const dry = run(["apply", invented])
    expect(dry.status).toBe(1)
    expect(row(dry, "dry run")).toBe("nothing was written, and --write would be refused: deletes_pending")
    const ran = run(["apply", invented, "--write"])
    expect(ran.status).toBe(3)
    expect(ran.stderr).toMatch(/^journal-fold: deletes_pending: .*\n {2}what to do: .*--allow-delete-pending\n$/)
    expect(row(ran, "wrote")).toBe("nothing: everything was rolled back")
    expect(rowsOf(invented)).toEqual(before)
    const { status, document } = runJson<{ error: { code: string } }>(["apply", invented, "--write"])
    expect([status, document.error.code]).toEqual([3, "deletes_pending"])
    expect(run(["apply", invented, "--write", "--allow-unconsume"]).status).toBe(3)
    expect(run(["apply", invented, "--write", "--allow-delete-pending"]).status).toBe(0)
    expect(rowsOf(invented)).toEqual(original)
  })

  it("clears a consumption only when told to", () => {
    const { path: invented } = damaged("consumption-invented")
    const ran = run(["apply", invented, "--write"])
    expect(ran.status).toBe(3)
    expect(ran.stderr).toMatch(/^journal-fold: clears_consumption: /)
    expect(run(["apply", invented, "--write", "--allow-delete-pending"]).status).toBe(3)
    expect(run(["apply", invented, "--write", "--allow-unconsume"]).status).toBe(0)
    expect(rowsOf(invented)).toEqual(original)
  })

  it("writes nothing when anything does not join, and says what", () => {
    const mixed = store("mixed.db", (db) => {
      emptyAndAlter(db)
      db.exec("DELETE FROM flows_deferred_completions WHERE rowid = (SELECT min(rowid) FROM flows_deferred_completions)")
    })
    const before = rowsOf(mixed)
    const ran = run(["apply", mixed, "--write"])
    expect(ran).toMatchObject({ status: 3, stderr: "" })
    expect(ran.stdout).toContain("row_missing class=unjoined ")
    expect(row(ran, "wrote")).toBe("nothing: everything was rolled back")
    expect(rowsOf(mixed)).toEqual(before)
    const { status, document } = runJson<{ verdict: string; written: boolean }>(["apply", mixed, "--write"])
    expect([status, document.verdict, document.written]).toEqual([3, "refused", false])
  })

  it("writes nothing when a row is not taken", () => {
    const strict = store("strict.db", (db) => {
      emptyAndAlter(db)
      db.exec("CREATE TRIGGER no_more BEFORE INSERT ON flows_clock_deadlines BEGIN SELECT RAISE(ABORT, 'not here'); END")
    })
    const before = rowsOf(strict)
    const ran = run(["apply", strict, "--write"])
    expect(ran.status).toBe(3)
    expect(ran.stderr).toMatch(/^journal-fold: row_not_writable: .*not here/)
    expect(rowsOf(strict)).toEqual(before)
  })

  it("stops at a limit with nothing written", () => {
    const altered = store("limited.db", emptyAndAlter)
    const before = rowsOf(altered)
    const ran = run(["apply", altered, "--write", "--max-seconds", "0"])
    expect(ran.status).toBe(4)
    expect(row(ran, "wrote")).toBe("nothing: everything was rolled back")
    expect(rowsOf(altered)).toEqual(before)
  })

  it("says as JSON what was written", () => {
    const altered = store("json.db", emptyAndAlter)
    expect(runJson(["apply", altered]).document).toMatchObject({ command: "apply", dryRun: true, written: false, verdict: "drift", exitCode: 1 })
    expect(runJson(["apply", altered, "--write"]).document).toMatchObject({ command: "apply", dryRun: false, written: true, verdict: "drift", exitCode: 0 })
  })

  describe("refuses a plan's file", () => {
    const altered = store("damaged-plan.db", emptyAndAlter)
    const plan = path("sound-plan.json")
    run(["plan", altered, "--out", plan])
    const text = readFileSync(plan, "utf8")

    it.each([
      ["that is not there", () => path("nix.json")],
      ["that is empty", () => file("bad-plan.json", "")],
      ["that is something else", () => file("bad-plan.json", '{"plan":{"digest":"x"}}')],
      ["that was cut off", () => file("bad-plan.json", text.slice(0, -40))],
      ["that lost its end", () => file("bad-plan.json", text.slice(0, text.length / 2))],
      ["that was edited", () => file("bad-plan.json", text.replace(/"rows":(\d)/, '"rows":9$1'))],
      ["whose digest was edited", () => file("bad-plan.json", text.replace(/"digest":"./, '"digest":"x'))],
      ["that was written anew", () => file("bad-plan.json", JSON.stringify(JSON.parse(text), undefined, 2))]
    ])("%s", (_, make) => {
      const ran = run(["apply", altered, make(), "--write"])
      expect(ran).toMatchObject({ status: 2, stdout: "" })
      expect(ran.stderr).toMatch(/^journal-fold: argument_invalid: the plan ".*" (cannot be read|is damaged): /)
      expect(run(["verify", altered]).status).toBe(1)
    })
  })
})

