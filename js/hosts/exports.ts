/** What the export of one run is made of, whatever the store: which runs and executions stand in it beside the run's own, and their order. */
import type { DigestFunction } from "../digest.js"
import type { Rebuild } from "../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress, Wanted } from "../folds/deferred-clock/types.js"
import { compareUtf8 } from "../folds/deferred-clock/verify.js"

/** How a run is exported. */
export interface RunExportOptions {
  /** Write the texts of completions, not only their digests. */
  readonly showValues?: boolean
  /** Computes the digests of stored texts. */
  readonly digest?: DigestFunction
}

/** What could not be written as it is. */
export interface Oddities {
  /** Texts that are no UTF-8, written as base64. */
  readonly base64: number
  /** Rows left out, because their name is no UTF-8 text: no entry can mean them. */
  readonly leftOut: number
}

/** The runs and executions of an export, in byte order. */
export interface Exported {
  readonly runs: readonly string[]
  readonly addresses: readonly ExecutionAddress[]
}

/** Ends a rebuild that was given one run, and gives what it asks for. Nothing is judged: every question is answered with nothing. */
export function askedFor(rebuild: Rebuild): Wanted[] {
  const own = rebuild.endRun()
  if (own.runs.length > 0 || own.addresses.length > 0) rebuild.answer({})
  return [own, rebuild.endRuns()]
}

/** What the run's fold asks for, and its own execution in every flow that has rows of it. */
export function exportedWith(runId: string, wanted: readonly Wanted[], flows: readonly string[]): Exported {
  const runs = new Set([runId])
  const addresses = new Map<string, ExecutionAddress>()
  const add = (address: ExecutionAddress): void => void addresses.set(JSON.stringify([address.flowName, address.executionId]), address)
  for (const asked of wanted) {
    for (const run of asked.runs) runs.add(run)
    for (const address of asked.addresses) add(address)
  }
  for (const flowName of flows) add({ flowName, executionId: runId })
  return {
    runs: [...runs].filter((run) => run.isWellFormed()).sort(compareUtf8),
    addresses: [...addresses.values()]
      .filter(({ flowName, executionId }) => flowName.isWellFormed() && executionId.isWellFormed())
      .sort((a, b) => compareUtf8(a.flowName, b.flowName) || compareUtf8(a.executionId, b.executionId))
  }
}

/** The members of a row that say whose it is, as JSON. */
export function addressed({ flowName, executionId }: ExecutionAddress): string[] {
  return [`"flowName":${JSON.stringify(flowName)}`, `"executionId":${JSON.stringify(executionId)}`]
}
