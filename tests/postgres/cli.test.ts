/** The command line on a `postgres://` URL: it says what it says of the same store in a file, and never a password. */
import { readFileSync, writeFileSync } from "node:fs"
import pg from "pg"
import { describe, expect, it } from "vitest"
import { damaged, emptyAndAlter, path, run, soundStore, store } from "../cli/harness.js"
import Database from "better-sqlite3"
import { copyInto, derivedRows, freshStore } from "./stores.js"

const password = "geheim-s3cret"

/** A store in a file, and the same one in Postgres behind a URL with a password. */
async function twins(file: string): Promise<{ file: string; url: string; client: pg.Client }> {
  const { client, url } = await freshStore()
  const db = new Database(file, { readonly: true })
  await copyInto(client, db)
  db.close()
  const withPassword = new URL(url)
  withPassword.password = password
  return { file, url: withPassword.href, client }
}

/** What was printed, but for what differs between two runs and between two addresses. */
function comparable(text: string, file: string, url: string): string[] {
  const shown = url.replace(password, "***")
  return text
    .replaceAll(shown, "STORE")
    .replaceAll(file, "STORE")
    .replaceAll(/'STORE'/g, "STORE")
    .split("\n")
    .filter((line) => !/^#\s+(took|compared)\b/.test(line) && !/"(seconds|peakMemoryBytes|tookMs|peakBytes|startedAt)"/.test(line))
    .map((line) => line.replace(/; digests by the (host|module)/, ""))
}

/** Runs a verb on both, and holds the answers against each other. */
function both({ file, url }: { file: string; url: string }, words: (at: string) => string[]): ReturnType<typeof run> {
  const ofFile = run(words(file))
  const ofUrl = run(words(url))
  expect(ofUrl.stdout + ofUrl.stderr).not.toContain(password)
  expect({ status: ofUrl.status, lines: comparable(ofUrl.stdout + ofUrl.stderr, file, url) }).toEqual({
    status: ofFile.status,
    lines: comparable(ofFile.stdout + ofFile.stderr, file, url)
  })
  return ofUrl
}

const asOf = ["--as-of", "1735700000000"]

describe("a URL in place of a file", () => {
  it("is verified, planned for and written to", async () => {
    const made = await twins(store("altered.db", (db) => void emptyAndAlter(db)))
    expect(both(made, (at) => ["verify", at, ...asOf]).status).toBe(1)
    expect(both(made, (at) => ["verify", at, "--run", "acme-000014", ...asOf]).status).toBe(1)
    expect(both(made, (at) => ["plan", at, ...asOf]).status).toBe(1)
    expect(both(made, (at) => ["apply", at, ...asOf]).status).toBe(1)
    expect(run(["plan", made.url, "--out", path("pg-plan.json"), ...asOf]).status).toBe(1)
    expect(readFileSync(path("pg-plan.json"), "utf8")).not.toContain(password)
    const before = await derivedRows(made.client)
    expect(run(["apply", made.url, path("pg-plan.json")]).status).toBe(1)
    expect(await derivedRows(made.client)).toEqual(before)
    const wrote = run(["apply", made.url, path("pg-plan.json"), "--write"])
    expect(wrote).toMatchObject({ status: 0 })
    expect(wrote.stdout).not.toContain(password)
    expect(run(["verify", made.url]).status).toBe(0)
    // The plan is for what the store was.
    expect(run(["apply", made.url, path("pg-plan.json"), "--write"])).toMatchObject({ status: 3, stderr: expect.stringContaining("stale_plan") })
    await made.client.end()
  })

  it("gives a report for machines, which serves as a baseline", async () => {
    const made = await twins(store("sound.db"))
    const report = run(["verify", made.url, "--json"])
    expect(report.status).toBe(0)
    expect(JSON.parse(report.stdout)).toMatchObject({ verdict: "match", file: made.url.replace(password, "***") })
    expect(report.stdout).not.toContain(password)
    await made.client.query("DELETE FROM flows_journal_events WHERE run_id = 'acme-000014' AND seq >= 53")
    writeFileSync(path("pg-baseline.json"), report.stdout)
    const shorter = run(["verify", made.url, "--baseline", path("pg-baseline.json")])
    expect(shorter.status).toBe(3)
    expect(shorter.stdout).toMatch(/^journal_shorter class=refused run=acme-000014 /m)
    await made.client.end()
  })

  it("is captured and exported, to the same bytes", async () => {
    const made = await twins(store("sound.db"))
    const runIds = soundStore().prepare("SELECT run_id FROM flows_runs ORDER BY run_id").pluck().all() as string[]
    for (const runId of runIds.filter((_, place) => place % 9 === 0)) {
      expect(both(made, (at) => ["export", at, `--run=${runId}`]).status).toBe(0)
      expect(both(made, (at) => ["export", at, `--run=${runId}`, "--show-values"]).status).toBe(0)
      expect(both(made, (at) => ["capture", at, `--run=${runId}`]).status).toBe(0)
    }
    expect(both(made, (at) => ["export", at, "nobody"]).status).toBe(2)
    expect(both(made, (at) => ["capture", at, "nobody"]).status).toBe(2)
    expect(both(made, (at) => ["verify", at, "--run", "nobody"]).status).toBe(2)
    await made.client.end()
  })

  it("tells what refuses a rebuild", async () => {
    const made = await twins(damaged("exit-altered").path)
    expect(both(made, (at) => ["verify", at, ...asOf]).status).toBe(3)
    expect(both(made, (at) => ["apply", at, "--write", ...asOf]).status).toBe(3)
    await made.client.end()
  })

  it("is waited for as long as is said, and looked at as long as is said", async () => {
    const made = await twins(store("sound.db"))
    await made.client.query("BEGIN; LOCK TABLE flows_journal_events IN ACCESS EXCLUSIVE MODE")
    const locked = run(["verify", made.url, "--busy-timeout", "100"])
    expect(locked).toMatchObject({ status: 2, stderr: expect.stringContaining("store_busy") })
    await made.client.query("ROLLBACK")
    expect(run(["verify", made.url, "--max-seconds", "0"]).status).toBe(4)
    await made.client.end()
  })

  it.each([
    ["no server", `postgres://me:${password}@127.0.0.1:1/store`],
    ["no such host", `postgresql://me:${password}@no-such-host.invalid/store?sslpassword=${password}`]
  ])("with %s behind it: cannot look, and says so without the password", (_, url) => {
    const ran = run(["verify", url, "--busy-timeout", "3000"])
    expect(ran).toMatchObject({ status: 2, stdout: "" })
    expect(ran.stderr).toMatch(/^journal-fold: store_unreadable: /)
    expect(ran.stderr).not.toContain(password)
  })
})
