/** After a trap of the module a log restores and goes on, and nothing is kept. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type DurableStore } from "journal-fold/observer-log"
import { codeOf } from "./streams.js"
import { copyOfPackage, load, removeCopies, type Engine, type TestGlue } from "../boundary/copies.js"

describe("after a trap", () => {
  let engine: Engine
  let log: typeof import("journal-fold/observer-log")

  beforeAll(async () => {
    const folder = copyOfPackage({ testModule: true })
    engine = await load<Engine>(folder, "core/engine.js")
    log = await load<typeof log>(folder, "folds/observer-log/index.js")
    vi.spyOn(console, "error").mockImplementation(() => {})
  })
  afterAll(removeCopies)

  const trap = (): void => {
    expect(codeOf(() => engine.call((glue) => (glue as unknown as TestGlue).test_panic()))).toBe("engine_trap")
  }

  it("a log restores and goes on, and loses nothing", async () => {
    const store = new log.MemoryStore()
    const opened = await log.ObserverLog.open(store)
    await opened.track(1, 0)
    trap()
    expect(opened.standing).toBe("closed")
    expect(opened.progress(1)).toBeUndefined()
    const change = await opened.advance(1, 1)
    expect(change).toMatchObject({ head: 2n, restored: { hint: "missing", rows: 1n } })
    expect(opened.progress(1)).toBe(1n)
    await opened.close()
  })

  it("in the middle of a change says so, and the next change finds out what became of it", async () => {
    const memory = new log.MemoryStore()
    const store = Object.create(memory) as DurableStore
    let trapped = false
    const methods = ["readFrom", "readAt", "appendAll", "flush", "readValue", "cas", "readHead"] as const
    for (const method of methods) {
      Object.defineProperty(store, method, {
        value: (...args: never[]) => {
          const value = (memory[method] as (...args: never[]) => unknown)(...args)
          if (method === "appendAll" && !trapped) {
            trapped = true
            trap()
          }
          return value
        }
      })
    }
    const opened = await log.ObserverLog.open(store)
    await expect(opened.track(1, 0)).rejects.toMatchObject({ code: "engine_restarted" })
    expect((await opened.recover()).restored).toMatchObject({ rows: 1n })
    expect(opened.progress(1)).toBe(0n)
    await expect(opened.track(1, 0)).rejects.toMatchObject({ code: "request_refused" })
    expect(memory.readHead()).toBe(1n)
  })

  it("an aggregate is gone, and says so", () => {
    const aggregate = new log.Aggregate()
    trap()
    expect(codeOf(() => aggregate.state())).toBe("engine_restarted")
    aggregate.dispose()
    expect(new log.Aggregate().state().progress).toEqual([])
  })

  it("nothing is kept by what was disposed of, or ended", async () => {
    const count = (): number => engine.call((glue) => (glue as unknown as TestGlue).object_count())
    const before = count()
    const store = new log.MemoryStore()
    for (let round = 0; round < 20; round++) {
      const opened = await log.ObserverLog.open(store)
      await opened.track(round, 0)
      await opened.track(round, 0).catch(() => {})
      opened.aggregate().dispose()
      await opened.close()
      log.verifyStoreSync(store)
      log.restoreSync(store).aggregate.dispose()
      log.planAppend(log.initial, 0, { row: "arms", arms: [] })
    }
    expect(count()).toBe(before)
  })
})
