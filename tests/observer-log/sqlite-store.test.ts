/** The store in SQLite: the tests of stores over every driver and encoding, what it refuses, processes that are killed, and two at once. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { afterAll, describe, expect, it } from "vitest"
import { encodeRow, ObserverLogSync, StoreRefused, verifyStoreSync } from "journal-fold/observer-log"
import { ObserverLogStore, type ObserverLogStoreOptions } from "journal-fold/sqlite"
import { durableStoreTests } from "journal-fold/testing"
import { newerNode } from "../runtimes.js"

type Db = Database.Database

const folder = mkdtempSync(join(tmpdir(), "observer-log-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newFile = (): string => join(folder, `${(files += 1)}.db`)

function blob(number: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(number)
  return bytes
}

/** Stores, each with its own connection. */
class Stores {
  readonly #prepare: (db: Db) => void
  readonly #connections = new Map<ObserverLogStore, Db>()

  constructor(prepare: (db: Db) => void) {
    this.#prepare = prepare
  }

  #connect(file: string): ObserverLogStore {
    const db = new Database(file)
    this.#prepare(db)
    const store = new ObserverLogStore(db, "stream", { durability: "process" })
    this.#connections.set(store, db)
    return store
  }

  readonly open = (): ObserverLogStore => this.#connect(newFile())
  readonly again = (store: ObserverLogStore): ObserverLogStore => this.#connect((this.#connections.get(store) as Db).name)
  readonly openAt = (head: bigint): ObserverLogStore => {
    const store = this.open()
    const db = this.#connections.get(store) as Db
    db.prepare("INSERT INTO observer_log_values (stream, name, value) VALUES ('stream', 'head', ?)").run(blob(head))
    return store
  }
  readonly close = (store: ObserverLogStore): void => {
    this.#connections.get(store)?.close()
  }
}

for (const [name, pragmas] of [
  ["a rollback journal", ["synchronous = OFF"]],
  ["a write-ahead log", ["journal_mode = WAL", "synchronous = OFF"]],
  ["UTF-16", ["encoding = 'UTF-16le'", "synchronous = OFF"]]
] as const) {
  describe(`a stream in SQLite with ${name}`, () => {
    const stores = new Stores((db) => pragmas.forEach((pragma) => db.pragma(pragma)))
    for (const { name, run } of durableStoreTests(stores)) it(name, run)
  })
}

describe("a stream in SQLite", () => {
  const opened = (options?: ObserverLogStoreOptions): { db: Db; store: ObserverLogStore } => {
    const db = new Database(newFile())
    return { db, store: new ObserverLogStore(db, "s", options) }
  }

  const [major = 0] = process.versions.node.split(".").map(Number)
  const node = major >= 24 ? process.execPath : newerNode

  it.skipIf(node === undefined)("does the same over node:sqlite", () => {
    const output = execFileSync(node as string, [fileURLToPath(new URL("node-sqlite.mjs", import.meta.url)), newFile()], { encoding: "utf8" })
    expect(output).toMatch(/^8\d passed, 0 failed\n$/m)
  })

  it("makes a commit as durable as it was asked to", () => {
    const { db, store } = opened()
    expect(db.pragma("synchronous", { simple: true })).toBe(3)
    store.flush()
    db.pragma("synchronous = OFF")
    expect(() => store.flush()).toThrow(expect.objectContaining({ code: "store_failed" }))
    // The durability is back, and the next flush can promise it again.
    store.flush()
    expect(db.pragma("synchronous", { simple: true })).toBe(3)

    const plain = new Database(newFile())
    plain.pragma("synchronous = OFF")
    new ObserverLogStore(plain, "s", { durability: "process" }).flush()
    expect(plain.pragma("synchronous", { simple: true })).toBe(0)
  })

  it("does not change a connection's durability inside a transaction", () => {
    const db = new Database(newFile())
    db.exec("BEGIN")
    expect(() => new ObserverLogStore(db, "s")).toThrow(expect.objectContaining({ code: "nested_transaction" }))
  })

  it("refuses to append inside the caller's transaction, and appends behind it", () => {
    const { db, store } = opened()
    const log = ObserverLogSync.open(store)
    db.exec("BEGIN")
    expect(() => store.appendAll(0n, ["{}"])).toThrow(StoreRefused)
    expect(() => log.track(1, 0)).toThrow(expect.objectContaining({ code: "store_failed" }))
    expect(store.readHead()).toBeUndefined()
    db.exec("COMMIT")
    expect(log.track(1, 0).head).toBe(1n)
  })

  it("refuses to append while another connection writes, and appends behind it", () => {
    const { db, store } = opened()
    db.pragma("busy_timeout = 0")
    const other = new Database(db.name)
    other.exec("BEGIN IMMEDIATE")
    const log = ObserverLogSync.open(store)
    expect(() => log.track(1, 0)).toThrow(expect.objectContaining({ code: "store_failed", cause: expect.any(StoreRefused) }))
    other.exec("ROLLBACK")
    expect(log.track(1, 0).head).toBe(1n)
    expect(log.standing).toBe("ready")
  })

  it("refuses to append while a reader stands in the way of the commit, and appends behind it", () => {
    const { db, store } = opened()
    const log = ObserverLogSync.open(store)
    log.track(1, 0)
    db.pragma("busy_timeout = 0")
    const other = new Database(db.name)
    other.exec("BEGIN")
    other.prepare("SELECT count(*) FROM observer_log_rows").get()
    expect(() => log.track(2, 0)).toThrow(expect.objectContaining({ code: "store_failed" }))
    other.exec("COMMIT")
    expect(log.track(2, 0).head).toBe(2n)
    expect(db.prepare("SELECT count(*) FROM observer_log_rows").pluck().get()).toBe(2)
  })

  it("keeps streams apart, whatever their names, and says which there are", () => {
    const db = new Database(newFile())
    const names = ["", "a", "b'; DROP TABLE x", "ä", "😀"]
    for (const [place, name] of names.entries()) {
      const log = ObserverLogSync.open(new ObserverLogStore(db, name, { durability: "process" }))
      for (let id = 0; id <= place; id++) log.track(id, 0)
    }
    new ObserverLogStore(db, "only a hint").cas(0n, 5n)
    for (const [place, name] of names.entries()) expect(new ObserverLogStore(db, name).readHead()).toBe(BigInt(place + 1))
    expect(ObserverLogStore.streams(db).sort()).toEqual([...names, "only a hint"].sort())
  })

  it("takes tables of other names", () => {
    const db = new Database(newFile())
    const tables = { rows: 'my "rows"', values: "my values" }
    const log = ObserverLogSync.open(new ObserverLogStore(db, "s", { tables }))
    log.track(1, 0)
    expect(db.prepare(`SELECT count(*) FROM "my ""rows"""`).pluck().get()).toBe(1)
    expect(ObserverLogStore.streams(db, tables)).toEqual(["s"])
    expect(() => new ObserverLogStore(db, "s", { tables: { rows: "" } })).toThrow(expect.objectContaining({ code: "option_invalid" }))
    expect(() => new ObserverLogStore(db, "s", { table: {} } as ObserverLogStoreOptions)).toThrow(expect.objectContaining({ code: "option_unknown" }))
  })

  it("names the table that is missing, when it is not to make any", () => {
    const store = new ObserverLogStore(new Database(newFile()), "s", { create: false })
    expect(() => store.readHead()).toThrow(expect.objectContaining({ code: "store_table_missing", details: { found: "observer_log_values" } }))
    expect(() => ObserverLogSync.open(store)).toThrow(expect.objectContaining({ code: "store_failed" }))
  })

  it("names the column of a number that is none", () => {
    const db = new Database(newFile())
    db.exec("CREATE TABLE observer_log_rows (stream, sequence, payload); CREATE TABLE observer_log_values (stream, name, value)")
    db.exec("INSERT INTO observer_log_rows VALUES ('s', X'000000000000000000', '{}'); INSERT INTO observer_log_values VALUES ('s', 'hint', 7)")
    const store = new ObserverLogStore(db, "s")
    expect(() => store.readValue()).toThrow(
      expect.objectContaining({ code: "store_corrupt", details: expect.objectContaining({ table: "observer_log_values", column: "value", found: "7" }) })
    )
    expect(() => store.readFrom(0n, 1)).toThrow(
      expect.objectContaining({ code: "store_corrupt", details: expect.objectContaining({ column: "sequence", found: "9 bytes" }) })
    )
  })

  it("names the column of a payload that is none", () => {
    const db = new Database(newFile())
    db.exec("CREATE TABLE observer_log_rows (stream, sequence, payload); CREATE TABLE observer_log_values (stream, name, value)")
    db.exec("INSERT INTO observer_log_rows VALUES ('s', X'0000000000000000', NULL)")
    const store = new ObserverLogStore(db, "s")
    expect(() => verifyStoreSync(store)).toThrow(
      expect.objectContaining({ code: "store_corrupt", details: expect.objectContaining({ column: "payload", found: "null" }) })
    )
    expect(() => ObserverLogSync.open(store)).toThrow(expect.objectContaining({ code: "store_failed" }))
  })

  it("refuses a name that would be stored as another", () => {
    const db = new Database(newFile())
    for (const name of ["\ud800", "a\udfff"]) {
      expect(() => new ObserverLogStore(db, name)).toThrow(expect.objectContaining({ code: "argument_invalid" }))
    }
  })

  it("gives a text that is not UTF-8 as it is, so that it is found", () => {
    const { db, store } = opened()
    ObserverLogSync.open(store).track(1, 0)
    db.prepare("UPDATE observer_log_rows SET payload = CAST(? AS TEXT)").run(Buffer.from(encodeRow({ row: "track", conversationId: 1, observerProgress: 0 }).replace("track", "tr\u00ffck"), "latin1"))
    const { findings } = verifyStoreSync(store)
    expect(findings).toEqual([expect.objectContaining({ id: "row_malformed", seq: "0" })])
  })
})

/** A writer in a process of its own, and what it has said so far. */
class Writer {
  readonly process: ChildProcess
  said = ""
  errors = ""

  constructor(file: string, first: bigint, count: number) {
    const script = fileURLToPath(new URL("writer.mjs", import.meta.url))
    this.process = spawn(process.execPath, [script, file, "s", String(first), String(count)], { stdio: ["ignore", "pipe", "pipe"] })
    this.process.stdout?.on("data", (data: Buffer) => (this.said += data.toString()))
    this.process.stderr?.on("data", (data: Buffer) => (this.errors += data.toString()))
  }

  async ended(): Promise<void> {
    await once(this.process, "close")
  }

  async says(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.said)) {
      if (this.process.exitCode !== null) throw new Error(`the writer ended: ${this.errors}`)
      await Promise.race([once(this.process.stdout as NonNullable<ChildProcess["stdout"]>, "data"), once(this.process, "close")])
    }
  }

  /** The last acknowledged progress of each conversation. */
  get progress(): Map<bigint, bigint> {
    const progress = new Map<bigint, bigint>()
    for (const line of this.lines) {
      const [word, id, value] = line.split(" ")
      if (word === "track") progress.set(BigInt(id as string), 0n)
      if (word === "advance") progress.set(BigInt(id as string), BigInt(value as string))
    }
    return progress
  }

  get lines(): string[] {
    return this.said.slice(0, this.said.lastIndexOf("\n") + 1).split("\n").filter(Boolean)
  }
}

/** Every acknowledged change is there, and nothing else but the one that was under way. */
function compare(log: ObserverLogSync, writer: Writer): void {
  for (const [id, acknowledged] of writer.progress) {
    const found = log.progress(id)
    expect(found === acknowledged || found === acknowledged + 1n, `conversation ${id}: ${found} for ${acknowledged}`).toBe(true)
  }
  const lines = writer.lines.filter((line) => /^(track|arm|advance)/.test(line))
  const [word, id, epoch] = (lines.at(-1) ?? "").split(" ")
  if (word === "arm") expect([epoch, undefined]).toContain(log.armed(id as string)?.toString())
  // An arm that an acknowledged change installed fires in the next advance, and in no other.
  for (const [place, line] of lines.entries()) {
    const [word, , , fired] = line.split(" ")
    if (word !== "advance") continue
    const [before, , armed] = (lines[place - 1] ?? "").split(" ")
    expect(fired, line).toBe(before === "arm" ? armed : "-")
  }
}

describe("processes", () => {
  for (const mode of ["WAL", "DELETE"]) {
    it(`loses no acknowledged row, repeats none and always restores, killed 130 times at random, with journal mode ${mode}`, async () => {
      const file = newFile()
      const db = new Database(file)
      db.pragma(`journal_mode = ${mode}`)
      let acknowledged = 0
      let rounds = 0
      for (; rounds < 130; rounds++) {
        const writer = new Writer(file, BigInt(rounds) * 1_000_000n, 0)
        await writer.says(/track/)
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 60))
        writer.process.kill("SIGKILL")
        await writer.ended()
        expect(writer.errors).toBe("")
        acknowledged += writer.lines.length - 1
        const store = new ObserverLogStore(db, "s")
        const log = ObserverLogSync.open(store)
        compare(log, writer)
        log.close()
        const { findings, coverage, head } = verifyStoreSync(store)
        expect(findings.filter((finding) => finding.class === "refused")).toEqual([])
        expect(coverage.rows).toBe(head)
      }
      // The test is about nothing unless there were changes to lose. A disk that takes its time lets few through.
      expect(acknowledged).toBeGreaterThan(3 * rounds)
      db.close()
    }, 300_000)
  }

  it("lets one of two processes have each sequence, and loses none", async () => {
    const file = newFile()
    const db = new Database(file)
    db.pragma("journal_mode = WAL")
    new ObserverLogStore(db, "s")
    const writers = [new Writer(file, 0n, 700), new Writer(file, 1_000_000n, 700)]
    await Promise.all(writers.map((writer) => writer.ended()))
    const store = new ObserverLogStore(db, "s")
    const log = ObserverLogSync.open(store)
    for (const writer of writers) {
      expect(writer.errors).toBe("")
      expect(writer.said).toMatch(/done\n$/)
      for (const [id, progress] of writer.progress) expect(log.progress(id)).toBe(progress)
    }
    const { findings, coverage } = verifyStoreSync(store)
    expect(findings.filter((finding) => finding.class === "refused")).toEqual([])
    const changes = writers.flatMap((writer) => writer.lines.filter((line) => /^(track|arm|advance)/.test(line)))
    expect(coverage.rows).toBe(BigInt(changes.length) + coverage.snapshots)
    expect(writers.map(({ said }) => /conflict/.test(said))).toContain(true)
    db.close()
  }, 120_000)
})
