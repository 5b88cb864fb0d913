/** An exported run verified, and captured: as a store's host does with that one run in scope, so the answers are the same. */
import { Fold } from "../folds/deferred-clock/fold.js"
import { otherType } from "../folds/deferred-clock/names.js"
import { Rebuild } from "../folds/deferred-clock/rebuild.js"
import type {
  Answer,
  ExecutionAddress,
  Floor,
  Page,
  StoredClock,
  StoredCompletion,
  Verification,
  VerifyOptions,
  Wanted
} from "../folds/deferred-clock/types.js"
import { scopeOf, type ScopeOptions } from "../hosts/scope.js"
import type { RunFile, RunFileRecord } from "./read.js"

/** How an exported run is verified. */
export interface RunFileVerifyOptions extends VerifyOptions, ScopeOptions {}

/** How far a verification is. */
export interface RunFileProgress {
  readonly entries: number
  readonly runs: number
}

const rowsAPage = 2048
const bytesAPage = 1 << 20

/** Entries gathered to pages. */
class Pages {
  readonly #runId: string
  readonly #codes: ReadonlyMap<string, number>
  #payloads: Uint8Array[] = []
  #seqs: bigint[] = []
  #types: number[] = []
  #bytes = 0
  entries = 0

  constructor({ header }: RunFile) {
    this.#runId = header.runId
    this.#codes = new Map(header.eventTypes.map((name, code) => [name, code]))
  }

  /** Adds an entry; `true` when the page is full. Payloads of other types are of no interest to the fold. */
  add({ seq, type, payload }: RunFileRecord & { readonly kind: "entry" }): boolean {
    const code = type === undefined ? otherType : (this.#codes.get(type) ?? otherType)
    const bytes = code === otherType ? payload.subarray(0, 0) : payload
    this.#payloads.push(bytes)
    this.#seqs.push(seq)
    this.#types.push(code)
    this.#bytes += bytes.byteLength
    this.entries += 1
    return this.#seqs.length >= rowsAPage || this.#bytes >= bytesAPage
  }

  take(): Page {
    const bytes = new Uint8Array(this.#bytes)
    const ends = new Uint32Array(this.#seqs.length)
    let end = 0
    this.#payloads.forEach((payload, row) => {
      bytes.set(payload, end)
      end += payload.byteLength
      ends[row] = end
    })
    const page: Page = { runId: this.#runId, bytes, ends, seqs: BigInt64Array.from(this.#seqs), types: Uint8Array.from(this.#types) }
    this.#payloads = []
    this.#seqs = []
    this.#types = []
    this.#bytes = 0
    return page
  }
}

/** Stored rows of the file, of which a rebuild asks for some. */
class Rows {
  readonly #live = new Set<string>()
  readonly #clocks: StoredClock[] = []
  readonly #completions: StoredCompletion[] = []

  add(record: RunFileRecord): void {
    if (record.kind === "run") this.#live.add(record.runId)
    else if (record.kind === "clock") this.#clocks.push(record.row)
    else if (record.kind === "completion") this.#completions.push(record.row)
  }

  isLive(runId: string): boolean {
    return this.#live.has(runId)
  }

  /** Answers what is wanted, if anything is. */
  answer(rebuild: Rebuild, wanted: Wanted): void {
    if (wanted.runs.length > 0 || wanted.addresses.length > 0) rebuild.answer(this.#of(wanted))
  }

  #of({ runs, addresses }: Wanted): Answer {
    const wanted = new Set(addresses.map(addressText))
    const asked = (row: ExecutionAddress): boolean => wanted.has(addressText(row))
    return {
      liveRuns: runs.filter((run) => this.#live.has(run)),
      clocks: this.#clocks.filter(asked),
      completions: this.#completions.filter(asked)
    }
  }
}

function addressText({ flowName, executionId }: ExecutionAddress): string {
  return JSON.stringify([flowName, executionId])
}

function floorsOf(record: RunFileRecord & { readonly kind: "checkpoint" }): Floor[] {
  return [{ seq: record.seq, compactedAtMs: record.compactedAtMs, stateText: record.stateText }]
}

/** The work of verifying an exported run, which is read to its end. Told `true`, it stops with what it has. */
export function* verifyingRunFile(
  file: RunFile,
  options: RunFileVerifyOptions
): Generator<RunFileProgress, Verification, boolean | undefined> {
  const { runId } = file.header
  const { runs: asked, except, ...rest } = options
  const live = asked === "live"
  const { scope, leftOut = "" } = scopeOf({ runs: asked === undefined || live ? [runId] : asked, ...(except && { except }) })
  const inScope = scope.kind === "runs" && scope.ids.includes(runId)
  const baseline = options.baseline && Array.from(options.baseline).filter((head) => inScope && head.runId === runId)
  const rebuild = new Rebuild({ ...rest, ...(baseline && { baseline }), wholeStore: false, leftOut })
  try {
    const pages = new Pages(file)
    const rows = new Rows()
    // A file says only after the entries whether the run has a row: so they are folded, and left out in the end if it has none.
    let begun = !inScope
    const begin = (floors?: Floor[]): void => {
      if (begun) return
      rebuild.beginRun(runId, floors)
      begun = true
    }
    for (const record of file.records()) {
      if (record.kind === "checkpoint") begin(floorsOf(record))
      else begin()
      if (record.kind !== "entry") rows.add(record)
      else if (pages.add(record) && inScope) {
        rebuild.push(pages.take())
        const stop = yield { entries: pages.entries, runs: 1 }
        if (stop === true) return rebuild.finishPartial()
      }
    }
    if (live && !rows.isLive(runId)) return yield* verifyingNothing(file, rest)
    if (inScope) {
      begin()
      rebuild.push(pages.take())
      rows.answer(rebuild, rebuild.endRun())
    }
    rows.answer(rebuild, rebuild.endRuns())
    return rebuild.finish()
  } finally {
    rebuild.dispose()
  }
}

/** The verification of no run at all. */
function* verifyingNothing(file: RunFile, options: VerifyOptions): Generator<RunFileProgress, Verification, boolean | undefined> {
  const { baseline: _, ...rest } = options
  const rebuild = new Rebuild({ ...rest, wholeStore: false, leftOut: `run ${JSON.stringify(file.header.runId)}, which has no row` })
  try {
    rebuild.endRuns()
    return rebuild.finish()
  } finally {
    rebuild.dispose()
  }
}

/** Folds an exported run up to a seq and hands the fold on. The file is read to its end first, so that a cut one is refused. */
export function foldRunFile<Result>(file: RunFile, upTo: number, use: (fold: Fold) => Result): Result {
  const pages = new Pages(file)
  let fold: Fold | undefined
  const begun = (floors: Floor[] = []): Fold => (fold ??= new Fold({ runId: file.header.runId, floors, upTo }))
  try {
    for (const record of file.records()) {
      if (record.kind === "checkpoint") begun(floorsOf(record))
      else if (record.kind === "entry" && pages.add(record)) begun().push(pages.take())
    }
    begun().push(pages.take())
    return use(begun())
  } finally {
    fold?.dispose()
  }
}
