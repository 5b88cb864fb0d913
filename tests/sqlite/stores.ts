/** Stores for the tests of the SQLite host: tables of several kinds, entries written by hand, demo stores, and what tells two of them apart. */
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { onTestFinished } from "vitest"
import { verifyRebuild, type EntryText, type Floor, type Verification, type VerifyOptions } from "journal-fold/deferred-clock"
import { checkpointStateText } from "journal-fold/sqlite"
import { writeStore, type StoreOptions, type StoreSummary } from "../../js/demo/engine.js"
import { tableKeys, type TableName } from "../../js/demo/tables.js"

export type Db = Database.Database

export const scheduled = "flows.engine.clock-scheduled"
export const fired = "flows.engine.clock-completed"
export const completed = "flows.engine.deferred-completed"
export const consumed = "flows.engine.deferred-consumed"

/** How tables are made. */
export interface TablesOptions {
  /** The type of texts, with a collation if need be. */
  readonly text?: string
  /** The type of seqs and times. */
  readonly integer?: string
  /** What a table ends with, such as WITHOUT ROWID. */
  readonly suffix?: string
  /** No keys and so no indexes. */
  readonly keys?: boolean
  /** Columns of the user's own in the clock table. */
  readonly clockColumns?: string
}

/** The tables of a store without constraints but their keys. */
export function tablesSql({ text = "TEXT", integer = "INTEGER", suffix = "", keys = true, clockColumns = "" }: TablesOptions = {}): string {
  const key = (...columns: string[]): string => (keys ? `, PRIMARY KEY (${columns.join(", ")})` : "")
  return `
    CREATE TABLE flows_runs (run_id ${text}${key("run_id")}) ${suffix};
    CREATE TABLE flows_journal_events (run_id ${text}, seq ${integer}, event_type ${text}, payload_json ${text}${key("run_id", "seq")}) ${suffix};
    CREATE TABLE flows_journal_checkpoints (run_id ${text}, seq ${integer}, state_json ${text}, compacted_at_ms ${integer}${key("run_id", "seq")}) ${suffix};
    CREATE TABLE flows_clock_deadlines (flow_name ${text}, execution_id ${text}, clock_name ${text}, deferred_name ${text},
      due_at_ms ${integer}, completed_at_ms ${integer}${clockColumns}${key("flow_name", "execution_id", "clock_name")}) ${suffix};
    CREATE TABLE flows_deferred_completions (flow_name ${text}, execution_id ${text}, deferred_name ${text}, exit_json ${text},
      metadata_json ${text}, completed_at_ms ${integer}, consumed_at_ms ${integer}${key("flow_name", "execution_id", "deferred_name")}) ${suffix};`
}

/** A store in memory with tables and no rows. */
export function emptyStore(options: TablesOptions & { readonly encoding?: string } = {}): Db {
  const db = new Database(":memory:")
  if (options.encoding !== undefined) db.pragma(`encoding = '${options.encoding}'`)
  db.exec(tablesSql(options))
  return db
}

export const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex")

/** Rows, written one at a time as a scenario tells them. */
export function storyOf(db: Db) {
  const seqs = new Map<string, bigint>()
  const append = (runId: unknown, eventType: string, payload: unknown, at?: number | bigint): void => {
    const key = String(runId)
    const seq = at === undefined ? (seqs.get(key) ?? -1n) + 1n : BigInt(at)
    seqs.set(key, seq)
    db.prepare("INSERT INTO flows_journal_events (run_id, seq, event_type, payload_json) VALUES (?, ?, ?, ?)")
      .run(runId, seq, eventType, typeof payload === "string" || payload instanceof Uint8Array || payload === null ? payload : JSON.stringify(payload))
  }
  const story = {
    append,
    run(runId: string) {
      db.prepare("INSERT INTO flows_runs (run_id) VALUES (?)").run(runId)
      return story
    },
    /** A clock, in the journal of its own run unless another is named, and in the table unless told otherwise. */
    clock(executionId: string, clockName: string, { flowName = "F", deferredName = `d/${clockName}`, dueAtMs = 100, runId = executionId, row = true } = {}) {
      append(runId, scheduled, { flowName, executionId, clockName, deferredName, dueAtMs })
      if (row) {
        db.prepare(`INSERT INTO flows_clock_deadlines (flow_name, execution_id, clock_name, deferred_name, due_at_ms, completed_at_ms)
          VALUES (?, ?, ?, ?, ?, NULL)`).run(flowName, executionId, clockName, deferredName, dueAtMs)
      }
      return story
    },
    completion(executionId: string, deferredName: string, { flowName = "F", exit = '"done"' as string | Uint8Array, metadata = null as string | null, completedAtMs = 120, runId = executionId, row = true, digest = undefined as string | undefined } = {}) {
      append(runId, completed, {
        flowName, executionId, deferredName, completedAtMs,
        exitDigest: digest ?? sha256(exit), metadataDigest: metadata === null ? null : sha256(metadata)
      })
      if (row) {
        db.prepare(`INSERT INTO flows_deferred_completions (flow_name, execution_id, deferred_name, exit_json, metadata_json, completed_at_ms, consumed_at_ms)
          VALUES (?, ?, ?, ?, ?, ?, NULL)`).run(flowName, executionId, deferredName, exit, metadata, completedAtMs)
      }
      return story
    }
  }
  return story
}

/** A store that the example engine wrote, in memory. */
export function demoStore(options: StoreOptions = {}): { db: Db; summary: StoreSummary } {
  const db = new Database(":memory:")
  return { db, summary: writeStore(db, { runs: 60, checkpointStateText, stepsPerTransaction: 50, ...options }) }
}

export function copyOf(db: Db): Db {
  return new Database(db.serialize())
}

/** Every row of both derived tables, in order of their keys: equal means equal to the last byte. */
export function derivedRows(db: Db): string {
  const rows = (table: TableName): unknown[] =>
    db.prepare(`SELECT * FROM ${table} ORDER BY ${tableKeys[table].join(", ")}`).raw().all()
  return JSON.stringify([rows("flows_clock_deadlines"), rows("flows_deferred_completions")])
}

/** A folder that is gone when the test is over. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "journal-fold-sqlite-"))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** A store in a file of its own. */
export function fileOf(db: Db, { wal = false } = {}): string {
  const path = join(folder(), "store.db")
  db.exec(`VACUUM INTO '${path}'`)
  if (wal) {
    const file = new Database(path)
    file.pragma("journal_mode = WAL")
    file.close()
  }
  return path
}

/** The code of what a call throws. */
export function codeOf(work: () => unknown): unknown {
  return errorOf(work).code
}

/** What a call throws. */
export function errorOf(work: () => unknown): Error & { code?: unknown; details?: Record<string, unknown> } {
  try {
    work()
  } catch (error) {
    return error as Error
  }
  throw new Error("nothing was thrown")
}

/** Findings in a few words each. */
export function short(findings: readonly { id: string; runId?: string; executionId?: string; name?: string; field?: string }[]): string[] {
  return findings.map(({ id, runId, executionId, name, field }) =>
    [id, name === undefined ? runId : `${executionId}/${name}`, field].filter((part) => part !== undefined).join(" "))
}

/** What a verification says that is given every row of a store, read the plainest way. */
export function verifyInMemory(db: Db, options: VerifyOptions = {}): Verification {
  const all = <Row>(sql: string): Row[] => db.prepare(sql).all() as Row[]
  const runs = new Map<string, { runId: string; entries: EntryText[]; floors: Floor[] }>()
  const run = (runId: string) => {
    const known = runs.get(runId) ?? { runId, entries: [], floors: [] }
    runs.set(runId, known)
    return known
  }
  for (const { run_id: runId, seq, event_type: eventType, payload_json: payload } of all<Record<string, any>>("SELECT * FROM flows_journal_events ORDER BY seq")) {
    run(runId).entries.push({ runId, seq, eventType, payloadText: payload ?? "" })
  }
  for (const { run_id: runId, seq, state_json: stateText, compacted_at_ms: compactedAtMs } of all<Record<string, any>>("SELECT * FROM flows_journal_checkpoints")) {
    run(runId).floors.push({ seq, compactedAtMs, stateText })
  }
  return verifyRebuild({
    runs: [...runs.values()].filter(({ entries, floors }) => entries.length > 0 || floors.some(({ compactedAtMs }) => compactedAtMs !== null)),
    liveRuns: db.prepare("SELECT run_id FROM flows_runs").pluck().all() as string[],
    clocks: all(`SELECT flow_name AS flowName, execution_id AS executionId, clock_name AS clockName, deferred_name AS deferredName,
      due_at_ms AS dueAtMs, completed_at_ms AS completedAtMs FROM flows_clock_deadlines`),
    completions: all(`SELECT flow_name AS flowName, execution_id AS executionId, deferred_name AS deferredName, exit_json AS exitText,
      metadata_json AS metadataText, completed_at_ms AS completedAtMs, consumed_at_ms AS consumedAtMs FROM flows_deferred_completions`)
  }, options)
}
