/** What the tests of the command line share: stores as the example engine writes them, and the built command as a child process. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import Database from "better-sqlite3"
import { checkpointStateText } from "journal-fold/sqlite"
import { afterAll, vi } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The command, as the build left it. */
export const main = join(root, "pkg/cli/main.js")

async function demo<Module>(file: string): Promise<Module> {
  return (await import(new URL(`../../.build/demo/${file}`, import.meta.url).href)) as Module
}

const { writeStore } = await demo<typeof import("../../js/demo/engine.js")>("engine.js")
const { createTables } = await demo<typeof import("../../js/demo/tables.js")>("tables.js")
export const { damages, emptyAndAlter } = await demo<typeof import("../../js/demo/damages.js")>("damages.js")
export { createTables }

// A test starts the command several times, on machines that may have other things to do.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** A folder of this test file's own. */
export const folder = mkdtempSync(join(tmpdir(), "journal-fold-cli-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

export function path(name: string): string {
  return join(folder, name)
}

/** Writes a text beside the stores and gives its path. */
export function file(name: string, content: string | Uint8Array): string {
  writeFileSync(path(name), content)
  return path(name)
}

let sound: Buffer | undefined

/** A sound store's bytes: 60 runs, some of them compacted. */
export function soundBytes(): Buffer {
  if (sound === undefined) {
    const db = new Database(":memory:")
    writeStore(db, { runs: 60, checkpointStateText })
    sound = db.serialize()
    db.close()
  }
  return sound
}

/** The sound store in memory. */
export function soundStore(): Database.Database {
  return new Database(soundBytes())
}

/** A store of its own in a file: the sound one after `change`. */
export function store(name: string, change: (db: Database.Database) => void = () => {}): string {
  const db = soundStore()
  change(db)
  file(name, db.serialize())
  db.close()
  return path(name)
}

/** The sound store after a damage. */
export function damaged(name: string): { path: string; address: ReturnType<(typeof damages)[number]["apply"]>["address"] } {
  const damage = damages.find((one) => one.name === name)
  if (damage === undefined) throw new Error(`no damage ${name}`)
  let address = {}
  return { path: store(`${name}.db`, (db) => ({ address } = damage.apply(db))), address }
}

/** Tables without a row. */
export function emptyStore(name: string, change: (db: Database.Database) => void = () => {}): string {
  rmSync(path(name), { force: true })
  const db = new Database(path(name))
  db.pragma("synchronous = OFF")
  createTables(db)
  change(db)
  db.close()
  return path(name)
}

/** A store in which `runs` runs record `each` clocks each, none of which has a row. */
export function clocksWithoutRows(name: string, runs: number, each: number): string {
  return emptyStore(name, (db) =>
    db.exec(`
      INSERT INTO flows_runs
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${runs - 1})
      SELECT printf('run-%06d', i), 'flow', 'running', 0, 0 FROM n;
      INSERT INTO flows_journal_events
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${runs * each - 1})
      SELECT printf('run-%06d', i / ${each}), i % ${each}, 'flows.engine.clock-scheduled',
        json_object('flowName', 'flow', 'executionId', printf('run-%06d', i / ${each}), 'clockName', 'clock/' || i, 'deferredName', 'd',
          'dueAtMs', 1735689600000 + i) FROM n;`)
  )
}

export interface Ran {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly input?: string
  readonly cwd?: string
  readonly nodeArgs?: readonly string[]
}

const env = { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined }

/** Runs the command to its end. */
export function run(args: readonly string[], options: RunOptions = {}): Ran {
  const { status, signal, stdout, stderr, error } = spawnSync(process.execPath, [...(options.nodeArgs ?? []), main, ...args], {
    cwd: options.cwd ?? folder,
    encoding: "utf8",
    input: options.input ?? "",
    maxBuffer: 1 << 28,
    env: { ...env, ...options.env }
  })
  if (error !== undefined) throw error
  return { status, signal, stdout, stderr }
}

/** Starts the command. */
export function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [main, ...args], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] })
}

/** Runs the command and reads the JSON document that it prints. */
export function runJson<Document = Record<string, never>>(args: readonly string[], options?: RunOptions): { status: number | null; document: Document } {
  const { status, stdout, stderr } = run([...args, "--json"], options)
  try {
    return { status, document: JSON.parse(stdout) as Document }
  } catch {
    throw new Error(`no JSON document: ${stdout}${stderr}`)
  }
}

/** Lines of findings, and the others. */
export function linesOf({ stdout }: Ran): { findings: string[]; notes: string[] } {
  const lines = stdout.split("\n").slice(0, -1)
  return { findings: lines.filter((line) => !line.startsWith("#")), notes: lines.filter((line) => line.startsWith("#")) }
}

/** A report without what differs from one run to the next. */
export function steady(report: string): string {
  return report.replace(/^(#   took +).*$/m, "$1…").replaceAll(folder, "")
}

/** The text that stands beside a label, lines joined. */
export function row({ stdout }: Ran, label: string): string {
  const lines = stdout.split("\n")
  const first = lines.findIndex((line) => line.startsWith(`#   ${label}`))
  if (first < 0) return ""
  let last = first + 1
  while (lines[last]?.startsWith(`#   ${" ".repeat(12)}`) === true) last += 1
  return lines.slice(first, last).map((line) => line.slice(17).trim()).join(" ").replace(/ +/g, " ")
}

/** A pseudo terminal, where there is one. */
export const script = ["/usr/bin/script", "/bin/script"].find((candidate) => existsSync(candidate))

/** A time by which half of the example's pending clocks are overdue. */
export const asOf = "2025-01-01T00:20:00Z"
