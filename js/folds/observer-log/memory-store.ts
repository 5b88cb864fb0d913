/** A store in memory: for tests, and for streams that need not outlive the process. */
import { u64 } from "./numbers.js"
import { StoreConflict, StoreRefused, type DurableStoreSync } from "./store.js"
import type { StoredRow } from "./types.js"

const maxHead = 2n ** 64n - 1n

/** A stream and a number in memory. Nothing survives the process, so `flush` has nothing to do. */
export class MemoryStore implements DurableStoreSync {
  readonly #payloads: string[] = []
  /** The sequence of the first row. */
  readonly #first: bigint
  #value: bigint | undefined

  /** @param first The sequence that the first row takes. Default: 0. */
  constructor(first: bigint = 0n) {
    this.#first = u64(first, "a sequence")
  }

  get #head(): bigint {
    return this.#first + BigInt(this.#payloads.length)
  }

  readFrom(offset: bigint, limit: number): StoredRow[] {
    const from = offset <= this.#first ? 0n : offset - this.#first
    if (from >= BigInt(this.#payloads.length)) return []
    const start = Number(from)
    const payloads = this.#payloads.slice(start, start + limit)
    return payloads.map((payload, place) => ({ sequence: this.#first + BigInt(start + place), payload }))
  }

  readAt(sequence: bigint): StoredRow | undefined {
    const [row] = this.readFrom(sequence, 1)
    return row?.sequence === sequence ? row : undefined
  }

  appendAll(expectedHead: bigint, payloads: readonly string[]): bigint {
    if (expectedHead !== this.#head) throw new StoreConflict(this.#head)
    if (this.#head + BigInt(payloads.length) > maxHead) throw new StoreRefused("the sequences are used up")
    this.#payloads.push(...payloads)
    return this.#head
  }

  flush(): void {}

  readValue(): bigint | undefined {
    return this.#value
  }

  cas(expected: bigint, next: bigint): void {
    const actual = this.#value ?? 0n
    if (actual !== expected) throw new StoreConflict(actual)
    this.#value = u64(next, "a number")
  }

  readHead(): bigint | undefined {
    return this.#payloads.length === 0 ? undefined : this.#head
  }
}
