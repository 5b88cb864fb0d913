/** How far the work is: one line on standard error, only on a terminal, gone at the end. */
import { number, seconds } from "./numbers.js"

/** How far some work is. */
export interface Step {
  readonly entries: number
  readonly total?: number
  /** What is counted. Default: entries. */
  readonly unit?: string
}

interface Screen {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** Milliseconds between two looks. */
const everyMs = 100

/** A line that is drawn over and over. */
export class Progress {
  readonly #screen: Screen
  readonly #startMs = performance.now()
  #drawnMs = Number.NEGATIVE_INFINITY
  #drawn = false

  constructor(screen: Screen) {
    this.#screen = screen
  }

  update(step: Step): void {
    if (this.#screen.isTTY !== true) return
    const now = performance.now()
    // The last look of all stays on the screen longest, while rows are compared and findings gathered.
    if (now - this.#drawnMs < everyMs && step.entries !== step.total) return
    this.#drawnMs = now
    this.#draw(progressText(step, now - this.#startMs))
  }

  /** Shows something else in its place. */
  say(text: string): void {
    if (this.#screen.isTTY === true) this.#draw(text)
  }

  /** Takes the line away. */
  erase(): void {
    if (this.#drawn) this.#screen.write("\r\x1b[K")
    this.#drawn = false
  }

  #draw(text: string): void {
    // A line that wraps could not be taken away again.
    this.#screen.write(`\r${text.slice(0, Math.max(0, (this.#screen.columns ?? 80) - 1))}\x1b[K`)
    this.#drawn = true
  }
}

/** The line for one look: how many of how many, how fast, and how long yet. */
export function progressText({ entries, total, unit = "entries" }: Step, elapsedMs: number): string {
  const aSecond = elapsedMs > 0 ? (entries * 1000) / elapsedMs : 0
  const rate = `${number(Math.round(aSecond))} a second`
  if (total === undefined) return `${number(entries)} ${unit}, ${rate}`
  const done = `${number(entries)} of ${number(total)} ${unit}`
  if (entries >= total) return `${done}, comparing rows`
  const percent = `${Math.floor((entries * 100) / total)}%`
  return aSecond === 0 ? `${done}, ${percent}` : `${done}, ${percent}, ${rate}, ${seconds(((total - entries) * 1000) / aSecond)} left`
}
