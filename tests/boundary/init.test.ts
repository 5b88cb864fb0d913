/** How the module comes to be there: by itself in Node, by `init()` in a browser, and what is said when it is not. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { copyOfPackage, load, removeCopies, root, thrownBy, type DeferredClock, type Root } from "./copies.js"

const scheduled = {
  runId: "r",
  seq: 1,
  eventType: "flows.engine.clock-scheduled",
  payloadText: '{"flowName":"F","executionId":"r","clockName":"c","deferredName":"d","dueAtMs":1}'
}
const works = (fold: DeferredClock): void => expect(fold.reduce(fold.initial, [scheduled]).clocks).toHaveLength(1)
const bytes = (): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(`${root}pkg/wasm/core/journal_fold_bg.wasm`))

/** Runs a script in a Node of its own, in the project's folder, and gives what it printed. */
function node(kind: "module" | "commonjs", script: string): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, [`--input-type=${kind}`, "-e", script], { cwd: root, encoding: "utf8" })
  expect(status, stderr).toBe(0)
  return stdout.trim()
}

/** Counts in a script how many modules were compiled. */
const counting = `
  let compiled = 0
  const Module = WebAssembly.Module
  WebAssembly.Module = new Proxy(Module, { construct(target, given) { compiled += 1; return new target(...given) } })
`

afterAll(removeCopies)

describe("in Node", () => {
  it("nothing is loaded by importing, and the first call loads it, synchronously", () => {
    const printed = node(
      "module",
      `${counting}
       await import("journal-fold")
       const { reduce, initial } = await import("journal-fold/deferred-clock")
       const imported = compiled
       reduce(initial, [])
       reduce(initial, [])
       console.log(imported, compiled)`
    )
    expect(printed).toBe("0 1")
  })

  it("the root imports neither the glue nor a host", () => {
    const seen = new Set<string>()
    const follow = (file: URL): void => {
      if (seen.has(file.href)) return
      seen.add(file.href)
      for (const [, name] of readFileSync(file, "utf8").matchAll(/(?:^import |\bfrom )"([^"]+)"/gm)) {
        expect(name, file.href).toMatch(/^\.{1,2}\//)
        follow(new URL(name as string, file))
      }
    }
    follow(new URL("../../pkg/index.js", import.meta.url))
    expect([...seen].filter((name) => /wasm|engine|entries/.test(name))).toEqual([])
    expect(seen.size).toBeGreaterThan(1)
  })

  it("require() gives the same as import", () => {
    const printed = node(
      "commonjs",
      `const { reduce, initial } = require("journal-fold/deferred-clock")
       const { contentDigest } = require("journal-fold/digest")
       const { isJournalFoldError, version } = require("journal-fold")
       console.log(reduce(initial, [${JSON.stringify(scheduled)}]).clocks.length, contentDigest("").slice(0, 8), typeof version, isJournalFoldError({}))`
    )
    expect(printed).toBe("1 e3b0c442 string false")
  })

  it("init() is not needed and does no harm, before the first call or after it", async () => {
    for (const before of [true, false]) {
      const fold = await load<DeferredClock>(copyOfPackage(), "folds/deferred-clock/index.js")
      if (before) await fold.init()
      works(fold)
      await fold.init()
      works(fold)
    }
  })

  it("the bytes that journal-fold/inline carries are taken, and no file is looked for", async () => {
    const copy = copyOfPackage({ host: "browser" })
    await load(copy, "entries/inline.js")
    works(await load<DeferredClock>(copy, "folds/deferred-clock/index.js"))
  })

  it("a file that is not beside the code is said, with what to do", () => {
    const copy = copyOfPackage()
    const printed = node(
      "module",
      `import { rmSync } from "node:fs"
       const { reduce, initial } = await import("${new URL("folds/deferred-clock/index.js", copy).href}")
       rmSync(new URL("${new URL("wasm/core/journal_fold_bg.wasm", copy).href}"))
       try { reduce(initial, []) } catch (error) { console.log(error.code, error.message.includes("journal-fold/inline"), error.cause.code) }`
    )
    expect(printed).toBe("not_initialized true ENOENT")
  })
})

describe("with the browser's entry", () => {
  let server: Server
  let origin: string
  let asked: string[]

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push(request.url as string)
      if (request.url !== "/module") response.writeHead(404).end()
      else response.writeHead(200, { "content-type": "application/octet-stream" }).end(bytes())
    })
    asked = []
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => server.close())

  const fresh = (): Promise<DeferredClock> => load(copyOfPackage({ host: "browser" }), "folds/deferred-clock/index.js")

  it("every call before init() says that init() is to be awaited", async () => {
    const copy = copyOfPackage({ host: "browser" })
    const fold = await load<DeferredClock>(copy, "folds/deferred-clock/index.js")
    const digest = await load<typeof import("../../pkg/digest.js")>(copy, "digest.js")
    const { isJournalFoldError } = await load<Root>(copy, "index.js")
    const run = { runId: "r", entries: [] }
    const calls = [
      () => fold.reduce(fold.initial, []),
      () => fold.capture(run, 1),
      () => fold.checkpointState(run, 1),
      () => fold.fromCheckpoint({}),
      () => fold.fromCheckpointText("{}"),
      () => fold.verifyRebuild({ runs: [], liveRuns: [], completions: [] }),
      () => new fold.Fold(),
      () => new fold.Rebuild(),
      () => digest.contentDigest("")
    ]
    for (const call of calls) {
      const error = thrownBy(call)
      expect(isJournalFoldError(error, "not_initialized"), String(error)).toBe(true)
      expect(error.message).toContain("init()")
    }
    await fold.init()
    works(fold)
  })

  it("init() under Node, where a test runner's simulated browser ends up, reads the file", async () => {
    const fold = await fresh()
    await fold.init()
    works(fold)
  })

  it("repeated init() share one promise and load once", async () => {
    const fold = await fresh()
    asked = []
    const first = fold.init(`${origin}/module`)
    expect(fold.init()).toBe(first)
    await Promise.all([first, fold.init(`${origin}/module`)])
    expect(asked).toEqual(["/module"])
    works(fold)
  })

  it("init() takes an address, a response, bytes, a buffer, a compiled module, and a promise of any", async () => {
    const sources: ((fold: DeferredClock) => Promise<void>)[] = [
      (fold) => fold.init(`${origin}/module`),
      (fold) => fold.init(new URL(`${origin}/module`)),
      (fold) => fold.init(fetch(`${origin}/module`)),
      (fold) => fold.init(bytes()),
      (fold) => fold.init(bytes().buffer),
      (fold) => fold.init(new WebAssembly.Module(bytes())),
      (fold) => fold.init(Promise.resolve(readFileSync(`${root}pkg/wasm/core/journal_fold_bg.wasm`)))
    ]
    for (const source of sources) {
      const fold = await fresh()
      await source(fold)
      works(fold)
    }
  })

  it("an init() that failed may be repeated", async () => {
    const fold = await fresh()
    await expect(fold.init(`${origin}/missing`)).rejects.toMatchObject({ code: "not_initialized", message: expect.stringContaining("404") as string })
    await expect(fold.init("http://127.0.0.1:1/")).rejects.toThrow()
    await expect(fold.init(new Uint8Array([1, 2, 3]))).rejects.toThrow(WebAssembly.CompileError)
    await expect(fold.init(Promise.reject(new Error("the network is away")))).rejects.toThrow("the network is away")
    expect(thrownBy(() => fold.reduce(fold.initial, [])).code).toBe("not_initialized")
    await fold.init()
    works(fold)
  })

  it("a module that is another one is refused, and the right one may follow", async () => {
    const fold = await fresh()
    const another = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])
    await expect(fold.init(another)).rejects.toThrow()
    await fold.init()
    works(fold)
  })
})
