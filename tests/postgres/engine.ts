/**
 * A workflow engine's writer, as small as it can be: each step is one transaction that appends to the journal and changes the tables
 * that follow from it, and now and then compacts. So at every commit the tables say what the journal says.
 */
import type pg from "pg"
import { contentDigest } from "journal-fold/digest"
import { checkCheckpoint, checkpointStateText, rebuildLockKey } from "journal-fold/postgres"

interface Run {
  readonly runId: string
  nextSeq: number
  floor: number
  readonly pending: string[]
  readonly unconsumed: string[]
}

/** How an engine works. */
export interface EngineOptions {
  readonly runs: number
  /** Whether its transactions share the lock that a rebuild takes. */
  readonly sharesLock?: boolean
}

/** An engine on a client of its own. */
export class Engine {
  readonly #client: pg.Client
  readonly #runs: Run[]
  readonly #sharesLock: boolean
  #number = 0
  /** Steps that were committed. */
  steps = 0
  compactions = 0

  constructor(client: pg.Client, prefix: string, { runs, sharesLock = false }: EngineOptions) {
    this.#client = client
    this.#sharesLock = sharesLock
    this.#runs = Array.from({ length: runs }, (_, place) => ({ runId: `${prefix}-${place}`, nextSeq: 0, floor: -1, pending: [], unconsumed: [] }))
  }

  /** Works until it is told to stop. */
  async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.step()
  }

  /** One step, as one transaction. One that a rebuild was in the way of is done again. */
  async step(): Promise<void> {
    this.#number += 1
    const run = this.#runs[(this.#number * 7919) % this.#runs.length] as Run
    const saved = structuredClone(run)
    try {
      await this.#client.query("BEGIN")
      if (this.#sharesLock) await this.#client.query(`SELECT pg_advisory_xact_lock_shared(${rebuildLockKey})`)
      await this.#advance(run)
      await this.#client.query("COMMIT")
      this.steps += 1
    } catch (error) {
      await this.#client.query("ROLLBACK")
      Object.assign(run, saved)
      const { code } = error as { code?: string }
      if (code !== "40001" && code !== "40P01") throw error
    }
  }

  async #advance(run: Run): Promise<void> {
    const { runId, pending, unconsumed } = run
    const address = { flowName: "flow/été", executionId: runId }
    const now = 1_700_000_000_000 + this.#number
    const key = [address.flowName, runId]
    if (run.nextSeq === 0) await this.#client.query("INSERT INTO flows_runs (run_id) VALUES ($1)", [runId])
    const kind = this.#number % 9
    if (kind < 4 || pending.length === 0) {
      const clockName = `clock-${this.#number}`
      await this.#append(run, "clock-scheduled", { ...address, clockName, deferredName: `clock/${clockName}`, dueAtMs: now })
      await this.#client.query("INSERT INTO flows_clock_deadlines VALUES ($1, $2, $3, $4, $5, NULL)", [...key, clockName, `clock/${clockName}`, now])
      pending.push(clockName)
    } else if (kind < 7) {
      const clockName = pending.shift() as string
      const deferredName = `clock/${clockName}`
      const exit = JSON.stringify({ _tag: "Success", value: clockName })
      await this.#append(run, "clock-completed", { ...address, clockName, completedAtMs: now })
      await this.#append(run, "deferred-completed", { ...address, deferredName, completedAtMs: now, exitDigest: contentDigest(exit), metadataDigest: null })
      await this.#client.query(
        "UPDATE flows_clock_deadlines SET completed_at_ms = $4 WHERE flow_name = $1 AND execution_id = $2 AND clock_name = $3", [...key, clockName, now])
      await this.#client.query("INSERT INTO flows_deferred_completions VALUES ($1, $2, $3, $4, NULL, $5, NULL)", [...key, deferredName, exit, now])
      unconsumed.push(deferredName)
    } else if (unconsumed.length > 0) {
      const deferredName = unconsumed.shift() as string
      await this.#append(run, "deferred-consumed", { ...address, deferredName, consumedAtMs: now })
      await this.#client.query(
        "UPDATE flows_deferred_completions SET consumed_at_ms = $4 WHERE flow_name = $1 AND execution_id = $2 AND deferred_name = $3", [...key, deferredName, now])
    } else {
      await this.#append(run, "noted", { ...address, note: "nothing to do" })
    }
    if (run.nextSeq - run.floor > 40) await this.#compact(run)
  }

  async #append(run: Run, type: string, payload: object): Promise<void> {
    await this.#client.query("INSERT INTO flows_journal_events VALUES ($1, $2, $3, $4)",
      [run.runId, run.nextSeq, `flows.engine.${type}`, JSON.stringify(payload)])
    run.nextSeq += 1
  }

  /** Keeps the fold in a checkpoint, proves it, and deletes the entries that it stands for. */
  async #compact(run: Run): Promise<void> {
    const upTo = run.nextSeq - 5
    const text = await checkpointStateText(this.#client, run.runId, upTo, '{"engine":"small"}')
    if (!(await checkCheckpoint(this.#client, run.runId, upTo, text)).matches) throw new Error("the checkpoint does not keep the fold")
    await this.#client.query("INSERT INTO flows_journal_checkpoints VALUES ($1, $2, $3, 1)", [run.runId, upTo, text])
    await this.#client.query("DELETE FROM flows_journal_events WHERE run_id = $1 AND seq <= $2", [run.runId, upTo])
    await this.#client.query("DELETE FROM flows_journal_checkpoints WHERE run_id = $1 AND seq < $2", [run.runId, upTo])
    run.floor = upTo
    this.compactions += 1
  }
}
