/**
 * Plans and their application: one writer transaction, bulk writes, and nothing at all unless everything is as planned.
 */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import type { Effects, Plan, PlanPage, Rebuilt, Verification } from "../../folds/deferred-clock/types.js"
import { checkAllowed, checkChanged, checkIsPlan, checkStale, checkWritten, planOf, type Allowances } from "../plans.js"
import { inSlices, throwIfAborted } from "../slices.js"
import { connect, type Connection, type SqliteDatabase } from "./connection.js"
import { notWritable } from "./errors.js"
import { namesOf, type Names } from "./names.js"
import { checkStatements, planStatements } from "./statements.js"
import { runAll, verify, verifying, verifyOptionNames, type Progress, type SqliteVerifyOptions } from "./verify.js"

/** How a plan is applied. Scope and names must be those with which it was made. */
export interface ApplyOptions extends SqliteVerifyOptions, Allowances {}

const applyOptionNames = [...verifyOptionNames, "allowDeletePending", "allowUnconsume"] as const

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
export function plan(db: SqliteDatabase, options?: SqliteVerifyOptions): Plan {
  return planOf(verify(db, options))
}

/**
 * Applies a plan in one writer transaction. The plan is made again there and compared, so a store that changed meanwhile is refused, and
 * so is a plan that was applied already.
 *
 * @throws `stale_plan`; `deletes_pending`, `clears_consumption` unless allowed; `fold_incomplete`; `row_not_writable` when the store
 *   refuses a row (a NOT NULL column of yours, a trigger), naming the column; `rows_changed_mismatch`; `nested_transaction`. Nothing is
 *   written then.
 */
export function apply(db: SqliteDatabase, planned: Plan, options?: ApplyOptions): Applied {
  checkIsPlan(planned)
  return writing(db, options, (made) => checkStale(planned, made))
}

/**
 * Makes both tables equal to the journal, in one transaction that folds once.
 *
 * @throws as {@link apply}, but for `stale_plan`
 */
export function rebuild(db: SqliteDatabase, options?: ApplyOptions): Applied {
  return writing(db, options, () => {})
}

function writing(db: SqliteDatabase, options: ApplyOptions | undefined, check: (made: Plan) => void): Applied {
  const checked = checkOptions(options, applyOptionNames)
  return runAll(applying(connect(db), checked, { check }), checked.onProgress)
}

/** What is done with a verification and its plan before anything is written; either may throw, and nothing is. */
export interface BeforeWriting {
  readonly verified?: (verification: Verification) => void
  readonly check?: (made: Plan) => void
}

/** The work of applying: verify, check, write, in one writer transaction that is rolled back however the work is left. */
function* applying(
  connection: Connection,
  options: ApplyOptions,
  before: BeforeWriting
): Generator<Progress, Applied, boolean | undefined> {
  if (connection.inTransaction) {
    throw new JournalFoldError("nested_transaction", "the connection is inside a transaction; a plan is applied in one of its own")
  }
  connection.exec("BEGIN IMMEDIATE")
  try {
    const applied = yield* applyingWithin(connection, options, before)
    connection.exec("COMMIT")
    return applied
  } finally {
    // Still open after an error, unless SQLite has rolled back already, or when the work was given up.
    if (connection.inTransaction) connection.exec("ROLLBACK")
  }
}

/** The same in a writer transaction that the caller has begun, and ends. */
export function* applyingWithin(
  connection: Connection,
  options: ApplyOptions,
  { verified, check }: BeforeWriting
): Generator<Progress, Applied, boolean | undefined> {
  const { allowDeletePending, allowUnconsume, ...rest } = options
  const names = namesOf(rest.names)
  // Who is told what was found gets all of it; the plan alone has every row that drifted as well.
  const verification = yield* verifying(connection, rest, undefined, { listDrift: verified !== undefined })
  verified?.(verification)
  const made = planOf(verification)
  check?.(made)
  checkAllowed(made, { allowDeletePending: allowDeletePending === true, allowUnconsume: allowUnconsume === true })
  const writer = new PlanWriter(connection, names)
  for (const page of made.pages) writer.write(page)
  for (const page of made.pages) writer.check(page)
  return { rows: made.rows, rebuilt: made.rebuilt, effects: made.effects }
}

/** How a file's tables are rebuilt. */
export interface ApplyFileOptions extends ApplyOptions {
  /** Stops the work: the promise is rejected with `aborted`, and nothing is written. */
  readonly signal?: AbortSignal
  /** How long to wait for a lock, in ms. Default: 5,000. */
  readonly busyTimeoutMs?: number
  /** Is told what the transaction found, before anything is written. */
  readonly onVerified?: (verification: Verification) => void
}

/**
 * @internal Makes a file's tables equal to its journal, on a connection of its own and in slices, as `verifyFile` verifies; with a plan,
 * only when it is still the one to make. Throws as {@link apply}.
 */
export async function applyFile(
  path: string,
  planned: Pick<Plan, "digest"> | undefined,
  options?: ApplyFileOptions
): Promise<Applied> {
  const { signal, busyTimeoutMs, onVerified, ...rest } = checkOptions(options, [
    ...applyOptionNames,
    "signal",
    "busyTimeoutMs",
    "onVerified"
  ])
  throwIfAborted(signal)
  const { openFile } = await import("./open.js")
  const opened = await openFile(path, { readOnly: false, busyTimeoutMs: busyTimeoutMs ?? 5000 })
  try {
    const before: BeforeWriting = {
      ...(onVerified && { verified: onVerified }),
      ...(planned && { check: (made) => checkStale(planned, made) })
    }
    return await inSlices(applying(connect(opened.db), rest, before), rest.onProgress, signal)
  } finally {
    opened.close()
  }
}

/** Writes the pages of a plan, each in one statement, and then looks whether they are there. */
class PlanWriter {
  readonly #connection: Connection
  readonly #names: Names
  readonly #writes: Readonly<Record<string, string>>
  readonly #checks: Readonly<Record<string, string>>

  constructor(connection: Connection, names: Names) {
    this.#connection = connection
    this.#names = names
    this.#writes = planStatements(names)
    this.#checks = checkStatements(names)
  }

  #tableOf(page: PlanPage): string {
    return page.table === "clocks" ? this.#names.clocks.table : this.#names.completions.table
  }

  write(page: PlanPage): void {
    const statement = this.#writes[`${page.table} ${page.op}`]
    if (statement === undefined) throw invalid("argument_invalid", "a page of a plan", `${page.table} ${page.op}`)
    const table = this.#tableOf(page)
    let changed: number
    try {
      changed = this.#connection.run(statement, page.rows)
    } catch (error) {
      throw notWritable(error, table)
    }
    checkChanged(page, table, changed)
  }

  /** Once all is written: a trigger, a conflict clause or a column's type may have made something else of a row that was counted. */
  check(page: PlanPage): void {
    const table = this.#tableOf(page)
    const [row] = this.#connection.all(this.#checks[`${page.table} ${page.op}`] as string, page.rows)
    checkWritten(page, table, Number(row?.[0]))
  }
}
