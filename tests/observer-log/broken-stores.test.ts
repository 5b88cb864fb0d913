/** The tests of stores find stores that are broken, each in its own way. */
import { describe, expect, it } from "vitest"
import { MemoryStore } from "journal-fold/observer-log"
import { durableStoreTests, withFaults, type Fault } from "journal-fold/testing"
import { codeOf } from "./streams.js"

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
