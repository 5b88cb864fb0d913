/** One run as lines of JSON: what is written is what is stored, and whatever reads a store reads it with the same answers. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { damaged, damages, emptyStore, file, linesOf, path, row, run, runJson, soundStore, store } from "./harness.js"

const sound = store("sound.db")
const db = soundStore()
const runIds = db.prepare("SELECT run_id FROM flows_runs ORDER BY run_id").pluck().all() as string[]
/** A run with a floor and entries above it. */
const compacted = db
  .prepare(
    `SELECT run_id FROM flows_journal_checkpoints AS k WHERE compacted_at_ms IS NOT NULL
     AND EXISTS (SELECT 1 FROM flows_journal_events AS j WHERE j.run_id = k.run_id AND j.seq > k.seq) ORDER BY run_id LIMIT 1`
  )
  .pluck()
  .get() as string

type Line = Record<string, Record<string, unknown>>
const linesIn = (text: string): Line[] => text.trimEnd().split("\n").map((line) => JSON.parse(line) as Line)
const exported = (of: string, runId: string, name = "export.ndjson", ...more: string[]): string => {
  const ran = run(["export", of, runId, ...more])
  expect(ran).toMatchObject({ status: 0, stderr: "" })
  return file(name, ran.stdout)
}

describe("export", () => {
  const text = run(["export", sound, compacted]).stdout
  const lines = linesIn(text)
  const kinds = lines.slice(1).map((line) => Object.keys(line)[0])

  it("begins with a header and ends with counts", () => {
    const seq = db.prepare("SELECT max(seq) FROM flows_journal_checkpoints WHERE run_id = ? AND compacted_at_ms IS NOT NULL").pluck().get(compacted)
    expect(lines[0]).toEqual({
      format: "journal-fold/run",
      version: 1,
      fold: "deferred-clock",
      foldVersion: expect.any(String) as string,
      runId: compacted,
      floor: String(seq),
      eventTypes: ["flows.engine.clock-scheduled", "flows.engine.clock-completed", "flows.engine.deferred-completed", "flows.engine.deferred-consumed"],
      values: "digests"
    })
    const count = (kind: string): number => kinds.filter((one) => one === kind).length
    expect(lines.at(-1)).toEqual({
      end: { checkpoints: count("checkpoint"), entries: count("entry"), runs: count("run"), clocks: count("clock"), completions: count("completion") }
    })
  })

  it("has the floor, every entry, the run's row and its rows, in this order, as they are stored", () => {
    const stored = {
      checkpoint: db.prepare("SELECT seq, state_json, compacted_at_ms FROM flows_journal_checkpoints WHERE run_id = ? AND compacted_at_ms IS NOT NULL ORDER BY seq DESC LIMIT 1").raw().all(compacted),
      entry: db.prepare("SELECT seq, event_type, payload_json FROM flows_journal_events WHERE run_id = ? ORDER BY seq").raw().all(compacted),
      clock: db.prepare("SELECT clock_name, deferred_name, due_at_ms, completed_at_ms FROM flows_clock_deadlines WHERE execution_id = ? ORDER BY 1").raw().all(compacted),
      completion: db.prepare("SELECT deferred_name, exit_json, metadata_json, completed_at_ms, consumed_at_ms FROM flows_deferred_completions WHERE execution_id = ? ORDER BY 1").raw().all(compacted)
    }
    const of = (kind: string): Record<string, unknown>[] => lines.flatMap((line) => (line[kind] && kind in line && Object.keys(line)[0] === kind ? [line[kind]] : []))
    const digest = (value: unknown): string | null => (value === null ? null : createHash("sha256").update(String(value)).digest("hex"))
    expect(of("checkpoint").map(({ seq, state, compactedAtMs }) => [seq, state, compactedAtMs])).toEqual(stored.checkpoint.map((it) => [String((it as unknown[])[0]), ...(it as unknown[]).slice(1)]))
    expect(of("entry").map(({ seq, type, payload }) => [seq, type, payload])).toEqual(stored.entry.map((it) => [String((it as unknown[])[0]), ...(it as unknown[]).slice(1)]))
    expect(of("run")).toEqual([{ runId: compacted }])
    expect(of("clock").map(({ clockName, deferredName, dueAtMs, completedAtMs }) => [clockName, deferredName, dueAtMs, completedAtMs])).toEqual(stored.clock)
    expect(of("completion").map(({ deferredName, exitDigest, metadataDigest, completedAtMs, consumedAtMs }) => [deferredName, exitDigest, metadataDigest, completedAtMs, consumedAtMs])).toEqual(
      (stored.completion as unknown[][]).map(([name, exit, metadata, ...stamps]) => [name, digest(exit), digest(metadata), ...stamps])
    )
    expect(kinds).toEqual([...kinds].sort((a, b) => ["checkpoint", "entry", "run", "clock", "completion", "end"].indexOf(String(a)) - ["checkpoint", "entry", "run", "clock", "completion", "end"].indexOf(String(b))))
  })

  it("takes the run as a positional or as --run", () => {
    expect(run(["export", sound, "--run", compacted]).stdout).toBe(text)
    expect(run(["export", sound]).status).toBe(2)
    expect(run(["export", sound, compacted, "--run", compacted]).status).toBe(2)
    expect(run(["export", sound, "nobody"]).stderr).toMatch(/^journal-fold: run_unknown: /)
  })

  it("keeps every digit of a seq and of a payload, and every spelling", () => {
    const payload = '{"flowName":"f","executionId":"big","clockName":"c","deferredName":"d","dueAtMs":5.0,"x":123456789012345678901234567890,"\\u0061":1e400}'
    const big = emptyStore("big.db", (made) => {
      made.exec("INSERT INTO flows_runs VALUES ('big', 'f', 'running', 0, 0)")
      made.prepare("INSERT INTO flows_journal_events VALUES ('big', ?, 'flows.engine.clock-scheduled', ?)").run(9223372036854775807n, payload)
    })
    const entry = linesIn(run(["export", big, "big"]).stdout).find((line) => "entry" in line)
    expect(entry?.["entry"]).toEqual({ seq: "9223372036854775807", type: "flows.engine.clock-scheduled", payload })
    const again = exported(big, "big", "big.ndjson")
    expect(runJson<{ heads: { last: string }[] }>(["verify", again]).document.heads[0]?.last).toBe("9223372036854775807")
  })

  it("writes what is no UTF-8 as base64, and says so", () => {
    const { path: broken, address } = damaged("payload-not-utf8")
    const ran = run(["export", broken, String(address.runId)])
    expect(ran.status).toBe(0)
    expect(ran.stderr).toBe("journal-fold: written as base64, because not UTF-8: 1 text\n")
    const entry = linesIn(ran.stdout).find((line) => line["entry"]?.["seq"] === String(address.seq))?.["entry"]
    const made = new Database(broken, { readonly: true })
    const bytes = made.prepare("SELECT CAST(payload_json AS BLOB) FROM flows_journal_events WHERE run_id = ? AND seq = ?").pluck().get(address.runId, address.seq) as Buffer
    made.close()
    expect(entry?.["payloadBase64"]).toBe(bytes.toString("base64"))
    expect(entry).not.toHaveProperty("payload")
  })

  it("shows values only when told to", () => {
    const shown = linesIn(run(["export", sound, compacted, "--show-values"]).stdout)
    expect(shown[0]?.["values"]).toBe("texts")
    const stored = db.prepare("SELECT deferred_name, exit_json, metadata_json FROM flows_deferred_completions WHERE execution_id = ? ORDER BY 1").raw().all(compacted)
    expect(shown.flatMap(({ completion }) => (completion ? [[completion["deferredName"], completion["exit"], completion["metadata"]]] : []))).toEqual(stored)
  })

  it("has nothing in it that a terminal would not show", () => {
    for (const runId of runIds.slice(0, 10)) {
      expect(run(["export", sound, runId, "--show-values"]).stdout).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/u)
    }
  })
})

describe("an exported run", () => {
  /** A report without the lines that say from what it is and how long it took. */
  const said = (text: string): string =>
    text.split("\n").filter((line) => !/^# journal-fold |^#   (took|next) /.test(line)).join("\n").replace(/in one snapshot|of an exported run/, "…").replace(/^#.*in the store: an exported run can only be looked at\n/m, "")
  const asOf = "2025-01-01T00:20:00Z"

  it.each(runIds.slice(0, 12))("verifies as the run does in its store: %s", (runId) => {
    const of = exported(sound, runId)
    const inStore = run(["verify", sound, "--run", runId, "--as-of", asOf])
    const inFile = run(["verify", of, "--as-of", asOf])
    expect(said(inFile.stdout)).toBe(said(inStore.stdout))
    expect(inFile.status).toBe(inStore.status)
  })

  it.each(damages.filter(({ expects }) => expects.length > 0))("verifies as the run does in its store: $name", ({ name }) => {
    const { path: broken, address } = damaged(name)
    const runId = String(address.runId ?? address.runIds?.[0] ?? address.executionId)
    const of = file(`${name}.ndjson`, run(["export", broken, runId]).stdout)
    for (const options of [["--as-of", asOf], ["--as-of", asOf, "--strict", "--digest", "module"]]) {
      const inStore = run(["verify", broken, "--run", runId, ...options])
      const inFile = run(["verify", of, ...options])
      expect(said(inFile.stdout), options.join(" ")).toBe(said(inStore.stdout))
      expect(inFile.status).toBe(inStore.status)
    }
    const members = (args: string[]): unknown => {
      const { document } = runJson<Record<string, unknown>>(args)
      for (const member of ["file", "source", "elapsedMs", "peakMemoryBytes"]) delete document[member]
      return document
    }
    expect(members(["verify", of, "--as-of", asOf])).toEqual(members(["verify", broken, "--run", runId, "--as-of", asOf]))
  })

  it("captures as the run does in its store, up to any seq", () => {
    const of = exported(sound, compacted)
    const seqs = db.prepare("SELECT seq FROM flows_journal_events WHERE run_id = ? ORDER BY seq").pluck().all(compacted) as number[]
    for (const upTo of [undefined, seqs.at(-1), seqs[0], seqs[Math.floor(seqs.length / 2)], -1]) {
      const bound = upTo === undefined ? [] : [`--up-to=${upTo}`]
      const inStore = run(["capture", sound, compacted, ...bound])
      const inFile = run(["capture", of, ...bound])
      expect([inFile.status, inFile.stdout]).toEqual([inStore.status, inStore.stdout])
    }
    const base = file("base.json", '{"engine": {"step": 7.0}}')
    expect(run(["capture", of, "--checkpoint-state", base]).stdout).toBe(run(["capture", sound, compacted, "--checkpoint-state", base]).stdout)
  })

  it("exports again to the same lines", () => {
    const of = exported(sound, compacted)
    expect(run(["export", of]).stdout).toBe(readFileSync(of, "utf8"))
    expect(run(["export", of, compacted]).stdout).toBe(readFileSync(of, "utf8"))
    const shown = exported(sound, compacted, "shown.ndjson", "--show-values")
    expect(run(["export", shown]).stdout).toBe(readFileSync(of, "utf8"))
    expect(run(["export", shown, "--show-values"]).stdout).toBe(readFileSync(shown, "utf8"))
    expect(run(["export", of, "--show-values"]).stderr).toMatch(/^journal-fold: option_invalid: the exported run holds digests/)
  })

  it("with its values verifies the same", () => {
    const { path: altered, address } = damaged("exit-altered")
    const [plain, shown] = [exported(altered, String(address.executionId), "plain.ndjson"), exported(altered, String(address.executionId), "shown.ndjson", "--show-values")]
    expect(linesOf(run(["verify", shown])).findings).toEqual(linesOf(run(["verify", plain])).findings)
    expect(run(["verify", shown]).status).toBe(3)
  })

  it("has one run, and no other", () => {
    const of = exported(sound, compacted)
    expect(run(["verify", of, "--run", compacted]).status).toBe(0)
    expect(run(["verify", of, "--live"]).status).toBe(0)
    expect(run(["verify", of, "--run", "other"]).stderr).toMatch(/^journal-fold: run_unknown: /)
    expect(run(["capture", of, "other"]).stderr).toMatch(/^journal-fold: run_unknown: /)
    expect(run(["export", of, "other"]).stderr).toMatch(/^journal-fold: run_unknown: /)
    expect(row(run(["verify", of, "--except", file("except.txt", compacted)]), "covered")).toMatch(/^0 runs, /)
    const { path: gone, address } = damaged("run-row-deleted")
    const rowless = exported(gone, String(address.executionId), "rowless.ndjson")
    expect(run(["verify", rowless]).status).toBe(3)
    const live = run(["verify", rowless, "--live"])
    expect(live.status).toBe(0)
    expect(row(live, "covered")).toMatch(/^0 runs, /)
  })

  it("is held against a baseline of its store", () => {
    const baseline = file("baseline.json", run(["verify", sound, "--json"]).stdout)
    const of = exported(sound, compacted)
    expect(run(["verify", of, "--baseline", baseline]).status).toBe(0)
    const lines = readFileSync(of, "utf8").trimEnd().split("\n")
    // A baseline knows the entries of the fold's own types.
    const last = lines.findLastIndex((line) => line.startsWith('{"entry":') && /"type":"flows\.engine\.(clock|deferred)-/.test(line))
    const shorter = lines.toSpliced(last, 1).join("\n").replace(/"entries":(\d+)/, (_, count: string) => `"entries":${Number(count) - 1}`)
    const ran = run(["verify", file("shorter.ndjson", shorter), "--baseline", baseline])
    expect(ran.status).toBe(3)
    expect(linesOf(ran).findings[0]).toMatch(/^journal_shorter class=refused /)
  })

  it("is planned for, and never applied to", () => {
    const { path: altered, address } = damaged("due-time-altered")
    const of = exported(altered, String(address.executionId))
    const planned = run(["plan", of, "--out", path("never.json")])
    expect(planned.status).toBe(1)
    expect(row(planned, "plan")).toMatch(/^not written/)
    expect(row(planned, "apply would")).toMatch(/^write 1 row: change 1 clock .* in the store: an exported run can only be looked at$/)
    for (const more of [[], ["--write"]]) {
      const ran = run(["apply", of, ...more])
      expect(ran).toMatchObject({ status: 2, stdout: "" })
      expect(ran.stderr).toMatch(/^journal-fold: store_not_sqlite: .* is an exported run, and apply needs the store\n/)
    }
  })

  it("tells of a journal that contradicts itself, which no table can hold", () => {
    const lines = readFileSync(exported(sound, compacted), "utf8").trimEnd().split("\n")
    const at = lines.findIndex((line) => line.startsWith('{"entry":') && line.includes("clockName"))
    const twice = lines.toSpliced(at, 0, (lines[at] ?? "").replace("clockName", "clockname"))
    const counted = twice.join("\n").replace(/"entries":(\d+)/, (_, count: string) => `"entries":${Number(count) + 1}`)
    const ran = run(["verify", file("twice.ndjson", counted)])
    expect(ran.status).toBe(3)
    expect(linesOf(ran).findings[0]).toMatch(/^entry_conflict class=refused run=\S+ seq=\d+ /)
  })

  it("may have a byte order mark, CRLF and spaces", () => {
    const text = readFileSync(exported(sound, compacted), "utf8")
    const other = `\ufeff${text.trimEnd().split("\n").map((line) => JSON.stringify(JSON.parse(line), undefined, 1).replaceAll("\n", "")).join("\r\n")}`
    expect(run(["verify", file("other.ndjson", other)]).status).toBe(0)
  })

  describe("is refused, naming the line,", () => {
    const lines = run(["export", sound, compacted]).stdout.trimEnd().split("\n")
    const header = JSON.parse(lines[0] ?? "") as Record<string, unknown>
    const withHeader = (changes: object): string => [JSON.stringify({ ...header, ...changes }), ...lines.slice(1)].join("\n")
    const clock = lines.findIndex((line) => line.startsWith('{"clock":'))
    const entry = lines.findIndex((line) => line.startsWith('{"entry":'))
    const withLine = (at: number, line: string): string => lines.toSpliced(at, 1, line).join("\n")
    const changed = (at: number, change: (members: Record<string, unknown>) => unknown): string => {
      const [[kind = "", members = {}] = []] = Object.entries(JSON.parse(lines[at] ?? "") as Line)
      return withLine(at, JSON.stringify({ [kind]: change(members) }))
    }

    it.each([
      ["of a newer version", withHeader({ version: 2 }), 1, "a newer journal-fold wrote it"],
      ["of no version", withHeader({ version: "one" }), 1, "expected a version"],
      ["of another format", withHeader({ format: "journal-fold/plan" }), 1, "expected the format journal-fold/run"],
      ["of another fold", withHeader({ fold: "observer-log" }), 1, "expected the fold deferred-clock"],
      ["without a run", withHeader({ runId: undefined }), 1, "expected a runId"],
      ["with a floor that is no seq", withHeader({ floor: 12 }), 1, "expected a seq as decimal text"],
      ["with three event types", withHeader({ eventTypes: ["a", "b", "c"] }), 1, "four different eventTypes"],
      ["without its end line", lines.slice(0, -1).join("\n"), lines.length, "it was cut off"],
      ["cut inside a line", lines.join("\n").slice(0, -30), lines.length, "expected a JSON text"],
      ["with only its header", lines[0] ?? "", 2, "expected an end line"],
      ["with a header cut off", (lines[0] ?? "").slice(0, 60), 1, "expected a JSON text"],
      ["with a line behind its end", `${lines.join("\n")}\n{}`, lines.length + 1, "nothing after the end line"],
      ["with an empty line", withLine(2, ""), 3, "found an empty line"],
      ["with a line that is no JSON", withLine(entry, "nix"), entry + 1, "expected a JSON text"],
      ["with a line that is no object", withLine(entry, "[1]"), entry + 1, "expected an object"],
      ["with a kind of its own", withLine(entry, '{"note":{}}'), entry + 1, 'found "note"'],
      ["with a line fewer", lines.toSpliced(clock, 1).join("\n"), lines.length - 1, "clocks, as it says"],
      ["out of order", [lines[0], lines[clock], ...lines.slice(1)].join("\n"), 3, "line after a line of clock"],
      ["with a seq that is a number", changed(entry, (members) => ({ ...members, seq: 5 })), entry + 1, "expected a seq as decimal text"],
      ["with a seq beyond all", changed(entry, (members) => ({ ...members, seq: "9223372036854775808" })), entry + 1, "expected a seq as decimal text"],
      ["with a live payload", changed(entry, (members) => ({ ...members, payload: {} })), entry + 1, "expected a payload as text"],
      ["with base64 that is none", changed(entry, ({ seq, type }) => ({ seq, type, payloadBase64: "*" })), entry + 1, "expected payloadBase64 as base64"],
      ["with a row without a name", changed(clock, (members) => ({ ...members, clockName: 1 })), clock + 1, "expected clockName as text"],
      ["with a row without a value", changed(clock, (members) => ({ ...members, dueAtMs: undefined })), clock + 1, "expected dueAtMs"]
    ])("%s", (_, text, at, message) => {
      const of = file("bad.ndjson", text)
      for (const args of [["verify", of], ["capture", of], ["plan", of]]) {
        const ran = run(args)
        expect(ran, args.join(" ")).toMatchObject({ status: 2, stdout: "" })
        expect(ran.stderr).toMatch(new RegExp(`^journal-fold: export_malformed: line ${at} of the exported run: `))
        expect(ran.stderr).toContain(message)
      }
    })

    it("that is not UTF-8", () => {
      const bytes = Buffer.from(lines.join("\n"))
      bytes[bytes.indexOf("clock-scheduled") + 3] = 0xff
      expect(run(["verify", file("bytes.ndjson", bytes)]).stderr).toMatch(/^journal-fold: export_malformed: line \d+ of the exported run: expected UTF-8/)
    })
  })
})

describe("a run that names another's execution", () => {
  it("is exported with the rows that it names", () => {
    const foreign = emptyStore("foreign.db", (made) => {
      made.exec("INSERT INTO flows_runs VALUES ('a', 'f', 'running', 0, 0), ('b', 'f', 'running', 0, 0)")
      made.prepare("INSERT INTO flows_journal_events VALUES ('a', 0, 'flows.engine.clock-scheduled', ?)").run(
        JSON.stringify({ flowName: "f", executionId: "b", clockName: "c", deferredName: "d", dueAtMs: 5 })
      )
      made.exec("INSERT INTO flows_clock_deadlines VALUES ('f', 'b', 'c', 'd', 6, NULL), ('g', 'a', 'unexplained', 'd', 6, NULL)")
    })
    const of = exported(foreign, "a", "foreign.ndjson")
    expect(linesIn(readFileSync(of, "utf8")).slice(2).map((line) => Object.values(line)[0])).toMatchObject([
      { runId: "a" },
      { runId: "b" },
      { flowName: "f", executionId: "b", clockName: "c" },
      { flowName: "g", executionId: "a", clockName: "unexplained" },
      { entries: 1 }
    ])
    expect(linesOf(run(["verify", of])).findings).toEqual(["clock_differs class=drift run=a flow=f execution=b name=c field=dueAtMs expected=5 found=6"])
    expect(linesOf(run(["verify", foreign, "--run", "a"])).findings).toEqual(linesOf(run(["verify", of])).findings)
  })
})
