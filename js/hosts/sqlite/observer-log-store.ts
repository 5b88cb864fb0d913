/**
 * A stream of an observer log in SQLite: one table of rows, one of numbers.
 *
 * SQLite's integers are signed, so sequences and numbers are blobs of 8 bytes, the highest first: they compare as the numbers do.
 */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import { StoreConflict, StoreRefused, type DurableStoreSync } from "../../folds/observer-log/store.js"
import type { StoredRow } from "../../folds/observer-log/types.js"
import { quote } from "../names.js"
import { connect, type Connection, type SqliteDatabase, type Value } from "./connection.js"
import { isUtf8, schemaStatements } from "./schema.js"

/** What a row that was flushed outlives: a loss of power, or only the process. */
export type Durability = "power" | "process"

/** How a stream is kept. */
export interface ObserverLogStoreOptions {
  /**
   * `power`, the default: a flushed row outlives a loss of power. `PRAGMA synchronous` of the connection is raised to `EXTRA` for that,
   * and stays so; a driver's own default may be lower. `process`: it outlives the process, at the speed of the connection as it is.
   */
  readonly durability?: Durability
  /** Whether missing tables are made. Default: `true`. */
  readonly create?: boolean
  /** The tables. Default: `observer_log_rows` and `observer_log_values`. */
  readonly tables?: { readonly rows?: string; readonly values?: string }
}

const maxHead = 2n ** 64n - 1n
/** `PRAGMA synchronous = EXTRA`: what was committed is durable in every journal mode. */
const extra = 3

function toBlob(number: bigint): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, number)
  return bytes
}

function namesOf(tables: ObserverLogStoreOptions["tables"]): { rows: string; values: string } {
  const { rows = "observer_log_rows", values = "observer_log_values" } = checkOptions(tables, ["rows", "values"])
  for (const name of [rows, values]) {
    if (typeof name !== "string" || name === "" || name.includes("\0")) throw invalid("option_invalid", "tables as identifiers", name)
  }
  return { rows, values }
}

function statementsOf({ rows, values }: { rows: string; values: string }, utf8: boolean) {
  const [r, v] = [quote(rows), quote(values)]
  // As bytes where those are UTF-8, so that a text which is none is seen as it is.
  const payload = utf8 ? "CAST(payload AS BLOB)" : "payload"
  return {
    from: `SELECT sequence AS c0, ${payload} AS c1 FROM ${r} WHERE stream = ? AND sequence >= ? ORDER BY sequence LIMIT ?`,
    at: `SELECT sequence AS c0, ${payload} AS c1 FROM ${r} WHERE stream = ? AND sequence = ?`,
    append: `INSERT INTO ${r} (stream, sequence, payload) VALUES (?, ?, ?)`,
    value: `SELECT value AS c0 FROM ${v} WHERE stream = ? AND name = ?`,
    set: `INSERT INTO ${v} (stream, name, value) VALUES (?, ?, ?) ON CONFLICT (stream, name) DO UPDATE SET value = excluded.value`,
    synchronous: "PRAGMA synchronous"
  } as const
}

function tableStatements({ rows, values }: { rows: string; values: string }): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${quote(rows)} (
      stream TEXT NOT NULL,
      sequence BLOB NOT NULL CHECK (length(sequence) = 8),
      payload TEXT NOT NULL,
      UNIQUE (stream, sequence)
    ) STRICT`,
    `CREATE TABLE IF NOT EXISTS ${quote(values)} (
      stream TEXT NOT NULL,
      name TEXT NOT NULL,
      value BLOB NOT NULL CHECK (length(value) = 8),
      PRIMARY KEY (stream, name)
    ) STRICT, WITHOUT ROWID`
  ]
}

/**
 * A stream in SQLite, over a `better-sqlite3` database or `node:sqlite`'s `DatabaseSync`. Several processes may hold the same stream: one
 * of them has each sequence. Every append is one transaction of its own.
 */
export class ObserverLogStore implements DurableStoreSync {
  readonly #connection: Connection
  readonly #stream: string
  readonly #names: { rows: string; values: string }
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #durability: Durability

  /**
   * @param stream The stream's name. Any Unicode text.
   * @throws `option_invalid`, `option_unknown`; `nested_transaction` when `synchronous` would have to be raised inside a transaction; codes
   *   of the store
   */
  constructor(db: SqliteDatabase, stream: string, options?: ObserverLogStoreOptions) {
    const { durability = "power", create = true, tables } = checkOptions(options, ["durability", "create", "tables"])
    // What is no Unicode text would be stored as another name, and that of another stream.
    if (typeof stream !== "string" || !stream.isWellFormed()) throw invalid("argument_invalid", "a stream's name, as Unicode text", stream)
    if (durability !== "power" && durability !== "process") throw invalid("option_invalid", "durability power or process", durability)
    if (typeof create !== "boolean") throw invalid("option_invalid", "create as a boolean", create)
    this.#connection = connect(db)
    this.#stream = stream
    this.#names = namesOf(tables)
    this.#durability = durability
    if (create) for (const statement of tableStatements(this.#names)) this.#connection.exec(statement)
    this.#statements = statementsOf(this.#names, isUtf8(this.#connection.all(schemaStatements.encoding)[0]?.[0]))
    if (durability === "power" && this.#synchronous() < extra) this.#raise()
  }

  /** The streams that tables hold, in order. */
  static streams(db: SqliteDatabase, tables?: ObserverLogStoreOptions["tables"]): string[] {
    const { rows, values } = namesOf(tables)
    const [r, v] = [quote(rows), quote(values)]
    // One step through the index a stream, however many rows it has.
    const next = `SELECT min(stream) AS c0 FROM (
      SELECT min(stream) AS stream FROM ${r} WHERE stream > ? UNION ALL SELECT min(stream) FROM ${v} WHERE stream > ?)`
    const first = `SELECT min(stream) AS c0 FROM (SELECT min(stream) AS stream FROM ${r} UNION ALL SELECT min(stream) FROM ${v})`
    const connection = connect(db)
    const streams: string[] = []
    let found = connection.all(first)[0]?.[0]
    while (typeof found === "string") {
      streams.push(found)
      found = connection.all(next, found, found)[0]?.[0]
    }
    return streams
  }

  #synchronous(): number {
    return Number(this.#connection.all(this.#statements.synchronous)[0]?.[0])
  }

  #raise(): void {
    if (this.#connection.inTransaction) {
      throw new JournalFoldError("nested_transaction", "the connection is inside a transaction, where its durability cannot be changed")
    }
    this.#connection.exec("PRAGMA synchronous = EXTRA")
  }

  #number(value: Value | undefined, table: string, column: string): bigint {
    if (value instanceof Uint8Array && value.byteLength === 8) {
      return new DataView(value.buffer, value.byteOffset, 8).getBigUint64(0)
    }
    const found = value instanceof Uint8Array ? `${value.byteLength} bytes` : String(value)
    throw new JournalFoldError("store_corrupt", `expected a number of 8 bytes in ${table}.${column}, found ${found}`, {
      table,
      column,
      expected: "a number of 8 bytes",
      found
    })
  }

  #payload(value: Value | undefined): string | Uint8Array {
    if (typeof value === "string" || value instanceof Uint8Array) return value
    const { rows: table } = this.#names
    throw new JournalFoldError("store_corrupt", `expected a text in ${table}.payload, found ${String(value)}`, {
      table,
      column: "payload",
      expected: "a text",
      found: String(value)
    })
  }

  #value(name: "head" | "hint"): bigint | undefined {
    const row = this.#connection.all(this.#statements.value, this.#stream, name)[0]
    return row && this.#number(row[0], this.#names.values, "value")
  }

  #rows(statement: string, ...values: Value[]): StoredRow[] {
    return this.#connection.all(statement, this.#stream, ...values).map(([sequence, payload]) => ({
      sequence: this.#number(sequence, this.#names.rows, "sequence"),
      payload: this.#payload(payload)
    }))
  }

  readFrom(offset: bigint, limit: number): StoredRow[] {
    return this.#rows(this.#statements.from, toBlob(offset), limit)
  }

  readAt(sequence: bigint): StoredRow | undefined {
    return this.#rows(this.#statements.at, toBlob(sequence))[0]
  }

  appendAll(expectedHead: bigint, payloads: readonly string[]): bigint {
    return this.#transaction(() => {
      const head = this.#value("head") ?? 0n
      if (head !== expectedHead) throw new StoreConflict(head)
      const next = head + BigInt(payloads.length)
      if (next > maxHead) throw new StoreRefused("the sequences are used up")
      payloads.forEach((payload, place) => {
        this.#connection.run(this.#statements.append, this.#stream, toBlob(head + BigInt(place)), payload)
      })
      this.#connection.run(this.#statements.set, this.#stream, "head", toBlob(next))
      return next
    })
  }

  /**
   * Nothing is left to do: a commit is as durable as the connection's `synchronous` makes it.
   *
   * @throws when that was lowered meanwhile, so that rows committed before may not be durable
   */
  flush(): void {
    if (this.#durability === "power" && this.#synchronous() < extra) {
      this.#raise()
      throw new JournalFoldError("store_failed", "PRAGMA synchronous was lowered: what was committed since may not be durable")
    }
  }

  readValue(): bigint | undefined {
    return this.#value("hint")
  }

  cas(expected: bigint, next: bigint): void {
    this.#transaction(() => {
      const actual = this.#value("hint") ?? 0n
      if (actual !== expected) throw new StoreConflict(actual)
      this.#connection.run(this.#statements.set, this.#stream, "hint", toBlob(next))
    })
  }

  readHead(): bigint | undefined {
    return this.#value("head")
  }

  /**
   * Runs `work` in a writer transaction. What fails before its commit is rolled back, so that nothing was written for certain; what a
   * commit throws leaves it open, unless SQLite can still roll back.
   */
  #transaction<Result>(work: () => Result): Result {
    const connection = this.#connection
    if (connection.inTransaction) throw new StoreRefused("the connection is inside a transaction; a log appends in one of its own")
    try {
      connection.exec("BEGIN IMMEDIATE")
    } catch (error) {
      throw refusedBy(error)
    }
    let result: Result
    try {
      result = work()
    } catch (error) {
      this.#rollBack()
      throw error instanceof StoreConflict ? error : refusedBy(error)
    }
    try {
      connection.exec("COMMIT")
    } catch (error) {
      // A commit that waited in vain for a reader leaves its transaction open. One that failed in any other way may have been made.
      if (!connection.inTransaction) throw error
      this.#rollBack()
      throw refusedBy(error)
    }
    return result
  }

  #rollBack(): void {
    if (this.#connection.inTransaction) this.#connection.exec("ROLLBACK")
  }
}

function refusedBy(cause: unknown): StoreRefused {
  if (cause instanceof StoreRefused) return cause
  return new StoreRefused(cause instanceof Error ? cause.message : String(cause), { cause })
}
