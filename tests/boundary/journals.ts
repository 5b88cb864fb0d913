/** A journal of every kind of entry, with what is hard about text in it, for comparing one place with another. */

/** One scheduled, completed, deferred and consumed entry per round. Plain data, so that a browser page can be given it. */
export function journalOf(runId: string, rounds: number): { runId: string; seq: number; eventType: string; payloadText: string }[] {
  const names = ["plain", "größe", "注文", "🚲", 'quote"\\', "\u0000\u2028", "1},{\"x\":2"]
  return Array.from({ length: rounds }, (_, round) => {
    const name = `${names[round % names.length]}-${round}`
    const address = { flowName: "Größe/注文", executionId: runId, deferredName: name }
    const exitDigest = round % 3 === 0 ? {} : { exitDigest: (round % 10).toString().repeat(64), metadataDigest: null }
    const entry = (kind: string, payload: object) => ({ eventType: `flows.engine.${kind}`, payloadText: JSON.stringify(payload) })
    return [
      entry("clock-scheduled", { ...address, clockName: name, dueAtMs: 1000 + round }),
      entry("clock-completed", { ...address, clockName: name, completedAtMs: 2000 + round }),
      entry("deferred-completed", { ...address, completedAtMs: 3000 + round, ...exitDigest, note: { deep: [round, null, "\ud83d\ude80"] } }),
      entry("deferred-consumed", { ...address, consumedAtMs: 4000 + round })
    ].slice(0, 1 + (round % 4))
  })
    .flat()
    .map((entry, place) => ({ runId, seq: 10 + place * 3, ...entry }))
}
