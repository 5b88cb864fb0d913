import { capture, verifyRebuild } from "journal-fold/deferred-clock"
import { contentDigest } from "journal-fold/digest"
import { entries } from "./journal.mjs"

export default {
  test() {
    const { clocks } = capture({ runId: "r", entries }, 100)
    const { verdict } = verifyRebuild({ runs: [{ runId: "r", entries }], liveRuns: ["r"], completions: [], clocks: [] })
    console.log(JSON.stringify({ clocks: clocks.length, verdict, digest: contentDigest("größe") }))
  }
}
