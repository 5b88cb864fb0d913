/** Which runs are looked at, and how they are judged: every option that says so. */
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { asOf, damaged, emptyStore, file, linesOf, row, run, runJson, soundStore, store } from "./harness.js"

const ids = soundStore().prepare("SELECT run_id FROM flows_runs ORDER BY run_id").pluck().all() as string[]
const [first = ""] = ids

/** A clock's due time altered in three runs. */
const altered = store("three.db", (db) => {
  const runs = db.prepare("SELECT DISTINCT execution_id FROM flows_clock_deadlines ORDER BY execution_id").pluck().all() as string[]
  for (const id of runs.slice(0, 3)) {
    db.prepare(
      `UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1 WHERE rowid = (SELECT min(rowid) FROM flows_clock_deadlines WHERE execution_id = ?)`
    ).run(id)
  }
})
const runsOf = (args: readonly string[]): string[] =>
  linesOf(run(["verify", altered, ...args])).findings.map((line) => / run=("(?:[^"\\]|\\.)*"|\S+)/.exec(line)?.[1] ?? "").map((id) => (id.startsWith('"') ? (JSON.parse(id) as string) : id))
const concerned = runsOf([])

describe("a scope", () => {
  const [one = "", two = "", three = ""] = concerned

  it("is the whole store without one", () => expect(new Set(concerned).size).toBe(3))

  it("is the runs named by --run, once or more", () => {
    expect(runsOf(["--run", one])).toEqual([one])
    expect(runsOf(["--run", one, "--run", two])).toEqual([one, two])
    const ran = run(["verify", altered, "--run", one])
    expect(row(ran, "left out")).toBe(`all runs but ${JSON.stringify(one)}`)
    expect(row(ran, "covered")).toMatch(/^1 run, /)
    expect(row(ran, "unexplained")).toBe("not judged, since runs were left out")
  })

  it.each([
    ["lines", (list: string[]) => `${list.join("\n")}\n`],
    ["a last line without its end", (list: string[]) => list.join("\n")],
    ["CRLF", (list: string[]) => `${list.join("\r\n")}\r\n`],
    ["a byte order mark", (list: string[]) => `\ufeff${list.join("\n")}`],
    ["empty lines", (list: string[]) => `\n${list.join("\n\n")}\n\n`],
    ["a JSON array", (list: string[]) => JSON.stringify(list)],
    ["a JSON array over lines, with a byte order mark", (list: string[]) => `\ufeff  ${JSON.stringify(list, undefined, 2)}\n`]
  ])("may come from a file: %s", (_, spell) => {
    const list = file("runs.txt", spell([one, two]))
    expect(runsOf(["--runs-from", list])).toEqual([one, two])
    expect(runsOf(["--except", list])).toEqual([three])
  })

  it("may come from standard input", () => {
    const ran = run(["verify", altered, "--runs-from", "-"], { input: `${two}\n` })
    expect(linesOf(ran).findings).toHaveLength(1)
  })

  it("takes ids exactly", () => {
    const spaced = emptyStore("spaced.db", (db) => {
      for (const id of [" a", "a ", "a", "a\nb", "[a"]) db.prepare("INSERT INTO flows_runs VALUES (?, 'f', 'running', 0, 0)").run(id)
    })
    expect(run(["verify", spaced, "--runs-from", file("spaced.txt", " a\na \n")]).status).toBe(0)
    expect(run(["verify", spaced, "--runs-from", file("spaced.json", JSON.stringify(["a\nb", "[a"]))]).status).toBe(0)
    expect(run(["verify", spaced, "--runs-from", file("spaced.txt", "  a\n")]).stderr).toContain('run_unknown')
    const broken = run(["verify", spaced, "--runs-from", file("broken.txt", "[a\n")])
    expect(broken.status).toBe(2)
    expect(broken.stderr).toContain("begins like a JSON array and is none")
  })

  it("may leave runs out, also of those that were named", () => {
    expect(runsOf(["--run", one, "--run", two, "--except", file("one.txt", one)])).toEqual([two])
    expect(row(run(["verify", altered, "--except", file("one.txt", one)]), "left out")).toBe(`run ${JSON.stringify(one)}`)
  })

  it("may be the runs that have a row", () => {
    const gone = store("gone.db", (db) => db.prepare("DELETE FROM flows_runs WHERE run_id <> ?").run(first))
    expect(run(["verify", gone]).status).toBe(3)
    const ran = run(["verify", gone, "--live"])
    expect(ran.status).toBe(0)
    expect(row(ran, "covered")).toMatch(/^1 run, /)
    expect(row(ran, "left out")).toBe("runs without a row")
  })

  it("of runs that are not there is a slip of the pen, not a match", () => {
    const ran = run(["verify", altered, "--run", first, "--run", "nobody", "--run", "Nobody"])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toContain('run_unknown: ' )
    expect(ran.stderr).toContain('no checkpoint of runs "nobody", "Nobody"')
    expect(ran.stdout).toBe("")
  })

  it("of a run that has a row and no journal is a match", () => {
    const fresh = store("fresh.db", (db) => db.exec("INSERT INTO flows_runs VALUES ('fresh', 'f', 'running', 0, 0)"))
    expect(run(["verify", fresh, "--run", "fresh"]).status).toBe(0)
  })

  it("that names nothing, or twice, is an error", () => {
    for (const args of [["--runs-from", file("none.txt", "\n")], ["--live", "--run", first], ["--runs-from", file("number.json", "[1]")], ["--runs-from", "nix.txt"]]) {
      const ran = run(["verify", altered, ...args])
      expect(ran.status, args.join(" ")).toBe(2)
      expect(ran.stderr).toMatch(/^journal-fold: option_invalid: /)
    }
  })

  it("goes along into the command to run next", () => {
    expect(row(run(["verify", altered, "--run", one, "--strict", "--as-of", asOf]), "next")).toMatch(
      new RegExp(`^journal-fold plan \\S+ --out plan.json --run ${one} --strict --as-of ${asOf}$`)
    )
  })
})

describe("--strict", () => {
  const undigested = emptyStore("undigested.db", (db) => {
    db.exec("INSERT INTO flows_runs VALUES ('r', 'f', 'running', 0, 0)")
    const entry = db.prepare("INSERT INTO flows_journal_events VALUES ('r', ?, 'flows.engine.deferred-completed', ?)")
    const completion = db.prepare("INSERT INTO flows_deferred_completions VALUES ('f', 'r', ?, '1', NULL, 1, NULL)")
    const digests = [{}, { exitDigest: "no digest" }, { exitDigest: "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" }]
    digests.forEach((digest, seq) => {
      entry.run(seq, JSON.stringify({ flowName: "f", executionId: "r", deferredName: `d${seq}`, completedAtMs: 1, ...digest }))
      completion.run(`d${seq}`)
    })
  })

  it("makes findings of what could not be verified, which refuse", () => {
    const lax = run(["verify", undigested])
    expect(lax.status).toBe(0)
    expect(row(lax, "not checked")).toMatch(/^1 digest_absent .* 1 digest_malformed .* 1 metadata_unchecked /)
    const strict = run(["verify", undigested, "--strict"])
    expect(strict.status).toBe(3)
    expect(linesOf(strict).findings.sort()).toEqual([
      "digest_absent class=unverifiable run=r flow=f execution=r name=d0",
      "digest_malformed class=unverifiable run=r flow=f execution=r name=d1",
      "metadata_unchecked class=unverifiable run=r flow=f execution=r name=d2"
    ])
  })
})

describe("--max-unexplained", () => {
  const early = damaged("completion-nobody-recorded").path

  it("is a limit for completions that no entry explains", () => {
    expect(run(["verify", early, "--max-unexplained", "1"]).status).toBe(0)
    const ran = run(["verify", early, "--max-unexplained", "0"])
    expect(ran.status).toBe(3)
    expect(linesOf(ran).findings).toEqual(["unexplained_above_limit class=unverifiable expected=0 found=1"])
  })

  it.each(["-1", "1.5", "many", "", "99999999999999999"])("is a whole number, not %j", (limit) => {
    expect(run(["verify", early, `--max-unexplained=${limit}`]).status).toBe(2)
  })
})

describe("--as-of", () => {
  const due = 1_735_689_700_000
  const overdue = emptyStore("overdue.db", (db) => {
    db.exec("INSERT INTO flows_runs VALUES ('r', 'f', 'running', 0, 0)")
    db.prepare("INSERT INTO flows_journal_events VALUES ('r', 0, 'flows.engine.clock-scheduled', ?)").run(
      JSON.stringify({ flowName: "f", executionId: "r", clockName: "c", deferredName: "d", dueAtMs: due })
    )
  })
  const overdueAt = (time: string): string => / (\d+)\)$/.exec(row(run(["verify", overdue, "--as-of", time]), "apply would"))?.[1] ?? ""

  it("says by when a clock is overdue, in ms or in ISO 8601", () => {
    expect(overdueAt(String(due - 1))).toBe("0")
    expect(overdueAt(String(due))).toBe("1")
    expect(overdueAt(new Date(due).toISOString())).toBe("1")
    expect(overdueAt("2025-01-01T02:01:39+02:00")).toBe("0")
    expect(overdueAt("2025-01-01T02:01:40+02:00")).toBe("1")
    expect(overdueAt("2025-01-01")).toBe("0")
    expect(row(run(["verify", overdue]), "apply would")).toMatch(/: 1\)$/)
  })

  it.each(["yesterday", "2025-01-01T00:00:00", "-1", "1e3", "2025-13-01", "99999999999999999", ""])("is no time: %j", (time) => {
    const ran = run(["verify", overdue, `--as-of=${time}`])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toContain("--as-of: expected ms since 1970")
  })
})

describe("--digest", () => {
  it("says who computes, and the report does too", () => {
    const sound = store("sound.db")
    expect(row(run(["verify", sound]), "took")).toMatch(/digests by the host$/)
    expect(row(run(["verify", sound, "--digest", "host"]), "took")).toMatch(/digests by the host$/)
    expect(row(run(["verify", sound, "--digest", "module"]), "took")).toMatch(/digests by the module$/)
    expect(run(["verify", sound, "--digest", "nobody"]).status).toBe(2)
    const found = (who: string): string[] => linesOf(run(["verify", damaged("exit-altered").path, "--digest", who])).findings
    expect(found("module")).toEqual(found("host"))
  })
})

describe("--baseline", () => {
  const before = store("before.db")
  const { document } = runJson(["verify", before])
  const baseline = file("baseline.json", JSON.stringify(document))
  const victim = soundStore()
    .prepare("SELECT run_id FROM flows_journal_events WHERE event_type LIKE 'flows.engine.clock%' GROUP BY run_id HAVING count(*) > 3 ORDER BY run_id LIMIT 1")
    .pluck()
    .get() as string

  it("that says the same finds nothing", () => {
    const ran = run(["verify", before, "--baseline", baseline])
    expect(ran.status).toBe(0)
    expect(row(ran, "covered")).toContain("compared with the journal as of ")
  })

  it("notices a journal that is shorter", () => {
    const shorter = store("shorter.db", (db) =>
      db.prepare("DELETE FROM flows_journal_events WHERE run_id = :run AND seq > (SELECT min(seq) FROM flows_journal_events WHERE run_id = :run)").run({ run: victim })
    )
    const ran = run(["verify", shorter, "--baseline", baseline])
    expect(ran.status).toBe(3)
    expect(linesOf(ran).findings[0]).toMatch(new RegExp(`^journal_shorter class=refused run=${victim} expected=\\d+ found=null$`))
    const out = run(["verify", shorter, "--baseline", baseline, "--except", file("victim.txt", victim)])
    expect(linesOf(out).findings.filter((line) => line.startsWith("journal_"))).toEqual([])
  })

  it("notices a journal that was rewritten", () => {
    const rewritten = store("rewritten.db", (db) => {
      const { changes } = db
        .prepare(
          `UPDATE flows_journal_events SET payload_json = json_set(payload_json, '$.dueAtMs', 7)
           WHERE run_id = ? AND event_type = 'flows.engine.clock-scheduled'`
        )
        .run(victim)
      expect(changes).toBeGreaterThan(0)
    })
    const ran = run(["verify", rewritten, "--baseline", baseline])
    expect(linesOf(ran).findings[0]).toMatch(new RegExp(`^journal_rewritten class=refused run=${victim} `))
  })

  it("lets a journal grow", () => {
    const grown = store("grown.db", (db) =>
      db.prepare("INSERT INTO flows_journal_events SELECT run_id, max(seq) + 1, 'flows.engine.other', '{}' FROM flows_journal_events WHERE run_id = ?").run(victim)
    )
    expect(run(["verify", grown, "--baseline", baseline]).status).toBe(0)
  })

  it.each([
    ["no JSON", "{"],
    ["no report", "{}"],
    ["a report of an error", '{"error":{"code":"store_busy"}}'],
    ["heads that are none", JSON.stringify({ format: "journal-fold/report", heads: [{ runId: 1, last: "x", digest: "y" }] })]
  ])("is refused when it is %s", (_, text) => {
    const ran = run(["verify", before, "--baseline", file("bad.json", text)])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toMatch(/^journal-fold: option_invalid: /)
  })
})

describe("--names", () => {
  const renamed = store("renamed.db", (db) => {
    for (const [was, is] of Object.entries({
      flows_runs: 'the "runs"',
      flows_journal_events: "log; --",
      flows_journal_checkpoints: "snapshots",
      flows_clock_deadlines: "timers",
      flows_deferred_completions: "results"
    })) {
      db.exec(`ALTER TABLE ${was} RENAME TO "${is.replaceAll('"', '""')}"`)
    }
    db.exec('ALTER TABLE "log; --" RENAME COLUMN payload_json TO "body text"')
    db.exec("ALTER TABLE timers RENAME COLUMN due_at_ms TO due")
    db.exec(`UPDATE "log; --" SET event_type = replace(event_type, 'flows.engine.', 'x/')`)
  })
  const names = {
    runs: { table: 'the "runs"' },
    journal: { table: "log; --", payload: "body text" },
    checkpoints: { table: "snapshots" },
    clocks: { table: "timers", dueAtMs: "due" },
    completions: { table: "results" },
    eventTypes: ["x/clock-scheduled", "x/clock-completed", "x/deferred-completed", "x/deferred-consumed"]
  }
  const mapping = file("names.json", `\ufeff${JSON.stringify(names)}`)

  it("says what the store calls its tables, columns and event types", () => {
    const state = (args: string[]): string => row(run(args), "state")
    const ran = run(["verify", renamed, "--names", mapping])
    expect(ran.status).toBe(0)
    expect(row(ran, "state")).toBe(state(["verify", store("sound.db")]))
    expect(run(["verify", renamed]).stderr).toContain("store_table_missing")
  })

  it("serves apply, capture and export too", () => {
    const db = new Database(renamed)
    db.exec("UPDATE timers SET due = due + 1")
    db.close()
    const plan = file("names-plan.json", "")
    expect(run(["plan", renamed, "--names", mapping, "--out", plan]).status).toBe(1)
    // The plan knows the names.
    expect(run(["apply", renamed, plan, "--write"]).status).toBe(0)
    expect(run(["verify", renamed, "--names", mapping]).status).toBe(0)
    const sound = store("sound.db")
    expect(run(["capture", renamed, first, "--names", mapping]).stdout).toBe(run(["capture", sound, first]).stdout)
    const exported = file("names.ndjson", run(["export", renamed, first, "--names", mapping]).stdout)
    // The exported run knows its event types.
    expect(run(["capture", exported]).stdout).toBe(run(["capture", sound, first]).stdout)
  })

  it.each([
    ["an unknown table", { journals: {} }, "option_unknown"],
    ["an unknown column", { journal: { text: "x" } }, "option_unknown"],
    ["three event types", { eventTypes: ["a", "b", "c"] }, "option_invalid"],
    ["a column that is not there", { journal: { payload: "nix" } }, "store_column_missing"],
    ["no object", [], "option_invalid"]
  ])("is refused with %s", (_, given, code) => {
    const ran = run(["verify", store("sound.db"), "--names", file("bad-names.json", JSON.stringify(given))])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toMatch(new RegExp(`^journal-fold: ${code}: `))
  })
})
