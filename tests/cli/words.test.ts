/** Help, version, explain: every word that a report may use is known, and nothing is wider than a terminal. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { emptyStore, folder, run, runJson } from "./harness.js"

const verbs = ["verify", "plan", "apply", "capture", "status", "export", "explain"]

interface Words {
  readonly words: readonly { readonly id: string; readonly kind: string; readonly meaning: string; readonly advice: string }[]
  readonly error?: { readonly code: string }
}

describe("help", () => {
  it("of the whole names every verb and every exit code", () => {
    const ran = run(["--help"])
    expect(ran).toMatchObject({ status: 0, stderr: "" })
    for (const verb of verbs) expect(ran.stdout).toContain(`  journal-fold ${verb} `)
    for (const code of [0, 1, 2, 3, 4]) expect(ran.stdout).toMatch(new RegExp(`^  ${code}  `, "m"))
    expect(run(["-h"]).stdout).toBe(ran.stdout)
    expect(run(["help"]).stdout).toBe(ran.stdout)
  })

  it.each(verbs)("of %s says what it takes", (verb) => {
    const ran = run([verb, "--help"])
    expect(ran).toMatchObject({ status: 0, stderr: "" })
    expect(ran.stdout).toMatch(new RegExp(`^journal-fold ${verb} \\S+.*: `))
    expect(run([verb, "-h"]).stdout).toBe(ran.stdout)
    expect(run(["help", verb]).stdout).toBe(ran.stdout)
    for (const line of ran.stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(80)
  })

  it("of verify names every option that scopes or judges", () => {
    const { stdout } = run(["verify", "--help"])
    for (const option of ["run ID", "runs-from LIST", "live", "except LIST", "json", "max-findings N", "strict", "baseline REPORT", "max-unexplained N", "names FILE", "as-of TIME", "digest WHO", "busy-timeout MS", "no-color", "fold NAME", "stream NAME"]) {
      expect(stdout).toMatch(new RegExp(`^  --${option}\\s`, "m"))
    }
  })

  it("comes on standard error, with 2, when nothing is asked for", () => {
    expect(run([])).toMatchObject({ status: 2, stdout: "", stderr: run(["--help"]).stdout })
  })
})

describe("--version", () => {
  it("is the package's", () => {
    const { version } = JSON.parse(readFileSync(new URL("../../pkg/package.json", import.meta.url), "utf8")) as { version: string }
    expect(run(["--version"])).toMatchObject({ status: 0, stdout: `journal-fold ${version}\n`, stderr: "" })
  })
})

describe("explain", () => {
  const { document } = runJson<Words>(["explain"])
  const idsOf = (kind: string): string[] => document.words.filter((word) => word.kind.startsWith(kind)).map(({ id }) => id)

  it("says what a finding means and what to do", () => {
    expect(run(["explain", "clock_differs"])).toMatchObject({
      status: 0,
      stderr: "",
      stdout: `clock_differs: finding of class drift
  what it says  a clock's row says something else than the journal
  what to do    apply changes it
`
    })
  })

  it("says both when a word is a finding and an error", () => {
    const { stdout } = run(["explain", "payload_not_json"])
    expect(stdout).toContain("payload_not_json: finding of class refused\n")
    expect(stdout).toContain("\n\npayload_not_json: error\n")
  })

  it.each(["0", "1", "2", "3", "4", "141", "stale_plan", "already_completed", "checkpoint_beyond_head", "runs_unfolded", "drift", "partial"])("knows %s", (id) => {
    const ran = run(["explain", id])
    expect(ran.status).toBe(0)
    expect(ran.stdout.startsWith(`${id}: `)).toBe(true)
  })

  it("of an unknown word says so, lists all, and ends with 2", () => {
    const ran = run(["explain", "nix"])
    expect(ran.status).toBe(2)
    expect(ran.stderr).toBe('journal-fold: nothing is known of "nix"; these are known\n')
    for (const { id } of document.words) expect(ran.stdout).toContain(`  ${id} `)
    const json = runJson<Words>(["explain", "nix"])
    expect(json.status).toBe(2)
    expect(json.document.error).toMatchObject({ code: "argument_invalid", found: "nix" })
  })

  it("has everything that the module's tables have, each with something to do", async () => {
    const { call } = (await import(new URL("../../pkg/core/engine.js", import.meta.url).href)) as {
      call<Result>(work: (module: { finding_ids(): string; error_codes(): string }) => Result): Result
    }
    expect(idsOf("finding")).toEqual(Object.keys(JSON.parse(call((module) => module.finding_ids())) as object))
    expect(idsOf("error")).toEqual(Object.keys(JSON.parse(call((module) => module.error_codes())) as object))
    // A new error needs a word of advice in js/cli/knowledge.ts.
    expect(document.words.filter(({ advice }) => advice === "").map(({ id }) => id)).toEqual([])
  })

  it("is no wider than a terminal", () => {
    for (const line of run(["explain"]).stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(80)
  })

  it("says of ignored entries what the module says", () => {
    const store = emptyStore("ignored.db", (db) => {
      db.exec("INSERT INTO flows_runs VALUES ('r', 'f', 'running', 0, 0)")
      const address = { flowName: "f", executionId: "r" }
      const clock = { ...address, clockName: "c", deferredName: "d", dueAtMs: 1 }
      const deferred = { ...address, deferredName: "d" }
      const entries: [string, unknown][] = [
        ["clock-scheduled", clock],
        ["clock-scheduled", clock],
        ["clock-scheduled", []],
        ["clock-scheduled", { ...clock, dueAtMs: -1 }],
        ["clock-completed", { ...clock, completedAtMs: 1 }],
        ["clock-completed", { ...clock, completedAtMs: 1 }],
        ["clock-completed", { ...clock, clockName: "other", completedAtMs: 1 }],
        ["deferred-consumed", { ...deferred, consumedAtMs: 1 }],
        ["deferred-completed", { ...deferred, completedAtMs: 1 }],
        ["deferred-consumed", { ...deferred, consumedAtMs: 1 }],
        ["deferred-consumed", { ...deferred, consumedAtMs: 1 }],
        ["other", {}]
      ]
      entries.forEach(([type, payload], seq) =>
        db.prepare("INSERT INTO flows_journal_events VALUES ('r', ?, ?, ?)").run(seq, `flows.engine.${type}`, JSON.stringify(payload))
      )
    })
    const { document: report } = runJson<{ ignored: { reason: string; meaning: string }[] }>(["verify", store])
    expect(report.ignored.length).toBeGreaterThanOrEqual(8)
    const known = new Map(document.words.filter(({ kind }) => kind === "ignored entry").map(({ id, meaning }) => [id, meaning]))
    for (const { reason, meaning } of report.ignored) expect(known.get(reason), reason).toBe(meaning)
  })
})

describe("a command line that is not understood", () => {
  it.each([
    [["frob"], "argument_invalid", "expected one of verify, plan, apply, capture, status, export, explain"],
    [["verify"], "argument_invalid", "verify needs FILE"],
    [["verify", "a", "b"], "argument_invalid", 'found one more: "b"'],
    [["verify", "a", "--frob"], "option_unknown", "--frob"],
    [["verify", "a", "--write"], "option_unknown", "--write"],
    [["verify", "a", "--run"], "option_invalid", "--run"],
    [["verify", "a", "--strict=yes"], "option_invalid", "--strict"],
    [["verify", "a", "--max-findings", "x"], "option_invalid", "--max-findings: expected a whole number"],
    [["capture", "a", "b", "--run", "c"], "argument_invalid", "one run"],
    [["capture", "a", "b", "--up-to", "x"], "option_invalid", "--up-to: expected a seq"]
  ])("%j ends with 2 and says what would have been right", (args, code, message) => {
    const ran = run(args)
    expect(ran).toMatchObject({ status: 2, stdout: "" })
    expect(ran.stderr).toMatch(new RegExp(`^journal-fold: ${code}: `))
    expect(ran.stderr).toContain(message)
    expect(ran.stderr).toMatch(/\n {2}what to do: see journal-fold (\w+ )?--help\n$/)
    const json = runJson<{ error: { code: string } }>(args.filter((arg) => arg !== ""), { cwd: folder })
    expect(json.status).toBe(2)
    expect(json.document.error.code).toBe(code)
  })
})
