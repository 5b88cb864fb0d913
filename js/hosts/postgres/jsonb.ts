/**
 * Texts that went through `jsonb`. The type keeps a JSON value and forgets how it was spelled: spaces, the order of keys, repeated keys
 * and the form of numbers are gone. A digest is over the text, so of such a column it can be proven only that a value *is* the recorded
 * one, when spelling it as `JSON.stringify` does gives the recorded digest. When it does not, nothing follows: another value, or the same
 * one once spelled otherwise. That is counted as not checked, and never as a finding, unless the caller is strict.
 */
import { isJournalFoldError } from "../../core/errors.js"
import { contentDigest, verifyDigest, type DigestFunction } from "../../digest.js"
import { Fold } from "../../folds/deferred-clock/fold.js"
import type { Deferred, ExecutionAddress, Finding, Floor, NotChecked, Note } from "../../folds/deferred-clock/types.js"
import type { Segment } from "./journal.js"

/** What a journal says of a completion. */
interface Recorded {
  readonly runId: string
  readonly exitDigest: string | undefined
  readonly metadataDigest: string | null | undefined
}

/** How `JSON.stringify` spells the value of a JSON text; nothing when it cannot. */
function respelled(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Whether a text is spelled as Postgres spells a `jsonb` value: one space behind each comma and colon, and none elsewhere. */
function isSpelledByJsonb(text: string): boolean {
  let lines: string
  try {
    // Line breaks inside of texts are escaped, so every one that is there stands between two parts.
    lines = JSON.stringify(JSON.parse(text), null, 1)
  } catch {
    return false
  }
  return lines.replace(/,\n */g, ", ").replace(/\n */g, "") === text && respelled(text) !== text
}

const keyOf = (flowName: string, executionId: string, name: string): string => JSON.stringify([flowName, executionId, name])

/**
 * What the runs that are being verified record of completions: each is folded a second time beside the machine, which keeps its digests
 * to itself. Only for stores that keep exits or metadata as `jsonb`.
 */
export class RecordedDigests {
  readonly #strict: boolean
  readonly #digest: DigestFunction
  readonly #foreign = new Map<string, Recorded>()
  #own = new Map<string, Recorded>()
  #rest = false
  #runId = ""
  #fold: Fold | undefined
  #same = 0
  #firstSame = ""
  #incomparable = 0

  constructor(strict: boolean, digest: DigestFunction | undefined) {
    this.#strict = strict
    this.#digest = digest ?? contentDigest
  }

  /** Begins a run. */
  begin(runId: string, floors: readonly Floor[]): void {
    this.#runId = runId
    // A run whose floor keeps no fold, or whose journal cannot be read, is refused by the machine: nothing is compared then.
    this.#fold = tried(() => new Fold({ runId, floors }))
  }

  /** Takes entries of the run. */
  push({ payloads, lengths, seqs, types }: Segment): void {
    const fold = this.#fold
    if (fold === undefined) return
    if (tried(() => (fold.pushLists(payloads, lengths, seqs, types), true)) === undefined) this.dispose()
  }

  /** Ends the run. */
  end(): void {
    for (const deferred of this.#fold?.state().deferreds ?? []) this.#keep(deferred)
    this.dispose()
  }

  #keep({ flowName, executionId, deferredName, exitDigest, metadataDigest }: Deferred): void {
    const kept = executionId === this.#runId ? this.#own : this.#foreign
    const key = keyOf(flowName, executionId, deferredName)
    // Of two runs that record one completion the first is compared; the machine then sees that the other one differs.
    if (!kept.has(key)) kept.set(key, { runId: this.#runId, exitDigest, metadataDigest })
  }

  /** Forgets runs whose rows were answered. */
  answered(): void {
    this.#own = new Map()
  }

  /** From now on, rows that name another run's execution are answered. */
  rest(): void {
    this.#rest = true
  }

  /**
   * The digests to answer with for a stored completion.
   *
   * @param address flow, execution and name, as a JSON array
   */
  digests(address: string, exit: Stored, metadata: Stored): { readonly exit: string | null; readonly metadata: string | null } {
    const [flowName, executionId, name] = JSON.parse(address) as [string, string, string]
    const recorded = (this.#rest ? this.#foreign : this.#own).get(keyOf(flowName, executionId, name))
    const [exitDigest, exitOutcome] = this.#judge(exit, recorded?.exitDigest)
    const [metadataDigest, metadataOutcome] = this.#judge(metadata, recorded?.metadataDigest)
    const outcomes = [exitOutcome, metadataOutcome]
    if (outcomes.includes("incomparable")) {
      if (!this.#strict) this.#incomparable += 1
    } else if (outcomes.includes("same")) {
      if (this.#same === 0) this.#firstSame = recorded?.runId ?? ""
      this.#same += 1
    }
    return { exit: exitDigest, metadata: metadataDigest }
  }

  #judge({ digest, jsonb }: Stored, expected: string | null | undefined): readonly [string | null, Outcome?] {
    // What is missing on one side is missing, however a value is spelled.
    if (digest === null || jsonb === undefined || typeof expected !== "string" || digest === expected) return [digest]
    const canonical = respelled(jsonb)
    if (canonical !== undefined && this.#digest(canonical) === expected) return [expected, "same"]
    return [this.#strict ? digest : expected, "incomparable"]
  }

  /** What is to be said of completions whose columns are `jsonb`. */
  said(): { readonly notes: readonly Note[]; readonly notChecked: readonly NotChecked[] } {
    return {
      notes: this.#same === 0 ? [] : [sameValue(this.#same, this.#firstSame)],
      notChecked:
        this.#incomparable === 0
          ? []
          : [
              {
                what: "text_through_jsonb",
                meaning:
                  "completions kept in a column of type jsonb: its text is not the text that was recorded, so digests cannot be compared",
                count: this.#incomparable
              }
            ]
    }
  }

  /** Frees what is folded. */
  dispose(): void {
    this.#fold?.dispose()
    this.#fold = undefined
  }
}

/** What a store has of an exit or of metadata. */
export interface Stored {
  /** The digest of its text; null for SQL's NULL. */
  readonly digest: string | null
  /** Its text, where the column is `jsonb`. */
  readonly jsonb?: string | undefined
}

type Outcome = "same" | "incomparable"

function tried<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch (error) {
    if (isJournalFoldError(error)) return undefined
    throw error
  }
}

function sameValue(count: number, firstRunId: string): Note {
  return {
    what: "same_value_other_text",
    meaning: "completions whose text went through jsonb: the same JSON value as was recorded, in another text",
    count,
    firstRunId
  }
}

/** Gives the texts of all completions of some executions, where they are kept as texts. */
export type TextsOf = (
  executions: readonly ExecutionAddress[],
  take: (address: string, exit: string | null, metadata: string | null) => void
) => Promise<void>

/** Executions whose texts are asked for together. */
const executionsAnAsk = 100

/**
 * Of completions in text columns whose digests are not those recorded: how many hold the recorded JSON value in the spelling of `jsonb`,
 * as after a migration that went through it. They stay findings, because the bytes differ.
 */
export async function throughJsonb(findings: readonly Finding[], textsOf: TextsOf): Promise<Note[]> {
  const mismatches = findings.filter(({ id, expected }) => id === "digest_mismatch" && typeof expected === "string")
  const byAddress = new Map<string, Finding[]>()
  const executions = new Map<string, ExecutionAddress>()
  for (const finding of mismatches) {
    const { flowName = "", executionId = "", name = "" } = finding
    const key = keyOf(flowName, executionId, name)
    const at = byAddress.get(key)
    if (at === undefined) byAddress.set(key, [finding])
    else at.push(finding)
    executions.set(keyOf(flowName, executionId, ""), { flowName, executionId })
  }
  const same = new Set<Finding>()
  const every = [...executions.values()]
  for (let at = 0; at < every.length; at += executionsAnAsk) {
    await textsOf(every.slice(at, at + executionsAnAsk), (address, exit, metadata) => {
      const [flowName, executionId, name] = JSON.parse(address) as [string, string, string]
      for (const finding of byAddress.get(keyOf(flowName, executionId, name)) ?? []) {
        if (isSameValue(finding.field === "metadataDigest" ? metadata : exit, String(finding.expected))) same.add(finding)
      }
    })
  }
  const first = mismatches.find((finding) => same.has(finding))
  return first === undefined ? [] : [sameValue(same.size, first.runId ?? "")]
}

function isSameValue(text: string | null, digest: string): boolean {
  if (text === null || !isSpelledByJsonb(text)) return false
  const canonical = respelled(text)
  return canonical !== undefined && verifyDigest(canonical, digest)
}
