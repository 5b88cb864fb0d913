/**
 * Objects that live inside the module. A number stands for each; it is guarded by the generation of the instance, so that neither
 * a late call nor a finalizer of an object whose instance is gone ever touches the instance that came after it.
 */
import { call, currentGeneration } from "./engine.js"
import { JournalFoldError } from "./errors.js"

interface Held {
  readonly number: number
  readonly generation: number
}

function release(held: Held): void {
  if (held.generation === currentGeneration()) call((module) => module.free(held.number))
}

// A finalizer runs late or never, and not in a synchronous loop: it is the last resort behind dispose().
const finalizers = new FinalizationRegistry(release)

/** One object inside the module. */
export class Handle {
  #held: Held | undefined

  constructor(number: number) {
    this.#held = { number, generation: currentGeneration() }
    finalizers.register(this, this.#held, this)
  }

  /** Its number, for a call. */
  get number(): number {
    const held = this.#held
    if (held === undefined) throw new JournalFoldError("disposed", "the object was disposed of")
    if (held.generation !== currentGeneration()) {
      throw new JournalFoldError(
        "engine_restarted",
        "the module trapped after this object was made, and its instance is gone: make the object again"
      )
    }
    return held.number
  }

  /** Counts as disposed of from now on: the call just made has ended the object inside. */
  ended(): void {
    this.#forget()
  }

  /** Frees it. May be called again, and after a trap. */
  dispose(): void {
    const held = this.#held
    if (held === undefined) return
    this.#forget()
    release(held)
  }

  #forget(): void {
    finalizers.unregister(this)
    this.#held = undefined
  }
}
