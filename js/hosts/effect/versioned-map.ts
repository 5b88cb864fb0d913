/**
 * A map of which every version stays readable, while a change of the newest costs no copy: the newest version owns the map, and an older
 * one knows what was changed after it. Rows keep the place where they first appeared.
 *
 * An older version that is changed, iterated, or read further back than {@link nearVersions} gets a map of its own, once.
 */

/** How many versions back a single read looks without making a map. */
const nearVersions = 64

/** What made a version an older one. */
interface Superseded<Value extends object> {
  readonly newer: VersionedMap<Value>
  readonly key: string
  /** The value before; `undefined` where there was none. */
  readonly before: Value | undefined
}

/** One version of a map. Values are never `undefined`. */
export class VersionedMap<Value extends object> implements ReadonlyMap<string, Value> {
  readonly size: number
  #at: Map<string, Value> | Superseded<Value>

  private constructor(map: Map<string, Value>) {
    this.size = map.size
    this.#at = map
  }

  /** A map of these entries, copied. */
  static from<Value extends object>(entries: Iterable<readonly [string, Value]>): VersionedMap<Value> {
    return new VersionedMap(new Map(entries))
  }

  /** This map with a value set. This version reads as before. */
  with(key: string, value: Value): VersionedMap<Value> {
    const map = this.#own()
    const before = map.get(key)
    map.set(key, value)
    const newer = new VersionedMap(map)
    this.#at = { newer, key, before }
    return newer
  }

  get(key: string): Value | undefined {
    let at = this.#at
    for (let versions = 0; !(at instanceof Map); versions += 1) {
      if (at.key === key) return at.before
      if (versions === nearVersions) return this.#own().get(key)
      at = at.newer.#at
    }
    return at.get(key)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  // Arrays, because the map goes on to the next version while a caller still iterates.
  entries(): MapIterator<[string, Value]> {
    return [...this.#own().entries()].values()
  }

  keys(): MapIterator<string> {
    return [...this.#own().keys()].values()
  }

  values(): MapIterator<Value> {
    return [...this.#own().values()].values()
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries()
  }

  forEach(callback: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void, thisArg?: unknown): void {
    for (const [key, value] of this) callback.call(thisArg, value, key, this)
  }

  /** This version's map: the newest owns one; an older one takes back, in a copy, what was changed after it. */
  #own(): Map<string, Value> {
    if (this.#at instanceof Map) return this.#at
    const changes: Superseded<Value>[] = []
    let at: Map<string, Value> | Superseded<Value> = this.#at
    while (!(at instanceof Map)) {
      changes.push(at)
      at = at.newer.#at
    }
    const map = new Map(at)
    // The last change first: what was added last stands last, so that taking it away leaves all others in their places.
    for (const { key, before } of changes.reverse()) {
      if (before === undefined) map.delete(key)
      else map.set(key, before)
    }
    this.#at = map
    return map
  }
}
