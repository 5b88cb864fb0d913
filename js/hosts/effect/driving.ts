/**
 * Two ways to do a host's work in a fiber. The synchronous host's is a generator, run in slices; the asynchronous host's is a promise,
 * whose queries the fiber runs itself, so that they stand in its span and its transaction, and are interrupted with it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { JournalFoldError } from "../../core/errors.js"
import { failureOf, type DeferredClockError } from "./errors.js"

/** Milliseconds of work between two turns of the event loop. */
const sliceMs = 20

/** Runs a generator to its end. Its `finally` runs, however it ends. Interrupted between two slices. */
export function inSlices<Result>(begin: () => Generator<unknown, Result, boolean | undefined>): Effect.Effect<Result, DeferredClockError> {
  return Effect.suspend(() => {
    const work = begin()
    const slice = Effect.try({
      try: () => {
        const until = performance.now() + sliceMs
        for (;;) {
          const step = work.next()
          if (step.done === true || performance.now() >= until) return step
        }
      },
      catch: failureOf
    })
    return Effect.gen(function* () {
      for (;;) {
        const step = yield* slice
        if (step.done === true) return step.value
        yield* Effect.yieldNow
      }
    }).pipe(Effect.ensuring(Effect.sync(() => work.return(undefined as never))))
  })
}

/** Hands a query to the fiber that the work is done in. */
export type Ask = <Value>(query: Effect.Effect<Value, JournalFoldError>) => Promise<Value>

/** What the fiber does next: a query that the work asks for, or the end of the work. */
type Step<Result> =
  | { readonly query: Effect.Effect<unknown, JournalFoldError>; readonly answer: (exit: Exit.Exit<unknown, JournalFoldError>) => void }
  | { readonly end: Effect.Effect<Result, DeferredClockError> }

/**
 * Does promised work, running each query that it asks for. When the fiber is interrupted, the work's next query fails with `aborted`, and
 * the fiber waits until the work has let go of what it holds.
 */
export function asking<Result>(work: (ask: Ask) => Promise<Result>): Effect.Effect<Result, DeferredClockError> {
  return Effect.suspend(() => {
    const steps: Step<Result>[] = []
    const pending = new Set<(error: unknown) => void>()
    let stopped = false
    let wake: (() => void) | undefined
    const tell = (step: Step<Result>): void => {
      steps.push(step)
      wake?.()
    }
    const next = async (): Promise<Step<Result>> => {
      if (steps.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return steps.shift() as Step<Result>
    }
    const ask: Ask = <Value>(query: Effect.Effect<Value, JournalFoldError>) =>
      new Promise<Value>((resolve, reject) => {
        if (stopped) return reject(aborted())
        pending.add(reject)
        tell({
          query,
          answer: (exit) => {
            pending.delete(reject)
            if (Exit.isSuccess(exit)) resolve(exit.value as Value)
            else reject(Cause.squash(exit.cause))
          }
        })
      })
    const ended = work(ask).then(
      (result) => tell({ end: Effect.succeed(result) }),
      (error: unknown) => tell({ end: Effect.fail(failureOf(error)) })
    )
    const stop = Effect.promise(() => {
      stopped = true
      for (const reject of pending) reject(aborted())
      return ended
    })
    return Effect.gen(function* () {
      for (;;) {
        const step = yield* Effect.promise(next)
        if ("end" in step) return yield* step.end
        step.answer(yield* Effect.exit(step.query))
      }
    }).pipe(Effect.onInterrupt(() => stop))
  })
}

function aborted(): JournalFoldError {
  return new JournalFoldError("aborted", "the fiber was interrupted")
}
