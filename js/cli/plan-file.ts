/**
 * A plan in a file. It carries its scope and its names along, because it is only right for those, and a digest of itself, because a plan
 * that was cut off or edited must not be taken for one.
 *
 * The file is a JSON object whose last member is `sha256`, over every byte before it.
 */
import { createHash } from "node:crypto"
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, JournalFoldError } from "../core/errors.js"
import type { Plan } from "../folds/deferred-clock/types.js"
import type { NameMapping } from "../hosts/sqlite/names.js"
import { visibleJson } from "../journal-file/format.js"
import { version } from "../version.js"
import type { AskedScope } from "./inputs.js"

const planFormat = "journal-fold/plan"
const planFormatVersion = 1

/** What a plan's file says. */
export interface PlanFile {
  readonly scope: AskedScope
  readonly names?: NameMapping
  readonly asOfMs: number
  readonly plan: Plan
}

/** Writes a plan beside its place and then puts it there, so that there is never half a plan. */
export function writePlanFile(path: string, { scope, names, asOfMs, plan }: PlanFile): void {
  const beside = join(dirname(path), `.journal-fold-plan-${process.pid}`)
  let file: number | undefined
  try {
    file = openSync(beside, "wx")
    const hash = createHash("sha256")
    for (const piece of pieces({ scope, ...(names && { names }), asOfMs, plan })) {
      hash.update(piece)
      writeSync(file, piece)
    }
    writeSync(file, `"sha256":"${hash.digest("hex")}"}\n`)
    fsyncSync(file)
    closeSync(file)
    file = undefined
    renameSync(beside, path)
  } catch (error) {
    if (file !== undefined) closeSync(file)
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") rmSync(beside, { force: true })
    throw new JournalFoldError("option_invalid", `--out: ${describe(path)} cannot be written: ${(error as Error).message}`, { found: path }, { cause: error })
  }
}

function* pieces({ plan, ...about }: PlanFile): Generator<string> {
  const { pages, ...rest } = plan
  const head = JSON.stringify({ format: planFormat, version: planFormatVersion, journalFold: version, ...about, plan: rest })
  // The plan's own object and the one around it are closed once the pages are in.
  yield `${visibleJson(head.slice(0, -2))},"pages":[`
  let before = "\n"
  for (const page of pages) {
    yield `${before}${visibleJson(JSON.stringify(page))}`
    before = ",\n"
  }
  yield "]},\n"
}

/**
 * Reads a plan's file.
 *
 * @throws `argument_invalid` for anything that is not exactly what was written
 */
export function readPlanFile(path: string): PlanFile {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    throw new JournalFoldError("argument_invalid", `the plan ${describe(path)} cannot be read: ${(error as Error).message}`, { found: path }, { cause: error })
  }
  if (!text.startsWith(`{"format":"${planFormat}"`)) throw damaged(path, "a plan that plan --out wrote", "something else")
  const tail = /"sha256":"([0-9a-f]{64})"\}\s*$/.exec(text.slice(-200))
  if (tail === null) throw damaged(path, "a digest at its end", "none: it was cut off")
  const body = text.slice(0, text.lastIndexOf('"sha256":"'))
  const found = createHash("sha256").update(body).digest("hex")
  if (found !== tail[1]) throw damaged(path, `the digest ${tail[1]}`, `${found}: it was changed`)
  const { version: written, scope, names, asOfMs, plan } = JSON.parse(text) as PlanFile & { version: number }
  if (written !== planFormatVersion) throw damaged(path, `version ${planFormatVersion}`, `${written}: another journal-fold wrote it`)
  return { scope, ...(names && { names }), asOfMs, plan }
}

function damaged(path: string, expected: string, found: string): JournalFoldError {
  return new JournalFoldError("argument_invalid", `the plan ${describe(path)} is damaged: expected ${expected}, found ${found}`, { expected, found })
}
