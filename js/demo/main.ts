/**
 * The demo: a store is written as an engine writes it, damaged in every way there is a finding for, verified, and rebuilt.
 *
 * Everything it prints it found out by calling journal-fold; nothing is known beforehand but what each damage must be called. It ends
 * with status 1 if anything is otherwise.
 */
import { createHash } from "node:crypto"
import { copyFileSync, mkdirSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { isFoldIncomplete, version } from "journal-fold"
import type { Finding } from "journal-fold/deferred-clock"
import { apply, checkpointStateText, plan, rebuild, verify } from "journal-fold/sqlite"
import { damages, emptyAndAlter, type Address } from "./damages.js"
import { writeStore } from "./engine.js"
import { tableKeys } from "./tables.js"

const folder = fileURLToPath(new URL("../demo-store/", import.meta.url))
const colour = process.stdout.isTTY === true && process.env["NO_COLOR"] === undefined
const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
const good = (text: string): string => paint(32, text)
const bad = (text: string): string => paint(31, text)
const dim = (text: string): string => paint(2, text)
const heading = (text: string): void => console.log(`\n${paint(1, text)}`)

let failed = 0
function expect(holds: boolean, what: string): string {
  if (holds) return good("✓")
  failed += 1
  return bad(`✗ ${what}`)
}

/** A digest of every row of both derived tables, in order of their keys: equal means equal to the last byte. */
function tablesDigest(db: Database.Database): string {
  const hash = createHash("sha256")
  for (const table of ["flows_clock_deadlines", "flows_deferred_completions"] as const) {
    const rows = db.prepare(`SELECT * FROM ${table} ORDER BY ${tableKeys[table].join(", ")}`).raw().all()
    hash.update(JSON.stringify(rows))
  }
  return hash.digest("hex")
}

/** Whether a finding names the place where a damage struck. */
function names(finding: Finding, address: Address): boolean {
  const expected: [unknown, unknown][] = [
    [finding.runId, address.runId],
    [finding.seq, finding.id === "checkpoint_missing" ? undefined : address.seq?.toString()],
    [finding.flowName, address.flowName],
    [finding.executionId, address.executionId],
    [finding.name, address.clockName ?? address.deferredName]
  ]
  return expected.every(([found, wanted]) => wanted === undefined || found === wanted)
}

function where({ runId, flowName, executionId, name, seq, field }: Finding): string {
  const place = name === undefined ? `run ${runId}${seq === undefined ? "" : `, seq ${seq}`}` : `${flowName} / ${executionId} / ${name}`
  return JSON.stringify(field === undefined ? place : `${place}: ${field}`).slice(1, -1).replaceAll('\\"', '"')
}

function copyTo(name: string): string {
  const path = join(folder, name)
  copyFileSync(original, path)
  return path
}

function open<Result>(path: string, work: (db: Database.Database) => Result): Result {
  const db = new Database(path)
  try {
    return work(db)
  } finally {
    db.close()
  }
}

const started = performance.now()
console.log(`journal-fold ${version}: rebuild what a journal says, and prove that the tables agree.`)

rmSync(folder, { recursive: true, force: true })
mkdirSync(join(folder, "damaged"), { recursive: true })
const original = join(folder, "original.db")

heading("1. An engine writes a store")
const store = open(original, (db) => {
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = NORMAL")
  const summary = writeStore(db, { runs: 300, checkpointStateText })
  db.pragma("journal_mode = DELETE")
  return summary
})
console.log(
  `   ${store.runs} runs, ${store.entries} entries; ${store.compactedRuns} runs compacted (${store.entriesCompacted} entries gone, kept in checkpoints)`
)
console.log(`   ${store.clocks} clocks, ${store.clocksPending} of them pending; ${store.completions} completions`)

heading("2. Verified: do the tables say what the journal says?")
const verified = open(original, (db) => verify(db))
const { coverage } = verified
console.log(
  `   ${expect(verified.verdict === "match", verified.verdict)} ${verified.verdict}: ${coverage.runs} runs, ${coverage.entries} entries, ${coverage.floors} floors folded and compared`
)
console.log(dim(`   state digest ${verified.stateDigest.algorithm}:${verified.stateDigest.value}`))

heading(`3. Damaged in ${damages.length} ways, each on a copy of its own`)
const width = Math.max(...damages.map(({ name }) => name.length))
for (const damage of damages) {
  const path = copyTo(join("damaged", `${damage.name}.db`))
  const { address } = open(path, (db) => damage.apply(db))
  const found = open(path, (db) => verify(db))
  const ids = found.findings.map(({ id }) => id).sort()
  const sound = JSON.stringify(ids) === JSON.stringify([...damage.expects].sort())
  const placed = found.findings.every((finding) => names(finding, address))
  const counted = damage.class !== "counted" || found.rebuilt.unexplained === 1
  const mark = expect(sound && placed && counted, `expected ${damage.expects.join(", ")}`)
  const [first] = found.findings
  const says =
    first === undefined
      ? `${found.rebuilt.unexplained} completion that no entry explains: counted, no finding`
      : `${first.id} ${dim(where(first))}`
  console.log(`   ${mark} ${damage.name.padEnd(width)}  ${found.verdict.padEnd(7)}  ${says}`)
}

heading("4. Rebuilt: the clock table emptied and altered, recorded stamps altered")
const lost = copyTo("lost.db")
open(lost, (db) => {
  const before = tablesDigest(db)
  const altered = emptyAndAlter(db)
  console.log(
    `   damage: ${altered.clocksDeleted} clocks deleted, ${altered.clocksAltered} altered; ${altered.completionTimesAltered} completion times and ${altered.consumptionsAltered + altered.consumptionsLost} consumptions changed`
  )
  const drifted = verify(db)
  const kinds = Object.entries(drifted.counts).map(([id, count]) => `${count} ${id}`)
  console.log(`   verify: ${drifted.verdict}: ${kinds.join(", ")}`)
  const made = plan(db, { asOfMs: store.nowMs })
  const { effects } = made
  console.log(
    `   plan:   ${made.rows} rows to write; ${effects.clocksArmed} clocks will be armed, ${effects.clocksOverdue} of them overdue; ${effects.pendingDeleted} pending clocks deleted, ${effects.consumptionsCleared} consumptions cleared`
  )
  const applied = apply(db, made)
  console.log(`   apply:  ${applied.rows} rows written in one transaction`)
  console.log(`   ${expect(tablesDigest(db) === before, "the tables differ")} both tables equal the original, byte for byte`)
  console.log(`   ${expect(verify(db).verdict === "match", "no match")} verify: match`)
  let twice = "applied twice"
  try {
    apply(db, made)
  } catch (error) {
    twice = (error as { code?: string }).code ?? String(error)
  }
  console.log(`   ${expect(twice === "stale_plan", twice)} applying the same plan again is refused: ${twice}`)
})

heading("5. Refused: a completion's value cannot come back from a journal, which holds only its digest")
const refused = join(folder, "damaged", "completion-deleted.db")
open(refused, (db) => {
  const before = tablesDigest(db)
  try {
    rebuild(db)
    console.log(`   ${expect(false, "the rebuild was not refused")}`)
  } catch (error) {
    if (!isFoldIncomplete(error)) throw error
    console.log(`   ${expect(error.unjoined.length === 1, error.message)} rebuild: ${error.code}`)
    for (const { reason, flowName, executionId, name } of error.unjoined) {
      console.log(`     ${reason} ${dim(`${flowName} / ${executionId} / ${name}`)}`)
    }
  }
  console.log(`   ${expect(tablesDigest(db) === before, "something was written")} nothing was written`)
})

const seconds = ((performance.now() - started) / 1000).toFixed(1)
console.log(`\n${failed === 0 ? good("All as it should be") : bad(`${failed} things are not as they should be`)}, in ${seconds} s.`)
const here = relative(process.cwd(), folder)
console.log("The stores are still there. Look at one yourself:")
for (const command of [
  `verify ${here}/damaged/due-time-altered.db`,
  `apply ${here}/damaged/due-time-altered.db`,
  `verify ${here}/damaged/exit-altered.db`
]) {
  console.log(`   node pkg/cli/main.js ${command}`)
}
process.exitCode = failed === 0 ? 0 : 1
