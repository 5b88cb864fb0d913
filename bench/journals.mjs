// Journals to measure with: deterministic, shaped like an engine's, as long as asked for.
import { eventTypes } from "journal-fold/deferred-clock"

const digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"

/** What a journal looks like: `ascii` or not, and how many bytes of an unknown member each payload carries. */
export const shapes = {
  short: { flow: "checkout", extra: 0 },
  "non-ASCII": { flow: "Bestellung-größe-注文", extra: 0 },
  "2 KB": { flow: "checkout", extra: 2048 }
}

/** The payload of entry `place` of a run: a clock is scheduled and completes, a deferred completes and is consumed. */
export function payloadText(runId, place, { flow, extra }) {
  const at = 1767225600000 + place
  const name = `step-${place >> 2}`
  const payload = [
    { flowName: flow, executionId: runId, clockName: name, deferredName: `timer/${name}`, dueAtMs: at },
    { flowName: flow, executionId: runId, clockName: name, completedAtMs: at },
    { flowName: flow, executionId: runId, deferredName: name, completedAtMs: at, exitDigest: digest, metadataDigest: null },
    { flowName: flow, executionId: runId, deferredName: name, consumedAtMs: at }
  ][place & 3]
  if (extra > 0) payload.note = "x".repeat(extra)
  return JSON.stringify(payload)
}

/** One run of `count` entries, as text rows. */
export function textRows(count, shape, runId = "run-000001") {
  return Array.from({ length: count }, (_, place) => ({
    runId,
    seq: place,
    eventType: eventTypes[place & 3],
    payloadText: payloadText(runId, place, shape)
  }))
}

/** The same entries as pages of bytes. */
export function bytePages(rows, rowsAPage = 4096) {
  const encoder = new TextEncoder()
  const pages = []
  for (let from = 0; from < rows.length; from += rowsAPage) {
    const slice = rows.slice(from, from + rowsAPage)
    const parts = slice.map(({ payloadText }) => encoder.encode(payloadText))
    const ends = new Uint32Array(parts.length)
    let end = 0
    parts.forEach((part, place) => (ends[place] = end += part.byteLength))
    const bytes = new Uint8Array(end)
    parts.forEach((part, place) => bytes.set(part, place === 0 ? 0 : ends[place - 1]))
    pages.push({
      runId: slice[0].runId,
      bytes,
      ends,
      seqs: BigInt64Array.from(slice, ({ seq }) => BigInt(seq)),
      types: Uint8Array.from(slice, ({ eventType }) => eventTypes.indexOf(eventType))
    })
  }
  return pages
}
