// Streams of an observer log for the benchmarks: the same for the same numbers.

/** Numbers from 0 to 1 that are the same each time. */
export function randomNumbers(seed) {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Rows of a stream: tracks, advances and arms of random conversations, and a snapshot where one is due. */
export function streamRows(count, { conversations, large }, random) {
  const rows = []
  const progress = new Map()
  const armed = new Map()
  const idOf = (place) => (large ? 2n ** 63n + BigInt(place) * 1_000_003n : BigInt(place))
  const base = large ? 2n ** 60n : 0n
  const list = (map) =>
    [...map]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, value]) => `[${id},${value}]`)
      .join(",")
  const put = (version, row) => rows.push({ sequence: rows.length, payload: `{"schema_version":${version},"row":{"row":${row}}}` })
  while (rows.length < count) {
    if (rows.length % 257 === 256) put(2, `"snapshot","progress":[${list(progress)}],"armed":[${list(armed)}]`)
    if (rows.length === count) break
    // New conversations come all the time until there are enough.
    const place = progress.size < conversations && random() < 0.2 ? progress.size : Math.floor(random() * progress.size)
    const id = idOf(place)
    const at = progress.get(id)
    if (at === undefined) {
      progress.set(id, base)
      put(1, `"track","conversation_id":${id},"observer_progress":${base}`)
    } else if (random() < 0.2) {
      armed.set(id, at)
      put(1, `"arms","arms":[[${id},${at}]]`)
    } else {
      const next = at + 1n + BigInt(Math.floor(random() * 9))
      progress.set(id, next)
      armed.delete(id)
      put(1, `"advance","conversation_id":${id},"observer_progress":${next}`)
    }
  }
  return rows
}
