/** Every run against the stored rows, as a stream of synchronous calls that any host can drive. */
import { call } from "../../core/engine.js"
import { invalid } from "../../core/errors.js"
import { Handle } from "../../core/handle.js"
import { writeBytes, writeJson, writeName } from "../../core/inbox.js"
import { checkCount, checkOptions } from "../../core/options.js"
import { writeBytePage, writePage } from "../../core/pages.js"
import { contentDigest, type DigestFunction } from "../../digest.js"
import { jsonOf } from "./entries.js"
import { feed, stageFloors } from "./fold.js"
import type {
  Answer,
  Effects,
  Entry,
  EntryText,
  ExecutionAddress,
  Finding,
  FindingId,
  Floor,
  Head,
  Page,
  Plan,
  PlanPage,
  Rebuilt,
  StateDigest,
  StoredClock,
  StoredCompletion,
  Unjoined,
  Verdict,
  Verification,
  VerifyOptions,
  Wanted
} from "./types.js"

/** How a {@link Rebuild} is done. */
export interface RebuildOptions extends VerifyOptions {
  /** Answers will have clocks. Without, only completions are compared, and there is no plan. Default: true. */
  readonly compareClocks?: boolean
  /** Every run of the store will be given; only then can a stored row be called unexplained. Default: true. */
  readonly wholeStore?: boolean
  /** What is left out of scope, in words, for the report. */
  readonly leftOut?: string
  /**
   * List drift among the findings, and count it. Default: true. `false` saves its memory where only the plan is wanted, in which all of
   * it stands; verdict and plan stay the same.
   */
  readonly listDrift?: boolean
}

const optionNames = [
  "strict",
  "maxUnexplained",
  "asOfMs",
  "baseline",
  "heads",
  "digest",
  "compareClocks",
  "wholeStore",
  "leftOut",
  "listDrift"
] as const

/** Findings and heads are fetched in slices, so that no single text outgrows a JavaScript string. */
const sliceRows = 10_000
const nothing: Wanted = Object.freeze({ runs: Object.freeze([]), addresses: Object.freeze([]) })

/**
 * The streaming form of `verifyRebuild`. It does no I/O: it is told entries, says which stored rows it wants to see, and is answered.
 *
 * ```
 * for each run, in ascending order of its id's UTF-8 bytes:
 *   beginRun(id, floors); push(page)…; wanted = endRun()
 *   answer(rows of wanted)                    // or of several runs at once
 * answer(rows of endRuns())                   // rows that name another run's execution
 * answer(rows of sweep(executions of both tables))   // stored rows that no run asked for
 * finish()
 * ```
 *
 * A run whose journal contradicts itself or cannot be read is a finding, and the others go on.
 */
export class Rebuild implements Disposable {
  readonly #handle: Handle
  readonly #options: RebuildOptions
  readonly #digest: DigestFunction
  #runId: string | undefined

  constructor(options?: RebuildOptions) {
    const checked = checkOptions(options, optionNames)
    this.#options = checked
    this.#digest = checked.digest ?? contentDigest
    if (typeof this.#digest !== "function") throw invalid("option_invalid", "digest as a function", checked.digest)
    const baseline = baselineText(checked.baseline)
    const { strict, compareClocks, wholeStore, listDrift } = checked
    for (const [name, value] of Object.entries({ strict, compareClocks, wholeStore, listDrift })) {
      if (value !== undefined && typeof value !== "boolean") throw invalid("option_invalid", `${name} as true or false`, value)
    }
    const settings = {
      strict: strict ?? false,
      maxUnexplained: checkCount("maxUnexplained", checked.maxUnexplained),
      asOfMs: checkCount("asOfMs", checked.asOfMs),
      compareClocks: compareClocks ?? true,
      wholeStore: wholeStore ?? true,
      unlistedDrift: listDrift === false
    }
    this.#handle = new Handle(call((module) => module.rebuild_new(settings, writeJson(module, baseline))))
  }

  /**
   * Begins a run with its checkpoints.
   *
   * @throws `run_out_of_order`, `run_repeated`
   */
  beginRun(runId: string, floors?: Iterable<Floor>): void {
    if (typeof runId !== "string") throw invalid("argument_invalid", "a run's id", runId)
    const { number } = this.#handle
    stageFloors(floors)
    call((module) => module.rebuild_begin_run(number, writeName(module, runId)))
    this.#runId = runId
  }

  /** Folds entries of the current run in ascending seq. */
  push(entries: Page | Iterable<Entry | EntryText | Page>): void {
    feed(
      entries,
      this.#runId,
      (page) => call((module) => module.rebuild_push(this.#handle.number, page.count, writePage(module, page), true)),
      ({ bytes, ends, seqs, types }) =>
        call((module) => {
          const { number } = this.#handle
          writeBytePage(module, bytes, ends, seqs, types)
          module.rebuild_push(number, seqs.length, bytes.byteLength, false)
        })
    )
  }

  /**
   * @internal Folds a page as SQL assembles it: joined payloads, then byte lengths and seqs in decimal with commas between, and
   * types as one digit each. `skipped` entries of other types were left out.
   */
  pushLists(payloads: Uint8Array, lengths: Uint8Array, seqs: Uint8Array, types: Uint8Array, skipped = 0): void {
    call((module) => {
      writeBytes(module, [payloads, lengths, seqs, types])
      module.rebuild_push_lists(
        this.#handle.number,
        payloads.byteLength,
        lengths.byteLength,
        seqs.byteLength,
        types.byteLength,
        skipped
      )
    })
  }

  /** Ends the current run and says which stored rows it is to be joined with. */
  endRun(): Wanted {
    return wantedOf(call((module) => module.rebuild_end_run(this.#handle.number)))
  }

  /** Answers what was wanted since the last answer. */
  answer(rows: Answer): void {
    const text = answerText(rows, this.#digest)
    this.answerText(text, rows.more !== true)
  }

  /** @internal Answers with a JSON text; see `rebuild_answer` in `src/wasm/deferred_clock.rs`. */
  answerText(text: string, last: boolean): void {
    call((module) => module.rebuild_answer(this.#handle.number, writeJson(module, text), last))
  }

  /** Ends the runs, and says which stored rows the rows that name another run's execution are to be joined with. */
  endRuns(): Wanted {
    return wantedOf(call((module) => module.rebuild_end_runs(this.#handle.number)))
  }

  /**
   * Takes executions that stored rows have, in any order and with repeats, and says of which the rows are wanted because no run asked
   * for them. Once all executions of both tables were swept, no stored row has escaped.
   */
  sweep(addresses: Iterable<ExecutionAddress>): Wanted {
    const pairs: string[] = []
    for (const { flowName, executionId } of addresses) pairs.push(`[${JSON.stringify(flowName)},${JSON.stringify(executionId)}]`)
    return this.sweepText(`[${pairs.join(",")}]`)
  }

  /** @internal {@link sweep} of a JSON array of pairs. */
  sweepText(pairs: string): Wanted {
    return wantedOf(call((module) => module.rebuild_sweep(this.#handle.number, writeJson(module, pairs))))
  }

  /**
   * Ends the work.
   *
   * @throws `answer_missing` when something wanted was not answered
   */
  finish(): Verification {
    return this.#conclude(false)
  }

  /** Ends the work before everything was looked at: the verdict is `partial`, with what was found so far. */
  finishPartial(): Verification {
    return this.#conclude(true)
  }

  #conclude(partial: boolean): Verification {
    // A call that comes too early leaves the machine as it is, to go on with.
    const result = new Handle(call((module) => module.rebuild_finish(this.#handle.number, partial)))
    this.#handle.ended()
    try {
      return verificationOf(result, this.#options)
    } finally {
      result.dispose()
    }
  }

  /** Frees the machine. May be called again. */
  dispose(): void {
    this.#handle.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}

function wantedOf(text: string | undefined): Wanted {
  if (text === undefined) return nothing
  const { runs, addresses } = JSON.parse(text) as { runs: string[]; addresses: [string, string][] }
  return { runs, addresses: addresses.map(([flowName, executionId]) => ({ flowName, executionId })) }
}

function baselineText(baseline: Iterable<Head> | undefined): string {
  if (baseline === undefined) return ""
  const rows: string[] = []
  for (const { runId, last, digest } of baseline) {
    // A run that had no entry or was not folded covers nothing.
    if (last !== undefined && digest !== undefined) rows.push(JSON.stringify([runId, last, digest]))
  }
  return `[${rows.join(",")}]`
}

function answerText(answer: Answer, digest: DigestFunction): string {
  if (typeof answer !== "object" || answer === null) throw invalid("answer_malformed", "an answer", answer)
  const { liveRuns = [], clocks = [], completions = [] } = answer
  const runs = Array.from(liveRuns, (run) => JSON.stringify(run))
  const clockRows = Array.from(clocks, clockText)
  const completionRows = Array.from(completions, (row) => completionText(row, digest))
  return `{"runs":[${runs.join(",")}],"clocks":[${clockRows.join(",")}],"completions":[${completionRows.join(",")}]}`
}

function clockText(row: StoredClock): string {
  return `[${[
    JSON.stringify(row.flowName),
    JSON.stringify(row.executionId),
    JSON.stringify(row.clockName),
    storedText(row.deferredName),
    storedText(row.dueAtMs),
    storedText(row.completedAtMs)
  ].join(",")}]`
}

function completionText(row: StoredCompletion, digest: DigestFunction): string {
  return `[${[
    JSON.stringify(row.flowName),
    JSON.stringify(row.executionId),
    JSON.stringify(row.deferredName),
    digestText(row.exitText, row.exitDigest, digest),
    digestText(row.metadataText, row.metadataDigest, digest),
    storedText(row.completedAtMs),
    storedText(row.consumedAtMs)
  ].join(",")}]`
}

/** The digest of a stored text, or the one given in its place. */
function digestText(
  text: string | Uint8Array | null | undefined,
  given: string | null | undefined,
  digest: DigestFunction
): string {
  if (text !== undefined) return text === null ? "null" : `"${digest(text)}"`
  if (given === undefined) throw invalid("answer_malformed", "a completion's text or its digest", given)
  return JSON.stringify(given)
}

/** A stored value as JSON: 64-bit integers in full; bytes, and numbers without a JSON text, as text that no recorded value can be. */
function storedText(value: unknown): string {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value)
  if (typeof value === "number" && !Number.isFinite(value)) return `"${value}"`
  if (value instanceof Uint8Array) return JSON.stringify(`blob of ${value.byteLength} bytes`)
  return jsonOf(value, "a stored value")
}

interface Summary {
  readonly verdict: Verdict
  readonly findingCount: number
  readonly rebuilt: Rebuilt
  readonly coverage: Verification["coverage"]
  readonly ignored: Verification["ignored"]
  readonly notChecked: Verification["notChecked"]
  readonly notes: Verification["notes"]
  readonly stateDigest: StateDigest
  readonly plan?: {
    readonly digest: string
    readonly rows: number
    readonly unstorable: number
    readonly effects: Effects
    readonly pages: readonly Omit<PlanPage, "rows">[]
  }
}

function verificationOf(result: Handle, options: RebuildOptions): Verification {
  const summary = JSON.parse(call((module) => module.verification_summary(result.number))) as Summary
  const findings: Finding[] = []
  while (findings.length < summary.findingCount) {
    const slice = call((module) => module.verification_findings(result.number, findings.length, sliceRows))
    for (const finding of JSON.parse(slice) as Finding[]) findings.push(finding)
  }
  const counts: Partial<Record<FindingId, number>> = {}
  for (const { id } of findings) counts[id] = (counts[id] ?? 0) + 1
  const unjoined = JSON.parse(call((module) => module.verification_unjoined(result.number))) as Unjoined[]
  const { coverage, rebuilt } = summary
  return {
    verdict: summary.verdict,
    findings,
    counts,
    unjoined,
    rebuilt,
    ...(summary.plan && { plan: planOf(result, summary.plan, rebuilt, coverage.headsDigest) }),
    coverage: options.leftOut === undefined ? coverage : { ...coverage, leftOut: options.leftOut },
    ...(options.heads && { heads: headsOf(result) }),
    ignored: summary.ignored,
    notChecked: summary.notChecked,
    notes: summary.notes,
    stateDigest: summary.stateDigest,
    digestFunction: options.digest === undefined ? "module" : "host"
  }
}

function planOf(result: Handle, plan: NonNullable<Summary["plan"]>, rebuilt: Rebuilt, headsDigest: string): Plan {
  const pages = plan.pages.map((page, index) => ({
    ...page,
    rows: call((module) => module.verification_plan_page(result.number, index))
  }))
  return { ...plan, rebuilt, headsDigest, pages }
}

function headsOf(result: Handle): Head[] {
  const heads: Head[] = []
  for (;;) {
    const slice = JSON.parse(call((module) => module.verification_heads(result.number, heads.length, sliceRows))) as Head[]
    for (const head of slice) heads.push(head)
    if (slice.length < sliceRows) return heads
  }
}
