/** The module's JSON reader and writer, held against `JSON.parse` and `JSON.stringify` themselves. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { copyOfPackage, load, removeCopies, type Engine, type TestGlue } from "./copies.js"

type Inbox = typeof import("../../pkg/core/inbox.js")

afterAll(removeCopies)

let engine: Engine
let inbox: Inbox

beforeAll(async () => {
  const folder = copyOfPackage({ testModule: true })
  engine = await load<Engine>(folder, "core/engine.js")
  inbox = await load<Inbox>(folder, "core/inbox.js")
})

/** What the module makes of a text: it is read and written again, members in order and with repeats; `undefined` if refused. */
function rewritten(text: string): string | undefined {
  return refusedOr(() => engine.call((glue) => (glue as unknown as TestGlue).test_json(inbox.writeJson(glue, text))))
}

function rewrittenBytes(bytes: Uint8Array): string | undefined {
  return refusedOr(() =>
    engine.call((glue) => {
      inbox.writeBytes(glue, [bytes])
      return (glue as unknown as TestGlue).test_json(bytes.byteLength)
    })
  )
}

function refusedOr(work: () => string): string | undefined {
  try {
    return work()
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === "payload_not_json" || code === "text_not_utf8") return undefined
    throw error
  }
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** Fails unless the module's verdict and values are those of `JSON.parse`. */
function agree(text: string): void {
  const theirs = parsed(text)
  const ours = rewritten(text)
  if (theirs === undefined) {
    expect(ours, JSON.stringify(text)).toBeUndefined()
    return
  }
  expect(ours, JSON.stringify(text)).toBeDefined()
  // Through JSON.parse once more, which puts members in its own order and drops repeats.
  expect(JSON.stringify(JSON.parse(ours as string))).toBe(JSON.stringify(theirs.value))
}

describe("the reader judges as JSON.parse", () => {
  it("on generated values, whose text comes out byte for byte", () => {
    const value = fc.json({ stringUnit: "binary", maxDepth: 6 })
    fc.assert(
      fc.property(value, (text) => {
        agree(text)
        const normal = JSON.stringify(JSON.parse(text))
        // Members whose names are whole numbers are put first by an object, so texts with those are compared by value alone.
        if (!/"\d+":/.test(normal)) expect(rewritten(normal)).toBe(normal)
      }),
      { numRuns: 3000 }
    )
  })

  it("on texts with something cut, doubled, exchanged or put in", () => {
    const damage = fc.tuple(fc.json({ stringUnit: "binary" }), fc.nat(), fc.constantFrom(..."{}[]:,\"\\0123456789-+.eEtfnu \n\t\u0000\u001f\u00a0\ufeff\ud800"), fc.nat(2))
    fc.assert(
      fc.property(damage, ([text, place, character, kind]) => {
        const at = place % (text.length + 1)
        agree(text.slice(0, at) + (kind === 1 ? "" : character) + text.slice(kind === 0 ? at : at + 1))
      }),
      { numRuns: 6000 }
    )
  })

  it("on any text at all", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), agree), { numRuns: 2000 })
  })

  it("on numbers of every form", () => {
    const digits = fc.stringMatching(/^-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?$/)
    fc.assert(fc.property(digits, agree), { numRuns: 5000 })
    for (const text of ["1e400", "-1e400", "1e-400", "-0", "-0.0", "5e0", "50e-1", "9007199254740991.4", "9007199254740993", "01", "1.", ".5", "+1", "1e", "0x1"]) agree(text)
  })

  it("on what has tripped readers", () => {
    for (const text of [
      "", " ", "\ufeff{}", "{\"a\":1,\"a\":2}", "{\"\\u0061\":1,\"a\":2}", "{\"__proto__\":{\"x\":1}}", "\"\\ud800\"", "\"\\udc00\\ud800\"",
      "\"\\ud83d\\ude80\"", "\"\ud800\"", "\"\u2028\"", "\"\u007f\"", "\"\t\"", "[1,]", "{\"a\":1,}", "[,1]", "{,}", "nul", "truee", "[1]x", "\u00a01",
      "1},{\"x\":2", "\"\\u00zz\"", "\"\\x41\"", "'a'", "[NaN]", "[Infinity]", "/**/1"
    ]) agree(text)
  })

  it("however deep", () => {
    for (const depth of [63, 64, 65, 128, 100_000]) {
      const sound = "[".repeat(depth) + "]".repeat(depth)
      expect(judged(sound)).toBe(true)
      expect(judged(sound.slice(0, -1))).toBe(false)
      const objects = '{"a":'.repeat(depth) + "1" + "}".repeat(depth)
      expect(judged(objects)).toBe(true)
      expect(judged(`${objects}}`)).toBe(false)
    }
  })
})

/** The verdict alone: writing a text again costs its depth times its length. */
function judged(text: string): boolean {
  const verdict = refusedOr(() =>
    engine.call((glue) => (glue as unknown as TestGlue).test_json_member(inbox.writeJson(glue, text), 0) ?? "none")
  )
  return verdict !== undefined
}

describe("a member", () => {
  it("is the last of those with its name, however it is spelled", () => {
    const name = fc.constantFrom("a", "b", "__proto__", "\u00e9", "a\"b", "\ud800")
    const spelled = fc.tuple(name, fc.boolean(), fc.integer())
    fc.assert(
      fc.property(fc.array(spelled, { maxLength: 8 }), name, (members, wanted) => {
        const escape = (text: string): string => `"${[...text].map((c) => `\\u${(c.codePointAt(0) as number).toString(16).padStart(4, "0")}`).join("")}"`
        const text = `{${members.map(([key, escaped, value]) => `${escaped ? escape(key) : JSON.stringify(key)}:${value}`).join(",")}}`
        const found = engine.call((glue) => {
          const json = new TextEncoder().encode(inbox.wellFormedJson(text))
          const into = new Uint8Array(32)
          const nameBytes = into.subarray(0, inbox.encodeName(wanted, into))
          inbox.writeBytes(glue, [json, nameBytes])
          return (glue as unknown as TestGlue).test_json_member(json.byteLength, nameBytes.byteLength)
        })
        const theirs = JSON.parse(text) as Record<string, unknown>
        expect(found).toBe(Object.hasOwn(theirs, wanted) ? JSON.stringify(theirs[wanted]) : undefined)
      }),
      { numRuns: 2000 }
    )
  })
})

const suite = process.env["JSON_TEST_SUITE"] ?? new URL("../../../shared/data/json-test-suite/test_parsing/", import.meta.url).pathname
describe.skipIf(!existsSync(suite))("the files of others", () => {
  const files = existsSync(suite) ? readdirSync(suite) : []

  it("as text get the verdict of JSON.parse, every one", () => {
    expect(files.length).toBeGreaterThan(300)
    for (const file of files) {
      const text = readFileSync(`${suite}/${file}`).toString("utf8")
      expect(rewritten(text) !== undefined, file).toBe(parsed(text) !== undefined)
    }
  })

  it("as bytes are refused unless they are UTF-8, and else get the same verdict", () => {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
    let invalid = 0
    for (const file of files) {
      const bytes = readFileSync(`${suite}/${file}`)
      let text: string | undefined
      try {
        text = decoder.decode(bytes)
      } catch {
        invalid += 1
      }
      expect(rewrittenBytes(bytes) !== undefined, file).toBe(text !== undefined && parsed(text) !== undefined)
    }
    expect(invalid).toBeGreaterThan(5)
  })
})
