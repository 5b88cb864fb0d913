/** One finding as one line: its id and class, where, and both values. The same line for the same finding, whatever else is found. */
import type { Finding, FindingClass } from "../folds/deferred-clock/types.js"
import { addressValue, shownRuns, shownValue } from "./escape.js"
import type { Paint, Style } from "./terminal.js"

/** A finding of whatever fold. */
export type ShownFinding = Omit<Finding, "id"> & { readonly id: string }

/** The line of a finding. */
export function findingLine(finding: ShownFinding, style: Style): string {
  const { runId, seq, offset, flowName, executionId, name, field, runs } = finding
  const parts = [paintOf(finding.class, style)(finding.id), `class=${finding.class}`]
  const address = { run: runId, seq, offset: offset?.toString(), flow: flowName, execution: executionId, name, field }
  for (const [part, text] of Object.entries(address)) {
    if (text !== undefined) parts.push(`${part}=${addressValue(text)}`)
  }
  if (runs !== undefined) parts.push(`runs=${shownRuns(runs)}`)
  // With a field, the values are a column's, which may hold anything.
  const typed = field !== undefined
  if (finding.expected !== undefined) parts.push(`expected=${shownValue(finding.expected, typed)}`)
  if (finding.found !== undefined) parts.push(`found=${shownValue(finding.found, typed)}`)
  return parts.join(" ")
}

/** The colour of a class: what a rebuild repairs, and what it does not. */
export function paintOf(findingClass: FindingClass, style: Style): Paint {
  return findingClass === "drift" ? style.warn : style.bad
}
