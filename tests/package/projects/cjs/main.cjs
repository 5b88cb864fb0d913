const { isJournalFoldError, version } = require("journal-fold")
const { capture, verifyRebuild } = require("journal-fold/deferred-clock")
const { contentDigest } = require("journal-fold/digest")
const { entries } = require("./journal.mjs")

const state = capture({ runId: "r", entries }, 100)
const { verdict, plan } = verifyRebuild({ runs: [{ runId: "r", entries }], liveRuns: ["r"], completions: [], clocks: [] })
console.log(JSON.stringify({ clocks: state.clocks.length, verdict, rows: plan.rows, digest: contentDigest("größe"), version, guard: isJournalFoldError(new Error()) }))
