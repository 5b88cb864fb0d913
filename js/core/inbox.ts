/**
 * Bulk data on its way into the module: written as bytes straight into memory that the module owns.
 *
 * Texts are written with `encodeInto`. An unpaired surrogate would become U+FFFD there, and two of them across a frame would join
 * to a new character; so text that is not well formed goes another way: in a JSON text as an escape, in a name as WTF-8.
 */
import { memoryBuffer, type Glue } from "./engine.js"
import { invalid } from "./errors.js"

export const encoder = new TextEncoder()

/** Most bytes that can be written at once. */
const maxBytes = 2 ** 31
/** UTF-16 units of a text from which on its bytes are counted first, rather than three of them allowed for each unit. */
export const countedUnits = 2 ** 24

/** Memory of at least `capacity` bytes, as a view that holds until the next call into the module. */
export function inbox(module: Glue, capacity: number): Uint8Array {
  if (capacity > maxBytes) throw invalid("too_large", `at most ${maxBytes} bytes at once`, capacity)
  const address = module.inbox(capacity)
  return new Uint8Array(memoryBuffer(module), address, capacity)
}

/** Writes a name in WTF-8 and says how many bytes it took. */
export function writeName(module: Glue, name: string): number {
  const into = inbox(module, name.length * 3)
  return encodeName(name, into)
}

/** Encodes a name in WTF-8. */
export function encodeName(name: string, into: Uint8Array): number {
  if (name.isWellFormed()) return encoder.encodeInto(name, into).written
  let at = 0
  for (const character of name) {
    const code = character.codePointAt(0) as number
    if (code >= 0xd800 && code <= 0xdfff) {
      into[at++] = 0xe0 | (code >> 12)
      into[at++] = 0x80 | ((code >> 6) & 0x3f)
      into[at++] = 0x80 | (code & 0x3f)
    } else {
      at += encoder.encodeInto(character, into.subarray(at)).written
    }
  }
  return at
}

/** Writes a JSON text and says how many bytes it took. */
export function writeJson(module: Glue, text: string): number {
  return writeText(module, wellFormedJson(text))
}

/** Writes any text as its UTF-8, unpaired surrogates as U+FFFD, and says how many bytes it took. */
export function writeText(module: Glue, text: string): number {
  return encoder.encodeInto(text, inbox(module, mostBytes(text))).written
}

function mostBytes(text: string): number {
  return text.length < countedUnits ? text.length * 3 : byteLength(text)
}

/** Writes several byte strings one behind another. */
export function writeBytes(module: Glue, parts: readonly Uint8Array[]): void {
  let length = 0
  for (const part of parts) length += part.byteLength
  const into = inbox(module, length)
  let at = 0
  for (const part of parts) {
    into.set(part, at)
    at += part.byteLength
  }
}

/** Writes 64-bit numbers. */
export function writeWords(module: Glue, words: BigUint64Array): void {
  const { buffer, byteOffset } = inbox(module, words.byteLength)
  new BigUint64Array(buffer, byteOffset, words.length).set(words)
}

const unpaired = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

/**
 * The same JSON text with every raw unpaired surrogate as an escape. It can only stand inside texts, where that is the same; but behind
 * a backslash it spoils an escape, and there a character stands in for it that spoils it too.
 */
export function wellFormedJson(text: string): string {
  if (text.isWellFormed()) return text
  return text.replace(unpaired, (unit, place: number) =>
    // Behind a backslash of its own a surrogate is no escape, and must not become one.
    isEscaped(text, place) ? "\ufffd" : `\\u${unit.charCodeAt(0).toString(16)}`
  )
}

function isEscaped(text: string, place: number): boolean {
  let backslashes = 0
  while (text[place - 1 - backslashes] === "\\") backslashes += 1
  return backslashes % 2 === 1
}

/** Bytes of a text's UTF-8, unpaired surrogates as U+FFFD. */
export function byteLength(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else {
      bytes += 2
      // A pair: two units, four bytes.
      if ((unit & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) at += 1
    }
  }
  return bytes
}
