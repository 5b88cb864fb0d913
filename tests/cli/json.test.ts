/** `--json`: one document on standard output, whatever happens, with its members in a fixed order. */
import { describe, expect, it } from "vitest"
import { asOf, damaged, emptyAndAlter, file, linesOf, run, runJson, soundStore, store } from "./harness.js"

interface Report {
  readonly verdict: string
  readonly exitCode: number
  readonly counts: Record<string, number>
  readonly findings: readonly Record<string, unknown>[]
  readonly findingCount: number
  readonly heads: readonly { readonly runId: string; readonly last?: string; readonly digest?: string }[]
  readonly stateDigest: { readonly value: string }
  readonly elapsedMs: number
  readonly peakMemoryBytes: number
}

describe("--json", () => {
  const altered = store("altered.db", emptyAndAlter)
  const { status, document } = runJson<Report>(["verify", altered, "--as-of", asOf])

  it("says what the report says", () => {
    const text = run(["verify", altered, "--as-of", asOf])
    expect(status).toBe(1)
    expect(document).toMatchObject({ verdict: "drift", exitCode: 1 })
    expect(document.findings).toHaveLength(linesOf(text).findings.length)
    expect(document.findings.map(({ id }) => id)).toEqual(linesOf(text).findings.map((line) => line.split(" ")[0]))
    expect(text.stdout).toContain(document.stateDigest.value)
    expect(document.elapsedMs).toBeGreaterThan(0)
    expect(document.peakMemoryBytes).toBeGreaterThan(1e6)
  })

  it("has its members in this order", () => {
    expect(Object.keys(document)).toEqual([
      "format", "version", "journalFold", "command", "file", "source", "verdict", "exitCode", "strict", "asOfMs", "coverage", "rebuilt", "counts",
      "plan", "notChecked", "ignored", "notes", "stateDigest", "digestFunction", "elapsedMs", "peakMemoryBytes", "findingCount", "findings", "heads"
    ])
  })

  it("is the same every time but for time and memory, and has an item of a list on a line", () => {
    const steady = (text: string): string => text.replace(/"(elapsedMs|peakMemoryBytes)": \d+/g, '"$1": 0')
    const [first, second] = [1, 2].map(() => steady(run(["verify", altered, "--as-of", asOf, "--json"]).stdout))
    expect(second).toBe(first)
    expect(first?.split("\n").filter((line) => line.startsWith('    {"id":'))).toHaveLength(document.findingCount)
  })

  it("names every run in heads, so that it serves as a baseline", () => {
    const ids = soundStore().prepare("SELECT run_id FROM flows_runs ORDER BY run_id").pluck().all()
    expect(document.heads.map(({ runId }) => runId)).toEqual(ids)
    for (const head of document.heads) expect(head.digest).toMatch(/^[0-9a-f]{32}$/)
    const baseline = file("baseline.json", run(["verify", altered, "--json"]).stdout)
    expect(run(["verify", altered, "--baseline", baseline]).status).toBe(1)
    // Of a plan and of an apply too, and of a scope.
    for (const args of [["plan", altered], ["apply", altered], ["verify", altered, "--run", String(ids[0])]]) {
      const earlier = file("baseline.json", run([...args, "--json"]).stdout)
      expect(run(["verify", altered, "--baseline", earlier]).status, args.join(" ")).toBe(1)
    }
  })

  it("caps findings and never their count", () => {
    const capped = runJson<Report>(["verify", altered, "--max-findings", "2"]).document
    expect(capped.findings).toEqual(document.findings.slice(0, 2))
    expect(capped.findingCount).toBe(document.findingCount)
    expect(capped.counts).toEqual(document.counts)
  })

  it("leaves standard error alone, and standard output clean", () => {
    for (const args of [["verify", altered], ["plan", altered], ["apply", altered], ["verify", "nix.db"], ["explain", "nix"], ["frob"], ["verify", altered, "--frob"]]) {
      const ran = run([...args, "--json"])
      expect(ran.stderr, args.join(" ")).toBe("")
      expect(() => JSON.parse(ran.stdout) as unknown, args.join(" ")).not.toThrow()
      expect(ran.stdout.endsWith("\n}\n")).toBe(true)
    }
  })

  it("has the rows of a plan", () => {
    const { document: planned } = runJson<{ plan: { rows: number }; pages: { table: string; op: string; rows: unknown[][] }[] }>(["plan", altered])
    expect(planned.pages.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(planned.plan.rows)
    expect(planned.pages[0]).toMatchObject({ table: "clocks", op: "update" })
  })

  it("has an error's code, message and details", () => {
    const { status, document } = runJson<{ error: object }>(["verify", altered, "--run", "nobody"])
    expect(status).toBe(2)
    expect(document).toEqual({ error: { code: "run_unknown", message: expect.stringContaining("nobody") as string, runId: "nobody" } })
  })

  it("has the references that do not join when a fold is refused", () => {
    const { path, address } = damaged("checkpoint-without-fold")
    const { status, document } = runJson<{ error: object }>(["capture", path, String(address.runId)])
    expect(status).toBe(3)
    expect(document.error).toMatchObject({ code: "fold_incomplete", unjoined: [{ reason: "checkpoint_missing", executionId: address.runId }] })
  })

  it("tells of a capture", () => {
    const sound = store("sound.db")
    const runId = "acme-000001"
    const { document } = runJson<{ state: object; runId: string; stateDigest: object }>(["capture", sound, runId])
    expect(JSON.stringify(document.state)).toBe(run(["capture", sound, runId]).stdout.trimEnd())
    expect(document.runId).toBe(runId)
  })
})
