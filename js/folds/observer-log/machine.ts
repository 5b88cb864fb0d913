/**
 * The module's machines, driven over a store: what a machine wants is done, and it is told how that went. One driver serves stores that
 * answer at once and those that take their time.
 */
import { call } from "../../core/engine.js"
import { invalid } from "../../core/errors.js"
import { withPageBuilder, writePage } from "../../core/pages.js"
import { u64 } from "./numbers.js"
import { addRow, handPage, isRowPage } from "./pages.js"
import { checkPayload, writePayload } from "./rows.js"
import { isStoreConflict, isStoreRefused, type DurableStore, type DurableStoreSync } from "./store.js"
import type { RowPage, StoredRow } from "./types.js"

/** Answers without rows, by the module's numbers. */
const answers = {
  value: 0,
  noRow: 1,
  head: 2,
  appended: 3,
  flushed: 4,
  swapped: 5,
  sequenceConflict: 6,
  valueConflict: 7,
  unknown: 8,
  failed: 9
} as const

/** One call of a store. */
interface StoreCall {
  readonly method: keyof DurableStoreSync
  readonly args: readonly unknown[]
}

/** How it went. */
type Reply = { readonly value: unknown } | { readonly thrown: unknown }

/** What a machine was told last that was not good, for the error that it may come to. */
export interface Trouble {
  thrown?: unknown
}

const decoder = new TextDecoder()

function wanted(number: number): StoreCall | undefined {
  const [method, first = 0n, second = 0n] = call((module) => module.machine_want(number))
  switch (method) {
    case undefined:
      return undefined
    case 1n:
      return { method: "readValue", args: [] }
    case 2n:
      return { method: "readAt", args: [first] }
    case 3n:
      return { method: "readFrom", args: [first, Number(second)] }
    case 4n:
      return { method: "readHead", args: [] }
    case 5n:
      return { method: "appendAll", args: [first, payloadsOf(number)] }
    case 6n:
      return { method: "flush", args: [] }
    default:
      return { method: "cas", args: [first, second] }
  }
}

function payloadsOf(number: number): string[] {
  const text = decoder.decode(call((module) => module.machine_payloads(number)))
  const ends = call((module) => module.machine_payload_ends(number))
  let start = 0
  // Our own rows are ASCII: a place in the text is one in the bytes.
  return Array.from(ends, (end) => text.slice(start, (start = end)))
}

function tell(number: number, kind: number, value?: bigint): void {
  call((module) => module.machine_answer(number, kind, value))
}

function optional(value: unknown, what: string): bigint | undefined {
  return value === undefined || value === null ? undefined : u64(value as bigint, what)
}

function tellRows(number: number, rows: readonly StoredRow[] | RowPage, limit: number): void {
  if (typeof rows !== "object" || rows === null) throw invalid("answer_malformed", "rows", rows)
  if (isRowPage(rows)) return handPage(rows, (module, count, length) => module.machine_answer_rows(number, count, length))
  if (!Array.isArray(rows)) throw invalid("answer_malformed", "an array of rows, or a page", rows)
  if (rows.length > limit) throw invalid("answer_malformed", `at most ${limit} rows`, rows)
  withPageBuilder((page) => {
    for (const row of rows as readonly StoredRow[]) addRow(page, row)
    call((module) => module.machine_answer_rows(number, page.count, writePage(module, page)))
  })
}

function tellRow(number: number, row: StoredRow): void {
  const sequence = u64(row.sequence, "a sequence")
  const payload = checkPayload(row.payload)
  call((module) => module.machine_answer_row(number, sequence, writePayload(module, payload)))
}

/** Tells a machine what a store gave. */
function tellValue(number: number, { method, args }: StoreCall, value: unknown): void {
  switch (method) {
    case "readValue":
      return tell(number, answers.value, optional(value, "the number"))
    case "readHead":
      return tell(number, answers.head, optional(value, "the head"))
    case "readAt":
      return value === undefined || value === null ? tell(number, answers.noRow) : tellRow(number, value as StoredRow)
    case "readFrom":
      return tellRows(number, value as readonly StoredRow[], args[1] as number)
    case "appendAll":
      return tell(number, answers.appended, u64(value as bigint, "the new head"))
    case "flush":
      return tell(number, answers.flushed)
    case "cas":
      return tell(number, answers.swapped)
  }
}

/** Tells a machine what a store threw. */
function tellThrown(number: number, { method }: StoreCall, thrown: unknown): void {
  if (method !== "appendAll" && method !== "cas") return tell(number, answers.failed)
  if (isStoreRefused(thrown)) return tell(number, answers.failed)
  if (!isStoreConflict(thrown)) return tell(number, answers.unknown)
  const kind = method === "cas" ? answers.valueConflict : answers.sequenceConflict
  return tell(number, kind, u64(thrown.actual, "what stands there"))
}

/** Does what a machine wants until it wants nothing more. It is given a number anew each time: the machine may be gone by then. */
function* steps(numberOf: () => number, trouble: Trouble): Generator<StoreCall, void, Reply> {
  for (;;) {
    const asked = wanted(numberOf())
    if (asked === undefined) return
    const reply = yield asked
    const number = numberOf()
    try {
      if ("thrown" in reply) {
        trouble.thrown = reply.thrown
        tellThrown(number, asked, reply.thrown)
      } else {
        tellValue(number, asked, reply.value)
      }
    } catch (error) {
      // An answer that is none: of a write that means that its outcome is unknown, of a read that it failed.
      numberOf()
      trouble.thrown = error
      tell(number, asked.method === "appendAll" || asked.method === "cas" ? answers.unknown : answers.failed)
    }
  }
}

type AnyMethod = (...args: readonly unknown[]) => unknown

/** Drives a machine over a store that answers at once. */
export function driveSync(numberOf: () => number, store: DurableStoreSync, trouble: Trouble = {}): void {
  const driven = steps(numberOf, trouble)
  let step = driven.next()
  while (!step.done) {
    const { method, args } = step.value
    let reply: Reply
    try {
      reply = { value: (store[method] as AnyMethod)(...args) }
    } catch (thrown) {
      reply = { thrown }
    }
    step = driven.next(reply)
  }
}

/** Drives a machine over a store. */
export async function drive(numberOf: () => number, store: DurableStore, trouble: Trouble = {}): Promise<void> {
  const driven = steps(numberOf, trouble)
  let step = driven.next()
  while (!step.done) {
    const { method, args } = step.value
    let reply: Reply
    try {
      reply = { value: await (store[method] as AnyMethod)(...args) }
    } catch (thrown) {
      reply = { thrown }
    }
    step = driven.next(reply)
  }
}
