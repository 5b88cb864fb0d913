/** `explain ID`: what a word of a report means, and what to do. */
import type { Context } from "./context.js"
import { documentPieces, List } from "./json.js"
import { allKnowledge, knowledgeOf, type Word } from "./knowledge.js"
import { broken } from "./layout.js"
import type { Style } from "./terminal.js"
import { exitCodes } from "./verbs.js"

/** Explains one word, or lists all. */
export async function explain({ args, output, style }: Context): Promise<number> {
  const [id] = args.positionals
  const known = id === undefined ? [] : knowledgeOf(id)
  const unknown = id !== undefined && known.length === 0
  if (args.has("json")) {
    const words = known.length > 0 ? known.map((word): [string, Word] => [id ?? "", word]) : allKnowledge()
    const items = words.map(([word, { kind, meaning, advice }]) => ({ id: word, kind, meaning, advice }))
    const error = unknown ? { code: "argument_invalid", message: unknownText(id), found: id } : undefined
    await output.write(documentPieces({ error, words: new List(items) }))
  } else if (known.length > 0 && id !== undefined) {
    await output.lines(known.flatMap((word, place) => [...(place > 0 ? [""] : []), ...wordLines(id, word, style)]))
  } else {
    if (unknown) process.stderr.write(`journal-fold: ${unknownText(id)}\n`)
    await output.lines(listLines(style))
  }
  return unknown ? exitCodes.couldNotLook : exitCodes.match
}

function unknownText(id: string): string {
  return `nothing is known of ${JSON.stringify(id)}; these are known`
}

function wordLines(id: string, { kind, meaning, advice }: Word, style: Style): string[] {
  return [`${style.bold(id)}: ${kind}`, ...paragraph("what it says", meaning, style), ...paragraph("what to do", advice, style)]
}

function paragraph(name: string, text: string, style: Style): string[] {
  return broken(text, 64).map((line, place) => `  ${style.dim((place === 0 ? name : "").padEnd(12))}  ${line}`)
}

function* listLines(style: Style): Generator<string> {
  const all = allKnowledge()
  const widest = Math.max(...all.map(([word]) => word.length))
  let last = ""
  for (const [word, { kind, meaning }] of all) {
    const [heading = ""] = kind.split(" of class")
    if (heading !== last) yield `${last === "" ? "" : "\n"}${style.bold(heading)}`
    last = heading
    for (const [place, line] of broken(meaning, 78 - widest - 2).entries()) yield `  ${(place === 0 ? word : "").padEnd(widest)}  ${line}`
  }
}
