/** The example engine, run as its reader would run it: on SQLite and on Postgres, each step a process of its own. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, type Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { describe, expect, it, vi } from "vitest"
import { verify, type DurableWriter } from "journal-fold/effect"
import { freshDatabase } from "../postgres/server.js"
import { folder } from "../sqlite/stores.js"

vi.setConfig({ testTimeout: 120_000 })

const built = (file: string): string => fileURLToPath(new URL(`../../.build/examples/engine/${file}`, import.meta.url))
const { databaseAt } = (await import(built("database.js"))) as {
  databaseAt: (at: string) => Layer.Layer<SqlClient | DurableWriter, unknown>
}

/** Runs the engine, and gives what it printed. */
function engine(at: string, ...words: string[]): { status: number | null; signal: string | null; told: any } {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [built("main.js"), at, ...words], { encoding: "utf8" })
  if (status === 0) expect(stderr).toBe("")
  const last = stdout.trim().split("\n").at(-1) ?? ""
  return { status, signal, told: last.startsWith("{") ? JSON.parse(last) : undefined }
}

const inStore = <A, E>(at: string, work: Effect.Effect<A, E, SqlClient | DurableWriter>): Promise<A> =>
  Effect.runPromise(Effect.provide(work, databaseAt(at)) as Effect.Effect<A, E>)

const change = (at: string, ...statements: string[]): Promise<void> =>
  inStore(at, Effect.gen(function* () {
    const sql = yield* SqlClient
    for (const statement of statements) yield* sql.unsafe(statement)
  }))

/** Every row of both derived tables. */
const derived = (at: string): Promise<string> =>
  inStore(at, Effect.gen(function* () {
    const sql = yield* SqlClient
    const clocks = yield* sql.unsafe("SELECT * FROM flows_clock_deadlines ORDER BY execution_id, clock_name")
    const completions = yield* sql.unsafe("SELECT * FROM flows_deferred_completions ORDER BY execution_id, deferred_name")
    return JSON.stringify([clocks, completions], (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))
  }))

describe.each<[string, () => Promise<string>]>([
  ["SQLite", () => Promise.resolve(join(folder(), "engine.db"))],
  ["Postgres", () => freshDatabase()]
])("the example engine on %s", (_, database) => {
  it("works, compacts, crashes, is restored, verifies at boot and rebuilds", async () => {
    const at = await database()
    expect(engine(at, "work", "24")).toMatchObject({ status: 0, told: { orders: 24, fired: 1 } })
    const [found] = await inStore(at, Effect.all([verify()]))
    expect(found).toMatchObject({ verdict: "match", coverage: { runs: 24, floors: 8 }, rebuilt: { clocks: 48, deferreds: 13 } })
    const sound = await derived(at)

    // Killed between the journal and the row: the store has neither, and there is nothing to repair.
    expect(engine(at, "crash")).toMatchObject({ status: null, signal: "SIGKILL" })
    expect(engine(at, "boot")).toMatchObject({ status: 0, told: { found: "match", repaired: 0 } })
    expect(await derived(at)).toBe(sound)

    // The clock table comes back from a backup that was taken before the last clocks were armed and before any fired.
    await change(at,
      "UPDATE flows_clock_deadlines SET completed_at_ms = NULL",
      "DELETE FROM flows_clock_deadlines WHERE clock_name = 'cancel' AND execution_id IN ('order-3', 'order-7')")
    expect(engine(at, "boot")).toMatchObject({ status: 0, told: { found: "drift", repaired: 3 } })
    expect(await derived(at)).toBe(sound)
    expect(engine(at, "boot")).toMatchObject({ status: 0, told: { found: "match" } })

    // A clock that no entry knows would be deleted, and with it something that was to run: that needs a person's word.
    await change(at, "INSERT INTO flows_clock_deadlines VALUES ('checkout', 'order-1', 'stray', 'clock/stray', 1, NULL)")
    expect(engine(at, "boot")).toMatchObject({ status: 1, told: { error: { code: "deletes_pending" } } })
    await change(at, "DELETE FROM flows_clock_deadlines WHERE clock_name = 'stray'")

    // A value that is gone cannot come back from digests: the engine does not start, and says what is missing.
    await change(at, "DELETE FROM flows_deferred_completions WHERE execution_id = 'order-2'")
    expect(engine(at, "boot")).toMatchObject({
      status: 1,
      told: {
        error: {
          _tag: "@smthrs/engine-store/DeferredClockFold/FoldIncomplete",
          code: "fold_incomplete",
          unjoined: [{ reason: "row_missing", flowName: "checkout", executionId: "order-2", name: "payment" }]
        }
      }
    })
  })

  it("takes a value once", async () => {
    const at = await database()
    expect(engine(at, "work", "4").status).toBe(0)
    const { consume } = (await import(built("engine.js"))) as { consume: (run: object, name: string, nowMs: number) => Effect.Effect<unknown, Error, SqlClient | DurableWriter> }
    const run = { flowName: "checkout", runId: "order-2" }
    expect(await inStore(at, consume(run, "payment", 5))).toEqual({ amount: "2.00 €" })
    await expect(inStore(at, consume(run, "payment", 6))).rejects.toThrow("has no value, or it was taken")
    expect(engine(at, "boot")).toMatchObject({ told: { found: "match" } })
  })
})
