/**
 * Verifies a store: folds its journal in one ordered scan and joins it with its tables, in one snapshot.
 */
import { checkOptions } from "../../core/options.js"
import { contentDigest } from "../../digest.js"
import { Rebuild, type RebuildOptions } from "../../folds/deferred-clock/rebuild.js"
import type { Head, Verification, VerifyOptions } from "../../folds/deferred-clock/types.js"
import { scopeOf, type ScopeOf, type ScopeOptions } from "../scope.js"
import { withSession, type Connection, type PostgresDatabase } from "./connection.js"
import { FloorReader, segments } from "./journal.js"
import { RecordedDigests, throughJsonb } from "./jsonb.js"
import { namesOf, type PostgresNameMapping, type PostgresNames, type TableKey } from "./names.js"
import { openUrl, type OpenUrlOptions } from "./open.js"
import { RowReader } from "./rows.js"
import { RunLoop } from "./runs.js"
import { schemaOf, schemaStatements, tablesBound, type Schema } from "./schema.js"
import { reading } from "./snapshot.js"
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
export async function verifying(
  opened: Opened,
  options: PostgresVerifyOptions,
  { listDrift }: Pick<RebuildOptions, "listDrift"> = {}
): Promise<Verification> {
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
    ...(leftOut !== undefined && { leftOut }),
    ...(listDrift !== undefined && { listDrift })
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
      if (!goesOn()) {
        await loop.stop()
        return rebuild.finishPartial()
      }
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
