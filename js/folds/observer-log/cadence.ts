/** Where snapshots fall, and what an append writes. */
import { call } from "../../core/engine.js"
import { writeWords } from "../../core/inbox.js"
import { withAggregate, type Aggregate } from "./aggregate.js"
import { exact, u64 } from "./numbers.js"
import { stageRow } from "./rows.js"
import type { AppendPlan, RowInput, StateInput, U64 } from "./types.js"

/** How many other rows lie between two snapshots. */
export const snapshotInterval = 256

/** Whether a snapshot is due at a head: at 256, 513, 770 and so on. An append writes it there, and its own row behind it. */
export function snapshotDue(head: U64): boolean {
  const at = u64(head, "a head")
  return call((module) => module.snapshot_due(at))
}

/** The head after appending `rows` rows from `head` on, with the snapshots that fall due on the way; nothing beyond 2^64-1. */
export function headAfter(head: U64, rows: U64): bigint | undefined {
  const [at, count] = [u64(head, "a head"), u64(rows, "a number of rows")]
  return call((module) => module.head_after(at, count))
}

/**
 * What an append of `row` at `head` has to write, all or nothing: the snapshot of `state` when one is due, and the row.
 *
 * @throws `append_misuse` when the row is a snapshot; `row_sequence` when no row could follow
 */
export function planAppend(state: StateInput | Aggregate, head: U64, row: RowInput): AppendPlan {
  const { kind, words, first, second } = stageRow(row)
  const at = u64(head, "a head")
  return withAggregate(state, (aggregate) => {
    const payloads = call((module) => {
      writeWords(module, words)
      return module.plan_append(aggregate.number, at, kind, first, second)
    }).split("\n")
    return exact({ head: at, payloads, nextHead: at + BigInt(payloads.length) })
  })
}
