/**
 * Verifies a store: folds its journal in one ordered scan and joins it with its tables, in one snapshot.
 *
 * The work is a generator, so that one loop serves both ways to drive it: at once on the caller's connection, or in slices on a
 * connection of its own, between which the event loop runs.
 */
import { checkOptions } from "../../core/options.js"
import { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { Verification, VerifyOptions, Wanted } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { scopeOf, type Scope, type ScopeOptions } from "../scope.js"
import { inSlices, throwIfAborted } from "../slices.js"
import { connect, reading, type Connection, type SqliteDatabase } from "./connection.js"
import { allRunIds, CheckpointReader, JournalReader, type Segment, type StoredFloor } from "./journal.js"
import { namesOf, type NameMapping, type Names, type TableKey } from "./names.js"
import { hostDigest, RowReader } from "./rows.js"
import { checkSchema } from "./schema.js"
import { entryCountStatement } from "./statements.js"

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

/** Runs whose rows are asked for together. Small runs would otherwise cost a query each. */
const runsAnAnswer = 256
/** Entries after which waiting runs are answered, so that large ones do not pile up. */
const entriesAnAnswer = 50_000

/** A piece of verification work, step by step. Each step yields how far it is; `true` comes back to stop. */
export type Work = Generator<Progress, Verification, boolean | undefined>

/** The work of verifying what `connection` sees. The caller holds the snapshot. */
export function* verifying(connection: Connection, options: SqliteVerifyOptions): Work {
  const names = namesOf(options.names)
  const { utf8 } = checkSchema(connection, names, tables)
  const { scope, except, leftOut } = scopeOf(options)
  const digest = options.digest ?? hostDigest
  const inScope = (runId: string): boolean =>
    !except.has(runId) && (scope.kind !== "runs" || scope.ids.includes(runId))
  const rebuild = new Rebuild({
    ...(options.strict !== undefined && { strict: options.strict }),
    ...(options.maxUnexplained !== undefined && { maxUnexplained: options.maxUnexplained }),
    ...(options.asOfMs !== undefined && { asOfMs: options.asOfMs }),
    ...(options.baseline !== undefined && { baseline: Array.from(options.baseline).filter(({ runId }) => inScope(runId)) }),
    ...(options.heads !== undefined && { heads: options.heads }),
    ...(digest !== undefined && { digest }),
    wholeStore: leftOut === undefined,
    ...(leftOut !== undefined && { leftOut })
  })
  try {
    const rows = new RowReader(connection, names, utf8, digest)
    const loop = new RunLoop(rebuild, rows, new CheckpointReader(connection, names, scope), except)
    const total = scope.kind === "all" ? countEntries(connection, names) : undefined
    const journal = new JournalReader(connection, names, scope, utf8)
    for (const _ of inOrder(connection, names, scope, utf8, journal, loop)) {
      const stop = yield { entries: loop.entries, runs: loop.runs, ...(total !== undefined && { total }) }
      if (stop === true) return rebuild.finishPartial()
    }
    loop.end()
    rows.answer(rebuild, rebuild.endRuns())
    if (leftOut === undefined) {
      const before = rows.counts()
      // Every stored row was seen with some run already: nothing is left to sweep.
      if (before.clocks !== rows.clocksRead || before.completions !== rows.completionsRead) {
        for (const pairs of rows.executions()) {
          rows.answer(rebuild, rebuild.sweepText(pairs))
          const stop = yield { entries: loop.entries, runs: loop.runs, ...(total !== undefined && { total }) }
          if (stop === true) return rebuild.finishPartial()
        }
      }
    }
    return withUnreadable(rebuild.finish(), rows, leftOut === undefined)
  } finally {
    rebuild.dispose()
  }
}

/** Counts rows that no query could reach by their address, such as names that are no text. */
function withUnreadable(verification: Verification, rows: RowReader, whole: boolean): Verification {
  if (!whole) return verification
  const counts = rows.counts()
  const unreadable =
    Math.max(0, counts.clocks - rows.clocksRead) + Math.max(0, counts.completions - rows.completionsRead)
  if (unreadable === 0) return verification
  const item = {
    what: "rows_unreadable",
    meaning: "stored rows whose flow or execution is no UTF-8 text",
    count: unreadable
  }
  return { ...verification, notChecked: [...verification.notChecked, item] }
}

function countEntries(connection: Connection, names: Names): number {
  return Number(connection.all(entryCountStatement(names))[0]?.[0])
}

/** Gives all segments in scope to the loop, and comes back after each page. */
function* inOrder(
  connection: Connection,
  names: Names,
  scope: Scope,
  utf8: boolean,
  journal: JournalReader,
  loop: RunLoop
): Generator<void> {
  if (scope.kind === "all" && utf8) {
    for (const page of journal.segments()) {
      for (const segment of page) loop.segment(segment)
      yield
    }
    return
  }
  if (scope.kind === "live" && utf8) {
    for (const page of journal.segments()) {
      for (const segment of page) loop.segment(segment)
      yield
    }
    return
  }
  // Exact runs, or a store whose own order is not that of UTF-8 bytes: run by run.
  for (const runId of scope.kind === "runs" ? scope.ids : allRunIds(connection, names, scope)) {
    loop.run(runId)
    for (const segment of journal.segmentsOf(runId)) {
      loop.segment(segment)
      yield
    }
  }
}

/** Turns segments and floors, both in order of run, into the runs of a rebuild. */
class RunLoop {
  readonly #rebuild: Rebuild
  readonly #rows: RowReader
  readonly #checkpoints: CheckpointReader
  readonly #except: ReadonlySet<string>
  #floors: Generator<StoredFloor> | undefined
  #nextFloor: StoredFloor | undefined
  #current: string | undefined
  #wantedRuns: string[] = []
  #wantedAddresses: Wanted["addresses"][number][] = []
  #endedRuns = 0
  #endedEntries = 0
  entries = 0
  runs = 0

  constructor(rebuild: Rebuild, rows: RowReader, checkpoints: CheckpointReader, except: ReadonlySet<string>) {
    this.#rebuild = rebuild
    this.#rows = rows
    this.#checkpoints = checkpoints
    this.#except = except
  }

  /** Takes entries of the next run, or more of the current one. */
  segment(segment: Segment): void {
    this.entries += segment.entries
    if (this.#except.has(segment.runId)) return
    if (segment.runId !== this.#current) {
      this.#floorsBefore(segment.runId)
      this.#begin(segment.runId)
    }
    this.#endedEntries += segment.entries
    this.#rebuild.pushLists(segment.payloads, segment.lengths, segment.seqs, segment.types, 0)
  }

  /** Begins one run by its id, whether it has entries or not. */
  run(runId: string): void {
    if (this.#except.has(runId)) return
    this.#endRun()
    const floor = this.#checkpoints.floorOf(runId)
    this.#beginAt(runId, floor)
    this.#floors = (function* () {})()
  }

  /** Ends the last run. */
  end(): void {
    this.#floorsBefore(undefined)
    this.#endRun()
    this.#answer()
  }

  /** Runs that have a floor and no entries, in their place. */
  #floorsBefore(runId: string | undefined): void {
    this.#endRun()
    if (this.#floors === undefined) {
      this.#floors = this.#checkpoints.floors()
      this.#nextFloor = this.#floors.next().value as StoredFloor | undefined
    }
    while (this.#nextFloor !== undefined && (runId === undefined || compareUtf8(this.#nextFloor.runId, runId) < 0)) {
      const floor = this.#nextFloor
      this.#nextFloor = this.#floors.next().value as StoredFloor | undefined
      if (this.#except.has(floor.runId)) continue
      this.#beginAt(floor.runId, floor)
      this.#endRun()
    }
  }

  #begin(runId: string): void {
    let floor: StoredFloor | undefined
    if (this.#nextFloor?.runId === runId) {
      floor = this.#nextFloor
      this.#nextFloor = this.#floors?.next().value as StoredFloor | undefined
    }
    this.#beginAt(runId, floor)
  }

  #beginAt(runId: string, floor: StoredFloor | undefined): void {
    const floors =
      floor === undefined ? undefined : [{ seq: floor.seq, compactedAtMs: 0, stateText: this.#checkpoints.stateOf(floor) }]
    this.#rebuild.beginRun(runId, floors)
    this.#current = runId
    this.runs += 1
  }

  #endRun(): void {
    if (this.#current === undefined) return
    this.#current = undefined
    const wanted = this.#rebuild.endRun()
    for (const run of wanted.runs) this.#wantedRuns.push(run)
    for (const address of wanted.addresses) this.#wantedAddresses.push(address)
    this.#endedRuns += 1
    if (this.#endedRuns >= runsAnAnswer || this.#endedEntries >= entriesAnAnswer) this.#answer()
  }

  #answer(): void {
    this.#rows.answer(this.#rebuild, { runs: this.#wantedRuns, addresses: this.#wantedAddresses })
    this.#wantedRuns = []
    this.#wantedAddresses = []
    this.#endedRuns = 0
    this.#endedEntries = 0
  }
}

/** Runs a piece of work to its end. */
export function runAll<Result>(
  work: Generator<Progress, Result, boolean | undefined>,
  onProgress: SqliteVerifyOptions["onProgress"]
): Result {
  let stop: boolean | undefined
  for (;;) {
    const step = stop === undefined ? work.next() : work.next(stop)
    if (step.done === true) return step.value
    stop = onProgress?.(step.value) === false ? true : undefined
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

/** How a file is verified. */
export interface VerifyFileOptions extends SqliteVerifyOptions {
  /** Stops the work: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal
  /** How long to wait for a lock, in ms. Default: 5,000. */
  readonly busyTimeoutMs?: number
}

/**
 * Verifies a store on a read-only connection of its own, in slices between which the event loop runs. Writers may go on meanwhile: all
 * is read from one snapshot.
 *
 * @throws as {@link verify}; `aborted`; `store_unreadable` when the file is not there
 */
export async function verifyFile(path: string, options?: VerifyFileOptions): Promise<Verification> {
  const { signal, busyTimeoutMs, ...rest } = checkOptions(options, [...verifyOptionNames, "signal", "busyTimeoutMs"])
  throwIfAborted(signal)
  const { openFile } = await import("./open.js")
  const opened = await openFile(path, { readOnly: true, busyTimeoutMs: busyTimeoutMs ?? 5000 })
  try {
    const connection = connect(opened.db)
    connection.exec("BEGIN")
    try {
      return await inSlices(verifying(connection, rest), rest.onProgress, signal)
    } finally {
      connection.exec("ROLLBACK")
    }
  } finally {
    opened.close()
  }
}
