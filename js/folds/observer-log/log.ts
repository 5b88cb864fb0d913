/** A stream that is restored, changed, settled and recovered in the right order, one change at a time. */
import { call } from "../../core/engine.js"
import { isJournalFoldError, JournalFoldError, type RefusalDetails } from "../../core/errors.js"
import { Handle } from "../../core/handle.js"
import { writeWords } from "../../core/inbox.js"
import { checkOptions } from "../../core/options.js"
import { Aggregate, firedOf, stageArms, statusesOf, type WrittenFired, type WrittenStatus } from "./aggregate.js"
import { failureError, refusalError, type WrittenFailure } from "./failures.js"
import { drive, driveSync, type Trouble } from "./machine.js"
import { exact, fromDecimal, u64 } from "./numbers.js"
import { publicationOf, type WrittenPublication } from "./protocol.js"
import type { DurableStore, DurableStoreSync } from "./store.js"
import type { Advanced, ArmLimits, Armed, Change, HintVerdict, PairInput, Publication, RestoredFrom, U64 } from "./types.js"

/** How a log is opened. */
export interface ObserverLogOptions {
  /**
   * Called with every arm that fired in an append whose outcome was only found out later, before the change that found it out is
   * answered, be that with its result or with an error. They stand in `publications` of that result, or of the error's `details`, too.
   */
  readonly onPublication?: (publication: Publication) => void
}

/** How sure the state of a log is. */
export type Standing = "closed" | "ready" | "unsettled"

const standings: readonly Standing[] = ["closed", "ready", "unsettled"]

interface WrittenOutcome {
  readonly fired?: WrittenFired
  readonly statuses?: readonly WrittenStatus[]
  readonly refused?: RefusalDetails
  readonly error?: WrittenFailure
  readonly publications: readonly WrittenPublication[]
  readonly restored?: {
    readonly hint: HintVerdict
    readonly foldedFrom: string
    readonly rows: string
    readonly snapshotAppended: boolean
  }
  readonly hintFailures: number
  readonly head?: string
}

/** What both kinds of log have in common: the machine, and what it says. */
class LogMachine {
  readonly #onPublication: ObserverLogOptions["onPublication"]
  #handle: Handle | undefined
  #closed = false

  constructor(options: ObserverLogOptions | undefined) {
    this.#onPublication = checkOptions(options, ["onPublication"]).onPublication
  }

  readonly number = (): number => {
    if (this.#closed) throw new JournalFoldError("disposed", "the log was closed")
    this.#handle ??= new Handle(call((module) => module.log_new()))
    return this.#handle.number
  }

  /** Begins a change. After a trap the machine is another one, which begins with a restore. */
  begin(begin: (number: number) => void): void {
    try {
      begin(this.number())
    } catch (error) {
      if (!isJournalFoldError(error, "engine_restarted")) throw error
      this.#handle = undefined
      begin(this.number())
    }
  }

  /** The outcome of the change that is over. */
  outcome({ thrown }: Trouble): { result: Change; fired?: WrittenFired; statuses: readonly WrittenStatus[] } {
    const text = call((module) => module.log_outcome(this.number()))
    const { fired, statuses = [], refused, error, restored, hintFailures, head, ...written } = JSON.parse(text) as WrittenOutcome
    const publications = exact(written.publications.map(publicationOf))
    for (const publication of publications) this.#publish(publication)
    const more = { ...(publications.length > 0 && { publications }) }
    if (refused !== undefined) throw refusalError(refused, more)
    if (error !== undefined) throw failureError(error, error.kind === "store" ? thrown : undefined, more)
    const result = { head: fromDecimal(head as string), publications, hintFailures, ...(restored && { restored: restoredOf(restored) }) }
    return { result, ...(fired && { fired }), statuses }
  }

  #publish(publication: Publication): void {
    try {
      this.#onPublication?.(publication)
    } catch (error) {
      // The change is made and must be answered as made; what the listener throws is nobody's here to catch.
      queueMicrotask(() => {
        throw error
      })
    }
  }

  /** Asks about the state. A machine that is gone with its instance knows none. */
  ask<Result>(question: (number: number) => Result, unknown: Result): Result {
    if (this.#handle === undefined) return unknown
    try {
      return question(this.number())
    } catch (error) {
      if (isJournalFoldError(error, "engine_restarted")) return unknown
      throw error
    }
  }

  close(): void {
    this.#closed = true
    this.#handle?.dispose()
  }
}

function restoredOf({ hint, foldedFrom, rows, snapshotAppended }: NonNullable<WrittenOutcome["restored"]>): RestoredFrom {
  return exact({ hint, foldedFrom: fromDecimal(foldedFrom), rows: fromDecimal(rows), snapshotAppended })
}

/** What a change asks of the module, checked before it queues. */
const changes = {
  open: () => (number: number) => call((module) => module.log_begin(number, 0, 0n, 0n)),
  track: (conversationId: U64, observerProgress: U64) => two(1, conversationId, observerProgress),
  advance: (conversationId: U64, observerProgress: U64) => two(2, conversationId, observerProgress),
  arm: (entries: readonly PairInput[], limits?: ArmLimits) => {
    const staged = stageArms(entries, limits)
    return (number: number) =>
      call((module) => {
        writeWords(module, staged.words)
        module.log_begin_recover(number, staged.entries, staged.tracks, staged.maxEntries, staged.connectionLimit)
      })
  }
}

function two(kind: number, conversationId: U64, observerProgress: U64): (number: number) => void {
  const [id, progress] = [u64(conversationId, "a conversation"), u64(observerProgress, "a progress")]
  return (number) => call((module) => module.log_begin(number, kind, id, progress))
}

type Outcome = ReturnType<LogMachine["outcome"]>

const changeOf = ({ result }: Outcome): Change => exact(result)
const advancedOf = ({ result, fired }: Outcome): Advanced => exact({ ...result, ...(fired && { fired: firedOf(fired) }) })
const armedOf = ({ result, statuses }: Outcome): Armed => exact({ ...result, statuses: statusesOf(statuses) })

/** What can be asked of a log of either kind. */
abstract class Log {
  /** @internal */
  protected readonly machine: LogMachine

  /** @internal */
  protected constructor(machine: LogMachine) {
    this.machine = machine
  }

  /** A conversation's progress as of the last change; nothing when it is not tracked. */
  progress(conversationId: U64): bigint | undefined {
    const id = u64(conversationId, "a conversation")
    return this.machine.ask((number) => call((module) => module.log_progress(number, id, false)), undefined)
  }

  /** The epoch of a conversation's arm as of the last change; nothing when it has none. */
  armed(conversationId: U64): bigint | undefined {
    const id = u64(conversationId, "a conversation")
    return this.machine.ask((number) => call((module) => module.log_progress(number, id, true)), undefined)
  }

  /** The sequence that the next row takes, if that is sure. */
  get head(): bigint | undefined {
    return this.machine.ask((number) => call((module) => module.log_head(number)), undefined)
  }

  /**
   * How sure the state is: `ready`; `unsettled`, when what became of the last append is not known; `closed`, when only a restore can
   * tell. Whatever it is, the next change begins with what has to come first.
   */
  get standing(): Standing {
    return this.machine.ask((number) => standings[call((module) => module.log_standing(number))] as Standing, "closed")
  }

  /** A copy of the state as of the last change, the caller's to dispose of. */
  aggregate(): Aggregate {
    return new Aggregate(new Handle(call((module) => module.log_aggregate(this.machine.number()))))
  }
}

/**
 * A log over a {@link DurableStore}. Changes queue behind each other: each is restored, settled, appended and flushed before the next one
 * begins, so that callers need not wait for one another.
 *
 * A change that fails says so, and the next one works: it begins with finding out what became of the one before. A log that is the only
 * writer of its stream loses no row and repeats none, whatever its store does.
 */
export class ObserverLog extends Log {
  readonly #store: DurableStore
  #last: Promise<unknown> = Promise.resolve()

  private constructor(store: DurableStore, options: ObserverLogOptions | undefined) {
    super(new LogMachine(options))
    this.#store = store
  }

  /**
   * Opens a log: its stream is restored.
   *
   * @throws as `restore` of this module
   */
  static async open(store: DurableStore, options?: ObserverLogOptions): Promise<ObserverLog> {
    const log = new ObserverLog(store, options)
    await log.recover()
    return log
  }

  #change<Result>(begin: (number: number) => void, conclude: (outcome: Outcome) => Result): Promise<Result> {
    const run = this.#last.then(async () => {
      const trouble: Trouble = {}
      this.machine.begin(begin)
      await drive(this.machine.number, this.#store, trouble)
      return conclude(this.machine.outcome(trouble))
    })
    this.#last = run.catch(() => undefined)
    return run
  }

  /**
   * Begins to track a conversation.
   *
   * @throws `request_refused` with the reason under `details.refusal`: nothing was written. Codes of the store and of the stream: the row
   *   was not appended, or (`outcome_unknown`, `store_failed`, `append_unresolved`) may have been, which the next change finds out
   */
  async track(conversationId: U64, observerProgress: U64): Promise<Change> {
    return this.#change(changes.track(conversationId, observerProgress), changeOf)
  }

  /** Moves a conversation's progress on; says which arm that fired. Otherwise as {@link track}. */
  async advance(conversationId: U64, observerProgress: U64): Promise<Advanced> {
    return this.#change(changes.advance(conversationId, observerProgress), advancedOf)
  }

  /**
   * Arms conversations, each at an epoch that the asking connection knows: those whose progress has moved on already are not armed, which
   * the statuses say. Otherwise as {@link track}.
   */
  async arm(entries: readonly PairInput[], limits?: ArmLimits): Promise<Armed> {
    return this.#change(changes.arm(entries, limits), armedOf)
  }

  /** Finds out what became of a change that failed, and reports arms that it fired. Every other change does that first, too. */
  async recover(): Promise<Change> {
    return this.#change(changes.open(), changeOf)
  }

  /** Waits for the changes that queue, and then frees the state. */
  async close(): Promise<void> {
    await this.#last
    this.machine.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** {@link ObserverLog} over a store that answers at once. */
export class ObserverLogSync extends Log implements Disposable {
  readonly #store: DurableStoreSync

  private constructor(store: DurableStoreSync, options: ObserverLogOptions | undefined) {
    super(new LogMachine(options))
    this.#store = store
  }

  /** Opens a log: its stream is restored. */
  static open(store: DurableStoreSync, options?: ObserverLogOptions): ObserverLogSync {
    const log = new ObserverLogSync(store, options)
    log.recover()
    return log
  }

  #change<Result>(begin: (number: number) => void, conclude: (outcome: Outcome) => Result): Result {
    const trouble: Trouble = {}
    this.machine.begin(begin)
    driveSync(this.machine.number, this.#store, trouble)
    return conclude(this.machine.outcome(trouble))
  }

  /** As `track` of {@link ObserverLog}. */
  track(conversationId: U64, observerProgress: U64): Change {
    return this.#change(changes.track(conversationId, observerProgress), changeOf)
  }

  /** As `advance` of {@link ObserverLog}. */
  advance(conversationId: U64, observerProgress: U64): Advanced {
    return this.#change(changes.advance(conversationId, observerProgress), advancedOf)
  }

  /** As `arm` of {@link ObserverLog}. */
  arm(entries: readonly PairInput[], limits?: ArmLimits): Armed {
    return this.#change(changes.arm(entries, limits), armedOf)
  }

  /** As `recover` of {@link ObserverLog}. */
  recover(): Change {
    return this.#change(changes.open(), changeOf)
  }

  /** Frees the state. */
  close(): void {
    this.machine.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}
