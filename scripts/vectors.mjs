// Runs recorded cases against the built package:  node scripts/vectors.mjs [FOLDER]
//
// FOLDER is a fold's folder, whose name is the fold's, or a folder of such folders (default: tests/vectors). Prints each failing
// case with what was expected and what was found, and ends with a line `N passed, N failed`.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = fileURLToPath(new URL("../", import.meta.url))

/** Writes `repeat` items out, wherever they stand. */
export function expand(value) {
  if (Array.isArray(value)) {
    return value.flatMap((item) =>
      isRepeat(item) ? Array.from({ length: item.repeat }, (_, place) => fill(item.template, place)) : [expand(item)]
    )
  }
  if (typeof value !== "object" || value === null) return value
  return mapMembers(value, expand)
}

function isRepeat(item) {
  return typeof item === "object" && item !== null && Number.isInteger(item.repeat) && "template" in item
}

/** The `place`th item of a template. */
function fill(template, place) {
  if (typeof template === "string") {
    return template.replace(/\{\{(-?\d+),(-?\d+)\}\}/g, (_, a, b) => String(Number(a) + Number(b) * place))
  }
  if (Array.isArray(template)) return template.map((item) => fill(item, place))
  if (typeof template !== "object" || template === null) return template
  if (Array.isArray(template.$n)) return template.$n[0] + template.$n[1] * place
  return mapMembers(template, (item) => fill(item, place))
}

/** A copy by own members: `__proto__` is one like any other. */
function mapMembers(record, change) {
  const copy = {}
  for (const [name, value] of Object.entries(record)) {
    Object.defineProperty(copy, name, { value: change(value), enumerable: true, writable: true, configurable: true })
  }
  return copy
}

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

/** What a call gives: its result, or its error as the cases record it. */
export function outcomeOf(work) {
  try {
    return work()
  } catch (error) {
    if (typeof error?.code !== "string") return { thrown: String(error?.stack ?? error) }
    const unjoined = error.unjoined === undefined ? {} : { unjoined: error.unjoined }
    return { error: { code: error.code, ...unjoined } }
  }
}

/** An expectation without what is not compared: the wording of messages. */
export function withoutMessage(expected) {
  if (expected?.error === undefined) return expected
  const { message: _, ...error } = expected.error
  return { ...expected, error }
}

/** Compares as text, so that the order of rows and members counts, and says what differs. */
export function differs(found, expected) {
  const [foundText, expectedText] = [JSON.stringify(found) ?? "undefined", JSON.stringify(expected) ?? "undefined"]
  return foundText === expectedText ? undefined : { expected: expectedText, found: foundText }
}

/** The expectation of a case: its own, or that of its deviation. */
function expectationOf(test, deviation) {
  if (deviation !== undefined) return deviation.expected
  return "expectedText" in test ? JSON.parse(test.expectedText) : test.expected
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

/** The runners of a fold: by file, what a case gives and what is compared. */
const folds = {
  "deferred-clock": async () => {
    const fold = await import("journal-fold/deferred-clock")

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

    return {
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
  }
}

/** What is compared of a case's expectation. */
function compared(fold, file, test, expectation, found) {
  const expected = withoutMessage(expectation)
  if (fold === "deferred-clock" && file === "rebuild" && test.driverSpecific) {
    return [{ rebuilt: found.rebuilt }, { rebuilt: expected.rebuilt }]
  }
  // A deviation may name a code alone.
  if (expected?.error !== undefined && expected.error.unjoined === undefined && found?.error !== undefined) {
    const { unjoined: _, ...error } = found.error
    return [{ ...found, error }, expected]
  }
  return [found, expected]
}

/** Reads the cases that differ on purpose. They belong to the project, not to the folder that is run. */
function readDeviations() {
  const path = join(root, "tests/vectors/deviations.json")
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {}
}

/**
 * Runs the cases of one fold's folder.
 *
 * @returns how many passed, and each that failed
 */
export async function runFold(folder) {
  const name = basename(folder)
  const runners = await folds[name]()
  const deviations = readDeviations()[name] ?? {}
  const failures = []
  let passed = 0
  for (const file of readdirSync(folder).filter((file) => file.endsWith(".json")).sort()) {
    const key = file.slice(0, -5)
    const runner = runners[key]
    if (runner === undefined) {
      failures.push({ name: `${name}/${key}`, expected: `a runner for ${file}`, found: "none" })
      continue
    }
    for (const recorded of JSON.parse(readFileSync(join(folder, file), "utf8"))) {
      const test = expand(recorded)
      const deviation = deviations[key]?.[test.name]
      if (deviation !== undefined) delete test.expectedKeys
      const expectation = expectationOf(test, deviation)
      const [found, expected] = compared(name, key, test, expectation, runner(test))
      const difference = differs(found, expected)
      if (difference === undefined) passed += 1
      else failures.push({ name: `${name}/${key}: ${test.name}`, ...difference })
    }
  }
  return { passed, failures }
}

/** The folds' folders that a folder is or has. Those without a runner are named. */
export function foldersIn(folder) {
  const known = (path) => basename(path) in folds
  if (known(folder)) return { folders: [folder], unknown: [] }
  const inside = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name))
  return { folders: inside.filter(known), unknown: inside.filter((path) => !known(path)) }
}

async function main([given]) {
  const folder = resolve(given ?? join(root, "tests/vectors"))
  if (!existsSync(folder)) {
    console.error(`there is no folder ${folder}`)
    return 2
  }
  const { folders, unknown } = foldersIn(folder)
  for (const path of unknown) console.log(`# ${basename(path)}: no runner yet, skipped`)
  let passed = 0
  let failed = 0
  for (const path of folders) {
    const { passed: good, failures } = await runFold(path)
    for (const { name, expected, found } of failures) {
      console.log(`not ok ${name}\n  expected ${expected}\n  found    ${found}`)
    }
    console.log(`# ${basename(path)}: ${good} passed, ${failures.length} failed`)
    passed += good
    failed += failures.length
  }
  if (passed + failed === 0) console.log(`# nothing ran: ${folder} is no fold's folder (${Object.keys(folds).join(", ")}) and has none`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = await main(process.argv.slice(2))
