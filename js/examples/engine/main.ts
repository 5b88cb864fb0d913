/**
 * Runs the engine on a database:  node main.js WHERE work COUNT | boot | crash
 *
 * `work` starts flows and takes them forward; `boot` verifies and repairs; `crash` kills the process in the middle of a transaction, after
 * the journal was written and before the row was.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { DurableWriter } from "journal-fold/effect"
import { boot } from "./boot.js"
import { databaseAt } from "./database.js"
import { compact, consume, fireDue, signal, sleepUntil, start } from "./engine.js"
import { createTables } from "./tables.js"

/** The engine's time. A real one reads a clock; a fixed start makes every run of this one alike. */
const startMs = Date.UTC(2026, 0, 1)

/** Takes `count` orders through their flow: paid or timed out, every third journal compacted on the way. */
const work = Effect.fn("work")(function* (count: number) {
  for (let number = 0; number < count; number++) {
    const run = { runId: `order-${number}`, flowName: "checkout" }
    const nowMs = startMs + number * 1000
    yield* start(run)
    yield* sleepUntil(run, "reminder", nowMs + 60_000)
    if (number % 2 === 0) yield* signal(run, "payment", { amount: `${number}.00 €` }, nowMs + 10)
    if (number % 3 === 0) yield* compact(run, nowMs + 20)
    if (number % 4 === 0) yield* consume(run, "payment", nowMs + 30)
    yield* sleepUntil(run, "cancel", nowMs + 3_600_000)
  }
  const fired = yield* fireDue(startMs + 60_000)
  return { orders: count, fired }
})

/** Writes half of a step and is gone. */
const crash = Effect.gen(function* () {
  const sql = yield* SqlClient
  const writer = yield* DurableWriter
  yield* writer.write(Effect.gen(function* () {
    yield* sql`INSERT INTO flows_journal_events (run_id, seq, event_type, payload_json)
      VALUES ('order-0', 1000, 'flows.engine.clock-completed',
        ${JSON.stringify({ flowName: "checkout", executionId: "order-0", clockName: "cancel", completedAtMs: startMs })})`
    yield* Effect.sync(() => process.kill(process.pid, "SIGKILL"))
    yield* Effect.never
  }))
})

const [, , at = "engine.db", verb = "boot", count = "100"] = process.argv

const program = Effect.gen(function* () {
  yield* createTables
  if (verb === "work") return yield* work(Number(count))
  if (verb === "crash") return yield* crash
  return yield* boot(startMs + 120_000)
})

const done = await Effect.runPromise(Effect.result(Effect.provide(program, databaseAt(at))))
if (done._tag === "Success") console.log(JSON.stringify(done.success))
else {
  console.log(JSON.stringify({ error: done.failure }))
  process.exitCode = 1
}
