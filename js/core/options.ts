/** Options: unknown names are refused, because a misspelt option that does nothing is the worst kind. */
import { invalid, JournalFoldError } from "./errors.js"

/** Checks that `options` is absent or an object with none but the `known` names, and gives it. */
export function checkOptions<Options extends object>(
  options: Options | undefined,
  known: readonly (keyof Options & string)[]
): Options {
  if (options === undefined) return {} as Options
  if (typeof options !== "object" || options === null) throw invalid("option_invalid", "an object of options", options)
  for (const name of Object.keys(options)) {
    if (!(known as readonly string[]).includes(name)) {
      throw new JournalFoldError("option_unknown", `expected one of the options ${known.join(", ")}, found ${name}`, {
        expected: known.join(", "),
        found: name
      })
    }
  }
  return options
}

/** Checks that an option is a whole number from 0 to 2^53-1, or absent. */
export function checkCount(name: string, value: number | undefined): number | undefined {
  if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0)) {
    throw invalid("option_invalid", `${name} as a whole number from 0 to 2^53-1`, value)
  }
  return value
}
