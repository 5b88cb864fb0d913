/** The other driver: `node:sqlite`, in a Node that has it, says of every store what better-sqlite3 says, and leaves the same rows. */
import { execFileSync, fork } from "node:child_process"
import { once } from "node:events"
import { truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { describe, expect, it, vi } from "vitest"
import { damages, emptyAndAlter } from "../../js/demo/damages.js"
// @ts-expect-error: a script without types
import { answersOf } from "./answers.mjs"
import { newerNode } from "../runtimes.js"
import { copyOf, demoStore, emptyStore, folder, storyOf, type Db } from "./stores.js"

vi.setConfig({ testTimeout: 120_000 })

type Answers = Record<string, unknown>

/** A Node with the driver: this one, or a newer one. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
const node = major > 22 || (major === 22 && minor >= 13) ? process.execPath : newerNode

const { db: sound } = demoStore({ runs: 60 })
const runIds = sound.prepare("SELECT run_id FROM flows_runs ORDER BY run_id LIMIT 6").pluck().all() as string[]

/** Each store by a name, in two files: one for each driver. */
function storesIn(at: string): { name: string; twins: [string, string] }[] {
  const stores: { name: string; twins: [string, string] }[] = []
  const add = (name: string, content: Buffer, finish: (path: string) => void = () => {}): void => {
    const twins: [string, string] = [join(at, `${stores.length}-a.db`), join(at, `${stores.length}-b.db`)]
    for (const path of twins) {
      writeFileSync(path, content)
      finish(path)
    }
    stores.push({ name, twins })
  }
  const changed = (change: (db: Db) => void): Buffer => {
    const db = copyOf(sound)
    change(db)
    return db.serialize()
  }
  add("sound", sound.serialize())
  for (const damage of damages) add(damage.name, changed((db) => void damage.apply(db)))
  add("emptied and altered", changed((db) => void emptyAndAlter(db)))
  const utf16 = emptyStore({ encoding: "UTF-16le" })
  storyOf(utf16).run("r").clock("r", "⏰ été", { row: false }).completion("r", "d", { exit: '"ü"' })
  add("in UTF-16", utf16.serialize())
  const large = emptyStore()
  storyOf(large).run("r").clock("r", "c", { row: false }).append("r", "another.type", {}, 9_007_199_254_740_993n)
  add("with a seq beyond a double", large.serialize())
  add("with a trigger that refuses", changed((db) => {
    emptyAndAlter(db)
    db.exec("CREATE TRIGGER no BEFORE INSERT ON flows_clock_deadlines BEGIN SELECT RAISE(ABORT, 'not here'); END")
  }))
  add("with a column of its own", changed((db) => {
    db.exec("DELETE FROM flows_clock_deadlines; ALTER TABLE flows_clock_deadlines ADD COLUMN owner TEXT NOT NULL DEFAULT 'x'")
  }))
  add("without a table", changed((db) => void db.exec("DROP TABLE flows_runs")))
  add("without a column", changed((db) => void db.exec("ALTER TABLE flows_runs RENAME COLUMN run_id TO id")))
  add("no database", Buffer.from("no database, but longer than the header of one: ".repeat(20)))
  add("truncated by pages", sound.serialize(), (path) => truncateSync(path, 4096 * 4))
  add("truncated by a byte", sound.serialize(), (path) => truncateSync(path, sound.serialize().byteLength - 1))
  return stores
}

/** The twins differ in their path alone, which errors name. */
function comparable(answers: Answers): object {
  return JSON.parse(JSON.stringify(answers).replaceAll(/\d+-[ab]\.db/g, "store.db")) as object
}

describe.skipIf(node === undefined)("node:sqlite", () => {
  it("is there", () => {
    expect(execFileSync(node ?? "", ["-p", "typeof require('node:sqlite').DatabaseSync"], { encoding: "utf8" }).trim()).toBe("function")
  })

  it("answers as better-sqlite3 does, and leaves the same rows, whatever the store", async () => {
    const at = folder()
    const stores = storesIn(at)
    const child = fork(fileURLToPath(new URL("node-sqlite.mjs", import.meta.url)), { execPath: node ?? "", execArgv: ["--no-warnings"] })
    const ended = new AbortController()
    child.once("exit", (code) => void ended.abort(new Error(`the other process ended with ${code} and no answer`)))
    await once(child, "message", ended)
    const answered = once(child, "message", ended)
    child.send({ stores: stores.map(({ twins }) => twins[1]), runIds })
    const mine: Answers[] = []
    for (const { twins } of stores) mine.push(await answersOf((file: string) => new Database(file), twins[0], runIds))
    const [theirs] = (await answered) as [Answers[]]
    stores.forEach(({ name }, place) => {
      expect({ name, ...comparable(theirs[place] ?? {}) }).toEqual({ name, ...comparable(mine[place] ?? {}) })
    })
    child.disconnect()
    // What was compared is what it should be.
    const of = (name: string): Answers => theirs[stores.findIndex((store) => store.name === name)] ?? {}
    expect(of("sound")).toMatchObject({ ofFile: { verdict: "match" }, verified: { verdict: "match" }, stopped: "partial", again: { verdict: "match" } })
    expect(of("emptied and altered")).toMatchObject({ verified: { verdict: "drift" }, stale: { code: "stale_plan" }, again: { verdict: "match" } })
    expect(of("in UTF-16")).toMatchObject({ verified: { verdict: "drift" }, again: { verdict: "match" } })
    expect(of("with a trigger that refuses")).toMatchObject({ rebuilt: { code: "row_not_writable" }, again: { verdict: "drift" } })
    expect(of("no database")).toMatchObject({ ofFile: { code: "store_not_sqlite" } })
    expect(of("truncated by pages")).toMatchObject({ ofFile: { code: "store_corrupt" } })
    expect(of("truncated by a byte")).toMatchObject({ ofFile: { code: "store_corrupt" } })
    expect(new Set(theirs.map((answers) => (answers["ofFile"] as { code?: string }).code)).size).toBeGreaterThan(4)
  })
})
