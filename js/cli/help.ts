/** Help: for the whole, and for each verb. */
import { version } from "../version.js"
import { optionSpecs } from "./options.js"
import type { Style } from "./terminal.js"
import { verbs, type VerbSpec } from "./verbs.js"

/** Help for the whole. */
export function helpLines(style: Style): string[] {
  const names = Math.max(...verbs.map((verb) => headOf(verb).length))
  return [
    `${style.bold("journal-fold")} ${version}: do the tables still say what the journal says?`,
    "",
    style.bold("usage"),
    ...verbs.map((verb) => `  journal-fold ${headOf(verb).padEnd(names)}  ${verb.summary}`),
    "",
    style.bold("a first look"),
    "  journal-fold verify store.db",
    "  journal-fold plan store.db --out plan.json",
    "  journal-fold apply store.db plan.json --write",
    "",
    style.bold("exit codes"),
    "  0  match, or done",
    "  1  drift only: apply repairs it",
    "  2  could not look: usage, file, surroundings",
    "  3  refused: findings that no rebuild repairs, or an apply that is not allowed",
    "  4  partial: stopped by a limit or by Ctrl-C",
    "",
    "journal-fold VERB --help has the options of a verb; journal-fold explain ID says",
    "what a word of a report means and what to do about it."
  ]
}

/** Help for one verb. */
export function verbHelpLines(verb: VerbSpec, style: Style): string[] {
  const heads = verb.options.map((name) => `--${name}${optionSpecs[name].value === undefined ? "" : ` ${optionSpecs[name].value}`}`)
  const widest = Math.max(...heads.map((head) => head.length))
  return [
    `${style.bold(`journal-fold ${headOf(verb)}`)}: ${verb.summary}`,
    "",
    ...verb.about,
    "",
    style.bold("options"),
    ...verb.options.flatMap((name, place) =>
      optionSpecs[name].help.map((line, row) => `  ${(row === 0 ? (heads[place] ?? "") : "").padEnd(widest)}  ${line}`)
    )
  ]
}

function headOf(verb: VerbSpec): string {
  return [verb.name, ...verb.usage].join(" ")
}
