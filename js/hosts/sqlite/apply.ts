/**
 * Plans and their application: one writer transaction, bulk writes, and nothing at all unless everything is as planned.
 */
import { invalid, JournalFoldError } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import type { Effects, Plan, PlanPage, Rebuilt, Verification } from "../../folds/deferred-clock/types.js"
import { orThrow } from "../../folds/deferred-clock/verify.js"
import { connect, type Connection, type SqliteDatabase } from "./connection.js"
import { namesOf, type Names } from "./names.js"
import { planStatements } from "./statements.js"
import { runAll, verify, verifying, verifyOptionNames, type SqliteVerifyOptions } from "./verify.js"

/** How a plan is applied. Scope and names must be those with which it was made. */
export interface ApplyOptions extends SqliteVerifyOptions {
  /** Pending clocks may be deleted: what they would have started will not run. */
  readonly allowDeletePending?: boolean
  /** Consumptions may be cleared: a completion will be consumed once more. */
  readonly allowUnconsume?: boolean
}

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

function planOf(verification: Verification): Plan {
  const { plan: made } = orThrow(verification)
  if (made === undefined) {
    throw new JournalFoldError("plan_refused", `there is no plan, because the verdict is ${verification.verdict}`)
  }
  return made
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
  if (typeof planned !== "object" || planned === null || typeof planned.digest !== "string") {
    throw invalid("argument_invalid", "a plan", planned)
  }
  return writing(db, options, (made) => {
    if (made.digest !== planned.digest) {
      throw new JournalFoldError(
        "stale_plan",
        "the store has changed since the plan was made, or the plan was applied already: plan again",
        { expected: planned.digest, found: made.digest }
      )
    }
  })
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
    allow(made, allowDeletePending === true, allowUnconsume === true)
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

function allow({ effects, unstorable }: Plan, deletePending: boolean, unconsume: boolean): void {
  if (unstorable > 0) {
    throw new JournalFoldError(
      "row_not_writable",
      `${unstorable} planned rows have a name with an unpaired surrogate, which a store of UTF-8 text cannot hold`
    )
  }
  if (effects.pendingDeleted > 0 && !deletePending) {
    throw new JournalFoldError(
      "deletes_pending",
      `the plan deletes ${effects.pendingDeleted} pending clocks, which no entry explains: what they would have started will not run. Set allowDeletePending to go on`
    )
  }
  if (effects.consumptionsCleared > 0 && !unconsume) {
    throw new JournalFoldError(
      "clears_consumption",
      `the plan clears ${effects.consumptionsCleared} consumptions, which no entry records: they will be consumed once more. Set allowUnconsume to go on`
    )
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
    if (changed !== page.count) {
      const table = page.table === "clocks" ? this.#names.clocks.table : this.#names.completions.table
      throw new JournalFoldError(
        "rows_changed_mismatch",
        `expected to ${page.op} ${page.count} rows of ${table}, found ${changed} changed; everything was rolled back`,
        { table, expected: String(page.count), found: String(changed) }
      )
    }
  }
}
