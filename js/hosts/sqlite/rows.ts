/** Stored rows that a rebuild wants to see, as the JSON text that it reads. */
import * as nodeCrypto from "node:crypto"
import { contentDigest, type DigestFunction } from "../../digest.js"
import type { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress, Wanted } from "../../folds/deferred-clock/types.js"
import type { Connection, Value } from "./connection.js"
import { quoted, type Names } from "./names.js"

/** Rows that one query gives at the most. */
const rowsAQuery = 5000
/** Characters of completions after which an answer is handed on. */
const unitsAnAnswer = 1 << 20

const cryptoHash = (nodeCrypto as { hash?: (algorithm: string, data: string | Uint8Array) => string }).hash

/** Node's own digest where it has a one-call form (20.12 and later): two to five times faster than the module's. */
export const hostDigest: DigestFunction | undefined =
  cryptoHash === undefined ? undefined : (text) => cryptoHash("sha256", text)

/** A column as a JSON value: a blob, which JSON has none of, as a text that no recorded value can be. */
const json = (column: string): string =>
  `CASE typeof(${column}) WHEN 'blob' THEN 'blob of ' || octet_length(${column}) || ' bytes' ELSE ${column} END`

/** A name as a text, whatever a column without a type or a key without NOT NULL let in. */
const name = (column: string): string => `coalesce(CAST(${column} AS TEXT), '')`

/** Reads stored rows. */
export class RowReader {
  readonly #connection: Connection
  readonly #digest: DigestFunction
  readonly #live: string
  readonly #clocks: string
  readonly #clocksAfter: string
  readonly #completions: string
  readonly #pairs: string
  readonly #counts: string
  /** How many clocks and completions were read. */
  clocksRead = 0
  completionsRead = 0

  constructor(connection: Connection, names: Names, utf8: boolean, digest: DigestFunction | undefined) {
    this.#connection = connection
    this.#digest = digest ?? contentDigest
    const { runs, clocks: c, completions: d } = quoted(names)
    this.#live = `SELECT DISTINCT r.${runs.runId} AS c0 FROM json_each(?) AS w CROSS JOIN ${runs.table} AS r ON r.${runs.runId} = w.value`
    const clockRow = `json_array(c.${c.flowName}, c.${c.executionId}, ${name(`c.${c.clockName}`)}, ${json(`c.${c.deferredName}`)},
      ${json(`c.${c.dueAtMs}`)}, ${json(`c.${c.completedAtMs}`)})`
    this.#clocks = `SELECT count(*) AS c0, json_group_array(json(row)) AS c1 FROM (
      SELECT ${clockRow} AS row FROM json_each(?) AS w CROSS JOIN ${c.table} AS c
      ON c.${c.flowName} = w.value ->> 0 AND c.${c.executionId} = w.value ->> 1 LIMIT ${rowsAQuery + 1})`
    this.#clocksAfter = `SELECT count(*) AS c0, json_group_array(json(row)) AS c1, max(name) AS c2 FROM (
      SELECT ${clockRow} AS row, c.${c.clockName} AS name FROM ${c.table} AS c
      WHERE c.${c.flowName} = ? AND c.${c.executionId} = ? AND c.${c.clockName} > ? ORDER BY c.${c.clockName} LIMIT ${rowsAQuery})`
    // A digest is over the UTF-8 of a text: its stored bytes, where the store keeps texts so.
    const text = (column: string): string => (utf8 ? `CAST(d.${column} AS BLOB)` : `CAST(d.${column} AS TEXT)`)
    this.#completions = `SELECT json_array(d.${d.flowName}, d.${d.executionId}, ${name(`d.${d.deferredName}`)}) AS c0,
      ${text(d.exit)} AS c1, ${text(d.metadata)} AS c2,
      json_array(${json(`d.${d.completedAtMs}`)}, ${json(`d.${d.consumedAtMs}`)}) AS c3
      FROM json_each(?) AS w CROSS JOIN ${d.table} AS d
      ON d.${d.flowName} = w.value ->> 0 AND d.${d.executionId} = w.value ->> 1`
    const pairs = (table: string, flow: string, execution: string): string =>
      `SELECT DISTINCT ${flow} AS f, ${execution} AS e FROM ${table}`
    this.#pairs = `SELECT f AS c0, e AS c1 FROM (${pairs(c.table, c.flowName, c.executionId)}
      UNION ${pairs(d.table, d.flowName, d.executionId)}) WHERE (f, e) > (?, ?) ORDER BY f, e LIMIT ${rowsAQuery}`
    this.#counts = `SELECT (SELECT count(*) FROM ${c.table}) AS c0, (SELECT count(*) FROM ${d.table}) AS c1`
  }

  /** Answers everything wanted. */
  answer(rebuild: Rebuild, wanted: Wanted): void {
    const runs = wanted.runs.filter((run) => run.isWellFormed())
    // A store of UTF-8 text cannot hold an unpaired surrogate; SQLite would make the bytes of one out of its escape.
    const addresses = wanted.addresses.filter(
      ({ flowName, executionId }) => flowName.isWellFormed() && executionId.isWellFormed()
    )
    if (wanted.runs.length === 0 && wanted.addresses.length === 0) return
    if (runs.length > 0) {
      const live = this.#connection.all(this.#live, JSON.stringify(runs)).map(([run]) => run)
      rebuild.answerText(`{"runs":${JSON.stringify(live)}}`, false)
    }
    if (addresses.length > 0) {
      const text = JSON.stringify(addresses.map(({ flowName, executionId }) => [flowName, executionId]))
      this.#answerClocks(rebuild, addresses, text)
      this.#answerCompletions(rebuild, text)
    }
    rebuild.answerText("{}", true)
  }

  #answerClocks(rebuild: Rebuild, addresses: readonly ExecutionAddress[], text: string): void {
    const [row] = this.#connection.all(this.#clocks, text)
    const count = Number(row?.[0] ?? 0)
    if (count <= rowsAQuery) {
      if (count > 0) rebuild.answerText(`{"clocks":${row?.[1] as string}}`, false)
      this.clocksRead += count
      return
    }
    // Too many for one text: execution by execution, page by page.
    for (const { flowName, executionId } of addresses) {
      let after: Value = ""
      // An empty name is a name too: begin below it.
      let sql = this.#clocksAfter.replace("> ? ORDER", ">= ? ORDER")
      for (;;) {
        const [page] = this.#connection.all(sql, flowName, executionId, after)
        sql = this.#clocksAfter
        const pageCount = Number(page?.[0] ?? 0)
        if (pageCount > 0) rebuild.answerText(`{"clocks":${page?.[1] as string}}`, false)
        this.clocksRead += pageCount
        if (pageCount < rowsAQuery) break
        after = page?.[2] ?? ""
      }
    }
  }

  #answerCompletions(rebuild: Rebuild, text: string): void {
    let rows: string[] = []
    let units = 0
    const digest = this.#digest
    const digestOf = (stored: Value): string =>
      stored === null ? "null" : `"${digest(stored as string | Uint8Array)}"`
    const hand = (): void => {
      if (rows.length === 0) return
      rebuild.answerText(`{"completions":[${rows.join(",")}]}`, false)
      rows = []
      units = 0
    }
    this.#connection.each(this.#completions, [text], ([address, exit, metadata, stamps]) => {
      const row = `${(address as string).slice(0, -1)},${digestOf(exit as Value)},${digestOf(metadata as Value)},${(stamps as string).slice(1)}`
      rows.push(row)
      units += row.length
      this.completionsRead += 1
      if (units > unitsAnAnswer) hand()
    })
    hand()
  }

  /** How many clocks and completions the store holds. */
  counts(): { clocks: number; completions: number } {
    const [row] = this.#connection.all(this.#counts)
    return { clocks: Number(row?.[0]), completions: Number(row?.[1]) }
  }

  /** All flows and executions that stored rows have, as JSON arrays of pairs. */
  *executions(): Generator<string> {
    let flow: Value = ""
    let execution: Value = ""
    // An empty name is a name too: begin below it.
    let sql = this.#pairs.replace("> (?, ?)", ">= (?, ?)")
    for (;;) {
      const rows = this.#connection.all(sql, flow, execution)
      sql = this.#pairs
      const last = rows.at(-1)
      if (last === undefined) return
      yield JSON.stringify(rows.map(([f, e]) => [String(f), String(e)]))
      flow = last[0] as Value
      execution = last[1] as Value
    }
  }
}
