/** What the export of a run is in every store: which rows belong to it, in which order, and how they are spelled. */
import { JournalFoldError } from "../core/errors.js"
import type { Rebuild } from "../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress } from "../folds/deferred-clock/types.js"
import { compareUtf8 } from "../folds/deferred-clock/verify.js"
import type { RunFileWriter } from "../journal-file/write.js"

/** What could not be written as it is. */
export interface Oddities {
  /** Texts that are no UTF-8, written as base64. */
  readonly base64: number
  /** Rows left out, because their name is no UTF-8 text: no entry can mean them. */
  readonly leftOut: number
  /** Values kept in columns of type `jsonb`, written (or digested) in its spelling: the same JSON values, in other texts than were stored. */
  readonly respelled?: number
}

/** A text as the store has it: bytes where it keeps or gives bytes. */
export type StoredText = string | Uint8Array | null

/** The error of a run that the store does not know. */
export function unknownRun(runId: string): JournalFoldError {
  return new JournalFoldError("run_unknown", `the store has no row, no entry and no checkpoint of run ${JSON.stringify(runId)}`, { runId })
}

/** The runs and executions whose stored rows go into one run's export. */
export class WantedRows {
  readonly #runs: Set<string>
  readonly #addresses = new Map<string, ExecutionAddress>()

  constructor(runId: string) {
    this.#runs = new Set([runId])
  }

  /** Takes what a run's fold asks for; all of its entries were pushed. */
  ask(rebuild: Rebuild): void {
    const own = rebuild.endRun()
    // Nothing is judged here, so every question is answered with nothing.
    if (own.runs.length > 0 || own.addresses.length > 0) rebuild.answer({})
    for (const wanted of [own, rebuild.endRuns()]) {
      for (const run of wanted.runs) this.#runs.add(run)
      for (const address of wanted.addresses) this.add(address)
    }
  }

  add(address: ExecutionAddress): void {
    this.#addresses.set(JSON.stringify([address.flowName, address.executionId]), address)
  }

  /** In the order of their bytes; what no stored text can be is left out. */
  get runs(): readonly string[] {
    return [...this.#runs].filter((run) => run.isWellFormed()).sort(compareUtf8)
  }

  /** In the order of their bytes; what no stored text can be is left out. */
  get addresses(): readonly ExecutionAddress[] {
    return [...this.#addresses.values()]
      .filter(({ flowName, executionId }) => flowName.isWellFormed() && executionId.isWellFormed())
      .sort((a, b) => compareUtf8(a.flowName, b.flowName) || compareUtf8(a.executionId, b.executionId))
  }
}

/** A clock's line: its columns but the name are spelled as JSON already. */
export function clockLine(writer: RunFileWriter, address: ExecutionAddress, name: string, [deferred, due, completed]: readonly string[]): string {
  return writer.row("clock", [
    ...addressed(address),
    `"clockName":${JSON.stringify(name)}`,
    `"deferredName":${deferred}`,
    `"dueAtMs":${due}`,
    `"completedAtMs":${completed}`
  ])
}

/**
 * A completion's line; its stamps are spelled as JSON already.
 *
 * @param digest what stands in place of the texts; absent when the texts themselves are written
 */
export function completionLine(
  writer: RunFileWriter,
  address: ExecutionAddress,
  name: string,
  texts: { readonly exit: StoredText; readonly metadata: StoredText },
  [completed, consumed]: readonly string[],
  digest?: (text: string | Uint8Array) => string
): string {
  const value = (member: string, text: StoredText): string =>
    digest === undefined ? writer.text(member, text) : `"${member}Digest":${text === null ? "null" : `"${digest(text)}"`}`
  return writer.row("completion", [
    ...addressed(address),
    `"deferredName":${JSON.stringify(name)}`,
    value("exit", texts.exit),
    value("metadata", texts.metadata),
    `"completedAtMs":${completed}`,
    `"consumedAtMs":${consumed}`
  ])
}

function addressed({ flowName, executionId }: ExecutionAddress): string[] {
  return [`"flowName":${JSON.stringify(flowName)}`, `"executionId":${JSON.stringify(executionId)}`]
}
