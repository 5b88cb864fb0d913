/** The names that a journal of this fold uses. */
import { invalid } from "../../core/errors.js"

/** The four event types. The place of each is its number in a page. */
export const eventTypes: readonly [string, string, string, string] = Object.freeze([
  "flows.engine.clock-scheduled",
  "flows.engine.clock-completed",
  "flows.engine.deferred-completed",
  "flows.engine.deferred-consumed"
])

/** The member of a checkpoint's state under which the fold is kept. */
export const checkpointKey = "flows.engine.deferred-clock"

/** The type code of every other event type. */
export const otherType = 255

const codes = new Map<string, number>(eventTypes.map((name, code) => [name, code]))

/** The number of an event type in a page. */
export function typeCodeOf(eventType: string): number {
  const code = codes.get(eventType)
  if (code !== undefined) return code
  if (typeof eventType !== "string") throw invalid("argument_invalid", "an event type as text", eventType)
  return otherType
}
