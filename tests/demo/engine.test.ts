/**
 * The example engine: that it writes the same store every time, that its tables follow from its journal at every commit, and that
 * the store holds what a demonstration of a verification needs.
 */

import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { Engine, writeStore } from "../../js/demo/engine.js"
import { checkpointKey, foldRun, plainCheckpointStateText as checkpointStateText } from "./plain-fold.js"
import { plainVerify } from "./plain-verify.js"
import { countOf, rowsOf, storeWith, tableNames } from "./stores.js"

function hashOf(db: Database.Database, tables: readonly (typeof tableNames)[number][] = tableNames): string {
  const hash = createHash("sha256")
  for (const table of tables) hash.update(`${table}\n${JSON.stringify(rowsOf(db, table))}\n`)
  return hash.digest("hex")
}

describe("the same options", () => {
  it("write the same tables", () => {
    expect(hashOf(storeWith().db)).toBe(hashOf(storeWith().db))
  })

  it("write the same tables however many steps share a transaction", () => {
    const [one, many] = [new Database(":memory:"), new Database(":memory:")]
    const engineOfOne = new Engine(one, { checkpointStateText })
    const engineOfMany = new Engine(many, { checkpointStateText })
    for (let step = 0; step < 2_000; step++) engineOfOne.step()
    for (let batch = 0; batch < 8; batch++) engineOfMany.steps(250)
    expect(hashOf(many)).toBe(hashOf(one))
  })

  it("write another store from another seed", () => {
    expect(hashOf(storeWith({ seed: 2 }).db)).not.toBe(hashOf(storeWith({ seed: 1 }).db))
  })

  it("write the uncompacted twin when nothing makes checkpoint states", () => {
    const { db, summary } = storeWith()
    const plain = new Database(":memory:")
    const twin = writeStore(plain, { runs: 120 })
    const derived = ["flows_runs", "flows_clock_deadlines", "flows_deferred_completions"] as const
    expect(hashOf(plain, derived)).toBe(hashOf(db, derived))
    expect(twin.entries).toBe(summary.entries + summary.entriesCompacted)
    expect(twin.compactedRuns).toBe(0)
    expect(plainVerify(plain)).toEqual({ findings: [], unexplained: 0 })
  })
})

describe("the tables follow from the journal", () => {
  it("in a store that was compacted", () => {
    expect(plainVerify(storeWith().db)).toEqual({ findings: [], unexplained: 0 })
  })

  it("after every single step", () => {
    const db = new Database(":memory:")
    const engine = new Engine(db, { entriesPerRun: 20, checkpointStateText })
    for (let step = 0; step < 300; step++) {
      engine.step()
      expect(plainVerify(db)).toEqual({ findings: [], unexplained: 0 })
    }
    expect(engine.entriesCompacted).toBeGreaterThan(0)
  })

  it("clock for clock, with nothing in the table besides", () => {
    const { db } = storeWith()
    const clocks = rowsOf(db, "flows_runs").flatMap((run) => foldRun(db, String(run["run_id"]))?.clocks ?? [])
    expect(new Set(clocks.map((clock) => JSON.stringify(Object.values(clock)))))
      .toEqual(new Set(rowsOf(db, "flows_clock_deadlines").map((row) => JSON.stringify(Object.values(row)))))
  })

  it("in every commit that another connection sees", () => {
    const folder = mkdtempSync(join(tmpdir(), "journal-fold-engine-"))
    try {
      const writer = new Database(join(folder, "store.db"))
      writer.pragma("journal_mode = WAL")
      const engine = new Engine(writer, { entriesPerRun: 20, checkpointStateText })
      const reader = new Database(join(folder, "store.db"), { readonly: true })
      for (let look = 0; look < 30; look++) {
        engine.steps(7)
        reader.transaction(() => {
          const before = hashOf(reader)
          engine.steps(3)
          expect(hashOf(reader)).toBe(before)
          expect(plainVerify(reader).findings).toEqual([])
        })()
      }
      reader.close()
      writer.close()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("a compaction", () => {
  it("asks for the state before it marks or deletes anything, inside its transaction", () => {
    const db = new Database(":memory:")
    let calls = 0
    writeStore(db, {
      runs: 40,
      checkpointStateText(inside, runId, upTo, baseText) {
        calls += 1
        expect(inside.inTransaction).toBe(true)
        const checkpoint = inside.prepare<[string, number], { state_json: string; compacted_at_ms: number | null }>(
          "SELECT state_json, compacted_at_ms FROM flows_journal_checkpoints WHERE run_id = ? AND seq = ?"
        ).get(runId, upTo)
        expect(checkpoint).toEqual({ state_json: baseText, compacted_at_ms: null })
        const last = "SELECT max(seq) FROM flows_journal_events WHERE run_id = ? AND seq <= ?"
        expect(inside.prepare(last).pluck().get(runId, upTo)).toBe(upTo)
        return checkpointStateText(inside, runId, upTo, baseText)
      }
    })
    expect(calls).toBeGreaterThan(0)
  })

  it("leaves no entry at or below the floor, and other engine state beside the fold", () => {
    const { db, summary } = storeWith()
    expect(summary.compactedRuns).toBeGreaterThan(10)
    expect(countOf(db, `
      SELECT count(*) FROM flows_journal_events JOIN flows_journal_checkpoints AS floor USING (run_id)
      WHERE floor.compacted_at_ms IS NOT NULL AND flows_journal_events.seq <= floor.seq`)).toBe(0)
    const floors = rowsOf(db, "flows_journal_checkpoints").filter((row) => row["compacted_at_ms"] !== null)
    for (const floor of floors) {
      expect(Object.keys(JSON.parse(String(floor["state_json"]))))
        .toEqual(["flows.engine.cursor", "flows.engine.variables", checkpointKey])
    }
  })

  it("that fails changes nothing and stops the engine", () => {
    const db = new Database(":memory:")
    let before = ""
    const engine = new Engine(db, { checkpointStateText: () => { throw new Error("no state today") } })
    expect(() => {
      for (;;) {
        before = hashOf(db)
        engine.step()
      }
    }).toThrow("no state today")
    expect(hashOf(db)).toBe(before)
    expect(() => engine.step()).toThrow("open another on the store")
  })
})

describe("the store", () => {
  const { db, summary } = storeWith()

  it("counts itself rightly", () => {
    expect(summary.runs).toBe(120)
    expect(summary.entries).toBe(countOf(db, "SELECT count(*) FROM flows_journal_events"))
    expect(summary.entries + summary.entriesCompacted).toBeGreaterThanOrEqual(120 * 60)
  })

  it("has clocks that fired and that are pending, completions consumed and not, metadata and none", () => {
    for (const where of ["completed_at_ms IS NULL", "completed_at_ms IS NOT NULL"]) {
      expect(countOf(db, `SELECT count(*) FROM flows_clock_deadlines WHERE ${where}`)).toBeGreaterThan(20)
    }
    for (const column of ["consumed_at_ms", "metadata_json"]) {
      for (const where of [`${column} IS NULL`, `${column} IS NOT NULL`]) {
        expect(countOf(db, `SELECT count(*) FROM flows_deferred_completions WHERE ${where}`), where).toBeGreaterThan(20)
      }
    }
    for (const status of ["running", "suspended", "completed", "failed"]) {
      expect(countOf(db, `SELECT count(*) FROM flows_runs WHERE status = '${status}'`), status).toBeGreaterThan(0)
    }
  })

  it("has floors with and without entries above, older floors, checkpoints that are none, and gaps between seqs", () => {
    const checkpoints = "SELECT count(*) FROM flows_journal_checkpoints WHERE compacted_at_ms"
    const floor = "(SELECT DISTINCT run_id FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL)"
    const above = "EXISTS (SELECT 1 FROM flows_journal_events AS entry WHERE entry.run_id = floor.run_id)"
    expect(countOf(db, `SELECT count(*) FROM ${floor} AS floor WHERE ${above}`)).toBeGreaterThan(0)
    expect(countOf(db, `SELECT count(*) FROM ${floor} AS floor WHERE NOT ${above}`)).toBeGreaterThan(0)
    expect(countOf(db, `${checkpoints} IS NOT NULL`)).toBeGreaterThan(summary.compactedRuns)
    expect(countOf(db, `${checkpoints} IS NULL`)).toBeGreaterThan(0)
    expect(countOf(db, `
      SELECT count(*) FROM (SELECT seq - lag(seq) OVER (PARTITION BY run_id ORDER BY seq) AS gap FROM flows_journal_events)
      WHERE gap > 1`)).toBeGreaterThan(0)
  })

  it("holds accents, CJK, emoji, quotes and line breaks in names and values, all of it valid Unicode", () => {
    const names = rowsOf(db, "flows_deferred_completions").map((row) => String(row["deferred_name"])).join("")
    const values = rowsOf(db, "flows_deferred_completions").map((row) => String(row["exit_json"])).join("")
    for (const part of ["é", "署", "⏰", '"', "\n"]) expect(names).toContain(part)
    for (const part of ["à", "在庫", "👩‍👩‍👧‍👦", '\\"', "\\n"]) expect(values).toContain(part)
    expect(Buffer.from(names + values, "utf8").toString("utf8")).toBe(names + values)
  })

  it("records some timers twice, and the first time stands", () => {
    expect(countOf(db, `
      SELECT count(*) FROM (SELECT 1 FROM flows_journal_events WHERE event_type = 'flows.engine.clock-completed'
        GROUP BY run_id, json_extract(payload_json, '$.clockName') HAVING count(*) > 1)`)).toBeGreaterThan(0)
  })

  it("can be written on by another engine", () => {
    const engine = new Engine(db, { seed: 7, checkpointStateText })
    engine.steps(200)
    expect(plainVerify(db)).toEqual({ findings: [], unexplained: 0 })
  })
})
