/** Completions kept as `jsonb`, whose text is not the text that was recorded: what can be proven is, and the rest is said. */
import Database from "better-sqlite3"
import type pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { contentDigest } from "journal-fold/digest"
import * as sqlite from "journal-fold/sqlite"
import { rebuild, verify } from "journal-fold/postgres"
import { emptyAndAlter } from "../../js/demo/damages.js"
import { writeStore } from "../../js/demo/engine.js"
import { copyOf } from "../demo/stores.js"
import { copyInto, derivedRows, emptyTables, freshStore } from "./stores.js"

const sound = new Database(":memory:")
writeStore(sound, { runs: 40, checkpointStateText: sqlite.checkpointStateText })

const types = { exit: "jsonb", metadata: "jsonb" }
let client: pg.Client
let texts: pg.Client
beforeAll(async () => {
  client = (await freshStore(types)).client
  texts = (await freshStore()).client
}, 60_000)
afterAll(async () => {
  await client.end()
  await texts.end()
})

async function fill(db: Database.Database): Promise<void> {
  await emptyTables(client)
  await copyInto(client, db, types)
}

const original = sound.prepare<[], { exit_json: string; metadata_json: string | null }>("SELECT exit_json, metadata_json FROM flows_deferred_completions").all()

/** How many completions `jsonb` gives back so that they can be proven, or not, found out row by row. */
async function proven(): Promise<{ same: number; incomparable: number }> {
  let [same, incomparable] = [0, 0]
  for (const row of original) {
    const outcomes: string[] = []
    for (const text of [row.exit_json, row.metadata_json]) {
      if (text === null) continue
      const { rows } = await client.query("SELECT $1::jsonb::text AS through", [text])
      if (rows[0].through === text) continue
      outcomes.push(JSON.stringify(JSON.parse(rows[0].through)) === text ? "same" : "incomparable")
    }
    if (outcomes.includes("incomparable")) incomparable += 1
    else if (outcomes.includes("same")) same += 1
  }
  return { same, incomparable }
}

describe("columns of type jsonb", () => {
  it("are no finding, and how many could be proven is said", async () => {
    await fill(sound)
    const { same, incomparable } = await proven()
    expect(same).toBeGreaterThan(10)
    expect(incomparable).toBeGreaterThan(10)
    const found = await verify(client)
    expect(found.verdict).toBe("match")
    expect(found.notes).toMatchObject([{ what: "same_value_other_text", count: same }])
    expect(found.notChecked).toMatchObject([{ what: "text_through_jsonb", count: incomparable }])
    const { notes, notChecked, ...rest } = found
    const { notes: __, notChecked: ___, ...expected } = sqlite.verify(sound)
    expect(rest).toEqual(expected)
  })

  it("do not keep a rebuild from being made", async () => {
    await fill(sound)
    const before = await derivedRows(client)
    const drifted = copyOf(sound)
    emptyAndAlter(drifted)
    await fill(drifted)
    expect(await rebuild(client)).toEqual(sqlite.rebuild(drifted))
    expect(await derivedRows(client)).toEqual(before)
  })

  it("cannot hide that a value is gone, or there against the journal", async () => {
    await fill(sound)
    const { rowCount } = await client.query("UPDATE flows_deferred_completions SET metadata_json = NULL WHERE metadata_json IS NOT NULL")
    expect((await verify(client)).counts).toEqual({ digest_mismatch: rowCount })
    await fill(sound)
    const { rowCount: more } = await client.query("UPDATE flows_deferred_completions SET metadata_json = '{}' WHERE metadata_json IS NULL")
    expect((await verify(client)).counts).toEqual({ digest_mismatch: more })
  })

  it("are findings to a strict caller, unless the value is proven", async () => {
    await fill(sound)
    const { same, incomparable } = await proven()
    const found = await verify(client, { strict: true })
    expect(found.verdict).toBe("refused")
    expect(found.counts).toEqual({ digest_mismatch: incomparable })
    expect(found.notes).toMatchObject([{ what: "same_value_other_text", count: same }])
    expect(found.notChecked).toEqual([])
  })

  it("are compared for rows that name another run's execution too", async () => {
    await emptyTables(client)
    const digest = contentDigest
    const payload = (name: string, exit: string): string =>
      JSON.stringify({ flowName: "f", executionId: "b", deferredName: name, exitDigest: digest(exit), metadataDigest: null, completedAtMs: 5 })
    await client.query("INSERT INTO flows_runs (run_id) VALUES ('a'), ('b')")
    await client.query(
      `INSERT INTO flows_journal_events VALUES ('a', 0, 'flows.engine.deferred-completed', $1), ('a', 1, 'flows.engine.deferred-completed', $2),
       ('b', 0, 'flows.engine.deferred-completed', $3), ('c', 0, 'flows.engine.deferred-completed', $4)`,
      [payload("1", '{"x":1}'), payload("2", '{"long":1,"x":2}'), payload("3", "[1,2]"), payload("4", "[3]")]
    )
    await client.query(
      `INSERT INTO flows_deferred_completions VALUES ('f', 'b', '1', '{"x":1}', NULL, 5, NULL), ('f', 'b', '2', '{"long":1,"x":2}', NULL, 5, NULL),
       ('f', 'b', '3', '[1,2]', NULL, 5, NULL), ('f', 'b', '4', '[3]', NULL, 5, NULL)`
    )
    const found = await verify(client)
    expect(found.findings).toEqual([])
    // [3] is spelled by jsonb as it was, so it is simply the same.
    expect(found.notes).toMatchObject([{ what: "same_value_other_text", count: 2, firstRunId: "b" }])
    expect(found.notChecked).toMatchObject([{ what: "text_through_jsonb", count: 1 }])
  })

  it("cost a run that cannot be folded nothing more than its finding", async () => {
    await fill(sound)
    await client.query(`UPDATE flows_journal_events SET payload_json = '{"broken' WHERE (run_id, seq) IN
      (SELECT run_id, max(seq) FROM flows_journal_events WHERE event_type LIKE '%deferred-completed' GROUP BY run_id ORDER BY run_id LIMIT 1)`)
    await client.query(`UPDATE flows_journal_checkpoints SET state_json = 'null' WHERE (run_id, seq) IN
      (SELECT run_id, max(seq) FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL GROUP BY run_id ORDER BY run_id DESC LIMIT 1)`)
    expect((await verify(client)).counts).toEqual({ payload_not_json: 1, checkpoint_missing: 1 })
  })
})

describe("texts that went through jsonb on their way to a text column", () => {
  it("are findings, because their bytes differ, and recognised", async () => {
    await copyInto(texts, sound)
    const { rowCount } = await texts.query("UPDATE flows_deferred_completions SET metadata_json = metadata_json::jsonb::text")
    expect(rowCount).toBe(original.length)
    const through = original.filter(({ metadata_json: text }) => text !== null)
    const found = await verify(texts)
    expect(found.counts).toEqual({ digest_mismatch: through.length })
    const keys = (text: string | null): string[] => Object.keys(JSON.parse(text ?? "{}"))
    // The type puts shorter keys first: where they were so already, only the spaces are new.
    const same = through.filter(({ metadata_json: text }) => keys(text).every((key, place, all) => place === 0 || (all[place - 1] as string).length < key.length))
    const notes = same.length === 0 ? [] : [{ what: "same_value_other_text", count: same.length }]
    expect(found.notes).toMatchObject(notes)
  })

  it("are recognised whatever else differs", async () => {
    await emptyTables(texts)
    const exits = ['{"a":"x, y: \\n","b":[1,{"c":[]}]}', '{"a":1}', "[]"]
    await texts.query("INSERT INTO flows_runs (run_id) VALUES ('r')")
    for (const [place, exit] of exits.entries()) {
      const payload = { flowName: "f", executionId: "r", deferredName: `d${place}`, exitDigest: contentDigest(exit), completedAtMs: 1 }
      await texts.query("INSERT INTO flows_journal_events VALUES ('r', $1, 'flows.engine.deferred-completed', $2)", [place, JSON.stringify(payload)])
      await texts.query("INSERT INTO flows_deferred_completions VALUES ('f', 'r', $1, $2::jsonb::text, NULL, 1, NULL)", [`d${place}`, exit])
    }
    // Another value in the spelling of jsonb is not the recorded one.
    await texts.query(`UPDATE flows_deferred_completions SET exit_json = '{"a": 2}' WHERE deferred_name = 'd1'`)
    const found = await verify(texts)
    expect(found.counts).toEqual({ digest_mismatch: 2 })
    expect(found.notes).toMatchObject([{ what: "same_value_other_text", count: 1, firstRunId: "r" }])
  })
})
