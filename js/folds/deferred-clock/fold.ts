/** One run's fold, and the functions over it. */
import { call } from "../../core/engine.js"
import { describe, invalid, JournalFoldError } from "../../core/errors.js"
import { Handle } from "../../core/handle.js"
import { writeBytes, writeJson, writeName } from "../../core/inbox.js"
import { checkOptions } from "../../core/options.js"
import { withPageBuilder, writeBytePage, writePage, type PageBuilder } from "../../core/pages.js"
import { addEntry, checkPage, isPage, jsonOf, seqOf } from "./entries.js"
import { checkpointKey } from "./names.js"
import type {
  CheckpointCheck,
  Encoded,
  Entry,
  EntryText,
  Floor,
  Page,
  Run,
  RunReport,
  StateDigest
} from "./types.js"

/** The empty fold. */
export const initial: Encoded = Object.freeze({ clocks: Object.freeze([]), deferreds: Object.freeze([]) })

/** How a {@link Fold} begins. */
export interface FoldOptions {
  /** The run: named in messages, and entries of another one are refused. */
  readonly runId?: string
  /** The run's checkpoints; the compacted one with the highest seq is the floor. */
  readonly floors?: Iterable<Floor>
  /** The last seq to fold, inclusive: any finite number. */
  readonly upTo?: number
  /** A state to begin from in place of a floor. */
  readonly state?: Encoded
}

/**
 * One run being folded, page by page. The state stays inside the module until it is asked for.
 *
 * Call `dispose()` (or use `using`) when done: finalizers run late, and never inside a synchronous loop.
 *
 * An entry that cannot be taken stops `push` with an error that names its seq. Everything before it is folded; pushing may go on with
 * that entry, repaired.
 */
export class Fold implements Disposable {
  readonly #handle: Handle
  readonly #runId: string | undefined

  /**
   * @throws `fold_incomplete` when the floor keeps no fold; `bound_below_floor`, `bound_invalid`; `state_malformed`
   */
  constructor(options?: FoldOptions) {
    const { runId, floors, upTo, state } = checkOptions(options, ["runId", "floors", "upTo", "state"])
    if (runId !== undefined && typeof runId !== "string") throw invalid("argument_invalid", "a run's id", runId)
    if (upTo !== undefined && typeof upTo !== "number") throw invalid("bound_invalid", "a finite number", upTo)
    if (state !== undefined && (floors !== undefined || upTo !== undefined)) {
      throw new JournalFoldError("option_invalid", "expected a state or floors, found both")
    }
    this.#runId = runId
    this.#handle = new Handle(call((module) => module.run_new()))
    try {
      const number = this.#handle.number
      if (state !== undefined) {
        if (!isWhole(state)) throw invalid("state_malformed", "an encoded fold", state)
        const text = jsonOf(state, "the state")
        call((module) => module.run_begin_from(number, writeJson(module, text)))
      } else {
        stageFloors(floors)
        call((module) => module.run_begin(number, writeName(module, runId ?? ""), upTo))
      }
    } catch (error) {
      this.#handle.dispose()
      throw error
    }
  }

  /** Folds entries in ascending seq: one page of bytes, or entries one by one. */
  push(entries: Page | Iterable<Entry | EntryText | Page>): void {
    feed(
      entries,
      this.#runId,
      (page) => call((module) => module.run_push(this.#handle.number, page.count, writePage(module, page), true)),
      ({ bytes, ends, seqs, types }) =>
        call((module) => {
          const { number } = this.#handle
          writeBytePage(module, bytes, ends, seqs, types)
          module.run_push(number, seqs.length, bytes.byteLength, false)
        })
    )
  }

  /** @internal Folds a page as SQL assembles it; see `pushLists` of `Rebuild`. */
  pushLists(payloads: Uint8Array, lengths: Uint8Array, seqs: Uint8Array, types: Uint8Array): void {
    call((module) => {
      writeBytes(module, [payloads, lengths, seqs, types])
      module.run_push_lists(
        this.#handle.number,
        payloads.byteLength,
        lengths.byteLength,
        seqs.byteLength,
        types.byteLength
      )
    })
  }

  /** @internal Folds entries in the order given, whatever their seqs. */
  reduce(entries: Iterable<Entry | EntryText>): void {
    feed(
      entries,
      undefined,
      (page) => call((module) => module.run_reduce(this.#handle.number, page.count, writePage(module, page), true)),
      (page) => {
        throw invalid("argument_invalid", "an entry", page)
      }
    )
  }

  /** The state so far. */
  state(): Encoded {
    return JSON.parse(this.stateText()) as Encoded
  }

  /** The state so far as JSON text. */
  stateText(): string {
    return call((module) => module.run_state(this.#handle.number))
  }

  /**
   * A checkpoint's state that keeps the fold. The base's own spelling is kept; the fold stands in the place where the base already
   * had the key, else at the end.
   *
   * @throws `base_not_object`
   */
  checkpointStateText(baseText?: string): string {
    if (baseText !== undefined && typeof baseText !== "string") throw invalid("base_not_object", "the base's JSON text", baseText)
    return call((module) =>
      module.run_checkpoint(this.#handle.number, baseText === undefined ? undefined : writeJson(module, baseText))
    )
  }

  /** Whether a checkpoint's state keeps exactly this fold. */
  checkCheckpoint(stateText: string): CheckpointCheck {
    if (typeof stateText !== "string") throw invalid("argument_invalid", "a state's JSON text", stateText)
    return JSON.parse(
      call((module) => module.run_check_checkpoint(this.#handle.number, writeJson(module, stateText)))
    ) as CheckpointCheck
  }

  /** The digest of the state: additive by default, or SHA-256 over the sorted rows. */
  digest(algorithm: StateDigest["algorithm"] = "sum-xxh3-128"): StateDigest {
    if (algorithm !== "sum-xxh3-128" && algorithm !== "sha256") {
      throw invalid("argument_invalid", "sum-xxh3-128 or sha256", algorithm)
    }
    return JSON.parse(call((module) => module.run_digest(this.#handle.number, algorithm === "sha256"))) as StateDigest
  }

  /** What was covered so far, and what changed nothing. */
  report(): RunReport {
    return JSON.parse(call((module) => module.run_report(this.#handle.number))) as RunReport
  }

  /** Frees the state. May be called again. */
  dispose(): void {
    this.#handle.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

/** Hands entries to the module page by page. Those that name another run than `runId` are refused. */
export function feed(
  entries: Page | Iterable<Entry | EntryText | Page>,
  runId: string | undefined,
  pushRows: (page: PageBuilder) => void,
  pushPage: (page: Page) => void
): void {
  if (typeof entries !== "object" || entries === null) throw invalid("argument_invalid", "a page, or entries to iterate", entries)
  const all = Symbol.iterator in entries ? entries : [entries]
  withPageBuilder((builder) => {
    const flush = (): void => {
      if (builder.count === 0) return
      try {
        pushRows(builder)
      } finally {
        builder.clear()
      }
    }
    try {
      for (const entry of all) {
        if (typeof entry !== "object" || entry === null) throw invalid("argument_invalid", "an entry", entry)
        if (runId !== undefined && entry.runId !== undefined && entry.runId !== runId) {
          throw invalid("argument_invalid", `entries of run ${describe(runId)}`, entry.runId, { runId })
        }
        if (isPage(entry)) {
          flush()
          pushPage(checkPage(entry))
        } else if (addEntry(builder, entry)) flush()
      }
    } catch (error) {
      // What came before the entry that cannot be taken is folded all the same, so that a caller can go on from there.
      flush()
      throw error
    }
    flush()
  })
}

/** Stages a run's checkpoints for the call that begins it. All are looked at before the first is staged. */
export function stageFloors(floors: Iterable<Floor> | undefined): void {
  if (floors === undefined) return
  const staged = Array.from(floors, (floor) => {
    if (typeof floor !== "object" || floor === null) throw invalid("argument_invalid", "a floor", floor)
    const seq = seqOf(floor.seq)
    if (floor.compactedAtMs === undefined) throw invalid("argument_invalid", "compactedAtMs as a time or null", undefined)
    const compacted = floor.compactedAtMs !== null
    // What is no floor is never read.
    const text = !compacted ? "" : "stateText" in floor ? floor.stateText : stateTextOf(floor.state)
    if (typeof text !== "string") throw invalid("argument_invalid", "stateText as text", text)
    return { seq, compacted, text }
  })
  for (const { seq, compacted, text } of staged) {
    call((module) => module.stage_floor(seq, compacted, writeJson(module, text)))
  }
}

/** A live state's text; one whose fold has undefined members keeps none. */
function stateTextOf(state: unknown): string {
  return keepsUndefined(state) ? "null" : jsonOf(state, "the checkpoint's state")
}

/** Whether a live state's fold has a member that is there but undefined, which JSON text cannot show. */
function keepsUndefined(state: unknown): boolean {
  if (typeof state !== "object" || state === null || !Object.hasOwn(state, checkpointKey)) return false
  return !isWhole((state as Record<string, unknown>)[checkpointKey])
}

/** Whether no row of a live fold has an optional digest that is there but undefined. All else shows in its text. */
function isWhole(fold: unknown): boolean {
  const deferreds = (fold as { deferreds?: unknown } | null | undefined)?.deferreds
  if (!Array.isArray(deferreds)) return true
  return deferreds.every(
    (row: unknown) =>
      typeof row !== "object" ||
      row === null ||
      !(["exitDigest", "metadataDigest"] as const).some(
        (digest) => digest in row && (row as Record<string, unknown>)[digest] === undefined
      )
  )
}

/**
 * Folds entries onto an encoded fold, in the order given and whatever their seqs, and gives the new one. The old one stays as it is.
 *
 * For many entries, or many calls, use {@link Fold}: its state stays inside the module.
 *
 * @throws `state_malformed`; `payload_not_json`, naming the seq; `seq_invalid`
 */
export function reduce(state: Encoded, entries: Iterable<Entry | EntryText>): Encoded {
  const fold = new Fold({ state })
  try {
    fold.reduce(entries)
    return fold.state()
  } finally {
    fold.dispose()
  }
}

/** The fold that a checkpoint's state keeps, or `undefined`: it is taken whole or not at all. */
export function fromCheckpoint(checkpointState: unknown): Encoded | undefined {
  if (keepsUndefined(checkpointState)) return undefined
  return fromCheckpointText(jsonOf(checkpointState, "the checkpoint's state"))
}

/** The fold that a checkpoint state's JSON text keeps, or `undefined`; a text that is no JSON keeps none. */
export function fromCheckpointText(text: string): Encoded | undefined {
  if (typeof text !== "string") throw invalid("argument_invalid", "a state's JSON text", text)
  const encoded = call((module) => module.read_checkpoint(writeJson(module, text)))
  return encoded === undefined ? undefined : (JSON.parse(encoded) as Encoded)
}

function captured<Result>(run: Run, upTo: number, use: (fold: Fold) => Result): Result {
  if (typeof run !== "object" || run === null) throw invalid("argument_invalid", "a run", run)
  const { runId, floors, entries } = run
  if (typeof runId !== "string") throw invalid("argument_invalid", "a run's id", runId)
  if (typeof upTo !== "number") throw invalid("bound_invalid", "a finite number", upTo)
  const fold = new Fold({ runId, ...(floors && { floors }), upTo })
  try {
    fold.push(entries)
    return use(fold)
  } finally {
    fold.dispose()
  }
}

/**
 * One run's fold up to a seq, inclusive, from its floor. `upTo` is any finite number: -1 takes nothing, 1.5 takes seqs 0 and 1.
 *
 * @throws `fold_incomplete` when the floor keeps no fold; `bound_below_floor`; `entry_conflict`, `entry_out_of_order`,
 *   `payload_not_json`
 */
export function capture(run: Run, upTo: number): Encoded {
  return captured(run, upTo, (fold) => fold.state())
}

/**
 * The state of a checkpoint at `upTo`: the base's members, and the fold under {@link checkpointKey}, in the place where the base already
 * had it, else at the end.
 *
 * @throws as {@link capture}; `base_not_object`
 */
export function checkpointState(run: Run, upTo: number, base?: Record<string, unknown>): Record<string, unknown> {
  if (base !== undefined && (typeof base !== "object" || base === null || Array.isArray(base))) {
    throw invalid("base_not_object", "a JSON object as the base", base)
  }
  return { ...base, [checkpointKey]: capture(run, upTo) }
}

/** {@link checkpointState} as text. The base's own spelling is kept, to the last digit. */
export function checkpointStateText(run: Run, upTo: number, baseText?: string): string {
  return captured(run, upTo, (fold) => fold.checkpointStateText(baseText))
}

/** Whether a checkpoint's state keeps exactly the fold that the run's entries give up to `upTo`. */
export function checkCheckpoint(run: Run, upTo: number, stateText: string): CheckpointCheck {
  return captured(run, upTo, (fold) => fold.checkCheckpoint(stateText))
}
