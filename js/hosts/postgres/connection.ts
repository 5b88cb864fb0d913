/**
 * One way to talk to every client: `pg`'s Client, a client of its Pool, a Pool (from which one client is taken for as long as the work
 * lasts), anything that has their `query`, and PGlite.
 *
 * Every value goes out and comes back as text, so that no parser a program has set for `int8`, `bytea` or `json` can change what is seen.
 * Rows come as arrays.
 */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { throwIfAborted } from "../slices.js"
import { isLost, postgresError, stateOf } from "./errors.js"
import { pgliteSession } from "./pglite.js"

/** A row, column by column. */
export type Row = readonly (string | null)[]

interface QueryConfig {
  readonly text: string
  readonly values: readonly string[]
  readonly rowMode: "array"
}

/** What a driver answers with. */
export interface QueryResult {
  readonly rows: readonly unknown[]
  readonly rowCount?: number | null
  readonly affectedRows?: number
}

// Drivers declare their queries with many overloads; what is asked of them is only this.
type Query = (query: any, values?: any, options?: any) => any

/** A `pg` Client, or a client of its Pool, as far as this host uses it. It serves nobody else meanwhile. */
export interface PostgresClient {
  readonly query: Query
}

/** A `pg` Pool, as far as this host uses it. */
export interface PostgresPool {
  readonly query: Query
  readonly connect: (...parameters: any) => any
  readonly idleCount: number
  readonly totalCount: number
}

/** A PGlite database, or one of its transactions, as far as this host uses it. */
export interface PGliteDatabase {
  readonly query: Query
  readonly exec: (sql: string) => unknown
}

/** What a store in Postgres is reached by. */
export type PostgresDatabase = PostgresClient | PostgresPool | PGliteDatabase

/** A connection, whichever client it comes from. */
export interface Connection {
  /** Runs a statement and gives its rows. */
  rows(sql: string, ...values: readonly string[]): Promise<Row[]>
  /** Runs a change of a table and says how many rows it changed. */
  run(table: string, sql: string, ...values: readonly string[]): Promise<number>
}

/** What a transaction is for: to read one snapshot, to write, or to wait for a lock. */
export type Purpose = "read" | "write" | "wait"

/** A client for as long as the work lasts. */
export interface Session {
  readonly connection: Connection
  /** Whether the caller has begun a transaction on it. */
  inTransaction(): Promise<boolean>
  /** Whether nobody else can write meanwhile, so that any transaction is one snapshot. */
  readonly alone: boolean
  /** Does `work` in a transaction of its own. A reader's is rolled back at the end. */
  transaction<Result>(purpose: Purpose, work: () => Promise<Result>): Promise<Result>
}

/** Takes a client, and gives it back whatever happens. */
export async function withSession<Result>(
  db: PostgresDatabase,
  signal: AbortSignal | undefined,
  use: (session: Session) => Promise<Result>
): Promise<Result> {
  if (typeof db !== "object" || db === null || typeof db.query !== "function") {
    throw invalid("argument_invalid", "a client or pool of pg, or a PGlite database", db)
  }
  throwIfAborted(signal)
  if (isPGlite(db)) return use(pgliteSession(db, signal))
  return isPool(db) ? withPool(db, signal, use) : withClient(db, signal, use)
}

function isPGlite(db: PostgresDatabase): db is PGliteDatabase {
  return "exec" in db && typeof db.exec === "function"
}

function isPool(db: PostgresClient | PostgresPool): db is PostgresPool {
  return "connect" in db && typeof db.connect === "function" && "idleCount" in db
}

/** Every statement goes through here: stopped when the caller wants to stop, and its errors typed. */
export async function asked<Result>(signal: AbortSignal | undefined, query: () => Promise<Result>, table?: string): Promise<Result> {
  throwIfAborted(signal)
  try {
    return await query()
  } catch (error) {
    // A statement that was cancelled because the caller stopped the work.
    if (stateOf(error) === "57014") throwIfAborted(signal)
    throw postgresError(error, table)
  }
}

/** A driver that ignores `rowMode` gives objects; columns are named c0, c1, … in their order. */
export function arrays(rows: readonly unknown[]): Row[] {
  const [first] = rows
  return (first === undefined || Array.isArray(first) ? rows : rows.map((row) => Object.values(row as object))) as Row[]
}

interface ClientEvents {
  readonly on?: (event: "error", listener: () => void) => unknown
  readonly off?: (event: "error", listener: () => void) => unknown
}

interface ClientStatus {
  readonly getTransactionStatus?: () => unknown
}

const ignore = (): void => {}

/** Clients that are at work. A second piece of work on one would find itself inside the transaction of the first. */
const atWork = new WeakSet<PostgresClient>()

async function withClient<Result>(
  client: PostgresClient,
  signal: AbortSignal | undefined,
  use: (session: Session) => Promise<Result>
): Promise<Result> {
  if (atWork.has(client)) {
    throw new JournalFoldError("store_busy", "the client is at work for another call: wait for it, or give a pool")
  }
  atWork.add(client)
  // A connection that drops between two statements is told as an event, which ends the process if nobody listens. The next statement
  // fails with it anyway.
  const { on, off } = client as ClientEvents
  on?.call(client, "error", ignore)
  try {
    return await use(clientSession(client, signal))
  } finally {
    off?.call(client, "error", ignore)
    atWork.delete(client)
  }
}

interface PooledClient extends PostgresClient {
  readonly release: (destroy?: boolean) => void
}

async function withPool<Result>(
  pool: PostgresPool,
  signal: AbortSignal | undefined,
  use: (session: Session) => Promise<Result>
): Promise<Result> {
  const client = await asked(signal, async () => pool.connect() as Promise<PooledClient>)
  let broken = false
  try {
    return await withClient(client, signal, async (session) => cancelling(pool, session, signal, () => use(session)))
  } catch (error) {
    broken = isLost(error)
    throw error
  } finally {
    client.release(broken)
  }
}

/**
 * While the work runs, a caller who stops it also stops the statement that is running, by another client of the pool. The cancellation
 * is waited for, so that it never strikes a later user of this client.
 */
async function cancelling<Result>(
  pool: PostgresPool,
  { connection }: Session,
  signal: AbortSignal | undefined,
  work: () => Promise<Result>
): Promise<Result> {
  if (signal === undefined) return work()
  const pid = (await connection.rows("SELECT pg_backend_pid()::text AS c0"))[0]?.[0] ?? ""
  let cancelled: Promise<unknown> | undefined
  const cancel = (): void => {
    const most = (pool as { readonly options?: { readonly max?: number } }).options?.max ?? 0
    if (pool.idleCount > 0 || pool.totalCount < most) {
      cancelled = Promise.resolve(pool.query("SELECT pg_cancel_backend($1)", [pid])).catch(ignore)
    }
  }
  signal.addEventListener("abort", cancel, { once: true })
  try {
    return await work()
  } finally {
    signal.removeEventListener("abort", cancel)
    await cancelled
  }
}

const beginning = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
  wait: "BEGIN ISOLATION LEVEL READ COMMITTED"
} as const

function clientSession(client: PostgresClient, signal: AbortSignal | undefined): Session {
  const query = async (sql: string, values: readonly string[]): Promise<QueryResult> =>
    (await client.query({ text: sql, values, rowMode: "array" } satisfies QueryConfig)) as QueryResult
  const connection: Connection = {
    rows: (sql, ...values) => asked(signal, async () => arrays((await query(sql, values)).rows)),
    run: (table, sql, ...values) => asked(signal, async () => (await query(sql, values)).rowCount ?? 0, table)
  }
  return {
    connection,
    alone: false,
    inTransaction: () => inTransaction(client, (sql) => query(sql, [])),
    async transaction(purpose, work) {
      await asked(signal, () => query(beginning[purpose], []))
      let result
      try {
        result = await work()
        if (purpose === "write") throwIfAborted(signal)
      } catch (error) {
        // A connection that is gone has rolled back already; what went wrong is the error to tell.
        await query("ROLLBACK", []).catch(ignore)
        throw error
      }
      if (purpose === "read") await query("ROLLBACK", []).catch(ignore)
      else await commit(() => query("COMMIT", []))
      return result
    }
  }
}

async function commit(query: () => Promise<unknown>): Promise<void> {
  try {
    await query()
  } catch (error) {
    throw commitError(error)
  }
}

/** The typed error of a COMMIT that failed. */
export function commitError(error: unknown): unknown {
  // A constraint that is looked at when all is written.
  if (!isLost(error)) return postgresError(error, null)
  return new JournalFoldError(
    "store_unreadable",
    "the connection was lost while the transaction was being committed: all of it was written or nothing, and which is not known. Verify the store",
    {},
    { cause: error }
  )
}

/**
 * Whether a client is inside a transaction: as it says itself, where it can. Others are told apart by a savepoint,
 * which the server refuses outside of one.
 */
async function inTransaction(client: PostgresClient, query: (sql: string) => Promise<unknown>): Promise<boolean> {
  const status = (client as ClientStatus).getTransactionStatus?.()
  if (status === "I") return false
  if (status === "T") return true
  try {
    await query("SAVEPOINT journal_fold_probe")
  } catch (error) {
    if (stateOf(error) === "25P01") return false
    throw postgresError(error)
  }
  await query("RELEASE SAVEPOINT journal_fold_probe")
  return true
}
