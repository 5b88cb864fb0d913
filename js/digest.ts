/** `journal-fold/digest`: the digest that a journal records of stored text. The engine needs the same function when it writes. */
import { call, init, type ModuleSource } from "./core/engine.js"
import { invalid } from "./core/errors.js"
import { writeBytes, writeText } from "./core/inbox.js"

export { init, type ModuleSource }

/** A function that gives the lower-case hexadecimal SHA-256 of a text's UTF-8, as {@link contentDigest} does. */
export type DigestFunction = (text: string | Uint8Array) => string

/**
 * Lower-case hexadecimal SHA-256 of the text's UTF-8 bytes: 64 characters. An unpaired surrogate counts as U+FFFD, as in every
 * encoder. Bytes are taken as they are.
 */
export function contentDigest(text: string | Uint8Array): string {
  if (typeof text !== "string" && !(text instanceof Uint8Array)) {
    throw invalid("argument_invalid", "a text or its bytes", text)
  }
  return call((module) => {
    if (typeof text === "string") return module.content_digest(writeText(module, text))
    writeBytes(module, [text])
    return module.content_digest(text.byteLength)
  })
}

/** Whether `hex` is the digest of `text`. Exactly: 64 lower-case digits and nothing else. */
export function verifyDigest(text: string | Uint8Array, hex: string): boolean {
  if (typeof hex !== "string") throw invalid("argument_invalid", "a digest as text", hex)
  return contentDigest(text) === hex
}
