/**
 * The deferred/clock fold in plain JavaScript, for the tests of the example engine: written from the README of the vectors and
 * sharing nothing with the engine or the library, so that the three can only agree by being right. It reads what the engine writes
 * (well-formed payloads in order) and makes no claim beyond that.
 */

import { createHash } from "node:crypto"
import type Database from "better-sqlite3"

export interface ClockState {
  flowName: string; executionId: string; clockName: string; deferredName: string; dueAtMs: number; completedAtMs: number | null
}
export interface DeferredState {
  flowName: string; executionId: string; deferredName: string; completedAtMs: number | null
  exitDigest?: string; metadataDigest?: string | null; consumedAtMs: number | null
}
export interface FoldState { clocks: ClockState[]; deferreds: DeferredState[] }
export interface JournalRow { run_id: string; seq: number; event_type: string; payload: Uint8Array }
export interface CheckpointRow { run_id: string; seq: number; state_json: string; compacted_at_ms: number | null }

export const checkpointKey = "flows.engine.deferred-clock"

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export const digestOf = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/**
 * The fold of one run up to a seq, from its highest floor; undefined when that floor keeps none.
 * @throws SyntaxError for a payload that is no JSON, TypeError for one that is no UTF-8.
 */
export function foldRun(db: Database.Database, runId: string, upTo: number = Number.MAX_SAFE_INTEGER): FoldState | undefined {
  const floor = db.prepare<[string], CheckpointRow>(
    "SELECT * FROM flows_journal_checkpoints WHERE run_id = ? AND compacted_at_ms IS NOT NULL ORDER BY seq DESC LIMIT 1"
  ).get(runId)
  const state = floor === undefined ? { clocks: [], deferreds: [] } : keptFold(floor.state_json)
  if (state === undefined) return undefined
  const entries = db.prepare<[string, number, number], JournalRow>(
    // As bytes: a driver that hands out text has already replaced what is no UTF-8.
    `SELECT run_id, seq, event_type, CAST(payload_json AS BLOB) AS payload FROM flows_journal_events
     WHERE run_id = ? AND seq > ? AND seq <= ? ORDER BY seq`
  ).all(runId, floor?.seq ?? -1, upTo)
  for (const entry of entries) apply(state, entry)
  return state
}

/** What the engine is given for its compactions. */
export function plainCheckpointStateText(db: Database.Database, runId: string, upTo: number, baseText: string): string {
  return JSON.stringify({ ...JSON.parse(baseText), [checkpointKey]: foldRun(db, runId, upTo) })
}

/** A kept fold counts only as a whole: a missing list or field, and there is none. */
function keptFold(stateText: string): FoldState | undefined {
  let fold: FoldState | undefined
  try {
    fold = JSON.parse(stateText)[checkpointKey]
  } catch {
    return undefined
  }
  const whole = Array.isArray(fold?.clocks) && Array.isArray(fold.deferreds) &&
    fold.clocks.every((clock) => typeof clock.dueAtMs === "number" && clock.completedAtMs !== undefined) &&
    fold.deferreds.every((deferred) => deferred.completedAtMs !== undefined && deferred.consumedAtMs !== undefined)
  return whole ? fold : undefined
}

function apply(state: FoldState, entry: JournalRow): void {
  if (!/\.(clock-scheduled|clock-completed|deferred-completed|deferred-consumed)$/.test(entry.event_type)) return
  const payload = JSON.parse(utf8.decode(entry.payload))
  const { flowName, executionId } = payload
  const here = (row: { flowName: string; executionId: string }) => row.flowName === flowName && row.executionId === executionId
  const clock = state.clocks.find((row) => here(row) && row.clockName === payload.clockName)
  const deferred = state.deferreds.find((row) => here(row) && row.deferredName === payload.deferredName)
  switch (entry.event_type) {
    case "flows.engine.clock-scheduled":
      if (clock !== undefined) return
      state.clocks.push({
        flowName, executionId, clockName: payload.clockName, deferredName: payload.deferredName, dueAtMs: payload.dueAtMs,
        completedAtMs: null
      })
      return
    case "flows.engine.clock-completed":
      if (clock !== undefined) clock.completedAtMs ??= payload.completedAtMs
      return
    case "flows.engine.deferred-completed":
      if (deferred !== undefined) return
      state.deferreds.push({
        flowName, executionId, deferredName: payload.deferredName, completedAtMs: payload.completedAtMs,
        exitDigest: payload.exitDigest, metadataDigest: payload.metadataDigest, consumedAtMs: null
      })
      return
    case "flows.engine.deferred-consumed":
      if (deferred !== undefined) deferred.consumedAtMs ??= payload.consumedAtMs
      return
  }
}
