/** Stored rows on their way to the module. */
import { call, type Glue } from "../../core/engine.js"
import { invalid } from "../../core/errors.js"
import { withPageBuilder, writeBytePage, writePage, type PageBuilder } from "../../core/pages.js"
import { smallOrU64 } from "./numbers.js"
import { checkPayload } from "./rows.js"
import type { RowPage, Rows, StoredRow } from "./types.js"

/** Takes the rows that were just written: how many, and how many bytes their payloads have. */
export type TakePage = (module: Glue, count: number, length: number) => void

export function isRowPage(rows: StoredRow | RowPage | Rows): rows is RowPage {
  return (rows as RowPage).bytes instanceof Uint8Array
}

/** Checks a page's parts, whose contents the module checks. */
function checkRowPage(page: RowPage): RowPage {
  const { bytes, ends, sequences } = page
  if (ends instanceof Uint32Array && sequences instanceof BigUint64Array && ends.length === sequences.length) return page
  throw invalid("page_malformed", "bytes: Uint8Array, and as many ends: Uint32Array as sequences: BigUint64Array", { bytes, ends, sequences })
}

/** Adds a row to a page; `true` when the page is full and has to be taken away. */
export function addRow(page: PageBuilder, row: StoredRow): boolean {
  if (typeof row !== "object" || row === null) throw invalid("argument_invalid", "a row with sequence and payload", row)
  return page.put(smallOrU64(row.sequence, "a sequence"), 0, checkPayload(row.payload))
}

/** Bytes of a page that are copied and folded at once, about: few enough to be in the processor's cache still when they are folded. */
const sliceBytes = 1 << 18

/** Hands a page of bytes to `take`, as the one answer that it is. */
export function handPage(page: RowPage, take: TakePage): void {
  const { bytes, ends, sequences } = checkRowPage(page)
  handSlice(bytes, ends, sequences, 0, take)
}

/** Hands a page of bytes to `take` slice by slice, where all that counts is the rows. Those before a slice that is malformed are taken. */
function handSlices(page: RowPage, take: TakePage): void {
  const { bytes, ends, sequences } = checkRowPage(page)
  const rows = Math.max(1, Math.ceil((sequences.length * sliceBytes) / Math.max(1, bytes.byteLength)))
  // A page without rows is handed on too: that it is sound is the module's to say.
  if (rows >= sequences.length) return handSlice(bytes, ends, sequences, 0, take)
  for (let row = 0; row < sequences.length; row += rows) {
    const last = Math.min(row + rows, sequences.length)
    const start = row === 0 ? 0 : (ends[row - 1] as number)
    // What lies behind the last end belongs to the last slice, where it is found.
    const end = last === sequences.length ? bytes.byteLength : (ends[last - 1] as number)
    handSlice(bytes.subarray(start, end), ends.subarray(row, last), sequences.subarray(row, last), start, take)
  }
}

function handSlice(bytes: Uint8Array, ends: Uint32Array, sequences: BigUint64Array, start: number, take: TakePage): void {
  call((module) => {
    writeBytePage(module, bytes, ends, sequences, undefined, start)
    take(module, sequences.length, bytes.byteLength)
  })
}

/** Hands rows to `take` page by page. */
export function handRows(rows: Rows, take: TakePage): void {
  if (typeof rows !== "object" || rows === null) throw invalid("argument_invalid", "a page, or rows to iterate", rows)
  if (isRowPage(rows)) return handSlices(rows, take)
  withPageBuilder((page) => {
    const flush = (): void => {
      if (page.count === 0) return
      try {
        call((module) => take(module, page.count, writePage(module, page)))
      } finally {
        page.clear()
      }
    }
    try {
      for (const row of rows) {
        if (typeof row === "object" && row !== null && isRowPage(row)) {
          flush()
          handSlices(row, take)
        } else if (addRow(page, row)) flush()
      }
    } catch (error) {
      // What came before the row that cannot be taken is folded all the same, so that a caller can go on from there.
      flush()
      throw error
    }
    flush()
  })
}

/** A store's answer row by row. The payloads of a page are views of it. */
export function rowsOf(page: readonly StoredRow[] | RowPage): readonly StoredRow[] {
  if (Array.isArray(page)) return page as readonly StoredRow[]
  const { bytes, ends, sequences } = page as RowPage
  if (!(bytes instanceof Uint8Array)) throw invalid("answer_malformed", "an array of rows, or a page", page)
  return Array.from(ends, (end, row) => ({
    sequence: sequences[row] as bigint,
    payload: bytes.subarray(row === 0 ? 0 : (ends[row - 1] as number), end)
  }))
}
