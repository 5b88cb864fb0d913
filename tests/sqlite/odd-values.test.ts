/** Values that no engine should have written and that stores hold all the same: other types, broken texts, the largest numbers and payloads. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { describe, expect, it, vi } from "vitest"
import { capture, plan, rebuild, verify } from "journal-fold/sqlite"
import { codeOf, completed, copyOf, derivedRows, emptyStore, errorOf, fired, scheduled, sha256, short, storyOf, type Db } from "./stores.js"

vi.setConfig({ testTimeout: 60_000 })

const text = (hex: string): string => `CAST(x'${hex}' AS TEXT)`
const clockRow = (db: Db, name: string, flow = "'F'", execution = "'r'"): void =>
  void db.exec(`INSERT INTO flows_clock_deadlines VALUES (${flow}, ${execution}, ${name}, 'd', 1, NULL)`)

describe("names", () => {
  const odd = ["a\0b", "\0", "\u0001\u001f\u007f", "\u2028 \u2029", '"\\/,\n,[]{}', "  ", "é", "e\u0301", "￾￿", "👨‍👩‍👧", "\ufeffbom", "%_*?", "'; --", "x".repeat(70_000)]
  it.each(["UTF-8", "UTF-16le"])("of any characters are told apart, read and written, in %s", (encoding) => {
    // SQLite brings no U+FFFE and U+FFFF into UTF-16.
    const names = odd.filter((name) => encoding === "UTF-8" || !/[\ufffe\uffff]/.test(name))
    const db = emptyStore({ encoding })
    const story = storyOf(db)
    for (const name of names) {
      story.run(name).clock(name, name, { flowName: name, deferredName: name, dueAtMs: 5 }).completion(name, name, { flowName: name, exit: name, metadata: name })
      for (const other of names.slice(0, 5)) story.clock(name, other, { flowName: "F" }).completion(name, other, { flowName: "F" })
    }
    const before = verify(db, { heads: true })
    expect(before).toMatchObject({ verdict: "match", findings: [], notChecked: [], coverage: { runs: names.length } })
    expect(before.heads?.map(({ runId }) => Buffer.from(runId))).toEqual(names.map((name) => Buffer.from(name)).sort(Buffer.compare))
    for (const name of names) expect(capture(db, name, 99).clocks[0]).toMatchObject({ flowName: name, clockName: name })
    expect(verify(db, { runs: names, heads: true }).heads).toEqual(before.heads)

    const rows = derivedRows(db)
    db.exec("DELETE FROM flows_clock_deadlines WHERE rowid % 3 = 0; UPDATE flows_clock_deadlines SET due_at_ms = 9; UPDATE flows_deferred_completions SET consumed_at_ms = 1")
    clockRow(db, "'stray'", "'nobody'", `'x' || char(0) || 'y'`)
    expect(short(verify(db).findings)).toContain("clock_unexpected x\0y/stray")
    rebuild(db, { allowDeletePending: true, allowUnconsume: true })
    expect(derivedRows(db)).toBe(rows)
  })

  it("in UTF-16 are ordered by their UTF-8 bytes, not as the store would", () => {
    for (const encoding of ["UTF-16le", "UTF-16be"]) {
      const db = emptyStore({ encoding })
      const story = storyOf(db)
      // By UTF-16 units 👾 (d83d …) stands before ～ (ff5e); little-endian bytes have an order of their own.
      const ids = ["a", "b", "é", "ā", "署", "～", "👾", "👿"]
      for (const id of ids.toReversed()) story.run(id).clock(id, "c")
      const { verdict, heads } = verify(db, { heads: true })
      expect([verdict, heads?.map(({ runId }) => runId)]).toEqual(["match", ids])
      expect(verify(db, { heads: true, runs: "live" }).heads).toEqual(heads)
    }
  })

  it("that are no UTF-8 are another name than U+FFFD, which a driver makes of them", () => {
    const db = emptyStore()
    storyOf(db).run("r").clock("r", "\ufffd", { row: false }).completion("r", "\ufffd", { row: false }).clock("r", "c")
    clockRow(db, text("ff"))
    clockRow(db, text("eda080"))
    db.exec(`INSERT INTO flows_deferred_completions VALUES ('F', 'r', ${text("ff")}, '"done"', NULL, 120, NULL)`)
    const { findings, notChecked } = verify(db)
    expect(short(findings)).toEqual(["row_missing r/\ufffd", "clock_missing r/\ufffd"])
    expect(notChecked).toMatchObject([{ what: "rows_unreadable", count: 3 }])
  })

  it("that are no UTF-8, in flow or execution, end no scan early and send none round for ever", () => {
    const db = emptyStore()
    storyOf(db).run("r").clock("r", "c")
    for (const bytes of ["ff", "c3", "eda080", "6100ff"]) {
      clockRow(db, "'c'", text(bytes))
      clockRow(db, "'c'", "'F'", text(bytes))
      db.exec(`INSERT INTO flows_deferred_completions VALUES (${text(bytes)}, 'x', 'd', '1', NULL, 1, NULL), (${text(bytes)}, 'x', 'e', '1', NULL, 1, NULL)`)
    }
    clockRow(db, "'stray'", "'Z'", "'z'")
    const { findings, notChecked, rebuilt } = verify(db)
    expect(short(findings)).toEqual(["clock_unexpected z/stray"])
    expect(notChecked).toMatchObject([{ what: "rows_unreadable", count: 16 }])
    expect(rebuilt.unexplained).toBe(0)
  })

  it("of the wrong type are no texts that look alike", () => {
    const db = emptyStore({ text: "" })
    storyOf(db).run("r").clock("r", "5", { row: false }).clock("r", "c", { row: false }).completion("r", "7", { row: false })
    for (const name of ["5", "x'63'", "NULL", "5.5"]) clockRow(db, name)
    for (const flow of ["5", "x'46'", "NULL"]) clockRow(db, "'c'", flow)
    db.exec(`INSERT INTO flows_deferred_completions VALUES ('F', 'r', 7, '"done"', NULL, 120, NULL), ('F', x'72', '7', '"done"', NULL, 120, NULL)`)
    const { findings, notChecked } = verify(db)
    expect(short(findings)).toEqual(["row_missing r/7", "clock_missing r/5", "clock_missing r/c"])
    expect(notChecked).toMatchObject([{ what: "rows_unreadable", count: 9 }])
  })

  it("that are no UTF-8, of a deferred that a clock aims at, are not the recorded one", () => {
    const db = emptyStore()
    storyOf(db).run("r").clock("r", "c", { deferredName: "\ufffd" }).clock("r", "sound").clock("r", "\ufffd also sound")
    db.exec(`UPDATE flows_clock_deadlines SET deferred_name = ${text("ff")} WHERE clock_name = 'c'`)
    expect(verify(db).findings).toMatchObject([{ id: "clock_differs", name: "c", field: "deferredName", expected: "\ufffd", found: "text that is no UTF-8" }])
    rebuild(db)
    expect(verify(db).verdict).toBe("match")
  })

  it("with unpaired surrogates match no stored row", () => {
    const db = emptyStore()
    const story = storyOf(db).run("r")
    story.append("r", scheduled, String.raw`{"flowName":"F","executionId":"r","clockName":"\ud800","deferredName":"d","dueAtMs":1}`)
    story.append("r", scheduled, String.raw`{"flowName":"F","executionId":"\udc00","clockName":"c","deferredName":"d","dueAtMs":1}`)
    clockRow(db, text("eda080"))
    db.exec(`INSERT INTO flows_runs VALUES (${text("edb080")})`)
    expect(short(verify(db).findings)).toEqual(["run_missing \udc00/c", "clock_missing r/\ud800", "clock_missing \udc00/c"])
    expect(codeOf(() => rebuild(db))).toBe("fold_incomplete")
  })
})

describe("run ids", () => {
  it.each([
    ["that are no UTF-8", text("72ff")],
    ["that are an unpaired surrogate", text("eda080")]
  ])("%s are refused by their bytes, in a journal and in checkpoints", (_, id) => {
    for (const insert of [`INSERT INTO flows_journal_events VALUES (${id}, 0, 'x', '{}')`, `INSERT INTO flows_journal_checkpoints VALUES (${id}, 0, '{}', 1)`]) {
      const db = emptyStore()
      storyOf(db).run("a").clock("a", "c").run("z").clock("z", "c")
      db.exec(insert)
      expect(errorOf(() => verify(db))).toMatchObject({ code: "text_not_utf8", details: { found: expect.stringMatching(/^(72ff|eda080)$/) } })
      // Runs that are named can be looked at.
      expect(verify(db, { runs: ["a", "z"] })).toMatchObject({ verdict: "match", coverage: { runs: 2 } })
    }
  })

  it.each([["a blob", "x'72'"], ["a number", "7"], ["NULL", "NULL"]])("that are %s are refused, and never taken for a text", (_, id) => {
    const db = emptyStore({ text: "", keys: false })
    storyOf(db).run("r").clock("r", "c", { row: false })
    for (let seq = 0; seq < 3; seq++) db.exec(`INSERT INTO flows_journal_events VALUES (${id}, ${seq}, '${scheduled}', '{}')`)
    db.exec(`INSERT INTO flows_runs VALUES (${id}); INSERT INTO flows_journal_checkpoints VALUES (${id}, 0, '{}', 1)`)
    expect(errorOf(() => verify(db))).toMatchObject({ code: "text_not_utf8", details: { table: "flows_journal_events", column: "run_id" } })
    expect(errorOf(() => plan(db)).message).toContain("3 entries")
    expect(short(verify(db, { runs: ["r", "7"] }).findings)).toEqual(["clock_missing r/c"])
  })
})

describe("seqs", () => {
  it("up to 2^63-1 keep every digit", () => {
    const db = emptyStore()
    const story = storyOf(db).run("r")
    const top = 2n ** 63n - 1n
    const clock = (name: string) => ({ flowName: "F", executionId: "r", clockName: name, deferredName: "d", dueAtMs: 1 })
    for (const seq of [2n ** 53n, 2n ** 53n + 1n, top - 2n, top - 1n, top]) {
      story.append("r", scheduled, clock(`c${seq}`), seq)
      clockRow(db, `'c${seq}'`)
    }
    const { verdict, heads } = verify(db, { heads: true })
    expect([verdict, heads]).toMatchObject(["match", [{ first: "9007199254740992", last: "9223372036854775807" }]])
    db.exec("UPDATE flows_journal_events SET payload_json = '{' WHERE seq = 9223372036854775806")
    expect(verify(db).findings).toMatchObject([{ id: "payload_not_json", seq: "9223372036854775806" }])
    db.exec("INSERT INTO flows_journal_checkpoints VALUES ('r', 9223372036854775807, '{}', 1)")
    expect(verify(db).findings).toMatchObject([{ id: "checkpoint_missing", runId: "r" }])
  })

  it.each<[string, unknown]>([["negative", -1n], ["fractions", 1.5], ["texts", "abc"], ["digits in a text", "12"], ["blobs", Buffer.from("1")], ["NULL", null], ["beyond 2^63", 1e19]])(
    "that are %s are refused with their run, also in pages of one row", (_, seq) => {
      const db = emptyStore({ integer: "", keys: false })
      storyOf(db).run("r").clock("r", "c").run("s").clock("s", "c")
      db.prepare("INSERT INTO flows_journal_events VALUES ('r', ?, ?, '{}')").run(seq, scheduled)
      expect(errorOf(() => verify(db))).toMatchObject({ code: "seq_invalid", details: { runId: "r" } })
      expect(verify(db, { except: ["r"] }).verdict).toBe("match")
      expect(verify(db, { runs: ["s"] }).verdict).toBe("match")
    })
})

describe("values of other types", () => {
  it("in times are what is found, and no number that looks alike", () => {
    const db = emptyStore({ integer: "" })
    const story = storyOf(db).run("r")
    for (const name of ["text", "real", "blob", "null", "fraction", "huge"]) story.clock("r", name, { dueAtMs: 5 })
    for (const [name, value] of [["text", "'5'"], ["real", "5.0"], ["blob", "x'35'"], ["null", "NULL"], ["fraction", "5.5"], ["huge", "9e999"]]) {
      db.exec(`UPDATE flows_clock_deadlines SET due_at_ms = ${value} WHERE clock_name = '${name}'`)
    }
    expect(verify(db).findings.map(({ name, found }) => [name, found])).toEqual([
      ["blob", "blob of 1 bytes"], ["fraction", 5.5], ["huge", expect.any(Number)], ["null", null], ["text", "5"]
    ])
    db.exec("UPDATE flows_clock_deadlines SET due_at_ms = 9223372036854775807 WHERE clock_name = 'huge'")
    rebuild(db)
    expect(verify(db).verdict).toBe("match")
  })

  it("in completions count by their bytes", () => {
    const db = emptyStore()
    const story = storyOf(db)
    story.completion("r", "blob", { exit: "[1]" }).completion("r", "other blob", { exit: "[1]" }).completion("r", "null", { metadata: "{}" }).completion("r", "void", { exit: "" })
    db.exec(`UPDATE flows_deferred_completions SET exit_json = x'5b315d' WHERE deferred_name = 'blob';
      UPDATE flows_deferred_completions SET exit_json = x'5b325d' WHERE deferred_name = 'other blob';
      UPDATE flows_deferred_completions SET metadata_json = NULL WHERE deferred_name = 'null'`)
    expect(short(verify(db).findings)).toEqual(["digest_mismatch r/other blob exitDigest", "digest_mismatch r/null metadataDigest"])
    db.exec("UPDATE flows_deferred_completions SET exit_json = NULL")
    expect(verify(db).counts).toEqual({ digest_mismatch: 4 })
  })

  it("in payloads: none at all is no JSON, a blob counts by its bytes", () => {
    for (const encoding of ["UTF-8", "UTF-16le"]) {
      const db = emptyStore({ encoding })
      const story = storyOf(db).run("r")
      const payload = JSON.stringify({ flowName: "F", executionId: "r", clockName: "é", deferredName: "d", dueAtMs: 1 })
      story.append("r", scheduled, Buffer.from(payload))
      story.append("other", "another.type", null)
      clockRow(db, "'é'")
      expect(verify(db)).toMatchObject({ verdict: "match", rebuilt: { clocks: 1 } })
      story.append("s", scheduled, null)
      story.append("t", scheduled, "")
      story.append("u", scheduled, Buffer.from("7b22ff227d", "hex"))
      const { findings } = verify(db)
      expect(findings.map(({ id, runId }) => [id, runId]).slice(0, 2)).toEqual([["payload_not_json", "s"], ["payload_not_json", "t"]])
      expect(findings[2]).toMatchObject({ runId: "u", class: "refused" })
    }
  })

  it("in checkpoints: a state that is NULL, or no UTF-8, keeps no fold", () => {
    const db = emptyStore()
    storyOf(db).run("r").clock("r", "c")
    const sound = '{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}'
    const insert = (state: unknown) => db.prepare("INSERT OR REPLACE INTO flows_journal_checkpoints VALUES ('r', 0, ?, 1)").run(state)
    insert(sound)
    expect(verify(db).findings).toMatchObject([{ id: "clock_unexpected" }])
    insert(Buffer.from(sound))
    expect(verify(db).findings).toMatchObject([{ id: "clock_unexpected" }])
    for (const state of [null, "", Buffer.concat([Buffer.from('{"a":"'), Buffer.of(0xff), Buffer.from(`",${sound.slice(1)}`)])]) {
      insert(state)
      if (state instanceof Uint8Array) db.exec("UPDATE flows_journal_checkpoints SET state_json = CAST(state_json AS TEXT)")
      expect(verify(db).findings).toMatchObject([{ id: "checkpoint_missing", runId: "r" }])
      expect(codeOf(() => capture(db, "r", 9))).toBe("fold_incomplete")
    }
  })

  it("in event types are other types", () => {
    const db = emptyStore({ text: "TEXT COLLATE NOCASE" })
    const story = storyOf(db).run("r").clock("r", "c")
    story.append("r", fired.toUpperCase(), { flowName: "F", executionId: "r", clockName: "c", completedAtMs: 9 })
    db.exec(`INSERT INTO flows_journal_events VALUES ('r', 7, CAST('${fired}' AS BLOB), '{}'), ('r', 8, NULL, '{}')`)
    expect(verify(db)).toMatchObject({ verdict: "match", ignored: [{ reason: "other_type", count: 3 }] })
  })
})

describe("large values", () => {
  it("are cut into pages by their bytes, so that memory stays small", async () => {
    const child = fork(fileURLToPath(new URL("large.mjs", import.meta.url)), { stdio: ["ignore", "inherit", "inherit", "ipc"] })
    const [{ verdict, megabytes, before, peak }] = (await once(child, "message")) as [Record<string, any>]
    console.log(`large values: ${megabytes} MB verified, peak ${peak} MB, ${before} MB before`)
    expect(verdict).toBe("match")
    expect(megabytes).toBeGreaterThan(400)
    expect(peak - before).toBeLessThan(150)
  })

  it("change no digest, whatever their length", () => {
    const db = emptyStore()
    const story = storyOf(db)
    for (const length of [0, 1, 4095, 4096, 4097, 100_000, 2_000_000]) {
      story.completion("r", `d${length}`, { exit: "é".repeat(length / 2) + "x".repeat(length % 2), metadata: "y".repeat(length) })
      story.append("r", completed, { flowName: "F", executionId: "r", deferredName: `pad${length}`, pad: "z".repeat(length), completedAtMs: 1, exitDigest: sha256("1"), metadataDigest: null })
      db.prepare("INSERT INTO flows_deferred_completions VALUES ('F', 'r', ?, '1', NULL, 1, NULL)").run(`pad${length}`)
    }
    expect(verify(db)).toMatchObject({ verdict: "match", findings: [], notChecked: [] })
    expect(verify(db, { digest: sha256 }).findings).toEqual([])
    const copy = copyOf(db)
    copy.exec("UPDATE flows_deferred_completions SET metadata_json = metadata_json || ' ' WHERE metadata_json IS NOT NULL")
    expect(verify(copy).counts).toEqual({ digest_mismatch: 7 })
  })
})
