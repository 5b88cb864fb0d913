// Never run: what a user of the types writes, and what the types must refuse.
import { isFoldIncomplete, isJournalFoldError, type ErrorCode, type JournalFoldError } from "journal-fold"
import {
  capture, checkpointState, checkpointStateText, eventTypes, Fold, fromCheckpoint, init, initial, orThrow, Rebuild, reduce, verifyRebuild,
  type Encoded, type Entry, type EntryText, type Page, type Run, type Verification
} from "journal-fold/deferred-clock"
import * as DeferredClock from "journal-fold/deferred-clock"
import { contentDigest, verifyDigest } from "journal-fold/digest"
import "journal-fold/inline"

const live: Entry = { runId: "r", seq: 1n, eventType: eventTypes[0], payload: { flowName: "F" } }
const text: EntryText = { runId: "r", seq: "2", eventType: "other", payloadText: "{}" }
const page: Page = {
  runId: "r", bytes: new Uint8Array(), ends: new Uint32Array(), seqs: new BigInt64Array(), types: new Uint8Array()
}
const run: Run = { runId: "r", floors: [{ seq: 0, compactedAtMs: null, state: {} }, { seq: 0, compactedAtMs: 1, stateText: "{}" }], entries: [live, text, page] }

const state: Encoded = reduce(initial, [live, text])
const kept: Encoded | undefined = fromCheckpoint(checkpointState(run, 5, { other: 1 }))
const spelled: string = checkpointStateText(run, 5, "{}")
const name: string | undefined = capture(run, 5).clocks[0]?.clockName
const verification: Verification = orThrow(verifyRebuild({ runs: [run], liveRuns: new Set(["r"]), completions: [] }, { strict: true }))
const digest: boolean = verifyDigest("a", contentDigest("a"))

function use(): void {
  using fold = new Fold({ runId: "r", upTo: 1 })
  fold.push(page)
  fold.push([text])
  using rebuild = new Rebuild({ compareClocks: false })
  rebuild.beginRun("r")
  for (const { flowName } of rebuild.endRun().addresses) console.log(flowName)
}

function code(error: unknown): ErrorCode | undefined {
  if (isFoldIncomplete(error)) return error.unjoined[0]?.reason === "run_missing" ? error.code : undefined
  if (isJournalFoldError(error, "seq_invalid")) {
    const exact: "seq_invalid" = error.code
    return exact
  }
  return isJournalFoldError(error) ? (error satisfies JournalFoldError).code : undefined
}

// @ts-expect-error a misspelt option
new Fold({ upto: 1 })
// @ts-expect-error a payload or its text
reduce(initial, [{ runId: "r", seq: 1, eventType: "x" }])
// @ts-expect-error no such code
isJournalFoldError(0, "no_such_code")

export { DeferredClock, code, digest, init, kept, name, spelled, state, use, verification }
