/** Malformed calls: refused by name, before anything is touched, and without a trace in the calls that follow. */
import { call } from "../../pkg/core/engine.js"
import fc from "fast-check"
import { isJournalFoldError } from "journal-fold"
import {
  capture, checkpointKey, eventTypes, Fold, initial, Rebuild, reduce, verifyRebuild,
  type EntryText, type Floor, type Run, type StoredClock
} from "journal-fold/deferred-clock"
import { contentDigest } from "journal-fold/digest"
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { compareUtf8 } from "../../pkg/folds/deferred-clock/verify.js"
import { encodeName } from "../../pkg/core/inbox.js"

const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    expect(isJournalFoldError(error), String(error)).toBe(true)
    return (error as { code: string }).code
  }
  return "nothing was thrown"
}
const scheduled = (seq: number, clockName: string, runId = "r"): EntryText => ({
  runId,
  seq,
  eventType: eventTypes[0],
  payloadText: JSON.stringify({ flowName: "F", executionId: runId, clockName, deferredName: "d", dueAtMs: 1 })
})
const clocksOf = (fold: Fold): string[] => fold.state().clocks.map(({ clockName }) => clockName)
const bare: Floor = { seq: 1, compactedAtMs: 1, stateText: "{}" }

describe("the names of the fold", () => {
  it("are the module's", () => {
    expect(call((module) => module.deferred_clock_names())).toEqual([...eventTypes, checkpointKey])
  })
})

describe("an entry that cannot be taken", () => {
  const poison: [string, unknown, string][] = [
    ["with a seq that is none", { ...scheduled(3, "c"), seq: -1 }, "seq_invalid"],
    ["of another run", scheduled(3, "c", "another"), "argument_invalid"],
    ["with a payload that is no text", { ...scheduled(3, "c"), payloadText: 5 }, "argument_invalid"],
    ["without a payload", { runId: "r", seq: 3, eventType: eventTypes[0], payloadtext: "{}" }, "argument_invalid"],
    ["without an event type", { runId: "r", seq: 3, type: eventTypes[0], payloadText: "{}" }, "argument_invalid"],
    ["that is none", null, "argument_invalid"],
    ["that is a text", "{}", "argument_invalid"],
    ["whose payload has no JSON", { runId: "r", seq: 3, eventType: eventTypes[0], payload: 5n }, "value_not_json"]
  ]

  it.each(poison)("%s leaves what came before it folded, to go on with", (_, entry, code) => {
    const fold = new Fold({ runId: "r" })
    expect(codeOf(() => fold.push([scheduled(1, "a"), scheduled(2, "b"), entry as EntryText, scheduled(4, "d")]))).toBe(code)
    expect(clocksOf(fold)).toEqual(["a", "b"])
    fold.push([scheduled(3, "c"), scheduled(4, "d")])
    expect(clocksOf(fold)).toEqual(["a", "b", "c", "d"])
    fold.dispose()
  })

  it("because the journal could not be read on leaves what came before it folded too", () => {
    const fold = new Fold()
    const failing = function* (): Iterable<EntryText> {
      yield scheduled(1, "a")
      throw new Error("the disk is gone")
    }
    expect(() => fold.push(failing())).toThrow("the disk is gone")
    expect(clocksOf(fold)).toEqual(["a"])
    fold.dispose()
  })

  it("is found by name wherever entries of one run are taken", () => {
    const strange = [scheduled(1, "a", "another")]
    expect(codeOf(() => capture({ runId: "r", entries: strange }, 9))).toBe("argument_invalid")
    expect(codeOf(() => verifyRebuild({ runs: [{ runId: "r", entries: strange }], liveRuns: [], completions: [] }))).toBe("argument_invalid")
    expect(reduce(initial, [...strange, scheduled(1, "a")]).clocks).toHaveLength(2)
  })
})

describe("a call that is refused", () => {
  it("leaves the instance as it is, whatever was wrong with it", () => {
    const witness = new Fold()
    const page = { runId: "r", bytes: new Uint8Array(), ends: new Uint32Array(), seqs: new BigInt64Array(), types: new Uint8Array() }
    const disposed = new Fold()
    disposed.dispose()
    const over = new Rebuild()
    over.endRuns()
    over.finish()
    const calls: [() => unknown, string][] = [
      [() => new Fold({ runId: 5 as never }), "argument_invalid"],
      [() => new Fold({ floors: [{ seq: 1, stateText: "{}" } as never] }), "argument_invalid"],
      [() => new Fold({ floors: [null as never] }), "argument_invalid"],
      [() => new Fold({ floors: [{ ...bare, seq: "x" }] }), "seq_invalid"],
      [() => new Fold({ state: 5 as never }), "state_malformed"],
      [() => capture({ runId: 5 as never, entries: [] }, 1), "argument_invalid"],
      [() => capture({ runId: "r", entries: [] }, undefined as never), "bound_invalid"],
      [() => capture({ runId: "r", entries: undefined as never }, 1), "argument_invalid"],
      [() => capture({ runId: "r", entries: "text" as never }, 1), "argument_invalid"],
      [() => capture(undefined as never, 1), "argument_invalid"],
      [() => reduce(initial, null as never), "argument_invalid"],
      [() => reduce(undefined as never, []), "nothing was thrown"],
      [() => reduce(initial, [page as never]), "argument_invalid"],
      [() => new Rebuild().beginRun(undefined as never), "argument_invalid"],
      [() => new Rebuild().answer({ completions: [{ flowName: "F", executionId: "r", deferredName: "d" } as never] }), "answer_malformed"],
      [() => new Rebuild().answer({ clocks: [{ flowName: 1 } as never] }), "answer_malformed"],
      [() => verifyRebuild(undefined as never), "argument_invalid"],
      [() => contentDigest(5 as never), "argument_invalid"],
      [() => disposed.push([]), "nothing was thrown"],
      [() => disposed.push([scheduled(1, "a")]), "disposed"],
      [() => disposed.push(page), "disposed"],
      [() => disposed.state(), "disposed"],
      [() => over.beginRun("r", [bare]), "disposed"],
      [() => over.finish(), "disposed"]
    ]
    for (const [work, code] of calls) expect([String(work), codeOf(work)]).toEqual([String(work), code])
    expect(clocksOf(witness)).toEqual([])
    witness.dispose()
  })

  it("leaves none of its checkpoints to the run that begins next", () => {
    const disposed = new Rebuild()
    disposed.dispose()
    expect(codeOf(() => disposed.beginRun("r", [bare]))).toBe("disposed")
    const again = new Rebuild()
    again.beginRun("b")
    again.endRun()
    expect(codeOf(() => again.beginRun("a", [bare]))).toBe("run_out_of_order")
    again.dispose()
    expect(capture({ runId: "r", entries: [] }, 5)).toEqual(initial)
  })

  it("because it is too large does not touch memory", () => {
    expect(codeOf(() => contentDigest(new Uint8Array(2 ** 31 + 1)))).toBe("too_large")
  })
})

describe("a long text", () => {
  it("is counted before it is written, and comes through whole", () => {
    for (const part of ["a", "größe", "注文", "🚲", "\ud800"]) {
      const text = part.repeat(Math.ceil(2 ** 24 / part.length)) + "end"
      expect(contentDigest(text), part).toBe(createHash("sha256").update(text).digest("hex"))
    }
  })

  it("of one payload does as well as many short ones", () => {
    const padding = "ö".repeat(2 ** 24)
    const entries = [scheduled(1, "a"), { ...scheduled(2, "b"), payloadText: JSON.stringify({ padding, ...JSON.parse(scheduled(2, "b").payloadText) }) }]
    expect(capture({ runId: "r", entries: [...entries, scheduled(3, "c")] }, 9).clocks.map(({ clockName }) => clockName)).toEqual(["a", "b", "c"])
  })
})

describe("the order of runs", () => {
  it("is that of their bytes, unpaired surrogates included", () => {
    const text = fc.array(fc.constantFrom("a", "\u007f", "é", "\ud7ff", "\ue000", "\uffff", "\ud83d", "\ude80", "🚀", "\u{10ffff}"), { maxLength: 4 }).map((parts) => parts.join(""))
    const bytes = (name: string): Buffer => {
      const into = Buffer.alloc(name.length * 3)
      return into.subarray(0, encodeName(name, into))
    }
    fc.assert(fc.property(text, text, (a, b) => Math.sign(compareUtf8(a, b)) === Buffer.compare(bytes(a), bytes(b))), { numRuns: 5000 })
  })

  it("is made by verifyRebuild, whatever order they come in", () => {
    const runs: Run[] = ["\ue000", "🚀", "\ud800", "z", "\ud83d!", "\uffff"].map((runId) => ({ runId, entries: [scheduled(1, "c", runId)] }))
    const names = runs.map(({ runId }) => runId)
    expect(verifyRebuild({ runs, liveRuns: names, completions: [], clocks: [] }).counts).toEqual({ clock_missing: 6 })
  })
})

describe("a stored value", () => {
  const drift = (clock: Partial<Record<keyof StoredClock, unknown>>): string[] => {
    const sound = { flowName: "F", executionId: "r", clockName: "c", deferredName: "d", dueAtMs: 1, completedAtMs: null }
    const stored = { ...sound, ...clock } as StoredClock
    const { findings } = verifyRebuild({ runs: [{ runId: "r", entries: [scheduled(1, "c")] }], liveRuns: ["r"], completions: [], clocks: [stored] })
    return findings.map(({ field, found }) => `${field}: ${JSON.stringify(found)}`)
  }

  it("that is no JSON is never taken for one that is", () => {
    expect(drift({})).toEqual([])
    expect(drift({ dueAtMs: 1n })).toEqual([])
    expect(drift({ completedAtMs: undefined })).toEqual([])
    expect(drift({ completedAtMs: Number.POSITIVE_INFINITY })).toEqual(['completedAtMs: "Infinity"'])
    expect(drift({ completedAtMs: Number.NaN })).toEqual(['completedAtMs: "NaN"'])
    expect(drift({ dueAtMs: 2n ** 63n - 1n })).toHaveLength(1)
    expect(drift({ dueAtMs: "1" })).toEqual(['dueAtMs: "1"'])
    expect(drift({ dueAtMs: 1.5 })).toEqual(["dueAtMs: 1.5"])
    expect(drift({ deferredName: new Uint8Array([100]) })).toEqual(['deferredName: "blob of 1 bytes"'])
  })
})
