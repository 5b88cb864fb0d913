/**
 * What is wrong with a store, said by a verification that is as plain as can be: it holds everything in memory and knows only what
 * the damages do. It judges the damages before the library does, so that a damage that does not do what it says is not taken for a
 * fault of the library's, nor the other way round.
 */

import type Database from "better-sqlite3"
import type { Address } from "../../js/demo/damages.js"
import { type ClockState, type DeferredState, digestOf, foldRun } from "./plain-fold.js"

export interface PlainFinding { id: string; address: Address }
export interface PlainReport { findings: PlainFinding[]; unexplained: number }

interface ClockRow {
  flow_name: string; execution_id: string; clock_name: string; deferred_name: string
  due_at_ms: number; completed_at_ms: number | null
}
interface DeferredRow {
  flow_name: string; execution_id: string; deferred_name: string; exit_json: string; metadata_json: string | null
  completed_at_ms: number; consumed_at_ms: number | null
}

const keyOf = (...parts: string[]): string => JSON.stringify(parts)

/** Every finding, in no particular order, and the number of completions that nothing explains. */
export function plainVerify(db: Database.Database): PlainReport {
  const findings: PlainFinding[] = []
  const clocks = new Map<string, { clock: ClockState; runIds: string[] }>()
  const deferreds = new Map<string, DeferredState>()
  let allFolded = true
  for (const runId of runIdsOf(db)) {
    try {
      const fold = foldRun(db, runId)
      if (fold === undefined) findings.push({ id: "checkpoint_missing", address: { runId } })
      allFolded &&= fold !== undefined
      for (const clock of fold?.clocks ?? []) {
        const key = keyOf(clock.flowName, clock.executionId, clock.clockName)
        clocks.set(key, { clock, runIds: [...clocks.get(key)?.runIds ?? [], runId] })
      }
      for (const deferred of fold?.deferreds ?? []) {
        deferreds.set(keyOf(deferred.flowName, deferred.executionId, deferred.deferredName), deferred)
      }
    } catch (error) {
      findings.push({ id: error instanceof SyntaxError ? "payload_not_json" : "text_not_utf8", address: { runId } })
      allFolded = false
    }
  }
  judgeClocks(db, clocks, allFolded, findings)
  const unexplained = judgeCompletions(db, deferreds, findings)
  return { findings, unexplained: allFolded ? unexplained : 0 }
}

/** Ids as SQLite orders them: by UTF-8 bytes. */
function runIdsOf(db: Database.Database): string[] {
  return db.prepare<[], string>(`
    SELECT run_id FROM flows_journal_events
    UNION SELECT run_id FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL ORDER BY 1`).pluck().all()
}

function judgeClocks(
  db: Database.Database, clocks: Map<string, { clock: ClockState; runIds: string[] }>, allFolded: boolean, findings: PlainFinding[]
): void {
  const live = new Set(db.prepare<[], string>("SELECT run_id FROM flows_runs").pluck().all())
  const rows = new Map(db.prepare<[], ClockRow>("SELECT * FROM flows_clock_deadlines").all()
    .map((row) => [keyOf(row.flow_name, row.execution_id, row.clock_name), row]))
  for (const [key, { clock, runIds }] of clocks) {
    const { flowName, executionId, clockName } = clock
    const address = { flowName, executionId, clockName }
    if (!live.has(executionId)) findings.push({ id: "run_missing", address })
    if (runIds.length > 1) {
      findings.push({ id: "clock_conflict", address: { ...address, runIds } })
      continue
    }
    const row = rows.get(key)
    if (row === undefined) {
      findings.push({ id: "clock_missing", address })
      continue
    }
    const differs = (column: string) => findings.push({ id: "clock_differs", address: { ...address, column } })
    if (row.deferred_name !== clock.deferredName) differs("deferred_name")
    if (row.due_at_ms !== clock.dueAtMs) differs("due_at_ms")
    if (row.completed_at_ms !== clock.completedAtMs) differs("completed_at_ms")
  }
  // A run that could not be folded may explain any row.
  if (!allFolded) return
  for (const [key, row] of rows) {
    if (clocks.has(key)) continue
    const address = { flowName: row.flow_name, executionId: row.execution_id, clockName: row.clock_name }
    findings.push({ id: "clock_unexpected", address })
  }
}

function judgeCompletions(db: Database.Database, deferreds: Map<string, DeferredState>, findings: PlainFinding[]): number {
  const rows = new Map(db.prepare<[], DeferredRow>("SELECT * FROM flows_deferred_completions").all()
    .map((row) => [keyOf(row.flow_name, row.execution_id, row.deferred_name), row]))
  for (const [key, deferred] of deferreds) {
    const { flowName, executionId, deferredName } = deferred
    const address = { flowName, executionId, deferredName }
    const row = rows.get(key)
    if (row === undefined) {
      findings.push({ id: "row_missing", address })
      continue
    }
    const metadataDigest = row.metadata_json === null ? null : digestOf(row.metadata_json)
    const differs = (id: string, column: string) => findings.push({ id, address: { ...address, column } })
    if (digestOf(row.exit_json) !== deferred.exitDigest) differs("digest_mismatch", "exit_json")
    if (metadataDigest !== deferred.metadataDigest) differs("digest_mismatch", "metadata_json")
    if (row.completed_at_ms !== deferred.completedAtMs) differs("stamp_differs", "completed_at_ms")
    if (row.consumed_at_ms !== deferred.consumedAtMs) differs("stamp_differs", "consumed_at_ms")
  }
  return [...rows.keys()].filter((key) => !deferreds.has(key)).length
}
