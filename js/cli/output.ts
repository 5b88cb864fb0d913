/**
 * Standard output: lines go out in pieces and wait for the reader, so that a report of any length takes no memory.
 *
 * A reader that goes away (`| head`) ends the command quietly. Its exit code is then 141, as of any other program in a pipe: the report's
 * own code would say that somebody got the whole report.
 */
import type { Writable } from "node:stream"

/** The reader of the output is gone. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed"
}

/** The exit code of a command whose reader went away: 128 and SIGPIPE. */
export const closedCode = 141

const unitsAPiece = 1 << 16

/** A stream of lines. */
export class Output {
  readonly #stream: Writable

  constructor(stream: Writable) {
    this.#stream = stream
    // Every error comes to the write that met it; this only keeps it from ending the process as well.
    stream.on("error", () => {})
  }

  /** Writes pieces of text, gathered so that a line is not a system call. */
  async write(pieces: Iterable<string> | AsyncIterable<string>): Promise<void> {
    let gathered: string[] = []
    let units = 0
    const take = (piece: string): Promise<void> | undefined => {
      gathered.push(piece)
      units += piece.length
      return units >= unitsAPiece ? flush() : undefined
    }
    const flush = (): Promise<void> => {
      const text = gathered.join("")
      gathered = []
      units = 0
      return this.#send(text)
    }
    // A report of many lines does not wait for each of them.
    if (Symbol.asyncIterator in pieces) for await (const piece of pieces) await take(piece)
    else {
      for (const piece of pieces) {
        const sent = take(piece)
        if (sent !== undefined) await sent
      }
    }
    if (units > 0) await flush()
  }

  /** Writes lines, each with its line feed. */
  lines(lines: Iterable<string>): Promise<void> {
    return this.write(ended(lines))
  }

  #send(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(text, (error) => {
        if (error === null || error === undefined) resolve()
        else reject((error as NodeJS.ErrnoException).code === "EPIPE" ? new OutputClosed("the reader is gone") : error)
      })
    })
  }
}

function* ended(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`
}
