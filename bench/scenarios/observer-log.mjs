// A stream's rows to its state: from texts in memory, and from a page that is bytes already; and the same core natively.
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Aggregate } from "journal-fold/observer-log"
import { PlainAggregate } from "../plain-js-observers.mjs"
import { hot, inTurn, roundsFor } from "../measure.mjs"
import { randomNumbers, streamRows } from "../streams.mjs"

const decoder = new TextDecoder()

function ours(rows) {
  const aggregate = new Aggregate()
  aggregate.push(rows)
  aggregate.dispose()
}

function plainFromText(rows) {
  const aggregate = new PlainAggregate()
  for (const { payload } of rows) aggregate.apply(payload)
  return aggregate
}

/** The rival reads bytes the best way there is: one decoding a page, then slices, since rows are ASCII. */
function plainFromBytes({ bytes, ends }) {
  const aggregate = new PlainAggregate()
  const text = decoder.decode(bytes)
  let start = 0
  for (const end of ends) {
    aggregate.apply(text.slice(start, end))
    start = end
  }
  return aggregate
}

function pageOf(rows) {
  const encoder = new TextEncoder()
  const payloads = rows.map(({ payload }) => encoder.encode(payload))
  const bytes = new Uint8Array(payloads.reduce((sum, { length }) => sum + length, 0))
  const ends = new Uint32Array(rows.length)
  let end = 0
  payloads.forEach((payload, place) => {
    bytes.set(payload, end)
    end += payload.length
    ends[place] = end
  })
  return { bytes, ends, sequences: BigUint64Array.from(rows, ({ sequence }) => BigInt(sequence)) }
}

const shapes = {
  "100 conversations": { conversations: 100, large: false },
  "10,000 conversations": { conversations: 10_000, large: false },
  "ids beyond 2^53": { conversations: 100, large: true }
}

/** Nanoseconds a row of the core compiled natively; nothing where there is no cargo. */
function natively(rows, rounds) {
  const program = fileURLToPath(new URL("../../target/release/examples/fold_stream", import.meta.url))
  if (!existsSync(program)) return undefined
  const folder = mkdtempSync(join(tmpdir(), "stream-"))
  try {
    writeFileSync(join(folder, "rows"), rows.map(({ payload }) => `${payload}\n`).join(""))
    return JSON.parse(execFileSync(program, [join(folder, "rows"), String(rounds)], { encoding: "utf8" }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A million rows of many conversations are mostly snapshots, and more than a text can hold. */
const fits = (size, { conversations }) => size * (conversations > 1000 ? 5 : 1) <= 1_000_000

export function* run({ quick, sizes = quick ? [1_000, 20_000] : [1_000, 20_000, 200_000, 1_000_000] }) {
  for (const [name, shape] of Object.entries(shapes)) {
    for (const size of sizes.filter((size) => fits(size, shape))) {
      const rows = streamRows(size, shape, randomNumbers(size))
      const page = pageOf(rows)
      const options = { units: size, rounds: roundsFor(size, quick) }
      yield {
        scenario: `stream texts to state, ${name}`,
        size,
        unit: "ns a row",
        target: 3,
        ...inTurn(() => ours(rows), () => plainFromText(rows), options)
      }
      yield {
        scenario: `stream page to state, ${name}`,
        size,
        unit: "ns a row",
        target: 3,
        ...inTurn(() => ours(page), () => plainFromBytes(page), options)
      }
      const native = natively(rows, options.rounds)
      if (native === undefined) continue
      // The rival is the core itself, so the target is its time and half of it again.
      yield {
        scenario: `stream page to state against native, ${name}`,
        size,
        unit: "ns a row",
        target: 1 / 1.5,
        ours: hot(() => ours(page), options),
        rival: native
      }
    }
  }
}
