/**
 * What can go wrong with a store, one damage at a time: each is done to a sound copy with plain SQL, and says where it struck, so
 * that a report can be held against it. A victim is the first in key order that qualifies, which makes a damage repeatable.
 *
 * Two findings have no damage here. `entry_conflict` (one seq, two contents) and `entry_out_of_order` cannot exist in a table whose
 * key is (run_id, seq) and which is read in that order; they belong to journals that arrive as pages or files.
 */

import type Database from "better-sqlite3"

/**
 * What a damage makes of the store: `unjoined` and `refused` keep a rebuild from being made, `drift` is what a rebuild repairs,
 * and `counted` is no finding at all: it is only shown as a number.
 */
export type DamageClass = "unjoined" | "refused" | "drift" | "counted"

/** Where a damage struck: the parts that apply, named as in a journal entry's payload. */
export interface Address {
  /** The run whose journal or floor is meant. */
  runId?: string
  /** The seq of the entry or of the checkpoint. */
  seq?: number
  flowName?: string
  executionId?: string
  clockName?: string
  deferredName?: string
  /** The altered column of the row. */
  column?: string
  /** The runs that contradict each other, in byte order. */
  runIds?: string[]
}

/** A damage that can be done to a copy of a sound store. Two on one copy may hide each other. */
export interface Damage {
  /** Unique in the list; words joined by hyphens. */
  name: string
  /** How a store comes to be like this. */
  why: string
  /** The ids of the findings that a verification has to give, one item a finding. */
  expects: string[]
  class: DamageClass
  /** Does the damage. Throws when the store is too small to hold a victim. */
  apply(db: Database.Database): { address: Address }
}

interface ClockKey { flowName: string; executionId: string; clockName: string }
interface DeferredKey { flowName: string; executionId: string; deferredName: string }
interface EntryKey { runId: string; seq: number }

const clockKey = "flow_name AS flowName, execution_id AS executionId, clock_name AS clockName"
const deferredKey = "flow_name AS flowName, execution_id AS executionId, deferred_name AS deferredName"
const clockOrder = "ORDER BY flow_name, execution_id, clock_name"
const deferredOrder = "ORDER BY flow_name, execution_id, deferred_name"
const atClock = "WHERE flow_name = :flowName AND execution_id = :executionId AND clock_name = :clockName"
const atDeferred = "WHERE flow_name = :flowName AND execution_id = :executionId AND deferred_name = :deferredName"
const atEntry = "WHERE run_id = :runId AND seq = :seq"

/** The first row that qualifies. */
function victim<Row>(db: Database.Database, sql: string): Row {
  const row = db.prepare<[], Row>(sql).get()
  if (row === undefined) throw new Error(`the store holds nothing to damage: no row for ${sql}`)
  return row
}

/** One change that has to hit one row: a damage that missed would make a report look good. */
function change(db: Database.Database, sql: string, values: object): void {
  const { changes } = db.prepare<[object]>(sql).run(values)
  if (changes !== 1) throw new Error(`one row should have been damaged, ${changes} were, by ${sql}`)
}

const firstClock = (db: Database.Database, where = "true"): ClockKey =>
  victim(db, `SELECT ${clockKey} FROM flows_clock_deadlines WHERE ${where} ${clockOrder} LIMIT 1`)

const firstDeferred = (db: Database.Database, where = "true"): DeferredKey =>
  victim(db, `SELECT ${deferredKey} FROM flows_deferred_completions WHERE ${where} ${deferredOrder} LIMIT 1`)

const firstEntry = (db: Database.Database, eventType: string): EntryKey =>
  victim(db, `SELECT run_id AS runId, seq FROM flows_journal_events WHERE event_type = '${eventType}' ORDER BY run_id, seq LIMIT 1`)

/** The floor of a run is its *highest* compacted checkpoint: an older one that is whole does not stand in for it. */
const firstFloor = (db: Database.Database, where = "true"): EntryKey =>
  victim(db, `
    SELECT run_id AS runId, seq FROM flows_journal_checkpoints AS floor
    WHERE seq = (SELECT max(seq) FROM flows_journal_checkpoints
                 WHERE run_id = floor.run_id AND compacted_at_ms IS NOT NULL) AND ${where}
    ORDER BY run_id LIMIT 1`)

function alterFloor(db: Database.Database, stateSql: string, where?: string): { address: Address } {
  const floor = firstFloor(db, where)
  change(db, `UPDATE flows_journal_checkpoints SET state_json = ${stateSql} ${atEntry}`, floor)
  return { address: floor }
}

function alterPayload(db: Database.Database, eventType: string, payloadSql: string): { address: Address } {
  const entry = firstEntry(db, eventType)
  change(db, `UPDATE flows_journal_events SET payload_json = ${payloadSql} ${atEntry}`, entry)
  return { address: entry }
}

function alterClock(db: Database.Database, column: string, valueSql: string, where?: string): { address: Address } {
  const clock = firstClock(db, where)
  change(db, `UPDATE flows_clock_deadlines SET ${column} = ${valueSql} ${atClock}`, clock)
  return { address: { ...clock, column } }
}

function alterCompletion(db: Database.Database, column: string, valueSql: string, where?: string): { address: Address } {
  const deferred = firstDeferred(db, where)
  change(db, `UPDATE flows_deferred_completions SET ${column} = ${valueSql} ${atDeferred}`, deferred)
  return { address: { ...deferred, column } }
}

const fold = `'$."flows.engine.deferred-clock"'`
const firstKeptClockCompletion = `'$."flows.engine.deferred-clock".clocks[0].completedAtMs'`

/** Every damage, by class and then by the finding it leads to. */
export const damages: readonly Damage[] = [
  {
    name: "checkpoint-without-fold", class: "unjoined", expects: ["checkpoint_missing"],
    why: "an older version of the engine rewrote the checkpoint and dropped the key that it did not know",
    apply: (db) => alterFloor(db, `json_remove(state_json, ${fold})`)
  },
  {
    name: "checkpoint-malformed", class: "unjoined", expects: ["checkpoint_missing"],
    why: "one row of the kept fold lost a nullable field; a kept fold is taken whole or not at all",
    apply: (db) => alterFloor(db, `json_remove(state_json, ${firstKeptClockCompletion})`,
      `json_type(state_json, ${firstKeptClockCompletion}) IS NOT NULL`)
  },
  {
    name: "checkpoint-cut-short", class: "unjoined", expects: ["checkpoint_missing"],
    why: "the state was cut at a column's length limit and is no JSON any more",
    apply: (db) => alterFloor(db, "substr(state_json, 1, length(state_json) / 2)")
  },
  {
    name: "run-row-deleted", class: "unjoined", expects: ["run_missing"],
    why: "a clean-up deleted the run's row while its journal still speaks of a clock",
    apply(db) {
      // A run with one clock, so that the missing run is one finding: each of its clocks would be another.
      const clock = firstClock(db, `execution_id IN (
        SELECT execution_id FROM flows_clock_deadlines GROUP BY execution_id HAVING count(*) = 1)`)
      change(db, "DELETE FROM flows_runs WHERE run_id = :runId", { runId: clock.executionId })
      return { address: clock }
    }
  },
  {
    name: "clock-recorded-twice", class: "unjoined", expects: ["clock_conflict"],
    why: "a restore appended an entry of one run to the journal of another: both now claim the clock",
    apply(db) {
      const clock = firstClock(db)
      const { otherRunId } = victim<{ otherRunId: string }>(db, `
        SELECT run_id AS otherRunId FROM flows_runs
        WHERE run_id <> (SELECT execution_id FROM flows_clock_deadlines ${clockOrder} LIMIT 1) ORDER BY run_id LIMIT 1`)
      change(db, `
        INSERT INTO flows_journal_events (run_id, seq, event_type, payload_json)
        SELECT :otherRunId, 1 + max(
            ifnull((SELECT max(seq) FROM flows_journal_events WHERE run_id = :otherRunId), -1),
            ifnull((SELECT max(seq) FROM flows_journal_checkpoints WHERE run_id = :otherRunId), -1)),
          'flows.engine.clock-scheduled',
          json_object('flowName', flow_name, 'executionId', execution_id, 'clockName', clock_name,
                      'deferredName', deferred_name, 'dueAtMs', due_at_ms)
        FROM flows_clock_deadlines ${atClock}`, { ...clock, otherRunId })
      const runIds = [clock.executionId, otherRunId].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      return { address: { ...clock, runIds } }
    }
  },
  {
    name: "completion-deleted", class: "unjoined", expects: ["row_missing"],
    why: "a completion row is gone, and with it a value that the journal knows only by its digest",
    apply(db) {
      const deferred = firstDeferred(db)
      change(db, `DELETE FROM flows_deferred_completions ${atDeferred}`, deferred)
      return { address: deferred }
    }
  },
  {
    name: "exit-altered", class: "unjoined", expects: ["digest_mismatch"],
    why: "somebody corrected the answer of a completion by hand",
    apply: (db) => alterCompletion(db, "exit_json", "json_set(exit_json, '$.value.answer', 'corrected by hand: naïve')",
      "json_type(exit_json, '$.value.answer') = 'text'")
  },
  {
    name: "metadata-altered", class: "unjoined", expects: ["digest_mismatch"],
    why: "a migration wrote the metadata again: the same value, one space more, other bytes",
    apply: (db) => alterCompletion(db, "metadata_json", "metadata_json || ' '", "metadata_json IS NOT NULL")
  },
  {
    name: "metadata-lost", class: "unjoined", expects: ["digest_mismatch"],
    why: "an export left the metadata out, so the restored row has none",
    apply: (db) => alterCompletion(db, "metadata_json", "NULL", "metadata_json IS NOT NULL")
  },
  {
    name: "payload-cut-short", class: "refused", expects: ["payload_not_json"],
    why: "the payload of an entry was cut off in the middle",
    apply: (db) => alterPayload(db, "flows.engine.clock-scheduled", "substr(payload_json, 1, length(payload_json) - 9)")
  },
  {
    name: "payload-not-utf8", class: "refused", expects: ["text_not_utf8"],
    why: "a tool wrote Latin-1 bytes into a name, and SQLite stored them as text",
    // x'e974e9' is "été" in Latin-1; behind {"flowName":" it stands inside the first name.
    apply: (db) => alterPayload(db, "flows.engine.deferred-completed",
      "substr(payload_json, 1, 13) || CAST(x'e974e9' AS TEXT) || substr(payload_json, 14)")
  },
  {
    name: "clock-row-deleted", class: "drift", expects: ["clock_missing"],
    why: "a clock's row is gone: the clock would never fire",
    apply(db) {
      const clock = firstClock(db, "completed_at_ms IS NULL")
      change(db, `DELETE FROM flows_clock_deadlines ${atClock}`, clock)
      return { address: clock }
    }
  },
  {
    name: "clock-row-invented", class: "drift", expects: ["clock_unexpected"],
    why: "a clock was armed by hand, past the journal",
    apply(db) {
      const { flowName, executionId } = firstClock(db)
      const clock: ClockKey = { flowName, executionId, clockName: "armed by hand" }
      change(db, `
        INSERT INTO flows_clock_deadlines (flow_name, execution_id, clock_name, deferred_name, due_at_ms, completed_at_ms)
        SELECT :flowName, :executionId, :clockName, 'clock/' || :clockName, max(due_at_ms), NULL FROM flows_clock_deadlines`, clock)
      return { address: clock }
    }
  },
  {
    name: "due-time-altered", class: "drift", expects: ["clock_differs"],
    why: "local time was written for UTC: the clock is due an hour late",
    apply: (db) => alterClock(db, "due_at_ms", "due_at_ms + 3600000", "completed_at_ms IS NULL")
  },
  {
    name: "fired-clock-pending-again", class: "drift", expects: ["clock_differs"],
    why: "a row from an older backup: the clock would fire a second time",
    apply: (db) => alterClock(db, "completed_at_ms", "NULL", "completed_at_ms IS NOT NULL")
  },
  {
    name: "pending-clock-marked-fired", class: "drift", expects: ["clock_differs"],
    why: "the clock was marked as fired and nothing was completed: its run would wait for ever",
    apply: (db) => alterClock(db, "completed_at_ms", "due_at_ms", "completed_at_ms IS NULL")
  },
  {
    name: "clock-aims-elsewhere", class: "drift", expects: ["clock_differs"],
    why: "the deferred's name was changed in the table only: the clock would complete another one",
    apply: (db) => alterClock(db, "deferred_name", "deferred_name || ' (2)'")
  },
  {
    name: "completion-time-altered", class: "drift", expects: ["stamp_differs"],
    why: "the completion's time was rounded down to the second by an import",
    apply: (db) => alterCompletion(db, "completed_at_ms", "completed_at_ms - completed_at_ms % 1000", "completed_at_ms % 1000 <> 0")
  },
  {
    name: "consumption-lost", class: "drift", expects: ["stamp_differs"],
    why: "a consumption is gone from the table: the completion would be taken again",
    apply: (db) => alterCompletion(db, "consumed_at_ms", "NULL", "consumed_at_ms IS NOT NULL")
  },
  {
    name: "consumption-invented", class: "drift", expects: ["stamp_differs"],
    why: "a completion was marked as consumed by hand: its run would never see it",
    apply: (db) => alterCompletion(db, "consumed_at_ms", "completed_at_ms + 1", "consumed_at_ms IS NULL")
  },
  {
    name: "completion-nobody-recorded", class: "counted", expects: [],
    why: "a completion stands in the table that no journal explains; it may be a signal that came early, so it is counted",
    apply(db) {
      const { flowName, executionId } = firstDeferred(db)
      const deferred: DeferredKey = { flowName, executionId, deferredName: "signal/nobody recorded this" }
      change(db, `
        INSERT INTO flows_deferred_completions
          (flow_name, execution_id, deferred_name, exit_json, metadata_json, completed_at_ms, consumed_at_ms)
        SELECT :flowName, :executionId, :deferredName, '{"_tag":"Success","value":"très tôt"}', NULL, max(completed_at_ms), NULL
        FROM flows_deferred_completions`, deferred)
      return { address: deferred }
    }
  }
]

/** What {@link emptyAndAlter} did, in rows. */
export interface Alterations {
  clocksDeleted: number
  clocksAltered: number
  completionTimesAltered: number
  /** Consumption times that were changed, and others that were removed. */
  consumptionsAltered: number
  consumptionsLost: number
}

/**
 * Empties the clock table but for every tenth row, alters those, and alters recorded stamps of completions. The journal stays as
 * it was and no completion is lost, so a rebuild can make both tables what they were. Nothing here makes a rebuild delete a pending
 * clock or clear a consumption, so it needs no leave to do so.
 */
export function emptyAndAlter(db: Database.Database): Alterations {
  const changes = (sql: string): number => db.prepare(sql).run().changes
  const everyNth = (n: number, table: string, nameColumn: string, where: string): string => `
    (flow_name, execution_id, ${nameColumn}) IN (
      SELECT flow_name, execution_id, ${nameColumn} FROM (
        SELECT *, row_number() OVER (ORDER BY flow_name, execution_id, ${nameColumn}) AS place FROM ${table} WHERE ${where})
      WHERE place % ${n} = 0)`
  const everyNthClock = (n: number) => everyNth(n, "flows_clock_deadlines", "clock_name", "true")
  const everyNthCompletion = (n: number, where: string) => everyNth(n, "flows_deferred_completions", "deferred_name", where)
  return db.transaction((): Alterations => ({
    clocksDeleted: changes(`DELETE FROM flows_clock_deadlines WHERE NOT ${everyNthClock(10)}`),
    clocksAltered: changes(`
      UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 86400000, deferred_name = deferred_name || '?',
        completed_at_ms = CASE WHEN completed_at_ms IS NULL THEN due_at_ms END`),
    consumptionsLost: changes(`
      UPDATE flows_deferred_completions SET consumed_at_ms = NULL
      WHERE ${everyNthCompletion(7, "consumed_at_ms IS NOT NULL")}`),
    consumptionsAltered: changes(`
      UPDATE flows_deferred_completions SET consumed_at_ms = consumed_at_ms + 1
      WHERE ${everyNthCompletion(5, "consumed_at_ms IS NOT NULL")}`),
    completionTimesAltered: changes(`
      UPDATE flows_deferred_completions SET completed_at_ms = completed_at_ms - completed_at_ms % 1000
      WHERE ${everyNthCompletion(3, "completed_at_ms % 1000 <> 0")}`)
  }))()
}
