// Ours and the rival in one process, in turn, so that a slow moment of the machine meets both.

/** Runs `work` once and gives nanoseconds. */
function once(work) {
  const started = process.hrtime.bigint()
  work()
  return Number(process.hrtime.bigint() - started)
}

/** As {@link once}, for work that is waited for. */
async function onceAwaited(work) {
  const started = process.hrtime.bigint()
  await work()
  return Number(process.hrtime.bigint() - started)
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[sorted.length >> 1]
}

/** Small work is done so often at a time that what a collection leaves cold, in either, is not all that is measured. */
const unitsAtATime = 20_000

/**
 * Measures both in turn for `rounds` rounds after one that does not count, and gives the best and the median of each, a unit.
 */
export function inTurn(ours, rival, { units, rounds }) {
  const times = { ours: [], rival: [] }
  const repeats = Math.max(1, Math.round(unitsAtATime / units))
  const repeated = (work) => () => {
    for (let repeat = 0; repeat < repeats; repeat++) work()
  }
  for (let round = -1; round < rounds; round++) {
    globalThis.gc?.()
    const a = once(repeated(ours))
    globalThis.gc?.()
    const b = rival === undefined ? Number.NaN : once(repeated(rival))
    if (round < 0) continue
    times.ours.push(a / units / repeats)
    times.rival.push(b / units / repeats)
  }
  return summary(times)
}

/** As {@link inTurn}, for work that is waited for. */
export async function inTurnAwaited(ours, rival, { units, rounds }) {
  const times = { ours: [], rival: [] }
  for (let round = -1; round < rounds; round++) {
    globalThis.gc?.()
    const a = await onceAwaited(ours)
    globalThis.gc?.()
    const b = await onceAwaited(rival)
    if (round < 0) continue
    times.ours.push(a / units)
    times.rival.push(b / units)
  }
  return summary(times)
}

/** Measures work that is hot, over and over without a collection between: what a native program that does nothing else is compared with. */
export function hot(work, { units, rounds }) {
  const repeats = Math.max(1, Math.round(100_000 / units))
  const times = []
  for (let round = -2; round < rounds; round++) {
    const took = once(() => {
      for (let repeat = 0; repeat < repeats; repeat++) work()
    })
    if (round >= 0) times.push(took / repeats / units)
  }
  return { best: Math.min(...times), median: median(times) }
}

function summary({ ours, rival }) {
  return {
    ours: { best: Math.min(...ours), median: median(ours) },
    rival: { best: Math.min(...rival), median: median(rival) }
  }
}

/** Rounds for a size, so that small ones are repeated often and large ones end. */
export function roundsFor(units, quick) {
  const rounds = units <= 2_000 ? 60 : units <= 20_000 ? 25 : units <= 200_000 ? 9 : 5
  return quick ? Math.min(rounds, 5) : rounds
}
