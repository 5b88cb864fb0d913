/** What was typed, checked: a verb, its files and options. Anything else is said with what would have been right. */
import { parseArgs, type ParseArgsConfig } from "node:util"
import { describe, JournalFoldError, type ErrorCode } from "../core/errors.js"
import { hideSecret } from "./secret.js"
import { optionSpecs, type OptionName } from "./options.js"
import { verbs, type VerbSpec } from "./verbs.js"

type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** A verb with its positionals and options. */
export class Arguments {
  readonly verb: VerbSpec
  readonly positionals: readonly string[]
  /** Where the store is: a file, or a URL with the password in it. To connect with, and never to be shown. */
  readonly store: string
  readonly #values: Values

  /** @param store the first positional as it was typed; those in `positionals` have no passwords */
  constructor(verb: VerbSpec, positionals: readonly string[], values: Values, store: string = positionals[0] ?? "") {
    this.verb = verb
    this.positionals = positionals
    this.store = store
    this.#values = values
  }

  /** The file or URL that everything is about, as it may be shown. */
  get file(): string {
    return this.positionals[0] ?? ""
  }

  /** Whether a switch is there. */
  has(name: OptionName): boolean {
    return this.#values[name] !== undefined
  }

  /** An option's value. */
  text(name: OptionName): string | undefined {
    const value = this.#values[name]
    return typeof value === "string" ? value : undefined
  }

  /** The values of a repeatable option. */
  texts(name: OptionName): readonly string[] {
    const value = this.#values[name]
    return Array.isArray(value) ? (value as readonly string[]) : []
  }

  /** An option as a whole number from 0 to 2^53-1. */
  count(name: OptionName): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (Number.isSafeInteger(value)) return value
    throw optionError(name, "a whole number", text)
  }

  /** The words that give the same options again, without those named. */
  again(without: readonly OptionName[] = []): string[] {
    const words: string[] = []
    for (const name of this.verb.options) {
      const value = this.#values[name]
      if (value === undefined || without.includes(name)) continue
      if (value === true) words.push(`--${name}`)
      for (const text of typeof value === "string" ? [value] : Array.isArray(value) ? (value as string[]) : []) {
        // A value that begins with a dash would be taken for an option.
        if (text.startsWith("-") && text !== "-") words.push(`--${name}=${text}`)
        else words.push(`--${name}`, text)
      }
    }
    return words
  }
}

/** A usage error: what was expected of an option, and what it was given. */
export function optionError(name: OptionName, expected: string, found: string): JournalFoldError {
  return new JournalFoldError("option_invalid", `--${name}: expected ${expected}, found ${describe(found)}`, {
    expected: `--${name} as ${expected}`,
    found
  })
}

/** A usage error of another kind. */
export function usageError(message: string, code: ErrorCode = "argument_invalid"): JournalFoldError {
  return new JournalFoldError(code, message)
}

/** What was asked for. */
export type Request =
  | { readonly kind: "help"; readonly verb?: VerbSpec }
  | { readonly kind: "version" }
  | { readonly kind: "nothing" }
  | { readonly kind: "verb"; readonly args: Arguments }

/** Reads a command line. Whoever gets to see a word, in a report or in an error, sees it without a password. */
export function requestOf(typed: readonly string[]): Request {
  const words = typed.map(hideSecret)
  const [first, ...rest] = words
  if (first === undefined) return { kind: "nothing" }
  if (first === "--help" || first === "-h") return { kind: "help" }
  if (first === "help") return rest[0] === undefined ? { kind: "help" } : { kind: "help", verb: verbOf(rest[0]) }
  if (first === "--version" || first === "-V" || first === "version") return { kind: "version" }
  const verb = verbOf(first)
  const { values, positionals } = parsed(verb, rest)
  if (values["help"] === true) return { kind: "help", verb }
  const [fewest, most] = verb.positionals
  if (positionals.length < fewest) throw usageError(`${verb.name} needs ${verb.usage.join(" ")}`)
  if (positionals.length > most) {
    throw usageError(`${verb.name} takes ${verb.usage.join(" ")}, found one more: ${describe(positionals[most])}`)
  }
  const args = new Arguments(verb, positionals, values, typed[words.indexOf(positionals[0] ?? "", 1)])
  // Before anything is done, not when the number is needed.
  for (const name of verb.options) if (optionSpecs[name].isCount === true) args.count(name)
  return { kind: "verb", args }
}

function verbOf(word: string): VerbSpec {
  const verb = verbs.find(({ name }) => name === word)
  if (verb !== undefined) return verb
  const names = verbs.map(({ name }) => name).join(", ")
  throw usageError(`expected one of ${names}, found ${describe(word)}`)
}

function parsed(verb: VerbSpec, words: readonly string[]): { values: Values; positionals: string[] } {
  const options = Object.fromEntries(
    verb.options.map((name) => {
      const { value, repeatable } = optionSpecs[name]
      return [name, { type: value === undefined ? "boolean" : "string", multiple: repeatable === true } as const]
    })
  ) satisfies ParseArgsConfig["options"]
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: { ...options, ...("help" in options && { help: { type: "boolean", short: "h" } as const }) },
      allowPositionals: true,
      strict: true
    })
    return { values: values as Values, positionals }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code?.startsWith("ERR_PARSE_ARGS") !== true) throw error
    // Its first sentence says it; the rest is advice for programs that take options of unknown names.
    const [said = message] = message.split(/\. |\n/)
    throw usageError(`${verb.name}: ${said}`, code === "ERR_PARSE_ARGS_UNKNOWN_OPTION" ? "option_unknown" : "option_invalid")
  }
}
