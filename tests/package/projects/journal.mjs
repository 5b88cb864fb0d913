// The journal that every project folds.
export const entries = ["a", "größe", "🚲"].map((name, seq) => ({
  runId: "r",
  seq,
  eventType: "flows.engine.clock-scheduled",
  payloadText: JSON.stringify({ flowName: "F", executionId: "r", clockName: name, deferredName: "d", dueAtMs: 1 })
}))
