// A rebuild through Effect against the host called directly: at most 1.2 times its time, so a ratio of at least 1 / 1.2.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Effect, ManagedRuntime } from "effect"
import pg from "pg"
import { rebuild as throughEffect } from "journal-fold/effect"
import { rebuild as inPostgres } from "journal-fold/postgres"
import { checkpointStateText, rebuild } from "journal-fold/sqlite"
import { databaseAt } from "../../.build/examples/engine/database.js"
import { writeStore } from "../../.build/demo/engine.js"
import { createTables } from "../../.build/examples/engine/tables.js"
import { inTurnAwaited } from "../measure.mjs"

const target = 1 / 1.2
const both = { allowDeletePending: true, allowUnconsume: true }

export async function* run({ quick }) {
  const runs = quick ? 300 : 4000
  const folder = mkdtempSync(join(tmpdir(), "journal-fold-bench-"))
  try {
    const path = join(folder, "store.db")
    const db = new Database(path)
    db.pragma("journal_mode = WAL")
    writeStore(db, { runs, stepsPerTransaction: 1000, checkpointStateText })
    const size = db.prepare("SELECT count(*) FROM flows_journal_events").pluck().get()
    // So that there is as much to write each time.
    const damage = "UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1"
    const options = { units: size, rounds: quick ? 5 : 9 }

    const client = ManagedRuntime.make(databaseAt(path))
    await client.runPromise(Effect.void)
    yield {
      scenario: "rebuild in SQLite through Effect",
      size,
      unit: "ns an entry",
      target,
      ...(await inTurnAwaited(
        () => (db.exec(damage), client.runPromise(throughEffect())),
        () => (db.exec(damage), rebuild(db, both)),
        options
      ))
    }
    await client.dispose()

    const url = process.env.JOURNAL_FOLD_POSTGRES
    if (url !== undefined) yield await onPostgres(url, db, options)
    db.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The same store in a Postgres, in a schema that is dropped again. */
async function onPostgres(url, db, options) {
  const at = new URL(url)
  at.searchParams.set("options", "-c search_path=journal_fold_bench")
  const pool = new pg.Pool({ connectionString: at.href })
  await pool.query("DROP SCHEMA IF EXISTS journal_fold_bench CASCADE")
  await pool.query("CREATE SCHEMA journal_fold_bench")
  const client = ManagedRuntime.make(databaseAt(at.href))
  try {
    await client.runPromise(createTables)
    for (const table of ["flows_runs", "flows_journal_events", "flows_journal_checkpoints", "flows_clock_deadlines", "flows_deferred_completions"]) {
      const { rows } = await pool.query(`SELECT column_name AS c FROM information_schema.columns WHERE table_schema = 'journal_fold_bench' AND table_name = $1 ORDER BY ordinal_position`, [table])
      const columns = rows.map(({ c }) => c).join(", ")
      const stored = db.prepare(`SELECT ${columns} FROM ${table}`).all()
      for (let at = 0; at < stored.length; at += 5000) {
        await pool.query(`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1)`, [JSON.stringify(stored.slice(at, at + 5000))])
      }
    }
    await pool.query("ANALYZE")
    const damage = "UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1"
    return {
      scenario: "rebuild in Postgres through Effect",
      size: options.units,
      unit: "ns an entry",
      target,
      ...(await inTurnAwaited(
        async () => (await pool.query(damage), client.runPromise(throughEffect())),
        async () => (await pool.query(damage), inPostgres(pool, both)),
        options
      ))
    }
  } finally {
    await client.dispose()
    await pool.query("DROP SCHEMA journal_fold_bench CASCADE")
    await pool.end()
  }
}
