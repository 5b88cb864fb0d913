/** What a plan does, in words. */
import type { Plan } from "../folds/deferred-clock/types.js"
import { counted, number } from "./numbers.js"

const nouns = { clocks: "clock", deferreds: "completion" } as const
const words = { insert: ["insert", "inserted"], update: ["change", "changed"], delete: ["delete", "deleted"] } as const

/** How many rows of which table are inserted, changed and deleted. */
export function changeCounts({ pages }: Plan): { table: "clocks" | "deferreds"; op: "insert" | "update" | "delete"; count: number }[] {
  const all: ReturnType<typeof changeCounts> = []
  for (const { table, op, count } of pages) {
    const last = all.at(-1)
    if (last?.table === table && last.op === op) last.count += count
    else all.push({ table, op, count })
  }
  return all
}

/** The same in words. */
export function changesOf(plan: Plan, done: boolean): string[] {
  const changes = changeCounts(plan).map(({ table, op, count }) => `${words[op][done ? 1 : 0]} ${counted(count, nouns[table])}`)
  return [`${done ? "" : "write "}${counted(plan.rows, "row")}: ${changes.join(", ")}`]
}

/** What will run differently, in words; what needs leave says by which option it is given. */
export function effectsOf({ effects, unstorable }: Plan, asOf: string, done: boolean): string[] {
  const tense = (would: string, did: string): string => (done ? did : would)
  const needs = (option: string): string => (done ? "" : `, which needs ${option}`)
  const lines: string[] = []
  if (effects.clocksArmed > 0) {
    lines.push(`${tense("arm", "armed")} ${counted(effects.clocksArmed, "clock")} (overdue as of ${asOf}: ${number(effects.clocksOverdue)})`)
  }
  if (effects.pendingCompleted > 0) lines.push(`${tense("complete", "completed")} ${counted(effects.pendingCompleted, "pending clock")}`)
  if (effects.pendingDeleted > 0) {
    lines.push(`${tense("delete", "deleted")} ${counted(effects.pendingDeleted, "pending clock")}${needs("--allow-delete-pending")}`)
  }
  if (effects.consumptionsCleared > 0) {
    lines.push(`${tense("clear", "cleared")} ${counted(effects.consumptionsCleared, "consumption")}${needs("--allow-unconsume")}`)
  }
  if (effects.consumptionsSet > 0) lines.push(`${tense("set", "set")} ${counted(effects.consumptionsSet, "consumption")}`)
  if (lines.length === 0) lines.push(done ? "nothing will run differently" : "so that nothing runs differently")
  if (unstorable > 0) lines.push(`but ${counted(unstorable, "row")} cannot be stored: a name has an unpaired surrogate`)
  return lines
}
