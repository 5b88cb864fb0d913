/** What only a terminal gets, what a reader that goes away means, and that a report of any length goes out in pieces. */
import { spawn, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { clocksWithoutRows, damaged, folder, linesOf, main, path, row, run, runJson, script, start, store } from "./harness.js"

const escape = "\u001b["

/** Runs the command on a pseudo terminal of 80 columns and gives what it shows. */
function onTerminal(args: readonly string[], env: Record<string, string> = {}): Promise<{ status: number | null; shown: string }> {
  return terminal(args, env).ended
}

function terminal(args: readonly string[], env: Record<string, string> = {}) {
  const words = [process.execPath, main, ...args].map((word) => `'${word}'`).join(" ")
  const { NO_COLOR: _, FORCE_COLOR: __, ...rest } = process.env
  // exec, because Ctrl-C reaches a shell too that waits, and some shells then end with 130 whatever the command does.
  const child = spawn(script ?? "", ["-qec", `stty cols 80; exec ${words}`, "/dev/null"], { cwd: folder, env: { ...rest, TERM: "xterm", ...env } })
  let shown = ""
  child.stdout.on("data", (data: Buffer) => (shown += data.toString()))
  const ended = new Promise<{ status: number | null; shown: string }>((resolve) => child.on("close", (status) => resolve({ status, shown })))
  const see = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => (shown.includes(text) ? resolve() : undefined)
      child.stdout.on("data", look)
      child.on("close", () => (shown.includes(text) ? resolve() : reject(new Error(`never seen: ${text} in ${shown}`))))
      look()
    })
  return { ended, see, type: (keys: string) => child.stdin.write(keys) }
}

// Without `script` (util-linux) there is no pseudo terminal here, so what only a terminal gets cannot be seen.
describe.skipIf(script === undefined)("on a terminal", () => {
  it("there is colour, unless somebody asked for none", async () => {
    const { path: drifted } = damaged("due-time-altered")
    expect((await onTerminal(["verify", drifted])).shown).toContain(`${escape}1m${escape}33mDRIFT`)
    for (const [args, env] of [[["--no-color"], {}], [[], { NO_COLOR: "1" }], [[], { TERM: "dumb" }], [[], { FORCE_COLOR: "0" }], [["--no-color"], { FORCE_COLOR: "1" }]] as const) {
      const { shown } = await onTerminal(["verify", drifted, ...args], { ...env })
      // What is left is the progress line's erasure.
      expect(shown.replaceAll(`${escape}K`, ""), JSON.stringify([args, env])).not.toContain(escape)
    }
  })

  it("there is progress, which is gone at the end", async () => {
    const { status, shown } = await onTerminal(["verify", clocksWithoutRows("progress.db", 20, 1000), "--max-findings", "0"])
    expect(status).toBe(1)
    expect(shown).toMatch(/\r[\d,]+ of 20,000 entries, \d+%, [\d,]+ a second, [\d.]+ s left\u001b\[K/)
    expect(shown).toContain("\r20,000 of 20,000 entries, comparing rows")
    const afterwards = shown.slice(shown.lastIndexOf(`\r${escape}K`))
    expect(afterwards).toContain("# journal-fold ")
    expect(afterwards).not.toContain("a second")
  })

  it("no line of progress is wider than the terminal", async () => {
    const { shown } = await onTerminal(["verify", path("progress.db"), "--max-findings", "0", "--no-color"])
    for (const line of shown.slice(0, shown.indexOf("# journal-fold")).split("\r")) expect(line.replaceAll(/\u001b\[K|\n/g, "").length).toBeLessThan(80)
  })

  it("Ctrl-C stops, and what was found so far is reported", async () => {
    const large = clocksWithoutRows("large.db", 400, 1000)
    const command = terminal(["verify", large, "--max-findings", "1", "--no-color"])
    await command.see(" of 400,000 entries")
    command.type("\u0003")
    const { status, shown } = await command.ended
    expect(status).toBe(4)
    expect(shown).toContain("# PARTIAL  ")
    expect(shown).toContain("stopped before the end")
    expect(shown).toContain("whatever comes after what is covered")
    expect(shown).toContain("class=drift")
  })

  it("Ctrl-C while applying leaves everything as it was", async () => {
    const large = path("large.db")
    const command = terminal(["apply", large, "--write", "--max-findings", "1", "--no-color"])
    await command.see(" of 400,000 entries")
    command.type("\u0003")
    const { status, shown } = await command.ended
    expect(status).toBe(4)
    expect(shown).toContain("nothing: everything was rolled back")
    const db = new Database(large, { readonly: true })
    expect(db.prepare("SELECT count(*) FROM flows_clock_deadlines").pluck().get()).toBe(0)
    db.close()
  })
})

describe("without a terminal", () => {
  it("there is neither colour nor progress", () => {
    const ran = run(["verify", damaged("due-time-altered").path])
    expect(ran.stderr).toBe("")
    expect(ran.stdout).not.toContain("\u001b")
  })

  it("there is colour when it is forced", () => {
    const { path: drifted } = damaged("due-time-altered")
    expect(run(["verify", drifted], { env: { FORCE_COLOR: "1" } }).stdout).toContain(`${escape}33mclock_differs${escape}39m class=drift`)
    expect(run(["verify", drifted], { env: { FORCE_COLOR: "1", NO_COLOR: "1" } }).stdout).toContain(escape)
    expect(run(["verify", drifted, "--json"], { env: { FORCE_COLOR: "1" } }).stdout).not.toContain("\u001b")
  })
})

describe("a limit of time", () => {
  it("ends with 4 and a partial report", () => {
    const large = clocksWithoutRows("limited.db", 20, 1000)
    const ran = run(["verify", large, "--max-seconds", "0", "--max-findings", "0"])
    expect(ran.status).toBe(4)
    expect(ran.stdout).toMatch(/^# PARTIAL {2}.*stopped before the end, after 0 s$/m)
    expect(row(ran, "apply would")).toBe("not known, since not everything was looked at")
    expect(row(ran, "unexplained")).toBe("not judged, since not everything was looked at")
    expect(row(ran, "next")).toMatch(/^journal-fold verify \S+$/)
    const { status, document } = runJson<Record<string, unknown>>(["verify", large, "--max-seconds", "0", "--max-findings", "0"])
    expect(status).toBe(4)
    expect(document).toMatchObject({ verdict: "partial", exitCode: 4, stoppedBy: "limit" })
    const plan = run(["plan", large, "--max-seconds", "0", "--out", path("partial.json"), "--max-findings", "0"])
    expect(plan.status).toBe(4)
    expect(existsSync(path("partial.json"))).toBe(false)
  })

  it("that is not reached changes nothing", () => {
    expect(run(["verify", store("sound.db"), "--max-seconds", "1000"]).status).toBe(0)
  })
})

describe("a reader that goes away", () => {
  const large = clocksWithoutRows("many.db", 100, 1000)

  it.each([["verify"], ["verify", "--json"], ["plan"]])("ends the command quietly, with 141: %s", async (verb, ...more) => {
    const child = start([verb, large, ...more])
    let complaint = ""
    child.stderr?.on("data", (data: Buffer) => (complaint += data.toString()))
    child.stdout?.once("data", () => child.stdout?.destroy())
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => child.on("close", (...how) => resolve(how)))
    expect([code, signal, complaint]).toEqual([141, null, ""])
  })

  it("does not undo what was written", () => {
    const { path: drifted } = damaged("due-time-altered")
    // `true` reads nothing at all.
    spawnSync("/bin/sh", ["-c", `'${process.execPath}' '${main}' apply '${drifted}' --write | true`])
    expect(run(["verify", drifted]).status).toBe(0)
  })

  it.skipIf(!existsSync("/dev/full"))("is not a disk that is full, which is an error", () => {
    const { status, stderr } = spawnSync("/bin/sh", ["-c", `'${process.execPath}' '${main}' verify '${large}' > /dev/full`], { encoding: "utf8" })
    expect(status).toBe(2)
    expect(stderr).toMatch(/^journal-fold: ENOSPC: /)
  })
})

describe("a report of 100,000 findings", () => {
  const large = path("many.db")
  // Node's own heap holds the findings, and would not hold a text of all of them besides.
  const nodeArgs = ["--max-old-space-size=160"]

  it("goes out in pieces, whole and in order", () => {
    const ran = run(["verify", large], { nodeArgs })
    expect(ran.status).toBe(1)
    const { findings } = linesOf(ran)
    expect(findings).toHaveLength(100_000)
    expect(row(ran, "findings")).toBe("100,000 clock_missing drift apply inserts it")
    const runs = findings.map((line) => / run=(\S+)/.exec(line)?.[1] ?? "")
    expect(runs).toEqual([...runs].sort())
  })

  it("goes out in pieces as JSON too", () => {
    const { status, stdout } = run(["verify", large, "--json"], { nodeArgs })
    expect(status).toBe(1)
    expect((JSON.parse(stdout) as { findings: unknown[] }).findings).toHaveLength(100_000)
  })
})
