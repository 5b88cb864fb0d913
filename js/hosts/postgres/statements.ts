/**
 * What is said to Postgres: every statement as a function of the store's schema, so that whoever holds a connection (this host, or one
 * over another client) says the same. Values are bound by `$1`, … and are texts; every result column is a text named c0, c1, ….
 *
 * A journal is read in the order of its runs' UTF-8 bytes, which is the order of the collation "C" and seldom that of the database. A
 * keyset over an index of another collation would sort the table again for every page; so an ordered read is one cursor, which sorts
 * once, or not at all where an index in "C" is there. One run's entries are read by keyset: there any index on (run, seq) serves.
 */
import type { Scope } from "../scope.js"
import type { Column, Schema } from "./schema.js"

/** A statement and what is bound to it. */
export interface Statement {
  readonly sql: string
  readonly values: readonly string[]
}

/** Entries and bytes of payloads that a row of pages holds at the most; one entry may be larger. */
export const rowsAPage = 2048
export const bytesAPage = 512 << 10
/** Rows that one query for stored rows gives at the most. */
export const rowsAQuery = 10_000

/** A column as a text, of which two are the same only when their bytes are. Where it is one already, an index can serve it. */
const text = (alias: string, { name, kind, exact }: Column): string =>
  kind !== "text" ? `(${alias}.${name})::text` : exact ? `${alias}.${name}` : `(${alias}.${name} COLLATE "C")`

/** A seq as an int8. */
const seq = (alias: string, { name, kind }: Column): string =>
  kind === "integer" ? `${alias}.${name}` : `(${alias}.${name})::text::int8`

/** A stored text's UTF-8 bytes. */
const utf8 = (alias: string, { name, kind }: Column): string =>
  kind === "bytea" ? `${alias}.${name}` : `convert_to((${alias}.${name})::text, 'UTF8')`

/** What orders a text by its UTF-8 bytes. */
const byBytes = (schema: Schema, expression: string): string =>
  schema.utf8 ? `${expression} COLLATE "C"` : `convert_to(${expression}, 'UTF8')`

/** A JSON value as rows, one for each item of an array. */
const items = (parameter: string): string => `jsonb_array_elements(CAST(${parameter} AS text)::jsonb)`

const among = (parameter: string): string =>
  `IN (SELECT jsonb_array_elements_text(CAST(${parameter} AS text)::jsonb))`

/** The condition that a run is in scope, with what is bound from `$from` on. */
function inScope(schema: Schema, scope: Scope, run: string, from: number): { readonly where: string; readonly values: readonly string[] } {
  if (scope.kind === "runs") return { where: ` AND ${run} ${among(`$${from}`)}`, values: [boundIds(scope.ids)] }
  if (scope.kind === "all") return { where: "", values: [] }
  const { runs } = schema
  return { where: ` AND EXISTS (SELECT 1 FROM ${runs.table} AS r WHERE ${text("r", runs.runId)} = ${run})`, values: [] }
}

/** Ids as a JSON array, without those that no text of Postgres can be. */
export function boundIds(ids: readonly string[]): string {
  return JSON.stringify(ids.filter(isStorable))
}

/** Whether Postgres can hold a text: it is valid Unicode, and has no NUL. */
export function isStorable(given: string): boolean {
  return given.isWellFormed() && !given.includes("\0")
}

/** The pages of a journal: entries, payloads (in hex where the column is bytes), byte lengths, seqs, types. */
export interface JournalStatements {
  /** Whether payloads come in hex. */
  readonly hex: boolean
  /** A cursor over all runs in scope, in order of run and seq: the run, and a page of it. A run without an id comes last. */
  readonly pages: Statement
  /** The next page of one run: last seq, and the page; no entries when there are no more. Bound: the event types, run, seq, how many entries. */
  readonly one: string
  /** How many entries the journal has. */
  readonly count: string
}

export function journalStatements(schema: Schema, scope: Scope): JournalStatements {
  const { journal: j, eventTypes } = schema
  const hex = j.payload.kind === "bytea"
  const none = hex ? "''::bytea" : "''"
  const payload = hex ? `j.${j.payload.name}` : `(j.${j.payload.name})::text`
  const length = hex || schema.utf8 ? "octet_length(p)" : "octet_length(convert_to(p, 'UTF8'))"
  const run = text("j", j.runId)
  const kinds = `CASE ${text("j", j.eventType)} WHEN $1 THEN '0' WHEN $2 THEN '1' WHEN $3 THEN '2' WHEN $4 THEN '3' ELSE '9' END`
  // Payloads of other types never leave the server.
  const entries = (where: string): string => `SELECT run, seq, k, p, coalesce(${length}, -1) AS len FROM (
      SELECT run, seq, k, CASE WHEN k = '9' THEN ${none} ELSE p END AS p FROM (
        SELECT ${run} AS run, ${seq("j", j.seq)} AS seq, ${kinds} AS k, ${payload} AS p FROM ${j.table} AS j WHERE ${where}) AS e) AS e`
  // A missing payload is joined as nothing, with its length -1, so that no later one shifts.
  const joined = `string_agg(p, ${none} ORDER BY seq)`
  const page = (from: number): string => `count(*)::text AS c${from}, ${hex ? `encode(${joined}, 'hex')` : joined} AS c${from + 1},
      string_agg(len::text, ',' ORDER BY seq) AS c${from + 2}, string_agg(coalesce(seq::text, 'null'), ',' ORDER BY seq) AS c${from + 3},
      string_agg(k, '' ORDER BY seq) AS c${from + 4}`
  const scoped = inScope(schema, scope, run, 5)
  const order = byBytes(schema, "run")
  return {
    hex,
    pages: {
      // Row number and bytes only grow, so their sum says which page an entry is in.
      sql: `SELECT run AS c0, ${page(1)} FROM (
          SELECT ord, run, seq, k, p, len,
            (row_number() OVER w - 1) / ${rowsAPage} + sum(greatest(len, 0)) OVER w / ${bytesAPage} AS page
          FROM (SELECT ${order} AS ord, run, seq, k, p, len FROM (
            ${entries(`true${scoped.where}`)}) AS e) AS e
          WINDOW w AS (ORDER BY ord, seq ROWS UNBOUNDED PRECEDING)) AS e
        GROUP BY ord, run, page ORDER BY ord, page`,
      values: [...eventTypes, ...scoped.values]
    },
    one: `SELECT max(seq)::text AS c0, ${page(1)} FROM (
        SELECT seq, k, p, len, sum(greatest(len, 0)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - greatest(len, 0) AS before FROM (
          ${entries(`${run} = $5 AND ${seq("j", j.seq)} > CAST($6 AS text)::int8 ORDER BY ${seq("j", j.seq)} LIMIT CAST($7 AS text)::int4`)}
        ) AS e) AS e WHERE before < ${bytesAPage}`,
    count: `SELECT count(*)::text AS c0 FROM ${j.table}`
  }
}

/** The statements that read floors: a run's compacted checkpoint with the highest seq. */
export interface CheckpointStatements {
  /** Whether states come in hex. */
  readonly hex: boolean
  /** A cursor over run, seq and the length of the state of every floor in scope, in order of run. */
  readonly floors: Statement
  /** The texts of some floors' states, with their places. Bound: a JSON array of [run, seq]. */
  readonly states: string
  /** Seq and state of one run's floor. Bound: the run. */
  readonly one: string
}

export function checkpointStatements(schema: Schema, scope: Scope): CheckpointStatements {
  const { checkpoints: c } = schema
  const run = text("k", c.runId)
  const number = seq("k", c.seq)
  const compacted = `k.${c.compactedAtMs.name} IS NOT NULL`
  const state =
    c.state.kind === "bytea" ? `encode(k.${c.state.name}, 'hex')` : `(k.${c.state.name})::text`
  const scoped = inScope(schema, scope, run, 1)
  return {
    // Bytes that are no UTF-8 are no JSON either, and must not end the work.
    hex: c.state.kind === "bytea",
    floors: {
      sql: `SELECT f.run AS c0, f.seq::text AS c1, max(coalesce(octet_length(${state}), 0))::text AS c2 FROM (
          SELECT ${run} AS run, max(${number}) AS seq FROM ${c.table} AS k WHERE ${compacted}${scoped.where} GROUP BY 1) AS f
        JOIN ${c.table} AS k ON ${run} = f.run AND ${number} = f.seq AND ${compacted}
        GROUP BY f.run, f.seq ORDER BY ${byBytes(schema, "f.run")}`,
      values: scoped.values
    },
    states: `SELECT w.place::text AS c0, ${state} AS c1 FROM
      jsonb_array_elements(CAST($1 AS text)::jsonb) WITH ORDINALITY AS w(floor, place)
      JOIN ${c.table} AS k ON ${run} = w.floor ->> 0 AND ${number} = (w.floor ->> 1)::int8 AND ${compacted}`,
    one: `SELECT ${number}::text AS c0, ${state} AS c1 FROM ${c.table} AS k WHERE ${run} = $1 AND ${compacted}
      ORDER BY ${number} DESC LIMIT 1`
  }
}

/** The statements that read stored rows. */
export interface RowStatements {
  /**
   * Everything that a batch of runs wants, in one row: live run ids as a JSON array; then how many clocks there are and their rows as a
   * JSON array, and the same of completions with digests in place of their texts. One more than {@link rowsAQuery} rows: too many.
   * Bound: a JSON array of run ids, and one of [flow, execution].
   */
  readonly batch: string
  /** A cursor over the clocks of some executions, each a JSON array. Bound: a JSON array of [flow, execution]. */
  readonly clocks: string
  /** The same of completions, with digests. */
  readonly completions: string
  /** A cursor over completions with their texts: address as a JSON array, exit, metadata, stamps as a JSON array. Bound: the same. */
  readonly texts: string
  /** A cursor over all flows and executions that stored rows have, each a JSON array. */
  readonly executions: string
  /** How many clocks and completions there are. */
  readonly counts: string
  /** How many of them have no flow, no execution or no name. */
  readonly nameless: string
}

interface Addressed {
  readonly table: string
  readonly flowName: Column
  readonly executionId: Column
}

/** @param digests whether Postgres is to compute the digests of completions; otherwise a batch has none of them */
export function rowStatements(schema: Schema, digests = true): RowStatements {
  const { runs, clocks: c, completions: d } = schema
  const digest = (column: Column): string => `encode(sha256(${utf8("d", column)}), 'hex')`
  const at = (alias: string, { flowName, executionId }: Addressed, name: Column): string =>
    `${text(alias, flowName)} = w ->> 0 AND ${text(alias, executionId)} = w ->> 1 AND ${alias}.${name.name} IS NOT NULL`
  const address = (alias: string, table: Addressed, name: Column): string =>
    `${text(alias, table.flowName)}, ${text(alias, table.executionId)}, ${text(alias, name)}`
  const clock = `json_build_array(${address("c", c, c.clockName)}, ${stored("c", c.deferredName)}, ${stored("c", c.dueAtMs)},
      ${stored("c", c.completedAtMs)})::text`
  const stamps = `${stored("d", d.completedAtMs)}, ${stored("d", d.consumedAtMs)}`
  const completion = `json_build_array(${address("d", d, d.deferredName)}, ${digest(d.exit)}, ${digest(d.metadata)}, ${stamps})::text`
  const clocks = (parameter: string): string =>
    `SELECT ${clock} AS c0 FROM ${items(parameter)} AS w JOIN ${c.table} AS c ON ${at("c", c, c.clockName)}`
  const completions = (parameter: string): string =>
    `SELECT ${completion} AS c0 FROM ${items(parameter)} AS w JOIN ${d.table} AS d ON ${at("d", d, d.deferredName)}`
  const whole = (rows: string): string =>
    `(SELECT count(*)::text AS n, string_agg(c0, ',') AS rows FROM (${rows} LIMIT ${rowsAQuery + 1}) AS r)`
  const textOf = (column: Column): string =>
    column.kind === "bytea" ? `encode(d.${column.name}, 'hex')` : `(d.${column.name})::text`
  const pairs = (alias: string, table: Addressed): string =>
    `SELECT ${text(alias, table.flowName)} AS f, ${text(alias, table.executionId)} AS e FROM ${table.table} AS ${alias}`
  const nameless = (table: Addressed, name: Column): string =>
    `(SELECT count(*) FROM ${table.table} WHERE ${[table.flowName, table.executionId, name].map((column) => `${column.name} IS NULL`).join(" OR ")})`
  const live = text("r", runs.runId)
  return {
    batch: `SELECT l.ids AS c0, c.n AS c1, c.rows AS c2, d.n AS c3, d.rows AS c4 FROM
      (SELECT coalesce(json_agg(DISTINCT ${live} COLLATE "C")::text, '[]') AS ids FROM ${runs.table} AS r WHERE ${live} ${among("$1")}) AS l,
      ${whole(clocks("$2"))} AS c, ${digests ? whole(completions("$2")) : "(SELECT '0' AS n, NULL AS rows)"} AS d`,
    clocks: clocks("$1"),
    completions: completions("$1"),
    texts: `SELECT json_build_array(${address("d", d, d.deferredName)})::text AS c0, ${textOf(d.exit)} AS c1, ${textOf(d.metadata)} AS c2,
      json_build_array(${stamps})::text AS c3 FROM ${items("$1")} AS w JOIN ${d.table} AS d ON ${at("d", d, d.deferredName)}`,
    executions: `SELECT json_build_array(f, e)::text AS c0 FROM (${pairs("c", c)} UNION ${pairs("d", d)}) AS p
      WHERE f IS NOT NULL AND e IS NOT NULL`,
    counts: `SELECT (SELECT count(*) FROM ${c.table})::text AS c0, (SELECT count(*) FROM ${d.table})::text AS c1`,
    nameless: `SELECT (${nameless(c, c.clockName)} + ${nameless(d, d.deferredName)})::text AS c0`
  }
}

/** A stored value for JSON: bytes, which JSON has none of, as a text that no recorded value can be. */
function stored(alias: string, { name, kind }: Column): string {
  return kind === "bytea" ? `'blob of ' || octet_length(${alias}.${name}) || ' bytes'` : `${alias}.${name}`
}

/** The statements that export one run. */
export interface ExportStatements {
  /** The places of some ids of which there is neither a row nor an entry nor a checkpoint. Bound: a JSON array of ids. */
  readonly unknown: string
  /** A cursor over a run's entries: seq, type, payload. Bound: the run. */
  readonly entries: string
  /** A floor's time as JSON, and its state. Bound: run and seq. */
  readonly checkpoint: string
  /** The flows that have rows of an execution, each once. Bound: the execution. */
  readonly flows: string
  /** A cursor over the clocks of an execution, in order of name: name, deferred, due and completed as JSON. Bound: flow, execution. */
  readonly clocks: string
  /** A cursor over its completions, in order of name: name, exit, metadata, completed and consumed as JSON. Bound: flow, execution. */
  readonly completions: string
  /** The same with digests in place of the texts. */
  readonly digests: string
}

export function exportStatements(schema: Schema): ExportStatements {
  const { runs: r, journal: j, checkpoints: k, clocks: c, completions: d } = schema
  const known = (table: string, run: Column): string => `SELECT 1 FROM ${table} AS t WHERE ${text("t", run)} = w.id`
  const json = (column: Column): string => `coalesce(to_json(${stored("t", column)})::text, 'null')`
  const value = (column: Column): string => (column.kind === "bytea" ? `encode(t.${column.name}, 'hex')` : `(t.${column.name})::text`)
  const digest = (column: Column): string => `encode(sha256(${utf8("t", column)}), 'hex')`
  const flows = ({ table, flowName, executionId }: Addressed): string =>
    `SELECT ${text("t", flowName)} AS c0 FROM ${table} AS t WHERE ${text("t", executionId)} = $1 AND t.${flowName.name} IS NOT NULL`
  const rows = ({ table, flowName, executionId }: Addressed, name: Column, columns: readonly string[]): string =>
    `SELECT ${[text("t", name), ...columns].map((column, place) => `${column} AS c${place}`).join(", ")} FROM ${table} AS t
      WHERE ${text("t", flowName)} = $1 AND ${text("t", executionId)} = $2 AND t.${name.name} IS NOT NULL
      ORDER BY ${byBytes(schema, text("t", name))}`
  const stamps = [json(d.completedAtMs), json(d.consumedAtMs)]
  return {
    unknown: `SELECT (w.place - 1)::text AS c0 FROM
      jsonb_array_elements_text(CAST($1 AS text)::jsonb) WITH ORDINALITY AS w(id, place)
      WHERE NOT EXISTS (${known(r.table, r.runId)}) AND NOT EXISTS (${known(j.table, j.runId)})
        AND NOT EXISTS (${known(k.table, k.runId)}) ORDER BY w.place`,
    entries: `SELECT ${seq("t", j.seq)}::text AS c0, ${text("t", j.eventType)} AS c1, ${value(j.payload)} AS c2 FROM ${j.table} AS t
      WHERE ${text("t", j.runId)} = $1 ORDER BY ${seq("t", j.seq)}`,
    checkpoint: `SELECT ${json(k.compactedAtMs)} AS c0, ${value(k.state)} AS c1 FROM ${k.table} AS t
      WHERE ${text("t", k.runId)} = $1 AND ${seq("t", k.seq)} = CAST($2 AS text)::int8 AND t.${k.compactedAtMs.name} IS NOT NULL`,
    flows: `${flows(c)} UNION ${flows(d)}`,
    clocks: rows(c, c.clockName, [json(c.deferredName), json(c.dueAtMs), json(c.completedAtMs)]),
    completions: rows(d, d.deferredName, [value(d.exit), value(d.metadata), ...stamps]),
    digests: rows(d, d.deferredName, [digest(d.exit), digest(d.metadata), ...stamps])
  }
}

/** The statements that write the pages of a plan, by table and operation. Bound: the rows of a page as a JSON array of arrays. */
export function planStatements(schema: Schema): Readonly<Record<string, string>> {
  const { clocks: c, completions: d } = schema
  // Numbers come whole and times have no other form: what a column does not take, it refuses.
  const value = (place: number, { type }: Column): string => `CAST(w ->> ${place} AS ${type})`
  const rows = items("$1")
  const key = (alias: string, { flowName, executionId }: Addressed, name: Column): string => `${text(alias, flowName)} = w ->> 0 AND ${text(alias, executionId)} = w ->> 1 AND ${text(alias, name)} = w ->> 2`
  const columns = [c.flowName, c.executionId, c.clockName, c.deferredName, c.dueAtMs, c.completedAtMs]
  return {
    "clocks delete": `DELETE FROM ${c.table} AS c USING ${rows} AS w WHERE ${key("c", c, c.clockName)}`,
    // Rows that only change are updated in place: columns of the user's own keep their values.
    "clocks update": `UPDATE ${c.table} AS c SET ${c.deferredName.name} = ${value(3, c.deferredName)},
      ${c.dueAtMs.name} = ${value(4, c.dueAtMs)}, ${c.completedAtMs.name} = ${value(5, c.completedAtMs)}
      FROM ${rows} AS w WHERE ${key("c", c, c.clockName)}`,
    "clocks insert": `INSERT INTO ${c.table} (${columns.map(({ name }) => name).join(", ")})
      SELECT ${columns.map((column, place) => value(place, column)).join(", ")} FROM ${rows} AS w`,
    // A completion without a recorded time leaves the stored one; the consumption is always the recorded one.
    "deferreds update": `UPDATE ${d.table} AS d SET ${d.completedAtMs.name} = coalesce(${value(3, d.completedAtMs)}, d.${d.completedAtMs.name}),
      ${d.consumedAtMs.name} = ${value(4, d.consumedAtMs)} FROM ${rows} AS w WHERE ${key("d", d, d.deferredName)}`
  }
}

/** How many rows of a written page are as planned, by its table and what was done. Bound: the page's rows. */
export function checkStatements(schema: Schema): Readonly<Record<string, string>> {
  const { clocks: c, completions: d } = schema
  const rows = items("$1")
  // As a verification reads them: a number by its value, and a text as a text.
  const holds = (place: number, column: Column): string => `coalesce(to_jsonb(${stored("t", column)}), 'null') = w -> ${place}`
  const at = ({ table, flowName, executionId }: Addressed, name: Column, ...conditions: string[]): string =>
    `EXISTS (SELECT 1 FROM ${table} AS t WHERE ${[
      `${text("t", flowName)} = w ->> 0 AND ${text("t", executionId)} = w ->> 1 AND ${text("t", name)} = w ->> 2`,
      ...conditions
    ].join(" AND ")})`
  const clock = at(c, c.clockName, holds(3, c.deferredName), holds(4, c.dueAtMs), holds(5, c.completedAtMs))
  const completion = at(
    d,
    d.deferredName,
    `(w -> 3 = 'null' OR ${holds(3, d.completedAtMs)})`,
    holds(4, d.consumedAtMs)
  )
  const count = (condition: string): string => `SELECT count(*)::text AS c0 FROM ${rows} AS w WHERE ${condition}`
  return {
    "clocks delete": count(`NOT ${at(c, c.clockName)}`),
    "clocks update": count(clock),
    "clocks insert": count(clock),
    "deferreds update": count(completion)
  }
}
