/** A store in memory, verified in one call. */
import { FoldIncomplete, invalid } from "../../core/errors.js"
import { Rebuild } from "./rebuild.js"
import type {
  ExecutionAddress,
  Run,
  Store,
  StoredClock,
  StoredCompletion,
  Unjoined,
  Verification,
  VerifyOptions,
  Wanted
} from "./types.js"

/**
 * Compares texts by their UTF-8 bytes, in which order runs are taken: that of code points, where UTF-16 order is another. An unpaired
 * surrogate counts as itself.
 */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    if (a.charCodeAt(at) === b.charCodeAt(at)) continue
    // Behind a high surrogate that both have, one may have a pair and the other not.
    const before = at === 0 ? 0 : codePoint(a, at - 1) - codePoint(b, at - 1)
    return before || codePoint(a, at) - codePoint(b, at)
  }
  return a.length - b.length
}

function codePoint(text: string, at: number): number {
  return text.codePointAt(at) as number
}

/** Rows by flow and execution. */
class RowsByExecution<Row extends ExecutionAddress> {
  readonly #flows = new Map<string, Map<string, Row[]>>()

  constructor(rows: Iterable<Row>) {
    for (const row of rows) {
      let executions = this.#flows.get(row.flowName)
      if (executions === undefined) this.#flows.set(row.flowName, (executions = new Map()))
      const list = executions.get(row.executionId)
      if (list === undefined) executions.set(row.executionId, [row])
      else list.push(row)
    }
  }

  of({ flowName, executionId }: ExecutionAddress): readonly Row[] {
    return this.#flows.get(flowName)?.get(executionId) ?? []
  }

  *addresses(): Iterable<ExecutionAddress> {
    for (const [flowName, executions] of this.#flows) {
      for (const executionId of executions.keys()) yield { flowName, executionId }
    }
  }
}

/**
 * Joins every run's fold with the stored rows. Gives what it found; throws only when the call itself is malformed.
 *
 * The store is held in memory by the caller. For stores that are not, use {@link Rebuild}, or a host: `journal-fold/sqlite`.
 */
export function verifyRebuild(store: Store, options: VerifyOptions = {}): Verification {
  if (typeof store !== "object" || store === null) throw invalid("argument_invalid", "a store", store)
  const runs = Array.from(store.runs).sort((a: Run, b: Run) => compareUtf8(a.runId, b.runId))
  const live = new Set(store.liveRuns)
  const completions = new RowsByExecution<StoredCompletion>(store.completions)
  const clocks = store.clocks === undefined ? undefined : new RowsByExecution<StoredClock>(store.clocks)
  const rebuild = new Rebuild({ ...options, compareClocks: clocks !== undefined })
  const answer = (wanted: Wanted): void => {
    if (wanted.runs.length === 0 && wanted.addresses.length === 0) return
    rebuild.answer({
      liveRuns: wanted.runs.filter((run) => live.has(run)),
      clocks: clocks === undefined ? [] : wanted.addresses.flatMap((address) => clocks.of(address)),
      completions: wanted.addresses.flatMap((address) => completions.of(address))
    })
  }
  try {
    for (const run of runs) {
      rebuild.beginRun(run.runId, run.floors)
      rebuild.push(run.entries)
      answer(rebuild.endRun())
    }
    answer(rebuild.endRuns())
    answer(rebuild.sweep(completions.addresses()))
    if (clocks !== undefined) answer(rebuild.sweep(clocks.addresses()))
    return rebuild.finish()
  } finally {
    rebuild.dispose()
  }
}

/**
 * Gives a verification back, unless it was refused: then the fold's error is thrown.
 *
 * @throws {@link FoldIncomplete} with every reference that does not join. A store that was refused for other reasons (a run that
 *   contradicts itself) has an empty `unjoined`; its `findings` say why.
 */
export function orThrow(verification: Verification): Verification {
  if (verification.verdict !== "refused") return verification
  const { unjoined, findings } = verification
  throw new FoldIncomplete(incompleteMessage(unjoined, findings.length), unjoined)
}

function incompleteMessage(unjoined: readonly Unjoined[], findings: number): string {
  return unjoined.length > 0
    ? `the journal refers to ${unjoined.length} rows, runs or checkpoints that the store cannot join`
    : `the verification refused the store: ${findings} findings`
}
