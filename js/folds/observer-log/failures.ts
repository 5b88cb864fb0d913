/** What the module says of a failure or a refusal, as errors. */
import { JournalFoldError, type ErrorCode, type ErrorDetails, type FailureDetails, type RefusalDetails } from "../../core/errors.js"

/** A failure as the module writes it. */
export interface WrittenFailure extends FailureDetails {
  readonly code: ErrorCode
  readonly message: string
  readonly at?: string
  readonly offset?: number
}

/** The error of a failure. What a store threw is its cause. */
export function failureError(failure: WrittenFailure, cause?: unknown, more: ErrorDetails = {}): JournalFoldError {
  const { code, message, at, offset, ...details } = failure
  return new JournalFoldError(
    code,
    message,
    { ...(at !== undefined && { seq: at }), ...(offset !== undefined && { offset }), ...more, failure: details },
    cause === undefined ? undefined : { cause }
  )
}

/** The error of a refusal. Nothing was written. */
export function refusalError(refusal: RefusalDetails, more: ErrorDetails = {}): JournalFoldError {
  const { kind, ...numbers } = refusal
  const found = [kind, ...Object.entries(numbers).map(([name, value]) => `${name} ${value}`)].join(", ")
  const expected = "a request that the aggregate takes"
  return new JournalFoldError("request_refused", `expected ${expected}, found ${found}`, { expected, found, ...more, refusal })
}
