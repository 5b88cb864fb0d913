/** One run as lines of JSON: the same lines from Postgres as from SQLite. */
import Database from "better-sqlite3"
import type pg from "pg"
import { afterAll, describe, expect, it } from "vitest"
import { contentDigest } from "journal-fold/digest"
import * as sqlite from "journal-fold/sqlite"
import { emptyAndAlter } from "../../js/demo/damages.js"
import { writeStore } from "../../js/demo/engine.js"
import { copyOf } from "../demo/stores.js"
import { copyInto, freshStore, type ColumnTypes } from "./stores.js"

// The command line's own parts, which no subpath exports.
const built = async <Module>(file: string): Promise<Module> => (await import(new URL(`../../pkg/${file}`, import.meta.url).href)) as Module
const inSqlite = await built<typeof import("../../pkg/hosts/sqlite/export.js")>("hosts/sqlite/export.js")
const inPostgres = await built<typeof import("../../pkg/hosts/postgres/export.js")>("hosts/postgres/export.js")

const sound = new Database(":memory:")
writeStore(sound, { runs: 40, checkpointStateText: sqlite.checkpointStateText })
const drifted = copyOf(sound)
emptyAndAlter(drifted)
const runIds = sound.prepare("SELECT run_id FROM flows_runs ORDER BY run_id").pluck().all() as string[]

const open: pg.Client[] = []
afterAll(() => Promise.all(open.map((client) => client.end())))

async function copied(db: Database.Database, types: ColumnTypes = {}): Promise<pg.Client> {
  const { client } = await freshStore(types)
  open.push(client)
  await copyInto(client, db, types)
  return client
}

interface Exported {
  readonly text: string
  readonly odd: { readonly base64: number; readonly leftOut: number; readonly respelled?: number }
}

function linesOf(db: Database.Database, runId: string, options = {}): Exported {
  const lines = inSqlite.exportRun(db, runId, options)
  let text = ""
  for (;;) {
    const { done, value } = lines.next()
    if (done === true) return { text, odd: value }
    text += value
  }
}

const linesFrom = (client: pg.Client, runId: string, options = {}): Promise<Exported> =>
  inPostgres.exportRun(client, runId, options, async (lines) => {
    let text = ""
    for (;;) {
      const { done, value } = await lines.next()
      if (done === true) return { text, odd: value }
      text += value
    }
  })

const json: ColumnTypes = { payload: "json", state: "json", exit: "json", metadata: "json" }
const bytes: ColumnTypes = { payload: "bytea", state: "bytea", exit: "bytea", metadata: "bytea" }

describe("an export is that of SQLite, byte for byte", () => {
  it.each([["text", {}], ["json", json], ["bytea", bytes]] as [string, ColumnTypes][])("%s", async (_, types) => {
    for (const db of [sound, drifted]) {
      const client = await copied(db, types)
      for (const runId of runIds) {
        for (const options of [{}, { showValues: true }, { digest: contentDigest }]) {
          const { text, odd } = await linesFrom(client, runId, options)
          const expected = linesOf(db, runId, options)
          expect(text).toBe(expected.text)
          expect(odd).toMatchObject(expected.odd)
        }
      }
    }
  }, 120_000)

  it("a floor without entries, a run without a row, and rows of other executions", async () => {
    const db = copyOf(sound)
    const [first = "", second = ""] = runIds
    db.prepare("DELETE FROM flows_journal_events WHERE run_id IN (SELECT run_id FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL)").run()
    db.prepare("DELETE FROM flows_runs WHERE run_id = ?").run(first)
    db.prepare("UPDATE flows_clock_deadlines SET flow_name = 'another' WHERE execution_id = ?").run(second)
    const client = await copied(db)
    for (const runId of runIds) expect((await linesFrom(client, runId)).text).toBe(linesOf(db, runId).text)
  }, 60_000)

  it("bytes that are no UTF-8 go as base64", async () => {
    const db = copyOf(sound)
    const [runId = ""] = runIds
    db.prepare("UPDATE flows_journal_events SET payload_json = CAST(x'7bff7d' AS TEXT) WHERE run_id = ? AND seq = (SELECT max(seq) FROM flows_journal_events WHERE run_id = ?)").run(runId, runId)
    const found = await linesFrom(await copied(db, bytes), runId)
    expect(found.text).toBe(linesOf(db, runId).text)
    expect(found.odd).toEqual({ base64: 1, leftOut: 0, respelled: 0 })
  })
})

it("values kept as jsonb are written in its spelling, and counted", async () => {
  const client = await copied(sound, { payload: "jsonb", state: "jsonb", exit: "jsonb", metadata: "jsonb" })
  for (const runId of runIds.slice(0, 10)) {
    const { text, odd } = await linesFrom(client, runId, { showValues: true })
    const expected = linesOf(sound, runId, { showValues: true }).text
    // The same values, when every text is read as the JSON it is.
    const values = (lines: string): unknown[] =>
      lines.trimEnd().split("\n").map((line) =>
        JSON.parse(line, (member, value: unknown) => (["payload", "state", "exit", "metadata"].includes(member) && typeof value === "string" ? JSON.parse(value) : value)) as unknown)
    expect(values(text)).toEqual(values(expected))
    const texts = text.split("\n").reduce((sum, line) => sum + (/"(payload|state)":"/.test(line) ? 1 : 0) + [...line.matchAll(/"(exit|metadata)":"/g)].length, 0)
    expect(odd).toEqual({ base64: 0, leftOut: 0, respelled: texts })
  }
}, 60_000)

describe("runs that are not there", () => {
  it("are named, in the order in which they were asked for", async () => {
    const client = await copied(sound)
    const ids = ["nobody", runIds[0] ?? "", "a\0b", "\ud800", runIds[1] ?? "", ""]
    expect(await inPostgres.unknownRuns(client, ids)).toEqual(["nobody", "a\0b", "\ud800", ""])
    expect(inSqlite.unknownRuns(sound, ids.filter((id) => id !== "a\0b"))).toEqual(["nobody", "\ud800", ""])
  })

  it("are an error of an export", async () => {
    const client = await copied(sound)
    await expect(linesFrom(client, "nobody")).rejects.toMatchObject({ code: "run_unknown", details: { runId: "nobody" } })
  })

  it("and one who stops an export stops it", async () => {
    const client = await copied(sound)
    await expect(linesFrom(client, runIds[0] ?? "", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" })
  })
})
