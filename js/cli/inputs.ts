/** What options name: lists of runs, an earlier report, names, times. Read once, before anything else is done. */
import { readFileSync } from "node:fs"
import { describe, JournalFoldError } from "../core/errors.js"
import { contentDigest } from "../digest.js"
import type { Head, VerifyOptions } from "../folds/deferred-clock/types.js"
import type { ScopeOptions } from "../hosts/scope.js"
import type { NameMapping } from "../hosts/sqlite/names.js"
import { optionError, usageError, type Arguments } from "./arguments.js"
import type { OptionName } from "./options.js"
import { reportFormat } from "./report-format.js"

/** The text of a file that an option names; `-` is standard input. */
export function fileText(name: OptionName, path: string): string {
  let bytes: Uint8Array
  try {
    bytes = readFileSync(path === "-" ? 0 : path)
  } catch (error) {
    throw new JournalFoldError("option_invalid", `--${name}: ${describe(path)} cannot be read: ${(error as Error).message}`, { found: path }, { cause: error })
  }
  try {
    // A byte order mark is taken away here.
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch (error) {
    throw new JournalFoldError("option_invalid", `--${name}: ${describe(path)} is not UTF-8`, { found: path }, { cause: error })
  }
}

function fileJson(name: OptionName, path: string): unknown {
  const text = fileText(name, path)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new JournalFoldError("option_invalid", `--${name}: ${describe(path)} is no JSON: ${(error as Error).message}`, { found: path }, { cause: error })
  }
}

/**
 * Run ids from a file: exactly as they stand there, one a line, whatever ends the lines, or as a JSON array, in which an id may have line
 * feeds. Empty lines are none.
 */
export function runList(name: OptionName, path: string): string[] {
  const text = fileText(name, path)
  if (!text.trimStart().startsWith("[")) return text.split(/\r?\n/).filter((id) => id !== "")
  let ids: unknown
  try {
    ids = JSON.parse(text)
  } catch {
    throw usageError(
      `--${name}: ${describe(path)} begins like a JSON array and is none; a list whose first id begins with [ has to be a JSON array`,
      "option_invalid"
    )
  }
  if (Array.isArray(ids) && ids.every((id) => typeof id === "string")) return ids as string[]
  throw usageError(`--${name}: expected run ids as texts in ${describe(path)}, found something else`, "option_invalid")
}

/** Which runs are asked for. */
export interface AskedScope extends ScopeOptions {
  readonly runs?: readonly string[] | "live"
  readonly except?: readonly string[]
}

/** The scope that options name. */
export function scopeFrom(args: Arguments): AskedScope {
  const listed = args.text("runs-from")
  const ids = [...args.texts("run"), ...(listed === undefined ? [] : runList("runs-from", listed))]
  if (listed !== undefined && ids.length === 0) throw usageError(`--runs-from: ${describe(listed)} names no run`, "option_invalid")
  if (args.has("live") && ids.length > 0) throw usageError("--live stands for runs of its own: leave out --run and --runs-from", "option_invalid")
  const excluded = args.text("except")
  return {
    ...(ids.length > 0 && { runs: ids }),
    ...(args.has("live") && { runs: "live" as const }),
    ...(excluded !== undefined && { except: runList("except", excluded) })
  }
}

/** How runs are judged, as options say. */
export function judgingFrom(args: Arguments): VerifyOptions & { readonly asOfMs: number } {
  const baseline = args.text("baseline")
  const maxUnexplained = args.count("max-unexplained")
  return {
    strict: args.has("strict"),
    asOfMs: timeOf(args.text("as-of")),
    ...(baseline !== undefined && { baseline: headsOf(baseline) }),
    ...(maxUnexplained !== undefined && { maxUnexplained }),
    ...(digestByModule(args) && { digest: contentDigest })
  }
}

/** Whether the module is to compute digests. */
export function digestByModule(args: Arguments): boolean {
  const who = args.text("digest")
  if (who !== undefined && who !== "host" && who !== "module") throw optionError("digest", "host or module", who)
  return who === "module"
}

function headsOf(path: string): Head[] {
  const report = fileJson("baseline", path) as { format?: unknown; heads?: unknown } | null
  if (report?.format !== reportFormat || !Array.isArray(report.heads)) {
    throw usageError(`--baseline: expected a report that verify --json printed, found something else in ${describe(path)}`, "option_invalid")
  }
  return report.heads as Head[]
}

/** The mapping of names that options give. */
export function namesFrom(args: Arguments): NameMapping | undefined {
  const path = args.text("names")
  if (path === undefined) return undefined
  const mapping = fileJson("names", path)
  if (typeof mapping === "object" && mapping !== null && !Array.isArray(mapping)) return mapping as NameMapping
  throw usageError(`--names: expected a JSON object in ${describe(path)}, found ${describe(mapping)}`, "option_invalid")
}

const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d))?$/

/** A time in ms since 1970. One without a zone would be another time on another machine; a date is its midnight in UTC. */
function timeOf(text: string | undefined): number {
  if (text === undefined) return Date.now()
  const ms = /^\d{1,16}$/.test(text) ? Number(text) : iso.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isSafeInteger(ms) && ms >= 0) return ms
  throw optionError("as-of", "ms since 1970, or ISO 8601 with a zone (2026-01-31T12:00:00Z)", text)
}

/** The one run that a verb is about: `RUN` or `--run ID`. */
export function oneRunFrom(args: Arguments): string | undefined {
  const ids = [...args.positionals.slice(1, 2), ...args.texts("run")]
  if (ids.length > 1) throw usageError(`${args.verb.name} is about one run, found ${ids.length}`)
  return ids[0]
}

/** How long to wait for a lock. */
export function busyTimeoutFrom(args: Arguments): { readonly busyTimeoutMs?: number } {
  const busyTimeoutMs = args.count("busy-timeout")
  return busyTimeoutMs === undefined ? {} : { busyTimeoutMs }
}

const folds = ["deferred-clock", "observer-log"] as const

/** The journals that the command line knows. */
export type FoldName = (typeof folds)[number]

/** Options about a stream's journal. Those of a verb that are not here are about runs. */
const streamOptions: readonly OptionName[] = ["fold", "stream", "up-to", "names", "max-findings", "max-seconds", "busy-timeout", "json", "no-color", "help"]

/** The journal that a command is about. Options that belong to another one are refused. */
export function foldFrom(args: Arguments, byDefault: FoldName = "deferred-clock"): FoldName {
  const name = args.text("fold") ?? byDefault
  const fold = folds.find((known) => known === name)
  if (fold === undefined) throw optionError("fold", folds.join(" or "), name)
  if (fold === "observer-log") {
    const other = args.verb.options.find((option) => args.has(option) && !streamOptions.includes(option))
    if (other !== undefined) throw usageError(`--${other} is about runs, and an observer log has none`, "option_invalid")
    if (args.positionals.length > 1) throw usageError("an observer log has no runs: name its stream with --stream NAME")
  } else if (args.has("stream")) {
    throw usageError("--stream names a stream of an observer log: add --fold observer-log", "option_invalid")
  }
  return fold
}
