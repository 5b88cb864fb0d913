/**
 * Verifies a store: folds its journal in one ordered scan and joins it with its tables, in one snapshot.
 */
import { checkOptions } from "../../core/options.js"
import { contentDigest } from "../../digest.js"
import { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { Verification, VerifyOptions, Wanted } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { scopeOf, type ScopeOf, type ScopeOptions } from "../scope.js"
import { reading, withSession, type Connection, type PostgresDatabase } from "./connection.js"
import { FloorReader, segments, type Segment, type StoredFloor } from "./journal.js"
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
const entriesAnAnswer = 50_000

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
export async function verifying({ connection, schema, scope, except, leftOut }: Opened, options: PostgresVerifyOptions): Promise<Verification> {
  const chosen = scope.kind === "runs" ? new Set(scope.ids) : undefined
  const inScope = (runId: string): boolean => !except.has(runId) && (chosen?.has(runId) ?? true)
  const journal = journalStatements(schema, scope)
  const { exit, metadata } = schema.completions
  const recorded =
    exit.kind === "jsonb" || metadata.kind === "jsonb" ? new RecordedDigests(options.strict === true, options.digest) : undefined
  const rebuild = new Rebuild({
    ...(options.strict !== undefined && { strict: options.strict }),
    ...(options.maxUnexplained !== undefined && { maxUnexplained: options.maxUnexplained }),
    ...(options.asOfMs !== undefined && { asOfMs: options.asOfMs }),
    ...(options.baseline !== undefined && { baseline: Array.from(options.baseline).filter(({ runId }) => inScope(runId)) }),
    ...(options.heads !== undefined && { heads: options.heads }),
    // The machine is given digests and computes none; given a function, it reports that the host did.
    digest: options.digest ?? contentDigest,
    wholeStore: leftOut === undefined,
    ...(leftOut !== undefined && { leftOut })
  })
  try {
    const rows = new RowReader(connection, schema, {
      ...(options.digest !== undefined && { digest: options.digest }),
      ...(recorded !== undefined && { recorded })
    })
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
    await rows.answer(rebuild, rebuild.endRuns())
    const unreadable = leftOut === undefined ? await sweep(rebuild, rows, goesOn) : 0
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

/** Looks at stored rows that no run asked for; says how many could not be reached, or nothing when the caller stopped the work. */
async function sweep(rebuild: Rebuild, rows: RowReader, goesOn: () => boolean): Promise<number | undefined> {
  const stored = await rows.counts()
  // Usually every stored row was seen with some run already, and nothing is left to sweep.
  if (stored.clocks !== rows.clocksRead || stored.completions !== rows.completionsRead) {
    for await (const pairs of rows.executions()) {
      await rows.answer(rebuild, rebuild.sweepText(pairs))
      if (!goesOn()) return undefined
    }
  }
  return Math.max(0, stored.clocks - rows.clocksRead) + Math.max(0, stored.completions - rows.completionsRead)
}

function unreadableRows(count: number): Verification["notChecked"] {
  return count === 0 ? [] : [{ what: "rows_unreadable", meaning: "stored rows whose flow or execution is no UTF-8 text", count }]
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
    this.#rebuild.pushLists(segment.payloads, segment.lengths, segment.seqs, segment.types, 0)
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
