/** The recorded cases, through a store in SQLite: each in tables without constraints but their keys. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { capture, checkCheckpoint, checkpointState, checkpointStateText, rebuild, verify } from "journal-fold/sqlite"
// @ts-expect-error: a script without types
import * as vectors from "../../scripts/vectors/cases.mjs"
import { emptyStore, type Db } from "./stores.js"

type Case = Record<string, any> & { readonly name: string }

const folder = new URL("../vectors/", import.meta.url)
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, folder), "utf8"))
const deviations = (read("deviations.json") as Record<string, Record<string, Record<string, Case>>>)["deferred-clock"] ?? {}

/** The cases of a file, written out, each with what is expected here. */
function casesOf(file: string): Case[] {
  return (read(`deferred-clock/${file}.json`) as Case[]).map((recorded) => {
    const test = vectors.expand(recorded) as Case
    const deviation = deviations[file]?.[test.name]
    if (deviation !== undefined) return { ...test, expected: deviation["expected"], expectedKeys: undefined }
    return test["expectedText"] === undefined ? test : { ...test, expected: JSON.parse(test["expectedText"]) }
  })
}

/** A case's text: as spelled where its spelling was recorded. */
const textOf = (item: Case, member: string): string | null =>
  (item[`${member}Text`] as string | undefined) ?? (item[member] === undefined ? null : JSON.stringify(item[member]))

function storeOf(test: Case, journal: Case[], checkpoints: Case[], encoding?: string): Db {
  const db = emptyStore(encoding === undefined ? {} : { encoding })
  const insert = (table: string, columns: string, rows: unknown[][]): void => {
    const statement = db.prepare(`INSERT INTO ${table} (${columns}) VALUES (${columns.split(",").map(() => "?").join(", ")})`)
    for (const row of rows) statement.run(...row.map((value) => value ?? null))
  }
  db.transaction(() => {
    insert("flows_runs", "run_id", ((test["runs"] ?? []) as string[]).map((run) => [run]))
    insert("flows_journal_events", "run_id, seq, event_type, payload_json",
      journal.map((entry) => [entry["runId"], entry["seq"], entry["eventType"], textOf(entry, "payload")]))
    insert("flows_journal_checkpoints", "run_id, seq, state_json, compacted_at_ms",
      checkpoints.map((floor) => [floor["runId"] ?? test["runId"], floor["seq"], textOf(floor, "state"), floor["compactedAtMs"]]))
    insert("flows_clock_deadlines", "flow_name, execution_id, clock_name, deferred_name, due_at_ms, completed_at_ms",
      ((test["clockRows"] ?? []) as Case[]).map((row) =>
        [row["flowName"], row["executionId"], row["clockName"], row["deferredName"], row["dueAtMs"], row["completedAtMs"]]))
    insert("flows_deferred_completions", "flow_name, execution_id, deferred_name, exit_json, metadata_json, completed_at_ms, consumed_at_ms",
      ((test["deferredRows"] ?? []) as Case[]).map((row) =>
        [row["flowName"], row["executionId"], row["deferredName"], row["exitJson"], row["metadataJson"], row["completedAtMs"], row["consumedAtMs"]]))
  })()
  return db
}

// By UTF-8 bytes, in which order the rows were recorded; the own order of a store in UTF-16 is another.
const byBytes = (rows: unknown[], ...keys: string[]): unknown[] => {
  const bytes = (row: unknown, key: string): Buffer => Buffer.from((row as Record<string, string>)[key] as string)
  return rows.sort((a, b) => keys.reduce((order, key) => order || Buffer.compare(bytes(a, key), bytes(b, key)), 0))
}
const clockRows = (db: Db): unknown[] => byBytes(db.prepare(`
  SELECT flow_name AS flowName, execution_id AS executionId, clock_name AS clockName, deferred_name AS deferredName, due_at_ms AS dueAtMs,
    completed_at_ms AS completedAtMs FROM flows_clock_deadlines`).all(), "flowName", "executionId", "clockName")
const deferredRows = (db: Db): unknown[] => byBytes(db.prepare(`
  SELECT flow_name AS flowName, execution_id AS executionId, deferred_name AS deferredName, exit_json AS exitJson,
    metadata_json AS metadataJson, completed_at_ms AS completedAtMs, consumed_at_ms AS consumedAtMs
  FROM flows_deferred_completions`).all(), "flowName", "executionId", "deferredName")

/** Compares as text, so that the order of rows and members counts; a deviation may name a code alone. */
function compare(found: object, expectation: unknown): void {
  const expected = vectors.withoutMessage(expectation)
  const { error } = found as { error?: { code: string; unjoined?: unknown } }
  const shown = error !== undefined && expected.error?.unjoined === undefined ? { ...found, error: { code: error.code } } : found
  // Objects first, for a difference that can be read.
  expect(JSON.parse(JSON.stringify(shown))).toEqual(expected)
  expect(JSON.stringify(shown)).toBe(JSON.stringify(expected))
}

const both = { allowDeletePending: true, allowUnconsume: true }

function checkRebuild(test: Case, encoding?: string): void {
  const db = storeOf(test, test["journal"], test["checkpoints"], encoding)
  const outcome = vectors.outcomeOf(() => ({ rebuilt: rebuild(db, both).rebuilt }))
  compare({ ...outcome, clockRowsAfter: clockRows(db), deferredRowsAfter: deferredRows(db) }, test["expected"])
  if (outcome.error === undefined) expect(verify(db)).toMatchObject({ verdict: "match", findings: [], plan: { rows: 0 } })
  db.close()
}

function checkCapture(test: Case, encoding?: string): void {
  const db = storeOf(test, test["entries"], test["floors"], encoding)
  compare(vectors.outcomeOf(() => capture(db, test["runId"], test["upTo"])), test["expected"])
  db.close()
}

function checkState(test: Case, encoding?: string): void {
  const db = storeOf(test, test["entries"], test["floors"], encoding)
  const base = "baseText" in test ? JSON.parse(test["baseText"]) : test["base"]
  const outcome = vectors.outcomeOf(() => checkpointState(db, test["runId"], test["upTo"], base))
  compare(outcome, test["expected"])
  const baseText = test["baseText"] ?? (base === undefined ? undefined : JSON.stringify(base))
  const text = vectors.outcomeOf(() => ({ text: checkpointStateText(db, test["runId"], test["upTo"], baseText) }))
  if (outcome.error === undefined) {
    expect(Object.keys(outcome)).toEqual(test["expectedKeys"])
    expect(JSON.parse(text.text)).toEqual(outcome)
    expect(checkCheckpoint(db, test["runId"], test["upTo"], text.text)).toEqual({ matches: true, differences: [] })
  } else expect(text.error.code).toBe(outcome.error.code)
  db.close()
}

const rebuildCases = casesOf("rebuild")
const captureCases = casesOf("capture")
const stateCases = casesOf("checkpoint").filter(({ op }) => op === "checkpointState")

it("knows no case to leave out", () => {
  expect([...rebuildCases, ...captureCases, ...stateCases].filter(({ inMemoryOnly, driverSpecific }) => inMemoryOnly || driverSpecific)).toEqual([])
})

describe("rebuild", () => {
  it.each(rebuildCases)("$name", (test) => checkRebuild(test))
})
describe("capture", () => {
  it.each(captureCases)("$name", (test) => checkCapture(test))
})
describe("checkpointState", () => {
  it.each(stateCases)("$name", (test) => checkState(test))
})

// A store in UTF-16 is read another way. What SQLite does not bring there as it was: unpaired surrogates, U+FFFE and U+FFFF.
describe.each(["UTF-16le", "UTF-16be"])("in %s", (encoding) => {
  const storable = (test: Case): boolean => test["loneSurrogate"] !== true && !/[\ufffe\uffff]/.test(JSON.stringify(test))
  it.each(rebuildCases.filter(storable))("rebuild: $name", (test) => checkRebuild(test, encoding))
  it.each(captureCases.filter(storable))("capture: $name", (test) => checkCapture(test, encoding))
  it.each(stateCases.filter(storable))("checkpointState: $name", (test) => checkState(test, encoding))
})
