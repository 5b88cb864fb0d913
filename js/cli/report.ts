/**
 * A report as text. The rules: one line a finding, which is the same whatever else is found; every other line begins with `#`; and the
 * end says what was covered, what was found, what to do about it, and what nobody looked at.
 */
import type { Verdict, Verification } from "../folds/deferred-clock/types.js"
import { version } from "../version.js"
import type { Arguments } from "./arguments.js"
import { changesOf, effectsOf } from "./changes.js"
import { addressValue, printable, shellWord } from "./escape.js"
import { findingTable } from "./knowledge.js"
import type { Look } from "./look.js"
import { tableOf, wrapped } from "./layout.js"
import { counted, number, time } from "./numbers.js"
import { countLines, findingLines, notCheckedLines, rowLines, tookLine, verdictLine, type Judgement, type LabelledRow } from "./report-parts.js"
import type { Style } from "./terminal.js"

/** What a verb did about what it found. */
export interface Outcome {
  /** Rows of the report, each a label and lines. */
  readonly rows?: readonly (readonly [label: string, ...lines: string[]])[]
  /** Whether the plan was carried out. */
  readonly written?: boolean
  /** Commands to run next. */
  readonly next: readonly string[]
}

/** A report to print. */
export interface Report {
  readonly args: Arguments
  readonly look: Look
  readonly outcome: Outcome
  readonly startMs: number
}

/** The lines of a report. */
export function* reportLines({ args, look, outcome, startMs }: Report, style: Style): Generator<string> {
  const { verification } = look
  yield style.dim(`# journal-fold ${version} ${args.verb.name} ${shellWord(args.file)}`)
  yield* findingLines(verification.findings, args.count("max-findings"), style)
  yield "#"
  yield verdictLine(judgement(look, outcome, args), style)
  yield "#"
  const row = (...labelled: LabelledRow): Generator<string> => rowLines(labelled, style)
  yield* row("covered", ...covered(look, args).flatMap((line) => wrapped(line)))
  if (verification.coverage.leftOut !== undefined) yield* row("left out", ...wrapped(printable(verification.coverage.leftOut)))
  yield* row("findings", ...countLines(verification.counts, style))
  yield* row(outcome.written === true ? "wrote" : "apply would", ...planLines(look, outcome).flatMap((line) => wrapped(line)))
  yield* row("unexplained", unexplained(verification))
  yield* row("not checked", ...notCheckedLines(verification.notChecked, verification.verdict))
  if (verification.ignored.length > 0) yield* row("ignored", ...ignoredLines(verification))
  if (verification.notes.length > 0) yield* row("notes", ...noteLines(verification))
  yield* row("state", `${verification.stateDigest.algorithm} ${verification.stateDigest.value}`)
  for (const [name, ...lines] of outcome.rows ?? []) yield* row(name, ...lines.flatMap((line) => wrapped(line)))
  yield* row("took", tookByLine(verification, startMs))
  // A command stays on its line, whatever its length.
  yield* row("next", ...outcome.next.map(style.bold))
}

const sentences: Readonly<Record<Verdict, string>> = {
  match: "the tables say what the journal says",
  drift: "tables and journal differ; apply repairs it",
  refused: "nothing may be written until this is looked into",
  partial: "not everything was looked at"
}

function judgement({ verification, stoppedBy }: Look, { written }: Outcome, args: Arguments): Judgement {
  const { verdict, findings } = verification
  return {
    verdict,
    findings: findings.length,
    sentence: written === true ? "the tables now say what the journal says" : sentences[verdict],
    stoppedBy,
    limit: args.text("max-seconds"),
    word: written === true ? "REPAIRED" : undefined
  }
}

function covered({ kind, verification }: Look, args: Arguments): string[] {
  const { coverage, rebuilt } = verification
  const lines = [
    `${counted(coverage.runs, "run")}, ${counted(coverage.entries, "entry", "entries")}, ${counted(coverage.floors, "floor")}, ${kind === "store" ? "in one snapshot" : "of an exported run"}`,
    `${counted(rebuilt.clocks, "clock")} and ${counted(rebuilt.deferreds, "completion")} recorded`
  ]
  if (coverage.unfolded > 0) lines.push(`${counted(coverage.unfolded, "run")} of these could not be folded`)
  const baseline = args.text("baseline")
  if (baseline !== undefined) lines.push(`compared with the journal as of ${shellWord(baseline)}`)
  return lines
}

function planLines({ kind, verification, asOfMs }: Look, { written }: Outcome): string[] {
  const { verdict, plan, counts } = verification
  if (verdict === "partial") return ["not known, since not everything was looked at"]
  if (plan === undefined) {
    const table = findingTable()
    const refusing = Object.entries(counts).reduce((sum, [id, count]) => sum + (table[id]?.class === "drift" ? 0 : count), 0)
    return [`refuse, for ${counted(refusing, "finding")} that no rebuild repairs`]
  }
  if (plan.rows === 0) return [written === true ? "nothing" : "write nothing"]
  const lines = [...changesOf(plan, written === true), ...effectsOf(plan, time(asOfMs), written === true)]
  return kind === "store" ? lines : [...lines, "in the store: an exported run can only be looked at"]
}

function unexplained({ verdict, rebuilt, coverage }: Verification): string {
  if (rebuilt.unexplained !== null) return `${counted(rebuilt.unexplained, "stored completion")} that no entry explains`
  if (coverage.leftOut !== undefined) return "not judged, since runs were left out"
  return verdict === "partial" ? "not judged, since not everything was looked at" : "not judged, since a run could not be folded"
}

/** Reasons that are no part of a sound journal's everyday life. */
const worthALook: ReadonlySet<string> = new Set(["not_a_record", "field_refused", "nothing_to_complete", "nothing_to_consume"])

function ignoredLines({ ignored }: Verification): string[] {
  return tableOf(
    ignored.map(({ reason, meaning = "", count, firstRunId, firstSeq }) => {
      const where = firstRunId === undefined || !worthALook.has(reason) ? "" : `; first: run=${addressValue(firstRunId)} seq=${firstSeq}`
      return { cells: [number(count), reason, `${meaning}${where}`] }
    })
  )
}

function noteLines({ notes }: Verification): string[] {
  return tableOf(
    notes.map(({ what, meaning, count, firstRunId }) => ({ cells: [number(count), what, `${meaning}; first: run=${addressValue(firstRunId)}`] }))
  )
}

function tookByLine({ digestFunction }: Verification, startMs: number): string {
  return `${tookLine(startMs)}; digests by ${digestFunction === "host" ? "the host" : "the module"}`
}
