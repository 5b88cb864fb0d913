/** A trap becomes a typed error, the instance is made anew, and nothing of the old one touches the new one. */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { copyOfPackage, load, removeCopies, type DeferredClock, type Engine, type TestGlue } from "./copies.js"

afterAll(removeCopies)

let folder: URL
let engine: Engine
let clocks: DeferredClock

beforeAll(async () => {
  folder = copyOfPackage({ testModule: true })
  engine = await load<Engine>(folder, "core/engine.js")
  clocks = await load<DeferredClock>(folder, "folds/deferred-clock/index.js")
  // The hook shows every panic in the console too; here they are meant.
  vi.spyOn(console, "error").mockImplementation(() => {})
})

const testing = <Result>(work: (glue: TestGlue) => Result): Result => engine.call((glue) => work(glue as unknown as TestGlue))
const scheduled = {
  runId: "r",
  seq: 0,
  eventType: "flows.engine.clock-scheduled",
  payloadText: '{"flowName":"F","executionId":"r","clockName":"c","deferredName":"d","dueAtMs":1}'
}
const works = (): void => expect(clocks.reduce(clocks.initial, [scheduled]).clocks).toHaveLength(1)

function thrownBy(work: () => unknown): { code?: string; message?: string; name?: string; cause?: unknown } {
  try {
    work()
  } catch (error) {
    return error as Error
  }
  throw new Error("nothing was thrown")
}

describe("a trap", () => {
  it("by a panic carries the panic's message, and the next call works", () => {
    const error = thrownBy(() => testing((glue) => glue.test_panic()))
    expect(error).toMatchObject({ name: "EngineTrapError", code: "engine_trap" })
    expect(error.message).toContain("a deliberate panic")
    expect(error.cause).toBeInstanceOf(WebAssembly.RuntimeError)
    works()
  })

  it("by a stack that runs over is one too", () => {
    const error = thrownBy(() => testing((glue) => glue.test_stack_overflow(10_000_000)))
    expect(error.code).toBe("engine_trap")
    works()
  })

  it("by memory that runs out is one too", () => {
    const error = thrownBy(() => testing((glue) => glue.test_out_of_memory()))
    expect(error.code).toBe("engine_trap")
    works()
  })

  it("in the middle of many objects leaves none of them, and numbers begin anew", () => {
    const before = testing((glue) => glue.object_count())
    const many = Array.from({ length: 20_000 }, () => new clocks.Fold())
    expect(testing((glue) => glue.object_count())).toBe(before + many.length)
    thrownBy(() => testing((glue) => glue.test_panic()))
    expect(testing((glue) => glue.object_count())).toBe(0)
    for (const fold of many) fold.dispose()
    works()
  })

  it("may come many times in a row", () => {
    for (let time = 0; time < 20; time++) {
      expect(thrownBy(() => testing((glue) => glue.test_panic())).code).toBe("engine_trap")
      works()
    }
  })

  it("ends every object of its instance with an error that says so", () => {
    const fold = new clocks.Fold()
    const rebuild = new clocks.Rebuild()
    fold.push([scheduled])
    thrownBy(() => testing((glue) => glue.test_panic()))
    for (const use of [() => fold.state(), () => fold.push([scheduled]), () => rebuild.beginRun("r"), () => rebuild.finish()]) {
      expect(thrownBy(use).code).toBe("engine_restarted")
    }
  })

  it("leaves disposing of an old object harmless to the objects that came after", () => {
    const old = Array.from({ length: 50 }, () => new clocks.Fold())
    thrownBy(() => testing((glue) => glue.test_panic()))
    const young = Array.from({ length: 50 }, () => new clocks.Fold())
    for (const fold of young) fold.push([scheduled])
    for (const fold of old) {
      fold.dispose()
      fold.dispose()
    }
    for (const fold of young) expect(fold.state().clocks).toHaveLength(1)
    for (const fold of young) fold.dispose()
    expect(thrownBy(() => young[0]?.state()).code).toBe("disposed")
  })
})

describe("an instance that cannot be made anew", () => {
  it("is tried again by every call, until it can", () => {
    const old = new clocks.Fold()
    const { Instance } = WebAssembly
    WebAssembly.Instance = class {
      constructor() {
        throw new RangeError("no memory for another instance")
      }
    } as never
    try {
      expect(thrownBy(() => testing((glue) => glue.test_panic())).message).toMatch(/could not be made anew yet: .*a deliberate panic/s)
      expect(thrownBy(works).code).toBe("engine_trap")
    } finally {
      WebAssembly.Instance = Instance
    }
    works()
    expect(thrownBy(() => old.state()).code).toBe("engine_restarted")
    old.dispose()
  })

  it("does not come of making it anew five hundred times", () => {
    for (let time = 0; time < 500; time++) thrownBy(() => testing((glue) => glue.test_panic()))
    works()
  })
})

describe("memory", () => {
  it("stays flat over a hundred thousand folds that are disposed of", () => {
    const before = testing((glue) => glue.object_count())
    let size = 0
    for (let round = 0; round < 100_000; round++) {
      const fold = new clocks.Fold()
      fold.push([scheduled])
      fold.dispose()
      if (round === 1000) size = engine.call((glue) => engine.memoryBuffer(glue).byteLength)
    }
    expect(testing((glue) => glue.object_count())).toBe(before)
    expect(engine.call((glue) => engine.memoryBuffer(glue).byteLength)).toBe(size)
  })

  it("of objects nobody disposed of comes back by finalizers, and those of an old instance touch nothing", () => {
    const script = fileURLToPath(new URL("finalizers.mjs", folder))
    writeFileSync(
      script,
      `import { call } from "./core/engine.js"
       import { Fold } from "./folds/deferred-clock/index.js"
       console.error = () => {}
       const settle = async () => { for (let i = 0; i < 20; i++) { gc(); await new Promise((r) => setTimeout(r, 5)) } }
       const make = (count) => { for (let i = 0; i < count; i++) new Fold() }
       make(500)
       await settle()
       const left = call((glue) => glue.object_count())
       make(500)
       try { call((glue) => glue.test_panic()) } catch {}
       const kept = Array.from({ length: 500 }, () => new Fold())
       await settle()
       const alive = call((glue) => glue.object_count())
       console.log(JSON.stringify({ left, alive, usable: kept.every((fold) => fold.state().clocks.length === 0) }))`
    )
    const { stdout, stderr } = spawnSync(process.execPath, ["--expose-gc", script], { encoding: "utf8" })
    expect(stderr).toBe("")
    const { left, alive, usable } = JSON.parse(stdout) as { left: number; alive: number; usable: boolean }
    expect(left).toBeLessThan(50)
    expect(alive).toBe(500)
    expect(usable).toBe(true)
  })
})
