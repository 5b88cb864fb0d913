/**
 * The log's operations one by one, for those who put them together themselves. {@link ObserverLog} does that, and gets it right.
 */
import { call } from "../../core/engine.js"
import type { JournalFoldError } from "../../core/errors.js"
import { Handle } from "../../core/handle.js"
import { writeBytes } from "../../core/inbox.js"
import { Aggregate } from "./aggregate.js"
import { failureError, type WrittenFailure } from "./failures.js"
import { drive, driveSync, type Trouble } from "./machine.js"
import { exact, fromDecimal, u64 } from "./numbers.js"
import { encodeRow } from "./rows.js"
import type { DurableStore, DurableStoreSync } from "./store.js"
import type { HintVerdict, Publication, RestoredFrom, RowInput, U64 } from "./types.js"

/** What a restore gives. */
export interface Restored extends RestoredFrom {
  readonly aggregate: Aggregate
  /** The sequence that the next row takes. */
  readonly head: bigint
  /** How often the hint could not be recorded. */
  readonly hintFailures: number
}

/** What an append gives. */
export interface Appended {
  /** The sequence that the next row takes. */
  readonly head: bigint
  /** How often the hint could not be recorded. */
  readonly hintFailures: number
}

/** What a tail recovery gives. */
export interface Recovered {
  /** Why it stopped. Rows before a fault stay applied: head and aggregate say how far it came. */
  readonly error?: JournalFoldError
  /** The arm that fired in the append, if that landed and fired one. */
  readonly publication?: Publication
  /** The sequence that the next row takes. */
  readonly head: bigint
  readonly aggregate: Aggregate
}

interface Written {
  readonly error?: WrittenFailure
  readonly head: string
  readonly aggregate?: number
  readonly hint?: HintVerdict
  readonly foldedFrom?: string
  readonly rows: string
  readonly snapshotAppended: boolean
  readonly hintFailures: number
  readonly publication?: WrittenPublication
}

export interface WrittenPublication {
  readonly conversation_id: string
  readonly refused_epoch: string
  readonly observer_progress: string
}

/** A publication as the module writes it. */
export function publicationOf({ conversation_id, refused_epoch, observer_progress }: WrittenPublication): Publication {
  return exact({
    conversationId: fromDecimal(conversation_id),
    refusedEpoch: fromDecimal(refused_epoch),
    observerProgress: fromDecimal(observer_progress)
  })
}

/** One machine from its beginning to its result. */
class Run<Result> {
  readonly trouble: Trouble = {}
  readonly #handle: Handle
  readonly #conclude: (written: Written, trouble: Trouble) => Result

  constructor(number: number, conclude: (written: Written, trouble: Trouble) => Result) {
    this.#handle = new Handle(number)
    this.#conclude = conclude
  }

  readonly number = (): number => this.#handle.number

  over(store: DurableStoreSync): Result {
    try {
      driveSync(this.number, store, this.trouble)
      return this.#result()
    } finally {
      this.#handle.dispose()
    }
  }

  async overTime(store: DurableStore): Promise<Result> {
    try {
      await drive(this.number, store, this.trouble)
      return this.#result()
    } finally {
      this.#handle.dispose()
    }
  }

  #result(): Result {
    const text = call((module) => module.machine_result(this.#handle.number))
    this.#handle.ended()
    return this.#conclude(JSON.parse(text) as Written, this.trouble)
  }
}

function aggregateOf({ aggregate }: Written): Aggregate {
  return new Aggregate(new Handle(aggregate as number))
}

function restoring(): Run<Restored> {
  return new Run(
    call((module) => module.restore_new()),
    (written, { thrown }) => {
      const { error, head, hint, foldedFrom, rows, snapshotAppended, hintFailures } = written
      if (error !== undefined) {
        const restore = { ...(hint && { hint }), ...(foldedFrom && { foldedFrom }) }
        throw failureError(error, error.kind === "store" ? thrown : undefined, { restore })
      }
      return exact({
        hint: hint as HintVerdict,
        foldedFrom: fromDecimal(foldedFrom as string),
        rows: fromDecimal(rows),
        snapshotAppended,
        hintFailures,
        head: fromDecimal(head),
        aggregate: aggregateOf(written)
      })
    }
  )
}

function appending(head: U64, row: RowInput, snapshot: RowInput | undefined): Run<Appended> {
  const at = u64(head, "a head")
  const texts = [row, ...(snapshot === undefined ? [] : [snapshot])].map((given) => new TextEncoder().encode(encodeRow(given)))
  const [own, before] = texts as [Uint8Array, Uint8Array?]
  return new Run(
    call((module) => {
      writeBytes(module, texts)
      return module.append_new(at, own.byteLength, before?.byteLength ?? 0)
    }),
    ({ error, head: next, hintFailures }, { thrown }) => {
      if (error !== undefined) throw failureError(error, error.kind === "store" ? thrown : undefined)
      return exact({ head: fromDecimal(next), hintFailures })
    }
  )
}

function recovering(aggregate: Aggregate, head: U64): Run<Recovered> {
  const at = u64(head, "a head")
  return new Run(
    call((module) => module.recover_new(aggregate.number, at)),
    (written, { thrown }) => {
      const { error, publication } = written
      return exact({
        ...(error && { error: failureError(error, error.kind === "store" ? thrown : undefined) }),
        ...(publication && { publication: publicationOf(publication) }),
        head: fromDecimal(written.head),
        aggregate: aggregateOf(written)
      })
    }
  )
}

/**
 * Rebuilds the aggregate: from the snapshot that the hint names and the rows behind it, or else from all rows. Appends a snapshot to a
 * long stream without one. The aggregate is the caller's to dispose of.
 *
 * @throws `row_malformed`, `row_version`, `row_sequence`, `corrupt_row`, naming the row's sequence; `store_failed`, `outcome_unknown`,
 *   `sequence_conflict`, `assigned_sequence`
 */
export async function restore(store: DurableStore): Promise<Restored> {
  return restoring().overTime(store)
}

/** {@link restore} over a store that answers at once. */
export function restoreSync(store: DurableStoreSync): Restored {
  return restoring().over(store)
}

/**
 * Appends a row, behind its snapshot when one is due: one write, one flush, and the hint. Neither is checked against any state.
 *
 * @throws `append_misuse`, `row_sequence` before anything is written; `sequence_conflict`; `outcome_unknown`; `store_failed`;
 *   `assigned_sequence`
 */
export async function append(store: DurableStore, head: U64, row: RowInput, snapshot?: RowInput): Promise<Appended> {
  return appending(head, row, snapshot).overTime(store)
}

/** {@link append} over a store that answers at once. */
export function appendSync(store: DurableStoreSync, head: U64, row: RowInput, snapshot?: RowInput): Appended {
  return appending(head, row, snapshot).over(store)
}

/**
 * Finds out from the tail of the stream what became of an append at `head`, whose change to `aggregate` was aborted. The aggregate given
 * stays as it is; the one that comes back is the caller's to dispose of. A failure is not thrown, but stands in the result: it is
 * `append_unresolved`, a row at fault, or `store_failed`.
 */
export async function recoverTail(store: DurableStore, aggregate: Aggregate, head: U64): Promise<Recovered> {
  return recovering(aggregate, head).overTime(store)
}

/** {@link recoverTail} over a store that answers at once. */
export function recoverTailSync(store: DurableStoreSync, aggregate: Aggregate, head: U64): Recovered {
  return recovering(aggregate, head).over(store)
}
