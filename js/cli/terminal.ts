/** What a terminal can show: colour only there, and only when nobody asked for none. */

/** How a piece of text is set off. */
export type Paint = (text: string) => string

/** The few colours of a report. */
export interface Style {
  readonly bold: Paint
  readonly dim: Paint
  readonly good: Paint
  readonly warn: Paint
  readonly bad: Paint
}

const plain: Paint = (text) => text
const sgr =
  (open: number, close: number): Paint =>
  (text) =>
    `\x1b[${open}m${text}\x1b[${close}m`

const plainStyle: Style = { bold: plain, dim: plain, good: plain, warn: plain, bad: plain }
const colours: Style = { bold: sgr(1, 22), dim: sgr(2, 22), good: sgr(32, 39), warn: sgr(33, 39), bad: sgr(31, 39) }

/**
 * The style for a stream. `--no-color` is the last word; then FORCE_COLOR (anything but empty, `0` and `false`), NO_COLOR, and whether
 * the stream is a terminal that is not dumb.
 */
export function styleFor(stream: { readonly isTTY?: boolean }, noColor: boolean, env: NodeJS.ProcessEnv): Style {
  if (noColor) return plainStyle
  const { FORCE_COLOR: force, NO_COLOR: none, TERM: term } = env
  if (force !== undefined && force !== "") return force === "0" || force === "false" ? plainStyle : colours
  if (none !== undefined && none !== "") return plainStyle
  return stream.isTTY === true && term !== "dumb" ? colours : plainStyle
}
