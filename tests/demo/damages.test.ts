/**
 * The damages: each changes one row of a sound store, the one it names, and leads to the finding that it says and to no other.
 */

import { describe, expect, it } from "vitest"
import { damages, emptyAndAlter } from "../../js/demo/damages.js"
import { tableKeys, type TableName } from "../../js/demo/tables.js"
import { plainVerify } from "./plain-verify.js"
import { copyOf, rowTexts, storeWith, tableNames } from "./stores.js"

const { db: sound } = storeWith()

interface Difference { table: TableName; kind: "added" | "removed" | "changed"; key: unknown[]; columns: string[] }

const soundRows = new Map(tableNames.map((table) => [table, rowTexts(sound, table)]))

/** Every row in which a copy differs from the sound store. */
function differencesOf(copy: typeof sound): Difference[] {
  return tableNames.flatMap((table) => {
    const old: Map<string, string> = soundRows.get(table) ?? new Map()
    const now = rowTexts(copy, table)
    const columns = sound.prepare(`SELECT * FROM ${table}`).columns().map((column) => column.name)
    return [...new Set([...old.keys(), ...now.keys()])].flatMap((key): Difference[] => {
      const [was, is] = [old.get(key), now.get(key)]
      if (was === is) return []
      const kind = was === undefined ? "added" : is === undefined ? "removed" : "changed"
      const [wasValues, isValues] = [JSON.parse(was ?? "[]"), JSON.parse(is ?? "[]")]
      return [{ table, kind, key: JSON.parse(key), columns: columns.filter((_, at) => wasValues[at] !== isValues[at]) }]
    })
  })
}

/** What each damage may touch: the table, what happens to its one row, and which column when a row is only changed. */
const touches: Record<string, [TableName, Difference["kind"], string?]> = {
  "checkpoint-without-fold": ["flows_journal_checkpoints", "changed", "state_json"],
  "checkpoint-malformed": ["flows_journal_checkpoints", "changed", "state_json"],
  "checkpoint-cut-short": ["flows_journal_checkpoints", "changed", "state_json"],
  "run-row-deleted": ["flows_runs", "removed"],
  "clock-recorded-twice": ["flows_journal_events", "added"],
  "completion-deleted": ["flows_deferred_completions", "removed"],
  "exit-altered": ["flows_deferred_completions", "changed", "exit_json"],
  "metadata-altered": ["flows_deferred_completions", "changed", "metadata_json"],
  "metadata-lost": ["flows_deferred_completions", "changed", "metadata_json"],
  "payload-cut-short": ["flows_journal_events", "changed", "payload_json"],
  "payload-not-utf8": ["flows_journal_events", "changed", "payload_json"],
  "clock-row-deleted": ["flows_clock_deadlines", "removed"],
  "clock-row-invented": ["flows_clock_deadlines", "added"],
  "due-time-altered": ["flows_clock_deadlines", "changed", "due_at_ms"],
  "fired-clock-pending-again": ["flows_clock_deadlines", "changed", "completed_at_ms"],
  "pending-clock-marked-fired": ["flows_clock_deadlines", "changed", "completed_at_ms"],
  "clock-aims-elsewhere": ["flows_clock_deadlines", "changed", "deferred_name"],
  "completion-time-altered": ["flows_deferred_completions", "changed", "completed_at_ms"],
  "consumption-lost": ["flows_deferred_completions", "changed", "consumed_at_ms"],
  "consumption-invented": ["flows_deferred_completions", "changed", "consumed_at_ms"],
  "completion-nobody-recorded": ["flows_deferred_completions", "added"]
}

describe("a damage", () => {
  it("is in the list once, and this test knows every one", () => {
    expect(damages.map((damage) => damage.name).sort()).toEqual(Object.keys(touches).sort())
  })

  it("starts from a store without a finding", () => {
    expect(plainVerify(sound)).toEqual({ findings: [], unexplained: 0 })
  })

  it.each(damages)("$name: $why", (damage) => {
    const copy = copyOf(sound)
    const { address } = damage.apply(copy)

    const [table, kind, column] = touches[damage.name] ?? expect.fail(`nothing is known of ${damage.name}`)
    const found = differencesOf(copy)
    expect(found).toHaveLength(1)
    expect(found[0]).toMatchObject({ table, kind })
    if (column !== undefined) expect(found[0]?.columns).toEqual([column])
    if (damage.name !== "run-row-deleted" && damage.name !== "clock-recorded-twice") {
      const parts: Record<string, unknown> = {
        run_id: address.runId, seq: address.seq, flow_name: address.flowName, execution_id: address.executionId,
        clock_name: address.clockName, deferred_name: address.deferredName
      }
      expect(found[0]?.key).toEqual(tableKeys[table].map((name) => parts[name]))
    }

    const report = plainVerify(copy)
    expect(report.findings.map((finding) => finding.id)).toEqual(damage.expects)
    for (const finding of report.findings) expect(address).toMatchObject(finding.address)
    expect(report.unexplained).toBe(damage.class === "counted" ? 1 : 0)
  })

  it("strikes the same place each time", () => {
    for (const damage of damages) expect(damage.apply(copyOf(sound)), damage.name).toEqual(damage.apply(copyOf(sound)))
  })
})

describe("emptyAndAlter", () => {
  const copy = copyOf(sound)
  const done = emptyAndAlter(copy)
  const { findings, unexplained } = plainVerify(copy)
  const numberOf = (id: string, column?: string) =>
    findings.filter((finding) => finding.id === id && (column === undefined || finding.address.column === column)).length

  it("leaves the journal, the runs and the values as they were", () => {
    const found = differencesOf(copy)
    const columns = new Set(found.filter(({ kind }) => kind === "changed").flatMap((difference) => difference.columns))
    expect([...columns].sort()).toEqual(["completed_at_ms", "consumed_at_ms", "deferred_name", "due_at_ms"])
    expect([...new Set(found.map(({ table }) => table))]).toEqual(["flows_clock_deadlines", "flows_deferred_completions"])
  })

  it("makes drift of every kind it counts, and nothing that would refuse a rebuild or need leave", () => {
    expect(Object.values(done).every((rows) => rows > 0)).toBe(true)
    expect(numberOf("clock_missing")).toBe(done.clocksDeleted)
    expect(numberOf("clock_differs", "due_at_ms")).toBe(done.clocksAltered)
    expect(numberOf("stamp_differs", "completed_at_ms")).toBe(done.completionTimesAltered)
    expect(numberOf("stamp_differs", "consumed_at_ms")).toBe(done.consumptionsAltered + done.consumptionsLost)
    expect(new Set(findings.map((finding) => finding.id))).toEqual(new Set(["clock_missing", "clock_differs", "stamp_differs"]))
    expect(unexplained).toBe(0)
  })
})
