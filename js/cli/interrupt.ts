/**
 * Ctrl-C: the first one asks the work to stop. From then on nobody listens any more, so the second one ends the process by itself, even
 * while the work is too busy to hear anything.
 */

const signals = ["SIGINT", "SIGTERM"] as const

/** Listens until it has heard something, or is let go. */
export class Interrupt {
  /** Whether the work is to stop. */
  stopped = false
  readonly #heard: () => void

  constructor(onStop: () => void) {
    this.#heard = () => {
      this.dispose()
      this.stopped = true
      onStop()
    }
    for (const signal of signals) process.on(signal, this.#heard)
  }

  /** Stops listening: signals do again what they do by themselves. */
  dispose(): void {
    for (const signal of signals) process.off(signal, this.#heard)
  }
}
