/** What a look at a stream found, as text and as JSON. The rules are those of `report.ts`. */
import type { HintState, RestoreForecast, StreamVerification } from "../folds/observer-log/types.js"
import type { Verdict } from "../folds/deferred-clock/types.js"
import { version } from "../version.js"
import type { Arguments } from "./arguments.js"
import { addressValue, shellWord } from "./escape.js"
import { documentPieces, List } from "./json.js"
import { tableOf, wrapped } from "./layout.js"
import { counted, number } from "./numbers.js"
import { countLines, findingLines, notCheckedLines, rowLines, tookLine, verdictLine, type LabelledRow } from "./report-parts.js"
import type { StreamLook } from "./stream.js"
import type { Style } from "./terminal.js"

/** A report about a stream. */
export interface StreamReport {
  readonly args: Arguments
  readonly look: StreamLook
  readonly next: readonly string[]
  readonly startMs: number
}

const sentences: Readonly<Record<Verdict, string>> = {
  match: "every row follows from those before it",
  drift: "the rows are sound, and a number beside them is not",
  refused: "nothing should be appended until this is looked into",
  partial: "not everything was looked at"
}

/** The lines of a verification's report. */
export function* streamReportLines(report: StreamReport, style: Style): Generator<string> {
  const { args, look, next, startMs } = report
  const { verification } = look
  yield* head(report, style)
  const { verdict, findings } = verification
  yield* findingLines(findings, args.count("max-findings"), style)
  yield "#"
  const judgement = { verdict, findings: findings.length, sentence: sentences[verdict], stoppedBy: look.stoppedBy, limit: args.text("max-seconds") }
  yield verdictLine(judgement, style)
  yield "#"
  yield* rows(
    [
      ["covered", ...coveredLines(verification)],
      ["findings", ...countLines(verification.counts, style)],
      ["not checked", ...notCheckedLines(verification.notChecked, verdict)],
      ...(verification.notes.length > 0 ? [["notes", ...noteLines(verification)] as const] : []),
      ...standingRows(verification),
      ["took", tookLine(startMs)],
      ["next", ...next.map(style.bold)]
    ],
    style
  )
}

/** The lines of a status: where the stream stands, and not every finding. */
export function* statusLines(report: StreamReport, style: Style): Generator<string> {
  const { verification } = report.look
  yield* head(report, style)
  const { findings, verdict } = verification
  const worst = verdict === "match" ? "nothing is wrong" : `${counted(findings.length, "finding")}, ${verdict}: verify names ${findings.length === 1 ? "it" : "them"}`
  yield* rows(
    [
      ["range", rangeLine(verification)],
      ["rows", rowsLine(verification)],
      ["snapshots", snapshotLine(verification)],
      ...standingRows(verification),
      ["verdict", verdict === "partial" ? "not everything was looked at" : worst],
      ["took", tookLine(report.startMs)],
      ["next", ...report.next.map(style.bold)]
    ],
    style
  )
}

function* head({ args, look }: StreamReport, style: Style): Generator<string> {
  yield style.dim(`# journal-fold ${version} ${args.verb.name} ${shellWord(args.file)} --fold observer-log --stream ${shellWord(look.stream)}`)
}

function* rows(labelled: readonly LabelledRow[], style: Style): Generator<string> {
  for (const row of labelled) yield* rowLines(row, style)
}

const noun = (count: bigint, one: string): string => `${number(count)} ${count === 1n ? one : `${one}s`}`

function rangeLine({ coverage, head }: StreamVerification): string {
  if (coverage.last === undefined) return `no rows; the next one takes sequence ${number(head)}`
  const first = coverage.prunedBelow ?? 0n
  const pruned = first === 0n ? "" : "; rows below were deleted"
  return `${number(first)} to ${number(coverage.last)}; the next row takes ${number(head)}${pruned}`
}

function rowsLine({ coverage }: StreamVerification): string {
  const missing = coverage.missing === 0n ? "" : `, ${number(coverage.missing)} missing between them`
  return `${number(coverage.rows)}${missing}`
}

function snapshotLine({ coverage }: StreamVerification): string {
  return coverage.lastSnapshot === undefined ? number(coverage.snapshots) : `${number(coverage.snapshots)}, the last sound one at ${number(coverage.lastSnapshot)}`
}

function coveredLines(verification: StreamVerification): string[] {
  const { coverage } = verification
  const breaks = coverage.segments.length > 1 ? [`${number(coverage.folded)} of them folded, in ${coverage.segments.length} pieces`] : []
  return [
    `${noun(coverage.rows, "row")}${coverage.last === undefined ? "" : `, sequences ${number(coverage.prunedBelow ?? 0n)} to ${number(coverage.last)}`}, in one snapshot`,
    ...breaks,
    `${noun(coverage.snapshots, "snapshot")}${coverage.lastSnapshot === undefined ? "" : `, the last sound one at ${number(coverage.lastSnapshot)}`}`
  ]
}

const hintStates: Readonly<Record<HintState, string>> = {
  not_needed: "none, and none is needed: there is no snapshot",
  good: "names the latest snapshot",
  missing: "none, though there are snapshots: a restore folds every row",
  stale: "names an earlier snapshot: a restore reads more rows than it has to",
  too_high: "lies beyond the last row: a restore folds every row",
  wrong: "names no snapshot: a restore folds every row",
  unreadable: "names a row that cannot be read as a snapshot: a restore fails",
  disagrees: "names a snapshot that contradicts the rows before it, and a restore believes it"
}

/** Where the stream stands: hint, tail and state, as verifications and statuses have them. */
function standingRows({ hint, restore, state, stateDigest, storedHead, head }: StreamVerification): LabelledRow[] {
  const labelled: LabelledRow[] = []
  if (storedHead !== undefined && storedHead !== head) labelled.push(["stored head", `${number(storedHead)}, and the rows end at ${number(head)}`])
  if (hint !== undefined) {
    const stored = hint.stored === undefined ? "" : `${number(hint.stored)}: `
    labelled.push(["hint", ...wrapped(`${stored}${hintStates[hint.state]}`)])
  }
  if (restore !== undefined) labelled.push(["tail", ...wrapped(tailLine(restore))])
  if (state !== undefined) labelled.push(["state", `${counted(state.conversations, "conversation")}, ${number(state.armed)} armed`])
  if (stateDigest !== undefined) labelled.push(["digest", `${stateDigest.algorithm} ${stateDigest.value}`])
  return labelled
}

function tailLine({ error, rows: count, hint, foldedFrom, appendsSnapshot }: NonNullable<StreamVerification["restore"]>): string {
  if (error !== undefined) return `a restore would fail: ${error.code}: ${error.message}`
  const snapshot = hint === "used" ? "one snapshot and " : ""
  const appends = appendsSnapshot === true ? ", and append a snapshot" : ""
  return `a restore would read ${snapshot}${noun(count ?? 0n, "row")} from ${number(foldedFrom ?? 0n)} on${appends}`
}

function noteLines({ notes }: StreamVerification): string[] {
  return tableOf(notes.map(({ what, meaning, count, firstSeq }) => ({ cells: [number(count), what, `${meaning}; first: seq=${addressValue(String(firstSeq))}`] })))
}

/** The document of a verification or a status. Numbers of 64 bits are decimal texts. */
export function streamDocument({ args, look, startMs }: StreamReport, exitCode: number): Generator<string> {
  const { stream, verification, stoppedBy } = look
  const { verdict, findings, counts, coverage, head, storedHead, hint, restore, notChecked, notes, state, stateDigest } = verification
  const most = args.count("max-findings") ?? findings.length
  return documentPieces({
    format: "journal-fold/stream-report",
    version: 1,
    journalFold: version,
    command: args.verb.name,
    file: args.file,
    fold: "observer-log",
    stream,
    verdict,
    exitCode,
    stoppedBy,
    coverage,
    counts,
    head: String(head),
    storedHead: storedHead === undefined ? undefined : String(storedHead),
    hint,
    restore: restore && forecastOf(restore),
    notChecked,
    notes,
    state,
    stateDigest,
    elapsedMs: Math.round(performance.now() - startMs),
    peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
    findingCount: findings.length,
    findings: new List(findings.slice(0, most))
  })
}

/** A forecast whose error is spelled as errors are in documents. */
function forecastOf(restore: RestoreForecast): object {
  const { error, ...forecast } = JSON.parse(JSON.stringify(restore)) as { error?: { code: string; message: string; details: object } }
  return { ...forecast, ...(error && { error: { code: error.code, message: error.message, ...error.details } }) }
}
