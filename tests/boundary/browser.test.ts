/** The package in a real browser, from its own files: the same bytes come out as under Node, and a trap is survived. */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { chromium, type Browser, type Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as deferredClock from "journal-fold/deferred-clock"
import type { Verification } from "journal-fold/deferred-clock"
import { copyOfPackage, removeCopies, root } from "./copies.js"
import { foldAndVerify } from "./in-page.mjs"
import { journalOf } from "./journals.js"

/** What the package's own import of its host means in a page without a bundler. */
const importMap = '{"imports":{"#host":"./entries/browser.js"}}'
const policy = `default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'sha256-${createHash("sha256").update(importMap).digest("base64")}'`
const contentTypes: Record<string, string> = { js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" }

/** Serves the files of folders by the first part of a path, and a page at each folder's top. */
function serve(folders: Record<string, string>): Promise<Server> {
  const server = createServer((request, response) => {
    const [, top = "", path = ""] = /^\/([^/]+)\/(.*)$/.exec(request.url as string) ?? []
    const file = `${folders[top]}${path}`
    if (path === "") {
      response.writeHead(200, { "content-type": "text/html", "content-security-policy": policy })
      response.end(`<!doctype html><title>blank</title><script type="importmap">${importMap}</script>`)
    } else if (!existsSync(file)) response.writeHead(404).end()
    else response.writeHead(200, { "content-type": contentTypes[file.split(".").pop() as string] ?? "text/plain" }).end(readFileSync(file))
  })
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)))
}

let server: Server
let browser: Browser
let origin: string

beforeAll(async () => {
  server = await serve({ pkg: `${root}pkg/`, tests: `${root}tests/boundary/`, test: fileURLToPath(copyOfPackage({ testModule: true })) })
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
  })
})
afterAll(async () => {
  await browser?.close()
  server?.close()
  removeCopies()
})

describe("in a page with a strict content security policy", () => {
  let page: Page
  let asked: string[]
  let complaints: string[]

  beforeEach(async () => {
    asked = []
    complaints = []
    page = await browser.newPage()
    page.on("request", (request) => asked.push(request.url()))
    page.on("console", (message) => complaints.push(message.text()))
    page.on("pageerror", (error) => complaints.push(String(error)))
  })
  afterEach(() => page.close())

  /** Does something of in-page.mjs in a page of the package under `base`. */
  async function inPage(base: "/pkg/" | "/test/", name: string, argument: unknown = null): Promise<unknown> {
    await page.goto(`${origin}${base}`)
    return page.evaluate(`import("/tests/in-page.mjs").then((module) => module.inPage("${base}", "${name}", ${JSON.stringify(argument)}))`)
  }

  it("a call before init() names init(), and init() loads one module however often it is called", async () => {
    expect(await inPage("/pkg/", "initialise")).toEqual({
      before: { code: "not_initialized", message: expect.stringContaining("init()") as string },
      after: { clocks: [], deferreds: [] }
    })
    expect(asked.filter((url) => url.endsWith(".wasm"))).toHaveLength(1)
    expect(complaints).toEqual([])
  })

  it("a fold and a verification give the bytes that Node gives", async () => {
    const entries = journalOf("r", 300)
    const ours = await foldAndVerify(deferredClock, entries)
    const { refused, planned } = JSON.parse(ours) as { refused: Verification; planned: Verification }
    expect([refused.verdict, planned.verdict]).toEqual(["refused", "drift"])
    expect(planned.plan?.effects.clocksArmed).toBeGreaterThan(50)
    expect(await inPage("/pkg/", "foldAndVerify", entries)).toBe(ours)
    expect(complaints).toEqual([])
  })

  it("a trap is an error with its reason, and the next call works", async () => {
    expect(await inPage("/test/", "trap")).toEqual({
      panic: { code: "engine_trap", message: expect.stringContaining("a deliberate panic") as string },
      ofOld: { code: "engine_restarted", message: expect.any(String) as string },
      overflow: { code: "engine_trap", message: expect.any(String) as string },
      after: { clocks: [], deferreds: [] }
    })
  })
})
