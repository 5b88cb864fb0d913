/** Whose transaction is read in, and what is left behind: no statement open, no transaction, nothing written. */
import Database from "better-sqlite3"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { apply, capture, checkCheckpoint, checkpointStateText, plan, rebuild, verify } from "journal-fold/sqlite"
import { codeOf, copyOf, demoStore, derivedRows, errorOf, fileOf, type Db } from "./stores.js"

const { db: sound } = demoStore()
const { runId, upTo } = sound.prepare("SELECT run_id AS runId, max(seq) AS upTo FROM flows_journal_events GROUP BY run_id LIMIT 1").get() as { runId: string; upTo: number }
const runs = () => sound.prepare("SELECT count(*) FROM flows_runs").pluck().get() as number

let db: Db
beforeEach(() => {
  db = copyOf(sound)
})
// A statement left open would refuse each of these.
afterEach(() => {
  expect(db.inTransaction).toBe(false)
  db.exec("CREATE TABLE written (a)")
  db.pragma("journal_mode = DELETE")
  db.exec("VACUUM")
  db.close()
})

/** Everything that reads, and what it may be stopped by. */
const readers: Record<string, (db: Db) => unknown> = {
  verify: (db) => verify(db),
  "verify some runs": (db) => verify(db, { runs: [runId, "nobody"] }),
  "verify live runs": (db) => verify(db, { runs: "live" }),
  plan: (db) => plan(db),
  capture: (db) => capture(db, runId, upTo),
  checkpointStateText: (db) => checkpointStateText(db, runId, upTo),
  checkCheckpoint: (db) => checkCheckpoint(db, runId, upTo, "{}")
}

describe.each(Object.entries(readers))("%s", (_, read) => {
  it("opens a transaction of its own and ends it", () => {
    read(db)
    expect(db.inTransaction).toBe(false)
  })

  it("joins the caller's transaction, sees what it wrote, and leaves it open", () => {
    db.exec("BEGIN")
    db.exec("DELETE FROM flows_journal_events")
    db.exec("DELETE FROM flows_journal_checkpoints")
    db.exec("DELETE FROM flows_clock_deadlines")
    db.exec("DELETE FROM flows_deferred_completions")
    const result = read(db) as { coverage?: { runs: number }; clocks?: unknown[] }
    expect(result.coverage?.runs ?? result.clocks?.length ?? 0).toBe(0)
    expect(db.inTransaction).toBe(true)
    db.exec("ROLLBACK")
    expect(verify(db).verdict).toBe("match")
  })

  it("leaves nothing behind when it throws", () => {
    db.exec("ALTER TABLE flows_journal_events RENAME COLUMN seq TO place")
    expect(codeOf(() => read(db))).toBe("store_column_missing")
    db.exec("BEGIN")
    expect(codeOf(() => read(db))).toBe("store_column_missing")
    expect(db.inTransaction).toBe(true)
    db.exec("ROLLBACK")
  })
})

describe("verify that is stopped", () => {
  it("by its progress gives a partial verdict, and no plan", () => {
    const partial = verify(db, { onProgress: () => false })
    expect(partial.verdict).toBe("partial")
    expect(partial).not.toHaveProperty("plan")
    expect(partial.rebuilt.unexplained).toBeNull()
    expect(partial.coverage.runs).toBeLessThan(runs())
    expect(codeOf(() => plan(db, { onProgress: () => false }))).toBe("plan_refused")
  })

  it("by an error of the callback, the digest function or a baseline passes it on", () => {
    const stop = new Error("no more")
    const thrower = (): never => {
      throw stop
    }
    expect(errorOf(() => verify(db, { onProgress: thrower }))).toBe(stop)
    expect(errorOf(() => verify(db, { digest: thrower }))).toBe(stop)
    expect(errorOf(() => verify(db, { baseline: { [Symbol.iterator]: thrower } as never }))).toBe(stop)
    expect(errorOf(() => rebuild(db, { onProgress: thrower }))).toBe(stop)
    expect(errorOf(() => rebuild(db, { digest: thrower }))).toBe(stop)
    expect(verify(db).verdict).toBe("match")
  })

  it("by a callback that queries and writes through the same connection is not disturbed", () => {
    const seen: unknown[] = []
    const { verdict } = verify(db, { onProgress: () => void seen.push(db.prepare("SELECT count(*) FROM flows_runs").pluck().get()) })
    expect([verdict, seen.length > 0]).toEqual(["match", true])
    const inside = verify(db, { digest: (text) => (db.prepare("SELECT 1").get(), (verify as { last?: string }).last ?? String(text).slice(0, 0) + "0".repeat(64)) })
    expect(Object.keys(inside.counts)).toEqual(["digest_mismatch"])
  })
})

describe("a connection that is not ready", () => {
  it("because a statement is being iterated: reads inside a transaction, and otherwise says what is wrong", () => {
    const rows = db.prepare("SELECT * FROM flows_runs").iterate()
    rows.next()
    expect(codeOf(() => verify(db))).toBe("store_busy")
    expect(codeOf(() => rebuild(db))).toBe("store_busy")
    rows.return?.()
    db.exec("BEGIN")
    const inside = db.prepare("SELECT * FROM flows_runs").iterate()
    inside.next()
    expect(verify(db).verdict).toBe("match")
    inside.return?.()
    db.exec("ROLLBACK")
  })

  it("because it is closed", () => {
    const closed = copyOf(sound)
    closed.close()
    expect(codeOf(() => verify(closed))).toBe("argument_invalid")
  })

  it("because it is in a transaction: writes nothing", () => {
    db.exec("BEGIN")
    expect(codeOf(() => rebuild(db))).toBe("nested_transaction")
    expect(codeOf(() => apply(db, plan(db)))).toBe("nested_transaction")
    expect(db.inTransaction).toBe(true)
    db.exec("COMMIT")
  })

  it("because it may only read", () => {
    db.exec("DELETE FROM flows_clock_deadlines WHERE completed_at_ms IS NOT NULL")
    const path = fileOf(db)
    const readonly = new Database(path, { readonly: true })
    expect(verify(readonly).verdict).toBe("drift")
    expect(codeOf(() => rebuild(readonly))).toBe("store_read_only")
    expect(readonly.inTransaction).toBe(false)
    readonly.close()
    const queryOnly = new Database(path)
    queryOnly.pragma("query_only = 1")
    expect(codeOf(() => rebuild(queryOnly))).toBe("store_read_only")
    queryOnly.close()
  })

  it("because another writes: waits as long as the connection does, then says so", () => {
    const path = fileOf(sound)
    const writer = new Database(path)
    const other = new Database(path, { timeout: 20 })
    const before = derivedRows(other)
    other.exec("DELETE FROM flows_clock_deadlines WHERE completed_at_ms IS NOT NULL")
    writer.exec("BEGIN IMMEDIATE")
    // A reader is let in until the writer commits; a second writer is not.
    expect(verify(other).verdict).toBe("drift")
    expect(codeOf(() => rebuild(other))).toBe("store_busy")
    writer.exec("COMMIT")
    writer.exec("BEGIN EXCLUSIVE")
    expect(codeOf(() => verify(other))).toBe("store_busy")
    writer.exec("COMMIT")
    // A reader keeps the commit waiting: it is given up as a whole.
    writer.exec("BEGIN")
    writer.prepare("SELECT count(*) FROM flows_runs").get()
    expect(codeOf(() => rebuild(other))).toBe("store_busy")
    expect(other.inTransaction).toBe(false)
    writer.exec("COMMIT")
    rebuild(other)
    expect(derivedRows(other)).toBe(before)
    writer.close()
    other.close()
  })
})
