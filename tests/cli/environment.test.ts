/** What cannot be looked at: each file and each surrounding that is not as it should be, by its name, with 2, and nothing written. */
import { chmodSync, mkdirSync, readFileSync, statSync, truncateSync } from "node:fs"
import Database from "better-sqlite3"
import { afterAll, describe, expect, it } from "vitest"
import { damaged, file, path, run, runJson, soundBytes, store } from "./harness.js"

const cases: readonly (readonly [what: string, make: () => string, code: string])[] = [
  ["a file that is not there", () => path("nix.db"), "store_unreadable"],
  ["a folder", () => (mkdirSync(path("folder.db"), { recursive: true }), path("folder.db")), "store_unreadable"],
  ["an empty file", () => file("empty.db", ""), "store_not_sqlite"],
  ["a text", () => file("text.db", "this is no database\n".repeat(100)), "store_not_sqlite"],
  ["a JSON document of something else", () => file("else.json", '{"format":"something"}\n'), "store_not_sqlite"],
  ["a report", () => file("report.json", '{"format":"journal-fold/report"}\n'), "export_malformed"],
  ["a truncated store", truncated, "store_corrupt"],
  ["a store without a table", () => store("tableless.db", (db) => db.exec("DROP TABLE flows_runs")), "store_table_missing"],
  ["a store without a column", () => store("columnless.db", (db) => db.exec("ALTER TABLE flows_clock_deadlines DROP COLUMN completed_at_ms")), "store_column_missing"]
]

function truncated(): string {
  const cut = file("truncated.db", soundBytes())
  truncateSync(cut, Math.floor(statSync(cut).size / 2 / 4096) * 4096)
  return cut
}

describe("what cannot be looked at", () => {
  it.each(cases)("%s", (_, make, code) => {
    const at = make()
    for (const args of [["verify", at], ["plan", at, "--out", path("never.json")], ["apply", at, "--write"], ["capture", at, "r"], ["export", at, "r"]]) {
      // An exported run is no store to apply to, whatever is wrong with it.
      const expected = args[0] === "apply" && code === "export_malformed" ? "store_not_sqlite" : code
      // One run needs fewer tables than a whole verification.
      if (args[0] === "capture" && code.startsWith("store_column")) continue
      const ran = run(args)
      expect(ran.status, args.join(" ")).toBe(2)
      expect(ran.stdout).toBe("")
      expect(ran.stderr).toMatch(new RegExp(`^journal-fold: ${expected}: .*\\n {2}what to do: .*\\n$`))
    }
    const { status, document } = runJson<{ error: Record<string, string> }>(["verify", at])
    expect(status).toBe(2)
    expect(Object.keys(document)).toEqual(["error"])
    expect(document.error).toMatchObject({ code, message: expect.any(String) as string })
  })

  it("says which table and which column are missing", () => {
    const { document } = runJson<{ error: object }>(["verify", path("columnless.db")])
    expect(document.error).toMatchObject({ table: "flows_clock_deadlines", column: "completed_at_ms" })
  })
})

describe("a locked store", () => {
  const locked = store("locked.db")
  const holder = new Database(locked)
  holder.exec("BEGIN EXCLUSIVE")
  afterAll(() => holder.close())

  it.each([["verify"], ["plan"], ["apply"], ["apply", "--write"]])("is waited for, and then is an error: %s", (...args) => {
    const [verb = "", ...rest] = args
    const begun = performance.now()
    const ran = run([verb, locked, ...rest, "--busy-timeout", "300"])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toMatch(/^journal-fold: store_busy: .*\n {2}what to do: try again, or wait longer with --busy-timeout MS\n$/)
    expect(performance.now() - begun).toBeGreaterThan(300)
  })
})

describe("a store that cannot be written", () => {
  it("can be verified, and is an error to write", () => {
    const { path: drifted } = damaged("due-time-altered")
    const readOnly = file("read-only.db", readFileSync(drifted))
    chmodSync(readOnly, 0o444)
    expect(run(["verify", readOnly]).status).toBe(1)
    // Who may do anything is refused nothing.
    if (process.getuid?.() === 0) return
    const ran = run(["apply", readOnly, "--write"])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toMatch(/^journal-fold: store_read_only: /)
  })
})

describe("a store in WAL mode with a writer", () => {
  it("is verified beside it", () => {
    const wal = store("wal.db")
    const writer = new Database(wal)
    writer.pragma("journal_mode = WAL")
    writer.exec("BEGIN IMMEDIATE; UPDATE flows_clock_deadlines SET due_at_ms = 0")
    try {
      expect(run(["verify", wal]).status).toBe(0)
    } finally {
      writer.close()
    }
  })
})

describe("a store in UTF-16", () => {
  it("is read as what it says", () => {
    const utf16 = path("utf16.db")
    const db = new Database(utf16)
    db.pragma("encoding = 'UTF-16le'")
    db.close()
    emptyTablesInto(utf16)
    const ran = run(["verify", utf16])
    expect(ran.status).toBe(0)
    const sound = run(["verify", store("sound.db")])
    const state = (text: string): string => /^#   state.*$/m.exec(text)?.[0] ?? ""
    expect(state(ran.stdout)).toBe(state(sound.stdout))
    const runId = "acme-000001"
    expect(run(["export", utf16, runId]).stdout).toBe(run(["export", store("sound.db"), runId]).stdout)
    expect(run(["capture", utf16, runId]).stdout).toBe(run(["capture", store("sound.db"), runId]).stdout)
  })

  function emptyTablesInto(utf16: string): void {
    const db = new Database(utf16)
    const from = new Database(store("sound.db"), { readonly: true })
    const tables = from.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").all() as { name: string; sql: string }[]
    for (const { name, sql } of tables) {
      db.exec(sql)
      const rows = from.prepare(`SELECT * FROM ${name}`).raw().all() as unknown[][]
      const insert = db.prepare(`INSERT INTO ${name} VALUES (${rows[0]?.map(() => "?").join(", ")})`)
      db.transaction(() => rows.forEach((row) => insert.run(...row)))()
    }
    from.close()
    db.close()
  }
})

