/** Queries whose rows are fetched some at a time. */
import type { Connection, Row } from "./connection.js"

let cursors = 0

/** A query whose rows are fetched some at a time. The transaction it was opened in holds it. */
export class Cursor {
  readonly #connection: Connection
  readonly #name: string

  private constructor(connection: Connection, name: string) {
    this.#connection = connection
    this.#name = name
  }

  static async open(connection: Connection, sql: string, ...values: readonly string[]): Promise<Cursor> {
    cursors += 1
    const name = `journal_fold_${cursors}`
    await connection.rows(`DECLARE ${name} NO SCROLL CURSOR FOR ${sql}`, ...values)
    return new Cursor(connection, name)
  }

  /** The next rows; none when there are no more. */
  next(count: number): Promise<Row[]> {
    return this.#connection.rows(`FETCH ${Math.trunc(count)} FROM ${this.#name}`)
  }

  async close(): Promise<void> {
    await this.#connection.rows(`CLOSE ${this.#name}`)
  }
}
