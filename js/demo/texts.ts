/**
 * The names and values that the example engine's runs are about. They are chosen for what breaks careless code: text
 * beyond ASCII in every place where a real store may hold it, quotes and line breaks inside names, equal-looking spellings
 * that are different bytes. All of it is valid Unicode, because a store of UTF-8 text cannot hold anything else.
 */

import type { Random } from "./random.js"

const flowNames = ["billing/invoice", "orders/fulfil", "relance-impayés", "注文処理", "support/Rückfrage"] as const

// U+FF5E sorts before the bicycle as UTF-8 bytes and after it as UTF-16 units: runs stand in byte order.
const tenants = ["acme", "acme", "acme", "globex", "globex", "société", "東京", "～wave", "🚲"] as const

const clockStems = ["sleep", "sleep", "retry backoff", "relance n°", "締切", 'grace "period"', "⏰"] as const

const signalStems = ["approval", "approval", "payment", "réponse", "署名", "reply\nby mail", "it's here"] as const

const activities = ["charge-card", "send-mail", "reserve-stock", "Bonität prüfen", "印刷"] as const

const notes = [
  "all good",
  "déjà payé, à vérifier",
  "de\u0301ja\u0300 payé, à vérifier",
  "在庫なし、再入荷待ち",
  "👩‍👩‍👧‍👦 family plan, 10% 🎁",
  'he said "later", then \\ nothing',
  "first line\nsecond line\r\n\tthird, indented",
  "שלום, נדבר מחר",
  "line\u2028separator and \u0007 bell",
  "Straße 5, 1. OG; ½ price; ﬁne print"
] as const

const sources = ["webhook", "operator", "import", "モバイル"] as const

/** The id of the run with this number. It is also the run's execution id, as in an engine that gives every run one execution. */
export function runIdOf(number: number, random: Random): string {
  return `${random.pick(tenants)}-${String(number).padStart(6, "0")}`
}

/** The name of a flow. */
export function flowNameOf(random: Random): string {
  return random.pick(flowNames)
}

/** The name of the run's clock with this number. */
export function clockNameOf(number: number, random: Random): string {
  return `${random.pick(clockStems)}-${number}`
}

/** The name of a deferred that something outside the run completes. */
export function signalNameOf(number: number, random: Random): string {
  return `signal/${random.pick(signalStems)}-${number}`
}

/** The name of an activity. */
export function activityNameOf(random: Random): string {
  return random.pick(activities)
}

/** What an activity gave back: the bulk of a journal that no fold of clocks reads. */
export function activityResultOf(random: Random): unknown {
  return {
    amount: { currency: random.pick(["EUR", "JPY", "¤"]), cents: random.below(1_000_000), rate: random.below(10_000) / 10_000 },
    note: random.pick(notes),
    tags: [random.pick(sources), random.pick(activities)]
  }
}

/** The exit of a completed deferred, as JSON text. The journal keeps only its digest, so this text exists once. */
export function exitTextOf(random: Random): string {
  if (random.chance(12)) {
    const error = { code: random.between(400, 599), message: random.pick(notes) }
    return JSON.stringify({ _tag: "Failure", cause: { _tag: "Fail", error } })
  }
  const value = { by: random.pick(sources), answer: random.pick(notes), score: random.below(1000) / 8 }
  return JSON.stringify({ _tag: "Success", value })
}

/** The exit of a deferred that a clock completes: it carries nothing. */
export const clockExitText: string = JSON.stringify({ _tag: "Success", value: null })

/** What is known about where a completion came from, as JSON text; null for every third. */
export function metadataTextOf(random: Random): string | null {
  if (random.below(3) === 0) return null
  const trace = random.below(0x1_0000_0000).toString(16).padStart(8, "0")
  return JSON.stringify({ source: random.pick(sources), trace, note: random.pick(notes) })
}

/** The variables of a run: engine state that a checkpoint keeps beside the fold. */
export function variablesOf(random: Random): Record<string, unknown> {
  return {
    owner: random.pick(tenants),
    remark: random.pick(notes),
    retries: random.below(4),
    "näxt step": random.pick(activities)
  }
}
