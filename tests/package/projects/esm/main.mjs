import { isJournalFoldError, version } from "journal-fold"
import { capture, verifyRebuild } from "journal-fold/deferred-clock"
import { contentDigest } from "journal-fold/digest"
import { entries } from "./journal.mjs"

const state = capture({ runId: "r", entries }, 100)
const { verdict, plan } = verifyRebuild({ runs: [{ runId: "r", entries }], liveRuns: ["r"], completions: [], clocks: [] })
console.log(JSON.stringify({ clocks: state.clocks.length, verdict, rows: plan.rows, digest: contentDigest("größe"), version, guard: isJournalFoldError(new Error()) }))
