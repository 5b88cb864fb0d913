/**
 * One entry onto the state, in plain TypeScript: an entry that is a live object already would have to be made text for the module, which
 * costs more than folding it. Held to the same recorded cases.
 */
import * as Effect from "effect/Effect"
import { eventTypes } from "../../folds/deferred-clock/names.js"
import type { Clock, Deferred } from "./schemas.js"
import { clockKey, deferredKey, initial, type State } from "./state.js"
import { VersionedMap } from "./versioned-map.js"

/** An entry of a journal, as far as the fold looks at it. Its run and seq are not looked at. */
export interface JournalEntry {
  readonly eventType: string
  /** Any JSON value. */
  readonly payload: unknown
}

const [clockScheduled, clockCompleted, deferredCompleted, deferredConsumed] = eventTypes

/**
 * The state after an entry. Gives the same state, by identity, when the entry changes nothing: another type, a name or a time that is
 * missing or of the wrong form, something recorded before. The old state reads as before; going on from it again copies it once.
 */
export function reduce(state: State, { eventType, payload }: JournalEntry): State {
  switch (eventType) {
    case clockScheduled:
      return isRecord(payload) ? scheduleClock(state, payload) : state
    case clockCompleted:
      return isRecord(payload) ? completeClock(state, payload) : state
    case deferredCompleted:
      return isRecord(payload) ? completeDeferred(state, payload) : state
    case deferredConsumed:
      return isRecord(payload) ? consumeDeferred(state, payload) : state
    default:
      return state
  }
}

/** The fold as a projection: its name, where it begins, and its reducer as an effect, which never fails. */
export const projection = {
  name: "deferred-clock",
  initial,
  reduce: (state: State, entry: JournalEntry): Effect.Effect<State> => Effect.sync(() => reduce(state, entry))
} as const

function scheduleClock(state: State, { flowName, executionId, clockName, deferredName, dueAtMs }: Payload): State {
  if (!isName(flowName) || !isName(executionId) || !isName(clockName) || !isName(deferredName) || !isTime(dueAtMs)) return state
  const key = clockKey({ flowName, executionId, clockName })
  if (state.clocks.has(key)) return state
  return withClock(state, key, { flowName, executionId, clockName, deferredName, dueAtMs, completedAtMs: null })
}

function completeClock(state: State, { flowName, executionId, clockName, completedAtMs }: Payload): State {
  if (!isName(flowName) || !isName(executionId) || !isName(clockName) || !isTime(completedAtMs)) return state
  const key = clockKey({ flowName, executionId, clockName })
  const clock = state.clocks.get(key)
  if (clock === undefined || clock.completedAtMs !== null) return state
  return withClock(state, key, { ...clock, completedAtMs })
}

function completeDeferred(state: State, payload: Payload): State {
  const { flowName, executionId, deferredName, completedAtMs } = payload
  if (!isName(flowName) || !isName(executionId) || !isName(deferredName)) return state
  const key = deferredKey({ flowName, executionId, deferredName })
  if (state.deferreds.has(key)) return state
  return withDeferred(state, key, {
    flowName,
    executionId,
    deferredName,
    // A bad time leaves a completion without a stamp.
    completedAtMs: isTime(completedAtMs) ? completedAtMs : null,
    ...digestsOf(payload),
    consumedAtMs: null
  })
}

function consumeDeferred(state: State, { flowName, executionId, deferredName, consumedAtMs }: Payload): State {
  if (!isName(flowName) || !isName(executionId) || !isName(deferredName) || !isTime(consumedAtMs)) return state
  const key = deferredKey({ flowName, executionId, deferredName })
  const deferred = state.deferreds.get(key)
  if (deferred === undefined || deferred.consumedAtMs !== null) return state
  return withDeferred(state, key, { ...deferred, consumedAtMs })
}

/** A bad exit digest takes the metadata's along, not the other way round. */
function digestsOf({ exitDigest, metadataDigest }: Payload): Pick<Deferred, "exitDigest" | "metadataDigest"> {
  if (!isDigest(exitDigest)) return {}
  return metadataDigest === null || isDigest(metadataDigest) ? { exitDigest, metadataDigest } : { exitDigest }
}

function withClock(state: State, key: string, clock: Clock): State {
  return { clocks: versioned(state.clocks).with(key, clock), deferreds: state.deferreds }
}

function withDeferred(state: State, key: string, deferred: Deferred): State {
  return { clocks: state.clocks, deferreds: versioned(state.deferreds).with(key, deferred) }
}

/** A state that a caller made of maps of its own is copied once. */
function versioned<Value extends object>(map: ReadonlyMap<string, Value>): VersionedMap<Value> {
  return map instanceof VersionedMap ? (map as VersionedMap<Value>) : VersionedMap.from(map)
}

type Payload = Readonly<Record<string, unknown>>

function isRecord(payload: unknown): payload is Payload {
  return typeof payload === "object" && payload !== null && !Array.isArray(payload)
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== ""
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isDigest(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value)
}
