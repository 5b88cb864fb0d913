/** Commands to run next, as a shell takes them. */
import type { Arguments } from "./arguments.js"
import { shellWord } from "./escape.js"
import type { OptionName } from "./options.js"
import { verbs } from "./verbs.js"

/** Options that belong to one output, and not to the question. */
const ofThisTime: readonly OptionName[] = ["json", "no-color", "max-findings", "max-seconds", "out", "write"]

/** Another command about the same file, with those options of this one that it has too. */
export function commandAgain(args: Arguments, verb: string, words: readonly string[] = [], without: readonly OptionName[] = []): string {
  const has: readonly OptionName[] = verbs.find(({ name }) => name === verb)?.options ?? []
  const dropped = args.verb.options.filter((name) => !has.includes(name) || ofThisTime.includes(name) || without.includes(name))
  return command([verb, fileWord(args.file), ...words, ...args.again(dropped)])
}

/** A command from its words. */
export function command(words: readonly string[]): string {
  return ["journal-fold", ...words].map(shellWord).join(" ")
}

/** A file's name that no shell and no parser takes for an option. */
export function fileWord(path: string): string {
  return path.startsWith("-") ? `./${path}` : path
}
