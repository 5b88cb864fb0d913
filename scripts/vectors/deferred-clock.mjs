// The recorded cases of the deferred and clock fold: each file is an array of cases.
import * as fold from "journal-fold/deferred-clock"
import { differs, expand, outcomeOf, withoutMessage } from "./cases.mjs"

/** Sets what JSON cannot say: members that are there but undefined. */
function setUndefined(value, pointers = []) {
  for (const pointer of pointers) {
    const parts = pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    const last = parts.pop()
    let at = value
    for (const part of parts) at = at[part]
    at[last] = undefined
  }
  return value
}

/** Compares seqs as the numbers that they are, whether they came as numbers or as text. */
const bySeq = (a, b) => (BigInt(a.seq) < BigInt(b.seq) ? -1 : BigInt(a.seq) > BigInt(b.seq) ? 1 : 0)

const encoder = new TextEncoder()
const bytesOf = (...texts) => texts.map((text) => encoder.encode(text))

/** The order of tables: by the UTF-8 bytes of an address's parts. */
function byAddress(nameKey) {
  return (a, b) => {
    const left = bytesOf(a.flowName, a.executionId, a[nameKey])
    const right = bytesOf(b.flowName, b.executionId, b[nameKey])
    for (let part = 0; part < 3; part++) {
      const order = Buffer.compare(left[part], right[part])
      if (order !== 0) return order
    }
    return 0
  }
}

/** The runs of a recorded store, each with its entries in order of seq and its checkpoints. */
export function runsOf(journal, checkpoints, ownRunId) {
  const runs = new Map()
  const run = (runId) => {
    if (!runs.has(runId)) runs.set(runId, { runId, entries: [], floors: [] })
    return runs.get(runId)
  }
  for (const entry of journal) run(entry.runId).entries.push(entry)
  for (const floor of checkpoints) run(floor.runId ?? ownRunId).floors.push(floor)
  for (const { entries } of runs.values()) entries.sort(bySeq)
  return [...runs.values()]
}

function applyPlan(pages, clockRows, deferredRows) {
  const key = (row) => JSON.stringify(row.slice(0, 3))
  const clocks = new Map(clockRows.map((row) => [key([row.flowName, row.executionId, row.clockName]), row]))
  const deferreds = new Map(deferredRows.map((row) => [key([row.flowName, row.executionId, row.deferredName]), row]))
  for (const { table, op, rows, count } of pages) {
    const parsed = JSON.parse(rows)
    if (parsed.length !== count) throw new Error(`a page of ${count} rows has ${parsed.length}`)
    for (const row of parsed) {
      if (table === "clocks" && op === "delete") clocks.delete(key(row))
      else if (table === "clocks") {
        const [flowName, executionId, clockName, deferredName, dueAtMs, completedAtMs] = row
        clocks.set(key(row), { flowName, executionId, clockName, deferredName, dueAtMs, completedAtMs })
      } else {
        const [, , , completedAtMs, consumedAtMs] = row
        const before = deferreds.get(key(row))
        deferreds.set(key(row), { ...before, completedAtMs: completedAtMs ?? before.completedAtMs, consumedAtMs })
      }
    }
  }
  return {
    clockRowsAfter: [...clocks.values()].sort(byAddress("clockName")),
    deferredRowsAfter: [...deferreds.values()].sort(byAddress("deferredName"))
  }
}


/** By file, what a case gives. */
const runners = {
  reduce(test) {
    const start = test.start ?? fold.initial
    const outcome = outcomeOf(() => fold.reduce(start, test.entries))
    if (test.applied === undefined || outcome.error !== undefined) return outcome
    // Which entries changed the fold: those after which its text is another.
    const one = new fold.Fold({ state: start })
    try {
      let before = one.stateText()
      const applied = []
      test.entries.forEach((entry, place) => {
        one.reduce([entry])
        const after = one.stateText()
        if (after !== before) applied.push(place)
        before = after
      })
      if (JSON.stringify(applied) !== JSON.stringify(test.applied)) return { applied }
    } finally {
      one.dispose()
    }
    return outcome
  },

  checkpoint(test) {
    if (test.op === "fromCheckpoint") {
      const outcome = outcomeOf(() =>
        test.checkpointStateText === undefined
          ? fold.fromCheckpoint(setUndefined(test.checkpointState, test.undefinedAt))
          : fold.fromCheckpointText(test.checkpointStateText)
      )
      return outcome ?? null
    }
    const run = { runId: test.runId, entries: test.entries.toSorted(bySeq), floors: test.floors }
    const base = "baseText" in test ? JSON.parse(test.baseText) : test.base
    const outcome = outcomeOf(() => fold.checkpointState(run, test.upTo, base))
    if (outcome.error === undefined && test.expectedKeys !== undefined) {
      const keys = Object.keys(outcome)
      if (JSON.stringify(keys) !== JSON.stringify(test.expectedKeys)) return { keys }
      // The text form keeps the base's spelling, and means the same.
      const text = fold.checkpointStateText(run, test.upTo, test.baseText ?? (base === undefined ? undefined : JSON.stringify(base)))
      if (differs(JSON.parse(text), outcome)) return { text }
    }
    return outcome
  },

  capture(test) {
    const runs = runsOf(test.entries, test.floors, test.runId)
    const run = runs.find(({ runId }) => runId === test.runId) ?? { runId: test.runId, entries: [] }
    return outcomeOf(() => fold.capture(run, test.upTo))
  },

  rebuild(test) {
    const { clockRows, deferredRows } = test
    const verification = outcomeOf(() =>
      fold.verifyRebuild({
        runs: runsOf(test.journal, test.checkpoints),
        liveRuns: test.runs,
        clocks: clockRows,
        completions: deferredRows.map(({ exitJson, metadataJson, ...row }) => ({
          ...row,
          exitText: exitJson,
          metadataText: metadataJson
        }))
      })
    )
    if (verification.verdict === undefined) return verification
    const { plan, rebuilt } = verification
    const result = outcomeOf(() => (fold.orThrow(verification), { rebuilt }))
    return { ...result, ...applyPlan(result.rebuilt === undefined ? [] : plan.pages, clockRows, deferredRows) }
  }
}

/** The expectation of a case: its own, or that of its deviation. */
function expectationOf(test, deviation) {
  if (deviation !== undefined) return deviation.expected
  return "expectedText" in test ? JSON.parse(test.expectedText) : test.expected
}

/** What is compared of a case's expectation. */
function compared(file, test, expectation, found) {
  const expected = withoutMessage(expectation)
  if (file === "rebuild" && test.driverSpecific) return [{ rebuilt: found.rebuilt }, { rebuilt: expected.rebuilt }]
  // A deviation may name a code alone.
  if (expected?.error !== undefined && expected.error.unjoined === undefined && found?.error !== undefined) {
    const { unjoined: _, ...error } = found.error
    return [{ ...found, error }, expected]
  }
  return [found, expected]
}

/** The files there are runners for. */
export const files = Object.keys(runners)

/** Runs the cases of a file; `deviations` are those of the file, by name. Yields each case with what differs, if anything does. */
export function* runFile(file, cases, deviations) {
  for (const recorded of cases) {
    const test = expand(recorded)
    const deviation = deviations[test.name]
    if (deviation !== undefined) delete test.expectedKeys
    const [found, expected] = compared(file, test, expectationOf(test, deviation), runners[file](test))
    yield { name: test.name, difference: differs(found, expected), deviates: deviation !== undefined }
  }
}
