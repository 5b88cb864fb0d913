/** The store in memory against the tests of stores. */
import { describe, it } from "vitest"
import { MemoryStore, type DurableStore, type RowPage, type StoredRow } from "journal-fold/observer-log"
import { durableStoreTests } from "journal-fold/testing"
import { pageOf } from "./streams.js"

/** Gives its rows as pages of bytes. */
class PagedStore extends MemoryStore {
  // @ts-expect-error: another form of the same answer
  override readFrom(offset: bigint, limit: number): RowPage {
    return pageOf(super.readFrom(offset, limit))
  }

  override readAt(sequence: bigint): StoredRow | undefined {
    return super.readFrom(sequence, 1).find((row) => row.sequence === sequence)
  }
}

describe("a store in memory that answers with pages", () => {
  for (const { name, run } of durableStoreTests({ open: () => new PagedStore() as unknown as DurableStore })) it(name, run)
})

describe("a store in memory", () => {
  const tests = durableStoreTests({
    open: () => new MemoryStore(),
    again: (store) => store,
    openAt: (head) => new MemoryStore(head)
  })
  for (const { name, run } of tests) it(name, run)
})
