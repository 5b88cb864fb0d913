/**
 * Plans and their application: one writer transaction, bulk writes, and nothing at all unless everything is as planned.
 */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import type { Effects, Plan, PlanPage, Rebuilt } from "../../folds/deferred-clock/types.js"
import { checkAllowed, checkChanged, checkIsPlan, checkStale, planOf, type Allowances } from "../plans.js"
import { connect, type Connection, type SqliteDatabase } from "./connection.js"
import { namesOf, type Names } from "./names.js"
import { planStatements } from "./statements.js"
import { runAll, verify, verifying, verifyOptionNames, type SqliteVerifyOptions } from "./verify.js"

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
  const { allowDeletePending, allowUnconsume, ...rest } = checkOptions(options, applyOptionNames)
  const names = namesOf(rest.names)
  const connection = connect(db)
  if (connection.inTransaction) {
    throw new JournalFoldError("nested_transaction", "the connection is inside a transaction; a plan is applied in one of its own")
  }
  connection.exec("BEGIN IMMEDIATE")
  try {
    const made = planOf(runAll(verifying(connection, rest), rest.onProgress))
    check(made)
    checkAllowed(made, { allowDeletePending: allowDeletePending === true, allowUnconsume: allowUnconsume === true })
    const writer = new PlanWriter(connection, names)
    for (const page of made.pages) writer.write(page)
    connection.exec("COMMIT")
    return { rows: made.rows, rebuilt: made.rebuilt, effects: made.effects }
  } catch (error) {
    // SQLite has rolled back already after some errors.
    if (connection.inTransaction) connection.exec("ROLLBACK")
    throw error
  }
}

/** Writes the pages of a plan, each in one statement. */
class PlanWriter {
  readonly #connection: Connection
  readonly #names: Names
  readonly #statements: Readonly<Record<string, string>>

  constructor(connection: Connection, names: Names) {
    this.#connection = connection
    this.#names = names
    this.#statements = planStatements(names)
  }

  write(page: PlanPage): void {
    const statement = this.#statements[`${page.table} ${page.op}`]
    if (statement === undefined) throw invalid("argument_invalid", "a page of a plan", `${page.table} ${page.op}`)
    const changed = this.#connection.run(statement, page.rows)
    checkChanged(page, page.table === "clocks" ? this.#names.clocks.table : this.#names.completions.table, changed)
  }
}
