/** What the effects do with transactions, failures, interruption and spans, on SQLite and on Postgres. */
import Database from "better-sqlite3"
import { Cause, Effect, Exit, Fiber, Layer, Schedule, Scope, Tracer } from "effect"
import { SqlClient, SqlError, Statement } from "effect/sql"
import { Reactivity } from "effect/reactivity"
import { describe, expect, it, onTestFinished } from "vitest"
import * as Fold from "journal-fold/effect"
import { demoStore, fileOf } from "../sqlite/stores.js"
import { outcomeOf, sqliteClient, type Needs } from "./clients.js"
import { postgresStore, sqliteStore, stores, type Store } from "./stores.js"

const inTransaction = <A, E>(effect: Effect.Effect<A, E, Needs>): Effect.Effect<A, E | SqlError.SqlError, Needs> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(effect))

const statement = (sql: string): Effect.Effect<unknown, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (client) => client.unsafe(sql))

const codeOf = async (store: Store, effect: Effect.Effect<unknown, unknown, Needs>): Promise<unknown> =>
  (await outcomeOf(Effect.provideContext(effect, store.context))).error?.code

const lostClocks = "DELETE FROM flows_clock_deadlines"
const lostCompletions = "DELETE FROM flows_deferred_completions"

describe.each(stores)("on %s", (name, open) => {
  it("verifies, plans and applies, and a second time the plan is stale", async () => {
    const store = await open()
    const before = await store.derived()
    expect(await store.run(Fold.verify())).toMatchObject({ verdict: "match", findings: [] })
    await store.exec(lostClocks)
    const found = await store.run(Fold.verify({ heads: true }))
    expect(found.verdict).toBe("drift")
    expect(found.heads?.length).toBe(60)
    const plan = await store.run(Fold.plan())
    expect(plan.rows).toBeGreaterThan(0)
    expect(await store.run(Fold.apply(plan))).toMatchObject({ rows: plan.rows })
    expect(await store.derived()).toEqual(before)
    expect(await codeOf(store, Fold.apply(plan))).toBe("stale_plan")
  })

  it("fails with an error that is caught by its tag, listing every reference, and writes nothing", async () => {
    const store = await open()
    await store.exec(lostClocks)
    await store.exec(lostCompletions)
    const before = await store.derived()
    const caught = await store.run(
      Fold.rebuild().pipe(
        Effect.map(() => undefined),
        Effect.catchTag("@smthrs/engine-store/DeferredClockFold/FoldIncomplete", (error) => Effect.succeed(error))
      )
    )
    expect(caught).toBeInstanceOf(Fold.FoldIncomplete)
    expect(caught).toMatchObject({ code: "fold_incomplete", message: expect.stringMatching(/\d+/) })
    expect(caught?.unjoined.length).toBeGreaterThan(10)
    expect(new Set(caught?.unjoined.map(({ reason }) => reason))).toEqual(new Set(["row_missing"]))
    expect(await store.derived()).toEqual(before)
  })

  it("refuses to delete a pending clock or to clear a consumption by a plan, unless told to", async () => {
    const store = await open()
    await store.exec(`INSERT INTO flows_clock_deadlines (flow_name, execution_id, clock_name, deferred_name, due_at_ms)
      VALUES ('F', 'nobody', 'c', 'd', 1)`)
    const plan = await store.run(Fold.plan())
    expect(await codeOf(store, Fold.apply(plan))).toBe("deletes_pending")
    expect(await codeOf(store, Fold.rebuild({ allowDeletePending: false }))).toBe("deletes_pending")
    expect(await store.run(Fold.apply(plan, { allowDeletePending: true }))).toMatchObject({ rows: 1, effects: { pendingDeleted: 1 } })
  })

  it("writes in no transaction of the caller's", async () => {
    const store = await open()
    const plan = await store.run(Fold.plan())
    expect(await codeOf(store, inTransaction(Fold.apply(plan)))).toBe("nested_transaction")
    expect(await codeOf(store, inTransaction(Fold.rebuild()))).toBe("nested_transaction")
    // The caller goes on with the transaction.
    expect(await store.run(inTransaction(Effect.ignore(Fold.rebuild()).pipe(Effect.andThen(Fold.capture("none", 9)))))).toBeDefined()
  })

  it("sees in the caller's transaction what that has written, and leaves it open", async () => {
    const store = await open()
    const begin = name === "Postgres" ? "BEGIN ISOLATION LEVEL REPEATABLE READ" : "BEGIN"
    const [inside, after] = await store.run(
      Effect.all([
        Effect.exit(inTransaction(Effect.gen(function* () {
          yield* statement(lostClocks)
          const { verdict } = yield* Fold.verify()
          return yield* Effect.fail(verdict)
        })).pipe(Effect.provideService(SqlClient.BeginTransaction, begin))),
        Fold.verify()
      ])
    )
    expect(Exit.isFailure(inside) && Cause.squash(inside.cause)).toBe("drift")
    expect(after.verdict).toBe("match")
  })

  it("makes a checkpoint inside a compaction's transaction, and proves it before the entries are deleted", async () => {
    const store = await open()
    const upTo = 5
    const checked = await store.run(inTransaction(Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [run] = yield* sql<{ run_id: string }>`SELECT run_id FROM flows_journal_events GROUP BY run_id HAVING count(*) > 20 ORDER BY run_id LIMIT 1`
      const runId = run?.run_id as string
      const text = yield* Fold.checkpointStateText(runId, upTo, '{"other": 1.0}')
      const check = yield* Fold.checkCheckpoint(runId, upTo, text)
      const spoiled = yield* Fold.checkCheckpoint(runId, upTo, "{}")
      return { text, check, spoiled }
    })))
    expect(checked.text).toMatch(/^\{"other": ?1\.0,/)
    expect(checked.check.matches).toBe(true)
    expect(checked.spoiled.matches).toBe(false)
  })

  it("does a transaction again that another writer made impossible, three times and no more", async () => {
    const store = await open()
    const plan = await store.run(Fold.plan())
    const conflict = new SqlError.SqlError({
      reason: new SqlError.SerializationError({ cause: Object.assign(new Error("no"), { code: "40001" }) })
    })
    const attempts = async (failures: number): Promise<[number, unknown]> => {
      let count = 0
      const writer = Fold.DurableWriter.of({
        write: (effect) => Effect.flatMap(Fold.DurableWriter, ({ write }) => {
          count += 1
          return write(count <= failures ? Effect.andThen(effect, Effect.fail(conflict)) : effect)
        }).pipe(Effect.provideContext(store.context)) as never
      })
      const code = await codeOf(store, Fold.apply(plan).pipe(Effect.provideService(Fold.DurableWriter, writer)))
      return [count, code]
    }
    expect(await attempts(0)).toEqual([1, undefined])
    expect(await attempts(3)).toEqual([4, undefined])
    expect(await attempts(4)).toEqual([4, "store_busy"])
  })

  it("is interrupted in the middle of a rebuild, leaves nothing behind, and the client goes on", async () => {
    const store = await open(400)
    await store.exec(lostClocks)
    const before = await store.derived()
    // A rebuild looks at all that a verification looks at before it writes: half of that time is in the middle on any machine.
    let wholeMs = Infinity
    for (let round = 0; round < 3; round++) {
      const startMs = performance.now()
      await store.run(Fold.verify())
      wholeMs = Math.min(wholeMs, performance.now() - startMs)
    }
    for (const delayMs of [0.02, 0.1, 0.3, 0.5].map((part) => part * wholeMs)) {
      const exit = await store.run(Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Fold.rebuild())
        yield* Effect.sleep(delayMs)
        yield* Fiber.interrupt(fiber)
        return yield* Fiber.await(fiber)
      }))
      expect(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
      expect(await store.derived()).toEqual(before)
    }
    const { verdict, rebuilt } = await store.run(Fold.verify())
    expect(verdict).toBe("drift")
    expect(await store.run(Fold.rebuild())).toEqual(rebuilt)
  })

  it("lets other fibers run between its slices", async () => {
    const store = await open(800)
    let ticks = 0
    await store.run(Effect.raceFirst(
      Fold.verify(),
      Effect.repeat(Effect.sync(() => void (ticks += 1)), Schedule.spaced(1))
    ))
    expect(ticks).toBeGreaterThan(1)
  })

  it("has a span for each effect, above those of its transaction", async () => {
    const store = await open()
    const spans: string[] = []
    const tracer = Tracer.make({
      span: (options) => {
        spans.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    await store.run(Effect.withTracer(Fold.rebuild(), tracer))
    expect(spans).toEqual(["DeferredClockFold.rebuild", "sql.transaction"])
  })

  it("fails by name where a table is missing, a name is unknown, or an argument is none", async () => {
    const store = await open()
    expect(await codeOf(store, Fold.verify({ names: { clocks: { table: "nowhere" } } }))).toBe("store_table_missing")
    expect(await codeOf(store, Fold.verify({ nothing: 1 } as never))).toBe("option_unknown")
    expect(await codeOf(store, Fold.capture("r", Number.NaN))).toBe("bound_invalid")
    expect(await codeOf(store, Fold.capture(1 as never, 1))).toBe("argument_invalid")
    expect(await codeOf(store, Fold.checkpointState("r", 1, [] as never))).toBe("base_not_object")
    expect(await codeOf(store, Fold.apply({} as never))).toBe("argument_invalid")
    expect(await codeOf(store, Fold.rebuild({ digest: () => { throw new Error("mine") } }))).toBe("store_unreadable")
    expect((await store.run(Fold.verify())).verdict).toBe("match")
  })

  it("says so when a writer begins no transaction", async () => {
    const store = await open()
    const writer = Fold.DurableWriter.of({ write: (effect) => effect })
    expect(await codeOf(store, Fold.rebuild().pipe(Effect.provideService(Fold.DurableWriter, writer)))).toBe("call_out_of_order")
  })
})

describe("on Postgres", () => {
  it("folds a run in a transaction of any isolation, but verifies in none that is no snapshot", async () => {
    const store = await postgresStore()
    expect(await codeOf(store, inTransaction(Fold.verify()))).toBe("nested_transaction")
    expect(await codeOf(store, inTransaction(Fold.capture("r", 5)))).toBeUndefined()
  })

  it("does a rebuild again when rows that it was to write were written meanwhile", async () => {
    const store = await postgresStore()
    const whole = await store.derived()
    await store.exec("CREATE TABLE kept AS SELECT * FROM flows_clock_deadlines")
    await store.exec(lostClocks)
    let count = 0
    const writer = Fold.DurableWriter.of({
      write: (effect) => Effect.flatMap(Fold.DurableWriter, ({ write }) => {
        count += 1
        const interfere = count > 1 ? Effect.void : Effect.andThen(
          // The snapshot is taken first.
          statement("SELECT count(*) FROM flows_clock_deadlines"),
          Effect.promise(() => store.exec("INSERT INTO flows_clock_deadlines SELECT * FROM kept"))
        )
        return write(Effect.andThen(interfere, effect))
      }).pipe(Effect.provideContext(store.context)) as never
    })
    await store.run(Fold.rebuild().pipe(Effect.provideService(Fold.DurableWriter, writer)))
    expect(count).toBe(2)
    expect(await store.derived()).toEqual(whole)
  })

  it("keeps a second rebuild out", async () => {
    const store = await postgresStore()
    await store.exec("BEGIN; SELECT pg_advisory_xact_lock_shared(7669477824773844070)")
    expect(await codeOf(store, Fold.rebuild())).toBe("store_busy")
    await store.exec("COMMIT")
    expect(await codeOf(store, Fold.rebuild())).toBeUndefined()
  })

  it("fails by name when its connection is ended in the middle, and writes nothing", async () => {
    const store = await postgresStore()
    await store.exec(lostClocks)
    const before = await store.derived()
    await store.exec(`CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
      CREATE TRIGGER leave BEFORE INSERT ON flows_clock_deadlines FOR EACH ROW EXECUTE FUNCTION leave()`)
    expect(await codeOf(store, Fold.rebuild())).toMatch(/^store_(unreadable|busy)$/)
    expect(await store.derived()).toEqual(before)
    expect((await store.run(Fold.verify())).verdict).toBe("drift")
  })

  it("names the table and the column of a row that is refused", async () => {
    const store = await postgresStore()
    await store.exec(`${lostClocks}; ALTER TABLE flows_clock_deadlines ADD COLUMN owner text NOT NULL`)
    const error = await store.run(Effect.flip(Fold.rebuild()))
    expect(error).toMatchObject({ code: "row_not_writable", details: { table: "flows_clock_deadlines", column: "owner" } })
  })

  it("tells what the server has against a row only when all is committed", async () => {
    const store = await postgresStore()
    await store.exec(`${lostClocks};
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '23514', MESSAGE = 'late'; END $$;
      CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON flows_clock_deadlines DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
    expect(await codeOf(store, Fold.rebuild())).toBe("row_not_writable")
  })
})

describe("on SQLite", () => {
  it("does a rebuild again whose snapshot another connection's commit made old", async () => {
    const path = fileOf(demoStore({ runs: 20 }).db, { wal: true })
    const [db, other] = [new Database(path), new Database(path)]
    onTestFinished(() => [db, other].forEach((one) => one.close()))
    other.exec(lostClocks)
    let count = 0
    // A writer of somebody's own, which takes no write lock at its beginning.
    const write = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(
      Effect.gen(function* () {
        count += 1
        yield* sql`SELECT count(*) FROM flows_runs`
        if (count === 1) other.exec("UPDATE flows_runs SET run_id = run_id")
        return yield* effect
      })))
    const context = await Effect.runPromise(Layer.buildWithScope(sqliteClient(db), Scope.makeUnsafe()))
    const writer = Fold.DurableWriter.of({ write: (effect) => Effect.provideContext(write(effect), context) as never })
    await Effect.runPromise(Fold.rebuild().pipe(Effect.provideService(Fold.DurableWriter, writer), Effect.provideContext(context)))
    expect(count).toBe(2)
  })

  it("names the table of a row that is refused", async () => {
    const store = await sqliteStore()
    await store.exec(`${lostClocks}; CREATE UNIQUE INDEX one ON flows_clock_deadlines (deferred_name IS NULL)`)
    expect(await store.run(Effect.flip(Fold.rebuild()))).toMatchObject({ code: "row_not_writable", details: { table: "flows_clock_deadlines" } })
  })
})

describe("a client that is none of ours", () => {
  const client = (compiler: Statement.Compiler, query: () => Effect.Effect<never[], SqlError.SqlError>): Layer.Layer<SqlClient.SqlClient> => {
    const connection = {
      execute: query, executeRaw: query, executeValues: query, executeValuesUnprepared: query, executeUnprepared: query, executeStream: query as never
    }
    return Layer.effect(SqlClient.SqlClient, SqlClient.make({ acquirer: Effect.succeed(connection), compiler, driver: "none", spanAttributes: [] }))
      .pipe(Layer.provide(Reactivity.layer))
  }
  const codeOn = async (layer: Layer.Layer<SqlClient.SqlClient>): Promise<unknown> => (await outcomeOf(Effect.provide(Fold.verify(), layer))).error?.code

  it("is refused by its dialect", async () => {
    const compiler = Statement.makeCompiler({
      dialect: "mysql", placeholder: () => "?", onIdentifier: (identifier: string) => identifier, onCustom: () => ["", []], onRecordUpdate: () => ["", []]
    } as never)
    expect(await codeOn(client(compiler, () => Effect.succeed([])))).toBe("argument_invalid")
  })

  it("is refused when it is SQLite's and answers later", async () => {
    expect(await codeOn(client(Statement.makeCompilerSqlite(), () => Effect.delay(Effect.succeed([]), 1)))).toBe("argument_invalid")
  })

  it("fails by name when it cannot connect", async () => {
    const refused = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("nobody there") }) })
    expect(await codeOn(client(Statement.makeCompilerSqlite(), () => Effect.fail(refused)))).toBe("store_unreadable")
  })
})
