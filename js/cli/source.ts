/** What a verb reads: a store in a file or behind a URL, or one run that `export` wrote, which serves wherever a store does. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { JournalFoldError } from "../core/errors.js"
import { contentDigest } from "../digest.js"
import type { Fold } from "../folds/deferred-clock/fold.js"
import type { Verification } from "../folds/deferred-clock/types.js"
import type { Oddities } from "../hosts/export.js"
import { isPostgresUrl, openUrl, type OpenUrl } from "../hosts/postgres/open.js"
import { inSlices } from "../hosts/slices.js"
import { foldOf } from "../hosts/sqlite/checkpoint.js"
import { connect, reading } from "../hosts/sqlite/connection.js"
import { exportRun, unknownRuns, type ExportOptions } from "../hosts/sqlite/export.js"
import { openFile } from "../hosts/sqlite/open.js"
import { hostDigest } from "../hosts/sqlite/rows.js"
import { verifyFile } from "../hosts/sqlite/verify-file.js"
import type { SqliteVerifyOptions } from "../hosts/sqlite/verify.js"
import { exportAgain } from "../journal-file/again.js"
import { isRunFile } from "../journal-file/format.js"
import { RunFile } from "../journal-file/read.js"
import { foldRunFile, verifyingRunFile } from "../journal-file/verify.js"
import type { Arguments } from "./arguments.js"
import type { Step } from "./progress.js"

/** How a source is verified. */
export type SourceOptions = Omit<SqliteVerifyOptions, "onProgress" | "names"> & {
  readonly onProgress?: (step: Step) => boolean | undefined
  /** Cuts the work off, where it cannot be asked to stop. */
  readonly signal?: AbortSignal
}

/** The lines of an export, from whatever is read. */
export type ExportLines = Generator<string, Oddities> | AsyncGenerator<string, Oddities>

/** How long a lock is waited for, in ms, unless an option says otherwise. */
export const defaultBusyTimeoutMs = 5000

/** What is read. */
export interface Source {
  readonly kind: "store" | "run"
  readonly path: string
  /** Those of some run ids that are not there at all. */
  unknown(ids: readonly string[]): Promise<readonly string[]>
  verify(options: SourceOptions): Promise<Verification>
  /** Folds one run up to a seq. Without an id, the only one there is. */
  fold<Result>(runId: string | undefined, upTo: number, use: (fold: Fold, runId: string) => Result): Promise<Result>
  /** Hands on the lines of one run's export, each with its line feed, and what of it is odd. */
  export(runId: string | undefined, options: ExportOptions, write: (lines: ExportLines) => Promise<void>): Promise<void>
}

/** Looks at what a command is about and says what it is. */
export function sourceOf({ store: path, file }: Arguments, names: SqliteVerifyOptions["names"], busyTimeoutMs?: number): Source {
  if (isPostgresUrl(path)) return new PostgresSource(path, file, names, busyTimeoutMs)
  return looksLikeRun(path) ? new RunSource(path) : new StoreSource(path, names, busyTimeoutMs)
}

/** Whether a file says that it is an exported run. What cannot be read is left to whoever opens it. */
export function looksLikeRun(path: string): boolean {
  let file: number
  try {
    file = openSync(path, "r")
  } catch {
    return false
  }
  try {
    // A pipe can be read only once, and no store is one.
    if (!fstatSync(file).isFile()) return false
    const head = new Uint8Array(256)
    return isRunFile(head.subarray(0, readSync(file, head, 0, head.length, 0)))
  } catch {
    return false
  } finally {
    closeSync(file)
  }
}

/** @throws `run_unknown` */
export function runUnknown(path: string, ids: readonly string[]): JournalFoldError {
  const some = ids.slice(0, 3).map((id) => JSON.stringify(id)).join(", ")
  const more = ids.length > 3 ? ` and ${ids.length - 3} more` : ""
  return new JournalFoldError("run_unknown", `${path} has no row, no entry and no checkpoint of ${ids.length === 1 ? "run" : "runs"} ${some}${more}`, {
    ...(ids[0] !== undefined && { runId: ids[0] })
  })
}

class StoreSource implements Source {
  readonly kind = "store"
  readonly path: string
  readonly #names: SqliteVerifyOptions["names"]
  readonly #busyTimeoutMs: number

  constructor(path: string, names: SqliteVerifyOptions["names"], busyTimeoutMs = defaultBusyTimeoutMs) {
    this.path = path
    this.#names = names
    this.#busyTimeoutMs = busyTimeoutMs
  }

  unknown(ids: readonly string[]): Promise<readonly string[]> {
    if (ids.length === 0) return Promise.resolve([])
    return this.#open((db) => reading(connect(db), () => unknownRuns(db, ids, this.#names)))
  }

  verify({ signal: _, ...options }: SourceOptions): Promise<Verification> {
    return verifyFile(this.path, { ...options, ...(this.#names && { names: this.#names }), busyTimeoutMs: this.#busyTimeoutMs })
  }

  fold<Result>(runId: string | undefined, upTo: number, use: (fold: Fold, runId: string) => Result): Promise<Result> {
    const id = named(runId)
    return this.#open((db) =>
      reading(connect(db), () => {
        if (unknownRuns(db, [id], this.#names).length > 0) throw runUnknown(this.path, [id])
        return foldOf(db, id, upTo, this.#names && { names: this.#names }, (fold) => use(fold, id))
      })
    )
  }

  export(runId: string | undefined, options: ExportOptions, write: (lines: ExportLines) => Promise<void>): Promise<void> {
    const id = named(runId)
    return this.#open(async (db) => {
      const connection = connect(db)
      connection.exec("BEGIN")
      try {
        await write(exportRun(db, id, { ...options, ...(this.#names && { names: this.#names }) }))
      } finally {
        connection.exec("ROLLBACK")
      }
    })
  }

  async #open<Result>(work: (db: Awaited<ReturnType<typeof openFile>>["db"]) => Result | Promise<Result>): Promise<Result> {
    const { db, close } = await openFile(this.path, { readOnly: true, busyTimeoutMs: this.#busyTimeoutMs })
    try {
      return await work(db)
    } finally {
      close()
    }
  }
}

class PostgresSource implements Source {
  readonly kind = "store"
  readonly path: string
  readonly #url: string
  readonly #naming: { readonly names?: NonNullable<SqliteVerifyOptions["names"]> }
  readonly #busyTimeoutMs: number

  /** @param shown the URL without its password */
  constructor(url: string, shown: string, names: SqliteVerifyOptions["names"], busyTimeoutMs = defaultBusyTimeoutMs) {
    this.#url = url
    this.path = shown
    this.#naming = { ...(names && { names }) }
    this.#busyTimeoutMs = busyTimeoutMs
  }

  async unknown(ids: readonly string[]): Promise<readonly string[]> {
    if (ids.length === 0) return []
    const { unknownRuns } = await import("../hosts/postgres/export.js")
    return this.#open(({ db }) => unknownRuns(db, ids, this.#naming))
  }

  async verify(options: SourceOptions): Promise<Verification> {
    const { verifyUrl } = await import("../hosts/postgres/verify.js")
    return verifyUrl(this.#url, { ...options, ...this.#naming, busyTimeoutMs: this.#busyTimeoutMs })
  }

  async fold<Result>(runId: string | undefined, upTo: number, use: (fold: Fold, runId: string) => Result): Promise<Result> {
    const id = named(runId)
    const { unknownRuns } = await import("../hosts/postgres/export.js")
    const { foldOf } = await import("../hosts/postgres/checkpoint.js")
    return this.#open(async ({ db }) => {
      if ((await unknownRuns(db, [id], this.#naming)).length > 0) throw runUnknown(this.path, [id])
      return foldOf(db, id, upTo, this.#naming, (fold) => use(fold, id))
    })
  }

  async export(runId: string | undefined, { showValues, digest }: ExportOptions, write: (lines: ExportLines) => Promise<void>): Promise<void> {
    const id = named(runId)
    const { exportRun } = await import("../hosts/postgres/export.js")
    const options = {
      ...this.#naming,
      showValues: showValues === true,
      // The host's digests are those of Postgres, which need not send the texts.
      ...(digest === contentDigest && { digest })
    }
    await this.#open(({ db }) => exportRun(db, id, options, write))
  }

  async #open<Result>(work: (opened: OpenUrl) => Promise<Result>): Promise<Result> {
    const opened = await openUrl(this.#url, { busyTimeoutMs: this.#busyTimeoutMs })
    try {
      return await work(opened)
    } finally {
      await opened.close()
    }
  }
}

function named(runId: string | undefined): string {
  if (runId === undefined) throw new JournalFoldError("argument_invalid", "a store has many runs: name one, as RUN or --run ID")
  return runId
}

class RunSource implements Source {
  readonly kind = "run"
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  unknown(ids: readonly string[]): Promise<readonly string[]> {
    return this.#read(({ header }) => ids.filter((id) => id !== header.runId))
  }

  verify({ onProgress, signal: _, ...options }: SourceOptions): Promise<Verification> {
    const { digest: given, ...rest } = options
    // Given the module's own function, the report should say so.
    const digest = given === contentDigest ? undefined : (given ?? hostDigest)
    return this.#read((file) => inSlices(verifyingRunFile(file, { ...rest, ...(digest && { digest }) }), onProgress))
  }

  fold<Result>(runId: string | undefined, upTo: number, use: (fold: Fold, runId: string) => Result): Promise<Result> {
    return this.#read((file) => foldRunFile(this.#expect(file, runId), upTo, (fold) => use(fold, file.header.runId)))
  }

  export(runId: string | undefined, options: ExportOptions, write: (lines: ExportLines) => Promise<void>): Promise<void> {
    return this.#read((file) => write(exportAgain(this.#expect(file, runId), options)))
  }

  #expect(file: RunFile, runId: string | undefined): RunFile {
    if (runId !== undefined && runId !== file.header.runId) throw runUnknown(this.path, [runId])
    return file
  }

  async #read<Result>(work: (file: RunFile) => Result | Promise<Result>): Promise<Result> {
    const file = openSync(this.path, "r")
    try {
      return await work(new RunFile(chunksOf(file)))
    } finally {
      closeSync(file)
    }
  }
}

/** Bytes of a file, piece by piece. */
function* chunksOf(file: number): Generator<Uint8Array> {
  const chunk = new Uint8Array(1 << 20)
  for (;;) {
    const length = readSync(file, chunk, 0, chunk.length, null)
    if (length === 0) return
    yield chunk.subarray(0, length)
  }
}
