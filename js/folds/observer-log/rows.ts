/** Rows and their stored text. */
import { call, type Glue } from "../../core/engine.js"
import { invalid } from "../../core/errors.js"
import { writeBytes, writeJson, writeWords } from "../../core/inbox.js"
import { exact, fromDecimal, u64 } from "./numbers.js"
import type { Pair, PairInput, Row, RowInput, StateInput, U64 } from "./types.js"

/** The kinds of rows. The place of each is its number for the module. */
const kinds = ["track", "advance", "arms", "snapshot"] as const

/** A row as the module takes it: its kind, and how many pairs of its words belong to the first and the second list. */
export interface StagedRow {
  readonly kind: number
  readonly words: BigUint64Array
  readonly first: number
  readonly second: number
}

/** Lists of pairs, one behind another, as words. */
export function pairWords(...lists: readonly (readonly PairInput[])[]): BigUint64Array {
  const words: bigint[] = []
  for (const list of lists) {
    if (!Array.isArray(list)) throw invalid("argument_invalid", "a list of pairs", list)
    for (const pair of list as readonly PairInput[]) {
      if (!Array.isArray(pair) || pair.length !== 2) throw invalid("argument_invalid", "a pair of numbers", pair)
      words.push(u64(pair[0] as U64, "a conversation"), u64(pair[1] as U64, "a number"))
    }
  }
  return BigUint64Array.from(words)
}

/** Checks an aggregate's lists and gives them as words. */
export function stateWords(state: StateInput): BigUint64Array {
  if (typeof state !== "object" || state === null) throw invalid("argument_invalid", "a state with progress and armed", state)
  return pairWords(state.progress, state.armed)
}

/** Checks a row and lays it out for the module. */
export function stageRow(row: RowInput): StagedRow {
  if (typeof row !== "object" || row === null) throw invalid("argument_invalid", "a row", row)
  const kind = kinds.indexOf(row.row)
  switch (row.row) {
    case "track":
    case "advance":
      return {
        kind,
        words: BigUint64Array.of(u64(row.conversationId, "conversationId"), u64(row.observerProgress, "observerProgress")),
        first: 1,
        second: 0
      }
    case "arms":
      return { kind, words: pairWords(row.arms), first: row.arms.length, second: 0 }
    case "snapshot":
      return { kind, words: stateWords(row), first: row.progress.length, second: row.armed.length }
    default:
      throw invalid("argument_invalid", `a row of kind ${kinds.join(", ")}`, (row as { row: unknown }).row)
  }
}

/** Writes a payload and says how many bytes it took. */
export function writePayload(module: Glue, payload: string | Uint8Array): number {
  if (typeof payload === "string") return writeJson(module, payload)
  writeBytes(module, [payload])
  return payload.byteLength
}

/** Checks that a payload is text or bytes. */
export function checkPayload(payload: string | Uint8Array): string | Uint8Array {
  if (typeof payload === "string" || payload instanceof Uint8Array) return payload
  throw invalid("argument_invalid", "a payload as text or bytes", payload)
}

type WrittenPairs = readonly (readonly [string, string])[]

/** Pairs as the module writes them. */
export function pairsOf(pairs: WrittenPairs): readonly Pair[] {
  return exact(pairs.map(([id, value]): Pair => [fromDecimal(id), fromDecimal(value)]))
}

/**
 * A row's stored text, byte for byte as the log's format has it: no spaces, a fixed order of keys, lists in the order given.
 *
 * @throws `argument_invalid`
 */
export function encodeRow(row: RowInput): string {
  const { kind, words, first, second } = stageRow(row)
  return call((module) => {
    writeWords(module, words)
    return module.row_encode(kind, first, second)
  })
}

/**
 * The row of a stored text. Spaces, any order of keys, escapes and further keys are taken. Arrays in place of objects, and bytes that are
 * not UTF-8, are not: there this is stricter than the log's format asks. What a further key inside the row holds must be a number within a
 * double's range and text without unpaired surrogates, at most 127 levels deep, as the format has it.
 *
 * @param sequence Where the row stands, for messages.
 * @throws `row_malformed`, with the offset of the fault; `row_version`
 */
export function decodeRow(payload: string | Uint8Array, sequence?: U64): Row {
  checkPayload(payload)
  const at = sequence === undefined ? undefined : u64(sequence, "a sequence")
  const written = JSON.parse(call((module) => module.row_decode(writePayload(module, payload), at))) as {
    row: Row["row"]
    conversation_id: string
    observer_progress: string
    arms: WrittenPairs
    progress: WrittenPairs
    armed: WrittenPairs
  }
  const { row } = written
  if (row === "arms") return exact({ row, arms: pairsOf(written.arms) })
  if (row === "snapshot") return exact({ row, progress: pairsOf(written.progress), armed: pairsOf(written.armed) })
  return exact({
    row,
    conversationId: fromDecimal(written.conversation_id),
    observerProgress: fromDecimal(written.observer_progress)
  })
}
