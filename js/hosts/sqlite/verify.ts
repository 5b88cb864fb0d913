/**
 * Verifies a store: folds its journal in one ordered scan and joins it with its tables, in one snapshot.
 *
 * The work is a generator, so that one loop serves both ways to drive it: at once on the caller's connection, or in slices on a
 * connection of its own, between which the event loop runs.
 */
import { isJournalFoldError, JournalFoldError } from "../../core/errors.js"
import { checkOptions } from "../../core/options.js"
import { contentDigest } from "../../digest.js"
import { Rebuild, type RebuildOptions } from "../../folds/deferred-clock/rebuild.js"
import type { Head, NotChecked, Verification, VerifyOptions } from "../../folds/deferred-clock/types.js"
import { scopeOf, type ScopeOf, type ScopeOptions } from "../scope.js"
import { connect, reading, type Connection, type SqliteDatabase } from "./connection.js"
import { FloorReader } from "./floors.js"
import { allRunIds, JournalReader, pageLimits, type PageLimits } from "./journal.js"
import { namesOf, type NameMapping, type Names, type TableKey } from "./names.js"
import { hostDigest, liveAmong, RowReader } from "./rows.js"
import { RunLoop } from "./runs.js"
import { checkSchema } from "./schema.js"
import { entryCountStatement, namelessCountStatement, rowsAQuery, rowStatements } from "./statements.js"

/** How far a verification is. */
export interface Progress {
  /** Entries looked at, those of other types included. */
  readonly entries: number
  /** Entries to look at, when known. */
  readonly total?: number
  /** Runs begun. */
  readonly runs: number
}

/** How a store is verified. */
export interface SqliteVerifyOptions extends VerifyOptions, ScopeOptions {
  /** What the store calls its tables, columns and event types. */
  readonly names?: NameMapping
  /** Called every few thousand entries. `false` stops the work; the verdict is then `partial`. */
  readonly onProgress?: (progress: Progress) => boolean | undefined | void
}

/** The names of {@link SqliteVerifyOptions}. */
export const verifyOptionNames = [
  "strict",
  "maxUnexplained",
  "asOfMs",
  "baseline",
  "heads",
  "digest",
  "names",
  "runs",
  "except",
  "onProgress"
] as const satisfies readonly (keyof SqliteVerifyOptions)[]

const tables: readonly TableKey[] = ["runs", "journal", "checkpoints", "clocks", "completions"]

/** A piece of verification work, step by step. Each step yields how far it is; `true` comes back to stop. */
export type Work = Generator<Progress, Verification, boolean | undefined>

/** How a store is read. What is found does not depend on it. */
export interface ReadLimits {
  readonly pages: PageLimits
  readonly rowsAQuery: number
}

const readLimits: ReadLimits = { pages: pageLimits, rowsAQuery }

/** The work of verifying what `connection` sees. The caller holds the snapshot. */
export function* verifying(
  connection: Connection,
  options: SqliteVerifyOptions,
  limits: ReadLimits = readLimits,
  { listDrift }: Pick<RebuildOptions, "listDrift"> = {}
): Work {
  const names = namesOf(options.names)
  const { utf8 } = checkSchema(connection, names, tables)
  const scoped = scopeOf(options)
  const { scope, except, leftOut } = scoped
  const whole = leftOut === undefined
  // Given the module's own function, the report should say so.
  const digest = options.digest === contentDigest ? undefined : (options.digest ?? hostDigest)
  const { strict, maxUnexplained, asOfMs, baseline, heads } = options
  const rebuild = new Rebuild({
    ...(strict !== undefined && { strict }),
    ...(maxUnexplained !== undefined && { maxUnexplained }),
    ...(asOfMs !== undefined && { asOfMs }),
    ...(baseline !== undefined && { baseline: inScope(Array.from(baseline), scoped, connection, names) }),
    ...(heads !== undefined && { heads }),
    ...(digest !== undefined && { digest }),
    wholeStore: whole,
    ...(leftOut !== undefined && { leftOut }),
    ...(listDrift !== undefined && { listDrift })
  })
  try {
    const total = scope.kind === "all" ? countEntries(connection, names) : undefined
    const rows = new RowReader(connection, names, utf8, rebuild, digest, limits.rowsAQuery)
    // A store whose own order is not that of UTF-8 bytes is read run by run, like runs that are asked for by their ids.
    const ordered = utf8 && scope.kind !== "runs"
    const loop = new RunLoop(rebuild, rows, new FloorReader(connection, names, scope, utf8), except, ordered)
    const stopped = (): Verification => {
      loop.stop()
      return withUnreadable(rebuild.finishPartial(), rows.unreadable)
    }
    const progress = (): Progress => ({ entries: loop.entries, runs: loop.runs, ...(total !== undefined && { total }) })
    const journal = new JournalReader(connection, names, scope, utf8, limits.pages)
    if (ordered) {
      for (const page of journal.segments(except)) {
        for (const segment of page) loop.segment(segment)
        if ((yield progress()) === true) return stopped()
      }
    } else {
      for (const runId of scope.kind === "runs" ? scope.ids : allRunIds(connection, names, scope)) {
        loop.run(runId)
        for (const segment of except.has(runId) ? [] : journal.segmentsOf(runId)) {
          loop.segment(segment)
          if ((yield progress()) === true) return stopped()
        }
      }
    }
    loop.end()
    if (whole && loop.entries !== total) throw unreached(connection, names, loop.entries, Number(total))
    const counts = rows.counts()
    // When every stored row was seen with some run already, nothing is left to sweep.
    const swept = counts.clocks === rows.clocksRead && counts.completions === rows.completionsRead
    rows.answer(rebuild.endRuns())
    if (whole && !swept) {
      rows.countNameless()
      for (const pairs of rows.executions()) {
        rows.answer(rebuild.sweepText(pairs))
        if ((yield progress()) === true) return withUnreadable(rebuild.finishPartial(), rows.unreadable)
      }
    }
    return withUnreadable(rebuild.finish(), rows.unreadable)
  } catch (error) {
    throw disordered(error)
  } finally {
    rebuild.dispose()
  }
}

/** What the machine would say of a caller that gives runs in no order, or rows that were not asked for, is here the store's fault. */
function disordered(error: unknown): unknown {
  const unordered = isJournalFoldError(error, "run_out_of_order") || isJournalFoldError(error, "run_repeated")
  const unasked = isJournalFoldError(error, "answer_malformed") && error.details.expected === "only what was wanted"
  if (!unordered && !unasked) return error
  const details = { ...error.details, found: error.details.found ?? error.message }
  return new JournalFoldError("store_corrupt", `an index is damaged, or names are no valid text: ${error.message}`, details, { cause: error })
}

/** What an earlier report covered of the runs in scope: of others nothing is known now, and they are not gone. */
function inScope(baseline: readonly Head[], { scope, except }: ScopeOf, connection: Connection, names: Names): readonly Head[] {
  const here = baseline.filter(({ runId }) => !except.has(runId))
  if (scope.kind === "all") return here
  const ids = scope.kind === "runs" ? scope.ids : liveAmong(connection, rowStatements(names, true), here.map(({ runId }) => runId))
  const chosen = new Set(ids)
  return here.filter(({ runId }) => chosen.has(runId))
}

/** Counts stored rows that no journal can mean. */
function withUnreadable(verification: Verification, count: number): Verification {
  if (count === 0) return verification
  const item: NotChecked = { what: "rows_unreadable", meaning: "stored rows whose flow, execution or name is no UTF-8 text", count }
  return { ...verification, notChecked: [...verification.notChecked, item] }
}

function countEntries(connection: Connection, names: Names): number {
  return Number(connection.all(entryCountStatement(names))[0]?.[0])
}

/** Entries that no ordered read gives. What they say is not known, so nothing can be said of any row that nothing else explains. */
function unreached(connection: Connection, names: Names, found: number, expected: number): JournalFoldError {
  const { table, runId: column } = names.journal
  const nameless = Number(connection.all(namelessCountStatement(names))[0]?.[0])
  const details = { table, column, expected: `${expected} entries`, found: `${found} entries` }
  return nameless > 0
    ? new JournalFoldError("text_not_utf8", `expected texts in ${table}.${column}, found something else in ${nameless} entries`, details)
    : new JournalFoldError(
        "store_corrupt",
        `expected ${expected} entries in ${table}, found ${found} in order of run: an index is damaged, or run ids are no valid text`,
        details
      )
}

/** Runs a piece of work to its end. */
export function runAll<Step, Result>(
  work: Generator<Step, Result, boolean | undefined>,
  onProgress?: (step: Step) => boolean | undefined | void
): Result {
  try {
    let stop: boolean | undefined
    for (;;) {
      const step = stop === undefined ? work.next() : work.next(stop)
      if (step.done === true) return step.value
      stop = onProgress?.(step.value) === false ? true : undefined
    }
  } finally {
    // What the callback throws must not leave the work half done.
    work.return(undefined as never)
  }
}

/**
 * Verifies a store on the caller's connection, synchronously. Inside a transaction it sees what that transaction sees; otherwise it
 * opens a read transaction of its own. A long read holds back WAL checkpoints: on a busy store prefer {@link verifyFile} beside it,
 * at a quiet time.
 *
 * Memory is bounded by the largest run plus a few bytes a folded row, and grows with what it finds.
 *
 * @throws `store_table_missing`, `store_column_missing`, `store_busy`, `store_corrupt`, `store_not_sqlite`, `option_unknown`, …
 */
export function verify(db: SqliteDatabase, options?: SqliteVerifyOptions): Verification {
  const checked = checkOptions(options, verifyOptionNames)
  const connection = connect(db)
  return reading(connection, () => runAll(verifying(connection, checked), checked.onProgress))
}
