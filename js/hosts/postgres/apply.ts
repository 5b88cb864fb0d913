/**
 * Plans and their application: one serializable writer transaction, bulk writes, and nothing at all unless everything is as planned.
 */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { checkCount, checkOptions } from "../../core/options.js"
import type { Effects, Plan, PlanPage, Rebuilt, Verification } from "../../folds/deferred-clock/types.js"
import { checkAllowed, checkChanged, checkIsPlan, checkStale, checkWritten, planOf, type Allowances } from "../plans.js"
import { throwIfAborted } from "../slices.js"
import { withSession, type Connection, type PostgresDatabase } from "./connection.js"
import { stateOf } from "./errors.js"
import { held, tryLock, waitForLock } from "./lock.js"
import { namesOf, type PostgresNames } from "./names.js"
import { openUrl, type OpenUrlOptions } from "./open.js"
import type { Schema } from "./schema.js"
import { settings } from "./snapshot.js"
import { checkStatements, planStatements } from "./statements.js"
import { opening, verify, verifying, verifyOptionNames, type PostgresVerifyOptions } from "./verify.js"

/** How a plan is applied. Scope and names must be those with which it was made. */
export interface ApplyOptions extends PostgresVerifyOptions, Allowances {
  /** How long to wait for the lock that keeps a second rebuild out, in ms. Default: 0, not at all. */
  readonly lockTimeoutMs?: number
}

const applyOptionNames = [...verifyOptionNames, "allowDeletePending", "allowUnconsume", "lockTimeoutMs"] as const

/** What was written. */
export interface Applied {
  /** How many rows changed. */
  readonly rows: number
  readonly rebuilt: Rebuilt
  readonly effects: Effects
}

/**
 * The changes that make the tables equal to the journal. Reads only.
 *
 * @throws `fold_incomplete` when something does not join; `plan_refused` when the work was stopped
 */
export async function plan(db: PostgresDatabase, options?: PostgresVerifyOptions): Promise<Plan> {
  return planOf(await verify(db, options))
}

/**
 * Applies a plan in one writer transaction. The plan is made again there and compared, so a store that changed meanwhile is refused, and
 * so is a plan that was applied already.
 *
 * The transaction is serializable. When another writer's commit makes it impossible, all of it is done again, three times at the most.
 *
 * @throws `stale_plan`; `deletes_pending`, `clears_consumption` unless allowed; `fold_incomplete`; `row_not_writable` when the store
 *   refuses a row (a NOT NULL column of yours, a trigger), naming table and column; `rows_changed_mismatch`; `nested_transaction`;
 *   `store_busy` when another rebuild holds the lock, or other writers were in the way each time; `store_read_only`. Nothing is written
 *   then. When the connection is lost while committing, `store_unreadable` says that the outcome is not known: all was written, or nothing.
 */
export async function apply(db: PostgresDatabase, planned: Plan, options?: ApplyOptions): Promise<Applied> {
  checkIsPlan(planned)
  return writing(db, options, { check: (made) => checkStale(planned, made) })
}

/**
 * Makes both tables equal to the journal, in one transaction that folds once.
 *
 * @throws as {@link apply}, but for `stale_plan`
 */
export async function rebuild(db: PostgresDatabase, options?: ApplyOptions): Promise<Applied> {
  return writing(db, options, {})
}

/** How often a transaction is done again that another writer's commit made impossible. */
export const mostRetries = 3
export const pauseMs = 20

/** What is done with a verification and its plan before anything is written; either may throw, and nothing is. */
export interface BeforeWriting {
  readonly verified?: (verification: Verification) => void
  readonly check?: (made: Plan) => void
}

async function writing(db: PostgresDatabase, options: ApplyOptions | undefined, before: BeforeWriting): Promise<Applied> {
  const { allowDeletePending, allowUnconsume, lockTimeoutMs, ...rest } = checkOptions(options, applyOptionNames)
  const timeoutMs = checkCount("lockTimeoutMs", lockTimeoutMs) ?? 0
  const allowed = { allowDeletePending: allowDeletePending === true, allowUnconsume: allowUnconsume === true }
  const names = namesOf(rest.names)
  return withSession(db, rest.signal, async (session) => {
    if (await session.inTransaction()) {
      throw new JournalFoldError("nested_transaction", "the connection is inside a transaction; a plan is applied in one of its own")
    }
    const work = (): Promise<Applied | undefined> =>
      session.transaction("write", () => applyingWithin(session.connection, names, rest, allowed, before))
    let release: (() => Promise<void>) | undefined
    try {
      for (let retries = 0; ; ) {
        try {
          const applied = await work()
          if (applied !== undefined) return applied
        } catch (error) {
          if (!isInTheWay(error) || retries === mostRetries) throw error
          retries += 1
          await new Promise((resolve) => setTimeout(resolve, pauseMs * retries * (1 + Math.random())))
          throwIfAborted(rest.signal)
          continue
        }
        // Having waited, the connection has it; only a proxy that changes servers between two transactions could say otherwise.
        if (timeoutMs === 0 || release !== undefined) throw held(timeoutMs)
        release = await waitForLock(session, timeoutMs, rest.signal)
      }
    } finally {
      await release?.()
    }
  })
}

/**
 * Whether another writer's commit made a transaction impossible. A row that was inserted meanwhile is met as a repeated key: the plan,
 * made from what the transaction sees, has only rows that are not there.
 */
export function isInTheWay(error: unknown): boolean {
  const state = stateOf(error)
  return state === "40001" || state === "40P01" || state === "23505"
}

/** Makes the plan and applies it, in a writer transaction that the caller has begun, and ends; nothing when somebody else holds the lock. */
export async function applyingWithin(
  connection: Connection,
  names: PostgresNames,
  options: PostgresVerifyOptions,
  allowed: Allowances,
  { verified, check }: BeforeWriting
): Promise<Applied | undefined> {
  if (!(await tryLock(connection))) return undefined
  await connection.rows(settings)
  const opened = await opening(connection, names, options)
  // Who is told what was found gets all of it; the plan alone has every row that drifted as well.
  const verification = await verifying(opened, options, { listDrift: verified !== undefined })
  verified?.(verification)
  const made = planOf(verification)
  check?.(made)
  checkAllowed(made, allowed)
  const writer = new PlanWriter(connection, names, opened.schema)
  for (const page of made.pages) await writer.write(page)
  for (const page of made.pages) await writer.check(page)
  return { rows: made.rows, rebuilt: made.rebuilt, effects: made.effects }
}

/** How the tables of the store behind a URL are rebuilt. */
export interface ApplyUrlOptions extends ApplyOptions, OpenUrlOptions {
  /** Is told what the transaction found, before anything is written; once more when the transaction has to be done again. */
  readonly onVerified?: (verification: Verification) => void
}

/**
 * @internal Makes the tables of the store behind a `postgres://` URL equal to its journal, on a connection of its own; with a plan, only
 * when it is still the one to make. Throws as {@link apply}.
 */
export async function applyUrl(url: string, planned: Pick<Plan, "digest"> | undefined, options?: ApplyUrlOptions): Promise<Applied> {
  const { busyTimeoutMs, onVerified, ...rest } = checkOptions(options, [...applyOptionNames, "busyTimeoutMs", "onVerified"])
  const { db, close } = await openUrl(url, { ...(busyTimeoutMs !== undefined && { busyTimeoutMs }), ...(rest.signal && { signal: rest.signal }) })
  try {
    return await writing(db, rest, {
      ...(onVerified && { verified: onVerified }),
      ...(planned && { check: (made) => checkStale(planned, made) })
    })
  } finally {
    await close()
  }
}

/** JSON spells NUL only so; a backslash before it may itself be escaped. */
const nul = /(?<!\\)(?:\\\\)*\\u0000/

/** Writes the pages of a plan, each in one statement, and then looks whether they are there. */
class PlanWriter {
  readonly #connection: Connection
  readonly #tables: PostgresNames["shown"]
  readonly #writes: Readonly<Record<string, string>>
  readonly #checks: Readonly<Record<string, string>>

  constructor(connection: Connection, { shown }: PostgresNames, schema: Schema) {
    this.#connection = connection
    this.#tables = shown
    this.#writes = planStatements(schema)
    this.#checks = checkStatements(schema)
  }

  #tableOf({ table }: PlanPage): string {
    return table === "clocks" ? this.#tables.clocks : this.#tables.completions
  }

  async write(page: PlanPage): Promise<void> {
    const statement = this.#writes[`${page.table} ${page.op}`]
    if (statement === undefined) throw invalid("argument_invalid", "a page of a plan", `${page.table} ${page.op}`)
    const table = this.#tableOf(page)
    if (nul.test(page.rows)) {
      throw new JournalFoldError("row_not_writable", `a planned row of ${table} has a name with NUL in it, which no text of Postgres can hold`, {
        table
      })
    }
    checkChanged(page, table, await this.#connection.run(table, statement, page.rows))
  }

  async check(page: PlanPage): Promise<void> {
    const [row] = await this.#connection.rows(this.#checks[`${page.table} ${page.op}`] as string, page.rows)
    checkWritten(page, this.#tableOf(page), Number(row?.[0]))
  }
}
