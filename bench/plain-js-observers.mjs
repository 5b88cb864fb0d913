// The best plain JavaScript for a stream of an observer log: digits beyond 2^53 quoted by one regular expression, JSON.parse, a number
// where it is exact and a BigInt where it has to be, maps changed in place, every rule of the format checked.

/**
 * Digits that a double may not hold. None of them stand in a text of ours but as numbers. Whether there are any is asked first,
 * since most rows have none.
 */
const anyLongDigits = /\d{16}/
const longDigits = /([[,:])(\d{16,})/g

const max = 2n ** 64n - 1n

function numberOf(value) {
  if (typeof value === "number") {
    if (Number.isSafeInteger(value) && value >= 0) return value
  } else if (typeof value === "string") {
    const big = BigInt(value)
    if (big <= max) return big <= Number.MAX_SAFE_INTEGER ? Number(big) : big
  }
  throw new Error(`no number: ${value}`)
}

const byId = ([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)

/** The state, folded row by row. Keys and values are numbers, or BigInts beyond 2^53, which maps and comparisons keep apart as they are. */
export class PlainAggregate {
  progress = new Map()
  armed = new Map()

  apply(payload) {
    const text = anyLongDigits.test(payload) ? payload.replace(longDigits, '$1"$2"') : payload
    const { schema_version: version, row } = JSON.parse(text)
    if (version !== (row.row === "snapshot" ? 2 : 1)) throw new Error(`version ${version}`)
    switch (row.row) {
      case "track": {
        const id = numberOf(row.conversation_id)
        if (this.progress.has(id)) throw new Error("already tracked")
        this.progress.set(id, numberOf(row.observer_progress))
        return
      }
      case "advance": {
        const id = numberOf(row.conversation_id)
        const next = numberOf(row.observer_progress)
        const at = this.progress.get(id)
        if (at === undefined) throw new Error("unknown")
        if (next <= at) throw new Error("not advancing")
        this.progress.set(id, next)
        this.armed.delete(id)
        return
      }
      case "arms": {
        const arms = row.arms.map(([id, epoch]) => [numberOf(id), numberOf(epoch)])
        for (const [id, epoch] of arms) {
          const at = this.progress.get(id)
          if (at === undefined) throw new Error("unknown")
          if (at !== epoch) throw new Error("another epoch")
        }
        for (const [id, epoch] of arms) this.armed.set(id, epoch)
        return
      }
      case "snapshot":
        PlainAggregate.#same(row.progress, this.progress)
        PlainAggregate.#same(row.armed, this.armed)
        return
      default:
        throw new Error(`no row ${row.row}`)
    }
  }

  /** A snapshot's list has every pair of the map, in ascending order. */
  static #same(list, map) {
    if (list.length !== map.size) throw new Error("disagrees")
    let before = -1
    for (const [given, value] of list) {
      const id = numberOf(given)
      if (id <= before || map.get(id) !== numberOf(value)) throw new Error("disagrees")
      before = id
    }
  }

  state() {
    return { progress: [...this.progress].sort(byId), armed: [...this.armed].sort(byId) }
  }
}
