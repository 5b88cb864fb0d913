/** Stored rows that a rebuild wants to see, as the JSON text that it reads. Postgres makes that text, and the digests in it. */
import { contentDigest, type DigestFunction } from "../../digest.js"
import type { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress, Wanted } from "../../folds/deferred-clock/types.js"
import type { Connection } from "./connection.js"
import { Cursor } from "./cursor.js"
import { bytesOf, FetchSize } from "./journal.js"
import type { RecordedDigests, Stored, TextsOf } from "./jsonb.js"
import type { Column, Schema } from "./schema.js"
import { boundIds, isStorable, rowsAQuery, rowStatements, type RowStatements } from "./statements.js"

/** Rows fetched at a time where they are too many for one text, and executions. */
const rowsAFetch = 5000
/** Completions with their texts, which may be large, fetched at a time. */
const mostTexts = 128

/** How completions are compared. */
export interface Comparison {
  /** Computes digests of stored texts in place of Postgres. */
  readonly digest?: DigestFunction
  /** What the journal records, for columns whose text is not what was recorded. */
  readonly recorded?: RecordedDigests
}

/** Reads stored rows. */
export class RowReader {
  readonly #connection: Connection
  readonly #schema: Schema
  readonly #statements: RowStatements
  readonly #comparison: Comparison
  /** Whether texts have to come here, because Postgres' digests do not do. */
  readonly #texts: boolean
  /** How many clocks and completions were read. */
  clocksRead = 0
  completionsRead = 0

  constructor(connection: Connection, schema: Schema, comparison: Comparison) {
    this.#connection = connection
    this.#schema = schema
    this.#comparison = comparison
    this.#texts = comparison.digest !== undefined || comparison.recorded !== undefined
    this.#statements = rowStatements(schema, !this.#texts)
  }

  /** Answers everything wanted. */
  async answer(rebuild: Rebuild, wanted: Wanted): Promise<void> {
    if (wanted.runs.length === 0 && wanted.addresses.length === 0) return
    // What no text of Postgres can be has no row.
    const addresses = wanted.addresses.filter(({ flowName, executionId }) => isStorable(flowName) && isStorable(executionId))
    const pairs = pairsOf(addresses)
    const [row] = await this.#connection.rows(this.#statements.batch, boundIds(wanted.runs), pairs)
    const [live, clockCount, clocks, completionCount, completions] = row ?? []
    rebuild.answerText(`{"runs":${live ?? "[]"}}`, false)
    if (Number(clockCount) > rowsAQuery) await this.#each(rebuild, "clocks", pairs)
    else this.#give(rebuild, "clocks", Number(clockCount), clocks ?? "")
    if (this.#texts) await this.#eachText(rebuild, pairs)
    else if (Number(completionCount) > rowsAQuery) await this.#each(rebuild, "completions", pairs)
    else this.#give(rebuild, "completions", Number(completionCount), completions ?? "")
    rebuild.answerText("{}", true)
    this.#comparison.recorded?.answered()
  }

  #give(rebuild: Rebuild, table: "clocks" | "completions", count: number, rows: string): void {
    if (count === 0) return
    rebuild.answerText(`{"${table}":[${rows}]}`, false)
    if (table === "clocks") this.clocksRead += count
    else this.completionsRead += count
  }

  /** Too many for one text: some at a time. */
  async #each(rebuild: Rebuild, table: "clocks" | "completions", pairs: string): Promise<void> {
    const cursor = await Cursor.open(this.#connection, this.#statements[table], pairs)
    for (;;) {
      const rows = await cursor.next(rowsAFetch)
      if (rows.length === 0) break
      this.#give(rebuild, table, rows.length, rows.map(([row]) => row).join(","))
    }
    await cursor.close()
  }

  /** Completions whose digests are computed here. */
  async #eachText(rebuild: Rebuild, pairs: string): Promise<void> {
    const { exit, metadata } = this.#schema.completions
    const { recorded, digest = contentDigest } = this.#comparison
    const storedOf = (text: string | null, { kind }: Column): Stored => ({
      digest: text === null ? null : digest(kind === "bytea" ? bytesOf(text, true) : text),
      jsonb: kind === "jsonb" && text !== null ? text : undefined
    })
    const json = (value: string | null): string => (value === null ? "null" : `"${value}"`)
    await this.#eachOfTexts(pairs, (rows) => {
      const answers = rows.map(([address, exitText, metadataText, stamps]) => {
        const stored = [storedOf(exitText, exit), storedOf(metadataText, metadata)] as const
        const digests = recorded?.digests(address, ...stored) ?? { exit: stored[0].digest, metadata: stored[1].digest }
        return `${address.slice(0, -1)},${json(digests.exit)},${json(digests.metadata)},${stamps.slice(1)}`
      })
      this.#give(rebuild, "completions", rows.length, answers.join(","))
    })
  }

  async #eachOfTexts(pairs: string, take: (rows: readonly [string, string | null, string | null, string][]) => void): Promise<void> {
    const cursor = await Cursor.open(this.#connection, this.#statements.texts, pairs)
    const size = new FetchSize(32, mostTexts)
    for (;;) {
      const rows = (await cursor.next(size.rows)) as unknown as [string, string | null, string | null, string][]
      if (rows.length === 0) break
      size.saw(rows.reduce((sum, [, exit, metadata]) => sum + (exit?.length ?? 0) + (metadata?.length ?? 0), 0))
      take(rows)
    }
    await cursor.close()
  }

  /** The texts of some completions, where they are kept as texts. */
  readonly textsOf: TextsOf = async (addresses, take) => {
    const { exit, metadata } = this.#schema.completions
    const shown = (text: string | null, kind: string): string | null => (kind === "text" || kind === "json" ? text : null)
    await this.#eachOfTexts(pairsOf(addresses), (rows) => {
      for (const [address, exitText, metadataText] of rows) {
        take(address, shown(exitText, exit.kind), shown(metadataText, metadata.kind))
      }
    })
  }

  /** How many clocks and completions the store holds. */
  async counts(): Promise<{ readonly clocks: number; readonly completions: number }> {
    const [row] = await this.#connection.rows(this.#statements.counts)
    return { clocks: Number(row?.[0]), completions: Number(row?.[1]) }
  }

  /** How many rows have no flow, no execution or no name, so that no journal can mean them. */
  async nameless(): Promise<number> {
    const [row] = await this.#connection.rows(this.#statements.nameless)
    return Number(row?.[0])
  }

  /** Those of some run ids that have a row. */
  async liveAmong(runIds: readonly string[]): Promise<string[]> {
    const [row] = await this.#connection.rows(this.#statements.batch, boundIds(runIds), "[]")
    return JSON.parse(row?.[0] ?? "[]") as string[]
  }

  /** All flows and executions that stored rows have, as JSON arrays of pairs. */
  async *executions(): AsyncGenerator<string> {
    const cursor = await Cursor.open(this.#connection, this.#statements.executions)
    for (;;) {
      const rows = await cursor.next(rowsAFetch)
      if (rows.length === 0) break
      yield `[${rows.map(([pair]) => pair).join(",")}]`
    }
    await cursor.close()
  }
}

const pairsOf = (addresses: readonly ExecutionAddress[]): string =>
  JSON.stringify(addresses.map(({ flowName, executionId }) => [flowName, executionId]))
