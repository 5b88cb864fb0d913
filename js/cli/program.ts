/** The whole of a command: reads what was typed, does it, and turns whatever happens into an exit code. Nothing here ends the process. */
import { isJournalFoldError, type ErrorCode } from "../core/errors.js"
import { version } from "../version.js"
import { requestOf, type Request } from "./arguments.js"
import { printable } from "./escape.js"
import { helpLines, verbHelpLines } from "./help.js"
import { errorDocument } from "./json.js"
import { closedCode, Output, OutputClosed } from "./output.js"
import { styleFor } from "./terminal.js"
import { exitCodes, verbs } from "./verbs.js"

/** Errors that refuse to write: the store could be looked at, and what was asked is not to be done to it. */
const refusals: readonly ErrorCode[] = [
  "fold_incomplete",
  "plan_refused",
  "stale_plan",
  "deletes_pending",
  "clears_consumption",
  "row_not_writable",
  "rows_changed_mismatch"
]

/** Errors about the command line. */
const usageCodes: readonly ErrorCode[] = ["argument_invalid", "option_unknown", "option_invalid"]

/** Does what `words` ask for and gives the exit code. */
export async function program(words: readonly string[]): Promise<number> {
  const startMs = performance.now()
  const output = new Output(process.stdout)
  // Progress is only for show: a terminal that is gone is no reason to stop.
  process.stderr.on("error", () => {})
  const asJson = words.slice(0, words.includes("--") ? words.indexOf("--") : words.length).includes("--json")
  const noColor = words.includes("--no-color")
  try {
    const request = requestOf(words)
    const style = styleFor(process.stdout, noColor, process.env)
    if (request.kind === "verb") {
      const work = await request.args.verb.load()
      return await work({ args: request.args, output, style, startMs })
    }
    return await other(request, output)
  } catch (error) {
    if (error instanceof OutputClosed) return closedCode
    return failed(error, words, asJson ? output : undefined)
  }
}

async function other(request: Exclude<Request, { kind: "verb" }>, output: Output): Promise<number> {
  const style = styleFor(process.stdout, false, process.env)
  if (request.kind === "version") {
    await output.lines([`journal-fold ${version}`])
    return exitCodes.match
  }
  if (request.kind === "nothing") {
    process.stderr.write(`${helpLines(styleFor(process.stderr, false, process.env)).join("\n")}\n`)
    return exitCodes.couldNotLook
  }
  await output.lines(request.verb === undefined ? helpLines(style) : verbHelpLines(request.verb, style))
  return exitCodes.match
}

function codeOfError(code: ErrorCode): number {
  if (code === "aborted") return exitCodes.partial
  return refusals.includes(code) ? exitCodes.refused : exitCodes.couldNotLook
}

/** Says what went wrong: on standard output as JSON when that was asked for, else on standard error. */
async function failed(error: unknown, words: readonly string[], json: Output | undefined): Promise<number> {
  const code = isJournalFoldError(error) ? codeOfError(error.code) : exitCodes.couldNotLook
  try {
    if (json !== undefined) {
      await json.write(errorDocument(error))
      return code
    }
  } catch (other) {
    if (other instanceof OutputClosed) return closedCode
  }
  for (const line of await errorLines(error, words)) process.stderr.write(`${line}\n`)
  return code
}

async function errorLines(error: unknown, words: readonly string[]): Promise<string[]> {
  if (!isJournalFoldError(error)) {
    // A bug of ours, or a system that refuses: the stack says where.
    const { code, message, stack } = error as NodeJS.ErrnoException
    if (code !== undefined) return [`journal-fold: ${printable(message.startsWith(code) ? message : `${code}: ${message}`)}`]
    return [`journal-fold: unexpected: ${printable(String(message ?? error))}`, ...(stack?.split("\n").slice(1).map(printable) ?? [])]
  }
  const { errorAdvice } = await import("./knowledge.js")
  // Advice about the command line names the verb that was meant.
  const verb = verbs.find(({ name }) => name === words[0])
  const help = verb === undefined ? "journal-fold --help" : `journal-fold ${verb.name} --help`
  const advice = usageCodes.includes(error.code) ? `see ${help}` : errorAdvice[error.code]
  return [`journal-fold: ${error.code}: ${printable(error.message)}`, ...(advice === undefined ? [] : [`  what to do: ${advice}`])]
}
