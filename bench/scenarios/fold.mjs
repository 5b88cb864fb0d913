// One run's journal to its state: from text rows in memory, and from pages that are bytes already.
import { Fold, eventTypes } from "journal-fold/deferred-clock"
import { bytePages, shapes, textRows } from "../journals.mjs"
import { inTurn, roundsFor } from "../measure.mjs"
import { FastFold } from "../plain-js-fold.mjs"

/** The rival reads each row's text. */
function plainFromText(rows) {
  const fold = new FastFold()
  for (const { eventType, payloadText } of rows) fold.apply(eventType, JSON.parse(payloadText))
  return fold
}

const decoder = new TextDecoder()

/** The rival reads bytes the best way there is: one decoding a page, then slices; row by row where a page is not ASCII. */
function plainFromBytes(pages) {
  const fold = new FastFold()
  for (const { bytes, ends, types } of pages) {
    const text = decoder.decode(bytes)
    const ascii = text.length === bytes.byteLength
    let start = 0
    for (let row = 0; row < ends.length; row++) {
      const end = ends[row]
      const payload = ascii ? text.slice(start, end) : decoder.decode(bytes.subarray(start, end))
      fold.apply(eventTypes[types[row]], JSON.parse(payload))
      start = end
    }
  }
  return fold
}

function ours(entries) {
  const fold = new Fold()
  for (const part of entries) fold.push(part)
  fold.dispose()
}

export function* run({ quick, sizes = quick ? [1_000, 20_000] : [1_000, 20_000, 200_000, 1_000_000] }) {
  for (const [name, shape] of Object.entries(shapes)) {
    for (const size of sizes) {
      // Two kilobytes each: a million of them would not fit beside their own copies.
      if (shape.extra > 0 && size > 200_000) continue
      const rows = textRows(size, shape)
      const pages = bytePages(rows)
      const options = { units: size, rounds: roundsFor(size, quick) }
      yield {
        scenario: `text rows to state, ${name}`,
        size,
        unit: "ns an entry",
        target: 3,
        ...inTurn(() => ours([rows]), () => plainFromText(rows), options)
      }
      yield {
        scenario: `byte pages to state, ${name}`,
        size,
        unit: "ns an entry",
        target: 4,
        ...inTurn(() => ours(pages), () => plainFromBytes(pages), options)
      }
    }
  }
}
