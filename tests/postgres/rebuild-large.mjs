// Does one piece of work on a store and prints what it took:  node rebuild-large.mjs URL verify|rebuild
import pg from "pg"
import { rebuild, verify } from "journal-fold/postgres"

const [, , url, work] = process.argv
const pool = new pg.Pool({ connectionString: url })
const started = performance.now()
const done = work === "rebuild" ? await rebuild(pool) : await verify(pool)
const seconds = (performance.now() - started) / 1000
await pool.end()
const { verdict, findings, rebuilt, rows } = done
// The most that this process has held at any time, in MiB; maxRSS is in KiB.
console.log(JSON.stringify({ verdict, findings: findings?.length, rebuilt, rows, seconds, peakMiB: process.resourceUsage().maxRSS / 1024 }))
