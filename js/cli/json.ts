/**
 * JSON documents: one on standard output, whatever happens. Members stand in a fixed order; long lists have an item a line, so that
 * two documents can be compared line by line, and are written as they go. Everything invisible in them is an escape.
 */
import { isFoldIncomplete, isJournalFoldError } from "../core/errors.js"
import { visibleJson } from "../journal-file/format.js"
import { version } from "../version.js"
import { changeCounts } from "./changes.js"
import { reportFormat, reportFormatVersion } from "./report-format.js"
import type { Report } from "./report.js"

/** A list that is written item by item. */
export class List {
  readonly items: Iterable<unknown>

  constructor(items: Iterable<unknown>) {
    this.items = items
  }
}

/** A text that is JSON already. */
export class Spelled {
  readonly json: string

  constructor(json: string) {
    this.json = json
  }
}

/** A document, piece by piece. Members that are undefined are left out. */
export function* documentPieces(members: Readonly<Record<string, unknown>>): Generator<string> {
  let before = "{\n  "
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue
    yield `${before}${JSON.stringify(name)}: `
    before = ",\n  "
    if (value instanceof List) yield* listPieces(value.items)
    else yield spelled(value)
  }
  yield "\n}\n"
}

function spelled(value: unknown): string {
  return visibleJson(value instanceof Spelled ? value.json : JSON.stringify(value))
}

function* listPieces(items: Iterable<unknown>): Generator<string> {
  let before = "[\n    "
  for (const item of items) {
    yield before
    yield spelled(item)
    before = ",\n    "
  }
  yield before.startsWith("[") ? "[]" : "\n  ]"
}

/** A report's document. What verify gives serves as a later `--baseline`. */
export function reportDocument({ args, look, startMs }: Report, exitCode: number, more: Readonly<Record<string, unknown>> = {}): Generator<string> {
  const { verification, asOfMs, kind } = look
  const { verdict, coverage, rebuilt, counts, findings, plan, ignored, notChecked, notes, stateDigest, digestFunction, heads } = verification
  const most = args.count("max-findings") ?? findings.length
  return documentPieces({
    format: reportFormat,
    version: reportFormatVersion,
    journalFold: version,
    command: args.verb.name,
    file: args.file,
    source: kind,
    verdict,
    exitCode,
    stoppedBy: look.stoppedBy,
    strict: args.has("strict"),
    asOfMs,
    coverage,
    rebuilt,
    counts,
    plan: plan && { digest: plan.digest, rows: plan.rows, unstorable: plan.unstorable, changes: changeCounts(plan), effects: plan.effects },
    ...more,
    notChecked,
    ignored,
    notes,
    stateDigest,
    digestFunction,
    elapsedMs: Math.round(performance.now() - startMs),
    peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
    findingCount: findings.length,
    findings: new List(most < findings.length ? findings.slice(0, most) : findings),
    heads: heads && new List(heads)
  })
}

/** An error's document. */
export function errorDocument(error: unknown): Generator<string> {
  if (isJournalFoldError(error)) {
    const { code, message, details } = error
    return documentPieces({ error: { code, message, ...details, ...(isFoldIncomplete(error) && { unjoined: error.unjoined }) } })
  }
  const { code, message } = error as NodeJS.ErrnoException
  return documentPieces({ error: { code: code ?? "unexpected", message: message ?? String(error) } })
}
