/** The aggregate: the progress of every tracked conversation, and which of them are armed. */
import { call } from "../../core/engine.js"
import { invalid, isJournalFoldError, type JournalFoldError } from "../../core/errors.js"
import { Handle } from "../../core/handle.js"
import { writeWords } from "../../core/inbox.js"
import type { StateDigest } from "../deferred-clock/types.js"
import { exact, fromDecimal, u64 } from "./numbers.js"
import { handRows } from "./pages.js"
import { checkPayload, pairWords, stateWords, writePayload } from "./rows.js"
import type { ArmLimits, Fired, Pair, PairInput, Rows, State, StateInput, Status, U64 } from "./types.js"

const noLimit = 2n ** 64n - 1n

/** A change that was asked for and not refused. Its row is to be appended; then `commit` makes the change, or `abort` drops it. */
export interface Pending {
  /** The stored text of the row to append. */
  readonly payload: string
  /** The arm that an advance will fire. */
  readonly wouldFire?: Fired
  /** Of each entry of a request to arm, in its order, whether it is armed. */
  readonly statuses: readonly Status[]
  /** Makes the change. */
  commit(): void
  /** Drops it: the state is exactly as before. */
  abort(): void
}

export interface WrittenStatus {
  readonly conversation_id: string
  readonly refused_epoch: string
  readonly current: string
  readonly armed: boolean
}

export interface WrittenFired {
  readonly conversation_id: string
  readonly refused_epoch: string
}

/** A fired arm as the module writes it. */
export function firedOf({ conversation_id, refused_epoch }: WrittenFired): Fired {
  return exact({ conversationId: fromDecimal(conversation_id), refusedEpoch: fromDecimal(refused_epoch) })
}

/** Statuses as the module writes them. */
export function statusesOf(statuses: readonly WrittenStatus[]): readonly Status[] {
  return exact(
    statuses.map(({ conversation_id, refused_epoch, current, armed }) =>
      exact({
        conversationId: fromDecimal(conversation_id),
        refusedEpoch: fromDecimal(refused_epoch),
        current: fromDecimal(current),
        armed
      })
    )
  )
}

/** A request to arm, as the module takes it. */
export interface StagedArms {
  readonly words: BigUint64Array
  readonly entries: number
  readonly tracks: number
  readonly maxEntries: bigint
  readonly connectionLimit: bigint
}

/** Checks a request to arm and lays it out for the module. */
export function stageArms(entries: readonly PairInput[], limits: ArmLimits = {}): StagedArms {
  const pairs = pairWords(entries)
  const { maxEntries = noLimit, connectionLimit = noLimit, connectionTracks = [] } = limits
  const tracks = Array.from(connectionTracks, (id) => u64(id, "a conversation of connectionTracks"))
  const words = new BigUint64Array(pairs.length + tracks.length)
  words.set(pairs)
  words.set(tracks, pairs.length)
  return {
    words,
    entries: pairs.length / 2,
    tracks: tracks.length,
    maxEntries: u64(maxEntries, "maxEntries", "option_invalid"),
    connectionLimit: u64(connectionLimit, "connectionLimit", "option_invalid")
  }
}

/**
 * An aggregate inside the module: for many rows, many conversations or live transactions. Call `dispose()` (or use `using`) when done.
 */
export class Aggregate implements Disposable {
  readonly #handle: Handle
  #next: bigint | undefined

  /**
   * @param state The lists to begin with, in any order; without, it is empty.
   * @throws `request_refused` when the lists build no aggregate, with the reason under `details.refusal`
   */
  constructor(state?: StateInput)
  /** @internal */
  constructor(state: Handle)
  constructor(state?: StateInput | Handle) {
    if (state instanceof Handle) {
      this.#handle = state
      return
    }
    const words = state === undefined ? new BigUint64Array() : stateWords(state)
    const [progress, armed] = state === undefined ? [0, 0] : [state.progress.length, state.armed.length]
    this.#handle = new Handle(
      call((module) => {
        writeWords(module, words)
        return module.live_new(progress, armed)
      })
    )
  }

  /** @internal */
  get number(): number {
    return this.#handle.number
  }

  /**
   * Folds rows in ascending sequence. The first may have any sequence, unless rows came before.
   *
   * A row that cannot be taken stops it with an error that names the sequence; rows before it are folded, and pushing may go on with
   * that row, repaired.
   *
   * @throws `row_malformed`, `row_version`, `row_sequence`, `corrupt_row` with the reason under `details.failure`
   */
  push(rows: Rows): void {
    try {
      handRows(rows, (module, count, length) => {
        this.#next = module.live_fold(this.number, count, length, this.#next)
      })
    } catch (error) {
      const failure = isJournalFoldError(error) ? error.details.failure : undefined
      // Rows before the fault are folded, so that the one at fault comes next.
      const next = failure?.kind === "sequence" ? failure.expected : failure && (error as JournalFoldError).details.seq
      if (next !== undefined) this.#next = fromDecimal(next)
      throw error
    }
  }

  /** The sequence behind the last row folded; nothing before the first. */
  get next(): bigint | undefined {
    return this.#next
  }

  /** A conversation's progress; nothing when it is not tracked. */
  progress(conversationId: U64): bigint | undefined {
    const id = u64(conversationId, "a conversation")
    return call((module) => module.live_progress(this.number, id))
  }

  /** The epoch of a conversation's arm; nothing when it has none. */
  armed(conversationId: U64): bigint | undefined {
    const id = u64(conversationId, "a conversation")
    return call((module) => module.live_armed(this.number, id))
  }

  /** How many conversations are tracked. */
  get conversations(): number {
    return call((module) => module.live_count(this.number, false))
  }

  /** How many of them are armed. */
  get arms(): number {
    return call((module) => module.live_count(this.number, true))
  }

  /** The state, as it is without a pending change. */
  state(): State {
    return exact({ progress: this.#list(false), armed: this.#list(true) })
  }

  #list(armed: boolean): readonly Pair[] {
    const words = call((module) => module.live_list(this.number, armed))
    const pairs: Pair[] = []
    for (let at = 0; at < words.length; at += 2) pairs.push([words[at] as bigint, words[at + 1] as bigint])
    return exact(pairs)
  }

  /** The stored text of the snapshot row that restates the state. */
  snapshot(): string {
    return call((module) => module.live_snapshot(this.number))
  }

  /** The digest of the state: additive by default, or SHA-256 over the sorted rows. */
  digest(algorithm: StateDigest["algorithm"] = "sum-xxh3-128"): StateDigest {
    if (algorithm !== "sum-xxh3-128" && algorithm !== "sha256") throw invalid("argument_invalid", "sum-xxh3-128 or sha256", algorithm)
    return JSON.parse(call((module) => module.live_digest(this.number, algorithm === "sha256"))) as StateDigest
  }

  /** Another aggregate in the same state, without a pending change. */
  clone(): Aggregate {
    return new Aggregate(new Handle(call((module) => module.live_clone(this.number))))
  }

  /**
   * Asks for a conversation to be tracked. Until the answer is committed or aborted, nothing else may be asked.
   *
   * @throws `request_refused` with the reason under `details.refusal`; `call_out_of_order`
   */
  track(conversationId: U64, observerProgress: U64): Pending {
    const [id, progress] = [u64(conversationId, "a conversation"), u64(observerProgress, "a progress")]
    return this.#pending(call((module) => module.live_track(this.number, id, progress)))
  }

  /** Asks for a conversation's progress to grow. Otherwise as {@link track}. */
  advance(conversationId: U64, observerProgress: U64): Pending {
    const [id, progress] = [u64(conversationId, "a conversation"), u64(observerProgress, "a progress")]
    return this.#pending(call((module) => module.live_advance(this.number, id, progress)))
  }

  /** Asks for arms, each a conversation and an epoch. An epoch below the progress is not armed: it has moved on already. */
  arm(entries: readonly PairInput[], limits?: ArmLimits): Pending {
    const staged = stageArms(entries, limits)
    return this.#pending(
      call((module) => {
        writeWords(module, staged.words)
        return module.live_recover(this.number, staged.entries, staged.tracks, staged.maxEntries, staged.connectionLimit)
      })
    )
  }

  #pending(text: string): Pending {
    const { payload, wouldFire, statuses } = JSON.parse(text) as {
      payload: string
      wouldFire?: WrittenFired
      statuses: WrittenStatus[]
    }
    const end = (commit: boolean): void => call((module) => module.live_end(this.number, commit))
    return {
      payload,
      ...(wouldFire && { wouldFire: firedOf(wouldFire) }),
      statuses: statusesOf(statuses),
      commit: () => end(true),
      abort: () => end(false)
    }
  }

  /** Frees the state. May be called again. */
  dispose(): void {
    this.#handle.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

/** An aggregate's own, or one made of lists for the time of `work`. */
export function withAggregate<Result>(state: StateInput | Aggregate, work: (aggregate: Aggregate) => Result): Result {
  if (state instanceof Aggregate) return work(state)
  const made = new Aggregate(state)
  try {
    return work(made)
  } finally {
    made.dispose()
  }
}

/** The empty state. */
export const initial: State = Object.freeze(exact({ progress: Object.freeze(exact([])), armed: Object.freeze(exact([])) }))

/**
 * Folds rows onto a state and gives the new one. The old one stays as it is. For many rows, or many calls, use {@link Aggregate}: its
 * state stays inside the module.
 *
 * @throws as {@link Aggregate.push}; `request_refused` when the lists build no aggregate
 */
export function reduce(state: StateInput, rows: Rows): State {
  const aggregate = new Aggregate(state)
  try {
    aggregate.push(rows)
    return aggregate.state()
  } finally {
    aggregate.dispose()
  }
}

/** The stored text of the snapshot row of a state. */
export function capture(state: StateInput | Aggregate): string {
  return withAggregate(state, (aggregate) => aggregate.snapshot())
}

/** The state that a snapshot row's text restates; nothing of a row of another kind. Its lists may be in any order. */
export function fromCheckpoint(payload: string | Uint8Array): State | undefined {
  const aggregate = aggregateOf(payload)
  try {
    return aggregate?.state()
  } finally {
    aggregate?.dispose()
  }
}

/**
 * {@link fromCheckpoint}, kept inside the module.
 *
 * @throws `row_malformed`, `row_version`; `request_refused` when the lists build no aggregate
 */
export function aggregateOf(payload: string | Uint8Array): Aggregate | undefined {
  checkPayload(payload)
  const number = call((module) => module.live_of_snapshot(writePayload(module, payload)))
  return number === undefined ? undefined : new Aggregate(new Handle(number))
}
