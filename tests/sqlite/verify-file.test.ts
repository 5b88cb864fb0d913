/** `verifyFile`: beside a running engine, on a connection of its own, with the event loop running on. */
import { fork, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { setTimeout as sleep } from "node:timers/promises"
import Database from "better-sqlite3"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { isJournalFoldError } from "journal-fold"
import { verify, verifyFile } from "journal-fold/sqlite"
import { demoStore, fileOf, folder } from "./stores.js"

vi.setConfig({ testTimeout: 120_000 })

const { db: sound, summary } = demoStore({ runs: 120 })

/** Runs an engine in a process of its own while `work` goes on, and says how much it wrote. */
async function besideEngine(path: string, pauseMs: number, work: (engine: ChildProcess) => Promise<void>): Promise<{ steps: number; compacted: number }> {
  const engine = fork(fileURLToPath(new URL("writer.mjs", import.meta.url)), [path, String(pauseMs)], { stdio: "inherit" })
  onTestFinished(() => void engine.kill())
  await once(engine, "message")
  await work(engine)
  expect(engine.exitCode).toBeNull()
  engine.send("stop")
  const [told] = (await once(engine, "message")) as [{ steps: number; compacted: number }]
  return told
}

describe("verifyFile", () => {
  it("says what verify says", async () => {
    const path = fileOf(sound)
    expect(await verifyFile(path, { heads: true })).toEqual(verify(sound, { heads: true }))
    expect(await verifyFile(path, { runs: "live", names: {} })).toEqual(verify(sound, { runs: "live" }))
  })

  it("leaves the event loop its turns, and its progress is told", async () => {
    const path = fileOf(demoStore({ runs: 600, stepsPerTransaction: 1000 }).db)
    let ticks = 0
    const timer = setInterval(() => (ticks += 1), 1)
    const progress: number[] = []
    const { verdict } = await verifyFile(path, { onProgress: ({ entries }) => void progress.push(entries) })
    clearInterval(timer)
    expect(verdict).toBe("match")
    expect(progress.length).toBeGreaterThan(3)
    // Never a time: only that there were turns between the slices.
    expect(ticks).toBeGreaterThan(1)
  })

  it("stops at a progress of false with a partial verdict", async () => {
    expect((await verifyFile(fileOf(sound), { onProgress: () => false })).verdict).toBe("partial")
  })

  it("is stopped by its signal: before it begins, between slices, and while it waits for a lock", async () => {
    const path = fileOf(sound)
    const reason = new Error("the request is gone")
    await expect(verifyFile(path, { signal: AbortSignal.abort(reason) })).rejects.toMatchObject({ code: "aborted", cause: reason })

    const between = new AbortController()
    let busy = 0
    const stopped = verifyFile(fileOf(demoStore({ runs: 600, stepsPerTransaction: 1000 }).db), {
      signal: between.signal,
      onProgress: () => {
        between.abort(reason)
        // Long enough for the slice to be over.
        for (const until = performance.now() + 30; performance.now() < until; ) busy += 1
      }
    })
    await expect(stopped).rejects.toMatchObject({ code: "aborted", cause: reason })

    const locker = new Database(path)
    locker.exec("BEGIN EXCLUSIVE")
    const waiting = new AbortController()
    setTimeout(() => waiting.abort(reason), 50)
    await expect(verifyFile(path, { signal: waiting.signal })).rejects.toMatchObject({ code: "aborted", cause: reason })
    locker.exec("COMMIT")
    // Nothing was left open: the file can be locked, changed and taken.
    locker.exec("BEGIN EXCLUSIVE; DELETE FROM flows_runs; COMMIT")
    locker.close()
  })

  it("waits for a lock without stopping the event loop, and gives up when it is told to", async () => {
    const path = fileOf(sound)
    const locker = new Database(path)
    locker.exec("BEGIN EXCLUSIVE")
    await expect(verifyFile(path, { busyTimeoutMs: 40 })).rejects.toMatchObject({ code: "store_busy" })
    // This timer could not run if the wait held up the loop.
    setTimeout(() => locker.exec("COMMIT"), 100)
    expect((await verifyFile(path)).verdict).toBe("match")
    locker.close()
  })

  it("refuses options that nobody knows", async () => {
    await expect(verifyFile(fileOf(sound), { timeout: 1 } as never)).rejects.toMatchObject({ code: "option_unknown" })
    await expect(verifyFile(fileOf(sound), { busyTimeoutMs: -1 })).rejects.toMatchObject({ code: "option_invalid" })
  })

  it("closes its connection when it fails", async () => {
    const path = fileOf(sound)
    const db = new Database(path)
    db.exec("ALTER TABLE flows_runs RENAME TO runs")
    await expect(verifyFile(path)).rejects.toSatisfy((error) => isJournalFoldError(error, "store_table_missing"))
    db.exec("BEGIN EXCLUSIVE; COMMIT")
    db.close()
  })

  it("sees what stood when it began, whatever is written meanwhile", async () => {
    const path = fileOf(sound, { wal: true })
    const writer = new Database(path)
    let struck = false
    const { verdict, rebuilt } = await verifyFile(path, {
      onProgress: () => {
        if (!struck) writer.exec("DELETE FROM flows_clock_deadlines; DELETE FROM flows_deferred_completions; DELETE FROM flows_runs")
        struck = true
      }
    })
    expect([struck, verdict, rebuilt.clocks]).toEqual([true, "match", summary.clocks])
    expect(verify(writer).verdict).toBe("refused")
    writer.close()
  })
})

describe("beside an engine that writes throughout", () => {
  it("finds nothing, a hundred times, with a WAL", async () => {
    const path = fileOf(demoStore({ runs: 20 }).db, { wal: true })
    const seen = new Set<string>()
    // A step a millisecond: at full speed the store grows faster than it is verified.
    const { steps, compacted } = await besideEngine(path, 1, async () => {
      for (let time = 0; time < 100; time++) {
        const { verdict, findings, coverage } = await verifyFile(path)
        expect([findings, verdict]).toEqual([[], "match"])
        seen.add(coverage.headsDigest)
      }
    })
    // It did write, and compact, and what was seen was another state nearly every time.
    expect(steps).toBeGreaterThan(200)
    expect(compacted).toBeGreaterThan(0)
    expect(seen.size).toBeGreaterThan(50)
  })

  it("finds nothing with a rollback journal, where both wait for each other", async () => {
    const path = fileOf(demoStore({ runs: 20 }).db)
    const seen = new Set<string>()
    const { steps } = await besideEngine(path, 2, async () => {
      for (let time = 0; time < 25; time++) {
        const { verdict, findings, coverage } = await verifyFile(path, { busyTimeoutMs: 20_000 })
        expect([findings, verdict]).toEqual([[], "match"])
        seen.add(coverage.headsDigest)
        await sleep(5)
      }
    })
    expect(steps).toBeGreaterThan(10)
    expect(seen.size).toBeGreaterThan(3)
  })

  it("finds what is damaged all the same", async () => {
    const { db } = demoStore({ runs: 20 })
    db.exec("UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1 WHERE completed_at_ms IS NOT NULL")
    const damaged = verify(db).findings.length
    const path = fileOf(db, { wal: true })
    await besideEngine(path, 1, async () => {
      for (let time = 0; time < 5; time++) expect((await verifyFile(path)).findings).toHaveLength(damaged)
    })
  })
})

it("verifies a file in a folder with an odd name", async () => {
  const path = `${folder()}/a 'store' #1? %20.db`
  sound.exec(`VACUUM INTO '${path.replaceAll("'", "''")}'`)
  expect((await verifyFile(path)).verdict).toBe("match")
})
