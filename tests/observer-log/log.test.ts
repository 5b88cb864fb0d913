/** The log, the aggregate and the rows as their callers see them: order, exact numbers, errors, traps. */
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import {
  Aggregate,
  append,
  capture,
  decodeRow,
  encodeRow,
  fromCheckpoint,
  headAfter,
  initial,
  isStoreConflict,
  MemoryStore,
  ObserverLog,
  ObserverLogSync,
  planAppend,
  Rebuild,
  recoverTail,
  reduce,
  restore,
  snapshotDue,
  verifyRebuild,
  verifyStore,
  type DurableStore,
  type Publication,
  type RowInput,
  type RowPage,
  type StoredRow
} from "journal-fold/observer-log"
import { durableStoreTests, withFaults, withFaultsSync, type Fault } from "journal-fold/testing"
import { copyOfPackage, load, removeCopies, type Engine, type TestGlue } from "../boundary/copies.js"

const most = 2n ** 64n - 1n
const track = (conversationId: bigint | number, observerProgress: bigint | number = 0): RowInput => ({ row: "track", conversationId, observerProgress })

function codeOf(work: () => unknown): string | undefined {
  try {
    work()
  } catch (error) {
    return (error as { code?: string }).code
  }
  return undefined
}

/** Rows of a stream, as a log writes them. */
function rowsOf(changes: number): StoredRow[] {
  const store = new MemoryStore()
  const log = ObserverLogSync.open(store)
  for (let place = 0; place < changes; place++) {
    const id = BigInt(place % 30) * 2n ** 59n
    const progress = log.progress(id)
    if (progress === undefined) log.track(id, 5n)
    else if (place % 4 === 0) log.arm([[id, progress]])
    else log.advance(id, progress + 2n ** 54n)
  }
  log.close()
  return store.readFrom(0n, changes * 2)
}

/** The same rows as a page of bytes. */
function pageOf(rows: readonly StoredRow[]): RowPage {
  const payloads = rows.map(({ payload }) => Buffer.from(payload as string))
  let end = 0
  return {
    bytes: new Uint8Array(Buffer.concat(payloads)),
    ends: Uint32Array.from(payloads, ({ length }) => (end += length)),
    sequences: BigUint64Array.from(rows, ({ sequence }) => BigInt(sequence))
  }
}

/** A store that answers later, in turns of the event loop, and says what it is asked. */
function slow(store: MemoryStore): DurableStore & { readonly asked: string[] } {
  const asked: string[] = []
  const method =
    <Method extends keyof DurableStore>(name: Method) =>
    async (...args: Parameters<DurableStore[Method]>) => {
      asked.push(name)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2))
      return (store[name] as (...args: unknown[]) => unknown)(...args)
    }
  return {
    asked,
    readFrom: method("readFrom"),
    readAt: method("readAt"),
    appendAll: method("appendAll"),
    flush: method("flush"),
    readValue: method("readValue"),
    cas: method("cas"),
    readHead: method("readHead")
  } as unknown as DurableStore & { readonly asked: string[] }
}

describe("a log", () => {
  it("queues changes that nobody waits for, in the order in which they were asked", async () => {
    const store = new MemoryStore()
    const log = await ObserverLog.open(slow(store))
    const answers = await Promise.all(Array.from({ length: 40 }, (_, id) => log.track(id, id)))
    expect(answers.map(({ head }) => head)).toEqual(Array.from({ length: 40 }, (_, place) => BigInt(place + 1)))
    expect(store.readFrom(0n, 100).map(({ payload }) => payload)).toEqual(Array.from({ length: 40 }, (_, id) => encodeRow(track(id, id))))
    await log.close()
    await expect(log.track(41, 0)).rejects.toMatchObject({ code: "disposed" })
  })

  it("goes on behind a change that was refused, and behind one that failed", async () => {
    const store = new MemoryStore()
    const log = await ObserverLog.open(withFaults(slow(store), { appendAll: ["ok", "fail"] }))
    const outcomes = await Promise.allSettled([log.track(1, 0), log.track(1, 0), log.track(2, 0), log.track(3, 0), log.advance(1, 0)])
    expect(outcomes.map((outcome) => (outcome.status === "rejected" ? (outcome.reason as { code: string }).code : outcome.value.head))).toEqual([
      1n,
      "request_refused",
      "store_failed",
      2n,
      "request_refused"
    ])
    expect(log.progress(2)).toBeUndefined()
    expect(log.standing).toBe("ready")
    await log.close()
  })

  it("writes a snapshot where one is due, whatever was asked, and restores from it with one row and the tail", async () => {
    const store = new MemoryStore()
    const log = ObserverLogSync.open(store)
    for (let id = 0; id < 600; id++) log.track(id, 0)
    expect(store.readValue()).toBe(514n)
    expect(log.head).toBe(602n)
    const watched = withFaultsSync(store, {})
    const again = ObserverLogSync.open(watched)
    expect(again.recover()).toMatchObject({ head: 602n })
    expect(watched.calls.filter(({ method }) => method === "readAt").map(({ args }) => args)).toEqual([[513n]])
    const reads = watched.calls.filter(({ method }) => method === "readFrom")
    expect(reads.every(({ args }) => (args[0] as bigint) >= 514n)).toBe(true)
    expect(again.progress(599)).toBe(0n)
  })

  it("reports an arm that fired in an append whose outcome was only found out later, once", async () => {
    for (const [fault, reported] of [
      ["unknown_applied", 1],
      ["unknown_not_applied", 0]
    ] as const) {
      const publications: Publication[] = []
      // The reads that would settle the append fail as well, so that its outcome stays open.
      const store = withFaults(new MemoryStore(), { appendAll: ["ok", "ok", fault], readFrom: ["ok", "fail", "fail"] })
      const log = await ObserverLog.open(store, { onPublication: (publication) => publications.push(publication) })
      await log.track(7, 1)
      await log.arm([[7, 1]])
      await expect(log.advance(7, 2)).rejects.toMatchObject({ code: "outcome_unknown" })
      expect(log.standing).toBe("unsettled")
      const change = await log.track(8, 0)
      expect(change.publications).toEqual(publications)
      expect(JSON.parse(JSON.stringify(publications))).toEqual(
        Array.from({ length: reported }, () => ({ conversationId: "7", refusedEpoch: "1", observerProgress: "2" }))
      )
      expect(log.progress(7)).toBe(reported === 1 ? 2n : 1n)
      expect((await log.recover()).publications).toEqual([])
    }
  })

  it("answers a change as made when the listener throws, whose error stays the process's", async () => {
    const errors: unknown[] = []
    const listeners = process.listeners("uncaughtException")
    process.removeAllListeners("uncaughtException")
    process.on("uncaughtException", (error) => errors.push(error))
    try {
      const store = withFaults(new MemoryStore(), { appendAll: ["ok", "ok", "unknown_applied"], readFrom: ["ok", "fail", "fail"] })
      const log = await ObserverLog.open(store, {
        onPublication: () => {
          throw new Error("of the listener")
        }
      })
      await log.track(1, 0)
      await log.arm([[1, 0]])
      await expect(log.advance(1, 1)).rejects.toMatchObject({ code: "outcome_unknown" })
      await expect(log.track(2, 0)).resolves.toMatchObject({ publications: [{ conversationId: 1n }] })
      await new Promise((resolve) => setImmediate(resolve))
      expect(errors).toEqual([expect.objectContaining({ message: "of the listener" })])
    } finally {
      process.removeAllListeners("uncaughtException")
      for (const listener of listeners) process.on("uncaughtException", listener)
    }
  })

  it("takes what a store gives that is no answer for a failure, and goes on", async () => {
    const memory = new MemoryStore()
    let wrong: unknown = undefined
    const store: DurableStore = {
      readFrom: (offset, limit) => memory.readFrom(offset, limit),
      readAt: (sequence) => memory.readAt(sequence),
      appendAll: (head, payloads) => {
        const next = memory.appendAll(head, payloads)
        return wrong === undefined ? next : (wrong as bigint)
      },
      flush: () => memory.flush(),
      readValue: () => memory.readValue(),
      cas: (expected, next) => memory.cas(expected, next),
      readHead: () => memory.readHead()
    }
    const log = await ObserverLog.open(store)
    await log.track(1, 0)
    for (const nonsense of ["two", 2.5, null, {}]) {
      wrong = nonsense
      // The rows are there: the tail says so, and the change is made.
      await log.advance(1, (log.progress(1) as bigint) + 1n)
    }
    wrong = undefined
    expect(log.progress(1)).toBe(4n)
    expect(memory.readHead()).toBe(5n)
    const broken = await restore({ ...store, readFrom: () => "rows" as unknown as StoredRow[] }).catch((error: unknown) => error)
    expect(broken).toMatchObject({ code: "store_failed", cause: { code: "answer_malformed" } })
  })

  it("names a conflict of another copy of the package as one", async () => {
    const foreign = Object.assign(new Error("taken"), { actual: 9n, [Symbol.for("journal-fold/store-conflict")]: true })
    expect(isStoreConflict(foreign)).toBe(true)
    const memory = new MemoryStore()
    const store = Object.assign(Object.create(memory) as MemoryStore, {
      readFrom: memory.readFrom.bind(memory),
      readAt: memory.readAt.bind(memory),
      readValue: memory.readValue.bind(memory),
      readHead: () => 9n,
      flush: () => {},
      appendAll: () => {
        throw foreign
      }
    })
    await expect(append(store, 0, track(1))).rejects.toMatchObject({
      code: "sequence_conflict",
      details: { failure: { name: "sequence_conflict", expected: "0", actual: "9" } },
      cause: foreign
    })
  })

  it("refuses options and arguments that are none before it asks the store anything", async () => {
    const store = withFaults(new MemoryStore(), {})
    const log = await ObserverLog.open(store)
    const before = store.calls.length
    await expect(log.track(-1, 0)).rejects.toMatchObject({ code: "argument_invalid" })
    await expect(log.track(1, 2 ** 53)).rejects.toMatchObject({ code: "argument_invalid" })
    await expect(log.advance(most + 1n, 0)).rejects.toMatchObject({ code: "argument_invalid" })
    await expect(log.arm([[1]] as never)).rejects.toMatchObject({ code: "argument_invalid" })
    await expect(log.arm([[1, 1]], { maxEntries: -1 })).rejects.toMatchObject({ code: "option_invalid" })
    await expect(ObserverLog.open(store, { onPublish: () => {} } as never)).rejects.toMatchObject({ code: "option_unknown" })
    expect(store.calls.length).toBe(before)
  })

  it("reaches the last sequence that another one can follow, and no further", async () => {
    const store = new MemoryStore(most - 3n)
    const { head, aggregate } = await restore(new MemoryStore())
    aggregate.dispose()
    expect(head).toBe(0n)
    expect((await append(store, most - 3n, track(1))).head).toBe(most - 2n)
    expect((await append(store, most - 2n, track(2))).head).toBe(most - 1n)
    // A snapshot is due at 2^64-2, and nothing could follow it.
    expect(snapshotDue(most - 1n)).toBe(true)
    await expect(append(store, most - 1n, track(3), { row: "snapshot", progress: [], armed: [] })).rejects.toMatchObject({ code: "row_sequence" })
    expect(headAfter(most - 2n, 1)).toBe(most - 1n)
    expect(headAfter(most - 1n, 1)).toBeUndefined()
    expect(store.readHead()).toBe(most - 1n)
  })
})

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

describe("a store with a writer at work", () => {
  it("is verified without a finding", async () => {
    const store = new MemoryStore()
    const log = ObserverLogSync.open(store)
    for (let id = 0; id < 700; id++) log.track(id, 0)
    let id = 700
    const busy: DurableStore = {
      ...slow(store),
      readFrom: async (offset, limit) => {
        const rows = store.readFrom(offset, limit)
        for (let more = 0; more < 100; more++) log.track((id += 1), 0)
        return rows
      }
    }
    for (let round = 0; round < 20; round++) {
      const { findings, verdict } = await verifyStore(busy)
      expect(findings).toEqual([])
      expect(verdict).toBe("match")
    }
  })
})

describe("a store that answers with pages of bytes", () => {
  /** The same store, which gives its rows as pages. */
  const paged = (store: MemoryStore): DurableStore => ({ ...slow(store), readFrom: (offset, limit) => pageOf(store.readFrom(offset, limit)) })

  it("is restored to the same state, however large its snapshots are", async () => {
    const store = new MemoryStore()
    const log = ObserverLogSync.open(store)
    for (let id = 0; id < 600; id++) log.track(2n ** 60n + BigInt(id), 2n ** 61n)
    // So long that a page of 64 rows is more than is folded at once.
    const rows = store.readFrom(0n, 1000).map(({ payload }) => (payload as string).padEnd(5000))
    for (const answers of [(padded: MemoryStore): DurableStore => padded, paged]) {
      const padded = new MemoryStore()
      padded.appendAll(0n, rows)
      const each = answers(padded)
      const restored = await restore(each)
      expect([restored.head, restored.rows, restored.aggregate.conversations]).toEqual([602n, 602n, 600])
      restored.aggregate.dispose()
      expect((await verifyStore(each)).findings).toEqual([])
    }
  })
})

describe("tail recovery", () => {
  it("leaves the aggregate that it was given as it is", async () => {
    const store = new MemoryStore()
    await append(store, 0, track(1))
    const held = new Aggregate()
    const found = await recoverTail(store, held, 0)
    expect(found.head).toBe(1n)
    expect(found.aggregate.state().progress).toEqual([[1n, 0n]])
    expect(held.state().progress).toEqual([])
    expect((await recoverTail(withFaults(store, { readFrom: ["fail"] }), held, 0)).error).toMatchObject({ code: "store_failed" })
  })
})

describe("the tests of stores", () => {
  const withMethod = <Method extends keyof MemoryStore>(method: Method, change: (store: MemoryStore) => MemoryStore[Method]): (() => MemoryStore) => () => {
    const store = new MemoryStore()
    return Object.defineProperty(store, method, { value: change(store) })
  }
  const real = MemoryStore.prototype
  const broken: Record<string, () => MemoryStore> = {
    "that appends at any head": withMethod("appendAll", (store) => (_, payloads) => real.appendAll.call(store, store.readHead() ?? 0n, payloads)),
    "that appends one row of two": withMethod("appendAll", (store) => (head, payloads) => real.appendAll.call(store, head, payloads.slice(0, 1))),
    "that answers a conflict with an error of its own": withMethod("appendAll", (store) => (head, payloads) => {
      try {
        return real.appendAll.call(store, head, payloads)
      } catch {
        throw new Error("constraint failed")
      }
    }),
    "that gives short pages": withMethod("readFrom", (store) => (offset, limit) => real.readFrom.call(store, offset, Math.min(limit, 32))),
    "that gives rows before the offset": withMethod("readFrom", (store) => (offset, limit) => real.readFrom.call(store, offset > 0n ? offset - 1n : 0n, limit)),
    "that loses digits": withMethod("cas", (store) => (expected, next) => real.cas.call(store, BigInt(Number(expected)), BigInt(Number(next)) % 2n ** 64n)),
    "that swaps without a look": withMethod("cas", (store) => (_, next) => real.cas.call(store, store.readValue() ?? 0n, next)),
    "that answers the next row for one that is missing": withMethod("readAt", (store) => (sequence) => real.readFrom.call(store, sequence > 0n ? sequence - 1n : 0n, 1)[0]),
    "whose head is the last row's sequence": withMethod("readHead", (store) => () => {
      const head = real.readHead.call(store)
      return head && head - 1n
    })
  }

  it.each(Object.entries(broken))("find a store %s", async (_, open) => {
    const failed: string[] = []
    for (const { name, run } of durableStoreTests({ open })) await run().catch(() => failed.push(name))
    expect(failed.length).toBeGreaterThan(0)
  })

  it("refuse a script that says what no call can do", async () => {
    expect(codeOf(() => withFaults(new MemoryStore(), { appendall: [] } as never))).toBe("option_unknown")
    await expect((async () => withFaults(new MemoryStore(), { flush: ["unknown_applied" as Fault] }).flush())()).rejects.toMatchObject({ code: "argument_invalid" })
  })
})

describe("after a trap", () => {
  let engine: Engine
  let log: typeof import("journal-fold/observer-log")

  beforeAll(async () => {
    const folder = copyOfPackage({ testModule: true })
    engine = await load<Engine>(folder, "core/engine.js")
    log = await load<typeof log>(folder, "folds/observer-log/index.js")
    vi.spyOn(console, "error").mockImplementation(() => {})
  })
  afterAll(removeCopies)

  const trap = (): void => {
    expect(codeOf(() => engine.call((glue) => (glue as unknown as TestGlue).test_panic()))).toBe("engine_trap")
  }

  it("a log restores and goes on, and loses nothing", async () => {
    const store = new log.MemoryStore()
    const opened = await log.ObserverLog.open(store)
    await opened.track(1, 0)
    trap()
    expect(opened.standing).toBe("closed")
    expect(opened.progress(1)).toBeUndefined()
    const change = await opened.advance(1, 1)
    expect(change).toMatchObject({ head: 2n, restored: { hint: "missing", rows: 1n } })
    expect(opened.progress(1)).toBe(1n)
    await opened.close()
  })

  it("in the middle of a change says so, and the next change finds out what became of it", async () => {
    const memory = new log.MemoryStore()
    const store = Object.create(memory) as DurableStore
    let trapped = false
    const methods = ["readFrom", "readAt", "appendAll", "flush", "readValue", "cas", "readHead"] as const
    for (const method of methods) {
      Object.defineProperty(store, method, {
        value: (...args: never[]) => {
          const value = (memory[method] as (...args: never[]) => unknown)(...args)
          if (method === "appendAll" && !trapped) {
            trapped = true
            trap()
          }
          return value
        }
      })
    }
    const opened = await log.ObserverLog.open(store)
    await expect(opened.track(1, 0)).rejects.toMatchObject({ code: "engine_restarted" })
    expect((await opened.recover()).restored).toMatchObject({ rows: 1n })
    expect(opened.progress(1)).toBe(0n)
    await expect(opened.track(1, 0)).rejects.toMatchObject({ code: "request_refused" })
    expect(memory.readHead()).toBe(1n)
  })

  it("an aggregate is gone, and says so", () => {
    const aggregate = new log.Aggregate()
    trap()
    expect(codeOf(() => aggregate.state())).toBe("engine_restarted")
    aggregate.dispose()
    expect(new log.Aggregate().state().progress).toEqual([])
  })

  it("nothing is kept by what was disposed of, or ended", async () => {
    const count = (): number => engine.call((glue) => (glue as unknown as TestGlue).object_count())
    const before = count()
    const store = new log.MemoryStore()
    for (let round = 0; round < 20; round++) {
      const opened = await log.ObserverLog.open(store)
      await opened.track(round, 0)
      await opened.track(round, 0).catch(() => {})
      opened.aggregate().dispose()
      await opened.close()
      log.verifyStoreSync(store)
      log.restoreSync(store).aggregate.dispose()
      log.planAppend(log.initial, 0, { row: "arms", arms: [] })
    }
    expect(count()).toBe(before)
  })
})
