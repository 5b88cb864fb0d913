/** Clients of every kind, the caller's transactions, connections that drop, and work that is stopped. */
import Database from "better-sqlite3"
import pg from "pg"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { isJournalFoldError } from "journal-fold"
import { contentDigest } from "journal-fold/digest"
import * as sqlite from "journal-fold/sqlite"
import { capture, checkpointStateText, openUrl, plan, rebuild, verify, verifyUrl, type PostgresDatabase } from "journal-fold/postgres"
import { emptyAndAlter } from "../../js/demo/damages.js"
import { writeStore } from "../../js/demo/engine.js"
import { copyOf } from "../demo/stores.js"
import { copyInto, derivedRows, freshStore } from "./stores.js"

const sound = new Database(":memory:")
writeStore(sound, { runs: 30, checkpointStateText: sqlite.checkpointStateText })
const drifted = copyOf(sound)
emptyAndAlter(drifted)
const expected = sqlite.verify(drifted)

let client: pg.Client
let pool: pg.Pool
let url: string
let before: unknown

beforeAll(async () => {
  ;({ client, url } = await freshStore())
  await copyInto(client, drifted)
  before = await derivedRows(client)
  pool = new pg.Pool({ connectionString: url, max: 3 })
  pool.on("error", () => {})
}, 60_000)
afterAll(async () => {
  await pool.end()
  await client.end()
})

const nothingWritten = async (): Promise<void> => expect(await derivedRows(client)).toEqual(before)
const connected = async (config: pg.ClientConfig = {}): Promise<pg.Client> => {
  const made = new pg.Client({ connectionString: url, ...config })
  await made.connect()
  return made
}

describe("a store is reached by", () => {
  it("a client, which is left outside of any transaction", async () => {
    expect(await verify(client)).toEqual(expected)
    expect((client as unknown as { getTransactionStatus(): string }).getTransactionStatus()).toBe("I")
    expect(client.listenerCount("error")).toBe(0)
  })

  it("a client for one piece of work at a time", async () => {
    const first = verify(client)
    await expect(verify(client)).rejects.toMatchObject({ code: "store_busy" })
    expect(await first).toEqual(expected)
    expect(await verify(client)).toEqual(expected)
  })

  it("a pool, which has its client back", async () => {
    expect(await verify(pool)).toEqual(expected)
    expect(pool.idleCount).toBe(pool.totalCount)
  })

  it("a client of a pool", async () => {
    const taken = await pool.connect()
    expect(await verify(taken)).toEqual(expected)
    taken.release()
  })

  it("several readers at once", async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => verify(pool)))
    for (const one of all) expect(one).toEqual(expected)
  })

  it("anything that has their query, and does not tell whether it is in a transaction", async () => {
    const wrapped: PostgresDatabase = { query: (config: pg.QueryConfig) => client.query(config) }
    expect(await verify(wrapped)).toEqual(expected)
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
    expect(await verify(wrapped)).toEqual(expected)
    await expect(rebuild(wrapped)).rejects.toMatchObject({ code: "nested_transaction" })
    await client.query("ROLLBACK")
  })

  it("a driver that gives rows as objects", async () => {
    const objects: PostgresDatabase = { query: ({ text, values }: pg.QueryConfig) => client.query({ text, values: values as unknown[] }) }
    expect(await verify(objects)).toEqual(expected)
  })

  it("a program that reads int8 and json in its own way", async () => {
    // Only a text is left as it is.
    const own = await connected({
      types: { getTypeParser: (oid: number) => (value: string) => (oid === 25 ? value : Symbol(value)) } as unknown as pg.CustomTypesConfig
    })
    expect(await verify(own)).toEqual(expected)
    await own.end()
  })

  it("a URL", async () => {
    expect(await verifyUrl(url)).toEqual(expected)
    const { db, close } = await openUrl(url, { busyTimeoutMs: 1000 })
    expect((await db.query("SHOW lock_timeout") as { rows: unknown[] }).rows).toEqual([{ lock_timeout: "1s" }])
    expect(await verify(db)).toEqual(expected)
    await close()
  })
})

describe("a URL that leads nowhere is refused by name, and its password is not told:", () => {
  const changes: [string, (at: URL) => void, string][] = [
    ["no server", (at) => void (at.port = "1"), "store_unreadable"],
    ["no such host", (at) => void (at.hostname = "nowhere.invalid"), "store_unreadable"],
    ["no such database", (at) => void (at.pathname = "/nothing"), "store_unreadable"],
    ["no such user", (at) => void (at.username = "nobody"), "store_unreadable"],
    ["another protocol", (at) => void (at.href = at.href.replace("postgres:", "mysql:")), "argument_invalid"]
  ]
  it.each(changes)("%s", async (_, change, code) => {
    const at = new URL(url)
    at.password = "s3cret"
    change(at)
    const error: unknown = await verifyUrl(at.href).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code })
    expect(String(error) + JSON.stringify((error as { details: unknown }).details)).not.toContain("s3cret")
  })
})

describe("the caller's transaction", () => {
  let own: pg.Client
  beforeEach(async () => {
    own = await connected()
    return () => own.end()
  })

  it("is joined, sees what it has not committed, and goes on", async () => {
    await own.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await own.query("DELETE FROM flows_clock_deadlines")
    const found = await verify(own)
    expect(found.counts.clock_missing).toBe(expected.rebuilt.clocks)
    expect((await plan(own)).digest).not.toBe(expected.plan?.digest)
    expect((await own.query("SELECT * FROM flows_clock_deadlines")).rowCount).toBe(0)
    await own.query("ROLLBACK")
    await nothingWritten()
  })

  it("is refused when each of its statements would see another state", async () => {
    await own.query("BEGIN")
    await expect(verify(own)).rejects.toMatchObject({ code: "nested_transaction", details: { found: "read committed" } })
    // Nothing has failed in it.
    expect((await own.query("SELECT 1")).rowCount).toBe(1)
    await own.query("ROLLBACK")
  })

  it("of any isolation may take checkpoints, and holds no setting or cursor of ours", async () => {
    const [head] = sqlite.verify(drifted, { heads: true }).heads ?? []
    const upTo = Number(head?.last)
    const runId = head?.runId ?? ""
    await own.query("BEGIN")
    const text = await checkpointStateText(own, runId, upTo)
    expect(text).toBe(sqlite.checkpointStateText(drifted, runId, upTo))
    await own.query("INSERT INTO flows_journal_checkpoints VALUES ($1, $2, $3, 1) ON CONFLICT DO NOTHING", [runId, upTo + 1000, text])
    expect(await capture(own, runId, upTo + 1000)).toEqual(sqlite.capture(drifted, runId, upTo))
    expect((await own.query("SELECT * FROM pg_cursors")).rowCount).toBe(0)
    expect((await own.query("SHOW jit")).rows).toEqual((await client.query("SHOW jit")).rows)
    await own.query("ROLLBACK")
  })

  it("that has failed already is said to have", async () => {
    await own.query("BEGIN")
    await own.query("SELECT nonsense").catch(() => {})
    await expect(verify(own)).rejects.toMatchObject({ code: "nested_transaction" })
    await own.query("ROLLBACK")
  })
})

describe("what a store lacks is named", () => {
  it.each([
    [{ clocks: { table: "nothing" } }, "store_table_missing", { table: "nothing" }],
    [{ schema: "nowhere" }, "store_table_missing", { table: "nowhere.flows_runs" }],
    [{ journal: { payload: "PAYLOAD_JSON" } }, "store_column_missing", { table: "flows_journal_events", column: "PAYLOAD_JSON" }],
    [{ journal: { schema: 7 } }, "option_invalid", {}],
    [{ schema: "" }, "option_invalid", {}],
    [{ clock: {} }, "option_unknown", {}],
    [{ clocks: { name: "c" } }, "option_unknown", {}]
  ])("%j", async (names, code, details) => {
    await expect(verify(client, { names: names as never })).rejects.toMatchObject({ code, details })
    expect((client as unknown as { getTransactionStatus(): string }).getTransactionStatus()).toBe("I")
  })
})

it("names are quoted, whatever they are, and tables may be in several schemas", async () => {
  const own = await connected()
  const hostile = 'we"ird; DROP TABLE x; --'
  await own.query(`CREATE SCHEMA "A.b"; CREATE SCHEMA "${hostile.replaceAll('"', '""')}"`)
  await own.query(`CREATE TABLE "A.b"."My ""runs""" AS SELECT run_id AS "RUN" FROM flows_runs`)
  await own.query(`CREATE VIEW "${hostile.replaceAll('"', '""')}".clocks AS SELECT flow_name, execution_id, clock_name AS "select", deferred_name,
    due_at_ms, completed_at_ms FROM flows_clock_deadlines`)
  await own.query(`CREATE VIEW "A.b".flows_journal_events AS SELECT run_id, seq, replace(event_type, 'flows.engine.', '''') AS event_type,
    payload_json FROM flows_journal_events`)
  await own.query(`CREATE VIEW "A.b".flows_journal_checkpoints AS SELECT * FROM flows_journal_checkpoints`)
  await own.query(`CREATE TABLE "A.b".flows_deferred_completions (LIKE flows_deferred_completions INCLUDING ALL)`)
  await own.query(`INSERT INTO "A.b".flows_deferred_completions SELECT * FROM flows_deferred_completions`)
  const names = {
    schema: "A.b",
    runs: { table: 'My "runs"', runId: "RUN" },
    clocks: { schema: hostile, table: "clocks", clockName: "select" },
    eventTypes: ["'clock-scheduled", "'clock-completed", "'deferred-completed", "'deferred-consumed"]
  } as const
  await own.query("DROP SCHEMA IF EXISTS elsewhere; CREATE SCHEMA elsewhere; SET search_path TO elsewhere")
  expect(await verify(own, { names })).toEqual(expected)
  // A view of one table takes writes too.
  expect((await rebuild(own, { names })).rows).toBe(expected.plan?.rows)
  expect((await verify(own, { names })).verdict).toBe("match")
  await own.end()
  await client.query("TRUNCATE flows_clock_deadlines, flows_deferred_completions, flows_runs, flows_journal_events, flows_journal_checkpoints")
  await copyInto(client, drifted)
  await nothingWritten()
})

it("a database in another encoding is read in the order of UTF-8 bytes", async () => {
  const own = await freshStore({}, "LOCALE 'C'", "WIN1252")
  // In Windows-1252 the euro sign comes before the letters with accents, and in UTF-8 behind them.
  const ids = ["~", "€uro", "éclair", "ÿ", "a"]
  const memory = new Database(":memory:")
  writeStore(memory, { runs: 0 })
  for (const [place, id] of ids.entries()) {
    memory.prepare("INSERT INTO flows_runs VALUES (?, 'f', 'running', 0, 0)").run(id)
    const payload = { flowName: "café €", executionId: id, clockName: "¼", deferredName: "d", dueAtMs: place }
    memory.prepare("INSERT INTO flows_journal_events VALUES (?, 3, 'flows.engine.clock-scheduled', ?)").run(id, JSON.stringify(payload))
    memory.prepare("INSERT INTO flows_journal_events VALUES (?, 4, 'flows.engine.clock-scheduled', ?)").run(id, JSON.stringify({ ...payload, clockName: "€" }))
    memory.prepare("INSERT INTO flows_clock_deadlines VALUES ('café €', ?, '¼', 'd', ?, NULL)").run(id, place)
  }
  await copyInto(own.client, memory)
  const found = await verify(own.client, { heads: true })
  expect(found).toEqual(sqlite.verify(memory, { heads: true }))
  expect(found.counts).toEqual({ clock_missing: 5 })
  expect(await capture(own.client, "€uro", 9)).toEqual(sqlite.capture(memory, "€uro", 9))
  await rebuild(own.client)
  expect((await verify(own.client)).verdict).toBe("match")
  await own.client.end()
})

it("int8 is read and written to its last digit", async () => {
  const own = await freshStore()
  const seq = "9223372036854775807"
  const clock = { flowName: "f", executionId: "r", clockName: "c", deferredName: "d", dueAtMs: Number.MAX_SAFE_INTEGER }
  await own.client.query("INSERT INTO flows_runs (run_id) VALUES ('r')")
  await own.client.query("INSERT INTO flows_journal_events VALUES ('r', $1, 'flows.engine.clock-scheduled', $2)", [seq, JSON.stringify(clock)])
  await own.client.query("INSERT INTO flows_clock_deadlines VALUES ('f', 'r', 'c', 'd', $1, NULL)", [seq])
  const found = await verify(own.client, { heads: true })
  expect(found.heads).toMatchObject([{ runId: "r", first: seq, last: seq }])
  expect(found.counts).toEqual({ clock_differs: 1 })
  await rebuild(own.client)
  const { rows } = await own.client.query("SELECT due_at_ms::text AS due FROM flows_clock_deadlines")
  expect(rows).toEqual([{ due: "9007199254740991" }])
  expect(await capture(own.client, "r", 2 ** 63)).toMatchObject({ clocks: [{ clockName: "c" }] })
  expect(await capture(own.client, "r", 2 ** 62)).toEqual({ clocks: [], deferreds: [] })
  await own.client.end()
})

it("identifiers may be uuids, and seqs numeric", async () => {
  const own = await freshStore({ id: "uuid" })
  await own.client.query("ALTER TABLE flows_journal_events ALTER COLUMN seq TYPE numeric(20)")
  const ids = ["ffffffff-0000-4000-8000-000000000001", "0fffffff-0000-4000-8000-000000000002"]
  for (const id of ids) {
    const clock = { flowName: "f", executionId: id, clockName: "c", deferredName: "d", dueAtMs: 5 }
    await own.client.query("INSERT INTO flows_runs (run_id) VALUES ($1)", [id])
    await own.client.query("INSERT INTO flows_journal_events VALUES ($1, 10, 'flows.engine.clock-scheduled', $2)", [id, JSON.stringify(clock)])
    await own.client.query("INSERT INTO flows_journal_events VALUES ($1, 9, 'flows.engine.other', '')", [id])
  }
  const found = await verify(own.client, { heads: true })
  expect(found.heads?.map(({ runId, last }) => [runId, last])).toEqual([[ids[1], "10"], [ids[0], "10"]])
  expect((await verify(own.client, { runs: [ids[0] as string] })).counts).toEqual({ clock_missing: 1 })
  expect((await verify(own.client, { runs: "live" })).counts).toEqual({ clock_missing: 2 })
  expect((await rebuild(own.client)).rows).toBe(2)
  expect((await verify(own.client)).verdict).toBe("match")
  expect((await capture(own.client, ids[0] as string, 10)).clocks).toHaveLength(1)
  await own.client.end()
})

describe("what only a table without a key, or a view, can hold", () => {
  let own: pg.Client
  beforeAll(async () => {
    own = (await freshStore()).client
    await own.query("ALTER TABLE flows_journal_events DROP CONSTRAINT flows_journal_events_pkey")
    await own.query("ALTER TABLE flows_clock_deadlines DROP CONSTRAINT flows_clock_deadlines_pkey")
    for (const column of ["run_id", "seq", "event_type"]) await own.query(`ALTER TABLE flows_journal_events ALTER ${column} DROP NOT NULL`)
    for (const column of ["flow_name", "execution_id", "clock_name"]) await own.query(`ALTER TABLE flows_clock_deadlines ALTER ${column} DROP NOT NULL`)
  }, 60_000)
  beforeEach(() => own.query("TRUNCATE flows_journal_events, flows_clock_deadlines"))
  afterAll(() => own.end())

  it("rows without an address are counted, and nothing else", async () => {
    await own.query("INSERT INTO flows_clock_deadlines VALUES (NULL, 'e', 'c', 'd', 1, 1), ('f', NULL, 'c', 'd', 1, 1), ('f', 'e', NULL, 'd', 1, 1)")
    const found = await verify(own)
    expect(found.verdict).toBe("match")
    expect(found.notChecked).toMatchObject([{ what: "rows_unreadable", count: 3 }])
  })

  it("entries without a type are of another one, and those without a payload are no JSON", async () => {
    await own.query("INSERT INTO flows_journal_events VALUES ('a', 1, NULL, 'x'), ('b', 1, 'flows.engine.clock-scheduled', NULL), ('b', 2, 'flows.engine.clock-scheduled', '{}')")
    const found = await verify(own)
    expect(found.counts).toEqual({ payload_not_json: 1 })
    expect(found.findings).toMatchObject([{ runId: "b", seq: "1" }])
  })

  it.each([
    ["a run", "(NULL, 1, 'x', '')", "text_not_utf8"],
    ["a seq", "('a', 1, 'x', ''), ('a', NULL, 'x', '')", "seq_invalid"],
    ["a seq that is one", "('a', -7, 'flows.engine.clock-scheduled', '{}')", "seq_invalid"]
  ])("entries without %s are refused by name", async (_, values, code) => {
    await own.query(`INSERT INTO flows_journal_events VALUES ${values}`)
    await expect(verify(own)).rejects.toMatchObject({ code })
    if (code === "seq_invalid") expect((await verify(own, { except: ["a"] })).verdict).toBe("match")
  })

  it("payloads of many megabytes", async () => {
    const clock = { flowName: "f", executionId: "big", clockName: "c", deferredName: "d", dueAtMs: 1 }
    const big = JSON.stringify({ ...clock, note: "é".repeat(3_000_000) })
    await own.query("INSERT INTO flows_journal_events SELECT 'big', n, 'flows.engine.clock-scheduled', $1 FROM generate_series(1, 4) AS n", [big])
    await own.query("INSERT INTO flows_journal_events VALUES ('a', 0, 'flows.engine.clock-scheduled', '{}'), ('big', 0, 'other', $1)", [big])
    const found = await verify(own)
    expect(found.coverage).toMatchObject({ runs: 2, entries: 5 })
    expect(found.counts).toEqual({ run_missing: 1, clock_missing: 1 })
    expect((await capture(own, "big", 9)).clocks).toHaveLength(1)
  })
})

it("a digest of the caller's is computed of the texts themselves", async () => {
  const seen: (string | Uint8Array)[] = []
  const digest = (text: string | Uint8Array): string => {
    seen.push(text)
    return contentDigest(text)
  }
  expect(await verify(client, { digest })).toEqual(expected)
  expect(seen.length).toBeGreaterThan(100)
  expect(await verify(client, { digest: contentDigest })).toEqual({ ...expected, digestFunction: "module" })
})

describe("work that is stopped", () => {
  it("by a signal that was given already does not begin", async () => {
    await expect(verify(pool, { signal: AbortSignal.abort("no") })).rejects.toMatchObject({ code: "aborted" })
    await expect(capture(client, "r", 1, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" })
    await expect(verifyUrl(url, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" })
  })

  it("between two statements leaves nothing behind", async () => {
    const stop = new AbortController()
    const stopped = rebuild(client, { signal: stop.signal, onProgress: () => stop.abort() })
    await expect(stopped).rejects.toMatchObject({ code: "aborted" })
    expect((client as unknown as { getTransactionStatus(): string }).getTransactionStatus()).toBe("I")
    await nothingWritten()
    expect(await verify(client)).toEqual(expected)
  })

  it("in the middle of a long statement is cancelled at the server, where there is a pool", async () => {
    await client.query(`CREATE VIEW slow AS SELECT run_id, seq, event_type, payload_json || pg_sleep(60)::text AS payload_json FROM flows_journal_events`)
    const stop = new AbortController()
    const started = performance.now()
    setTimeout(() => stop.abort(), 200)
    await expect(verify(pool, { signal: stop.signal, names: { journal: { table: "slow" } } })).rejects.toMatchObject({ code: "aborted" })
    expect(performance.now() - started).toBeLessThan(30_000)
    expect(await verify(pool)).toEqual(expected)
    await client.query("DROP VIEW slow")
  }, 60_000)

  it("by the progress callback is partial", async () => {
    const seen: number[] = []
    const found = await verify(client, {
      onProgress({ entries, total }) {
        seen.push(entries)
        expect(total).toBe(sound.prepare("SELECT count(*) FROM flows_journal_events").pluck().get())
        return false
      }
    })
    expect(found.verdict).toBe("partial")
    expect(seen).toHaveLength(1)
    expect((await verify(client, { onProgress: () => {} })).verdict).toBe("drift")
  })
})

describe("a connection that drops", () => {
  const ways: [string, (victim: pg.Client) => unknown][] = [
    ["because the server ends it", (victim) => client.query("SELECT pg_terminate_backend($1)", [(victim as unknown as { processID: number }).processID])],
    ["because the network does", (victim) => (victim as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()],
    ["because the program does", (victim) => victim.end()]
  ]
  it.each(ways)("in the middle of a verification, %s, is a typed error", async (_, drop) => {
    const victim = await connected()
    let dropped = false
    const failing = verify({ query: async (config: pg.QueryConfig) => {
      if (!dropped && config.text.startsWith("FETCH")) {
        dropped = true
        await drop(victim)
      }
      return victim.query(config)
    } })
    victim.on("error", () => {})
    await expect(failing).rejects.toMatchObject({ code: "store_unreadable" })
    await expect(verify(victim)).rejects.toMatchObject({ code: "store_unreadable" })
    await victim.end().catch(() => {})
  })

  it.each(ways.slice(0, 2))("in the middle of a write, %s, leaves nothing half done", async (_, drop) => {
    const victim = await connected()
    victim.on("error", () => {})
    const failing = rebuild({ query: async (config: pg.QueryConfig) => {
      const result = await victim.query(config)
      if (/^(UPDATE|INSERT)/.test(config.text)) await drop(victim)
      return result
    } })
    await expect(failing).rejects.toMatchObject({ code: "store_unreadable" })
    await nothingWritten()
    await victim.end().catch(() => {})
  })

  it("of a pool ends no process, and is not given to the next", async () => {
    const own = new pg.Pool({ connectionString: url, max: 1 })
    own.on("error", () => {})
    await client.query(`CREATE OR REPLACE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
    await client.query("CREATE TRIGGER die BEFORE UPDATE ON flows_clock_deadlines FOR EACH ROW EXECUTE FUNCTION die()")
    await expect(rebuild(own)).rejects.toMatchObject({ code: "store_unreadable" })
    await client.query("DROP TRIGGER die ON flows_clock_deadlines")
    await nothingWritten()
    expect(await verify(own)).toEqual(expected)
    await own.end()
  })

  it("while it commits leaves an outcome that is not known, and says so", async () => {
    await client.query(`CREATE OR REPLACE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
    await client.query(`CREATE CONSTRAINT TRIGGER die AFTER INSERT ON flows_clock_deadlines DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION die()`)
    const error: unknown = await rebuild(pool).catch((thrown: unknown) => thrown)
    expect(isJournalFoldError(error, "store_unreadable")).toBe(true)
    expect(String(error)).toContain("not known")
    await client.query("DROP TRIGGER die ON flows_clock_deadlines")
    await nothingWritten()
  })
})

describe("a statement that the server stops", () => {
  it("at its time limit, or for a lock, is busy", async () => {
    const hurried = await connected({ lock_timeout: 100 })
    await client.query("BEGIN; LOCK TABLE flows_clock_deadlines")
    await expect(verify(hurried)).rejects.toMatchObject({ code: "store_busy" })
    await expect(rebuild(hurried)).rejects.toMatchObject({ code: "store_busy" })
    await client.query("ROLLBACK")
    await hurried.query("SET statement_timeout = 1")
    await client.query("CREATE VIEW slow AS SELECT run_id, seq, event_type, payload_json || pg_sleep(1)::text AS payload_json FROM flows_journal_events")
    await expect(verify(hurried, { names: { journal: { table: "slow" } } })).rejects.toMatchObject({ code: "store_busy" })
    await client.query("DROP VIEW slow")
    await hurried.end()
    await nothingWritten()
  })
})
