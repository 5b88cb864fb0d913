/** A million entries in four thousand runs: what a verification and a rebuild take in memory. Times are printed, never asserted. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import pg from "pg"
import { expect, it } from "vitest"
import { writeLargeStore } from "./large.js"
import { freshDatabase } from "./server.js"

const run = promisify(execFile)
const script = fileURLToPath(new URL("rebuild-large.mjs", import.meta.url))

async function work(url: string, kind: "verify" | "rebuild"): Promise<Record<string, unknown> & { peakMiB: number }> {
  const { stdout } = await run(process.execPath, [script, url, kind])
  const { seconds, peakMiB, ...found } = JSON.parse(stdout) as { seconds: number; peakMiB: number }
  console.log(`${kind}: ${seconds.toFixed(1)} s, at most ${peakMiB.toFixed(0)} MiB`)
  return { ...found, peakMiB }
}

it("a rebuild of 1,000,000 entries in 4,000 runs works in under 250 MB", async () => {
  const url = await freshDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { entries, clocks } = await writeLargeStore(client, 4000, 50)
  expect(entries).toBe(1_000_000)
  const rebuilt = { runs: 4000, clocks, deferreds: clocks, unexplained: 0 }

  const sound = await work(url, "verify")
  expect(sound).toMatchObject({ verdict: "match", findings: 0, rebuilt })
  await client.query(`DELETE FROM flows_clock_deadlines WHERE clock_name LIKE '%7';
    UPDATE flows_deferred_completions SET consumed_at_ms = NULL WHERE deferred_name = 'clock/sleep-8'`)
  const drifted = await work(url, "rebuild")
  expect(drifted).toMatchObject({ rows: clocks / 10 + 4000, rebuilt })
  for (const { peakMiB } of [sound, drifted]) expect(peakMiB * 1.048576).toBeLessThan(250)

  // The most there can be to write: every clock is gone.
  await client.query("TRUNCATE flows_clock_deadlines")
  const emptied = await work(url, "rebuild")
  expect(emptied).toMatchObject({ rows: clocks, rebuilt })
  expect(emptied.peakMiB * 1.048576).toBeLessThan(250)
  expect(await work(url, "verify")).toMatchObject({ verdict: "match" })
  await client.end()
}, 600_000)
