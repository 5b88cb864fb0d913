/** A million entries in four thousand runs: what a verification and a rebuild take in memory. Times are printed, never asserted. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { expect, it } from "vitest"
import { folder } from "./stores.js"

const script = fileURLToPath(new URL("million.mjs", import.meta.url))

it("1,000,000 entries in 4,000 runs are verified in under 200 MB, and rebuilt", () => {
  const path = join(folder(), "store.db")
  const work = (kind: string): Record<string, unknown> & { megabytes: number } => {
    const told = JSON.parse(execFileSync(process.execPath, [script, path, kind], { encoding: "utf8" })) as { megabytes: number; seconds: number }
    console.log(`${kind}: ${told.seconds.toFixed(1)} s, at most ${told.megabytes} MB`)
    return told as never
  }
  work("write")
  const rebuilt = { runs: 4000, clocks: 200_000, deferreds: 200_000, unexplained: 0 }
  const verified = work("verify")
  expect(verified).toMatchObject({ verdict: "match", rebuilt, entries: 1_000_000 })
  expect(verified.megabytes).toBeLessThan(200)

  const db = new Database(path)
  db.exec("DELETE FROM flows_clock_deadlines WHERE clock_name LIKE '%7'; UPDATE flows_clock_deadlines SET due_at_ms = 1 WHERE clock_name LIKE '%8'")
  db.close()
  const repaired = work("rebuild")
  expect(repaired).toMatchObject({ rows: 40_000, rebuilt })
  expect(repaired.megabytes).toBeLessThan(250)

  // The most there can be to write: every clock is gone.
  const emptied = new Database(path)
  emptied.exec("DELETE FROM flows_clock_deadlines")
  emptied.close()
  const rewritten = work("rebuild")
  expect(rewritten).toMatchObject({ rows: 200_000, rebuilt })
  expect(rewritten.megabytes).toBeLessThan(250)
  expect(work("verify")).toMatchObject({ verdict: "match" })
}, 300_000)
