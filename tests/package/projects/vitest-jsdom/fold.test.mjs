import { capture, init } from "journal-fold/deferred-clock"
import { expect, it } from "vitest"
import { entries } from "./journal.mjs"

it("folds in a simulated browser", async () => {
  expect(document.createElement("p")).toBeDefined()
  await init()
  expect(capture({ runId: "r", entries }, 100).clocks).toHaveLength(3)
})
