/** Files that are broken or none: typed errors that say which, never a crash, never a match that is none. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { describe, expect, it, vi } from "vitest"
import { isJournalFoldError } from "journal-fold"
import { openFile, plan, rebuild, verify, verifyFile } from "journal-fold/sqlite"
import { Random } from "../../js/demo/random.js"
import { tableKeys, type TableName } from "../../js/demo/tables.js"
import { codeOf, demoStore, emptyStore, errorOf, fileOf, folder, storyOf, tablesSql, verifyInMemory } from "./stores.js"

vi.setConfig({ testTimeout: 60_000 })

const { db: sound } = demoStore({ runs: 24 })

/** Both ways to look at a file. */
async function codesOf(path: string): Promise<unknown[]> {
  const codes: unknown[] = []
  await verifyFile(path).catch((error) => codes.push(error.code, error.message))
  if (codes.length === 0) codes.push("none")
  return codes
}

describe("what is no SQLite file", () => {
  it.each([
    ["a text file", "just some text, longer than the header of a database would be: ".repeat(9)],
    ["an empty file", ""],
    ["a file as short as a name", "SQLite format 3\0"],
    ["a file that only begins like one", `SQLite format 3\0${"x".repeat(5000)}`]
  ])("%s", async (_, content) => {
    const path = join(folder(), "store.db")
    writeFileSync(path, content, "latin1")
    expect((await codesOf(path))[0]).toBe("store_not_sqlite")
    expect(readFileSync(path, "latin1")).toBe(content)
  })

  it("a folder, or nothing at all, which is not created", async () => {
    const path = join(folder(), "store.db")
    expect((await codesOf(path))[0]).toBe("store_unreadable")
    expect(existsSync(path)).toBe(false)
    mkdirSync(path)
    expect((await codesOf(path))[0]).toBe("store_unreadable")
  })

  it("seen through a connection that is open already", () => {
    const path = join(folder(), "store.db")
    writeFileSync(path, "just some text, longer than the header of a database would be: ".repeat(9))
    const db = new Database(path)
    expect(codeOf(() => verify(db))).toBe("store_not_sqlite")
    db.close()
    expect(codeOf(() => verify(new Database(":memory:")))).toBe("store_table_missing")
  })

  it("is refused by openFile too", async () => {
    await expect(openFile(join(folder(), "none.db"), { readOnly: true, busyTimeoutMs: 0 })).rejects.toMatchObject({ code: "store_unreadable" })
    const opened = await openFile(fileOf(sound), { readOnly: true, busyTimeoutMs: 0 })
    expect(verify(opened.db).verdict).toBe("match")
    opened.close()
  })
})

describe("a store that lacks something", () => {
  it.each(Object.keys(tableKeys) as TableName[])("the table %s", (table) => {
    const db = emptyStore()
    db.exec(`DROP TABLE ${table}`)
    expect(errorOf(() => verify(db))).toMatchObject({ code: "store_table_missing", details: { table } })
    expect(codeOf(() => rebuild(db))).toBe("store_table_missing")
  })

  it("any column", () => {
    for (const table of Object.keys(tableKeys)) {
      for (const { name: column } of emptyStore().prepare(`SELECT * FROM ${table}`).columns()) {
        const db = emptyStore()
        db.exec(`ALTER TABLE ${table} RENAME COLUMN ${column} TO something_else`)
        expect(errorOf(() => verify(db))).toMatchObject({ code: "store_column_missing", details: { table, column, found: expect.stringContaining("something_else") } })
      }
    }
  })
})

describe("a truncated file", () => {
  it.each<[string, (bytes: number) => number]>([
    ["by a byte", (bytes) => bytes - 1],
    ["in the middle of a page", (bytes) => bytes - 4096 * 3 - 1000],
    ["by whole pages", (bytes) => bytes - 4096 * 5],
    ["to its first page", () => 4096],
    ["to its header", () => 100]
  ])("%s", async (_, lengthOf) => {
    const path = fileOf(sound)
    const length = lengthOf(statSync(path).size)
    for (const mode of ["DELETE", "WAL"]) {
      const cut = join(folder(), "cut.db")
      copyFileSync(path, cut)
      const db = new Database(cut)
      db.pragma(`journal_mode = ${mode}`)
      db.close()
      truncateSync(cut, length)
      expect(await codesOf(cut)).toEqual(["store_corrupt", `the file is truncated: it ends after ${length} bytes, before the last page that its header counts`])
      const open = new Database(cut)
      expect(codeOf(() => verify(open))).toBe("store_corrupt")
      expect(codeOf(() => rebuild(open))).toBe("store_corrupt")
      open.close()
      expect(statSync(cut).size).toBe(length)
    }
  })

  it("is not what a file is whose last pages are still in the WAL", async () => {
    const path = join(folder(), "wal.db")
    const db = new Database(path)
    db.pragma("journal_mode = WAL")
    db.pragma("wal_autocheckpoint = 0")
    db.exec(tablesSql())
    storyOf(db).run("r").clock("r", "c")
    expect(statSync(path).size).toBeLessThan(Number(db.pragma("page_count", { simple: true })) * 4096)
    expect(verify(db).verdict).toBe("match")
    expect((await verifyFile(path)).verdict).toBe("match")
    db.close()
  })

  it("is not what a file is while another process makes it longer", async () => {
    const path = fileOf(sound)
    const writer = new Database(path)
    writer.exec("BEGIN IMMEDIATE")
    writer.exec("CREATE TABLE more (a)")
    for (let row = 0; row < 200; row++) writer.prepare("INSERT INTO more VALUES (?)").run("x".repeat(4000))
    expect((await verifyFile(path)).verdict).toBe("match")
    writer.exec("COMMIT")
    expect((await verifyFile(path)).verdict).toBe("match")
    writer.close()
  })
})

describe("a corrupt file", () => {
  it("gives an error or what is really there, never a crash or a match that is none", () => {
    const path = fileOf(sound)
    const random = new Random(20)
    const original = readFileSync(path)
    const tally: Record<string, number> = {}
    for (let round = 0; round < 250; round++) {
      const bytes = Buffer.from(original)
      const flips = random.between(1, 6)
      // Near the beginning of a page stands what SQLite finds its way by.
      for (let flip = 0; flip < flips; flip++) {
        const page = random.below(bytes.length / 4096)
        const at = page * 4096 + (random.chance(60) ? random.below(120) : random.below(4096))
        if (at > 100) bytes[at] = random.below(256)
      }
      writeFileSync(path, bytes)
      const db = new Database(path, { readonly: true })
      let outcome: string
      try {
        outcome = verify(db).verdict
      } catch (error) {
        // Anything else than a typed error would be a crash.
        expect(isJournalFoldError(error), String((error as Error).stack)).toBe(true)
        outcome = (error as { code: string }).code
      }
      if (outcome === "match") {
        // Judged by a verification that is given every row, read another way.
        let findings: unknown[] = []
        try {
          findings = verifyInMemory(db).findings.map(({ id }) => id)
        } catch (error) {
          // It reads payloads of all types, and may so meet what no verification has to look at.
          expect((error as Error).message).toMatch(/database disk image is malformed|expected/)
        }
        // Names that the key's index has and the table has not are what every search sees, an engine's too.
        const byIndex = findings.length > 0 && /missing from index/.test(JSON.stringify(db.pragma("integrity_check")))
        if (!byIndex) expect(findings).toEqual([])
      }
      tally[outcome] = (tally[outcome] ?? 0) + 1
      db.close()
    }
    expect(Object.keys(tally)).toEqual(expect.arrayContaining(["match", "store_corrupt", "refused"]))
    const known = ["match", "drift", "refused", "store_corrupt", "store_not_sqlite", "store_table_missing", "store_column_missing", "store_unreadable", "text_not_utf8", "seq_invalid"]
    expect(Object.keys(tally).filter((outcome) => !known.includes(outcome))).toEqual([])
  })

  it.each([
    ["flows_journal_events", "run_id = 'r' AND seq = 1", ["r", 1]],
    ["flows_clock_deadlines", "clock_name = 'stray'", ["F", "r", "stray"]]
  ])("an index of %s that has lost a row is noticed", (table, where, key) => {
    const db = emptyStore()
    const story = storyOf(db).run("r").clock("r", "c")
    story.append("r", "another.type", {})
    db.exec("INSERT INTO flows_clock_deadlines VALUES ('F', 'r', 'stray', 'd', 1, NULL)")
    expect(verify(db).verdict).toBe("drift")
    // Another table is made of the key's index, and a row taken out of that.
    db.unsafeMode()
    db.pragma("writable_schema = ON")
    const root = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck().get(`sqlite_autoindex_${table}_1`)
    const columns = key.map((_, place) => `k${place}`).join(", ")
    db.exec(`CREATE TABLE twin (${columns}, id, PRIMARY KEY (${columns}, id)) WITHOUT ROWID; UPDATE sqlite_schema SET rootpage = ${root} WHERE name = 'twin'`)
    db.pragma("writable_schema = RESET")
    expect(db.prepare(`DELETE FROM twin WHERE ${key.map((_, place) => `k${place} = ?`).join(" AND ")}`).run(...key).changes).toBe(1)
    expect(db.prepare(`SELECT count(*) FROM ${table} NOT INDEXED WHERE ${where}`).pluck().get()).toBe(1)
    expect(errorOf(() => verify(db))).toMatchObject({ code: "store_corrupt", details: { table } })
    expect(codeOf(() => plan(db))).toBe("store_corrupt")
  })
})
