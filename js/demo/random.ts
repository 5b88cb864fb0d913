/**
 * The generator the example engine draws from. The rule it keeps: the same seed gives the same draws on every machine,
 * so that a store can be written twice and compared, and a failure seen once can be seen again.
 */

/** A seeded source of draws (mulberry32: 32 bits of state, integer arithmetic only). Not for secrets. */
export class Random {
  #state: number

  /** @param seed any integer; only its low 32 bits count. */
  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** A whole number from 0 up to, not including, `limit` (at most 2^32). */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 0x1_0000_0000) * limit)
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  /** True in `percent` of a hundred draws. */
  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  /** One item of a list that is not empty. */
  pick<T>(list: readonly T[]): T {
    const index = this.below(list.length)
    if (index >= list.length) throw new RangeError("nothing to pick from: the list is empty")
    return list[index] as T
  }
}
