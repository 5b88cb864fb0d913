/** What a verb gets: what was asked, and where to write. */
import type { Arguments } from "./arguments.js"
import type { Output } from "./output.js"
import type { Style } from "./terminal.js"

/** The surroundings of one command. */
export interface Context {
  readonly args: Arguments
  readonly output: Output
  readonly style: Style
  /** When the command began, by `performance.now()`. */
  readonly startMs: number
}
