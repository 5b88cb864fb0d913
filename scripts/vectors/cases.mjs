// What the runners of the recorded cases share.

/** Writes `repeat` items out, wherever they stand. */
export function expand(value) {
  if (Array.isArray(value)) {
    return value.flatMap((item) =>
      isRepeat(item) ? Array.from({ length: item.repeat }, (_, place) => fill(item.template, place)) : [expand(item)]
    )
  }
  if (typeof value !== "object" || value === null) return value
  return mapMembers(value, expand)
}

function isRepeat(item) {
  return typeof item === "object" && item !== null && Number.isInteger(item.repeat) && "template" in item
}

/** The `place`th item of a template. */
function fill(template, place) {
  if (typeof template === "string") {
    return template.replace(/\{\{(-?\d+),(-?\d+)\}\}/g, (_, a, b) => String(Number(a) + Number(b) * place))
  }
  if (Array.isArray(template)) return template.map((item) => fill(item, place))
  if (typeof template !== "object" || template === null) return template
  if (Array.isArray(template.$n)) return template.$n[0] + template.$n[1] * place
  return mapMembers(template, (item) => fill(item, place))
}

/** A copy by own members: `__proto__` is one like any other. */
function mapMembers(record, change) {
  const copy = {}
  for (const [name, value] of Object.entries(record)) {
    Object.defineProperty(copy, name, { value: change(value), enumerable: true, writable: true, configurable: true })
  }
  return copy
}

/** What a call gives: its result, or its error as the cases record it. */
export function outcomeOf(work) {
  try {
    return work()
  } catch (error) {
    if (typeof error?.code !== "string") return { thrown: String(error?.stack ?? error) }
    const unjoined = error.unjoined === undefined ? {} : { unjoined: error.unjoined }
    return { error: { code: error.code, ...unjoined } }
  }
}

/** An expectation without what is not compared: the wording of messages. */
export function withoutMessage(expected) {
  if (expected?.error === undefined) return expected
  const { message: _, ...error } = expected.error
  return { ...expected, error }
}

/** Compares as text, so that the order of rows and members counts, and says what differs. */
export function differs(found, expected) {
  const [foundText, expectedText] = [JSON.stringify(found) ?? "undefined", JSON.stringify(expected) ?? "undefined"]
  return foundText === expectedText ? undefined : { expected: expectedText, found: foundText }
}
