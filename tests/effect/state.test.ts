/** States of the plain reducer: every one that a caller keeps reads as it was, whatever was folded onto it since. */
import { Effect, Option, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as DeferredClock from "journal-fold/deferred-clock"
import * as Fold from "journal-fold/effect"

const [scheduled, fired, , consumed] = Fold.eventTypes

const name = fc.constantFrom("a", "b", "c", '","', "")
const time = fc.constantFrom(0, 1, 2 ** 53 - 1, -1, 1.5, "1", null)
const digest = fc.constantFrom("0".repeat(64), "f".repeat(64), null, undefined, "0")
const entry: fc.Arbitrary<Fold.JournalEntry> = fc.record({
  eventType: fc.constantFrom(...Fold.eventTypes, "other"),
  payload: fc.oneof(
    { weight: 20, arbitrary: fc.record({
      flowName: name, executionId: name, clockName: name, deferredName: name, dueAtMs: time, completedAtMs: time, consumedAtMs: time,
      exitDigest: digest, metadataDigest: digest
    }) },
    fc.constantFrom(null, [], "text", 1)
  )
})

const clock = (clockName: string): Fold.JournalEntry => ({
  eventType: scheduled, payload: { flowName: "F", executionId: "r", clockName, deferredName: "d", dueAtMs: 1 }
})
const names = (state: Fold.State): string[] => [...state.clocks.values()].map(({ clockName }) => clockName)

describe("a state", () => {
  it("is what the module makes of the same entries", () => {
    fc.assert(fc.property(fc.array(entry, { maxLength: 60 }), (entries) => {
      const state = entries.reduce(Fold.reduce, Fold.initial)
      const ofModule = DeferredClock.reduce(DeferredClock.initial, entries.map((each, seq) => ({ runId: "r", seq, ...each })))
      expect(JSON.stringify(Fold.encode(state))).toBe(JSON.stringify(ofModule))
      expect(Fold.encode(Option.getOrThrow(Fold.fromCheckpoint({ [Fold.checkpointKey]: Fold.encode(state) })))).toEqual(Fold.encode(state))
    }))
  })

  it("reads as it was after every entry that followed, and may be gone on from", () => {
    // Which earlier state each entry is folded onto, and which is read meanwhile.
    const step = fc.record({ entry, onto: fc.option(fc.nat(), { freq: 4 }), read: fc.option(fc.nat(), { freq: 2 }) })
    fc.assert(fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const states = [Fold.initial]
      const kept = [Fold.encode(Fold.initial)]
      for (const { entry, onto, read } of steps) {
        const state = states[onto === null ? states.length - 1 : onto % states.length] as Fold.State
        states.push(Fold.reduce(state, entry))
        kept.push(JSON.parse(JSON.stringify(Fold.encode(states.at(-1) as Fold.State))))
        if (read !== null) {
          const place = read % states.length
          const { clocks } = states[place] as Fold.State
          for (const row of kept[place]?.clocks ?? []) expect(clocks.get(Fold.clockKey(row))).toEqual(row)
          expect(clocks.size).toBe(kept[place]?.clocks.length)
        }
      }
      states.forEach((state, place) => expect(Fold.encode(state)).toEqual(kept[place]))
    }))
  })

  it("is the same one when an entry changes nothing", () => {
    const state = Fold.reduce(Fold.initial, clock("a"))
    expect(Fold.reduce(state, clock("a"))).toBe(state)
    expect(Fold.reduce(state, { eventType: "other", payload: {} })).toBe(state)
    expect(Fold.reduce(state, { eventType: consumed, payload: { flowName: "F" } })).toBe(state)
    expect(Fold.reduce(state, { eventType: fired, payload: null })).toBe(state)
  })

  it("is no other after the first state of all was gone on from many times", () => {
    const one = Fold.reduce(Fold.initial, clock("a"))
    const two = Fold.reduce(Fold.initial, clock("b"))
    expect([names(Fold.initial), names(one), names(two)]).toEqual([[], ["a"], ["b"]])
  })

  it("is read far back as near by", () => {
    let state = Fold.reduce(Fold.initial, clock("0"))
    const old = state
    for (let number = 1; number < 1000; number++) state = Fold.reduce(state, clock(String(number)))
    expect(old.clocks.has(Fold.clockKey({ flowName: "F", executionId: "r", clockName: "999" }))).toBe(false)
    expect(names(old)).toEqual(["0"])
    expect(state.clocks.size).toBe(1000)
    expect([...state.clocks.keys()].length).toBe(1000)
  })

  it("iterates over what it was when the iteration began", () => {
    const state = Fold.reduce(Fold.reduce(Fold.initial, clock("a")), clock("b"))
    const seen: string[] = []
    let next = state
    for (const { clockName } of state.clocks.values()) {
      seen.push(clockName)
      next = Fold.reduce(next, clock(`${clockName}${clockName}`))
    }
    state.clocks.forEach(({ clockName }) => seen.push(clockName))
    expect(seen).toEqual(["a", "b", "a", "b"])
    expect(names(next)).toEqual(["a", "b", "aa", "bb"])
  })

  it("may be of maps that a caller made", () => {
    const made = { clocks: new Map(Fold.reduce(Fold.initial, clock("a")).clocks), deferreds: new Map() }
    expect(names(Fold.reduce(made, clock("b")))).toEqual(["a", "b"])
    expect(names(made)).toEqual(["a"])
  })

  it("is reduced by the projection too", async () => {
    expect(Fold.projection.initial).toBe(Fold.initial)
    expect(names(await Effect.runPromise(Fold.projection.reduce(Fold.initial, clock("a"))))).toEqual(["a"])
  })
})

describe("an address", () => {
  it("never runs into another", () => {
    const one = { flowName: 'a","b', executionId: "c", clockName: "d" }
    const two = { flowName: "a", executionId: 'b","c', clockName: "d" }
    expect(Fold.clockKey(one)).not.toBe(Fold.clockKey(two))
    const ofFlow = (flowName: string): string => Fold.clockKey({ flowName, executionId: "r", clockName: "c" })
    expect(ofFlow("\ud800")).not.toBe(ofFlow("\ufffd"))
  })
})

describe("the schemas", () => {
  const row = {
    flowName: "F", executionId: "r", deferredName: "d", completedAtMs: 1, exitDigest: "0".repeat(64), metadataDigest: null, consumedAtMs: null
  }
  it.each([
    ["a row", {}, true],
    ["a completion that was not digested", { exitDigest: undefined }, false],
    ["an empty name", { flowName: "" }, false],
    ["a time beyond 2^53-1", { completedAtMs: 2 ** 53 }, false],
    ["a digest with a line feed", { exitDigest: `${"0".repeat(64)}\n` }, false],
    ["a digest in capitals", { exitDigest: "A".repeat(64) }, false]
  ])("take or refuse %s", (_, change, taken) => {
    expect(Option.isSome(Schema.decodeUnknownOption(Fold.Deferred)({ ...row, ...change }))).toBe(taken)
  })

  it("have the error, which survives being encoded", () => {
    const unjoined = [{ reason: "row_missing", executionId: "r", flowName: "F", name: "d" }] as const
    const error = new Fold.FoldIncomplete({ code: "fold_incomplete", message: "m", unjoined })
    const decoded = Schema.decodeSync(Fold.FoldIncomplete)(Schema.encodeSync(Fold.FoldIncomplete)(error))
    expect(decoded).toBeInstanceOf(Fold.FoldIncomplete)
    expect(decoded).toMatchObject({ _tag: "@smthrs/engine-store/DeferredClockFold/FoldIncomplete", message: "m", unjoined: error.unjoined })
  })
})
