/**
 * Stored rows that a rebuild wants to see, as the JSON text that it reads.
 *
 * Of a store in UTF-8 everything leaves SQLite as bytes, because a driver that makes a string of them replaces what is no UTF-8, and
 * then two names become one.
 */
import { isUtf8 } from "node:buffer"
import * as nodeCrypto from "node:crypto"
import { JournalFoldError } from "../../core/errors.js"
import { contentDigest, type DigestFunction } from "../../digest.js"
import type { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress, Wanted } from "../../folds/deferred-clock/types.js"
import type { Connection, Row, Value } from "./connection.js"
import type { Names } from "./names.js"
import { completionStatements, rowsAQuery, rowStatements, type RowStatements } from "./statements.js"

/** Characters of completions after which an answer is handed on. */
const unitsAnAnswer = 1 << 20
/** A text longer than this is read by itself. With {@link rowsAQuery} it bounds what one query gives. */
const longText = 4096

const cryptoHash = (nodeCrypto as { hash?: (algorithm: string, data: string | Uint8Array) => string }).hash

/** Node's own digest where it has a one-call form (20.12 and later): two to five times faster than the module's. */
export const hostDigest: DigestFunction | undefined =
  cryptoHash === undefined ? undefined : (text) => cryptoHash("sha256", text)

/** Those of some run ids that have a row. */
export function liveAmong(connection: Connection, { live }: Pick<RowStatements, "live">, runIds: readonly string[]): string[] {
  return connection.all(live, JSON.stringify(runIds)).map(([, place]) => runIds[Number(place)] as string)
}

/** How the rows of one table are read. */
interface Table {
  /** Rows of some executions; one more than a query should give when there are too many. */
  readonly of: string
  /** Rows of one execution, from a name on. */
  readonly from: string
  /** Rows of one execution, after a name. */
  readonly after: string
  /** Values bound before the others. */
  readonly bound: readonly Value[]
  /** Which column is the last name. */
  readonly nameAt: number
  readonly hand: (page: Row) => void
}

/** Reads stored rows. */
export class RowReader {
  readonly #connection: Connection
  readonly #names: Names
  readonly #rebuild: Rebuild
  readonly #digest: DigestFunction
  readonly #utf8: boolean
  readonly #rowsAQuery: number
  readonly #statements: RowStatements
  readonly #one: string
  readonly #clocks: Table
  readonly #completions: Table
  /** How many clocks and completions were given to the rebuild. */
  clocksRead = 0
  completionsRead = 0
  /** How many rows were passed over because a part of their address is no UTF-8 text. */
  unreadable = 0

  constructor(
    connection: Connection,
    names: Names,
    utf8: boolean,
    rebuild: Rebuild,
    digest: DigestFunction | undefined,
    rows = rowsAQuery
  ) {
    this.#connection = connection
    this.#names = names
    this.#rebuild = rebuild
    this.#digest = digest ?? contentDigest
    this.#utf8 = utf8
    this.#rowsAQuery = rows
    const statements = rowStatements(names, utf8, { rows, type: utf8 ? "BLOB" : "TEXT" })
    const { one, ...completions } = completionStatements(names, rows)
    this.#statements = statements
    this.#one = one
    this.#clocks = {
      of: statements.clocks,
      from: statements.clocksFrom,
      after: statements.clocksAfter,
      bound: [],
      nameAt: 2,
      hand: (page) => this.#handClocks(page)
    }
    this.#completions = { ...completions, bound: [longText, longText], nameAt: 5, hand: (page) => this.#handCompletions(page) }
  }

  /** Answers everything wanted. */
  answer(wanted: Wanted): void {
    if (wanted.runs.length === 0 && wanted.addresses.length === 0) return
    // A store of UTF-8 text cannot hold an unpaired surrogate; SQLite would make the bytes of one out of its escape.
    const runs = wanted.runs.filter((run) => run.isWellFormed())
    const addresses = wanted.addresses.filter(
      ({ flowName, executionId }) => flowName.isWellFormed() && executionId.isWellFormed()
    )
    if (runs.length > 0) {
      this.#rebuild.answerText(`{"runs":${JSON.stringify(liveAmong(this.#connection, this.#statements, runs))}}`, false)
    }
    if (addresses.length > 0) {
      this.#read(this.#clocks, addresses)
      if (this.#utf8) this.#read(this.#completions, addresses)
      else this.#readCompletions(addresses)
    }
    this.#rebuild.answerText("{}", true)
  }

  /** Reads the rows of some executions, in as many queries as keep each small. */
  #read(table: Table, addresses: readonly ExecutionAddress[]): void {
    const [page] = this.#connection.all(table.of, ...table.bound, pairsText(addresses))
    const count = Number(page?.[0] ?? 0)
    if (page !== undefined && count <= this.#rowsAQuery) {
      if (count > 0) table.hand(page)
    } else if (addresses.length > 1) {
      const half = addresses.length >> 1
      this.#read(table, addresses.slice(0, half))
      this.#read(table, addresses.slice(half))
    } else {
      for (const address of addresses) this.#readOne(table, address)
    }
  }

  #readOne(table: Table, { flowName, executionId }: ExecutionAddress): void {
    // An empty name is a name too: begin at it.
    let sql = table.from
    let after: Value = ""
    for (;;) {
      const [page] = this.#connection.all(sql, ...table.bound, flowName, executionId, after)
      const count = Number(page?.[0] ?? 0)
      if (page !== undefined && count > 0) table.hand(page)
      if (page === undefined || count < this.#rowsAQuery) return
      sql = table.after
      after = page[table.nameAt] as Value
    }
  }

  #handClocks(page: Row): void {
    const rows = page[1] as string | Uint8Array
    const before = this.unreadable
    let text: string
    if (typeof rows === "string") text = rows
    else if (isUtf8(rows)) text = textOf(rows)
    else text = `[${split(rows.subarray(1, -1)).flatMap((row) => this.#readable(row) ?? []).join(",")}]`
    this.#rebuild.answerText(`{"clocks":${text}}`, false)
    this.clocksRead += Number(page[0]) - (this.unreadable - before)
  }

  /**
   * A row of a page that is not all UTF-8. When its address is not, no journal can mean it; another text that is not, such as a
   * deferred's name, is only not the recorded one.
   */
  #readable(row: Uint8Array): string | undefined {
    if (isUtf8(row)) return textOf(row)
    const values = JSON.parse(textOf(row)) as unknown[]
    const broken = values.map((value) => typeof value === "string" && value.includes("\ufffd"))
    if (broken.slice(0, 3).includes(true)) {
      this.unreadable += 1
      return undefined
    }
    return JSON.stringify(values.map((value, place) => (broken[place] === true ? "text that is no UTF-8" : value)))
  }

  #handCompletions([, rows, lengths, exits, metadata]: Row): void {
    const exitOf = this.#digester(exits)
    const metadataOf = this.#digester(metadata)
    const sizes = (lengths as string).split(",")
    const handed: string[] = []
    completionsOf(rows as Uint8Array).forEach((row, place) => {
      const [exitLength, metadataLength] = (sizes[place] as string).split(" ").map(Number) as [number, number]
      const end = row.indexOf("\n")
      const long = end >= 0 && (exitLength > longText || metadataLength > longText) ? this.#longTextsOf(row.slice(0, end)) : undefined
      const exit = exitOf(exitLength, long?.[0])
      const metadata = metadataOf(metadataLength, long?.[1])
      if (end >= 0) handed.push(`${row.slice(0, end - 1)},${exit},${metadata},${row.slice(end + 2)}`)
      else this.unreadable += 1
    })
    this.#handRows(handed)
  }

  /** Exit and metadata of a completion, by its address as JSON. */
  #longTextsOf(address: string): Row | undefined {
    return this.#connection.all(this.#one, ...(JSON.parse(address) as string[]))[0]
  }

  /** Gives the digest, as JSON, of one text after another: of those joined, or of a long one that was read by itself. */
  #digester(joined: Value | undefined): (length: number, long: Value | undefined) => string {
    let at = 0
    return (length, long) => {
      if (length < 0) return "null"
      if (length > longText) return long instanceof Uint8Array ? `"${this.#digest(long)}"` : "null"
      const text = (joined as Uint8Array).subarray(at, (at += length))
      return `"${this.#digest(text)}"`
    }
  }

  /** Completions of a store in UTF-16, one by one: a digest is over the UTF-8 of a text, and joined they would be its own bytes. */
  #readCompletions(addresses: readonly ExecutionAddress[]): void {
    let rows: string[] = []
    let units = 0
    const digestOf = (text: Value): string => (text === null ? "null" : `"${this.#digest(text as string | Uint8Array)}"`)
    this.#connection.each(this.#statements.completions, [pairsText(addresses)], ([address, exit, metadata, stamps]) => {
      const row = `${(address as string).slice(0, -1)},${digestOf(exit as Value)},${digestOf(metadata as Value)},${(stamps as string).slice(1)}`
      rows.push(row)
      units += row.length
      if (units > unitsAnAnswer) {
        this.#handRows(rows)
        rows = []
        units = 0
      }
    })
    this.#handRows(rows)
  }

  #handRows(rows: readonly string[]): void {
    if (rows.length > 0) this.#rebuild.answerText(`{"completions":[${rows.join(",")}]}`, false)
    this.completionsRead += rows.length
  }

  /**
   * How many clocks and completions the store holds.
   *
   * @throws `store_corrupt` when an index has other rows than its table
   */
  counts(): { clocks: number; completions: number } {
    const [clocks, completions, ...indexed] = (this.#connection.all(this.#statements.counts)[0] ?? []).map(Number) as [number, number, number, number]
    checkCount(this.#names.clocks.table, clocks, indexed[0])
    checkCount(this.#names.completions.table, completions, indexed[1])
    return { clocks, completions }
  }

  /** Counts the rows that have an address of something else than text as unreadable. */
  countNameless(): void {
    this.unreadable += Number(this.#connection.all(this.#statements.nameless)[0]?.[0])
  }

  /** All flows and executions that stored rows have, as JSON arrays of pairs. */
  *executions(): Generator<string> {
    // An empty name is a name too: begin at it.
    let sql = this.#statements.pairsFrom
    let flow: Value = ""
    let execution: Value = ""
    for (;;) {
      const rows = this.#connection.all(sql, flow, execution)
      const last = rows.at(-1)
      if (last === undefined) return
      yield JSON.stringify(rows.flatMap((row) => this.#pairOf(row)))
      sql = this.#statements.pairsAfter
      ;[flow, execution] = (this.#utf8 ? [last[2], last[3]] : [last[0], last[1]]) as [Value, Value]
    }
  }

  #pairOf([flow, execution, flowBytes, executionBytes]: Row): [string, string][] {
    if (!this.#utf8 || (isUtf8(flowBytes as Uint8Array) && isUtf8(executionBytes as Uint8Array))) {
      return [[flow as string, execution as string]]
    }
    const bound = [flowBytes, executionBytes, flowBytes, executionBytes] as Value[]
    this.unreadable += Number(this.#connection.all(this.#statements.countOf, ...bound)[0]?.[0])
    return []
  }
}

function checkCount(table: string, expected: number, found: number): void {
  if (found === expected) return
  throw new JournalFoldError("store_corrupt", `an index of ${table} is damaged: the table has ${expected} rows, and the index ${found}`, {
    table,
    expected: `${expected} rows`,
    found: `${found} rows`
  })
}

const comma = 44
const lineFeed = 10

/** The rows of a page, each as JSON texts. A comma and a line feed end a row: inside JSON text they never stand together. */
function split(rows: Uint8Array): Uint8Array[] {
  const found: Uint8Array[] = []
  let start = 0
  for (let at = rows.indexOf(lineFeed); at >= 0; at = rows.indexOf(lineFeed, at + 1)) {
    if (rows[at - 1] !== comma) continue
    found.push(rows.subarray(start, at - 1))
    start = at + 1
  }
  found.push(rows.subarray(start))
  return found
}

/** Completions of a page: the address, a line feed, the stamps. Nothing in place of one whose address is no UTF-8. */
function completionsOf(rows: Uint8Array): string[] {
  if (isUtf8(rows)) return textOf(rows).split(",\n")
  return split(rows).map((row) => (isUtf8(row.subarray(0, row.indexOf(lineFeed))) ? textOf(row) : ""))
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}

function pairsText(addresses: readonly ExecutionAddress[]): string {
  return JSON.stringify(addresses.map(({ flowName, executionId }) => [flowName, executionId]))
}
