/**
 * The README is run: every block of code in it, and its tables are the module's own.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { ObserverLogSync } from "journal-fold/observer-log"
import { checkpointStateText, ObserverLogStore } from "journal-fold/sqlite"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const readme = readFileSync(join(root, "README.md"), "utf8")

interface Block {
  readonly language: string
  readonly code: string
  readonly line: number
  readonly store: string | undefined
}

const blocks: Block[] = [...readme.matchAll(/(?:<!-- store: (\w+) -->\n)?```(\w+)\n([\s\S]*?)```/g)].map((match) => ({
  store: match[1],
  language: match[2] as string,
  code: match[3] as string,
  line: readme.slice(0, match.index).split("\n").length
}))

let folder: string

async function demo<Module>(file: string): Promise<Module> {
  return (await import(new URL(`../../.build/demo/${file}`, import.meta.url).href)) as Module
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "journal-fold-readme-"))
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  writeFileSync(join(folder, "package.json"), '{"type":"module"}')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Makes a fresh store.db with drift in it. */
async function makeStore(): Promise<void> {
  const { writeStore } = await demo<typeof import("../../js/demo/engine.js")>("engine.js")
  const { damages } = await demo<typeof import("../../js/demo/damages.js")>("damages.js")
  const path = join(folder, "store.db")
  rmSync(path, { force: true })
  const db = new Database(path)
  db.pragma("synchronous = OFF")
  writeStore(db, { runs: 60, checkpointStateText })
  damages.find(({ name }) => name === "due-time-altered")?.apply(db)
  db.close()
}

function run(command: string, args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: "utf8" })
  return { status, output: stdout + stderr }
}

describe("the README's scripts", () => {
  const scripts = blocks.filter(({ language }) => language === "js")
  it("are there", () => expect(scripts.length).toBeGreaterThanOrEqual(6))

  for (const { code, line } of scripts) {
    it(`line ${line} runs, and prints what its comments say`, { timeout: 30_000 }, async () => {
      await makeStore()
      const file = join(folder, `line-${line}.mjs`)
      writeFileSync(file, code)
      const { status, output } = run(process.execPath, [file])
      expect(output, `status ${status}`).not.toMatch(/Error/)
      expect(status).toBe(0)
      const printed = output.trim().split("\n")
      const comments = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map((match) => match[1] as string)
      // A comment that begins in words says something about the value rather than what it is.
      for (const comment of comments.filter((comment) => !comment.startsWith("what "))) {
        expect(printed).toContain(comment)
      }
    })
  }
})

describe("the README's excerpts", () => {
  it("stand in the example as they are shown, which the tests run", () => {
    const excerpts = blocks.filter(({ language }) => language === "ts")
    const example = ["boot.ts", "engine.ts"].map((file) => readFileSync(join(root, "js/examples/engine", file), "utf8")).join("\n")
    expect(excerpts.length).toBe(2)
    for (const { code, line } of excerpts) expect(example, `line ${line}`).toContain(code.trimEnd())
  })

  it("name a module that is there, with the names it takes the place of", async () => {
    const [, name = ""] = /^\+import .* from "(.*)"$/m.exec(blocks.find(({ language }) => language === "diff")?.code ?? "") ?? []
    const names = Object.keys((await import(name)) as object)
    expect(names).toEqual(expect.arrayContaining([
      "eventTypes", "checkpointKey", "Clock", "Deferred", "initial", "clockKey", "deferredKey", "reduce", "projection", "Encoded", "encode",
      "fromCheckpoint", "FoldIncompleteReason", "Unjoined", "FoldIncomplete", "capture", "checkpointState", "rebuild",
      "verify", "plan", "apply", "checkpointStateText", "checkCheckpoint", "DurableWriter", "layerSql"
    ]))
  })
})

describe("the README's commands", () => {
  const [cli] = blocks.filter(({ store }) => store === "damaged")

  it("of the command line do what they say, one after another", { timeout: 30_000 }, async () => {
    await makeStore()
    const statuses: Record<string, number | null> = {}
    for (const command of (cli?.code ?? "").trim().split("\n")) {
      const [name, ...args] = command.split(" ")
      expect(name).toBe("journal-fold")
      statuses[args.join(" ")] = run(process.execPath, [join(root, "pkg/cli/main.js"), ...args]).status
    }
    expect(statuses).toEqual({
      "verify store.db": 1,
      "plan store.db --out plan.json": 1,
      "apply store.db plan.json": 1,
      "apply store.db plan.json --write": 0,
      "explain clock_differs": 0
    })
    expect(run(process.execPath, [join(root, "pkg/cli/main.js"), "verify", "store.db"]).status).toBe(0)
  })

  it("about a stream do what they say", { timeout: 30_000 }, () => {
    rmSync(join(folder, "observers.db"), { force: true })
    const log = ObserverLogSync.open(new ObserverLogStore(new Database(join(folder, "observers.db")), "room-1"))
    log.track(7, 0)
    log.close()
    const commands = (blocks.find(({ store }) => store === "stream")?.code ?? "").trim().split("\n")
    expect(commands.map((command) => command.split(" ")[1])).toEqual(["status", "verify", "capture"])
    for (const command of commands) {
      const [name, ...args] = command.split(" ")
      expect(name).toBe("journal-fold")
      const { status, output } = run(process.execPath, [join(root, "pkg/cli/main.js"), ...args])
      expect(output, command).toMatch(/room-1|"snapshot"/)
      expect(status, command).toBe(0)
    }
  })

  it("are scripts of the project, or npm's own", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> }
    const commands = blocks
      .filter(({ language, store }) => language === "sh" && store === undefined)
      .flatMap(({ code }) => code.trim().split("\n"))
    expect(commands).toEqual(["npm run demo", "npm test", "npm install journal-fold better-sqlite3"])
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(["demo", "test", "vectors", "build"]))
  })

  it("npm run demo ends well", { timeout: 60_000 }, () => {
    const { status, output } = run(process.execPath, [join(root, ".build/demo/main.js")])
    expect(output).toContain("All as it should be")
    expect(status).toBe(0)
  })
})

describe("the README's tables", () => {
  it("are those of the module", async () => {
    const { errorTable, findingTable } = (await import(new URL("../../scripts/tables.mjs", import.meta.url).href)) as {
      errorTable(): string
      findingTable(): string
    }
    expect(readme).toContain(findingTable())
    expect(readme).toContain(errorTable())
  })
})
