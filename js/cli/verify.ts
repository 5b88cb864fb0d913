/** `verify FILE`: what the tables say beside what the journal says. */
import type { Verdict } from "../folds/deferred-clock/types.js"
import type { Arguments } from "./arguments.js"
import type { Context } from "./context.js"
import { reportDocument } from "./json.js"
import { foldFrom } from "./inputs.js"
import { look, type Look } from "./look.js"
import { command, commandAgain } from "./next.js"
import { findingTable } from "./knowledge.js"
import { reportLines, type Report } from "./report.js"
import { exitCodes } from "./verbs.js"

/** The exit code of a verdict. */
export function codeOf(verdict: Verdict): number {
  return exitCodes[verdict]
}

/** Verifies and reports. */
export async function verify(context: Context): Promise<number> {
  const { args, output, style, startMs } = context
  if (foldFrom(args) === "observer-log") return (await import("./stream-verify.js")).verifyStream(context)
  const seen = await look(args, startMs, { heads: args.has("json") })
  const code = codeOf(seen.verification.verdict)
  const report: Report = { args, look: seen, outcome: { next: nextAfter(args, seen) }, startMs }
  if (args.has("json")) await output.write(reportDocument(report, code))
  else await output.lines(reportLines(report, style))
  return code
}

/** What to do after a look: nothing, plan, explain, or look again. */
export function nextAfter(args: Arguments, { kind, verification }: Look): string[] {
  const { verdict, counts } = verification
  if (verdict === "match") return []
  if (verdict === "partial") return [commandAgain(args, args.verb.name)]
  if (verdict === "drift" && kind === "store") return [commandAgain(args, "plan", ["--out", "plan.json"])]
  // The first in a report's order is what to look into first.
  const first = Object.keys(findingTable()).find((id) => id in counts)
  return first === undefined ? [] : [command(["explain", first])]
}
