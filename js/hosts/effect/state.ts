/** The fold's state in memory: rows by their addresses, in the order in which they first appeared. */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { checkpointKey } from "../../folds/deferred-clock/names.js"
import { Clock, Deferred, Encoded } from "./schemas.js"
import { VersionedMap } from "./versioned-map.js"

/** The fold: clocks by {@link clockKey} and completions by {@link deferredKey}. It is never changed; {@link reduce} gives another. */
export interface State {
  readonly clocks: ReadonlyMap<string, Clock>
  readonly deferreds: ReadonlyMap<string, Deferred>
}

/** The fold of no entries. */
export const initial: State = Object.freeze({ clocks: VersionedMap.from<Clock>([]), deferreds: VersionedMap.from<Deferred>([]) })

/** A clock's address. The parts never run into each other, whatever characters they have. */
export function clockKey({ flowName, executionId, clockName }: Pick<Clock, "flowName" | "executionId" | "clockName">): string {
  return JSON.stringify([flowName, executionId, clockName])
}

/** A completion's address. */
export function deferredKey({ flowName, executionId, deferredName }: Pick<Deferred, "flowName" | "executionId" | "deferredName">): string {
  return JSON.stringify([flowName, executionId, deferredName])
}

/** The fold as a checkpoint keeps it. */
export function encode({ clocks, deferreds }: State): Encoded {
  return { clocks: [...clocks.values()], deferreds: [...deferreds.values()] }
}

/** The state of an encoded fold. Of rows with one address the last one's values stay, at the first one's place. */
export function stateOf({ clocks, deferreds }: Encoded): State {
  return {
    clocks: VersionedMap.from(clocks.map((clock) => [clockKey(clock), clock] as const)),
    deferreds: VersionedMap.from(deferreds.map((deferred) => [deferredKey(deferred), deferred] as const))
  }
}

const decode = Schema.decodeUnknownOption(Schema.Struct({ [checkpointKey]: Encoded }))

/**
 * The fold that a checkpoint's state keeps under {@link checkpointKey}. It is taken whole or not at all: none when there is no such member,
 * or anything in it is not of the form of {@link Encoded}.
 */
export function fromCheckpoint(checkpointState: unknown): Option.Option<State> {
  return Option.map(decode(checkpointState), (state) => stateOf(state[checkpointKey]))
}
