/** Stored rows that a rebuild wants to see, as the JSON text that it reads. */
import * as nodeCrypto from "node:crypto"
import { contentDigest, type DigestFunction } from "../../digest.js"
import type { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress, Wanted } from "../../folds/deferred-clock/types.js"
import type { Connection, Value } from "./connection.js"
import type { Names } from "./names.js"
import { rowsAQuery, rowStatements, type RowStatements } from "./statements.js"

/** Characters of completions after which an answer is handed on. */
const unitsAnAnswer = 1 << 20

const cryptoHash = (nodeCrypto as { hash?: (algorithm: string, data: string | Uint8Array) => string }).hash

/** Node's own digest where it has a one-call form (20.12 and later): two to five times faster than the module's. */
export const hostDigest: DigestFunction | undefined =
  cryptoHash === undefined ? undefined : (text) => cryptoHash("sha256", text)

/** Reads stored rows. */
export class RowReader {
  readonly #connection: Connection
  readonly #digest: DigestFunction
  readonly #statements: RowStatements
  /** How many clocks and completions were read. */
  clocksRead = 0
  completionsRead = 0

  constructor(connection: Connection, names: Names, utf8: boolean, digest: DigestFunction | undefined) {
    this.#connection = connection
    this.#digest = digest ?? contentDigest
    this.#statements = rowStatements(names, utf8)
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
      const live = this.#connection.all(this.#statements.live, JSON.stringify(runs)).map(([run]) => run)
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
    const [row] = this.#connection.all(this.#statements.clocks, text)
    const count = Number(row?.[0] ?? 0)
    if (count <= rowsAQuery) {
      if (count > 0) rebuild.answerText(`{"clocks":${row?.[1] as string}}`, false)
      this.clocksRead += count
      return
    }
    // Too many for one text: execution by execution, page by page.
    for (const { flowName, executionId } of addresses) {
      let after: Value = ""
      // An empty name is a name too: begin at it.
      let sql = this.#statements.clocksFrom
      for (;;) {
        const [page] = this.#connection.all(sql, flowName, executionId, after)
        sql = this.#statements.clocksAfter
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
    this.#connection.each(this.#statements.completions, [text], ([address, exit, metadata, stamps]) => {
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
    const [row] = this.#connection.all(this.#statements.counts)
    return { clocks: Number(row?.[0]), completions: Number(row?.[1]) }
  }

  /** All flows and executions that stored rows have, as JSON arrays of pairs. */
  *executions(): Generator<string> {
    let flow: Value = ""
    let execution: Value = ""
    // An empty name is a name too: begin at it.
    let sql = this.#statements.pairsFrom
    for (;;) {
      const rows = this.#connection.all(sql, flow, execution)
      sql = this.#statements.pairsAfter
      const last = rows.at(-1)
      if (last === undefined) return
      yield JSON.stringify(rows.map(([f, e]) => [String(f), String(e)]))
      flow = last[0] as Value
      execution = last[1] as Value
    }
  }
}
