/** `plan FILE [--out PLAN]`: what to write so that the tables say what the journal says. */
import { shellWord } from "./escape.js"
import type { Context } from "./context.js"
import { namesFrom, scopeFrom } from "./inputs.js"
import { List, reportDocument, Spelled } from "./json.js"
import { look } from "./look.js"
import { commandAgain, fileWord } from "./next.js"
import { writePlanFile } from "./plan-file.js"
import { reportLines, type Report } from "./report.js"
import { codeOf, nextAfter } from "./verify.js"

/** Options that a plan's file carries along. */
export const carried = ["run", "runs-from", "live", "except", "names"] as const

/** Plans, writes the plan to its file, and reports. */
export async function plan({ args, output, style, startMs }: Context): Promise<number> {
  const scope = scopeFrom(args)
  const names = namesFrom(args)
  const out = args.text("out")
  const seen = await look(args, startMs, { scope, names, heads: args.has("json") })
  const { plan: made, verdict } = seen.verification
  // A plan is for the store: the rows of an exported run are not where they could be written.
  const written = out !== undefined && made !== undefined && seen.kind === "store"
  if (written) writePlanFile(out, { scope, ...(names && { names }), asOfMs: seen.asOfMs, plan: made })
  const said = written ? `written to ${shellWord(out)}` : out === undefined ? undefined : "not written"
  const next = verdict === "drift" && written ? [commandAgain(args, "apply", [fileWord(out)], carried), commandAgain(args, "apply", [fileWord(out), "--write"], carried)] : nextAfter(args, seen)
  const report: Report = {
    args,
    look: seen,
    outcome: { rows: said === undefined ? [] : [["plan", made === undefined ? said : `${said}, digest ${made.digest}`]], next },
    startMs
  }
  const code = codeOf(verdict)
  if (args.has("json")) {
    const pages = made?.pages.map(({ table, op, rows }) => new Spelled(`{"table":"${table}","op":"${op}","rows":${rows}}`))
    await output.write(reportDocument(report, code, { planFile: written ? out : undefined, pages: pages && new List(pages) }))
  } else await output.lines(reportLines(report, style))
  return code
}
