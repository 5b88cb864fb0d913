/** The package as users get it: packed, installed into small projects of every kind, and run there. */
import { execFile, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { chromium } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bun, deno, newerNode, workerd } from "../runtimes.js"

const root = fileURLToPath(new URL("../../", import.meta.url))
const templates = fileURLToPath(new URL("projects/", import.meta.url))
/** A program of this project's own development dependencies. */
const tool = (name: string): string => join(root, "node_modules/.bin", name)
const digest = createHash("sha256").update("größe").digest("hex")

let folder: string
let tarball: string

/** Runs a program and gives what it printed; fails with all it said if it fails. */
async function run(program: string, args: readonly string[], cwd: string, environment: Record<string, string> = {}): Promise<string> {
  const { VITEST: _, VITEST_POOL_ID: __, NODE_OPTIONS: ___, ...rest } = process.env
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, env: { ...rest, ...environment }, encoding: "utf8" })
    return stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(" ")}\n${stdout}\n${stderr}`, { cause: error })
  }
}

/** Makes a project of a kind with the package installed, and nothing else but links to `tools` of this one. */
async function project(kind: string, tools: readonly string[] = [], name = kind): Promise<string> {
  const place = join(folder, name)
  cpSync(join(templates, kind), place, { recursive: true })
  cpSync(join(templates, "journal.mjs"), join(place, "journal.mjs"))
  writeFileSync(join(place, "package.json"), JSON.stringify({ private: true, type: "module" }))
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--no-package-lock", tarball], place)
  for (const name of tools) symlinkSync(join(root, "node_modules", name), join(place, "node_modules", name))
  return place
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "journal-fold-package-"))
  const printed = await run("npm", ["pack", join(root, "pkg"), "--json", "--pack-destination", folder], folder)
  tarball = join(folder, (JSON.parse(printed) as { filename: string }[])[0]?.filename as string)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the tarball", () => {
  const files = (): string[] =>
    spawnSync("tar", ["-tzf", tarball], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map((name) => name.replace(/^package\//, "")).sort()

  it("has what is compiled from js/ but the demo, these files, and no others", () => {
    const sources = readdirSync(join(root, "js"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts") && !/^(demo|examples)\//.test(name))
      .flatMap((name) => [name.replace(/ts$/, "js"), name.replace(/ts$/, "d.ts")])
    expect(files().filter((name) => !sources.includes(name))).toEqual([
      "LICENSE",
      "README.md",
      "package.json",
      "version.d.ts",
      "version.js",
      "wasm/core/inline.d.ts",
      "wasm/core/inline.js",
      "wasm/core/journal_fold.d.ts",
      "wasm/core/journal_fold.js",
      "wasm/core/journal_fold_bg.wasm"
    ])
    expect(sources.filter((name) => !files().includes(name))).toEqual([])
  })

  it("has every file that its manifest names, and types for every entry", () => {
    const manifest = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8")) as {
      exports: Record<string, string | Record<string, string>>
      imports: Record<string, Record<string, string>>
      bin?: Record<string, string>
    }
    const named = [manifest.exports, manifest.imports, manifest.bin ?? {}]
      .flatMap((record) => Object.values(record as Record<string, string | Record<string, string>>))
      .flatMap((target) => (typeof target === "string" ? [target] : Object.values(target)))
    expect(named.map((name) => name.replace("./", "")).filter((name) => !files().includes(name))).toEqual([])
    for (const [name, target] of Object.entries(manifest.exports)) {
      if (/\.(wasm|json)$/.test(name)) continue
      expect(Object.keys(target), name).toEqual(["types", "default"])
    }
  })

  it("pleases publint", async () => {
    expect(await run(tool("publint"), [tarball, "--strict"], folder)).toContain("All good")
  })

  it("has types that resolve wherever ESM does", async () => {
    // Not by attw's command line: its reader of tarballs keeps the last piece alone of what its unzipper hands it.
    const { checkPackage, Package } = await import("@arethetypeswrong/core")
    const manifest = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8")) as { name: string; version: string }
    const contents = files().map((name) => [`/node_modules/${manifest.name}/${name}`, readFileSync(join(root, "pkg", name))])
    const analysis = await checkPackage(new Package(Object.fromEntries(contents) as Record<string, Uint8Array>, manifest.name, manifest.version))
    if (!analysis.types) throw new Error("no types were found")
    const ofEsm = analysis.problems.filter((problem) => !("resolutionKind" in problem) || ["node16-esm", "bundler"].includes(problem.resolutionKind))
    expect(ofEsm.filter((problem) => !("entrypoint" in problem) || problem.entrypoint !== "./core.wasm")).toEqual([])
  })

  it("has a core module no larger than it has to be", () => {
    const module = readFileSync(join(root, "pkg/wasm/core/journal_fold_bg.wasm"))
    const packed = gzipSync(module, { level: 9 }).byteLength
    console.log(`# core module: ${module.byteLength} bytes, ${packed} gzip`)
    expect(packed).toBeLessThan(coreModuleCeiling)
  })
})

/** What the module weighed when the observer log's fold and protocol came to it, and three in a hundred. The aim is 100 KB. */
const coreModuleCeiling = 212_000

/** What every project prints. */
const expected = { clocks: 3, verdict: "drift", rows: 3, digest, guard: false }

describe("installed", () => {
  it("into a project of ESM, runs", async () => {
    const place = await project("esm")
    expect(JSON.parse(await run(process.execPath, ["main.mjs"], place))).toMatchObject(expected)
  })

  it("into a project of CommonJS, is required", async () => {
    const place = await project("cjs")
    expect(JSON.parse(await run(process.execPath, ["main.cjs"], place))).toMatchObject(expected)
  })

  it("into a project of TypeScript, has types under nodenext and bundler resolution", async () => {
    const place = await project("types")
    await run(tool("tsc"), ["-p", "tsconfig.nodenext.json"], place)
    await run(tool("tsc"), ["-p", "tsconfig.bundler.json"], place)
  })

  it("into a project built by Vite without settings, brings one module and runs in a browser", async () => {
    const place = await project("vite")
    await run(tool("vite"), ["build", "--logLevel", "error"], place)
    const assets = readdirSync(join(place, "dist/assets"))
    expect(assets.map(extname).sort()).toEqual([".js", ".wasm"])
    for (const name of assets) expect(readFileSync(join(place, "dist/assets", name)).byteLength).toBeLessThan(600_000)
    expect(JSON.parse(await titleOf(join(place, "dist")))).toEqual({ clocks: 3, digest })
  })

  it("into a project bundled by esbuild for Node, runs with journal-fold/inline, and without says so", async () => {
    const place = await project("esbuild")
    for (const [name, format] of [["main", "esm"], ["main", "cjs"], ["without", "esm"]] as const) {
      // Out of the project's reach: whatever the bundle does not have is not there.
      const out = join(folder, `bundle-of-${name}.${format === "esm" ? "mjs" : "cjs"}`)
      await run(tool("esbuild"), [`${name}.mjs`, "--bundle", "--platform=node", `--format=${format}`, `--outfile=${out}`, "--log-level=error"], place)
      const printed = await run(process.execPath, [out], folder)
      expect(printed.trim()).toBe(name === "main" ? "3" : "not_initialized true")
    }
  })

  it("into a project tested by Vitest in a simulated browser, runs, picked by Node or by the bundler", async () => {
    const place = await project("vitest-jsdom", ["vitest", "jsdom"])
    await run(tool("vitest"), ["run"], place)
    await run(tool("vitest"), ["run"], place, { INLINE: "1" })
  })
})

const runtimes = {
  Bun: { program: bun, args: [] },
  Deno: { program: deno, args: ["run", "--allow-read"] },
  "a newer Node": { program: newerNode, args: [] }
}

describe.each(Object.entries(runtimes))("in %s", (name, { program, args }) => {
  it.skipIf(program === undefined)("runs from the same files", async () => {
    const place = await project("esm", [], name)
    expect(JSON.parse(await run(program as string, [...args, "main.mjs"], place))).toMatchObject(expected)
  })
})

describe("in workerd", () => {
  it.skipIf(workerd === undefined)("runs with the module imported as one, because bytes may not be compiled there", async () => {
    const place = await project("workerd")
    const settings = ["--bundle", "--format=esm", "--conditions=workerd", "--loader:.wasm=copy", "--asset-names=[name]", "--external:node:*"]
    await run(tool("esbuild"), ["worker.mjs", ...settings, "--outdir=out", "--out-extension:.js=.mjs", "--log-level=error"], place)
    const printed = await run(workerd as string, ["test", "config.capnp"], place)
    const { clocks, verdict, digest } = expected
    expect(printed).toContain(JSON.stringify({ clocks, verdict, digest }))
  })
})

/** Serves a folder and gives the title of its page once it is no longer the first. */
async function titleOf(site: string): Promise<string> {
  const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" }
  const server = createServer((request, response) => {
    const file = join(site, request.url === "/" ? "index.html" : (request.url as string))
    if (!existsSync(file)) response.writeHead(404).end()
    else response.writeHead(200, { "content-type": types[extname(file)] ?? "text/plain" }).end(readFileSync(file))
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
  })
  try {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    await page.waitForFunction('document.title !== "built"')
    return await page.title()
  } finally {
    await browser.close()
    server.close()
  }
}
