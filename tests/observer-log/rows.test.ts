/** Rows, aggregates and their numbers as their callers see them: exact, however they are cut, at fault by their sequence. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  Aggregate,
  capture,
  decodeRow,
  encodeRow,
  fromCheckpoint,
  initial,
  MemoryStore,
  ObserverLogSync,
  planAppend,
  Rebuild,
  reduce,
  restore,
  verifyRebuild,
  type StoredRow
} from "journal-fold/observer-log"
import { most, track, codeOf, rowsOf, pageOf } from "./streams.js"

describe("numbers of 64 bits", () => {
  it("are exact to the last one, in and out", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.bigInt(0n, most), fc.bigInt(0n, most)), { maxLength: 20 }), (pairs) => {
        const row = { row: "arms", arms: pairs } as const
        expect(decodeRow(encodeRow(row))).toEqual(row)
        expect(decodeRow(Buffer.from(encodeRow({ row: "arms", arms: pairs.map(([id, epoch]) => [String(id), String(epoch)]) })))).toEqual(row)
      })
    )
    const aggregate = new Aggregate({ progress: [[most, most], [0, most - 1n]], armed: [[most, most]] })
    expect(aggregate.progress(most)).toBe(most)
    expect(aggregate.state()).toEqual({ progress: [[0n, most - 1n], [most, most]], armed: [[most, most]] })
    expect(codeOf(() => aggregate.advance(most, most))).toBe("request_refused")
    aggregate.dispose()
  })

  it("are decimal texts in JSON, wherever they stand", async () => {
    const state = reduce(initial, [{ sequence: 0, payload: encodeRow(track(most, 3)) }])
    expect(JSON.stringify(state)).toBe(`{"progress":[["${most}","3"]],"armed":[]}`)
    expect(JSON.stringify(decodeRow(encodeRow(track(1, most))))).toBe(`{"row":"track","conversationId":"1","observerProgress":"${most}"}`)
    expect(JSON.stringify(planAppend(state, 0, track(1)))).toContain('"head":"0"')
    const log = ObserverLogSync.open(new MemoryStore())
    log.track(1, 1)
    expect(JSON.parse(JSON.stringify(log.arm([[1, 1], [1n, 0n]].slice(0, 1) as never)))).toMatchObject({ head: "2", statuses: [{ current: "1", armed: true }] })
    expect(JSON.parse(JSON.stringify(log.advance(1, 2)))).toMatchObject({ head: "3", fired: { conversationId: "1", refusedEpoch: "1" } })
    const verification = verifyRebuild({ rows: rowsOf(300).slice(0, -1), hint: 4, head: null })
    expect(JSON.parse(JSON.stringify(verification))).toMatchObject({
      coverage: { rows: "300", segments: [{ first: "0" }] },
      hint: { stored: "4" },
      restore: { foldedFrom: "0" }
    })
    for (const part of [verification.coverage, verification.hint, verification.restore, verification.coverage.segments]) {
      expect(() => JSON.stringify(part)).not.toThrow()
    }
  })
})

describe("rows", () => {
  const rows = rowsOf(1500)
  const state = reduce(initial, rows)

  it("fold to the same state as text, as bytes, as pages, all at once and one by one", () => {
    expect(state.progress).toHaveLength(30)
    const bytes = rows.map(({ sequence, payload }) => ({ sequence, payload: Buffer.from(payload as string) }))
    expect(reduce(initial, bytes)).toEqual(state)
    expect(reduce(initial, pageOf(rows))).toEqual(state)
    expect(reduce(initial, [pageOf(rows.slice(0, 500)), ...rows.slice(500, 800), pageOf(rows.slice(800))])).toEqual(state)
    for (const size of [1, 7, 257]) {
      const aggregate = new Aggregate()
      for (let at = 0; at < rows.length; at += size) aggregate.push(rows.slice(at, at + size))
      expect(aggregate.state()).toEqual(state)
      expect(aggregate.next).toBe(BigInt(rows.length))
      expect(aggregate.digest()).toEqual(verifyRebuild({ rows }).stateDigest)
      expect(aggregate.digest("sha256").value).toMatch(/^[0-9a-f]{64}$/)
      aggregate.dispose()
    }
  })

  it("are verified alike however they are cut", () => {
    const damaged = rows.filter(({ sequence }) => sequence !== 400n).map((row) => (row.sequence === 30n ? { ...row, payload: "{}" } : row))
    const whole = verifyRebuild({ rows: damaged, hint: 514, head: rows.length })
    expect(whole.findings.map(({ id, seq }) => [id, seq])).toEqual([
      ["row_malformed", "30"],
      ["row_sequence", "401"]
    ])
    for (const size of [1, 3, 64, 512]) {
      const rebuild = new Rebuild(514)
      for (let at = 0; at < damaged.length; at += size) rebuild.push(size === 3 ? pageOf(damaged.slice(at, at + size)) : damaged.slice(at, at + size))
      expect(rebuild.finish(rows.length)).toEqual(whole)
    }
  })

  it("of a store's answer are judged as one answer, however large", () => {
    const rebuild = new Rebuild()
    const many = Array.from({ length: 600 }, (_, id) => ({ sequence: id, payload: encodeRow(track(id)).padEnd(400) }))
    rebuild.push(many.slice(0, 512), 512)
    rebuild.push(many.slice(512, 550), 64)
    rebuild.push(many.slice(550), 64)
    expect(rebuild.finish().findings).toEqual([{ id: "page_short", class: "refused", seq: "550", expected: "64", found: "38" }])
  })

  it("are captured as a snapshot that reads back as the same state, in any order of its lists", () => {
    expect(fromCheckpoint(capture(state))).toEqual(state)
    const { progress, armed } = state
    expect(fromCheckpoint(encodeRow({ row: "snapshot", progress: [...progress].reverse(), armed: [...armed].reverse() }))).toEqual(state)
    expect(fromCheckpoint(encodeRow(track(1)))).toBeUndefined()
    expect(codeOf(() => fromCheckpoint(encodeRow({ row: "snapshot", progress: [[1, 1], [1, 1]], armed: [] })))).toBe("request_refused")
  })

  it("at fault are named by their sequence, and pushing goes on with the row repaired", () => {
    const at = (place: number, payload: string): StoredRow[] => rows.map((row) => (row.sequence === BigInt(place) ? { ...row, payload } : row))
    for (const [payload, code, details] of [
      ["nothing", "row_malformed", { seq: "300", offset: 0 }],
      ['{"schema_version":2,"row":{"row":"track","conversation_id":1,"observer_progress":0}}', "row_version", { seq: "300" }],
      [encodeRow({ row: "advance", conversationId: 3, observerProgress: 1 }), "corrupt_row", { seq: "300", failure: { reason: { kind: "conversation_unknown" } } }]
    ] as const) {
      const aggregate = new Aggregate()
      let thrown: unknown
      try {
        aggregate.push(at(300, payload))
      } catch (error) {
        thrown = error
      }
      expect(thrown).toMatchObject({ code, details })
      expect(aggregate.next).toBe(300n)
      aggregate.push(rows.slice(300))
      expect(aggregate.state()).toEqual(state)
      aggregate.dispose()
    }
    const gap = new Aggregate()
    expect(codeOf(() => gap.push(rows.filter(({ sequence }) => sequence !== 300n)))).toBe("row_sequence")
    gap.push(rows.slice(300))
    expect(gap.state()).toEqual(state)
  })

  it("that are none are refused with what was expected", () => {
    expect(codeOf(() => reduce(initial, [{ sequence: 0, payload: 5 }] as never))).toBe("argument_invalid")
    expect(codeOf(() => reduce(initial, [{ sequence: -1, payload: "{}" }]))).toBe("argument_invalid")
    expect(codeOf(() => reduce(initial, 5 as never))).toBe("argument_invalid")
    expect(codeOf(() => reduce(initial, { bytes: new Uint8Array(2), ends: new Uint32Array([3]), sequences: new BigUint64Array(1) }))).toBe("page_malformed")
    expect(codeOf(() => reduce(initial, { bytes: new Uint8Array(2), ends: new Uint32Array([2]), sequences: new BigUint64Array(2) }))).toBe("page_malformed")
    expect(codeOf(() => encodeRow({ row: "untrack" } as never))).toBe("argument_invalid")
    expect(codeOf(() => encodeRow(track(2 ** 60)))).toBe("argument_invalid")
    expect(codeOf(() => planAppend(initial, 0, { row: "snapshot", progress: [], armed: [] }))).toBe("append_misuse")
    expect(codeOf(() => decodeRow('{"schema_version":1,"row":{"row":"track","conversation_id":18446744073709551616,"observer_progress":0}}', 9))).toBe("row_malformed")
    expect(codeOf(() => decodeRow(Uint8Array.of(0x7b, 0xff)))).toBe("row_malformed")
  })
})

describe("an aggregate", () => {
  it("holds one change at a time, which is made or dropped", () => {
    const aggregate = new Aggregate({ progress: [[1, 5]], armed: [[1, 5]] })
    const pending = aggregate.advance(1, 6)
    expect(pending.wouldFire).toEqual({ conversationId: 1n, refusedEpoch: 5n })
    expect(codeOf(() => aggregate.track(2, 0))).toBe("call_out_of_order")
    expect(aggregate.state()).toEqual({ progress: [[1n, 5n]], armed: [[1n, 5n]] })
    pending.abort()
    expect(codeOf(() => pending.commit())).toBe("call_out_of_order")
    const again = aggregate.advance(1, 7)
    again.commit()
    expect(aggregate.state()).toEqual({ progress: [[1n, 7n]], armed: [] })
    const copy = aggregate.clone()
    aggregate.track(9, 9).commit()
    expect([copy.conversations, aggregate.conversations, aggregate.arms]).toEqual([1, 2, 0])
    copy.dispose()
    expect(codeOf(() => copy.state())).toBe("disposed")
  })

  it("says why it refuses", () => {
    const aggregate = new Aggregate({ progress: [[1, 5]], armed: [] })
    const reasons = [
      () => aggregate.track(1, 9),
      () => aggregate.advance(2, 9),
      () => aggregate.advance(1, 5),
      () => aggregate.arm([[1, 6]]),
      () => aggregate.arm([[1, 5], [1, 5]]),
      () => aggregate.arm([[1, 5]], { maxEntries: 0 }),
      () => aggregate.arm([[1, 5]], { connectionLimit: 0 })
    ].map((work) => {
      try {
        work()
      } catch (error) {
        return (error as { details: { refusal: { kind: string } } }).details.refusal.kind
      }
      return undefined
    })
    expect(reasons).toEqual([
      "already_tracked",
      "conversation_unknown",
      "not_advancing",
      "epoch_ahead",
      "duplicate_conversation",
      "too_many_entries",
      "connection_capacity_exceeded"
    ])
    expect(aggregate.arm([[1, 4]], { connectionLimit: 1, connectionTracks: [1, 1] }).statuses).toEqual([
      { conversationId: 1n, refusedEpoch: 4n, current: 5n, armed: false }
    ])
    aggregate.dispose()
  })
})
