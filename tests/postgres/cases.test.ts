/** The recorded cases, through a store in Postgres. */
import { readFileSync } from "node:fs"
import type pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { capture, checkpointState, checkpointStateText, rebuild } from "journal-fold/postgres"
// @ts-expect-error: a script without types
import * as vectors from "../../scripts/vectors/cases.mjs"
import { emptyTables, freshStore } from "./stores.js"

type Case = Record<string, any> & { readonly name: string }

const folder = new URL("../vectors/", import.meta.url)
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, folder), "utf8"))
const deviations = (read("deviations.json") as Record<string, Record<string, Record<string, Case>>>)["deferred-clock"] ?? {}

/** The cases of a file, written out, each with what is expected here. */
function casesOf(file: string): Case[] {
  return (read(`deferred-clock/${file}.json`) as Case[]).map((recorded) => {
    const test = vectors.expand(recorded) as Case
    const deviation = deviations[file]?.[test.name]
    if (deviation !== undefined) return { ...test, expected: deviation["expected"], expectedText: undefined, expectedKeys: undefined }
    return test["expectedText"] === undefined ? test : { ...test, expected: JSON.parse(test["expectedText"]) }
  })
}

/** A case's text: as spelled where its spelling was recorded. */
const textOf = (item: Case, member: string): string | null => {
  const text = item[`${member}Text`] as string | undefined
  return text ?? (item[member] === undefined ? null : JSON.stringify(item[member]))
}

const insert = async (client: pg.Client, table: string, types: readonly string[], rows: readonly (readonly unknown[])[]): Promise<void> => {
  if (rows.length === 0) return
  const lists = types.map((_, place) => rows.map((row) => (row[place] === null || row[place] === undefined ? null : String(row[place]))))
  await client.query(
    `INSERT INTO ${table} SELECT ${types.map((type, place) => `v${place}::${type}`).join(", ")}
     FROM unnest(${types.map((_, place) => `$${place + 1}::text[]`).join(", ")}) AS w(${types.map((_, place) => `v${place}`).join(", ")})`,
    lists
  )
}

async function fill(client: pg.Client, test: Case, journal: Case[], checkpoints: Case[]): Promise<void> {
  await emptyTables(client)
  await insert(client, "flows_runs (run_id)", ["text"], ((test["runs"] ?? []) as string[]).map((run) => [run]))
  await insert(client, "flows_journal_events", ["text", "bigint", "text", "text"],
    journal.map((entry) => [entry["runId"], entry["seq"], entry["eventType"], textOf(entry, "payload")]))
  await insert(client, "flows_journal_checkpoints", ["text", "bigint", "text", "bigint"],
    checkpoints.map((floor) => [floor["runId"] ?? test["runId"], floor["seq"], textOf(floor, "state"), floor["compactedAtMs"]]))
  await insert(client, "flows_clock_deadlines", ["text", "text", "text", "text", "bigint", "bigint"],
    ((test["clockRows"] ?? []) as Case[]).map((row) =>
      [row["flowName"], row["executionId"], row["clockName"], row["deferredName"], row["dueAtMs"], row["completedAtMs"]]))
  await insert(client, "flows_deferred_completions", ["text", "text", "text", "text", "text", "bigint", "bigint"],
    ((test["deferredRows"] ?? []) as Case[]).map((row) =>
      [row["flowName"], row["executionId"], row["deferredName"], row["exitJson"], row["metadataJson"], row["completedAtMs"], row["consumedAtMs"]]))
}

/** Whether no text of Postgres can hold something that a case stores. */
function isUnstorable(test: Case): boolean {
  const stored: unknown[] = []
  const look = (value: unknown): void => {
    if (typeof value === "string") stored.push(value)
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(look)
  }
  for (const member of ["runs", "clockRows", "deferredRows"]) look(test[member])
  for (const member of ["journal", "entries", "checkpoints", "floors"]) {
    for (const item of (test[member] ?? []) as Case[]) {
      look([item["runId"], item["eventType"], item["payloadText"], item["stateText"], textOf(item, "payload"), textOf(item, "state")])
    }
  }
  return stored.some((text) => !(text as string).isWellFormed() || (text as string).includes("\0"))
}

const outcomeOf = async (work: () => Promise<unknown>): Promise<unknown> => {
  try {
    return await work()
  } catch (error) {
    const { code, unjoined } = error as { code?: string; unjoined?: unknown }
    if (typeof code !== "string") throw error
    return { error: { code, ...(unjoined === undefined ? {} : { unjoined }) } }
  }
}

let client: pg.Client
beforeAll(async () => {
  ;({ client } = await freshStore())
}, 60_000)
afterAll(() => client?.end())

/** Compares as text, so that the order of rows and members counts; a deviation may name a code alone. */
function compare(found: unknown, expectation: unknown): void {
  const expected = vectors.withoutMessage(expectation)
  const lacks = expected?.error !== undefined && expected.error.unjoined === undefined
  const { error, ...rest } = (found ?? {}) as { error?: { code: string; unjoined?: unknown } }
  const shown = lacks && error !== undefined ? { ...rest, error: { code: error.code } } : found
  expect(JSON.parse(JSON.stringify(shown ?? null))).toEqual(expected)
  if (error === undefined) expect(JSON.stringify(shown)).toBe(JSON.stringify(expected))
}

const both = { allowDeletePending: true, allowUnconsume: true }

const rebuildCases = casesOf("rebuild")
const captureCases = casesOf("capture")
const checkpointCases = casesOf("checkpoint").filter(({ op }) => op === "checkpointState")

it("can hold every case but those with NUL in a stored text", () => {
  const unstorable = [...rebuildCases, ...captureCases, ...checkpointCases].filter(isUnstorable)
  expect(unstorable.map(({ name }) => name)).toEqual(["utf8-nul", "run-order-bytes", "names-odd"])
})

describe("rebuild", () => {
  it.each(rebuildCases.filter((test) => !isUnstorable(test)))("$name", async (test) => {
    await fill(client, test, test["journal"], test["checkpoints"])
    const outcome = (await outcomeOf(async () => ({ rebuilt: (await rebuild(client, both)).rebuilt }))) as object
    const clockRowsAfter = (await client.query(
      `SELECT flow_name AS "flowName", execution_id AS "executionId", clock_name AS "clockName", deferred_name AS "deferredName",
         due_at_ms::float8 AS "dueAtMs", completed_at_ms::float8 AS "completedAtMs" FROM flows_clock_deadlines
       ORDER BY flow_name COLLATE "C", execution_id COLLATE "C", clock_name COLLATE "C"`)).rows
    const deferredRowsAfter = (await client.query(
      `SELECT flow_name AS "flowName", execution_id AS "executionId", deferred_name AS "deferredName", exit_json AS "exitJson",
         metadata_json AS "metadataJson", completed_at_ms::float8 AS "completedAtMs", consumed_at_ms::float8 AS "consumedAtMs"
       FROM flows_deferred_completions ORDER BY flow_name COLLATE "C", execution_id COLLATE "C", deferred_name COLLATE "C"`)).rows
    compare({ ...outcome, clockRowsAfter, deferredRowsAfter }, test["expected"])
  })
})

describe("capture", () => {
  it.each(captureCases.filter((test) => !isUnstorable(test)))("$name", async (test) => {
    await fill(client, test, test["entries"], test["floors"])
    compare(await outcomeOf(() => capture(client, test["runId"], test["upTo"])), test["expected"])
  })
})

describe("checkpointState", () => {
  it.each(checkpointCases.filter((test) => !isUnstorable(test)))("$name", async (test) => {
    await fill(client, test, test["entries"], test["floors"])
    const base = "baseText" in test ? JSON.parse(test["baseText"]) : test["base"]
    const outcome = await outcomeOf(() => checkpointState(client, test["runId"], test["upTo"], base))
    compare(outcome, test["expected"])
    if (test["expectedKeys"] === undefined) return
    expect(Object.keys(outcome as object)).toEqual(test["expectedKeys"])
    const text = await checkpointStateText(client, test["runId"], test["upTo"], test["baseText"] ?? (base === undefined ? undefined : JSON.stringify(base)))
    expect(JSON.parse(text)).toEqual(outcome)
  })
})
