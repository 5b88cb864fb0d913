/**
 * A real Postgres for the tests, started once for all test files of a run and stopped when the run is over. Its binaries come with the
 * npm packages, or are Debian's. `JOURNAL_FOLD_POSTGRES=postgres://…` takes a server that is there already, with leave to create
 * databases.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import pg from "pg"

/** The process that the server lives for: the test runner, whose workers these are. */
const runner = process.ppid
const folder = join(tmpdir(), `journal-fold-postgres-${runner}`)

let starting: Promise<string> | undefined

/** The URL of the server's own database. */
export function serverUrl(): Promise<string> {
  const given = process.env["JOURNAL_FOLD_POSTGRES"]
  return given === undefined ? (starting ??= start()) : Promise.resolve(given)
}

async function start(): Promise<string> {
  try {
    mkdirSync(folder)
    // Whoever makes the folder starts the server; it outlives this worker, and ends with the runner.
    const keeper = fileURLToPath(new URL("keeper.mjs", import.meta.url))
    spawn(process.execPath, [keeper, folder, String(runner)], { detached: true, stdio: "ignore" }).unref()
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EEXIST") throw error
  }
  for (let tries = 0; tries < 600; tries++) {
    if (existsSync(join(folder, "ready"))) return readFileSync(join(folder, "ready"), "utf8")
    if (existsSync(join(folder, "failed"))) throw new Error(readFileSync(join(folder, "failed"), "utf8"))
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error("the test server did not start within a minute")
}

let databases = 0

/** A fresh database. Its collation is not that of bytes, as in most real ones, so that whoever relies on it is found out. */
export async function freshDatabase(options = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'", encoding = "UTF8"): Promise<string> {
  const url = new URL(await serverUrl())
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  try {
    databases += 1
    const name = `test_${process.pid}_${databases}_${Math.random().toString(36).slice(2, 8)}`
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' ${options}`)
    url.pathname = `/${name}`
    return url.href
  } finally {
    await client.end()
  }
}
