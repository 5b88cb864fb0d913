/** The command line on a `postgres://` URL: what it says of a store is what it says of the same store in a file. */
import { once } from "node:events"
import { cpSync, mkdirSync, readFileSync } from "node:fs"
import { spawnSync } from "node:child_process"
import Database from "better-sqlite3"
import pg from "pg"
import { afterAll, describe, expect, it } from "vitest"
import { asOf, damaged, file, folder, main, path, run, runJson, soundStore, start, steady, store, type Ran } from "../cli/harness.js"
import { emptyAndAlter } from "../../js/demo/damages.js"
import { writeLargeStore } from "./large.js"
import { freshDatabase } from "./server.js"
import { copyInto, derivedRows, freshStore } from "./stores.js"

const password = "v3ry-secret"

const open: pg.Client[] = []
afterAll(() => Promise.all(open.map((client) => client.end())))

/** The URL with a password that the server may not ask for. */
function secretUrl(url: string): string {
  const secret = new URL(url)
  if (secret.password === "") secret.password = password
  return secret.href
}

const shownUrl = (url: string): string => {
  const shown = new URL(url)
  shown.password = "***"
  return shown.href
}

interface Twin {
  readonly file: string
  readonly url: string
  readonly client: pg.Client
}

/** The same store as a file and behind a URL. */
async function twin(path: string): Promise<Twin> {
  const db = new Database(path)
  const { client, url } = await freshStore()
  open.push(client)
  await copyInto(client, db)
  db.close()
  return { file: path, url: secretUrl(url), client }
}

let made = 0
const drifted = (): Promise<Twin> => {
  made += 1
  return twin(store(`drifted-${made}.db`, emptyAndAlter))
}

/** What a report says whatever the store is called. */
const said = (text: string, of: string): string =>
  steady(text)
    .replaceAll(of, "STORE")
    .replaceAll(of.slice(folder.length), "STORE")
    .replaceAll(`'STORE'`, "STORE")
    .replace(/"(elapsedMs|peakMemoryBytes)": \d+/g, '"$1": 0')

/** Runs one command on both and expects the same of it; gives what it said of the URL. */
function same({ file: of, url }: Twin, verb: string, ...more: string[]): Ran {
  const inFile = run([verb, of, ...more])
  const behindUrl = run([verb, url, ...more])
  expect(said(behindUrl.stdout, shownUrl(url))).toBe(said(inFile.stdout, of))
  expect(said(behindUrl.stderr, shownUrl(url))).toBe(said(inFile.stderr, of))
  expect(behindUrl.status).toBe(inFile.status)
  expect(behindUrl.stdout + behindUrl.stderr).not.toContain(new URL(url).password)
  return behindUrl
}

describe("every verb says of a URL what it says of a file", async () => {
  const sound = await twin(store("sound.db"))
  const db = soundStore()
  const runIds = db.prepare("SELECT run_id FROM flows_runs ORDER BY run_id").pluck().all() as string[]
  const [runId = ""] = runIds

  it("verify: match, drift, refused", async () => {
    expect(same(sound, "verify", "--as-of", asOf).status).toBe(0)
    const drift = await drifted()
    expect(same(drift, "verify", "--as-of", asOf).status).toBe(1)
    expect(same(drift, "verify", "--as-of", asOf, "--json").status).toBe(1)
    expect(same(drift, "verify", "--as-of", asOf, "--run", runId, "--max-findings", "2").status).toBeLessThanOrEqual(1)
    expect(same(drift, "verify", "--as-of", asOf, "--live", "--strict", "--digest", "module").status).not.toBe(2)
    expect(same(sound, "verify", "--run", "nobody").status).toBe(2)
    const refused = await twin(damaged("payload-cut-short").path)
    expect(same(refused, "verify", "--as-of", asOf).status).toBe(3)
  })

  it("verify, with an earlier report", async () => {
    const baseline = file("baseline.json", run(["verify", sound.url, "--json"]).stdout)
    expect(same(sound, "verify", "--as-of", asOf, "--baseline", baseline).status).toBe(0)
  })

  it("plan and apply: a dry run, a plan that is carried out, a plan that is stale, what needs leave", async () => {
    const drift = await drifted()
    const out = path("plan.json")
    expect(same(drift, "plan", "--as-of", asOf, "--out", out).status).toBe(1)
    expect(readFileSync(out, "utf8")).not.toContain(new URL(drift.url).password)
    const before = await derivedRows(drift.client)
    const dry = same(drift, "apply", out, "--as-of", asOf)
    expect(dry.status).toBe(1)
    expect(dry.stdout).toContain("dry run")
    expect(await derivedRows(drift.client)).toEqual(before)
    const allowed = ["--allow-delete-pending", "--allow-unconsume"]
    expect(same(drift, "apply", "--as-of", asOf, "--write").status).toBe(/needs --allow/.test(dry.stdout) ? 3 : 0)
    expect(same(drift, "apply", out, "--as-of", asOf, "--write", ...allowed).status).toBe(/needs --allow/.test(dry.stdout) ? 0 : 3)
    expect(same(drift, "verify", "--as-of", asOf).status).toBe(0)
    expect(same(drift, "apply", out, "--as-of", asOf, "--write", ...allowed).status).toBe(3)
  })

  it("capture and export", () => {
    for (const id of runIds.slice(0, 4)) {
      expect(same(sound, "capture", id).status).toBe(0)
      expect(same(sound, "export", id).status).toBe(0)
    }
    expect(same(sound, "capture", runId, "--up-to", "3", "--json").status).not.toBe(1)
    expect(same(sound, "export", runId, "--show-values").status).toBe(0)
    expect(same(sound, "export", runId, "--digest", "module").status).toBe(0)
    expect(same(sound, "capture", "nobody").status).toBe(2)
    expect(run(["export", sound.url, "nobody"])).toMatchObject({ status: 2, stdout: "" })
    expect(same(sound, "export").status).toBe(2)
  })

  it("names of a schema of its own", async () => {
    const { client, url } = await twin(sound.file)
    await client.query("CREATE SCHEMA engine; ALTER TABLE flows_journal_events SET SCHEMA engine")
    const names = file("names.json", JSON.stringify({ journal: { schema: "engine" } }))
    expect(run(["verify", url]).stderr).toContain("store_table_missing")
    expect(run(["verify", url, "--names", names]).status).toBe(0)
    expect(run(["capture", url, runId, "--names", names]).stdout).toBe(run(["capture", sound.file, runId]).stdout)
  })
})

describe("what cannot be looked at", () => {
  const nobody = `postgres://me:${password}@127.0.0.1:1/store`
  it.each(["verify", "plan", "apply"])("a server that is not there: %s", (verb) => {
    const ran = run([verb, nobody])
    expect(ran).toMatchObject({ status: 2, stdout: "" })
    expect(ran.stderr).toMatch(/^journal-fold: store_unreadable: .*ECONNREFUSED/)
    expect(ran.stderr).not.toContain(password)
  })

  it("as JSON", () => {
    const { status, document } = runJson<{ error: { code: string } }>(["verify", nobody])
    expect(status).toBe(2)
    expect(document.error.code).toBe("store_unreadable")
    expect(JSON.stringify(document)).not.toContain(password)
  })

  it("without pg", () => {
    const alone = path("alone")
    mkdirSync(alone, { recursive: true })
    cpSync(main.replace(/cli\/main\.js$/, ""), alone, { recursive: true })
    const { status, stderr } = spawnSync(process.execPath, [`${alone}/cli/main.js`, "verify", nobody], { encoding: "utf8", cwd: alone })
    expect(stderr).toMatch(/^journal-fold: store_unreadable: no Postgres driver here: install pg\n/)
    expect(status).toBe(2)
  })
})

describe("a password is never shown", () => {
  it.each([
    `postgres://me:${password}@127.0.0.1:1/store`,
    `postgresql://me:${password}@127.0.0.1:1/store?sslmode=disable`,
    `POSTGRES://me:${password}@127.0.0.1:1/store`,
    `postgres://me:a@${password}@127.0.0.1:1/store`,
    `postgres://me:a/${password}@127.0.0.1:1/store`,
    `postgres://me:1#${password}@127.0.0.1:1/store`,
    `postgres://me:a b${password}@127.0.0.1:1/store`,
    `postgres://me:%zz${password}@127.0.0.1:1/store`,
    `postgres://127.0.0.1:1/store?user=me&password=${password}`
  ])("%s", (url) => {
    const commands = [["verify", url], ["verify", url, "--json"], ["verify", "store.db", url], ["explain", url], ["explain", "x", url], [url], ["apply", url, "no-plan.json", "--write"], ["export", url], ["capture", url, "run", "--up-to", "x"]]
    for (const command of commands) {
      const { status, stdout, stderr } = run(command)
      expect(status).toBe(2)
      expect(stdout + stderr).not.toContain(password)
    }
  })
})

describe("Ctrl-C", async () => {
  const url = await freshDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  open.push(client)
  await writeLargeStore(client, 400, 50)

  it.each(["verify", "apply"])("ends %s with 4 while a statement waits, and the store as it was", async (verb) => {
    const before = await derivedRows(client)
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    await holder.query("BEGIN; LOCK TABLE flows_journal_events IN ACCESS EXCLUSIVE MODE")
    const child = start([verb, url, "--busy-timeout", "60000", ...(verb === "apply" ? ["--write"] : [])])
    let text = ""
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (text += chunk.toString()))
    const waiting = async (): Promise<boolean> =>
      ((await client.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'journal-fold' AND wait_event_type = 'Lock'")).rowCount ?? 0) > 0
    for (let tries = 0; tries < 200 && !(await waiting()); tries++) await new Promise((resolve) => setTimeout(resolve, 50))
    child.kill("SIGINT")
    const [status] = (await once(child, "close")) as [number]
    await holder.query("ROLLBACK")
    await holder.end()
    expect({ status, text }).toMatchObject({ status: 4, text: expect.stringContaining("aborted") as string })
    expect(await derivedRows(client)).toEqual(before)
  })

  it("a limit of time ends with a report, and 4", () => {
    const ran = run(["verify", url, "--max-seconds", "0"])
    expect(ran.status).toBe(4)
    expect(ran.stdout).toContain("PARTIAL")
  })
})
