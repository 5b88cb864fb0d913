/**
 * What a log needs of a store: one stream of rows, and one number beside it.
 *
 * **What a store's errors mean.** Whatever `appendAll` or `cas` throws means that the outcome is unknown: the write may or may not have
 * been made, and the log finds out by reading. Only two errors say more: {@link StoreConflict}, nothing was written because another
 * head or number stands there; and {@link StoreRefused}, nothing was written and a second try would do no better. Throw them only when
 * that is certain. A connection that drops after a commit must not end in either of them: the row would be appended a second time.
 * What a read or `flush` throws means that it failed.
 *
 * `journal-fold/testing` has a suite of tests for stores.
 */
import type { RowPage, StoredRow } from "./types.js"

/** A store that answers at once. Sequences, heads and the number are 64 bits wide and unsigned. */
export interface DurableStoreSync {
  /** Rows with a sequence of at least `offset`, ascending, at most `limit`. Fewer say that no row follows. */
  readFrom(offset: bigint, limit: number): readonly StoredRow[] | RowPage
  /** The row at a sequence, if there is one. */
  readAt(sequence: bigint): StoredRow | null | undefined
  /**
   * Appends all payloads or none, the first of them at `expectedHead`, and gives the new head: one more than the last row's sequence.
   *
   * @throws {@link StoreConflict} with the head when that is another. Nothing is appended then.
   */
  appendAll(expectedHead: bigint, payloads: readonly string[]): bigint
  /** Returns once everything appended before is durable. */
  flush(): void
  /** The number, if one was ever stored. */
  readValue(): bigint | null | undefined
  /**
   * Stores `next` if the number is `expected`, in one step, where none counts as 0.
   *
   * @throws {@link StoreConflict} with the number when that is another. Nothing is stored then.
   */
  cas(expected: bigint, next: bigint): void
  /** The head: one more than the last row's sequence, kept beside the rows; nothing if no row was ever appended. */
  readHead(): bigint | null | undefined
}

/** The same of a store that takes its time. */
export type DurableStore = {
  readonly [Method in keyof DurableStoreSync]: (
    ...args: Parameters<DurableStoreSync[Method]>
  ) => Promise<ReturnType<DurableStoreSync[Method]>> | ReturnType<DurableStoreSync[Method]>
}

/** What a verification needs of a store: it reads, and never writes. */
export type StreamReader = Pick<DurableStore, "readFrom" | "readValue" | "readHead">
/** The same of a store that answers at once. */
export type StreamReaderSync = Pick<DurableStoreSync, "readFrom" | "readValue" | "readHead">

const conflictMark = Symbol.for("journal-fold/store-conflict")
const refusedMark = Symbol.for("journal-fold/store-refused")

/** Another head, or another number, stands there: nothing was written, for certain. */
export class StoreConflict extends Error {
  override readonly name = "StoreConflict"
  /** The head or the number that stands there. */
  readonly actual: bigint

  constructor(actual: bigint, options?: ErrorOptions) {
    super(`another one stands there: ${actual}`, options)
    this.actual = actual
    Object.defineProperty(this, conflictMark, { value: true })
  }
}

/** The store does not take the write: nothing was written, for certain. */
export class StoreRefused extends Error {
  override readonly name = "StoreRefused"

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    Object.defineProperty(this, refusedMark, { value: true })
  }
}

function hasMark(error: unknown, mark: symbol): boolean {
  return typeof error === "object" && error !== null && (error as Record<symbol, unknown>)[mark] === true
}

/** Whether `error` is a {@link StoreConflict}, of this copy of the package or another. */
export function isStoreConflict(error: unknown): error is StoreConflict {
  return hasMark(error, conflictMark)
}

/** Whether `error` is a {@link StoreRefused}, of this copy of the package or another. */
export function isStoreRefused(error: unknown): error is StoreRefused {
  return hasMark(error, refusedMark)
}
