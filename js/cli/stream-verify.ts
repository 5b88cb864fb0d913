/** `verify FILE --fold observer-log`: every row of a stream against those before it, its end, its hint. */
import type { Context } from "./context.js"
import { findingTable } from "./knowledge.js"
import { command, commandAgain } from "./next.js"
import { lookAtStream, type StreamLook } from "./stream.js"
import { streamDocument, streamReportLines, type StreamReport } from "./stream-report.js"
import { exitCodes } from "./verbs.js"
import type { Arguments } from "./arguments.js"

/** Verifies and reports. */
export async function verifyStream({ args, output, style, startMs }: Context): Promise<number> {
  const look = await lookAtStream(args, startMs)
  const code = exitCodes[look.verification.verdict]
  const report: StreamReport = { args, look, next: nextAfter(args, look), startMs }
  if (args.has("json")) await output.write(streamDocument(report, code))
  else await output.lines(streamReportLines(report, style))
  return code
}

function nextAfter(args: Arguments, { verification: { verdict, counts } }: StreamLook): string[] {
  if (verdict === "match") return []
  if (verdict === "partial") return [commandAgain(args, args.verb.name)]
  const first = Object.keys(findingTable()).find((id) => id in counts)
  return first === undefined ? [] : [command(["explain", first])]
}
