/**
 * What the words of a report mean, and what to do. Findings and errors have their meanings in the module's own tables; what is only here
 * is the advice about errors, and what reports call things that are neither.
 */
import { call } from "../core/engine.js"
import type { ErrorCode } from "../core/errors.js"
import type { FindingClass } from "../folds/deferred-clock/types.js"

/** What is known about a finding. */
export interface FindingKnowledge {
  readonly class: FindingClass
  readonly meaning: string
  readonly advice: string
}

let findings: Readonly<Record<string, FindingKnowledge>> | undefined

/** The module's table of findings, by id, in the order of a report. */
export function findingTable(): Readonly<Record<string, FindingKnowledge>> {
  findings ??= JSON.parse(call((module) => module.finding_ids())) as Record<string, FindingKnowledge>
  return findings
}

/** The module's table of error codes: meanings by code. */
export function errorTable(): Readonly<Record<string, string>> {
  return JSON.parse(call((module) => module.error_codes())) as Record<string, string>
}

const ofOurs = "nothing you did: please report it, with the message"

/** What to do about an error. */
export const errorAdvice: Readonly<Partial<Record<ErrorCode, string>>> = {
  fold_incomplete: "run verify: its findings say what does not join, and what to do about each",
  payload_not_json: "restore the entry from a backup, or leave the run out with --except",
  text_not_utf8: "find out who wrote these bytes; a run id that is not UTF-8 has to be repaired in the store",
  entry_conflict: "find out which of the two entries the engine acted on",
  entry_out_of_order: "give the run's entries in order of seq",
  run_out_of_order: "give runs in order of their UTF-8 bytes",
  run_repeated: "give each run once",
  bound_below_floor: "give a seq from the floor on: what was below it is gone",
  bound_invalid: "give a finite number",
  seq_invalid: "give a whole number from 0 to 2^63-1; beyond 2^53-1 not as a JSON number",
  state_malformed: "give a fold as capture prints it",
  base_not_object: "give a JSON object as the base",
  page_malformed: "look at the table: a seq or a length in it is no whole number",
  answer_malformed: ofOurs,
  answer_missing: ofOurs,
  call_out_of_order: ofOurs,
  too_large: "leave the run out with --except",
  row_malformed: "restore the row from a backup",
  row_version: "find out which program wrote it",
  row_sequence: "give the rows from the first one on, in order of sequence",
  corrupt_row: "find out which program wrote it: the rows before it say otherwise",
  request_refused: "ask for something that the aggregate's state allows",
  append_misuse: "append what planAppend gives, and nothing else",
  assigned_sequence: "restore the aggregate from its stream: the store gave another head",
  append_unresolved: "restore the aggregate from its stream",
  sequence_conflict: "restore the aggregate from its stream, and append again",
  outcome_unknown: "recover: the stream's tail says what became of the write",
  store_failed: "look at what the store said",
  payload_too_deep: "give the payload as text",
  value_not_json: "give a value that has a JSON text",
  argument_invalid: "see journal-fold --help",
  option_unknown: "see journal-fold VERB --help",
  option_invalid: "see journal-fold VERB --help",
  not_initialized: ofOurs,
  engine_trap: ofOurs,
  engine_restarted: ofOurs,
  disposed: ofOurs,
  store_not_sqlite: "give the store's database file, not a dump, a backup's archive or an empty file; apply takes no exported run",
  store_unreadable: "check the path or the URL, and who may read it; a postgres:// URL needs a server that answers, and pg installed",
  store_corrupt: "copy the file again, or restore it: PRAGMA integrity_check says how bad it is",
  store_busy: "try again, or wait longer with --busy-timeout MS",
  store_table_missing: "check that it is the right file; say with --names what it calls its tables",
  store_column_missing: "say with --names what the store calls its columns",
  store_read_only: "give apply a file and a folder that it may write",
  store_too_old: "install a newer better-sqlite3 or Node",
  stale_plan: "plan again, look at the new plan, and apply that",
  plan_refused: "run verify to its end first",
  deletes_pending: "look at the clock_unexpected findings; if those clocks may go, add --allow-delete-pending",
  clears_consumption: "look at the stamp_differs findings of consumedAtMs; if they may be consumed once more, add --allow-unconsume",
  rows_changed_mismatch: "look for a trigger, a view or another writer on the table: nothing was written",
  row_not_writable: "give the named column a default, or the trigger an exception: nothing was written",
  nested_transaction: "call it outside of a transaction",
  aborted: "nothing was written: run it again when it suits",
  export_malformed: "export the run again; a file without its end line was cut off",
  run_unknown: "check the id, to the last character, and the file",
  stream_unknown: "check the stream's name, to the last character, and the file; status says which there are"
}

/** Something that a report calls by a word of its own. */
export interface Word {
  readonly kind: string
  readonly meaning: string
  readonly advice: string
}

const normal = "nothing: it is normal"

/** Why an entry changed nothing. The meanings are those of `src/deferred_clock/reduce.rs`, which a report gives; a test compares. */
export const ignoredReasons: Readonly<Record<string, Omit<Word, "kind">>> = {
  other_type: { meaning: "an entry of another type", advice: normal },
  below_floor: { meaning: "an entry at or below the run's floor", advice: "nothing: its checkpoint has it; a compaction may delete it" },
  above_bound: { meaning: "an entry above the bound", advice: normal },
  redelivered: { meaning: "the last entry once more", advice: "nothing: it counts once" },
  not_a_record: { meaning: "the payload is no JSON object", advice: "look at the first one: the engine records objects" },
  field_refused: { meaning: "a name or a time is missing or of the wrong form", advice: "look at the first one: an entry that says nothing is a bug of its writer" },
  already_scheduled: { meaning: "the clock was scheduled before", advice: "nothing: the first one counts" },
  nothing_to_complete: { meaning: "no such clock was scheduled", advice: "look at the first one: entries before it may be missing" },
  already_completed: { meaning: "the clock or the deferred completed before", advice: "nothing: timers are delivered more than once, and the first one counts" },
  nothing_to_consume: { meaning: "no such completion was recorded", advice: "look at the first one: entries before it may be missing" },
  already_consumed: { meaning: "the completion was consumed before", advice: "nothing: the first one counts" }
}

/** What a report calls not checked or notes, where it is no finding's id as well. */
const reportWords: Readonly<Record<string, Word>> = {
  runs_unfolded: { kind: "not checked", meaning: "runs that could not be folded", advice: "look at the findings of class refused" },
  runs_unanswered: { kind: "not checked", meaning: "runs that were folded and not compared, because the work ended before", advice: "let it run to its end" },
  foreign_rows: { kind: "not checked", meaning: "rows recorded of another run's execution, which are compared at the end", advice: "let it run to its end" },
  clock_rows: { kind: "not checked", meaning: "clock rows that a run which was not folded, or is out of scope, may explain", advice: "verify the whole store, once every run can be folded" },
  completion_rows: { kind: "not checked", meaning: "completions that a run which was not folded, or is out of scope, may explain", advice: "verify the whole store, once every run can be folded" },
  baseline_compacted: { kind: "not checked", meaning: "runs compacted beyond what the baseline covers", advice: "take a new baseline" },
  rows_unreadable: { kind: "not checked", meaning: "stored rows whose flow, execution or name is no UTF-8 text", advice: "find out who wrote them: no entry can name them" },
  rows_not_folded: { kind: "not checked", meaning: "sound rows behind a fault and before the next snapshot: what they did was not judged", advice: "look at the finding before them" },
  rows_below: { kind: "not checked", meaning: "sequences below the first row that is there", advice: "nothing, if they were deleted on purpose" },
  snapshots_believed: { kind: "not checked", meaning: "snapshots from which folding went on, with nothing before them to compare", advice: "compare them with a backup" },
  head: { kind: "not checked", meaning: "the stored head was not given", advice: "give it: a missing last row is noticed by nothing else" },
  hint: { kind: "not checked", meaning: "the hint was not given", advice: "give it" },
  off_cadence: { kind: "note", meaning: "snapshots where none was due", advice: "nothing: a first restore of a long stream appends one" },
  not_restated: { kind: "note", meaning: "due places without a snapshot", advice: "find out which program appended there: restores read more rows than they need" },
  checkpoint_beyond_head: { kind: "note", meaning: "runs whose floor lies beyond the last entry that is still there", advice: "nothing, if they were compacted whole; else look for entries that were deleted by something else" },
  recorded_by_two_runs: { kind: "note", meaning: "completions that two or more runs record; the last run in byte order decides", advice: "find out which run owns the completion" },
  unexplained: { kind: "count", meaning: "stored completions that no entry explains, such as signals that came early", advice: "nothing, or set a limit with --max-unexplained" },
  match: { kind: "verdict or class", meaning: "the tables say what the journal says", advice: "nothing" },
  drift: { kind: "verdict or class", meaning: "a table says something else than the journal, and a rebuild repairs it", advice: "run plan, look at it, and apply it" },
  refused: { kind: "verdict or class", meaning: "something does not join, or a run contradicts itself or cannot be read: nothing may be written", advice: "look into every finding that is not of class drift" },
  unjoined: { kind: "verdict or class", meaning: "the journal refers to what the store does not hold: a rebuild is refused", advice: "restore what is missing" },
  unverifiable: { kind: "verdict or class", meaning: "something could not be checked, and --strict or a limit asked that it be: a rebuild is refused", advice: "look at it, or leave the option out" },
  partial: { kind: "verdict or class", meaning: "not everything was looked at", advice: "run it again, to its end" }
}

const exitWords: Readonly<Record<string, Omit<Word, "kind">>> = {
  0: { meaning: "match: the tables say what the journal says; or the command did what it was asked", advice: "nothing" },
  1: { meaning: "drift only: apply repairs it", advice: "run plan, look at it, and apply it" },
  2: { meaning: "could not look: the command line, the file or its surroundings are not as they should be", advice: "read the message; explain its code" },
  3: { meaning: "refused: findings that no rebuild repairs, or an apply that would do something else than was planned or allowed", advice: "look into the findings; nothing was written" },
  4: { meaning: "partial: stopped by a limit or by Ctrl-C", advice: "run it again, to its end" },
  141: { meaning: "the reader of the output went away before the end", advice: "nothing, if it was head; the report was not read whole" }
}

/** Everything that is known by a word, in the order of a list. */
export function knowledgeOf(id: string): Word[] {
  return allKnowledge().flatMap(([word, known]) => (word === id ? [known] : []))
}

/** Every word and what is known about it. A word may come twice, as a finding and as an error. */
export function allKnowledge(): [string, Word][] {
  const of = (kind: string, words: Readonly<Record<string, Omit<Word, "kind">>>): [string, Word][] =>
    Object.entries(words).map(([word, known]) => [word, { kind, ...known }])
  return [
    ...Object.entries(findingTable()).map(([id, { class: findingClass, meaning, advice }]): [string, Word] => [
      id,
      { kind: `finding of class ${findingClass}`, meaning, advice }
    ]),
    ...Object.entries(errorTable()).map(([code, meaning]): [string, Word] => [
      code,
      { kind: "error", meaning, advice: errorAdvice[code as ErrorCode] ?? "" }
    ]),
    ...of("ignored entry", ignoredReasons),
    ...Object.entries(reportWords),
    ...of("exit code", exitWords)
  ]
}
