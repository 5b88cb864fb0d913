/** 64-bit numbers: taken as `bigint`, safe number or decimal text, given as `bigint`, and decimal text in JSON. */
import { invalid, type ErrorCode } from "../../core/errors.js"

/** A whole number from 0 to 2^64-1: a `bigint`, a safe number, or decimal text as our JSON has it. */
export type U64 = bigint | number | string

const maximum = 2n ** 64n - 1n

/** A 64-bit number as a `bigint`. `what` names it in the error. */
export function u64(value: U64, what: string, code: ErrorCode = "argument_invalid"): bigint {
  if (typeof value === "bigint") {
    if (value >= 0n && value <= maximum) return value
  } else if (typeof value === "number") {
    if (Number.isSafeInteger(value) && value >= 0) return BigInt(value)
  } else if (typeof value === "string" && /^[0-9]{1,20}$/.test(value)) {
    const number = BigInt(value)
    if (number <= maximum) return number
  }
  throw invalid(code, `${what} from 0 to 2^64-1 (beyond 2^53-1 as bigint or decimal text)`, value)
}

/** The same, in the form that is cheapest to hand on. */
export function smallOrU64(value: U64, what: string): number | bigint {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : u64(value, what)
}

/** A number that our JSON has as decimal text. */
export function fromDecimal(text: string): bigint {
  return BigInt(text)
}

/** The same of one that may be missing. */
export function fromOptional(text: string | null | undefined): bigint | undefined {
  return text === undefined || text === null ? undefined : BigInt(text)
}

function toDecimal(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString()
  if (Array.isArray(value)) return value.map(toDecimal)
  if (typeof value !== "object" || value === null) return value
  // An error's message is no member that is listed.
  const message = value instanceof Error ? { message: value.message } : {}
  return { ...message, ...Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toDecimal(member)])) }
}

function toJSON(this: unknown): unknown {
  return toDecimal(this)
}

/** Gives `value` a `toJSON` that spells its numbers in decimal, since `JSON.stringify` refuses a `bigint`. It is not enumerable. */
export function exact<Value extends object>(value: Value): Value {
  return Object.defineProperty(value, "toJSON", { value: toJSON })
}
