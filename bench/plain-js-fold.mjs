// The rival: a fold in plain JavaScript as fast as we can write it, with the same checks, mutable maps and no copies.
const CS = "flows.engine.clock-scheduled", CC = "flows.engine.clock-completed"
const DC = "flows.engine.deferred-completed", DU = "flows.engine.deferred-consumed"
const HEX = /^[0-9a-f]{64}$/
const isText = (v) => typeof v === "string" && v.length > 0
const isTime = (v) => typeof v === "number" && v >= 0 && Number.isSafeInteger(v)
const isDigest = (v) => typeof v === "string" && v.length === 64 && HEX.test(v)

class Table {
  rows = []
  flows = new Map()
  lastFlow = undefined; lastExecution = undefined; lastNames = undefined
  names(flow, execution) {
    if (flow === this.lastFlow && execution === this.lastExecution) return this.lastNames
    let executions = this.flows.get(flow)
    if (executions === undefined) this.flows.set(flow, executions = new Map())
    let names = executions.get(execution)
    if (names === undefined) executions.set(execution, names = new Map())
    this.lastFlow = flow; this.lastExecution = execution; this.lastNames = names
    return names
  }
}
export class FastFold {
  clocks = new Table()
  deferreds = new Table()
  apply(eventType, p) {
    if (typeof p !== "object" || p === null || Array.isArray(p)) return
    const flowName = p.flowName, executionId = p.executionId
    if (!isText(flowName) || !isText(executionId)) return
    switch (eventType) {
      case CS: {
        const clockName = p.clockName, deferredName = p.deferredName, dueAtMs = p.dueAtMs
        if (!isText(clockName) || !isText(deferredName) || !isTime(dueAtMs)) return
        const names = this.clocks.names(flowName, executionId)
        if (names.has(clockName)) return
        const row = { flowName, executionId, clockName, deferredName, dueAtMs, completedAtMs: null }
        names.set(clockName, row)
        this.clocks.rows.push(row)
        return
      }
      case CC: {
        if (!isText(p.clockName) || !isTime(p.completedAtMs)) return
        const row = this.clocks.names(flowName, executionId).get(p.clockName)
        if (row !== undefined && row.completedAtMs === null) row.completedAtMs = p.completedAtMs
        return
      }
      case DC: {
        const deferredName = p.deferredName
        if (!isText(deferredName)) return
        const names = this.deferreds.names(flowName, executionId)
        if (names.has(deferredName)) return
        const completedAtMs = isTime(p.completedAtMs) ? p.completedAtMs : null
        let row
        if (isDigest(p.exitDigest)) {
          row = p.metadataDigest === null || isDigest(p.metadataDigest)
            ? { flowName, executionId, deferredName, completedAtMs, exitDigest: p.exitDigest, metadataDigest: p.metadataDigest, consumedAtMs: null }
            : { flowName, executionId, deferredName, completedAtMs, exitDigest: p.exitDigest, consumedAtMs: null }
        } else row = { flowName, executionId, deferredName, completedAtMs, consumedAtMs: null }
        names.set(deferredName, row)
        this.deferreds.rows.push(row)
        return
      }
      case DU: {
        if (!isText(p.deferredName) || !isTime(p.consumedAtMs)) return
        const row = this.deferreds.names(flowName, executionId).get(p.deferredName)
        if (row !== undefined && row.consumedAtMs === null) row.consumedAtMs = p.consumedAtMs
        return
      }
    }
  }
  encode() { return { clocks: this.clocks.rows, deferreds: this.deferreds.rows } }
}
