// The recorded cases of the observer log: each file is an object with arrays of cases, run through the published functions.
import { createHash } from "node:crypto"
import * as log from "journal-fold/observer-log"
import { withFaultsSync } from "journal-fold/testing"

const maximum = 2n ** 64n - 1n
const plain = (value) => JSON.parse(JSON.stringify(value))
const text = (number) => (number === undefined || number === null ? null : String(number))
const optional = (decimal) => (decimal === null || decimal === undefined ? undefined : BigInt(decimal))

/** What is unlike, by the order of items but not of members. */
function unlike(what, expected, found) {
  const [left, right] = [expected, found].map((value) => JSON.stringify(sorted(value)) ?? "undefined")
  return left === right ? undefined : { expected: `${what}: ${left}`, found: `${what}: ${right}` }
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]))
}

/** The first difference of several comparisons. */
const first = (...differences) => differences.find((difference) => difference !== undefined)

/** A call's result, or its error. Errors that are none of the package's are thrown on. */
function attempt(work) {
  try {
    return { value: work() }
  } catch (error) {
    if (typeof error?.code !== "string") throw error
    return { error }
  }
}

/** What the format compares of an error, and the sequence of the row at fault where a case has it. */
function unlikeError(expected, error) {
  if (expected === undefined || error === undefined) return unlike("error", expected, error && plain(error.details))
  const failure = error.details?.failure ?? {}
  const found = { ...failure, ...(failure.name === "failed" && { name: "injected_failure" }) }
  return first(
    ...["kind", "version", "expected", "actual", "sequence", "name"].map((member) =>
      unlike(`error.${member}`, expected[member], found[member])
    ),
    "reason" in expected ? unlike("error.reason", expected.reason, found.reason) : undefined,
    "row_at" in expected ? unlike("error.row_at", expected.row_at, error.details.seq) : undefined
  )
}

/** A recorded row as the package takes it. */
function rowOf(row) {
  if (row.row === "arms") return row
  if (row.row === "snapshot") return row
  return { row: row.row, conversationId: row.conversation_id, observerProgress: row.observer_progress }
}

/** A row of the package as it is recorded. */
function recordedRow(row) {
  const { row: kind, conversationId, observerProgress, ...lists } = plain(row)
  return conversationId === undefined
    ? { row: kind, ...lists }
    : { row: kind, conversation_id: conversationId, observer_progress: observerProgress }
}

const recordedFired = (fired) =>
  fired === undefined ? null : { conversation_id: text(fired.conversationId), refused_epoch: text(fired.refusedEpoch) }

/** A stream and a number in memory, as the format's model has them: sequences may be anything that ascends. */
class ModelStore {
  constructor(rows = [], head = undefined, value = undefined) {
    this.rows = rows
    this.head = head
    this.value = value
  }

  /** The place of the first row from a sequence on. */
  #place(sequence) {
    let [low, high] = [0, this.rows.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.rows[middle].sequence < sequence) low = middle + 1
      else high = middle
    }
    return low
  }

  readFrom(offset, limit) {
    const place = this.#place(offset)
    return this.rows.slice(place, place + limit)
  }

  readAt(sequence) {
    const row = this.rows[this.#place(sequence)]
    return row?.sequence === sequence ? row : undefined
  }

  appendAll(expectedHead, payloads) {
    const actual = this.head ?? 0n
    if (expectedHead !== actual) throw new log.StoreConflict(actual)
    let next = actual
    for (const payload of payloads) {
      this.rows.push({ sequence: next, payload })
      // Without a higher number the head stays.
      if (next < maximum) next += 1n
    }
    this.head = next
    return next
  }

  flush() {}

  readValue() {
    return this.value
  }

  cas(expected, next) {
    const actual = this.value ?? 0n
    if (expected !== actual) throw new log.StoreConflict(actual)
    this.value = next
  }

  readHead() {
    return this.head
  }
}

const methods = {
  read_value: "readValue",
  read_at: "readAt",
  read_from: "readFrom",
  read_head: "readHead",
  append_all: "appendAll",
  flush: "flush",
  cas: "cas"
}
const recordedNames = Object.fromEntries(Object.entries(methods).map(([recorded, method]) => [method, recorded]))

/** A case's script as `journal-fold/testing` takes it. */
function scriptOf(recorded = {}) {
  const script = {}
  for (const [name, value] of Object.entries(recorded)) {
    if (name === "page_cap") script.pageCap = Number(value)
    else if (name === "point_read_skips") script.pointReadSkips = value
    else script[methods[name]] = value.map(faultOf)
  }
  return script
}

function faultOf(behaviour) {
  if (typeof behaviour === "string") return behaviour
  const [[name, detail]] = Object.entries(behaviour)
  return { [name]: typeof detail === "string" ? BigInt(detail) : detail }
}

/** Calls as the cases record them. */
function ioOf(calls) {
  return calls.map(({ method, args, value, thrown }) => {
    const [one, two] = args
    const sent = { readAt: [text(one)], readFrom: [text(one), text(two)], appendAll: [text(one), text(two?.length)], cas: [text(one), text(two)] }
    return [recordedNames[method], ...(sent[method] ?? []), thrown === undefined ? answerOf(method, one, value) : errorName(method, thrown)]
  })
}

function answerOf(method, sequence, value) {
  switch (method) {
    case "readAt":
      return value === undefined ? "none" : value.sequence === sequence ? "row" : "later_row"
    case "readFrom":
      return text(value.length)
    case "flush":
      return "ok"
    case "cas":
      return "swapped"
    default:
      return text(value)
  }
}

function errorName(method, thrown) {
  if (log.isStoreConflict(thrown)) return method === "cas" ? "value_conflict" : "sequence_conflict"
  return /injected failure/.test(thrown.message) ? "injected_failure" : "outcome_unknown"
}

const recordedRows = (rows) => rows.map(({ sequence, payload }) => ({ sequence: text(sequence), payload }))

/** A stream in the notation of the cases. */
function streamOf({ start, parts, edits = [] }) {
  let next = BigInt(start)
  let rows = []
  const model = new Map()
  const armed = new Map()
  const list = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  const push = (payload) => {
    rows.push({ sequence: next, payload })
    if (next < maximum) next += 1n
  }
  const snapshot = () => push(log.encodeRow({ row: "snapshot", progress: list(model), armed: list(armed) }))
  const apply = (snapshots, row) => {
    if (snapshots && log.snapshotDue(next)) snapshot()
    if (row.row === "arms") for (const [id, epoch] of row.arms) armed.set(id, epoch)
    else {
      model.set(row.conversationId, row.observerProgress)
      if (row.row === "advance") armed.delete(row.conversationId)
    }
    push(log.encodeRow(row))
  }
  for (const part of parts) {
    const [[kind, detail]] = Object.entries(part)
    if (kind === "payloads") detail.forEach(push)
    else if (kind === "snapshot") snapshot()
    else if (kind === "tracks") {
      for (let i = 0n; i < BigInt(detail.count); i++) {
        apply(detail.snapshots, { row: "track", conversationId: BigInt(detail.first) + i, observerProgress: BigInt(detail.progress) })
      }
    } else {
      const [count, from, conversations, every] = [detail.rows, detail.first, detail.conversations, detail.arms_every].map(BigInt)
      for (let i = 0n; i < count; i++) {
        const conversationId = from + (i % conversations)
        const progress = model.get(conversationId)
        if (progress === undefined) apply(detail.snapshots, { row: "track", conversationId, observerProgress: 0n })
        else if (every > 0n && i % every === 0n) apply(detail.snapshots, { row: "arms", arms: [[conversationId, progress]] })
        else apply(detail.snapshots, { row: "advance", conversationId, observerProgress: progress + 1n })
      }
    }
  }
  const head = next > 0n ? next : undefined
  for (const { replace, remove, remove_below: below, payload } of edits) {
    if (replace !== undefined) rows = rows.map((row) => (row.sequence === BigInt(replace) ? { ...row, payload } : row))
    else if (remove !== undefined) rows = rows.filter(({ sequence }) => sequence !== BigInt(remove))
    else rows = rows.filter(({ sequence }) => sequence >= BigInt(below))
  }
  return new ModelStore(rows, head)
}

function digestOf(rows) {
  const hash = createHash("sha256")
  for (const { sequence, payload } of rows) hash.update(`${sequence} ${payload}\n`)
  return hash.digest("hex")
}

/** Folds rows one by one, and says of each what it did. */
function foldCase({ start, rows, expect }) {
  const aggregate = new log.Aggregate(start)
  try {
    const steps = []
    let refusedAt = null
    for (const [place, recorded] of rows.entries()) {
      const before = aggregate.armed(recorded.conversation_id ?? 0)
      const { error } = attempt(() => aggregate.push([{ sequence: place, payload: log.encodeRow(rowOf(recorded)) }]))
      if (error !== undefined) {
        steps.push({ outcome: "refused", reason: error.details.failure.reason })
        refusedAt = place
        break
      }
      const fired = recorded.row === "advance" && before !== undefined
      const what = fired ? { conversation_id: recorded.conversation_id, refused_epoch: text(before) } : null
      steps.push({ outcome: "applied", fired: what, ...plain(aggregate.state()) })
    }
    return unlike("fold", expect, { steps, refused_at: refusedAt, ...plain(aggregate.state()) })
  } finally {
    aggregate.dispose()
  }
}

function listsCase({ progress, armed, state, refused }) {
  const { value, error } = attempt(() => new log.Aggregate({ progress, armed }))
  if (error !== undefined) return unlike("lists", refused, error.details.refusal)
  const found = plain(value.state())
  value.dispose()
  return unlike("lists", state, found)
}

function liveCase({ ops, expect }) {
  const aggregate = new log.Aggregate()
  try {
    return unlike("outcomes", expect, ops.map((op) => ({ ...liveOutcome(aggregate, op), state: plain(aggregate.state()) })))
  } finally {
    aggregate.dispose()
  }
}

function liveOutcome(aggregate, op) {
  const { conversation_id: id, observer_progress: progress } = op
  if (op.op === "read") return { outcome: "read", progress: text(aggregate.progress(id)), armed: text(aggregate.armed(id)) }
  const { value: pending, error } = attempt(() =>
    op.op === "recover"
      ? aggregate.arm(op.refusals, {
          maxEntries: op.max_entries,
          connectionLimit: op.connection_limit,
          connectionTracks: op.connection_tracks
        })
      : aggregate[op.op](id, progress)
  )
  if (error !== undefined) return { outcome: "refused", reason: error.details.refusal }
  const commit = op.then === "commit"
  pending[commit ? "commit" : "abort"]()
  return { outcome: commit ? "committed" : "aborted", ...described(op.op, pending, commit) }
}

function described(op, pending, committed) {
  if (op === "advance") return { [committed ? "fired" : "would_fire"]: recordedFired(pending.wouldFire) }
  if (op !== "recover") return {}
  const statuses = pending.statuses.map(({ conversationId, refusedEpoch, current, armed }) => ({
    conversation_id: text(conversationId),
    refused_epoch: text(refusedEpoch),
    current: text(current),
    armed
  }))
  return { arms: plain(log.decodeRow(pending.payload)).arms, statuses }
}

function encodeCase({ row, payload }) {
  const encoded = log.encodeRow(rowOf(row))
  return first(unlike("payload", payload, encoded), unlike("read back", row, recordedRow(log.decodeRow(encoded))))
}

function decodeCase({ payload, payload_hex: hex, row, canonical, error: expected }) {
  const given = payload ?? new Uint8Array(Buffer.from(hex, "hex"))
  const { value, error } = attempt(() => log.decodeRow(given, 0))
  if (error !== undefined || row === undefined) return unlikeError(expected, error) ?? (row && unlike("row", row, undefined))
  const again = Buffer.from(log.encodeRow(value))
  return first(unlike("row", row, recordedRow(value)), unlike("canonical", canonical, again.equals(Buffer.from(given))))
}

function snapshotBeforeCase({ head, state, payload }) {
  // Planning an append is how a snapshot is asked for; where no row can follow there is none to ask for.
  if (!log.snapshotDue(head)) return unlike("payload", payload, null)
  const { value, error } = attempt(() => log.planAppend(state, head, { row: "arms", arms: [] }))
  return unlike("payload", payload, error === undefined ? value.payloads[0] : log.capture(state))
}

function afterwards(expect, store, hintFailures, calls) {
  return first(
    unlike("hint_after", expect.hint_after, text(store.value)),
    unlike("hint_failures", expect.hint_failures, hintFailures),
    unlike("io", expect.io, ioOf(calls))
  )
}

function appendCase({ expected_head: head, store_head: storeHead, row, snapshot, hint, store: script, expect }) {
  const store = new ModelStore([], BigInt(storeHead), optional(hint))
  const faulty = withFaultsSync(store, scriptOf(script))
  const { value, error } = attempt(() => log.appendSync(faulty, head, rowOf(row), snapshot === null ? undefined : rowOf(snapshot)))
  return first(
    unlike("due", expect.due, log.snapshotDue(head)),
    unlikeError(expect.error, error),
    unlike("next_head", expect.next_head, value && text(value.head)),
    unlike("appended", expect.appended, recordedRows(store.rows)),
    afterwards(expect, store, value?.hintFailures ?? 0, faulty.calls)
  )
}

function restoreCase(test) {
  const store = streamOf(test.stream)
  const built = first(
    unlike("stream_rows", test.stream_rows, text(store.rows.length)),
    unlike("stream_head", test.stream_head, text(store.head ?? 0n)),
    unlike("stream_digest", test.stream_digest, digestOf(store.rows))
  )
  if (built !== undefined) return built
  store.value = optional(test.hint)
  const { expect, expect_again: again } = test
  const whole = expect.whole_fold === undefined ? undefined : wholeFold(expect.whole_fold, store)
  const faulty = withFaultsSync(store, scriptOf(test.store))
  return first(whole, restoreOnce(expect, store, faulty)) ?? (again && restoreOnce(again, store, faulty))
}

function wholeFold(expected, store) {
  const aggregate = new log.Aggregate()
  // A fold from the beginning expects sequence 0, which an aggregate that may begin anywhere does not.
  const begins = store.rows.length === 0 || store.rows[0].sequence === 0n
  const { error } = attempt(() => aggregate.push(store.rows))
  aggregate.dispose()
  if (!begins) return unlike("whole_fold", expected.kind, "sequence")
  return expected === "same" ? unlikeError(undefined, error) : unlikeError(expected, error)
}

function restoreOnce(expect, store, faulty) {
  const [rows, calls] = [store.rows.length, faulty.calls.length]
  const { value, error } = attempt(() => log.restoreSync(faulty))
  const from = value ?? error.details.restore
  const found = value && {
    state: plain(value.aggregate.state()),
    next_sequence: text(value.head)
  }
  value?.aggregate.dispose()
  return first(
    unlikeError(expect.error, error),
    unlike("hint_verdict", expect.hint_verdict, from?.hint ?? null),
    unlike("folded_from", expect.folded_from, text(from?.foldedFrom)),
    unlike("state", expect.state, found?.state),
    unlike("next_sequence", expect.next_sequence, found?.next_sequence),
    unlike("appended", expect.appended, recordedRows(store.rows.slice(rows))),
    afterwards(expect, store, value?.hintFailures ?? 0, faulty.calls.slice(calls))
  )
}

function recoverCase({ state, head, rows, store_head: storeHead, store: script, expect }) {
  const stored = rows.map(({ sequence, payload }) => ({ sequence: BigInt(sequence), payload }))
  const faulty = withFaultsSync(new ModelStore(stored, optional(storeHead)), scriptOf(script))
  const held = new log.Aggregate(state)
  const found = log.recoverTailSync(faulty, held, head)
  const { publication } = found
  const published = publication && { ...recordedFired(publication), observer_progress: text(publication.observerProgress) }
  try {
    return first(
      unlikeError(expect.error, found.error),
      expect.error === undefined ? unlike("publication", expect.publication, published ?? null) : undefined,
      unlike("state", expect.state, plain(found.aggregate.state())),
      unlike("held state", state, plain(held.state())),
      unlike("head", expect.head, text(found.head)),
      unlike("io", expect.io, ioOf(faulty.calls))
    )
  } finally {
    found.aggregate.dispose()
    held.dispose()
  }
}

/** By file and array, what differs of a case. */
const runners = {
  aggregate: { fold: foldCase, live: liveCase, restore: listsCase },
  rows: { encode: encodeCase, decode: decodeCase },
  cadence: {
    snapshot_due: ({ head, due }) => unlike("due", due, log.snapshotDue(head)),
    head_after: ({ head, rows, next }) => unlike("next", next, text(log.headAfter(head, rows))),
    snapshot_before: snapshotBeforeCase
  },
  append: { append: appendCase },
  restore: { restore: restoreCase },
  recover: { recover: recoverCase }
}

/** What a file has besides its cases. */
const constants = {
  cadence({ interval, first_due_heads: heads }) {
    const found = Array.from({ length: 3000 }, (_, head) => head).filter((head) => log.snapshotDue(head)).map(String)
    return first(unlike("interval", interval, text(log.snapshotInterval)), unlike("first_due_heads", heads, found))
  }
}

/** A case's result changed to the one of its deviation: in place of its `expect`, or of a decoded row. */
function deviating(test, { expected }) {
  if ("expect" in test) return { ...test, expect: expected }
  const { row: _, canonical: __, ...rest } = test
  return { ...rest, ...expected }
}

/**
 * The deviation of a case that is not listed by name, by the rule that it falls under: the caller's misuse of an append is told apart
 * from a corrupt row; what no sequence could follow is refused before it is written; unusual texts are refused.
 */
function deviationByRule(file, test) {
  const { expect, group } = test
  if (file === "rows" && (group === "lenient" || group === "bytes") && "row" in test) return { expected: { error: { kind: "json" } } }
  if (file !== "append" || expect.error === undefined) return undefined
  const { kind, sequence, expected, actual } = expect.error
  const untouched = { due: expect.due, appended: [], hint_after: test.hint, hint_failures: 0, io: [] }
  if (kind === "corrupt_row") return { expected: { ...untouched, error: { kind: "append_misuse", sequence } } }
  if (kind === "sequence" && expected === text(maximum)) return { expected: { ...untouched, error: { kind, expected, actual } } }
  return undefined
}

/** The files there are runners for. */
export const files = Object.keys(runners)

/** Runs the cases of a file; `deviations` are those of the file, by name. Yields each case with what differs, if anything does. */
export function* runFile(file, cases, deviations) {
  const difference = constants[file]?.(cases)
  if (difference !== undefined) yield { name: "constants", difference, deviates: false }
  let ran = 0
  for (const [array, run] of Object.entries(runners[file])) {
    for (const test of cases[array] ?? []) {
      ran += 1
      yield { name: `${array}: ${test.name ?? JSON.stringify(test)}`, ...outcome(file, run, test, deviations[test.name]) }
    }
  }
  const whole = unlike("cases that have a runner", cases.cases, ran)
  if (whole !== undefined) yield { name: "cases", difference: whole, deviates: false }
}

function outcome(file, run, test, listed) {
  const recorded = run(test)
  if (listed !== undefined) {
    if (recorded === undefined) return { difference: unlike("a listed deviation", "another result", "the recorded one"), deviates: true }
    return { difference: run(deviating(test, listed)), deviates: true }
  }
  if (recorded === undefined) return { difference: undefined, deviates: false }
  const ruled = deviationByRule(file, test)
  if (ruled === undefined || run(deviating(test, ruled)) !== undefined) return { difference: recorded, deviates: false }
  return { difference: undefined, deviates: true }
}
