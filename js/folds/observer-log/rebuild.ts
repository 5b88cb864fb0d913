/** A whole stream looked at: every row, every snapshot against the fold so far, the end against the stored head, the hint. */
import { call } from "../../core/engine.js"
import { invalid } from "../../core/errors.js"
import { Handle } from "../../core/handle.js"
import { checkCount, checkOptions } from "../../core/options.js"
import type { StateDigest } from "../deferred-clock/types.js"
import { failureError, type WrittenFailure } from "./failures.js"
import { exact, fromDecimal, fromOptional, u64 } from "./numbers.js"
import { handRows, rowsOf } from "./pages.js"
import type { StreamReader, StreamReaderSync } from "./store.js"
import type { HintState, HintVerdict, Rows, StoredRow, RowPage, StreamFinding, StreamFindingId, StreamVerification, U64 } from "./types.js"

/** Rows that a restore asks for at once: a store that gives fewer, though more follow, ends it too early. */
const restorePage = 64
/** Rows that a verification asks for at once. */
const verifyPage = 512

/** What stands beside the rows. */
export interface StreamNumbers {
  /** The stored hint; `null` for none. Left out, it is not judged. */
  readonly hint?: U64 | null
  /** The stored head, of the same view of the store as the rows; `null` for none. Left out, it is not compared. */
  readonly head?: U64 | null
}

/** A stream in memory. */
export interface Stream extends StreamNumbers {
  /** Every row that the store holds, in ascending sequence. */
  readonly rows: Rows
}

interface Written {
  readonly verdict: StreamVerification["verdict"]
  readonly findings: readonly StreamFinding[]
  readonly coverage: Record<"rows" | "folded" | "notFolded" | "missing" | "snapshots", string> & {
    readonly prunedBelow?: string
    readonly last?: string
    readonly lastSnapshot?: string
    readonly segments: readonly { readonly first: string; readonly last: string; readonly believed: boolean }[]
  }
  readonly head: string
  readonly storedHead?: string
  readonly hint?: { readonly state: HintState; readonly stored: string | null; readonly latest: string }
  readonly restore?: {
    readonly hint?: HintVerdict
    readonly foldedFrom?: string
    readonly rows?: string
    readonly head?: string
    readonly appendsSnapshot?: boolean
    readonly hintAfter?: string | null
    readonly error?: WrittenFailure
  }
  readonly notChecked: readonly { readonly what: string; readonly meaning: string; readonly count: string }[]
  readonly notes: readonly { readonly what: string; readonly meaning: string; readonly count: string; readonly firstSeq: string }[]
  readonly state?: { readonly conversations: number; readonly armed: number }
  readonly digest?: StateDigest
}

/** Members that are there only when they are known. */
function known<Name extends string, Value>(name: Name, value: Value | undefined): { readonly [Key in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [Key in Name]?: Value })
}

function verificationOf(written: Written): StreamVerification {
  const { verdict, findings, coverage, head, storedHead, hint, restore, state, digest } = written
  const counts: Partial<Record<StreamFindingId, number>> = {}
  for (const { id } of findings) counts[id] = (counts[id] ?? 0) + 1
  return exact({
    verdict,
    findings,
    counts,
    coverage: exact({
      rows: fromDecimal(coverage.rows),
      folded: fromDecimal(coverage.folded),
      notFolded: fromDecimal(coverage.notFolded),
      missing: fromDecimal(coverage.missing),
      snapshots: fromDecimal(coverage.snapshots),
      ...known("prunedBelow", fromOptional(coverage.prunedBelow)),
      ...known("last", fromOptional(coverage.last)),
      ...known("lastSnapshot", fromOptional(coverage.lastSnapshot)),
      segments: coverage.segments.map(({ first, last, believed }) => exact({ first: fromDecimal(first), last: fromDecimal(last), believed }))
    }),
    head: fromDecimal(head),
    ...known("storedHead", fromOptional(storedHead)),
    ...known("hint", hint && exact({ state: hint.state, ...known("stored", fromOptional(hint.stored)), latest: fromDecimal(hint.latest) })),
    ...known(
      "restore",
      restore && exact({
        ...known("hint", restore.hint),
        ...known("foldedFrom", fromOptional(restore.foldedFrom)),
        ...known("error", restore.error && failureError(restore.error)),
        ...known("rows", fromOptional(restore.rows)),
        ...known("head", fromOptional(restore.head)),
        ...known("appendsSnapshot", restore.appendsSnapshot),
        ...known("hintAfter", fromOptional(restore.hintAfter))
      })
    ),
    notChecked: written.notChecked.map((entry) => exact({ ...entry, count: fromDecimal(entry.count) })),
    notes: written.notes.map((note) => exact({ ...note, count: fromDecimal(note.count), firstSeq: fromDecimal(note.firstSeq) })),
    ...known("state", state),
    ...known("stateDigest", digest)
  })
}

function numberOrNone(value: U64 | null | undefined, what: string): bigint | undefined {
  return value === undefined || value === null ? undefined : u64(value, what)
}

/**
 * The streaming form of {@link verifyRebuild}: it is told rows and does no I/O. It never stops at the first problem: behind a row that
 * is broken, missing or refused, folding goes on from the next snapshot, which is believed; what lies between is counted as not checked.
 */
export class Rebuild implements Disposable {
  readonly #handle: Handle

  /** @param hint The stored hint; `null` for none. Left out, it is not judged. */
  constructor(hint?: U64 | null) {
    const stored = numberOrNone(hint, "a hint")
    this.#handle = new Handle(call((module) => module.stream_rebuild_new(hint !== undefined, stored)))
  }

  /**
   * Looks at rows, in ascending sequence, and gives the sequence that comes next.
   *
   * @param asked How many rows a store was asked for, when these are its answer: fewer, with rows behind them, are a finding.
   */
  push(rows: Rows, asked?: number): bigint {
    checkCount("asked", asked)
    let found = 0
    let next: bigint | undefined
    handRows(rows, (module, count, length) => {
      next = module.stream_rebuild_push(this.#handle.number, count, length)
      found += count
    })
    if (asked !== undefined) call((module) => module.stream_rebuild_answered(this.#handle.number, asked, found))
    return next ?? call((module) => module.stream_rebuild_push(this.#handle.number, 0, 0))
  }

  /** Ends the work. `head` is the stored head, of the same view of the store as the rows; `null` for none. Left out, it is not compared. */
  finish(head?: U64 | null): StreamVerification {
    return this.#conclude(head, false)
  }

  /** Ends the work before everything was looked at: the verdict is `partial`, with what was found so far. */
  finishPartial(): StreamVerification {
    return this.#conclude(undefined, true)
  }

  #conclude(head: U64 | null | undefined, partial: boolean): StreamVerification {
    const stored = numberOrNone(head, "a head")
    const text = call((module) => module.stream_rebuild_finish(this.#handle.number, head !== undefined, stored, partial))
    this.#handle.ended()
    return verificationOf(JSON.parse(text) as Written)
  }

  /** Frees it. May be called again. */
  dispose(): void {
    this.#handle.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

/**
 * Looks at a whole stream and says what it found. Only malformed calls throw.
 *
 * @throws `argument_invalid`, `page_malformed`
 */
export function verifyRebuild(stream: Stream): StreamVerification {
  if (typeof stream !== "object" || stream === null) throw invalid("argument_invalid", "a stream with rows", stream)
  const rebuild = new Rebuild(stream.hint)
  try {
    rebuild.push(stream.rows)
    return rebuild.finish(stream.head)
  } finally {
    rebuild.dispose()
  }
}

/** How a store is verified. */
export interface VerifyStoreOptions {
  /** Stops the work: the verification is `partial`. */
  readonly signal?: AbortSignal
  /** Told now and then how many rows were looked at and how many there are, by the stored head. */
  readonly onProgress?: (progress: { readonly rows: bigint; readonly head: bigint }) => void
}

type Call = { readonly method: "readValue" | "readHead" } | { readonly method: "readFrom"; readonly offset: bigint }

/**
 * Reads a store page by page. Hint and head are read first and rows only up to that head, so that a writer beside it does no harm.
 */
function* reading(options: VerifyStoreOptions | undefined): Generator<Call, StreamVerification, unknown> {
  const { signal, onProgress } = checkOptions(options, ["signal", "onProgress"])
  const hint = (yield { method: "readValue" }) as bigint | null | undefined
  const stored = numberOrNone((yield { method: "readHead" }) as bigint | null | undefined, "the head")
  const head = stored ?? 0n
  const rebuild = new Rebuild(hint ?? null)
  try {
    let offset = 0n
    let looked = 0n
    for (;;) {
      if (signal?.aborted) return rebuild.finishPartial()
      const page = (yield { method: "readFrom", offset }) as readonly StoredRow[] | RowPage
      const rows = rowsOf(page)
      if (rows.length === 0) break
      const below = rows.filter(({ sequence }) => u64(sequence, "a sequence") < head)
      if (below.length < rows.length) {
        // Rows from the head on were appended meanwhile; if the head still stands there, it is the head that is wrong.
        const now = numberOrNone((yield { method: "readHead" }) as bigint | null | undefined, "the head") ?? 0n
        if (now !== head) {
          rebuild.push(below)
          break
        }
      }
      const next = rebuild.push(rows, restorePage)
      looked += BigInt(rows.length)
      onProgress?.({ rows: looked, head })
      const last = u64((rows.at(-1) as StoredRow).sequence, "a sequence")
      if (next <= offset || last === 2n ** 64n - 1n) break
      offset = next
    }
    return rebuild.finish(stored ?? null)
  } finally {
    rebuild.dispose()
  }
}

function served(store: StreamReader | StreamReaderSync, asked: Call): unknown {
  return asked.method === "readFrom" ? store.readFrom(asked.offset, verifyPage) : store[asked.method]()
}

/** {@link verifyRebuild} over a store, page by page. What a read throws is thrown. A writer may be at work meanwhile. */
export async function verifyStore(store: StreamReader, options?: VerifyStoreOptions): Promise<StreamVerification> {
  const work = reading(options)
  try {
    let step = work.next()
    while (!step.done) step = work.next(await served(store, step.value))
    return step.value
  } finally {
    work.return(undefined as never)
  }
}

/** {@link verifyStore} over a store that answers at once. */
export function verifyStoreSync(store: StreamReaderSync, options?: VerifyStoreOptions): StreamVerification {
  const work = reading(options)
  try {
    let step = work.next()
    while (!step.done) step = work.next(served(store, step.value))
    return step.value
  } finally {
    work.return(undefined as never)
  }
}
