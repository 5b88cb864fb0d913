/** How the end of a report stands on a screen: labels on the left, columns that line up, nothing wider than a terminal. */
import type { Paint } from "./terminal.js"

/** Columns of a terminal that nobody has widened. A report is the same on every one. */
const width = 80
const labelWidth = 12
const textWidth = width - labelWidth - 5

/** The beginning of a row's line. */
export function label(name: string): string {
  return `#   ${name.padEnd(labelWidth)} `
}

/** A row of a table: a count, columns of words, and a text at the end. The first word may be painted. */
export interface TableRow {
  readonly cells: readonly string[]
  readonly paint?: Paint
}

/** Lines of a table: counts stand on the right of their column; a text that goes on stands under its beginning. */
export function tableOf(rows: readonly TableRow[]): string[] {
  const columns = (rows[0]?.cells.length ?? 1) - 1
  const widths = Array.from({ length: columns }, (_, column) => Math.max(...rows.map(({ cells }) => cells[column]?.length ?? 0)))
  const indent = widths.reduce((sum, columnWidth) => sum + columnWidth + 2, 0)
  return rows.flatMap(({ cells, paint = (text) => text }) => {
    const padded = widths.map((columnWidth, column) => {
      const cell = cells[column] ?? ""
      if (column === 0) return cell.padStart(columnWidth)
      return `${column === 1 ? paint(cell) : cell}${" ".repeat(columnWidth - cell.length)}`
    })
    const [first, ...rest] = broken(cells[columns] ?? "", textWidth - indent)
    return [`${padded.join("  ")}  ${first}`, ...rest.map((piece) => `${" ".repeat(indent)}${piece}`)]
  })
}

/** Lines of a text that fit beside a label. */
export function wrapped(text: string): string[] {
  return broken(text, textWidth)
}

/** Breaks a text at spaces; a word that is too long stays whole. */
export function broken(text: string, most: number): string[] {
  const pieces: string[] = []
  let piece: string | undefined
  for (const word of text.split(" ")) {
    if (piece === undefined) piece = word
    else if (piece.length + 1 + word.length <= most) piece = `${piece} ${word}`
    else {
      pieces.push(piece)
      piece = word
    }
  }
  return [...pieces, piece ?? ""]
}
