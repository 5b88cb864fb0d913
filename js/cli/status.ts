/** `status FILE`: where a stream of an observer log stands. */
import { usageError } from "./arguments.js"
import type { Context } from "./context.js"
import { foldFrom } from "./inputs.js"
import { commandAgain } from "./next.js"
import { lookAtStream } from "./stream.js"
import { statusLines, streamDocument, type StreamReport } from "./stream-report.js"
import { exitCodes } from "./verbs.js"

/** Says where a stream stands. What is wrong with it is told in one line, and by `verify`; the exit code is that of a look that was had. */
export async function status({ args, output, style, startMs }: Context): Promise<number> {
  if (foldFrom(args, "observer-log") !== "observer-log") throw usageError("status is about a stream of an observer log", "option_invalid")
  const look = await lookAtStream(args, startMs)
  const { verdict } = look.verification
  const code = verdict === "partial" ? exitCodes.partial : exitCodes.match
  const words = ["--fold", "observer-log", "--stream", look.stream]
  const next = verdict === "match" || verdict === "partial" ? [] : [commandAgain(args, "verify", words, ["fold", "stream"])]
  const report: StreamReport = { args, look, next, startMs }
  if (args.has("json")) await output.write(streamDocument(report, code))
  else await output.lines(statusLines(report, style))
  return code
}
