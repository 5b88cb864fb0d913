/** The log and its operations as their callers see them: order, errors, outcomes that are found out later. */
import { describe, expect, it } from "vitest"
import {
  Aggregate,
  append,
  encodeRow,
  headAfter,
  isStoreConflict,
  MemoryStore,
  ObserverLog,
  ObserverLogSync,
  recoverTail,
  restore,
  snapshotDue,
  verifyStore,
  type DurableStore,
  type Publication,
  type StoredRow
} from "journal-fold/observer-log"
import { withFaults, withFaultsSync } from "journal-fold/testing"
import { most, track, pageOf, slow } from "./streams.js"

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
    const rows = store.readFrom(0n, 1000).map(({ payload }) => (payload as string).padEnd(9000))
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
