/**
 * Verifies a store: folds its journal in one ordered scan and joins it with its tables, in one snapshot.
 */
import { checkOptions } from "../../core/options.js"
import { contentDigest } from "../../digest.js"
import { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { Head, Verification, VerifyOptions, Wanted } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { scopeOf, type ScopeOf, type ScopeOptions } from "../scope.js"
import { reading, withSession, type Connection, type PostgresDatabase } from "./connection.js"
import { FloorReader, namingSeqs, segments, type Segment, type StoredFloor } from "./journal.js"
import { RecordedDigests, throughJsonb } from "./jsonb.js"
import { namesOf, type PostgresNameMapping, type PostgresNames, type TableKey } from "./names.js"
import { openUrl, type OpenUrlOptions } from "./open.js"
import { RowReader } from "./rows.js"
import { schemaOf, schemaStatements, tablesBound, type Schema } from "./schema.js"
import { checkpointStatements, journalStatements } from "./statements.js"

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
export interface PostgresVerifyOptions extends VerifyOptions, ScopeOptions {
  /** What the store calls its schemas, tables, columns and event types. */
  readonly names?: PostgresNameMapping
  /** Called every few thousand entries. `false` stops the work; the verdict is then `partial`. */
  readonly onProgress?: (progress: Progress) => boolean | undefined | void
  /** Stops the work: the promise is rejected with `aborted`. */
  readonly signal?: AbortSignal
}

/** The names of {@link PostgresVerifyOptions}. */
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
  "onProgress",
  "signal"
] as const satisfies readonly (keyof PostgresVerifyOptions)[]

const tables: readonly TableKey[] = ["runs", "journal", "checkpoints", "clocks", "completions"]

/** Runs whose rows are asked for together. Small runs would otherwise cost a query each. */
const runsAnAnswer = 256
/** Entries after which waiting runs are answered, so that large ones do not pile up. */
const entriesAnAnswer = 20_000

/** Looks at the tables of a store. */
export async function lookAt(connection: Connection, names: PostgresNames, keys: readonly TableKey[]): Promise<Schema> {
  const server = await connection.rows(schemaStatements.server)
  return schemaOf(names, keys, server, await connection.rows(schemaStatements.columns, tablesBound(names, keys)))
}

/** A store whose tables were looked at, and what of it is in scope. */
export interface Opened extends ScopeOf {
  readonly connection: Connection
  readonly schema: Schema
}

/** Looks at a store. The caller holds the snapshot. */
export async function opening(connection: Connection, names: PostgresNames, options: PostgresVerifyOptions): Promise<Opened> {
  return { ...scopeOf(options), connection, schema: await lookAt(connection, names, tables) }
}

/** Verifies what the connection sees. */
export async function verifying(opened: Opened, options: PostgresVerifyOptions): Promise<Verification> {
  const { connection, schema, scope, except, leftOut } = opened
  const journal = journalStatements(schema, scope)
  const { exit, metadata } = schema.completions
  const recorded =
    exit.kind === "jsonb" || metadata.kind === "jsonb" ? new RecordedDigests(options.strict === true, options.digest) : undefined
  const rows = new RowReader(connection, schema, {
    ...(options.digest !== undefined && { digest: options.digest }),
    ...(recorded !== undefined && { recorded })
  })
  // The machine is given digests and computes none. Told of no function, it would report that it did.
  const digest = options.digest === contentDigest ? undefined : (options.digest ?? contentDigest)
  const { strict, maxUnexplained, asOfMs, baseline, heads } = options
  const rebuild = new Rebuild({
    ...(strict !== undefined && { strict }),
    ...(maxUnexplained !== undefined && { maxUnexplained }),
    ...(asOfMs !== undefined && { asOfMs }),
    ...(baseline !== undefined && { baseline: await inScope(Array.from(baseline), opened, rows) }),
    ...(heads !== undefined && { heads }),
    ...(digest !== undefined && { digest }),
    wholeStore: leftOut === undefined,
    ...(leftOut !== undefined && { leftOut })
  })
  try {
    const total =
      options.onProgress !== undefined && scope.kind === "all"
        ? Number((await connection.rows(journal.count))[0]?.[0])
        : undefined
    const loop = new RunLoop(rebuild, rows, new FloorReader(connection, checkpointStatements(schema, scope)), recorded, {
      except,
      ids: scope.kind === "runs" ? scope.ids : []
    })
    const goesOn = (): boolean =>
      options.onProgress?.({ entries: loop.entries, runs: loop.runs, ...(total !== undefined && { total }) }) !== false
    for await (const page of segments(connection, journal)) {
      for (const segment of page) await loop.segment(segment)
      if (!goesOn()) return rebuild.finishPartial()
    }
    await loop.end()
    recorded?.rest()
    const unreadable = await answerRest(rebuild, rows, leftOut === undefined, goesOn)
    if (unreadable === undefined) return rebuild.finishPartial()
    const verification = rebuild.finish()
    const spelled = await throughJsonb(verification.findings, rows.textsOf)
    const said = recorded?.said() ?? { notes: [], notChecked: [] }
    return {
      ...verification,
      notes: [...verification.notes, ...said.notes, ...spelled],
      notChecked: [...verification.notChecked, ...said.notChecked, ...unreadableRows(unreadable)]
    }
  } finally {
    recorded?.dispose()
    rebuild.dispose()
  }
}

/** What an earlier report covered of the runs in scope: of others nothing is known now, and they are not gone. */
async function inScope(baseline: readonly Head[], { scope, except }: ScopeOf, rows: RowReader): Promise<readonly Head[]> {
  const here = baseline.filter(({ runId }) => !except.has(runId))
  if (scope.kind === "all") return here
  const chosen = new Set(scope.kind === "runs" ? scope.ids : await rows.liveAmong(here.map(({ runId }) => runId)))
  return here.filter(({ runId }) => chosen.has(runId))
}

/**
 * Looks at stored rows that name another run's execution, and at those that no run asked for. Says how many no journal can mean, or
 * nothing when the caller stopped the work.
 */
async function answerRest(rebuild: Rebuild, rows: RowReader, whole: boolean, goesOn: () => boolean): Promise<number | undefined> {
  const stored = await rows.counts()
  // When every stored row was seen with some run already, nothing is left to sweep.
  const swept = stored.clocks === rows.clocksRead && stored.completions === rows.completionsRead
  await rows.answer(rebuild, rebuild.endRuns())
  if (!whole || swept) return 0
  for await (const pairs of rows.executions()) {
    await rows.answer(rebuild, rebuild.sweepText(pairs))
    if (!goesOn()) return undefined
  }
  return rows.nameless()
}

function unreadableRows(count: number): Verification["notChecked"] {
  return count === 0
    ? []
    : [{ what: "rows_unreadable", meaning: "stored rows whose flow, execution or name is no UTF-8 text", count }]
}

/** Turns pages, floors and ids asked for, all in order of run, into the runs of a rebuild. */
class RunLoop {
  readonly #rebuild: Rebuild
  readonly #rows: RowReader
  readonly #floors: FloorReader
  readonly #recorded: RecordedDigests | undefined
  readonly #except: ReadonlySet<string>
  readonly #ids: readonly string[]
  #nextId = 0
  #current: string | undefined
  #wantedRuns: string[] = []
  #wantedAddresses: Wanted["addresses"][number][] = []
  #waitingRuns = 0
  #waitingEntries = 0
  entries = 0
  runs = 0

  constructor(
    rebuild: Rebuild,
    rows: RowReader,
    floors: FloorReader,
    recorded: RecordedDigests | undefined,
    { except, ids }: { readonly except: ReadonlySet<string>; readonly ids: readonly string[] }
  ) {
    this.#rebuild = rebuild
    this.#rows = rows
    this.#floors = floors
    this.#recorded = recorded
    this.#except = except
    this.#ids = ids
  }

  /** Takes entries of the next run, or more of the current one. */
  async segment(segment: Segment): Promise<void> {
    this.entries += segment.entries
    if (this.#except.has(segment.runId)) return
    if (segment.runId !== this.#current) {
      await this.#before(segment.runId)
      this.#begin(segment.runId, await this.#floorOf(segment.runId))
    }
    this.#waitingEntries += segment.entries
    namingSeqs(segment.runId, () =>
      this.#rebuild.pushLists(segment.payloads, segment.lengths, segment.seqs, segment.types, 0)
    )
    this.#recorded?.push(segment)
  }

  /** Ends the last run. */
  async end(): Promise<void> {
    await this.#before(undefined)
    await this.#answer()
  }

  /** Ends the current run, and takes those without entries that stand before `runId`: they have a floor, or were asked for. */
  async #before(runId: string | undefined): Promise<void> {
    await this.#endRun()
    for (;;) {
      const floor = await this.#floors.peek()
      const id = this.#ids[this.#nextId]
      const next = floor === undefined || (id !== undefined && compareUtf8(id, floor.runId) < 0) ? id : floor.runId
      if (next === undefined || (runId !== undefined && compareUtf8(next, runId) >= 0)) return
      const own = await this.#floorOf(next)
      if (this.#except.has(next)) continue
      this.#begin(next, own)
      await this.#endRun()
    }
  }

  /** Takes the floor of a run that has come, and its id. */
  async #floorOf(runId: string): Promise<StoredFloor | undefined> {
    if (this.#ids[this.#nextId] === runId) this.#nextId += 1
    const floor = await this.#floors.peek()
    if (floor?.runId !== runId) return undefined
    this.#floors.take()
    return floor
  }

  #begin(runId: string, floor: StoredFloor | undefined): void {
    const floors = floor === undefined ? [] : [{ seq: floor.seq, compactedAtMs: 0, stateText: floor.stateText }]
    this.#rebuild.beginRun(runId, floors)
    this.#recorded?.begin(runId, floors)
    this.#current = runId
    this.runs += 1
  }

  async #endRun(): Promise<void> {
    if (this.#current === undefined) return
    this.#current = undefined
    const wanted = this.#rebuild.endRun()
    this.#recorded?.end()
    for (const run of wanted.runs) this.#wantedRuns.push(run)
    for (const address of wanted.addresses) this.#wantedAddresses.push(address)
    this.#waitingRuns += 1
    if (this.#waitingRuns >= runsAnAnswer || this.#waitingEntries >= entriesAnAnswer) await this.#answer()
  }

  async #answer(): Promise<void> {
    await this.#rows.answer(this.#rebuild, { runs: this.#wantedRuns, addresses: this.#wantedAddresses })
    this.#wantedRuns = []
    this.#wantedAddresses = []
    this.#waitingRuns = 0
    this.#waitingEntries = 0
  }
}

/**
 * Verifies a store, in one snapshot. Inside a transaction of the caller's it sees what that sees, uncommitted changes included;
 * otherwise it begins a read-only one of its own. Writers may go on meanwhile. A long read holds back `VACUUM`.
 *
 * A client serves nobody else meanwhile; of a pool, one client is taken. Memory is bounded by the largest run plus a few bytes a folded
 * row, and grows with what it finds.
 *
 * @throws `store_table_missing`, `store_column_missing`, `store_unreadable` (also when the connection is lost), `store_busy`,
 *   `nested_transaction` in a transaction that is READ COMMITTED, `aborted`, `option_unknown`, …
 */
export async function verify(db: PostgresDatabase, options?: PostgresVerifyOptions): Promise<Verification> {
  const checked = checkOptions(options, verifyOptionNames)
  const names = namesOf(checked.names)
  return withSession(db, checked.signal, (session) =>
    reading(session, true, async () => verifying(await opening(session.connection, names, checked), checked))
  )
}

/** How a store behind a URL is verified. */
export interface VerifyUrlOptions extends PostgresVerifyOptions, OpenUrlOptions {}

/**
 * Verifies the store behind a `postgres://` URL, on a connection of its own.
 *
 * @throws as {@link verify}; `store_unreadable` when there is no server, no such database or no `pg`
 */
export async function verifyUrl(url: string, options?: VerifyUrlOptions): Promise<Verification> {
  const { busyTimeoutMs, ...rest } = checkOptions(options, [...verifyOptionNames, "busyTimeoutMs"])
  const opened = await openUrl(url, { ...(busyTimeoutMs !== undefined && { busyTimeoutMs }), ...(rest.signal && { signal: rest.signal }) })
  try {
    return await verify(opened.db, rest)
  } finally {
    await opened.close()
  }
}
