/** Names that would like to be something else: a line of their own, a colour, another direction, nothing at all. None of them can. */
import type Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { emptyStore, linesOf, path, run } from "./harness.js"

const forged = "x\nrow_missing class=unjoined run=forged"

/** Each as an execution whose clock has no row, and how its name must look. */
const hostile: readonly (readonly [what: string, name: string, shown: string])[] = [
  ["a line feed and a line", forged, '"x\\nrow_missing class=unjoined run=forged"'],
  ["a carriage return", "seen\rhidden", '"seen\\rhidden"'],
  ["a comment", "# MATCH", '"# MATCH"'],
  ["an escape sequence", "\u001b[31mred\u001b[0m", '"\\u001b[31mred\\u001b[0m"'],
  ["a C1 control", "\u009b31m", '"\\u009b31m"'],
  ["NUL", "a\u0000b", '"a\\u0000b"'],
  ["DEL", "a\u007fb", '"a\\u007fb"'],
  ["a bidi override", "abc\u202edcba", '"abc\\u202edcba"'],
  ["a bidi isolate", "\u2066x\u2069", '"\\u2066x\\u2069"'],
  ["a zero width space", "a\u200bb", '"a\\u200bb"'],
  ["a byte order mark", "\ufeffa", '"\\ufeffa"'],
  ["a soft hyphen", "co\u00adop", '"co\\u00adop"'],
  ["a line separator", "a\u2028b\u2029c", '"a\\u2028b\\u2029c"'],
  ["a next line", "a\u0085b", '"a\\u0085b"'],
  ["a tag character", "a\u{e0041}", '"a\\udb40\\udc41"'],
  ["a variation selector", "a\ufe0f", '"a\\ufe0f"'],
  ["a Hangul filler", "\u3164", '"\\u3164"'],
  ["an unassigned character", "a\u0378", '"a\\u0378"'],
  ["a private one", "\ue000", '"\\ue000"'],
  ["a space that is not one", "a\u00a0b", '"a\\u00a0b"'],
  ["a mark at the beginning", "\u0301a", '"\\u0301a"'],
  ["quotes and a backslash", 'say "x" \\', '"say \\"x\\" \\\\"'],
  ["an equals sign", "run=x", '"run=x"'],
  ["a space", " ", '" "'],
  ["letters beyond ASCII", "größe 東京 🚲", '"größe 東京 🚲"'],
  ["nothing that needs quotes", "a-Z.0_:/@", "a-Z.0_:/@"]
]

function storeOf(file: string, names: readonly string[]): string {
  return emptyStore(file, (db) => {
    const entry = db.prepare("INSERT INTO flows_journal_events VALUES (?, 0, 'flows.engine.clock-scheduled', ?)")
    const row = db.prepare("INSERT INTO flows_runs VALUES (?, 'f', 'running', 0, 0)")
    for (const name of names) {
      row.run(name)
      entry.run(name, JSON.stringify({ flowName: name, executionId: name, clockName: name, deferredName: name, dueAtMs: 0 }))
    }
  })
}

describe("a hostile name", () => {
  const all = run(["verify", storeOf("hostile.db", hostile.map(([, name]) => name))])
  const { findings, notes } = linesOf(all)

  it("makes no line", () => {
    expect(findings).toHaveLength(hostile.length)
    for (const line of findings) expect(line).toMatch(/^clock_missing class=drift run=/)
    expect(all.status).toBe(1)
  })

  it.each(hostile)("is shown as what it is: %s", (_, __, shown) => {
    const address = `run=${shown} flow=${shown} execution=${shown} name=${shown} `
    expect(findings.filter((line) => line.startsWith(`clock_missing class=drift ${address}`))).toHaveLength(1)
  })

  it("leaves nothing unprintable in a report", () => {
    expect([...findings, ...notes].join("")).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
  })

  it("comes back from its JSON string, and from the strings within one", () => {
    for (const line of findings) {
      const [, run = ""] = / run=("(?:[^"\\]|\\.)*"|\S+)/.exec(line) ?? []
      const name = run.startsWith('"') ? (JSON.parse(run) as string) : run
      expect(hostile.map(([, one]) => one)).toContain(name)
      const [, expected = ""] = / expected=(".*")$/.exec(line) ?? []
      const within = JSON.parse(expected) as string
      const bare = `deferredName=${name} dueAtMs=0 completedAtMs=null`
      expect([bare, bare.replace(`=${name} `, `=${JSON.stringify(name)} `)]).toContain(within)
    }
  })

  it("comes whole through --json, and leaves nothing unprintable there", () => {
    const ran = run(["verify", path("hostile.db"), "--json"])
    expect(ran.stdout).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/u)
    const { findings: found } = JSON.parse(ran.stdout) as { findings: { runId: string }[] }
    expect(found.map(({ runId }) => runId).sort()).toEqual(hostile.map(([, name]) => name).sort())
  })

  it("is quoted in the command to run next, also for a shell", () => {
    const name = "it's; rm -rf $HOME\n# MATCH"
    const store = storeOf("shell.db", [name])
    const { stdout } = run(["verify", store, "--run", name])
    const next = stdout.split("\n").at(-2) ?? ""
    expect(next).toMatch(/^#   next {9}journal-fold plan \S+ --out plan\.json --run \$'it\\'s; rm -rf \$HOME\\x0a# MATCH'$/)
  })

  it("of a run that is not there makes no line on standard error", () => {
    const ran = run(["verify", path("hostile.db"), "--run", forged.toUpperCase()])
    expect(ran.status).toBe(2)
    expect(ran.stderr.split("\n")).toHaveLength(3)
    expect(ran.stderr).toMatch(/^journal-fold: run_unknown: .*\n {2}what to do: /)
  })
})

describe("a value", () => {
  it("that is a text and looks like a number or null has quotes", () => {
    const store = emptyStore("typed.db", (db: Database.Database) => {
      db.exec("DROP TABLE flows_clock_deadlines")
      db.exec("CREATE TABLE flows_clock_deadlines (flow_name TEXT, execution_id TEXT, clock_name TEXT, deferred_name TEXT, due_at_ms, completed_at_ms)")
      db.prepare("INSERT INTO flows_runs VALUES ('r', 'f', 'running', 0, 0)").run()
      db.prepare("INSERT INTO flows_journal_events VALUES ('r', 0, 'flows.engine.clock-scheduled', ?)").run(
        JSON.stringify({ flowName: "f", executionId: "r", clockName: "c", deferredName: "null", dueAtMs: 5 })
      )
      db.prepare("INSERT INTO flows_clock_deadlines VALUES ('f', 'r', 'c', 'd', '5', 'null')").run()
    })
    expect(linesOf(run(["verify", store])).findings).toEqual([
      'clock_differs class=drift run=r flow=f execution=r name=c field=deferredName expected="null" found=d',
      'clock_differs class=drift run=r flow=f execution=r name=c field=dueAtMs expected=5 found="5"',
      'clock_differs class=drift run=r flow=f execution=r name=c field=completedAtMs expected=null found="null"'
    ])
  })

  it("of a completion is nowhere, only its digest", () => {
    const secret = "the value of a completion"
    const store = emptyStore("secret.db", (db: Database.Database) => {
      db.prepare("INSERT INTO flows_runs VALUES ('r', 'f', 'running', 0, 0)").run()
      db.prepare("INSERT INTO flows_journal_events VALUES ('r', 0, 'flows.engine.deferred-completed', ?)").run(
        JSON.stringify({ flowName: "f", executionId: "r", deferredName: "d", completedAtMs: 1, exitDigest: "0".repeat(64), metadataDigest: null })
      )
      db.prepare("INSERT INTO flows_deferred_completions VALUES ('f', 'r', 'd', ?, ?, 1, NULL)").run(JSON.stringify(secret), JSON.stringify(secret))
    })
    for (const args of [["verify", store], ["verify", store, "--json"], ["plan", store], ["apply", store], ["export", store, "r"]]) {
      expect(run(args).stdout, args.join(" ")).not.toContain(secret)
    }
    expect(run(["export", store, "r", "--show-values"]).stdout).toContain(secret)
  })
})
