/**
 * A small workflow engine that writes the example store. The rule it keeps: one step is one transaction, and that transaction
 * appends to the journal *and* changes the tables that follow from it, so that at every commit the tables say what the journal
 * says. What a verification then finds in a copy is the copy's damage, never the engine's.
 *
 * It has no clock and no chance of its own: time is counted from a fixed start and every choice is drawn from a seed, so the
 * same options write the same rows.
 */

import { createHash } from "node:crypto"
import type Database from "better-sqlite3"
import { Random } from "./random.js"
import { prepareStatements } from "./statements.js"
import { createTables } from "./tables.js"
import {
  activityNameOf, activityResultOf, clockExitText, clockNameOf, exitTextOf, flowNameOf, metadataTextOf, runIdOf, signalNameOf,
  variablesOf
} from "./texts.js"

/**
 * Makes the text of a checkpoint's state: `baseText` (the engine's own state) with the fold of the run up to `upTo` beside it,
 * under the key `flows.engine.deferred-clock`. It is called inside the compacting transaction, while the entries still stand.
 */
export type CheckpointStateText = (db: Database.Database, runId: string, upTo: number, baseText: string) => string

/** How an {@link Engine} works. */
export interface EngineOptions {
  /** What the engine draws its choices from. Default 1. */
  seed?: number
  /** How many runs to start in all. Default: no limit. The last live run never ends, so that there is always a next step. */
  runs?: number
  /** How many entries a run writes on average; the longest write nearly three times as many. Default 60. */
  entriesPerRun?: number
  /** A run starts whenever this many more entries have been written. Default `entriesPerRun`. */
  entriesPerStart?: number
  /** How many runs in a hundred compact their journals. Default 35. */
  compactingPercent?: number
  /**
   * Called for every compaction. Without it nothing is compacted and everything else stays the same: the store written then is
   * the uncompacted twin of the one written with it.
   */
  checkpointStateText?: CheckpointStateText
  /** The time of the first step, in milliseconds since 1970. Default 2025-01-01T00:00:00Z. */
  startAtMs?: number
}

interface PendingClock { clockName: string; deferredName: string; dueAtMs: number }

/** What the engine holds in memory of a run that it is working on. */
interface Run {
  readonly runId: string
  readonly flowName: string
  readonly compacts: boolean
  /** The run winds up once it has written this many entries. */
  readonly entryBudget: number
  readonly pending: PendingClock[]
  readonly unconsumed: string[]
  nextSeq: number
  lastSeq: number
  entries: number
  entriesSinceCheckpoint: number
  clocks: number
  signals: number
  activities: number
  lastFired: string | undefined
  checkpointSeq: number
  floorSeq: number
}

const noSeq = -1
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

// The engine digests for itself rather than with the library under demonstration: what it records is then an independent witness.
const contentDigest = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/**
 * The engine. Every call of {@link Engine.step} is one whole transaction. Given a store that has runs already it leaves them alone
 * and numbers its own on from there.
 */
export class Engine {
  readonly #db: Database.Database
  readonly #random: Random
  readonly #sql: ReturnType<typeof prepareStatements>
  readonly #transaction: Database.Transaction<(steps: number) => void>
  readonly #checkpointStateText: CheckpointStateText | undefined
  readonly #maxRuns: number
  readonly #entriesPerRun: number
  readonly #entriesPerStart: number
  readonly #compactingPercent: number
  readonly #firstNumber: number
  readonly #live: Run[] = []
  /** Runs that wait for a clock and nothing else, by wake-up time, the next one last. */
  readonly #suspended: Run[] = []
  #started = 0
  #entriesWritten = 0
  #entriesCompacted = 0
  #nowMs: number
  #failed = false

  constructor(db: Database.Database, options: EngineOptions = {}) {
    createTables(db)
    this.#db = db
    this.#sql = prepareStatements(db)
    this.#random = new Random(options.seed ?? 1)
    this.#maxRuns = options.runs ?? Number.POSITIVE_INFINITY
    this.#entriesPerRun = options.entriesPerRun ?? 60
    this.#entriesPerStart = options.entriesPerStart ?? this.#entriesPerRun
    this.#compactingPercent = options.compactingPercent ?? 35
    this.#checkpointStateText = options.checkpointStateText
    this.#nowMs = options.startAtMs ?? Date.UTC(2025, 0, 1)
    this.#firstNumber = db.prepare<[], number>("SELECT count(*) FROM flows_runs").pluck().get() ?? 0
    this.#transaction = db.transaction((steps: number) => {
      // From here on memory runs ahead of the store, so a failure has to stop the engine (see `steps`).
      this.#failed = true
      for (let step = 0; step < steps; step++) this.#step()
    })
  }

  /** Runs started so far by this engine. */
  get runsStarted(): number { return this.#started }

  /** Entries this engine has appended, those that were compacted away since included. */
  get entriesWritten(): number { return this.#entriesWritten }

  /** Entries this engine has deleted by compaction. */
  get entriesCompacted(): number { return this.#entriesCompacted }

  /** The engine's time: that of the latest step. */
  get nowMs(): number { return this.#nowMs }

  /** Does one step at a random live run, or starts a run, as one transaction. */
  step(): void {
    this.steps(1)
  }

  /**
   * Does `count` steps in one transaction: quicker, and still the whole of every step or nothing.
   *
   * @throws what the store throws. A store that was busy when the transaction began has changed nothing, and the call can be
   * repeated; after any other failure the engine refuses to go on, because its memory would no longer be what the store holds.
   */
  steps(count: number): void {
    if (this.#failed) throw new Error("this engine stopped at a failed transaction: open another on the store")
    this.#transaction.immediate(count)
    this.#failed = false
  }

  #step(): void {
    this.#nowMs += this.#random.between(1, 2_000)
    this.#wake()
    const startIsDue = this.#live.length === 0 || this.#entriesWritten >= this.#started * this.#entriesPerStart
    if (startIsDue && this.#started < this.#maxRuns) this.#startRun()
    else this.#act(this.#random.pick(this.#live))
  }

  #startRun(): void {
    const random = this.#random
    const runId = runIdOf(this.#firstNumber + this.#started, random)
    // Most runs are short and a few are long, as in the field: the square of a draw, with mean 1 over all.
    const draw = random.below(1_000) / 1_000
    const run: Run = {
      runId, flowName: flowNameOf(random), compacts: random.chance(this.#compactingPercent),
      entryBudget: Math.max(4, Math.round(this.#entriesPerRun * (0.1 + 2.7 * draw * draw))),
      pending: [], unconsumed: [], nextSeq: 0, lastSeq: noSeq, entries: 0, entriesSinceCheckpoint: 0,
      clocks: 0, signals: 0, activities: 0, lastFired: undefined, checkpointSeq: noSeq, floorSeq: noSeq
    }
    this.#sql.startRun.run(runId, run.flowName, this.#nowMs, this.#nowMs)
    this.#append(run, "flows.engine.run-started", { ...addressOf(run), startedAtMs: this.#nowMs, input: activityResultOf(random) })
    this.#live.push(run)
    this.#started += 1
  }

  /** One step of one run. A due clock comes first, then what keeps the journal short, then the flow's own business. */
  #act(run: Run): void {
    const random = this.#random
    const due = run.pending.find((clock) => clock.dueAtMs <= this.#nowMs)
    if (due !== undefined && random.chance(70)) return this.#fireClock(run, due)
    if (run.entriesSinceCheckpoint >= Math.max(8, this.#entriesPerRun / 3)) return this.#checkpoint(run)
    if (run.compacts && run.checkpointSeq > run.floorSeq && random.chance(25)) return this.#compact(run)
    if (run.unconsumed.length > 0 && random.chance(40)) return this.#consume(run)
    // The last live run stays when no other can follow it: an engine always has a next step.
    const mayLeave = due === undefined && (this.#live.length > 1 || this.#started < this.#maxRuns)
    if (mayLeave && run.entries >= run.entryBudget) return run.pending.length > 0 ? this.#suspend(run) : this.#end(run)
    if (run.lastFired !== undefined && random.chance(3)) return this.#fireAgain(run, run.lastFired)
    if (run.pending.length < 3 && random.chance(30)) return this.#scheduleClock(run)
    if (random.chance(25)) return this.#completeSignal(run)
    this.#doActivity(run)
  }

  #scheduleClock(run: Run): void {
    const random = this.#random
    const clockName = clockNameOf(run.clocks++, random)
    const deferredName = `clock/${clockName}`
    const dueAtMs = this.#nowMs + (random.chance(5) ? random.between(1, 7) * dayMs : random.between(5_000, 10 * minuteMs))
    this.#append(run, "flows.engine.clock-scheduled", { ...addressOf(run), clockName, deferredName, dueAtMs })
    this.#sql.scheduleClock.run(run.flowName, run.runId, clockName, deferredName, dueAtMs)
    run.pending.push({ clockName, deferredName, dueAtMs })
  }

  #fireClock(run: Run, clock: PendingClock): void {
    const { clockName, deferredName } = clock
    run.pending.splice(run.pending.indexOf(clock), 1)
    this.#append(run, "flows.engine.clock-completed", { ...addressOf(run), clockName, completedAtMs: this.#nowMs })
    mustChangeOne(this.#sql.completeClock.run(this.#nowMs, run.flowName, run.runId, clockName), "flows_clock_deadlines", run)
    this.#completeDeferred(run, deferredName, clockExitText, null)
    run.lastFired = clockName
  }

  /** Timers are delivered at least once. The journal keeps the second delivery, the table the first time. */
  #fireAgain(run: Run, clockName: string): void {
    this.#append(run, "flows.engine.clock-completed", { ...addressOf(run), clockName, completedAtMs: this.#nowMs })
    this.#sql.completeClock.run(this.#nowMs, run.flowName, run.runId, clockName)
    run.lastFired = undefined
  }

  #completeSignal(run: Run): void {
    this.#completeDeferred(run, signalNameOf(run.signals++, this.#random), exitTextOf(this.#random), metadataTextOf(this.#random))
  }

  /** The values go to the table; the journal keeps their digests. */
  #completeDeferred(run: Run, deferredName: string, exitText: string, metadataText: string | null): void {
    this.#append(run, "flows.engine.deferred-completed", {
      ...addressOf(run), deferredName, completedAtMs: this.#nowMs,
      exitDigest: contentDigest(exitText), metadataDigest: metadataText === null ? null : contentDigest(metadataText)
    })
    this.#sql.completeDeferred.run(run.flowName, run.runId, deferredName, exitText, metadataText, this.#nowMs)
    run.unconsumed.push(deferredName)
  }

  #consume(run: Run): void {
    const deferredName = this.#random.pick(run.unconsumed)
    run.unconsumed.splice(run.unconsumed.indexOf(deferredName), 1)
    this.#append(run, "flows.engine.deferred-consumed", { ...addressOf(run), deferredName, consumedAtMs: this.#nowMs })
    const change = this.#sql.consumeDeferred.run(this.#nowMs, run.flowName, run.runId, deferredName)
    mustChangeOne(change, "flows_deferred_completions", run)
    if (this.#random.chance(50)) this.#append(run, "flows.engine.run-resumed", { executionId: run.runId, awaited: deferredName })
  }

  #doActivity(run: Run): void {
    const activity = activityNameOf(this.#random)
    const attempt = this.#random.chance(85) ? 1 : this.#random.between(2, 5)
    this.#append(run, "flows.engine.activity-scheduled", { activity, attempt, activityId: run.activities })
    const result = activityResultOf(this.#random)
    this.#append(run, "flows.engine.activity-completed", { activity, activityId: run.activities, atMs: this.#nowMs, result })
    run.activities += 1
  }

  /** A checkpoint only makes a resume quick: it holds the engine's own state and is no floor until a compaction makes it one. */
  #checkpoint(run: Run): void {
    const state = {
      "flows.engine.cursor": { seq: run.lastSeq, activities: run.activities, clocks: run.clocks },
      "flows.engine.variables": variablesOf(this.#random)
    }
    this.#sql.checkpoint.run(run.runId, run.lastSeq, JSON.stringify(state))
    run.checkpointSeq = run.lastSeq
    run.entriesSinceCheckpoint = 0
  }

  /** Deletes the entries that the latest checkpoint covers, after the fold over them has been put into it. */
  #compact(run: Run): void {
    const { runId, checkpointSeq: upTo, floorSeq: olderFloorSeq } = run
    run.floorSeq = upTo
    if (this.#checkpointStateText === undefined) return
    const baseText = this.#sql.stateOf.get(runId, upTo)
    if (baseText === undefined) throw new Error(`run ${runId} has no checkpoint at seq ${upTo}`)
    // First the text, then the mark: a checkpoint marked compacted is a floor, and a fold taken from a floor without one is lost.
    const stateText = this.#checkpointStateText(this.#db, runId, upTo, baseText)
    mustChangeOne(this.#sql.markCompacted.run(stateText, this.#nowMs, runId, upTo), "flows_journal_checkpoints", run)
    this.#entriesCompacted += this.#sql.deleteEntries.run(runId, upTo).changes
    // One older floor is kept, as a store does that can be rolled back by one compaction.
    if (olderFloorSeq !== noSeq) this.#sql.deleteCheckpoints.run(runId, olderFloorSeq)
  }

  #suspend(run: Run): void {
    const wakeAtMs = wakeTimeOf(run)
    this.#append(run, "flows.engine.run-suspended", { executionId: run.runId, wakeAtMs })
    this.#sql.setStatus.run("suspended", this.#nowMs, run.runId)
    this.#leave(run)
    const index = this.#suspended.findIndex((other) => wakeTimeOf(other) <= wakeAtMs)
    this.#suspended.splice(index < 0 ? this.#suspended.length : index, 0, run)
  }

  /** Runs whose clock is due are live again; their clock fires in a step of theirs, which may come late, as in the field. */
  #wake(): void {
    for (let run = this.#suspended.at(-1); run !== undefined && wakeTimeOf(run) <= this.#nowMs; run = this.#suspended.at(-1)) {
      this.#suspended.pop()
      this.#sql.setStatus.run("running", this.#nowMs, run.runId)
      this.#live.push(run)
    }
  }

  #end(run: Run): void {
    const status = this.#random.chance(8) ? "failed" : "completed"
    const unconsumed = run.unconsumed.length
    this.#append(run, `flows.engine.run-${status}`, { executionId: run.runId, endedAtMs: this.#nowMs, unconsumed })
    this.#sql.setStatus.run(status, this.#nowMs, run.runId)
    this.#leave(run)
    // Some ended runs are compacted whole: nothing but a floor is left of their journal.
    if (run.compacts && this.#random.chance(40)) {
      this.#checkpoint(run)
      this.#compact(run)
    }
  }

  #leave(run: Run): void {
    const last = this.#live.pop()
    if (last !== undefined && last !== run) this.#live[this.#live.indexOf(run)] = last
  }

  #append(run: Run, eventType: string, payload: Record<string, unknown>): void {
    this.#sql.append.run(run.runId, run.nextSeq, eventType, JSON.stringify(payload))
    run.lastSeq = run.nextSeq
    // Seqs come from a sequence that a rolled back transaction does not give back, so journals have gaps.
    run.nextSeq += this.#random.chance(6) ? this.#random.between(2, 4) : 1
    run.entries += 1
    run.entriesSinceCheckpoint += 1
    this.#entriesWritten += 1
  }
}

/** The first two parts of every address in a run: here a run has one execution, and its id is the run's. */
function addressOf(run: Run): { flowName: string; executionId: string } {
  return { flowName: run.flowName, executionId: run.runId }
}

/** When a suspended run wakes: at its earliest clock. */
function wakeTimeOf(run: Run): number {
  return run.pending.reduce((earliest, clock) => Math.min(earliest, clock.dueAtMs), Number.POSITIVE_INFINITY)
}

/** The engine's own guard: a table that did not follow the journal must not be committed. */
function mustChangeOne(result: Database.RunResult, table: string, run: Run): void {
  if (result.changes !== 1) throw new Error(`${table}: one row of run ${run.runId} should have changed, ${result.changes} did`)
}

/** How {@link writeStore} writes. */
export interface StoreOptions extends Omit<EngineOptions, "entriesPerRun" | "entriesPerStart"> {
  /** How many runs the store has. Default 300. */
  runs?: number
  /** How many entries the runs append in all (a few more may come); compaction takes some of them away again. Default 60 a run. */
  entries?: number
  /** How many steps share a transaction. Default 1: every step is a commit of its own. */
  stepsPerTransaction?: number
}

/** What {@link writeStore} wrote. */
export interface StoreSummary {
  runs: number
  /** Entries that stand in the journal. */
  entries: number
  /** Entries that compaction deleted. */
  entriesCompacted: number
  /** Runs that have a floor. */
  compactedRuns: number
  clocks: number
  clocksPending: number
  completions: number
  completionsUnconsumed: number
  /** The engine's time at the end: the "now" by which a pending clock is overdue. */
  nowMs: number
}

/**
 * Writes a store with an {@link Engine}: runs start over the first four fifths of the entries, so that at the end some have ended,
 * some wait and some have only begun. Creates the tables when they are missing.
 */
export function writeStore(db: Database.Database, options: StoreOptions = {}): StoreSummary {
  const { runs = 300, entries = runs * 60, stepsPerTransaction = 1, ...rest } = options
  const entriesPerRun = entries / runs
  const engine = new Engine(db, { ...rest, runs, entriesPerRun, entriesPerStart: entriesPerRun * 0.8 })
  while (engine.entriesWritten < entries || engine.runsStarted < runs) engine.steps(stepsPerTransaction)
  const count = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0
  return {
    runs: engine.runsStarted,
    entries: engine.entriesWritten - engine.entriesCompacted,
    entriesCompacted: engine.entriesCompacted,
    compactedRuns: count("SELECT count(DISTINCT run_id) FROM flows_journal_checkpoints WHERE compacted_at_ms IS NOT NULL"),
    clocks: count("SELECT count(*) FROM flows_clock_deadlines"),
    clocksPending: count("SELECT count(*) FROM flows_clock_deadlines WHERE completed_at_ms IS NULL"),
    completions: count("SELECT count(*) FROM flows_deferred_completions"),
    completionsUnconsumed: count("SELECT count(*) FROM flows_deferred_completions WHERE consumed_at_ms IS NULL"),
    nowMs: engine.nowMs
  }
}
