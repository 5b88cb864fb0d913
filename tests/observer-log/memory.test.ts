/** What a verification takes follows the state, not the stream. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { afterAll, expect, it } from "vitest"
import { ObserverLogStore } from "journal-fold/sqlite"
// @ts-expect-error: a script without types
import { randomNumbers, streamRows } from "../../bench/streams.mjs"

const main = fileURLToPath(new URL("../../pkg/cli/main.js", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "observer-log-memory-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The peak of a process that verifies a stream of 100 conversations, in MB. */
function peakOf(count: number): number {
  const file = join(folder, `${count}.db`)
  const db = new Database(file)
  db.pragma("synchronous = OFF")
  const store = new ObserverLogStore(db, "s", { durability: "process" })
  const rows = streamRows(count, { conversations: 100, large: false }, randomNumbers(count)) as { payload: string }[]
  for (let at = 0; at < rows.length; at += 10_000) store.appendAll(BigInt(at), rows.slice(at, at + 10_000).map(({ payload }) => payload))
  db.close()
  const { stdout, status } = spawnSync(process.execPath, [main, "verify", file, "--fold", "observer-log", "--json"], { encoding: "utf8" })
  const report = JSON.parse(stdout) as { peakMemoryBytes: number; coverage: { rows: string } }
  expect([status, report.coverage.rows]).toEqual([0, String(rows.length)])
  return report.peakMemoryBytes / 1e6
}

it("verifies five times as many rows in about the same memory", () => {
  const [some, many] = [peakOf(200_000), peakOf(1_000_000)]
  // The rows themselves are 70 MB more, and a collection may come late.
  expect(many - some).toBeLessThan(35)
}, 120_000)
