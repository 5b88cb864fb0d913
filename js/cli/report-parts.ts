/** What reports about every journal have in common: their findings, verdict, counts, and what nobody looked at. */
import type { FindingClass, Verdict } from "../folds/deferred-clock/types.js"
import { findingLine, paintOf, type ShownFinding } from "./finding-line.js"
import { findingTable } from "./knowledge.js"
import { label, tableOf } from "./layout.js"
import type { StoppedBy } from "./look.js"
import { counted, megabytes, number, seconds } from "./numbers.js"
import type { Style } from "./terminal.js"

/** A row of a report: a label and lines. */
export type LabelledRow = readonly [name: string, ...lines: readonly string[]]

/** The lines of a row. One without lines is none. */
export function* rowLines([name, ...lines]: LabelledRow, style: Style): Generator<string> {
  for (const [place, line] of lines.entries()) yield `${style.dim(label(place === 0 ? name : ""))}${line}`
}

/** A line a finding, and one that says how many are not printed. */
export function* findingLines(findings: readonly ShownFinding[], most = Number.POSITIVE_INFINITY, style: Style): Generator<string> {
  let printed = 0
  for (const finding of findings) {
    if (printed === most) break
    printed += 1
    yield findingLine(finding, style)
  }
  const more = findings.length - printed
  if (more > 0) yield `# … and ${counted(more, "more finding")}, not printed (--max-findings ${most})`
}

/** What a verdict line is made of. */
export interface Judgement {
  readonly verdict: Verdict
  readonly findings: number
  /** What a verdict means, in a sentence. */
  readonly sentence: string
  readonly stoppedBy?: StoppedBy | undefined
  /** The limit that stopped the work, as it was typed. */
  readonly limit?: string | undefined
  /** In place of the verdict's word. */
  readonly word?: string | undefined
}

/** The line that says it in a word and a sentence. */
export function verdictLine({ verdict, findings, sentence, stoppedBy, limit, word = verdict.toUpperCase() }: Judgement, style: Style): string {
  const paint = { match: style.good, drift: style.warn, refused: style.bad, partial: style.warn }[verdict]
  const found = findings === 0 ? "" : `${counted(findings, "finding")}${verdict === "partial" ? " so far" : ""}: `
  const stopped = { signal: "stopped before the end", limit: `stopped before the end, after ${limit} s` }
  return `# ${style.bold(paint(word))}  ${found}${stoppedBy === undefined ? sentence : stopped[stoppedBy]}`
}

/** How many of what was found, in the order of a report, which is that of the table. */
export function countLines(counts: Readonly<Partial<Record<string, number>>>, style: Style): string[] {
  const rows = Object.entries(findingTable()).flatMap(([id, { class: findingClass, advice }]) => {
    const count = counts[id]
    return count === undefined ? [] : [{ cells: [number(count), id, findingClass as FindingClass, advice], paint: paintOf(findingClass, style) }]
  })
  return rows.length === 0 ? ["none"] : tableOf(rows)
}

/** What could not be checked; of work that was stopped, also what it did not come to. */
export function notCheckedLines(
  notChecked: readonly { readonly what: string; readonly meaning: string; readonly count: number | bigint }[],
  verdict: Verdict
): string[] {
  const rest = verdict === "partial" ? ["whatever comes after what is covered"] : []
  if (notChecked.length === 0) return verdict === "partial" ? rest : ["nothing"]
  return rest.concat(tableOf(notChecked.map(({ count, what, meaning }) => ({ cells: [number(count), what, meaning] }))))
}

/** How long it took, and how much memory. */
export function tookLine(startMs: number): string {
  return `${seconds(performance.now() - startMs)}, ${megabytes(process.resourceUsage().maxRSS * 1024)} of memory at most`
}
