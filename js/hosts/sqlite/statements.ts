/**
 * What is said to SQLite: every statement as a function of the store's names, so that whoever holds a connection (this host, or one
 * over another client) says the same. Values are bound by `?`; every result column is named c0, c1, ….
 */
import type { Scope } from "../scope.js"
import { quoted, type Names } from "./names.js"

/** Rows that one query for stored rows gives at the most. */
export const rowsAQuery = 5000

/** The pages of a journal, one row a run: run, last seq, entries, payloads, byte lengths, seqs, types. */
export interface JournalStatements {
  /** Entries above (run, seq). Bound: the four event types, a run's bytes, a seq in decimal, how many entries. */
  readonly all: string
  /** Entries of one run above a seq. Bound: the four event types, a run's id, a seq in decimal, how many entries. */
  readonly one: string
}

/** The statements that read a journal. */
export function journalStatements(names: Names, scope: Scope, utf8: boolean): JournalStatements {
  const { journal, runs } = quoted(names)
  const payload = utf8 ? "p" : "CAST(p AS TEXT)"
  const inner = (where: string): string =>
    `SELECT run, seq, k, CASE WHEN k < 9 THEN p ELSE '' END AS p FROM (
       SELECT j.${journal.runId} AS run, j.${journal.seq} AS seq,
         CASE j.${journal.eventType} WHEN ? THEN 0 WHEN ? THEN 1 WHEN ? THEN 2 WHEN ? THEN 3 ELSE 9 END AS k,
         j.${journal.payload} AS p
       FROM ${journal.table} AS j WHERE ${where} LIMIT ?)`
  const page = (where: string): string =>
    `SELECT CAST(run AS BLOB) AS c0, CAST(max(seq) AS TEXT) AS c1, count(*) AS c2,
       CAST(group_concat(${payload}, '') AS BLOB) AS c3,
       CAST(group_concat(coalesce(octet_length(p), -1)) AS BLOB) AS c4,
       CAST(group_concat(seq) AS BLOB) AS c5,
       CAST(group_concat(k, '') AS BLOB) AS c6
     FROM (${inner(where)}) GROUP BY run`
  const live =
    scope.kind === "live" ? ` AND EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE r.${runs.runId} = j.${journal.runId})` : ""
  const order = `ORDER BY j.${journal.runId}, j.${journal.seq}`
  return {
    all: page(`(j.${journal.runId}, j.${journal.seq}) > (CAST(? AS TEXT), CAST(? AS INTEGER))${live} ${order}`),
    one: page(`j.${journal.runId} = ? AND j.${journal.seq} > CAST(? AS INTEGER) ${order}`)
  }
}

/** How many entries a journal has, of all types. */
export function entryCountStatement(names: Names): string {
  return `SELECT count(*) AS c0 FROM ${quoted(names).journal.table}`
}

/** All run ids of the journal and of compacted checkpoints, in no order. */
export function runIdsStatement(names: Names, scope: Scope): string {
  const { journal, checkpoints, runs } = quoted(names)
  const live = scope.kind === "live" ? ` WHERE run IN (SELECT ${runs.runId} FROM ${runs.table})` : ""
  return `SELECT DISTINCT run AS c0 FROM (
     SELECT ${journal.runId} AS run FROM ${journal.table}
     UNION ALL
     SELECT ${checkpoints.runId} FROM ${checkpoints.table} WHERE ${checkpoints.compactedAtMs} IS NOT NULL)${live}`
}

/** The statements that read floors: a run's compacted checkpoint with the highest seq. */
export interface CheckpointStatements {
  /** Run and seq of the first 1,024 floors from a run on, in order of run. Bound: that run. */
  readonly from: string
  /** The same, of runs after it. */
  readonly after: string
  /** Run and seq of one run's floor. Bound: the run. */
  readonly one: string
  /** The text of a floor's state. Bound: run, and seq in decimal. */
  readonly state: string
}

export function checkpointStatements(names: Names, scope: Scope): CheckpointStatements {
  const { checkpoints: c, runs } = quoted(names)
  const live =
    scope.kind === "live" ? ` AND EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE r.${runs.runId} = k.${c.runId})` : ""
  const floors = (where: string): string =>
    `SELECT k.${c.runId} AS c0, CAST(max(CAST(k.${c.seq} AS INTEGER)) AS TEXT) AS c1 FROM ${c.table} AS k
      WHERE k.${c.compactedAtMs} IS NOT NULL AND k.${c.runId} ${where} GROUP BY k.${c.runId}`
  return {
    from: `${floors(`>= ?${live}`)} ORDER BY k.${c.runId} LIMIT 1024`,
    after: `${floors(`> ?${live}`)} ORDER BY k.${c.runId} LIMIT 1024`,
    one: floors("= ?"),
    state: `SELECT CAST(k.${c.state} AS TEXT) AS c0 FROM ${c.table} AS k
      WHERE k.${c.runId} = ? AND CAST(k.${c.seq} AS INTEGER) = CAST(? AS INTEGER) AND k.${c.compactedAtMs} IS NOT NULL`
  }
}

/** A column as a JSON value: a blob, which JSON has none of, as a text that no recorded value can be. */
const json = (column: string): string =>
  `CASE typeof(${column}) WHEN 'blob' THEN 'blob of ' || octet_length(${column}) || ' bytes' ELSE ${column} END`

/** A name as a text, whatever a column without a type or a key without NOT NULL let in. */
const name = (column: string): string => `coalesce(CAST(${column} AS TEXT), '')`

/** The statements that read stored rows. */
export interface RowStatements {
  /** Those of some run ids that have a row. Bound: a JSON array of ids. */
  readonly live: string
  /** How many clocks some executions have, and their rows as JSON; one more than {@link rowsAQuery} when there are too many. Bound: a JSON array of [flow, execution]. */
  readonly clocks: string
  /** The first {@link rowsAQuery} clocks of an execution from a name on: count, rows as JSON, last name. Bound: flow, execution, name. */
  readonly clocksFrom: string
  /** The same, of names after it. */
  readonly clocksAfter: string
  /** Completions of some executions: address as a JSON array, exit, metadata, stamps as a JSON array. Bound: a JSON array of [flow, execution]. */
  readonly completions: string
  /** The first {@link rowsAQuery} flows and executions that stored rows have, from one on. Bound: flow and execution. */
  readonly pairsFrom: string
  /** The same, after one. */
  readonly pairsAfter: string
  /** How many clocks and completions there are. */
  readonly counts: string
}

export function rowStatements(names: Names, utf8: boolean): RowStatements {
  const { runs, clocks: c, completions: d } = quoted(names)
  const clockRow = `json_array(c.${c.flowName}, c.${c.executionId}, ${name(`c.${c.clockName}`)}, ${json(`c.${c.deferredName}`)},
    ${json(`c.${c.dueAtMs}`)}, ${json(`c.${c.completedAtMs}`)})`
  const clocksOf = (where: string): string =>
    `SELECT count(*) AS c0, json_group_array(json(row)) AS c1, max(name) AS c2 FROM (
      SELECT ${clockRow} AS row, c.${c.clockName} AS name FROM ${c.table} AS c
      WHERE c.${c.flowName} = ? AND c.${c.executionId} = ? AND c.${c.clockName} ${where} ? ORDER BY c.${c.clockName} LIMIT ${rowsAQuery})`
  // A digest is over the UTF-8 of a text: its stored bytes, where the store keeps texts so.
  const text = (column: string): string => (utf8 ? `CAST(d.${column} AS BLOB)` : `CAST(d.${column} AS TEXT)`)
  const pairs = (table: string, flow: string, execution: string): string =>
    `SELECT DISTINCT ${flow} AS f, ${execution} AS e FROM ${table}`
  const allPairs = (where: string): string => `SELECT f AS c0, e AS c1 FROM (${pairs(c.table, c.flowName, c.executionId)}
    UNION ${pairs(d.table, d.flowName, d.executionId)}) WHERE (f, e) ${where} (?, ?) ORDER BY f, e LIMIT ${rowsAQuery}`
  return {
    live: `SELECT DISTINCT r.${runs.runId} AS c0 FROM json_each(?) AS w CROSS JOIN ${runs.table} AS r ON r.${runs.runId} = w.value`,
    clocks: `SELECT count(*) AS c0, json_group_array(json(row)) AS c1 FROM (
      SELECT ${clockRow} AS row FROM json_each(?) AS w CROSS JOIN ${c.table} AS c
      ON c.${c.flowName} = w.value ->> 0 AND c.${c.executionId} = w.value ->> 1 LIMIT ${rowsAQuery + 1})`,
    clocksFrom: clocksOf(">="),
    clocksAfter: clocksOf(">"),
    completions: `SELECT json_array(d.${d.flowName}, d.${d.executionId}, ${name(`d.${d.deferredName}`)}) AS c0,
      ${text(d.exit)} AS c1, ${text(d.metadata)} AS c2,
      json_array(${json(`d.${d.completedAtMs}`)}, ${json(`d.${d.consumedAtMs}`)}) AS c3
      FROM json_each(?) AS w CROSS JOIN ${d.table} AS d
      ON d.${d.flowName} = w.value ->> 0 AND d.${d.executionId} = w.value ->> 1`,
    pairsFrom: allPairs(">="),
    pairsAfter: allPairs(">"),
    counts: `SELECT (SELECT count(*) FROM ${c.table}) AS c0, (SELECT count(*) FROM ${d.table}) AS c1`
  }
}

/** The statements that write a page of a plan, by its table and what is done. Bound: the page's rows. */
export function planStatements(names: Names): Readonly<Record<string, string>> {
  const { clocks: c, completions: d } = quoted(names)
  const values = (count: number): string =>
    Array.from({ length: count }, (_, place) => `value ->> ${place} AS v${place}`).join(", ")
  const clockKey = `${c.table}.${c.flowName} = w.v0 AND ${c.table}.${c.executionId} = w.v1 AND ${c.table}.${c.clockName} = w.v2`
  const deferredKey = `${d.table}.${d.flowName} = w.v0 AND ${d.table}.${d.executionId} = w.v1 AND ${d.table}.${d.deferredName} = w.v2`
  return {
    "clocks delete": `DELETE FROM ${c.table} WHERE (${c.flowName}, ${c.executionId}, ${c.clockName}) IN
      (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))`,
    // Rows that only change are updated in place: columns of the user's own keep their values.
    "clocks update": `UPDATE ${c.table} SET ${c.deferredName} = w.v3, ${c.dueAtMs} = w.v4, ${c.completedAtMs} = w.v5
      FROM (SELECT ${values(6)} FROM json_each(?)) AS w WHERE ${clockKey}`,
    "clocks insert": `INSERT INTO ${c.table} (${c.flowName}, ${c.executionId}, ${c.clockName}, ${c.deferredName}, ${c.dueAtMs},
      ${c.completedAtMs}) SELECT ${values(6)} FROM json_each(?)`,
    // A completion without a recorded time leaves the stored one; the consumption is always the recorded one.
    "deferreds update": `UPDATE ${d.table} SET ${d.completedAtMs} = coalesce(w.v3, ${d.table}.${d.completedAtMs}), ${d.consumedAtMs} = w.v4
      FROM (SELECT ${values(5)} FROM json_each(?)) AS w WHERE ${deferredKey}`
  }
}
