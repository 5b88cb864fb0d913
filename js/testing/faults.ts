/** A store that misbehaves as a script says: every failure that a log must survive, at will. */
import { invalid } from "../core/errors.js"
import { checkOptions } from "../core/options.js"
import { rowsOf } from "../folds/observer-log/pages.js"
import { StoreConflict, StoreRefused, type DurableStore, type DurableStoreSync } from "../folds/observer-log/store.js"
import type { RowPage, StoredRow } from "../folds/observer-log/types.js"

/** What one call does instead of working normally. The names are those of the log's format. */
export type Fault =
  /** It works normally. */
  | "ok"
  /** It fails and changes nothing. */
  | "fail"
  /** A write is made, and its outcome is unknown to the caller. */
  | "unknown_applied"
  /** A write is not made, and its outcome is unknown to the caller. */
  | "unknown_not_applied"
  /** The outcome is unknown; the write is made just before the next one of its kind. */
  | "unknown_late"
  /** Of an append: another writer's rows land at the head instead, and the outcome is unknown. */
  | { readonly unknown_foreign: readonly string[] }
  /** Of an append: the outcome is unknown, and another writer's rows land at the expected head just before the next append. */
  | { readonly unknown_then_foreign: readonly string[] }
  /** Of an append: it is made, and another head is answered. */
  | { readonly wrong_next: bigint }
  /** Of a swap: another writer stores this number just before. */
  | { readonly race: bigint }
  /** Of a swap: a conflict over the very number that was expected. */
  | "regress_same"

const known = ["readFrom", "readAt", "appendAll", "flush", "readValue", "cas", "readHead", "pageCap", "pointReadSkips"] as const

/** A method of a store. */
export type StoreMethod = keyof DurableStoreSync

/** For each method, what its calls do, one by one; those behind the last work normally. */
export type FaultScript = { readonly [Method in StoreMethod]?: readonly Fault[] } & {
  /** No page is longer than this. */
  readonly pageCap?: number
  /** A read of a row that is not there answers the next one that is. */
  readonly pointReadSkips?: boolean
}

/** One call that a store was sent, and what came of it. */
export interface RecordedCall {
  readonly method: StoreMethod
  readonly args: readonly unknown[]
  /** What it answered. */
  readonly value?: unknown
  /** What it threw. */
  readonly thrown?: unknown
}

/** What can be seen of a store with faults. */
export interface Recording {
  /** Every call so far, in order. */
  readonly calls: readonly RecordedCall[]
}

interface InnerCall {
  readonly method: StoreMethod
  readonly args: readonly unknown[]
}

/** The work of one call, over the calls of the store beneath. */
type Work = Generator<InnerCall, unknown, unknown>

interface Late {
  readonly method: "appendAll" | "cas"
  readonly args: readonly unknown[]
}

const unknownOutcome = (): Error => new Error("injected: the connection dropped")

class Script {
  readonly calls: RecordedCall[] = []
  readonly #left: Map<StoreMethod, Fault[]>
  readonly #pageCap: number
  readonly #pointReadSkips: boolean
  #late: Late | undefined

  constructor(script: FaultScript) {
    const { pageCap = Number.MAX_SAFE_INTEGER, pointReadSkips = false, ...faults } = checkOptions(script, known)
    this.#pageCap = pageCap
    this.#pointReadSkips = pointReadSkips
    this.#left = new Map(Object.entries(faults).map(([method, list]) => [method as StoreMethod, [...list]]))
  }

  *call(method: StoreMethod, args: readonly unknown[]): Work {
    try {
      const value = yield* this.#work(method, args)
      this.calls.push({ method, args, value })
      return value
    } catch (thrown) {
      this.calls.push({ method, args, thrown })
      throw thrown
    }
  }

  #work(method: StoreMethod, args: readonly unknown[]): Work {
    const fault = this.#left.get(method)?.shift() ?? "ok"
    switch (method) {
      case "appendAll":
        return this.#append(fault, args as [bigint, readonly string[]])
      case "cas":
        return this.#swap(fault, args as [bigint, bigint])
      case "readAt":
        return this.#readAt(fault, args as [bigint])
      case "readFrom":
        return this.#plain(method, fault, [args[0], Math.min(args[1] as number, this.#pageCap)])
      default:
        return this.#plain(method, fault, args)
    }
  }

  *#plain(method: StoreMethod, fault: Fault, args: readonly unknown[]): Work {
    if (fault === "fail") throw new Error("injected failure")
    if (fault !== "ok") throw noFault(method, fault)
    return yield { method, args }
  }

  *#readAt(fault: Fault, [sequence]: [bigint]): Work {
    const row = yield* this.#plain("readAt", fault, [sequence])
    if (!this.#pointReadSkips || (row !== undefined && row !== null)) return row
    return rowsOf((yield { method: "readFrom", args: [sequence, 1] }) as readonly StoredRow[] | RowPage)[0]
  }

  /** Does what an earlier call of this kind left for now. Nobody is told how it went. */
  *#doLate(method: Late["method"]): Generator<InnerCall, void, unknown> {
    const late = this.#late
    if (late?.method !== method) return
    this.#late = undefined
    yield* quietly(late)
  }

  *#append(fault: Fault, args: [bigint, readonly string[]]): Work {
    if (fault === "fail") throw new StoreRefused("injected failure")
    yield* this.#doLate("appendAll")
    const asked: Late = { method: "appendAll", args }
    if (typeof fault === "object") {
      if ("unknown_foreign" in fault) {
        const head = (yield { method: "readHead", args: [] }) ?? 0n
        yield { method: "appendAll", args: [head, fault.unknown_foreign] }
        throw unknownOutcome()
      }
      if ("unknown_then_foreign" in fault) {
        this.#late = { method: "appendAll", args: [args[0], fault.unknown_then_foreign] }
        throw unknownOutcome()
      }
      if ("wrong_next" in fault) {
        yield asked
        return fault.wrong_next
      }
    }
    return yield* this.#write(fault, asked)
  }

  *#swap(fault: Fault, args: [bigint, bigint]): Work {
    if (fault === "fail") throw new StoreRefused("injected failure")
    yield* this.#doLate("cas")
    const asked: Late = { method: "cas", args }
    if (fault === "regress_same") throw new StoreConflict(args[0])
    if (typeof fault === "object" && "race" in fault) {
      const stands = (yield { method: "readValue", args: [] }) ?? 0n
      yield { method: "cas", args: [stands, fault.race] }
      return yield asked
    }
    return yield* this.#write(fault, asked)
  }

  *#write(fault: Fault, asked: Late): Work {
    switch (fault) {
      case "ok":
        return yield asked
      case "unknown_applied":
        yield* quietly(asked)
        throw unknownOutcome()
      case "unknown_not_applied":
        throw unknownOutcome()
      case "unknown_late":
        this.#late = asked
        throw unknownOutcome()
      default:
        throw noFault(asked.method, fault)
    }
  }
}

function* quietly(asked: InnerCall): Generator<InnerCall, void, unknown> {
  try {
    yield asked
  } catch {
    // A conflict: what was to be written is not.
  }
}

function noFault(method: StoreMethod, fault: Fault): Error {
  return invalid("argument_invalid", `a fault that ${method} can have`, fault)
}

type AnyMethod = (...args: readonly unknown[]) => unknown

function overSync(store: DurableStoreSync, work: Work): unknown {
  let step = work.next()
  while (!step.done) {
    const { method, args } = step.value
    let value: unknown
    try {
      value = (store[method] as AnyMethod)(...args)
    } catch (thrown) {
      step = work.throw(thrown)
      continue
    }
    step = work.next(value)
  }
  return step.value
}

async function over(store: DurableStore, work: Work): Promise<unknown> {
  let step = work.next()
  while (!step.done) {
    const { method, args } = step.value
    let value: unknown
    try {
      value = await (store[method] as AnyMethod)(...args)
    } catch (thrown) {
      step = work.throw(thrown)
      continue
    }
    step = work.next(value)
  }
  return step.value
}

function wrapped(script: Script, run: (work: Work) => unknown): Record<StoreMethod, AnyMethod> & Recording {
  const method =
    (name: StoreMethod): AnyMethod =>
    (...args) =>
      run(script.call(name, args))
  return {
    calls: script.calls,
    readFrom: method("readFrom"),
    readAt: method("readAt"),
    appendAll: method("appendAll"),
    flush: method("flush"),
    readValue: method("readValue"),
    cas: method("cas"),
    readHead: method("readHead")
  }
}

/** A store over `store` that fails as `script` says, and keeps a record of its calls. */
export function withFaults(store: DurableStore, script: FaultScript): DurableStore & Recording {
  return wrapped(new Script(script), (work) => over(store, work)) as unknown as DurableStore & Recording
}

/** {@link withFaults} over a store that answers at once. */
export function withFaultsSync(store: DurableStoreSync, script: FaultScript): DurableStoreSync & Recording {
  return wrapped(new Script(script), (work) => overSync(store, work)) as unknown as DurableStoreSync & Recording
}
