/** The store in memory against the tests of stores. */
import { describe, it } from "vitest"
import { MemoryStore } from "journal-fold/observer-log"
import { durableStoreTests } from "journal-fold/testing"

describe("a store in memory", () => {
  const tests = durableStoreTests({
    open: () => new MemoryStore(),
    again: (store) => store,
    openAt: (head) => new MemoryStore(head)
  })
  for (const { name, run } of tests) it(name, run)
})
