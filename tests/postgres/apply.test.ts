/** What keeps a plan from being applied, or half applied. */
import Database from "better-sqlite3"
import pg from "pg"
import { PGlite } from "@electric-sql/pglite"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as sqlite from "journal-fold/sqlite"
import { apply, plan, rebuild, rebuildLockKey, verify } from "journal-fold/postgres"
import { damages, emptyAndAlter } from "../../js/demo/damages.js"
import { writeStore } from "../../js/demo/engine.js"
import { copyOf } from "../demo/stores.js"
import { copyInto, derivedRows, freshStore, tablesSql } from "./stores.js"

const sound = new Database(":memory:")
writeStore(sound, { runs: 30, checkpointStateText: sqlite.checkpointStateText })
const drifted = copyOf(sound)
emptyAndAlter(drifted)

let client: pg.Client
let other: pg.Client
let url: string
let before: unknown

beforeAll(async () => {
  ;({ client, url } = await freshStore())
  other = new pg.Client({ connectionString: url })
  await other.connect()
}, 60_000)
afterAll(async () => {
  await client.end()
  await other.end()
})

/** The tables anew, without what a test has added to them. */
async function fill(db: Database.Database = drifted): Promise<void> {
  await client.query("DROP TABLE IF EXISTS flows_runs, flows_journal_events, flows_journal_checkpoints, flows_clock_deadlines, flows_deferred_completions CASCADE")
  await client.query(tablesSql())
  await copyInto(client, db)
  before = await derivedRows(client)
}
beforeEach(() => fill())

const nothingWritten = async (): Promise<void> => expect(await derivedRows(client)).toEqual(before)
const damaged = (name: string): Database.Database => {
  const db = copyOf(sound)
  damages.find((damage) => damage.name === name)?.apply(db)
  return db
}

describe("a plan", () => {
  it("is refused once the store has changed", async () => {
    const made = await plan(client)
    await other.query(`DELETE FROM flows_clock_deadlines WHERE (flow_name, execution_id, clock_name) IN
      (SELECT flow_name, execution_id, clock_name FROM flows_clock_deadlines ORDER BY 1, 2, 3 LIMIT 1)`)
    before = await derivedRows(client)
    await expect(apply(client, made)).rejects.toMatchObject({ code: "stale_plan", details: { expected: made.digest } })
    await nothingWritten()
  })

  it("that deletes a pending clock or clears a consumption needs leave", async () => {
    await fill(damaged("clock-row-invented"))
    await expect(rebuild(client)).rejects.toMatchObject({ code: "deletes_pending" })
    await nothingWritten()
    expect((await rebuild(client, { allowDeletePending: true })).effects.pendingDeleted).toBe(1)
    await fill(damaged("consumption-invented"))
    await expect(rebuild(client)).rejects.toMatchObject({ code: "clears_consumption" })
    await nothingWritten()
    expect((await rebuild(client, { allowUnconsume: true })).effects.consumptionsCleared).toBe(1)
  })

  it("is not made of a store that does not join, and not when the work was stopped", async () => {
    await fill(damaged("completion-deleted"))
    await expect(rebuild(client)).rejects.toMatchObject({ code: "fold_incomplete", unjoined: [{ reason: "row_missing" }] })
    await expect(plan(client)).rejects.toMatchObject({ code: "fold_incomplete" })
    await nothingWritten()
    await fill()
    await expect(rebuild(client, { onProgress: () => false })).rejects.toMatchObject({ code: "plan_refused" })
    await nothingWritten()
  })

  it("is something that plan() gave, with options that are known", async () => {
    await expect(apply(client, {} as never)).rejects.toMatchObject({ code: "argument_invalid" })
    await expect(rebuild(client, { allowDelete: true } as never)).rejects.toMatchObject({ code: "option_unknown" })
    await expect(rebuild(client, { lockTimeoutMs: -1 })).rejects.toMatchObject({ code: "option_invalid" })
    await expect(rebuild({} as never)).rejects.toMatchObject({ code: "argument_invalid" })
  })

  it("keeps the values of columns that are the user's own", async () => {
    await client.query("ALTER TABLE flows_clock_deadlines ADD COLUMN note text DEFAULT 'new'")
    await client.query("UPDATE flows_clock_deadlines SET note = clock_name")
    const { rows } = await client.query("SELECT count(*)::int AS count FROM flows_clock_deadlines")
    await rebuild(client)
    const after = await client.query("SELECT count(*) FILTER (WHERE note = clock_name)::int AS kept FROM flows_clock_deadlines")
    expect(after.rows[0].kept).toBe(rows[0].count)
    expect((await verify(client)).verdict).toBe("match")
  })
})

describe("a row that the store refuses is named, and nothing is written", () => {
  it.each([
    [
      "by a column of the user's own that must not be null",
      "ALTER TABLE flows_clock_deadlines ADD COLUMN owner text; UPDATE flows_clock_deadlines SET owner = 'me'; ALTER TABLE flows_clock_deadlines ALTER COLUMN owner SET NOT NULL",
      { table: "flows_clock_deadlines", column: "owner" }
    ],
    [
      "by a check",
      "ALTER TABLE flows_clock_deadlines ADD CONSTRAINT late CHECK (due_at_ms < 0) NOT VALID",
      { table: "flows_clock_deadlines", expected: "late" }
    ],
    [
      "by a foreign key",
      "CREATE TABLE flows (name text PRIMARY KEY); ALTER TABLE flows_clock_deadlines ADD CONSTRAINT flow FOREIGN KEY (flow_name) REFERENCES flows NOT VALID",
      { table: "flows_clock_deadlines", expected: "flow" }
    ],
    [
      "by a trigger that raises",
      `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not on my watch'; END $$;
       CREATE TRIGGER refuse BEFORE INSERT ON flows_clock_deadlines FOR EACH ROW EXECUTE FUNCTION refuse()`,
      { table: "flows_clock_deadlines" }
    ],
    ["by a column that is too short", "ALTER TABLE flows_clock_deadlines ALTER COLUMN clock_name TYPE varchar(3) USING left(md5(clock_name), 3)", { table: "flows_clock_deadlines" }]
  ])("%s", async (_, sql, details) => {
    await client.query(sql)
    before = await derivedRows(client)
    const failing = rebuild(client, { allowDeletePending: true })
    await expect(failing).rejects.toMatchObject({ code: "row_not_writable", details })
    await nothingWritten()
  })

  it("by a constraint that is looked at when all is written", async () => {
    await client.query(`CREATE TABLE IF NOT EXISTS allowed (name text PRIMARY KEY); ALTER TABLE flows_clock_deadlines
      ADD CONSTRAINT late FOREIGN KEY (clock_name) REFERENCES allowed DEFERRABLE INITIALLY DEFERRED NOT VALID`)
    await expect(rebuild(client)).rejects.toMatchObject({
      code: "row_not_writable",
      details: { table: "flows_clock_deadlines", expected: "late" }
    })
    await nothingWritten()
  })

  it("by a view that takes no writes", async () => {
    await client.query("CREATE VIEW clocks AS SELECT DISTINCT * FROM flows_clock_deadlines")
    await expect(rebuild(client, { names: { clocks: { table: "clocks" } } })).rejects.toMatchObject({
      code: "row_not_writable",
      details: { table: "clocks" }
    })
    await nothingWritten()
  })

  it("by a trigger that leaves rows out: as many must change as were planned", async () => {
    await client.query(`CREATE OR REPLACE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF NEW.clock_name LIKE '%-2' THEN RETURN NULL; END IF; RETURN NEW; END $$`)
    await client.query("CREATE TRIGGER skip BEFORE INSERT ON flows_clock_deadlines FOR EACH ROW EXECUTE FUNCTION skip()")
    await expect(rebuild(client)).rejects.toMatchObject({ code: "rows_changed_mismatch", details: { table: "flows_clock_deadlines" } })
    await nothingWritten()
  })

  it.each([
    ["a trigger", `CREATE OR REPLACE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.due_at_ms := NEW.due_at_ms + 1; RETURN NEW; END $$;
      CREATE TRIGGER late BEFORE INSERT ON flows_clock_deadlines FOR EACH ROW EXECUTE FUNCTION late()`],
    ["a trigger that does it afterwards", `CREATE OR REPLACE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN DELETE FROM flows_clock_deadlines WHERE execution_id = NEW.execution_id AND clock_name < NEW.clock_name; RETURN NULL; END $$;
      CREATE TRIGGER gone AFTER INSERT ON flows_clock_deadlines FOR EACH ROW EXECUTE FUNCTION gone()`],
    ["a column's type", "ALTER TABLE flows_clock_deadlines ALTER COLUMN due_at_ms TYPE real"]
  ])("by what %s makes of it: the store must have what was planned", async (_, sql) => {
    await client.query(sql)
    before = await derivedRows(client)
    await expect(rebuild(client, { allowDeletePending: true })).rejects.toMatchObject({
      code: "rows_changed_mismatch",
      details: { table: "flows_clock_deadlines" }
    })
    await nothingWritten()
  })

  it("for want of leave to write", async () => {
    await client.query("DROP ROLE IF EXISTS reader")
    await client.query("CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    const reader = new pg.Client({ connectionString: url.replace("postgres@", "reader@") })
    await reader.connect()
    await expect(rebuild(reader)).rejects.toMatchObject({ code: "store_read_only" })
    expect((await verify(reader)).verdict).toBe("drift")
    await client.query("REVOKE SELECT ON flows_runs FROM reader")
    await expect(verify(reader)).rejects.toMatchObject({ code: "store_unreadable" })
    await reader.end()
    await client.query("DROP OWNED BY reader; DROP ROLE reader")
    await nothingWritten()
  })

  it("because a name that only a journal can spell has NUL in it", async () => {
    const clock = { flowName: "f", executionId: "nul", clockName: "a\0b", deferredName: "d", dueAtMs: 1 }
    await client.query("INSERT INTO flows_runs (run_id) VALUES ('nul')")
    await client.query("INSERT INTO flows_journal_events VALUES ('nul', 0, 'flows.engine.clock-scheduled', $1)", [JSON.stringify(clock)])
    expect((await verify(client, { runs: ["nul"] })).counts).toEqual({ clock_missing: 1 })
    await expect(rebuild(client)).rejects.toMatchObject({ code: "row_not_writable", details: { table: "flows_clock_deadlines" } })
    await nothingWritten()
    // A backslash before it makes it six harmless characters.
    await client.query("UPDATE flows_journal_events SET payload_json = $1 WHERE run_id = 'nul'", [JSON.stringify({ ...clock, clockName: "a\\u0000b" })])
    await rebuild(client)
    expect((await verify(client)).verdict).toBe("match")
    // And a flow or an execution with NUL has no rows.
    await client.query("UPDATE flows_journal_events SET payload_json = $1 WHERE run_id = 'nul'", [JSON.stringify({ ...clock, flowName: "\0" })])
    expect((await verify(client, { runs: ["nul"] })).counts).toEqual({ clock_missing: 1 })
  })
})

describe("transactions", () => {
  it("of the caller's refuse a plan", async () => {
    await client.query("BEGIN")
    await expect(rebuild(client)).rejects.toMatchObject({ code: "nested_transaction" })
    await client.query("ROLLBACK")
    const lite = await PGlite.create()
    await lite.exec(tablesSql())
    await lite.transaction(async (transaction) => {
      await expect(rebuild(transaction)).rejects.toMatchObject({ code: "nested_transaction" })
      expect((await verify(transaction)).verdict).toBe("match")
    })
    await lite.close()
    await nothingWritten()
  }, 60_000)

  /** The client, before whose statement of a kind something else happens. */
  const interrupted = (kind: RegExp, happens: () => Promise<unknown>): { query: (config: { text: string }) => Promise<unknown> } => ({
    async query(config) {
      if (kind.test(config.text)) await happens()
      return client.query(config)
    }
  })
  const anyAltered = `(SELECT flow_name, execution_id, clock_name FROM flows_clock_deadlines ORDER BY 1, 2, 3 LIMIT 5)`

  it("are done again when another writer's commit makes them impossible", async () => {
    let times = 0
    const meddled = interrupted(/^UPDATE/, async () => {
      times += 1
      if (times <= 3) await other.query(`UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1 WHERE (flow_name, execution_id, clock_name) IN ${anyAltered}`)
    })
    const { rebuilt } = await rebuild(meddled)
    expect(rebuilt).toEqual(sqlite.verify(sound).rebuilt)
    expect(times).toBeGreaterThanOrEqual(4)
    expect((await verify(client)).verdict).toBe("match")
  })

  it("are given up after three more attempts", async () => {
    let times = 0
    const meddled = interrupted(/^UPDATE "flows_clock/, async () => {
      times += 1
      await other.query(`UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1 WHERE (flow_name, execution_id, clock_name) IN ${anyAltered}`)
    })
    await expect(rebuild(meddled)).rejects.toMatchObject({ code: "store_busy" })
    expect(times).toBe(4)
  })

  it("are done again when a missing row was inserted meanwhile", async () => {
    const made = await plan(client)
    const missing = JSON.parse(made.pages.find(({ op }) => op === "insert")?.rows ?? "[]")[0] as unknown[]
    let times = 0
    const meddled = interrupted(/^INSERT/, async () => {
      times += 1
      if (times === 1) await other.query("INSERT INTO flows_clock_deadlines VALUES ($1, $2, $3, $4, $5, $6)", missing)
    })
    expect((await rebuild(meddled)).rows).toBe(made.rows - 1)
    expect(times).toBe(2)
    expect((await verify(client)).verdict).toBe("match")
  })
})

describe("the lock", () => {
  const lock = `pg_advisory_lock(${rebuildLockKey})`
  const unlock = "SELECT pg_advisory_unlock_all()"

  it("has the published key, which spells what it is for", () => {
    expect(rebuildLockKey).toBe(7669477824773844070n)
    expect(Buffer.from(rebuildLockKey.toString(16), "hex").toString()).toBe("journalf")
  })

  it("refuses a second rebuild at once, by name", async () => {
    await other.query(`SELECT ${lock}`)
    await expect(rebuild(client)).rejects.toMatchObject({ code: "store_busy" })
    await expect(apply(client, await plan(client))).rejects.toMatchObject({ code: "store_busy" })
    await nothingWritten()
    await other.query(unlock)
    await rebuild(client)
  })

  it("is waited for, in time or not, and left behind", async () => {
    await other.query(`SELECT ${lock}`)
    await expect(rebuild(client, { lockTimeoutMs: 150 })).rejects.toMatchObject({ code: "store_busy" })
    await nothingWritten()
    const waiting = rebuild(client, { lockTimeoutMs: 20_000 })
    await new Promise((resolve) => setTimeout(resolve, 300))
    await other.query(unlock)
    expect((await waiting).rows).toBeGreaterThan(0)
    const { rows } = await other.query("SELECT count(*)::int AS held FROM pg_locks WHERE locktype = 'advisory'")
    expect(rows[0].held).toBe(0)
  })

  it("may be stopped being waited for", async () => {
    await other.query(`SELECT ${lock}`)
    const stop = new AbortController()
    const waiting = rebuild(client, { lockTimeoutMs: 60_000, signal: stop.signal })
    setTimeout(() => stop.abort(), 100)
    await expect(waiting).rejects.toMatchObject({ code: "aborted" })
    await other.query(unlock)
    await nothingWritten()
  })

  it("keeps the writers of an engine out that share it, and waits for them, and then sees what they wrote", async () => {
    await other.query("BEGIN")
    await other.query(`SELECT pg_advisory_xact_lock_shared(${rebuildLockKey})`)
    const waiting = rebuild(client, { lockTimeoutMs: 20_000 })
    await new Promise((resolve) => setTimeout(resolve, 200))
    const clock = { flowName: "f", executionId: "late", clockName: "c", deferredName: "d", dueAtMs: 1 }
    await other.query("INSERT INTO flows_runs (run_id) VALUES ('late')")
    await other.query("INSERT INTO flows_journal_events VALUES ('late', 0, 'flows.engine.clock-scheduled', $1)", [JSON.stringify(clock)])
    await other.query("COMMIT")
    const { rebuilt } = await waiting
    expect(rebuilt.runs).toBe(sqlite.verify(sound).rebuilt.runs + 1)
    expect((await client.query("SELECT 1 FROM flows_clock_deadlines WHERE execution_id = 'late'")).rowCount).toBe(1)
  })

  it("lets several rebuilds at once come one after another, of which one has something to do", async () => {
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    const all = await Promise.all(Array.from({ length: 4 }, () => rebuild(pool, { lockTimeoutMs: 30_000 })))
    expect(all.map(({ rows }) => rows).sort((a, b) => a - b).slice(0, 3)).toEqual([0, 0, 0])
    expect(all.some(({ rows }) => rows > 0)).toBe(true)
    await pool.end()
    expect((await verify(client)).verdict).toBe("match")
  }, 60_000)
})
