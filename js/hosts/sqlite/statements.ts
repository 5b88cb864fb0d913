/**
 * What is said to SQLite: every statement as a function of the store's names, so that whoever holds a connection (this host, or one
 * over another client) says the same. Values are bound by `?`; every result column is named c0, c1, ….
 *
 * Texts are told apart and ordered by their bytes, whatever collation a store has given a column. What is no text (a blob, a number)
 * is never taken for one: every text comes before the empty blob, and after every number.
 */
import type { Scope } from "../scope.js"
import { quoted, type Names } from "./names.js"

/** Rows that one query for stored rows gives at the most. */
export const rowsAQuery = 5000

/** Where the collation is the usual one, as it should be, the column's index serves as well. */
export const exact = (column: string): string => `${column} COLLATE BINARY`

/** The live runs among those of a column, when no others are looked at. */
const onlyLive = (names: Names, scope: Scope, column: string): string => {
  const { runs } = quoted(names)
  return scope.kind === "live"
    ? ` AND EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE ${exact(`r.${runs.runId}`)} = ${column})`
    : ""
}

/** A whole number in decimal, though a column of another type keeps it as a real; NULL for anything else, digits in a text among it. */
const wholeText = (value: string): string =>
  `CASE WHEN ${value} = +CAST(${value} AS INTEGER) THEN CAST(CAST(${value} AS INTEGER) AS TEXT) END`

const typeCode = "WHEN ? THEN 0 WHEN ? THEN 1 WHEN ? THEN 2 WHEN ? THEN 3 ELSE 9 END"

/** The pages of a journal for a client that takes a fixed number of entries, one row a run: run, last seq, entries, payloads, byte lengths, seqs, types. */
export interface JournalStatements {
  /** Entries above (run, seq). Bound: the four event types, a run's bytes, a seq in decimal, how many entries. */
  readonly all: string
  /** Entries of one run above a seq. Bound: the four event types, a run's id, a seq in decimal, how many entries. */
  readonly one: string
}

/** The statements that read a journal. */
export function journalStatements(names: Names, scope: Scope, utf8: boolean): JournalStatements {
  const { journal } = quoted(names)
  const payload = utf8 ? "p" : "CAST(p AS TEXT)"
  const inner = (where: string): string =>
    `SELECT run, seq, k, CASE WHEN k < 9 THEN p ELSE '' END AS p FROM (
       SELECT j.${journal.runId} AS run, j.${journal.seq} AS seq, CASE j.${journal.eventType} ${typeCode} AS k, j.${journal.payload} AS p
       FROM ${journal.table} AS j WHERE ${where} LIMIT ?)`
  const page = (where: string): string =>
    `SELECT CAST(run AS BLOB) AS c0, CAST(max(seq) AS TEXT) AS c1, count(*) AS c2,
       CAST(group_concat(${payload}, '') AS BLOB) AS c3,
       CAST(group_concat(coalesce(octet_length(p), -1)) AS BLOB) AS c4,
       CAST(group_concat(seq) AS BLOB) AS c5,
       CAST(group_concat(k, '') AS BLOB) AS c6
     FROM (${inner(where)}) GROUP BY run`
  const live = onlyLive(names, scope, `j.${journal.runId}`)
  const order = `ORDER BY j.${journal.runId}, j.${journal.seq}`
  return {
    all: page(
      `(j.${journal.runId}, j.${journal.seq}) > (CAST(? AS TEXT), CAST(? AS INTEGER)) AND j.${journal.runId} < x''${live} ${order}`
    ),
    one: page(`j.${journal.runId} = ? AND j.${journal.seq} > CAST(? AS INTEGER) ${order}`)
  }
}

/**
 * The pages of a journal, cut by rows and by bytes, one row a run: run, last seq (NULL unless it is a whole number), entries, payloads,
 * byte lengths (-1 for NULL), seqs, types. A payload longer than a bound stays out of the joined ones, and its type is 8: who meets
 * one asks again for as many entries as fit.
 */
export interface PageStatements {
  /** Entries of the runs after one. Bound: the four event types, longest payload, a run's bytes, how many entries. */
  readonly next: string
  /** Entries of one run above a seq. Bound: the four event types, longest payload, a run's bytes, a seq in decimal, how many entries. */
  readonly rest: string
  /** Those of `rest` row by row, for stores in UTF-16: seq, type, byte length, payload. Bound: as `rest`, but the run as text. */
  readonly rows: string
}

/** The statements that read a journal page by page. */
export function pageStatements(names: Names, scope: Scope): PageStatements {
  const { journal } = quoted(names)
  const run = exact(`j.${journal.runId}`)
  const payload = `j.${journal.payload}`
  const entries = (where: string): string =>
    `SELECT ${run} AS run, j.${journal.seq} AS seq, CASE ${exact(`j.${journal.eventType}`)} ${typeCode} AS k,
       octet_length(${payload}) AS n, CASE WHEN octet_length(${payload}) <= ? THEN ${payload} END AS p
     FROM ${journal.table} AS j WHERE ${where} LIMIT ?`
  const typeOrLong = "CASE WHEN k < 9 AND p IS NULL AND n IS NOT NULL THEN 8 ELSE k END"
  const page = (where: string): string =>
    `SELECT CAST(run AS BLOB) AS c0, ${wholeText("max(seq)")} AS c1, count(*) AS c2,
       CAST(group_concat(CASE WHEN k < 9 THEN p END, '') AS BLOB) AS c3,
       CAST(group_concat(CASE WHEN k < 9 THEN coalesce(n, -1) ELSE 0 END) AS BLOB) AS c4,
       CAST(group_concat(seq) AS BLOB) AS c5,
       CAST(group_concat(${typeOrLong}, '') AS BLOB) AS c6
     FROM (${entries(where)}) GROUP BY run`
  // By run as well, so that SQLite sees that there is nothing to sort for the groups.
  const order = `ORDER BY ${run}, j.${journal.seq}`
  const ofOne = `${run} = CAST(? AS TEXT) AND j.${journal.seq} > CAST(? AS INTEGER) ${order}`
  return {
    // Two statements and no comparison of (run, seq) pairs: with a bound value that is cast, SQLite would look for the run alone.
    next: page(`${run} > CAST(? AS TEXT) AND ${run} < x''${onlyLive(names, scope, `j.${journal.runId}`)} ${order}`),
    rest: page(ofOne),
    rows: `SELECT ${wholeText("seq")} AS c0, ${typeOrLong} AS c1, coalesce(n, -1) AS c2,
       CASE WHEN k < 9 THEN p END AS c3 FROM (${entries(ofOne)})`
  }
}

/** How many entries a journal has, of all types. Of the table itself: an index that has lost some must not say so too. */
export function entryCountStatement(names: Names): string {
  return `SELECT count(*) AS c0 FROM ${quoted(names).journal.table} NOT INDEXED`
}

/** How many entries have a run id that is no text. */
export function namelessCountStatement(names: Names): string {
  const { journal } = quoted(names)
  return `SELECT count(*) AS c0 FROM ${journal.table} AS j WHERE typeof(j.${journal.runId}) <> 'text'`
}

/** All run ids of the journal and of compacted checkpoints, in no order. */
export function runIdsStatement(names: Names, scope: Scope): string {
  const { journal, checkpoints } = quoted(names)
  return `SELECT DISTINCT ${exact("run")} AS c0 FROM (
     SELECT ${journal.runId} AS run FROM ${journal.table}
     UNION ALL
     SELECT ${checkpoints.runId} FROM ${checkpoints.table} WHERE ${checkpoints.compactedAtMs} IS NOT NULL)
   WHERE typeof(run) = 'text'${onlyLive(names, scope, "run")}`
}

/** The statements that read floors: a run's compacted checkpoint with the highest seq. */
export interface CheckpointStatements {
  /** Run, seq, and the run's bytes, of the first 1,024 floors from a run on, in order of run. Bound: that run, as text or bytes. */
  readonly from: string
  /** The same, of runs after it. */
  readonly after: string
  /** Run and seq of one run's floor. Bound: the run. */
  readonly one: string
  /** The text of a floor's state. Bound: run, and seq in decimal. */
  readonly state: string
  /** The same, as bytes. */
  readonly stateBytes: string
}

/** The statements that read floors. */
export function checkpointStatements(names: Names, scope: Scope): CheckpointStatements {
  const { checkpoints: c } = quoted(names)
  const run = exact(`k.${c.runId}`)
  const floors = (where: string): string =>
    `SELECT k.${c.runId} AS c0, CAST(max(CAST(k.${c.seq} AS INTEGER)) AS TEXT) AS c1, CAST(k.${c.runId} AS BLOB) AS c2
      FROM ${c.table} AS k WHERE k.${c.compactedAtMs} IS NOT NULL AND ${run} ${where} GROUP BY ${run}`
  const ordered = (comparison: string): string =>
    `${floors(`${comparison} CAST(? AS TEXT) AND ${run} < x''${onlyLive(names, scope, `k.${c.runId}`)}`)} ORDER BY ${run} LIMIT 1024`
  const state = (type: string): string => `SELECT CAST(k.${c.state} AS ${type}) AS c0 FROM ${c.table} AS k
      WHERE ${run} = ? AND CAST(k.${c.seq} AS INTEGER) = CAST(? AS INTEGER) AND k.${c.compactedAtMs} IS NOT NULL`
  return {
    from: ordered(">="),
    after: ordered(">"),
    one: floors("= ?"),
    state: state("TEXT"),
    stateBytes: state("BLOB")
  }
}

/** A column as a JSON value: a blob, which JSON has none of, as a text that no recorded value can be. */
export const json = (column: string): string =>
  `CASE typeof(${column}) WHEN 'blob' THEN 'blob of ' || octet_length(${column}) || ' bytes' ELSE ${column} END`

/** The statements that read stored rows. */
export interface RowStatements {
  /** Those of some run ids that have a row: the id, and its place in the list. Bound: a JSON array of ids. */
  readonly live: string
  /** How many clocks some executions have, and their rows as JSON; one more than asked for when there are too many. Bound: a JSON array of [flow, execution]. */
  readonly clocks: string
  /** The first clocks of an execution from a name on: count, rows as JSON, last name. Bound: flow, execution, name. */
  readonly clocksFrom: string
  /** The same, of names after it. */
  readonly clocksAfter: string
  /** Completions of some executions: address as a JSON array, exit, metadata, stamps as a JSON array. Bound: a JSON array of [flow, execution]. */
  readonly completions: string
  /** Flows and executions that stored rows have, from one on, as they are and as bytes. Bound: flow and execution. */
  readonly pairsFrom: string
  /** The same, after one. */
  readonly pairsAfter: string
  /** How many clocks and completions the tables have, and how many by their indexes. */
  readonly counts: string
  /** How many clocks and completions have an address that is no text. */
  readonly nameless: string
  /** How many clocks and completions an execution has. Bound: flow and execution, as bytes, twice. */
  readonly countOf: string
}

/** How rows are read: how many at once, and their JSON as text or as bytes. Rows are separated by a comma and a line feed. */
export interface RowsAs {
  readonly rows?: number
  readonly type?: "TEXT" | "BLOB"
}

/** The statements that read stored rows. */
export function rowStatements(names: Names, utf8: boolean, { rows = rowsAQuery, type = "TEXT" }: RowsAs = {}): RowStatements {
  const { runs, clocks: c, completions: d } = quoted(names)
  const clockName = exact(`c.${c.clockName}`)
  const clockRow = `json_array(c.${c.flowName}, c.${c.executionId}, c.${c.clockName}, ${json(`c.${c.deferredName}`)},
    ${json(`c.${c.dueAtMs}`)}, ${json(`c.${c.completedAtMs}`)})`
  const clockPage = (from: string): string =>
    `SELECT count(*) AS c0, CAST('[' || coalesce(group_concat(row, ',' || char(10)), '') || ']' AS ${type}) AS c1, CAST(max(name) AS ${type}) AS c2
      FROM (SELECT ${clockRow} AS row, ${clockName} AS name FROM ${from})`
  const clocksOf = (comparison: string): string =>
    clockPage(`${c.table} AS c WHERE ${exact(`c.${c.flowName}`)} = ? AND ${exact(`c.${c.executionId}`)} = ?
      AND ${clockName} ${comparison} CAST(? AS TEXT) AND ${clockName} < x'' ORDER BY ${clockName} LIMIT ${rows}`)
  // A digest is over the UTF-8 of a text: its stored bytes, where the store keeps texts so.
  const text = (column: string): string =>
    utf8 ? `CAST(d.${column} AS BLOB)` : `CASE typeof(d.${column}) WHEN 'blob' THEN d.${column} ELSE CAST(d.${column} AS TEXT) END`
  // One flow's executions and those of the flows after it apart, so that both are found by the index.
  const pairs = (table: string, flow: string, execution: string, comparison: string): string => {
    const part = (where: string): string =>
      `SELECT * FROM (SELECT DISTINCT t.${flow} AS f, t.${execution} AS e FROM ${table} AS t
        WHERE ${where} AND typeof(t.${execution}) = 'text' ORDER BY t.${flow}, t.${execution} LIMIT ${rows})`
    return `${part(`t.${flow} = (SELECT f FROM given) AND t.${execution} ${comparison} (SELECT e FROM given)`)}
      UNION ${part(`t.${flow} > (SELECT f FROM given) AND t.${flow} < x''`)}`
  }
  const allPairs = (comparison: string): string =>
    `WITH given AS MATERIALIZED (SELECT CAST(? AS TEXT) AS f, CAST(? AS TEXT) AS e)
     SELECT f AS c0, e AS c1, CAST(f AS BLOB) AS c2, CAST(e AS BLOB) AS c3 FROM (
       ${pairs(c.table, c.flowName, c.executionId, comparison)} UNION ${pairs(d.table, d.flowName, d.executionId, comparison)}
     ) ORDER BY f, e LIMIT ${rows}`
  const nameless = (table: string, ...columns: string[]): string =>
    `(SELECT count(*) FROM ${table} AS t WHERE ${columns.map((column) => `typeof(t.${column}) <> 'text'`).join(" OR ")})`
  const countOf = (table: string, flow: string, execution: string, name: string): string =>
    `(SELECT count(*) FROM ${table} AS t WHERE t.${flow} = CAST(? AS TEXT) AND t.${execution} = CAST(? AS TEXT) AND typeof(t.${name}) = 'text')`
  return {
    live: `SELECT w.value AS c0, w.key AS c1 FROM json_each(?) AS w
      WHERE EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE ${exact(`r.${runs.runId}`)} = w.value)`,
    clocks: clockPage(`json_each(?) AS w CROSS JOIN ${c.table} AS c ON ${exact(`c.${c.flowName}`)} = w.value ->> 0
      AND ${exact(`c.${c.executionId}`)} = w.value ->> 1 WHERE typeof(c.${c.clockName}) = 'text' LIMIT ${rows + 1}`),
    clocksFrom: clocksOf(">="),
    clocksAfter: clocksOf(">"),
    completions: `SELECT json_array(d.${d.flowName}, d.${d.executionId}, d.${d.deferredName}) AS c0,
      ${text(d.exit)} AS c1, ${text(d.metadata)} AS c2,
      json_array(${json(`d.${d.completedAtMs}`)}, ${json(`d.${d.consumedAtMs}`)}) AS c3
      FROM json_each(?) AS w CROSS JOIN ${d.table} AS d ON ${exact(`d.${d.flowName}`)} = w.value ->> 0
      AND ${exact(`d.${d.executionId}`)} = w.value ->> 1 WHERE typeof(d.${d.deferredName}) = 'text'`,
    pairsFrom: allPairs(">="),
    pairsAfter: allPairs(">"),
    counts: `SELECT (SELECT count(*) FROM ${c.table} NOT INDEXED) AS c0, (SELECT count(*) FROM ${d.table} NOT INDEXED) AS c1,
      (SELECT count(*) FROM ${c.table}) AS c2, (SELECT count(*) FROM ${d.table}) AS c3`,
    nameless: `SELECT ${nameless(c.table, c.flowName, c.executionId, c.clockName)} + ${nameless(d.table, d.flowName, d.executionId, d.deferredName)} AS c0`,
    countOf: `SELECT ${countOf(c.table, c.flowName, c.executionId, c.clockName)} + ${countOf(d.table, d.flowName, d.executionId, d.deferredName)} AS c0`
  }
}

/** The statements that read completions with their texts joined, so that a thousand of them cost one row. */
export interface CompletionStatements {
  /**
   * Completions of some executions: count, rows (address as a JSON array, a line feed, stamps as a JSON array; a comma and a line feed
   * between rows), byte lengths of exit and metadata (-1 for NULL), joined exits, joined metadata, last name. A text longer than a
   * bound stays out of the joined ones. One row more than asked for when there are too many. Bound: longest text, twice; a JSON array
   * of [flow, execution].
   */
  readonly of: string
  /** The first completions of an execution after a name, likewise. Bound: longest text, twice; flow, execution, name. */
  readonly after: string
  /** The first from a name on. */
  readonly from: string
  /** Exit and metadata of one completion. Bound: flow, execution, name. */
  readonly one: string
}

/** The statements that read completions of a store in UTF-8. */
export function completionStatements(names: Names, rows: number): CompletionStatements {
  const { completions: d } = quoted(names)
  const [flow, execution, name] = [d.flowName, d.executionId, d.deferredName].map((column) => exact(`d.${column}`)) as [string, string, string]
  const short = (column: string): string => `CASE WHEN octet_length(d.${column}) <= ? THEN d.${column} END`
  const row = `json_array(d.${d.flowName}, d.${d.executionId}, d.${d.deferredName}) || char(10) ||
    json_array(${json(`d.${d.completedAtMs}`)}, ${json(`d.${d.consumedAtMs}`)})`
  const page = (from: string): string =>
    `SELECT count(*) AS c0, CAST(group_concat(row, ',' || char(10)) AS BLOB) AS c1, group_concat(coalesce(en, -1) || ' ' || coalesce(mn, -1)) AS c2,
       CAST(group_concat(e, '') AS BLOB) AS c3, CAST(group_concat(m, '') AS BLOB) AS c4, CAST(max(name) AS BLOB) AS c5
     FROM (SELECT ${row} AS row, octet_length(d.${d.exit}) AS en, octet_length(d.${d.metadata}) AS mn, ${short(d.exit)} AS e,
       ${short(d.metadata)} AS m, ${name} AS name FROM ${from})`
  const paged = (comparison: string): string =>
    page(`${d.table} AS d WHERE ${flow} = ? AND ${execution} = ? AND ${name} ${comparison} CAST(? AS TEXT) AND ${name} < x''
      ORDER BY ${name} LIMIT ${rows}`)
  return {
    of: page(`json_each(?) AS w CROSS JOIN ${d.table} AS d ON ${flow} = w.value ->> 0 AND ${execution} = w.value ->> 1
      WHERE typeof(d.${d.deferredName}) = 'text' LIMIT ${rows + 1}`),
    from: paged(">="),
    after: paged(">"),
    one: `SELECT CAST(d.${d.exit} AS BLOB) AS c0, CAST(d.${d.metadata} AS BLOB) AS c1 FROM ${d.table} AS d
      WHERE ${flow} = ? AND ${execution} = ? AND ${name} = ?`
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

/** How many rows of a written page are as planned, by its table and what was done. Bound: the page's rows. */
export function checkStatements(names: Names): Readonly<Record<string, string>> {
  const { clocks: c, completions: d } = quoted(names)
  const key = (flow: string, execution: string, name: string): string =>
    `t.${flow} = w.value ->> 0 AND t.${execution} = w.value ->> 1 AND t.${name} = w.value ->> 2`
  const clockKey = key(c.flowName, c.executionId, c.clockName)
  // By value and not as the column's type would have it: a text of digits is no number.
  const is = (column: string, place: number): string => `+t.${column} IS w.value ->> ${place}`
  const clocks = `SELECT count(*) AS c0 FROM json_each(?) AS w CROSS JOIN ${c.table} AS t ON ${clockKey}
    WHERE ${is(c.deferredName, 3)} AND ${is(c.dueAtMs, 4)} AND ${is(c.completedAtMs, 5)}`
  return {
    "clocks delete": `SELECT count(*) AS c0 FROM json_each(?) AS w WHERE NOT EXISTS (SELECT 1 FROM ${c.table} AS t WHERE ${clockKey})`,
    "clocks update": clocks,
    "clocks insert": clocks,
    "deferreds update": `SELECT count(*) AS c0 FROM json_each(?) AS w
      CROSS JOIN ${d.table} AS t ON ${key(d.flowName, d.executionId, d.deferredName)}
      WHERE (w.value ->> 3 IS NULL OR ${is(d.completedAtMs, 3)}) AND ${is(d.consumedAtMs, 4)}`
  }
}
