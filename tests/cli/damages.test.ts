/** Each of the damages that the example knows, in the exact words of a report: which finding, of which class, where, and both values. */
import { createHash } from "node:crypto"
import type Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { damaged, damages, linesOf, row, run, soundStore } from "./harness.js"

type Address = ReturnType<typeof damaged>["address"]
type Row = Record<string, string | number | null>

/** A value as a report shows it. None of the example's names has anything unprintable in it but line feeds. */
const shown = (text: unknown): string => (/^[A-Za-z0-9._:/@-]+$/.test(String(text)) ? String(text) : JSON.stringify(text))
const digestOf = (text: unknown): string => (text === null ? "null" : createHash("sha256").update(String(text)).digest("hex"))

function clock(db: Database.Database, { flowName, executionId, clockName }: Address): Row {
  const found = db.prepare("SELECT * FROM flows_clock_deadlines WHERE flow_name = ? AND execution_id = ? AND clock_name = ?")
  return found.get(flowName, executionId, clockName) as Row
}

function completion(db: Database.Database, { flowName, executionId, deferredName }: Address): Row {
  const found = db.prepare("SELECT * FROM flows_deferred_completions WHERE flow_name = ? AND execution_id = ? AND deferred_name = ?")
  return found.get(flowName, executionId, deferredName) as Row
}

const at = ({ executionId, flowName, clockName, deferredName }: Address, run = true): string =>
  `${run ? `run=${shown(executionId)} ` : ""}flow=${shown(flowName)} execution=${shown(executionId)} name=${shown(clockName ?? deferredName)}`
const values = (row: Row): string => {
  const inner = (text: unknown): string => (/[\s"\\=,[\]{}]/.test(String(text)) ? JSON.stringify(text) : String(text))
  return JSON.stringify(`deferredName=${inner(row["deferred_name"])} dueAtMs=${row["due_at_ms"]} completedAtMs=${row["completed_at_ms"]}`)
}
const column = (id: string, field: string, name: string, table: typeof clock) => (address: Address, before: Database.Database, after: Database.Database) =>
  `${id} class=drift ${at(address)} field=${field} expected=${shown(table(before, address)[name])} found=${shown(table(after, address)[name])}`
const digest = (field: string, name: string) => (address: Address, before: Database.Database, after: Database.Database) =>
  `digest_mismatch class=unjoined ${at(address)} field=${field} expected=${digestOf(completion(before, address)[name])} found=${digestOf(completion(after, address)[name])}`
const checkpoint =
  (found: (state: string) => string) =>
  ({ runId, seq }: Address, _: Database.Database, after: Database.Database) => {
    const state = after.prepare("SELECT state_json FROM flows_journal_checkpoints WHERE run_id = ? AND seq = ?").pluck().get(runId, seq)
    return `checkpoint_missing class=unjoined run=${shown(runId)} expected="a checkpoint that keeps a deferred/clock fold" found=${JSON.stringify(found(String(state)))}`
  }

/** The one line of each damage, made from the store before and after it. */
const expected: Record<string, (address: Address, before: Database.Database, after: Database.Database) => string | undefined> = {
  "checkpoint-without-fold": checkpoint(() => "a state without flows.engine.deferred-clock"),
  "checkpoint-malformed": checkpoint(() => "a malformed fold under flows.engine.deferred-clock"),
  "checkpoint-cut-short": checkpoint(
    (state) =>
      `a text that is no JSON: expected a character of a text, or its closing quote at byte ${Buffer.byteLength(state)}, found the end of the text`
  ),
  "run-row-deleted": (address) => `run_missing class=unjoined ${at(address)}`,
  "clock-recorded-twice": (address) => `clock_conflict class=unjoined ${at(address, false)} runs=${shown(address.runIds?.join(" "))}`,
  "completion-deleted": (address) => `row_missing class=unjoined ${at(address)}`,
  "exit-altered": digest("exitDigest", "exit_json"),
  "metadata-altered": digest("metadataDigest", "metadata_json"),
  "metadata-lost": digest("metadataDigest", "metadata_json"),
  "payload-cut-short": ({ runId, seq }) => `payload_not_json class=refused run=${shown(runId)} seq=${seq} offset=129 expected="',' or '}'" found="the end of the text"`,
  "payload-not-utf8": ({ runId, seq }) => `text_not_utf8 class=refused run=${shown(runId)} seq=${seq} offset=13 expected=UTF-8 found="byte 0xe9"`,
  "clock-row-deleted": (address, before) => `clock_missing class=drift ${at(address)} expected=${values(clock(before, address))}`,
  "clock-row-invented": (address, _, after) => `clock_unexpected class=drift ${at(address, false)} found=${values(clock(after, address))}`,
  "due-time-altered": column("clock_differs", "dueAtMs", "due_at_ms", clock),
  "fired-clock-pending-again": column("clock_differs", "completedAtMs", "completed_at_ms", clock),
  "pending-clock-marked-fired": column("clock_differs", "completedAtMs", "completed_at_ms", clock),
  "clock-aims-elsewhere": column("clock_differs", "deferredName", "deferred_name", clock),
  "completion-time-altered": column("stamp_differs", "completedAtMs", "completed_at_ms", completion),
  "consumption-lost": column("stamp_differs", "consumedAtMs", "consumed_at_ms", completion),
  "consumption-invented": column("stamp_differs", "consumedAtMs", "consumed_at_ms", completion),
  "completion-nobody-recorded": () => undefined
}

const codes = { drift: 1, unjoined: 3, refused: 3, counted: 0 }

describe("a damage", () => {
  const before = soundStore()

  it("is known here, every one of them", () => {
    expect(Object.keys(expected).sort()).toEqual(damages.map(({ name }) => name).sort())
  })

  it.each(damages)("$name is reported in one line, in these words", { timeout: 60_000 }, async ({ name, class: damageClass, expects }) => {
    const { path, address } = damaged(name)
    const ran = run(["verify", path])
    const { findings } = linesOf(ran)

    const { default: Driver } = await import("better-sqlite3")
    const after = new Driver(path)
    const line = expected[name]?.(address, before, after)
    after.close()
    expect(findings).toEqual(line === undefined ? [] : [line])
    expect(findings.map((finding) => finding.split(" ")[0])).toEqual(expects)
    expect(ran.status).toBe(codes[damageClass])
    expect(ran.stderr).toBe("")
    // A run that cannot be folded may explain any row.
    const unfolded = damageClass === "refused" || expects.includes("checkpoint_missing")
    expect(row(ran, "unexplained")).toMatch(unfolded ? /^not judged/ : damageClass === "counted" ? /^1 / : /^0 /)
  })
})
