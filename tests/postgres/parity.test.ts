/** The same store in SQLite and in Postgres: the same verification, the same plan, the same tables afterwards. */
import Database from "better-sqlite3"
import pg from "pg"
import { PGlite } from "@electric-sql/pglite"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as sqlite from "journal-fold/sqlite"
import * as postgres from "journal-fold/postgres"
import { damages, emptyAndAlter } from "../../js/demo/damages.js"
import { writeStore } from "../../js/demo/engine.js"
import { createTables } from "../../js/demo/tables.js"
import { copyOf } from "../demo/stores.js"
import { freshDatabase } from "./server.js"
import { copyInto, derivedRows, emptyTables, freshStore, tablesSql, type ColumnTypes } from "./stores.js"

const sound = new Database(":memory:")
writeStore(sound, { runs: 60, checkpointStateText: sqlite.checkpointStateText })

const drifted = copyOf(sound)
emptyAndAlter(drifted)

/** What a verification says, with its plan's pages and every run's head. */
const said = (db: Database.Database): unknown => sqlite.verify(db, { heads: true, asOfMs: 1_800_000_000_000 })
const saidOf = (db: postgres.PostgresDatabase): Promise<unknown> => postgres.verify(db, { heads: true, asOfMs: 1_800_000_000_000 })

const open: pg.Client[] = []
afterAll(() => Promise.all(open.map((client) => client.end())))

async function copied(db: Database.Database, types: ColumnTypes = {}, database?: string): Promise<pg.Client> {
  const { client } = await freshStore(types, database)
  open.push(client)
  await copyInto(client, db, types)
  return client
}

describe("a verification is that of SQLite", () => {
  const stores: [string, ColumnTypes, string?][] = [
    ["texts, in a database whose collation is not that of bytes", {}],
    ["texts, in a database whose collation is that of bytes", {}, "LOCALE 'C'"],
    ["texts, in a database with libc's collation", {}, "LOCALE 'C.UTF-8' LOCALE_PROVIDER libc"],
    ["json", { payload: "json", state: "json", exit: "json", metadata: "json" }],
    ["jsonb payloads and states", { payload: "jsonb", state: "jsonb" }],
    ["bytes", { payload: "bytea", state: "bytea", exit: "bytea", metadata: "bytea" }],
    ["varchar, and times as numeric", { payload: "varchar", exit: "varchar(5000)", time: "numeric(20)" }],
    ["a collation that takes different texts for equal", { id: "text COLLATE sloppy" }]
  ]
  it.each(stores)("%s", async (...[, types, database]: (typeof stores)[number]) => {
    const client = new pg.Client({ connectionString: await freshDatabase(database) })
    open.push(client)
    await client.connect()
    await client.query("CREATE COLLATION sloppy (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    await client.query(tablesSql(types))
    for (const db of [sound, drifted]) {
      await emptyTables(client)
      await copyInto(client, db, types)
      expect(await saidOf(client)).toEqual(said(db))
    }
  }, 60_000)

  it("PGlite, where a rebuild writes the same too", async () => {
    const lite = await PGlite.create()
    await lite.exec(tablesSql())
    await copyInto(lite, sound)
    expect(await saidOf(lite)).toEqual(said(sound))
    await emptyTables(lite)
    await copyInto(lite, drifted)
    expect(await saidOf(lite)).toEqual(said(drifted))
    const before = await derivedRows(await copied(sound))
    expect(await postgres.rebuild(lite)).toEqual(sqlite.rebuild(copyOf(drifted)))
    expect(await derivedRows(lite)).toEqual(before)
    expect((await postgres.verify(lite)).verdict).toBe("match")
    await lite.close()
  }, 60_000)

  it("a store without rows", async () => {
    const empty = new Database(":memory:")
    createTables(empty)
    expect(await saidOf(await copied(empty))).toEqual(said(empty))
  })

  it.each([
    ["live", { runs: "live" }],
    ["some runs, one of which is not there", { runs: [...someRuns(5), "nobody", ""] }],
    ["all but some", { except: someRuns(7) }],
    ["some but one", { runs: someRuns(9), except: someRuns(3) }]
  ] as const)("with a scope: %s", async (_, scope) => {
    const db = copyOf(drifted)
    db.prepare("DELETE FROM flows_runs WHERE run_id IN (SELECT run_id FROM flows_runs ORDER BY run_id LIMIT 4)").run()
    const client = await copied(db)
    expect(await postgres.verify(client, { ...scope, heads: true })).toEqual(sqlite.verify(db, { ...scope, heads: true }))
  })

  it("with a baseline", async () => {
    const db = copyOf(sound)
    const baseline = sqlite.verify(db, { heads: true }).heads ?? []
    const longest = baseline.reduce((a, b) => (Number(a.last) > Number(b.last) ? a : b))
    db.prepare("DELETE FROM flows_journal_events WHERE run_id = ? AND seq = ?").run(longest.runId, Number(longest.last))
    const found = await postgres.verify(await copied(db), { baseline })
    expect(found.counts).toHaveProperty("journal_shorter", 1)
    expect(found).toEqual(sqlite.verify(db, { baseline }))
  })

  it("with a baseline, of live runs", async () => {
    const db = copyOf(sound)
    const baseline = sqlite.verify(db, { heads: true }).heads ?? []
    db.prepare("DELETE FROM flows_runs WHERE run_id = ?").run(baseline[3]?.runId)
    db.prepare("DELETE FROM flows_journal_events WHERE run_id IN (?, ?)").run(baseline[3]?.runId, baseline[5]?.runId)
    db.prepare("DELETE FROM flows_journal_checkpoints WHERE run_id IN (?, ?)").run(baseline[3]?.runId, baseline[5]?.runId)
    for (const runs of ["live", [baseline[5]?.runId ?? ""], undefined] as const) {
      const options = { baseline, ...(runs && { runs }) }
      const found = await postgres.verify(await copied(db), options)
      expect(found.counts.journal_shorter).toBe(runs === undefined ? 2 : 1)
      expect(found).toEqual(sqlite.verify(db, options))
    }
  })

  it("with strict and a limit for what nobody recorded", async () => {
    const db = copyOf(sound)
    damages.find(({ name }) => name === "completion-nobody-recorded")?.apply(db)
    const options = { strict: true, maxUnexplained: 0 }
    const found = await postgres.verify(await copied(db), options)
    expect(found.counts).toHaveProperty("unexplained_above_limit", 1)
    expect(found).toEqual(sqlite.verify(db, options))
  })
})

function someRuns(count: number): string[] {
  return sound.prepare<[number], string>("SELECT run_id FROM flows_runs ORDER BY run_id LIMIT ?").pluck().all(count)
}

describe("a damage is found as in SQLite", () => {
  let texts: pg.Client
  let bytes: pg.Client
  const asBytes: ColumnTypes = { payload: "bytea", state: "bytea", exit: "bytea", metadata: "bytea" }
  beforeAll(async () => {
    texts = (await freshStore()).client
    bytes = (await freshStore(asBytes)).client
    open.push(texts, bytes)
  }, 60_000)

  it.each(damages)("$name", async (damage) => {
    const db = copyOf(sound)
    damage.apply(db)
    const expected = said(db)
    // No text of Postgres can hold what is no UTF-8; a column of bytes can.
    if (damage.name !== "payload-not-utf8") {
      await emptyTables(texts)
      await copyInto(texts, db)
      expect(await saidOf(texts)).toEqual(expected)
    }
    await emptyTables(bytes)
    await copyInto(bytes, db, asBytes)
    expect(await saidOf(bytes)).toEqual(expected)
    expect((expected as { findings: { id: string }[] }).findings.map(({ id }) => id)).toEqual(damage.expects)
  })
})

describe("what is written is what SQLite writes", () => {
  it.each([
    ["texts", {}],
    ["jsonb payloads and states", { payload: "jsonb", state: "jsonb" }],
    ["times as numeric", { time: "numeric" }]
  ] as const)("%s: plan and apply", async (_, types) => {
    const before = await derivedRows(await copied(sound, types))
    const client = await copied(drifted, types)
    const plan = await postgres.plan(client)
    expect(plan).toEqual(sqlite.plan(drifted))
    const applied = await postgres.apply(client, plan)
    expect(applied).toEqual(sqlite.apply(copyOf(drifted), sqlite.plan(drifted)))
    expect(await derivedRows(client)).toEqual(before)
    expect((await postgres.verify(client)).verdict).toBe("match")
    expect((await postgres.plan(client)).rows).toBe(0)
    await expect(postgres.apply(client, plan)).rejects.toMatchObject({ code: "stale_plan" })
  })

  it("checkpoints of some runs, at several seqs", async () => {
    const client = await copied(sound)
    const heads = sqlite.verify(sound, { heads: true }).heads ?? []
    for (const { runId, floor, last } of heads.filter((_, place) => place % 12 === 0)) {
      for (let upTo = Number(floor ?? 0); upTo <= Number(last); upTo += Math.max(3, Math.floor(Number(last) / 3))) {
        const text = sqlite.checkpointStateText(sound, runId, upTo, '{ "own": 1.50 }')
        expect(await postgres.checkpointStateText(client, runId, upTo, '{ "own": 1.50 }')).toBe(text)
        expect(await postgres.capture(client, runId, upTo)).toEqual(sqlite.capture(sound, runId, upTo))
        expect(await postgres.checkCheckpoint(client, runId, upTo, text)).toEqual({ matches: true, differences: [] })
        expect(await postgres.checkpointState(client, runId, upTo, { a: 1 })).toEqual(sqlite.checkpointState(sound, runId, upTo, { a: 1 }))
      }
    }
  }, 60_000)
})
