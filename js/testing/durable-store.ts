/** Tests of what a log asks of a store, for whatever runs tests: each is a name and a function that throws. */
import { isJournalFoldError, type ErrorCode } from "../core/errors.js"
import { ObserverLog } from "../folds/observer-log/log.js"
import { rowsOf } from "../folds/observer-log/pages.js"
import { verifyStore } from "../folds/observer-log/rebuild.js"
import { encodeRow } from "../folds/observer-log/rows.js"
import { isStoreConflict, type DurableStore } from "../folds/observer-log/store.js"
import type { Publication } from "../folds/observer-log/types.js"
import { withFaults, type Fault, type FaultScript } from "./faults.js"

/** A test of a store. */
export interface StoreTest {
  readonly name: string
  /** Throws an `Error` when the store does otherwise than a log asks. */
  readonly run: () => Promise<void>
}

/** How the tests come by stores. */
export interface StoreSubject<Store extends DurableStore> {
  /** A store of a stream that has no rows and no number yet. */
  readonly open: () => Store | Promise<Store>
  /** A second store of the same stream, as another process would have it. Without it, tests that need one are left out. */
  readonly again?: (store: Store) => Store | Promise<Store>
  /** A store of a stream without rows whose first row takes the sequence `head`. Without it, tests beyond 2^53 are left out. */
  readonly openAt?: (head: bigint) => Store | Promise<Store>
  /** Called after each test with every store that it was given. */
  readonly close?: (store: Store) => void | Promise<void>
}

const maximum = 2n ** 64n - 1n

function demand(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what)
}

function same(what: string, expected: unknown, found: unknown): void {
  const [left, right] = [expected, found].map((value) =>
    JSON.stringify(value ?? null, (_, member: unknown) => (typeof member === "bigint" ? `${member}n` : member))
  )
  demand(left === right, `${what}: expected ${left}, found ${right}`)
}

async function conflictOf(what: string, work: () => unknown): Promise<bigint> {
  try {
    await work()
  } catch (error) {
    demand(isStoreConflict(error), `${what}: expected a StoreConflict, found ${String(error)}`)
    return error.actual
  }
  throw new Error(`${what}: expected a StoreConflict, and nothing was thrown`)
}

const decoder = new TextDecoder()

/** Rows from a sequence on, as sequences and texts. */
async function stored(store: DurableStore, offset: bigint, limit: number): Promise<[bigint, string][]> {
  return rowsOf(await store.readFrom(offset, limit)).map(({ sequence, payload }) => [
    BigInt(sequence),
    typeof payload === "string" ? payload : decoder.decode(payload)
  ])
}

const texts = ["{}", "an umlaut ä, a sign €, a face 😀", " spaces \n\t and a quote ' \" \\", "x".repeat(100_000)]

type Checks<Store extends DurableStore> = Record<string, (store: Store, subject: StoreSubject<Store>, opened: (store: Store) => Store) => Promise<void>>

/** What any store has to do, one thing each. */
const basics: Checks<DurableStore> = {
  "is empty at first": async (store) => {
    same("the head", undefined, await store.readHead())
    same("the number", undefined, await store.readValue())
    same("rows", [], await stored(store, 0n, 64))
    same("row 0", undefined, await store.readAt(0n))
  },
  "gives back what was appended, text for text": async (store) => {
    same("the head", BigInt(texts.length), await store.appendAll(0n, texts))
    same("the head read", BigInt(texts.length), await store.readHead())
    same("rows", texts.map((text, place) => [BigInt(place), text]), await stored(store, 0n, 64))
    await store.flush()
    const row = await store.readAt(1n)
    same("row 1", [1n, texts[1]], row && [BigInt(row.sequence), typeof row.payload === "string" ? row.payload : decoder.decode(row.payload)])
    same("row 4", undefined, await store.readAt(4n))
  },
  "gives as many rows as were asked for, and fewer only at the end": async (store) => {
    const many = Array.from({ length: 200 }, (_, place) => `row ${place}`)
    await store.appendAll(0n, many.slice(0, 120))
    await store.appendAll(120n, many.slice(120))
    for (const [offset, limit] of [[0, 64], [64, 64], [128, 64], [192, 64], [199, 1], [200, 64], [1000, 64], [0, 512], [7, 1]] as const) {
      const rows = many.slice(offset, offset + limit).map((text, place) => [BigInt(offset + place), text])
      same(`rows from ${offset}, at most ${limit}`, rows, await stored(store, BigInt(offset), limit))
    }
  },
  "appends nothing at another head": async (store) => {
    same("the head that stands there", 0n, await conflictOf("an append beyond the head", () => store.appendAll(1n, ["a"])))
    await store.appendAll(0n, ["a", "b"])
    same("the head that stands there", 2n, await conflictOf("an append below the head", () => store.appendAll(1n, ["c", "d"])))
    same("the head that stands there", 2n, await conflictOf("an append beyond the head", () => store.appendAll(3n, ["c"])))
    same("rows", [[0n, "a"], [1n, "b"]], await stored(store, 0n, 64))
    same("the head", 3n, await store.appendAll(2n, ["c"]))
  },
  "swaps its number, which is 0 when there is none": async (store) => {
    same("the number that stands there", 0n, await conflictOf("a swap of another number", () => store.cas(1n, 2n)))
    await store.cas(0n, 257n)
    same("the number", 257n, await store.readValue())
    same("the number that stands there", 257n, await conflictOf("a swap of none", () => store.cas(0n, 1n)))
    same("the number", 257n, await store.readValue())
    await store.cas(257n, 514n)
    same("the number", 514n, await store.readValue())
    same("the head", undefined, await store.readHead())
  },
  "keeps its number to the last digit": async (store) => {
    await store.cas(0n, 2n ** 53n)
    same("the number that stands there", 2n ** 53n, await conflictOf("a swap of a near number", () => store.cas(2n ** 53n + 1n, 1n)))
    await store.cas(2n ** 53n, 2n ** 53n + 1n)
    same("the number", 2n ** 53n + 1n, await store.readValue())
    await store.cas(2n ** 53n + 1n, maximum)
    same("the number", maximum, await store.readValue())
    await store.cas(maximum, 2n ** 63n)
    same("the number", 2n ** 63n, await store.readValue())
  }
}

const withTwo: Checks<DurableStore> = {
  "shows a second store of the stream what was written": async (store, { again }, opened) => {
    await store.appendAll(0n, texts)
    await store.cas(0n, 3n)
    await store.flush()
    const second = opened(await (again as NonNullable<typeof again>)(store))
    same("rows", texts.map((text, place) => [BigInt(place), text]), await stored(second, 0n, 64))
    same("the head", BigInt(texts.length), await second.readHead())
    same("the number", 3n, await second.readValue())
    same("the head that stands there", 4n, await conflictOf("an append at the old head", () => second.appendAll(0n, ["a"])))
  },
  "lets one of two writers have each sequence": async (store, { again }, opened) => {
    const stores = [store, opened(await (again as NonNullable<typeof again>)(store))]
    const acknowledged: bigint[] = []
    let conflicts = 0
    await Promise.all(
      stores.map(async (each, writer) => {
        const log = await ObserverLog.open(each)
        for (let place = 0; place < 150; place++) {
          const conversation = BigInt(place * 2 + writer)
          while (!(await tracked(log, conversation))) conflicts += 1
          acknowledged.push(conversation)
          await Promise.resolve()
        }
        await log.close()
      })
    )
    const verification = await verifyStore(store)
    same("what was found", [], verification.findings)
    same("conversations", acknowledged.length, verification.state?.conversations)
    demand(conflicts > 0, "the two writers never met: nothing was tested")
  }
}

/** Whether a conversation is tracked now; a conflict with another writer says no. */
async function tracked(log: ObserverLog, conversation: bigint): Promise<boolean> {
  try {
    await log.track(conversation, 0n)
    return true
  } catch (error) {
    if (isJournalFoldError(error, "sequence_conflict")) return false
    throw error
  }
}

const beyond: Record<string, { readonly head: bigint; readonly check: (store: DurableStore) => Promise<void> }> = {
  "keeps sequences apart beyond 2^53": {
    head: 2n ** 53n,
    check: async (store) => {
      await store.appendAll(2n ** 53n, ["a", "b", "c"])
      same("rows", [[2n ** 53n + 1n, "b"], [2n ** 53n + 2n, "c"]], await stored(store, 2n ** 53n + 1n, 64))
    }
  },
  "orders sequences on both sides of 2^63": {
    head: 2n ** 63n - 1n,
    check: async (store) => {
      same("the head", 2n ** 63n + 2n, await store.appendAll(2n ** 63n - 1n, ["a", "b", "c"]))
      same("rows", [[2n ** 63n - 1n, "a"], [2n ** 63n, "b"], [2n ** 63n + 1n, "c"]], await stored(store, 0n, 64))
      same("the last row", [[2n ** 63n + 1n, "c"]], await stored(store, 2n ** 63n + 1n, 64))
    }
  }
}

/** Changes of a scenario: enough for the first snapshot, and a few behind it. */
const changes = 270

/** What the stream should hold, by what was acknowledged and what turned out to have been written. */
class Model {
  readonly progress = new Map<bigint, bigint>()
  readonly armed = new Map<bigint, bigint>()
  /** Arms that fired, and those that were reported, each once. */
  readonly fired: string[] = []
  readonly reported: string[] = []
}

type Change = { readonly kind: "track" | "advance" | "arm"; readonly id: bigint; readonly next: bigint }

function changeAt(place: number, model: Model): Change {
  const known = model.progress.size
  if (place % 9 === 0 || known === 0) return { kind: "track", id: BigInt(place), next: BigInt(place % 4) }
  const id = [...model.progress.keys()][(place * 7) % known] as bigint
  const at = model.progress.get(id) as bigint
  if (place % 4 === 1 && !model.armed.has(id)) return { kind: "arm", id, next: at }
  return { kind: "advance", id, next: at + 1n + BigInt(place % 3) }
}

/** Makes a change known to the model. */
function made(model: Model, { kind, id, next }: Change): void {
  if (kind === "arm") {
    model.armed.set(id, next)
    return
  }
  const epoch = model.armed.get(id)
  if (kind === "advance" && epoch !== undefined) {
    model.fired.push(`${id} ${epoch} ${next}`)
    model.armed.delete(id)
  }
  model.progress.set(id, next)
}

/** Whether the log's state has the change in it. */
function has(log: ObserverLog, { kind, id, next }: Change): boolean {
  return kind === "arm" ? log.armed(id) === next : log.progress(id) === next
}

/** Errors that a store may cause. All others would be a defect. */
const causedByStores: ReadonlySet<ErrorCode> = new Set([
  "store_failed",
  "outcome_unknown",
  "sequence_conflict",
  "assigned_sequence",
  "append_unresolved"
])

async function despite<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!isJournalFoldError(error) || !causedByStores.has(error.code) || attempt === 20) throw error
    }
  }
}

/**
 * Makes changes over a store that fails as a script says, and looks at what is there at the end: no acknowledged change is lost, none is
 * made twice, and every arm that fires is reported once.
 */
async function survive(store: DurableStore, script: FaultScript): Promise<void> {
  const faulty = withFaults(store, script)
  const model = new Model()
  const onPublication = (publication: Publication): void => {
    const { conversationId, refusedEpoch, observerProgress } = publication
    model.reported.push(`${conversationId} ${refusedEpoch} ${observerProgress}`)
  }
  const log = await despite(() => ObserverLog.open(faulty, { onPublication }))
  for (let place = 0; place < changes; place++) {
    const change = changeAt(place, model)
    const { kind, id, next } = change
    try {
      if (kind === "arm") await log.arm([[id, next]])
      else if (kind === "track") await log.track(id, next)
      else {
        const { fired } = await log.advance(id, next)
        if (fired !== undefined) model.reported.push(`${id} ${fired.refusedEpoch} ${next}`)
      }
      made(model, change)
    } catch (error) {
      if (!isJournalFoldError(error) || !causedByStores.has(error.code)) throw error
      const { restored } = await despite(() => log.recover())
      if (!has(log, change)) continue
      const epoch = model.armed.get(id)
      made(model, change)
      // A restore finds the state, and not which arm fired in this change.
      const fired = `${id} ${epoch} ${next}`
      if (restored !== undefined && model.fired.at(-1) === fired && model.reported.at(-1) !== fired) model.reported.push(fired)
    }
  }
  await log.close()
  await compare(store, model)
}

async function compare(store: DurableStore, model: Model): Promise<void> {
  const log = await ObserverLog.open(store)
  try {
    for (const [id, progress] of model.progress) same(`the progress of ${id}`, progress, log.progress(id))
    for (const id of model.progress.keys()) same(`the arm of ${id}`, model.armed.get(id), log.armed(id))
  } finally {
    await log.close()
  }
  same("arms reported", [...model.fired].sort(), [...model.reported].sort())
  const { findings } = await verifyStore(store)
  same("what is wrong with the stream", [], findings.filter((finding) => finding.class === "refused"))
}

/** Another writer's row, about a conversation that nobody else has. */
let foreign = 10n ** 9n
const foreignRow = (): string => encodeRow({ row: "track", conversationId: (foreign += 1n), observerProgress: 0n })

const writes: readonly (() => Fault)[] = [
  () => "fail",
  () => "unknown_applied",
  () => "unknown_not_applied",
  () => "unknown_late"
]
const appends: readonly (() => Fault)[] = [
  ...writes,
  () => ({ unknown_foreign: [foreignRow()] }),
  () => ({ unknown_then_foreign: [foreignRow()] }),
  () => ({ wrong_next: 10n ** 12n })
]
const swaps: readonly (() => Fault)[] = [...writes, () => ({ race: 1n }), () => ({ race: 300n }), () => "regress_same"]
const reads: readonly (() => Fault)[] = [() => "fail"]

const faultsOf = { appendAll: appends, cas: swaps, readFrom: reads, readAt: reads, readValue: reads, readHead: reads, flush: reads } as const

function nameOf(fault: Fault): string {
  return typeof fault === "string" ? fault : (Object.keys(fault)[0] as string)
}

/** Every fault of every call: at its first, a later one, and around the first snapshot. */
function* singleFaults(): Generator<[name: string, script: () => FaultScript]> {
  for (const [method, faults] of Object.entries(faultsOf)) {
    const places = method === "appendAll" || method === "flush" ? [0, 5, 245, 256] : [0, 1]
    for (const fault of faults) {
      for (const place of places) {
        const before = Array.from({ length: place }, (): Fault => "ok")
        yield [`survives ${method} ${nameOf(fault())} at call ${place + 1}`, () => ({ [method]: [...before, fault()] })]
      }
    }
  }
}

/** Numbers from 0 to 1 that are the same each time. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Faults at random places, several at once, the same for a seed. A late append is left out: when the reads fail that look for it, and the
 * next ones find nothing, it lands after everybody was told that it had not. Only a store that fences late writers off prevents that.
 */
function mixedFaults(seed: number): FaultScript {
  const random = numbers(seed)
  const script: Record<string, Fault[]> = {}
  for (const [method, all] of Object.entries(faultsOf)) {
    const faults = method === "appendAll" ? all.filter((fault) => fault() !== "unknown_late") : all
    script[method] = Array.from({ length: 2 * changes }, () => {
      const fault = faults[Math.floor(random() * faults.length)] as () => Fault
      return random() < 0.06 ? fault() : "ok"
    })
  }
  return script
}

/**
 * Tests that a store does what a log asks of it: what its methods give and refuse, and that a log over it survives every failure there
 * is, alone and mixed: no acknowledged change is lost, none is made twice.
 *
 * @example
 * for (const { name, run } of durableStoreTests({ open: () => new MyStore() })) test(name, run)
 */
export function durableStoreTests<Store extends DurableStore>(subject: StoreSubject<Store>): readonly StoreTest[] {
  const test = (name: string, open: () => Store | Promise<Store>, check: (store: Store, opened: (store: Store) => Store) => Promise<void>): StoreTest => ({
    name,
    run: async () => {
      const stores = new Set<Store>()
      const opened = (store: Store): Store => {
        stores.add(store)
        return store
      }
      try {
        await check(opened(await open()), opened)
      } finally {
        for (const store of [...stores].reverse()) await subject.close?.(store)
      }
    }
  })
  const checks = [...Object.entries(basics), ...(subject.again === undefined ? [] : Object.entries(withTwo))]
  const { openAt } = subject
  return [
    ...checks.map(([name, check]) =>
      test(name, subject.open, (store, opened) =>
        check(store, subject as unknown as StoreSubject<DurableStore>, opened as unknown as (store: DurableStore) => DurableStore)
      )
    ),
    ...(openAt === undefined
      ? []
      : Object.entries(beyond).map(([name, { head, check }]) => test(name, () => openAt(head), check))),
    ...Array.from(singleFaults(), ([name, script]) => test(name, subject.open, (store) => survive(store, script()))),
    ...Array.from({ length: 20 }, (_, seed) =>
      test(`survives mixed faults, ${seed + 1} of 20`, subject.open, (store) => survive(store, mixedFaults(seed + 1)))
    )
  ]
}
