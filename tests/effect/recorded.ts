/** The recorded cases, written out, each with what is expected here. */
import { readFileSync } from "node:fs"
import { expect } from "vitest"
// @ts-expect-error: a script without types
import * as vectors from "../../scripts/vectors/cases.mjs"

export type Case = Record<string, any> & { readonly name: string }

const folder = new URL("../vectors/", import.meta.url)
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, folder), "utf8"))
const deviations = (read("deviations.json") as Record<string, Record<string, Record<string, Case>>>)["deferred-clock"] ?? {}

/** The cases of a file. */
export function casesOf(file: string): Case[] {
  return (read(`deferred-clock/${file}.json`) as Case[]).map((recorded) => {
    const test = vectors.expand(recorded) as Case
    const deviation = deviations[file]?.[test.name]
    if (deviation !== undefined) return { ...test, expected: deviation["expected"], expectedText: undefined, expectedKeys: undefined }
    return test["expectedText"] === undefined ? test : { ...test, expected: JSON.parse(test["expectedText"]) }
  })
}

/** A case's text: as spelled where its spelling was recorded. */
export function textOf(item: Case, member: string): string | null {
  return (item[`${member}Text`] as string | undefined) ?? (item[member] === undefined ? null : JSON.stringify(item[member]))
}

/** A case's value. */
export function valueOf(item: Case, member: string): unknown {
  return `${member}Text` in item ? JSON.parse(item[`${member}Text`]) : item[member]
}

/** Sets what JSON cannot say: members that are there but undefined. */
export function withUndefined(value: any, pointers: readonly string[] = []): unknown {
  for (const pointer of pointers) {
    const parts = pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    const last = parts.pop() as string
    let at = value
    for (const part of parts) at = at[part]
    at[last] = undefined
  }
  return value
}

/** Compares as text, so that the order of rows and members counts; a deviation may name a code alone. */
export function compare(found: any, expectation: unknown): void {
  const expected = vectors.withoutMessage(expectation)
  const lacks = expected?.error !== undefined && expected.error.unjoined === undefined
  const shown = lacks && found?.error !== undefined ? { ...found, error: { code: found.error.code } } : found
  expect(JSON.parse(JSON.stringify(shown ?? null))).toEqual(expected)
  expect(JSON.stringify(shown ?? null)).toBe(JSON.stringify(expected))
}

/** The rows that a case stores, table by table. */
export function rowsOf(test: Case, journal: Case[], checkpoints: Case[]): [table: string, columns: string[], rows: unknown[][]][] {
  const members = (rows: Case[] | undefined, ...names: string[]): unknown[][] => (rows ?? []).map((row) => names.map((name) => row[name] ?? null))
  return [
    ["flows_runs", ["run_id"], ((test["runs"] ?? []) as string[]).map((run) => [run])],
    ["flows_journal_events", ["run_id", "seq", "event_type", "payload_json"],
      journal.map((entry) => [entry["runId"], entry["seq"], entry["eventType"], textOf(entry, "payload")])],
    ["flows_journal_checkpoints", ["run_id", "seq", "state_json", "compacted_at_ms"],
      checkpoints.map((floor) => [floor["runId"] ?? test["runId"], floor["seq"], textOf(floor, "state"), floor["compactedAtMs"] ?? null])],
    ["flows_clock_deadlines", ["flow_name", "execution_id", "clock_name", "deferred_name", "due_at_ms", "completed_at_ms"],
      members(test["clockRows"], "flowName", "executionId", "clockName", "deferredName", "dueAtMs", "completedAtMs")],
    ["flows_deferred_completions", ["flow_name", "execution_id", "deferred_name", "exit_json", "metadata_json", "completed_at_ms", "consumed_at_ms"],
      members(test["deferredRows"], "flowName", "executionId", "deferredName", "exitJson", "metadataJson", "completedAtMs", "consumedAtMs")]
  ]
}

/** Whether no text of Postgres can hold something that a case stores. */
export function isUnstorable(rows: ReturnType<typeof rowsOf>): boolean {
  return rows.some(([, , values]) => values.flat().some((value) => typeof value === "string" && (value.includes("\0") || !value.isWellFormed())))
}

// By UTF-8 bytes, in which order the rows were recorded.
export function byBytes<Row extends Record<string, any>>(rows: Row[], ...keys: string[]): Row[] {
  return rows.sort((a, b) => keys.reduce((order, key) => order || Buffer.compare(Buffer.from(a[key]), Buffer.from(b[key])), 0))
}
