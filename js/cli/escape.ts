/**
 * How names and values are shown. The rule: whatever a store holds, it can neither begin a line, nor hide, nor move what stands
 * beside it. Everything unprintable is an escape, so that what is read is what is there.
 */

// Controls, formats (bidi, zero width), surrogates without a partner, private and unassigned characters; line and paragraph
// separators; what has no shape of its own (variation selectors, fillers, the blank Braille pattern); spaces that are not the space.
const unprintable = /[\p{C}\p{Zl}\p{Zp}\p{DI}\u2800]|(?! )\p{Zs}/gu
const anyUnprintable = new RegExp(unprintable, "u")

/** A value that needs no quotes. */
const bare = /^[A-Za-z0-9._:/@-]+$/
/** The same inside quotes, where other scripts do no harm. */
const bareWithin = /^[^\s"\\=,[\]{}]+$/u
/** A text that would pass for a number, a truth value or null. */
const literal = /^(?:null|true|false|-?\d[\d.eE+-]*)$/

function escaped(character: string): string {
  let text = ""
  for (let at = 0; at < character.length; at++) text += `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`
  return text
}

/** A message with everything unprintable escaped. */
export function printable(text: string): string {
  return text.replace(unprintable, escaped)
}

/** A text as a JSON string in which nothing is unprintable. */
export function quotedText(text: string): string {
  const quoted = printable(JSON.stringify(text))
  // A mark at the beginning would sit on the quote.
  return quoted.replace(/^"(\p{M})/u, (_, mark: string) => `"${escaped(mark)}`)
}

/** A part of an address, which is always a text: bare, or a JSON string. */
export function addressValue(text: string): string {
  return bare.test(text) ? text : quotedText(text)
}

/**
 * A value: bare, or a JSON string. With `typed`, a text that looks like a number or null has quotes, so that a column that holds the text
 * "5" does not look like one that holds 5. Of an object or a list, the string holds `name=value` or values with spaces between.
 */
export function shownValue(value: unknown, typed: boolean): string {
  if (typeof value === "string") return bare.test(value) && !(typed && literal.test(value)) ? value : quotedText(value)
  if (typeof value === "object" && value !== null) {
    const within = inner(value)
    return bare.test(within) ? within : quotedText(within)
  }
  return String(value)
}

function inner(value: unknown): string {
  if (Array.isArray(value)) return value.map(inner).join(" ")
  if (typeof value === "object" && value !== null) {
    return Object.entries(value)
      .map(([name, member]) => `${name}=${inner(member)}`)
      .join(" ")
  }
  if (typeof value !== "string") return String(value)
  return bareWithin.test(value) && !literal.test(value) && !anyUnprintable.test(value) ? value : JSON.stringify(value)
}

/** A list of run ids as one value: ids with spaces between, each bare or a JSON string. */
export function shownRuns(runs: readonly string[]): string {
  const within = runs.map((run) => (bareWithin.test(run) && !anyUnprintable.test(run) ? run : JSON.stringify(run))).join(" ")
  return bare.test(within) ? within : quotedText(within)
}

const shellSafe = /^[A-Za-z0-9_./:@%+,=-]+$/

/** A word for a shell: as it is, in single quotes, or with everything unprintable as `$'\x…'`. */
export function shellWord(word: string): string {
  if (shellSafe.test(word)) return word
  if (!anyUnprintable.test(word)) return `'${word.replaceAll("'", "'\\''")}'`
  const bytes = (character: string): string => [...new TextEncoder().encode(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")
  return `$'${word.replace(/[\\']/g, "\\$&").replace(unprintable, bytes)}'`
}
