/** Work in slices, between which the event loop runs: so that a long verification leaves timers, signals and other requests their turn. */
import { JournalFoldError } from "../core/errors.js"

/** Milliseconds of work between two turns of the event loop. */
const sliceMs = 20

/** Drives a generator that says how far it is and is told `true` to stop. Its `finally` runs, however it ends. */
export async function inSlices<Progress, Result>(
  work: Generator<Progress, Result, boolean | undefined>,
  onProgress?: (progress: Progress) => boolean | undefined | void,
  signal?: AbortSignal
): Promise<Result> {
  throwIfAborted(signal)
  try {
    let stop: boolean | undefined
    let until = performance.now() + sliceMs
    for (;;) {
      const step = stop === undefined ? work.next() : work.next(stop)
      if (step.done === true) return step.value
      stop = onProgress?.(step.value) === false ? true : undefined
      if (performance.now() >= until) {
        await new Promise((resolve) => setImmediate(resolve))
        throwIfAborted(signal)
        until = performance.now() + sliceMs
      }
    }
  } finally {
    work.return(undefined as never)
  }
}

/** @throws `aborted` */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) {
    throw new JournalFoldError("aborted", "the caller stopped the work", {}, { cause: signal.reason })
  }
}
