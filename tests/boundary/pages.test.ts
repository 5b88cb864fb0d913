/** The ways in: text rows, live values and pages of bytes give the same, and what cannot be taken is refused by name. */
import { call } from "../../pkg/core/engine.js"
import fc from "fast-check"
import { isJournalFoldError } from "journal-fold"
import { capture, eventTypes, Fold, fromCheckpoint, initial, Rebuild, reduce, verifyRebuild, type Entry, type EntryText, type Page } from "journal-fold/deferred-clock"
import { contentDigest, verifyDigest } from "journal-fold/digest"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    expect(isJournalFoldError(error), String(error)).toBe(true)
    return (error as { code: string }).code
  }
  return "nothing was thrown"
}

const name = fc.oneof(fc.constantFrom("a", "b", "größe", "注文", "🚲", 'q"\\', "1},{\"x\":2"), fc.string({ unit: "binary", minLength: 1, maxLength: 6 }))
const payload = fc.record({ flowName: name, executionId: name, clockName: name, deferredName: name, dueAtMs: fc.nat(), completedAtMs: fc.nat(), consumedAtMs: fc.nat(), note: fc.option(fc.string({ unit: "binary" })) })
const journal = fc.array(fc.tuple(fc.constantFrom(...eventTypes, "other"), payload), { maxLength: 60 }).map((rows) =>
  rows.map(([eventType, payload], seq): Entry => ({ runId: "r", seq, eventType, payload }))
)

function asText(entries: readonly Entry[]): EntryText[] {
  return entries.map(({ payload, ...entry }) => ({ ...entry, payloadText: JSON.stringify(payload) }))
}

function asPages(entries: readonly Entry[], rows: number): Page[] {
  const encoder = new TextEncoder()
  const pages: Page[] = []
  for (let from = 0; from < entries.length; from += rows) {
    const slice = entries.slice(from, from + rows)
    const parts = slice.map(({ payload }) => encoder.encode(JSON.stringify(payload)))
    let end = 0
    pages.push({
      runId: "r",
      ends: Uint32Array.from(parts, (part) => (end += part.byteLength)),
      bytes: new Uint8Array(Buffer.concat(parts)),
      seqs: BigInt64Array.from(slice, ({ seq }) => BigInt(seq)),
      types: Uint8Array.from(slice, ({ eventType }) => (eventTypes.includes(eventType) ? eventTypes.indexOf(eventType) : 255))
    })
  }
  return pages
}

function folded(entries: Iterable<Entry | EntryText | Page>): string {
  const fold = new Fold()
  try {
    fold.push(entries)
    return fold.stateText() + fold.digest().value
  } finally {
    fold.dispose()
  }
}

describe("a journal", () => {
  it("gives the same state as text, as live values and as bytes, for any page size", () => {
    fc.assert(
      fc.property(journal, fc.integer({ min: 1, max: 70 }), (entries, rows) => {
        const state = folded(asText(entries))
        expect(folded(entries)).toBe(state)
        expect(folded(asPages(entries, rows))).toBe(state)
      }),
      { numRuns: 300 }
    )
  })

  it("gives the same state folded in two parts as at once", () => {
    fc.assert(
      fc.property(journal, fc.nat(), (entries, cut) => {
        const at = cut % (entries.length + 1)
        expect(reduce(reduce(initial, entries.slice(0, at)), entries.slice(at))).toEqual(reduce(initial, entries))
      }),
      { numRuns: 300 }
    )
  })

  it("is encoded and decoded to the same", () => {
    fc.assert(
      fc.property(journal, (entries) => {
        const state = reduce(initial, entries)
        expect(fromCheckpoint({ "flows.engine.deferred-clock": state })).toEqual(state)
      }),
      { numRuns: 300 }
    )
  })

  it("verified after its plan is a match with nothing to plan", () => {
    fc.assert(
      fc.property(journal, (entries) => {
        const state = reduce(initial, entries)
        const runs = [{ runId: "r", entries }]
        const liveRuns = new Set(state.clocks.map(({ executionId }) => executionId))
        const completions = state.deferreds.map((row) => ({ ...row, completedAtMs: row.completedAtMs ?? 1, exitText: "x", metadataText: null }))
        const store = { runs, liveRuns, completions }
        const before = verifyRebuild({ ...store, clocks: [] })
        expect(before.verdict).toBe(state.clocks.length === 0 ? "match" : "drift")
        expect(before.plan?.effects.clocksArmed).toBe(state.clocks.filter(({ completedAtMs }) => completedAtMs === null).length)
        const after = verifyRebuild({ ...store, clocks: state.clocks })
        expect(after.verdict).toBe("match")
        expect(after.plan?.pages).toEqual([])
      }),
      { numRuns: 200 }
    )
  })
})

describe("a frame", () => {
  const entry = (seq: number, payloadText: string): EntryText => ({ runId: "r", seq, eventType: "flows.engine.clock-scheduled", payloadText })
  const clock = (clockName: string): string => `{"flowName":"F","executionId":"r","clockName":"${clockName}","deferredName":"d","dueAtMs":1}`

  it("lets no payload smuggle an entry in or shift its neighbours", () => {
    expect(codeOf(() => folded([entry(0, clock("a")), entry(1, '1},{"x":2'), entry(2, clock("b"))]))).toBe("payload_not_json")
  })

  it("joins no unpaired surrogates across two payloads", () => {
    const rows = [entry(0, clock("\ud83d")), entry(1, clock("\ude80")), entry(2, clock("🚀"))]
    expect(reduce(initial, rows).clocks.map((row) => row.clockName)).toEqual(["\ud83d", "\ude80", "🚀"])
  })

  it("carries unpaired surrogates in run ids", () => {
    const rebuild = new Rebuild()
    rebuild.beginRun("\ud800", [{ seq: 1, compactedAtMs: 1, stateText: "{}" }])
    rebuild.endRun()
    rebuild.endRuns()
    expect(rebuild.finish().unjoined).toEqual([{ reason: "checkpoint_missing", executionId: "\ud800" }])
  })
})

describe("what cannot be taken", () => {
  const text = (seq: unknown): EntryText => ({ runId: "r", seq: seq as number, eventType: "x", payloadText: "{}" })

  it("is a seq that is none, or has lost digits", () => {
    for (const seq of [-1, 1.5, 2 ** 53, Number.NaN, "", "-1", "1.0", "9223372036854775808", 2n ** 63n, null, undefined]) {
      expect(codeOf(() => reduce(initial, [text(seq)])), String(seq)).toBe("seq_invalid")
    }
    for (const seq of [0, 2 ** 53 - 1, "9223372036854775807", 2n ** 63n - 1n]) reduce(initial, [text(seq)])
  })

  it("is a live value too deep for a text, though its text is no problem", () => {
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level++) deep = [deep]
    const entry = { runId: "r", seq: 0, eventType: eventTypes[0] }
    expect(codeOf(() => reduce(initial, [{ ...entry, payload: deep }]))).toBe("payload_too_deep")
    const payloadText = `{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
    expect(reduce(initial, [{ ...entry, payloadText }])).toEqual(initial)
  })

  it("is a misspelt option, a bound that is none, a page whose parts do not fit", () => {
    expect(codeOf(() => new Fold({ upto: 1 } as never))).toBe("option_unknown")
    expect(codeOf(() => new Rebuild({ strict: true, whole: true } as never))).toBe("option_unknown")
    expect(codeOf(() => verifyRebuild({ runs: [], liveRuns: [], completions: [] }, { maxUnexplained: -1 }))).toBe("option_invalid")
    expect(codeOf(() => capture({ runId: "r", entries: [] }, Number.NaN))).toBe("bound_invalid")
    const page = { runId: "r", bytes: new Uint8Array(2), ends: new Uint32Array([1]), seqs: new BigInt64Array(1), types: new Uint8Array(1) }
    expect(codeOf(() => new Fold().push(page))).toBe("page_malformed")
    expect(codeOf(() => new Fold().push({ ...page, ends: new Uint32Array(2) }))).toBe("page_malformed")
    expect(codeOf(() => reduce({ clocks: [] } as never, []))).toBe("state_malformed")
  })

  it("leaves a fold as it was before the entry, to go on with", () => {
    const fold = new Fold({ runId: "r" })
    const clock = (seq: number, payloadText: string): EntryText => ({ runId: "r", seq, eventType: eventTypes[0], payloadText })
    const sound = (n: string): string => `{"flowName":"F","executionId":"r","clockName":"${n}","deferredName":"d","dueAtMs":1}`
    const error = (() => {
      try {
        fold.push([clock(1, sound("a")), clock(2, "{"), clock(3, sound("c"))])
      } catch (error) {
        return error as { code: string; details: { seq: string } }
      }
      throw new Error("nothing was thrown")
    })()
    expect(error).toMatchObject({ code: "payload_not_json", details: { seq: "2", offset: 1 } })
    expect(fold.state().clocks).toHaveLength(1)
    fold.push([clock(2, sound("b")), clock(3, sound("c"))])
    expect(fold.state().clocks.map(({ clockName }) => clockName)).toEqual(["a", "b", "c"])
    fold.dispose()
  })
})

describe("a digest", () => {
  it("is SHA-256 of the UTF-8, whatever the text, and bytes are taken as they are", () => {
    const sha = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex")
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => contentDigest(text) === sha(text)), { numRuns: 500 })
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => contentDigest(bytes) === sha(bytes)), { numRuns: 500 })
    expect(contentDigest("\ud800")).toBe(sha("\ufffd"))
    expect(verifyDigest("a", sha("a").toUpperCase())).toBe(false)
    expect(verifyDigest("a", `${sha("a")}\n`)).toBe(false)
  })
})

describe("the tables of codes and findings", () => {
  const union = (file: string, type: string): string[] => {
    const source = readFileSync(new URL(`../../js/${file}`, import.meta.url), "utf8")
    const body = new RegExp(`export type ${type} =([^=]*?)\\n\\n`).exec(source)?.[1] ?? ""
    return [...body.matchAll(/"(\w+)"/g)].map((match) => match[1] as string).sort()
  }

  it("are the same in Rust and in TypeScript", () => {
    const codes = Object.keys(JSON.parse(call((module) => module.error_codes())) as object)
    expect(union("core/errors.ts", "ErrorCode")).toEqual(codes.sort())
    const ids = Object.keys(JSON.parse(call((module) => module.finding_ids())) as object)
    // A fold's type has its own of them; the table has those of every fold.
    const own = union("folds/deferred-clock/types.ts", "FindingId")
    expect(own.length).toBeGreaterThan(10)
    expect(own.filter((id) => !ids.includes(id))).toEqual([])
  })
})
