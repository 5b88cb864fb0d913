// Runs recorded cases against the built package:  node scripts/vectors.mjs [FOLDER]
//
// FOLDER is a fold's folder, whose name is the fold's, or a folder of such folders (default: tests/vectors). Prints each failing
// case with what was expected and what was found, and ends with a line `N passed, N failed`.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import * as deferredClock from "./vectors/deferred-clock.mjs"
import * as observerLog from "./vectors/observer-log.mjs"

/** The runners, by the fold whose folder they run. */
const folds = { "deferred-clock": deferredClock, "observer-log": observerLog }

const root = fileURLToPath(new URL("../", import.meta.url))

/** Reads the cases that differ on purpose. They belong to the project, not to the folder that is run. */
function readDeviations() {
  const path = join(root, "tests/vectors/deviations.json")
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {}
}

/**
 * Runs the cases of one fold's folder.
 *
 * @returns how many passed, how many of these differ from the recorded result on purpose, and each that failed
 */
function runFold(folder) {
  const name = basename(folder)
  const { files, runFile } = folds[name]
  const deviations = readDeviations()[name] ?? {}
  const failures = []
  let [passed, deviating] = [0, 0]
  for (const path of readdirSync(folder).filter((path) => path.endsWith(".json")).sort()) {
    const file = path.slice(0, -5)
    if (!files.includes(file)) {
      failures.push({ name: `${name}/${file}`, expected: `a runner for ${path}`, found: "none" })
      continue
    }
    const cases = JSON.parse(readFileSync(join(folder, path), "utf8"))
    for (const { name: test, difference, deviates } of runFile(file, cases, deviations[file] ?? {})) {
      if (difference !== undefined) failures.push({ name: `${name}/${file}: ${test}`, ...difference })
      else {
        passed += 1
        if (deviates) deviating += 1
      }
    }
  }
  return { passed, deviating, failures }
}

/** The folds' folders that a folder is or has. Those without a runner are named. */
function foldersIn(folder) {
  const known = (path) => basename(path) in folds
  if (known(folder)) return { folders: [folder], unknown: [] }
  const inside = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name))
  return { folders: inside.filter(known), unknown: inside.filter((path) => !known(path)) }
}

function main([given]) {
  const folder = resolve(given ?? join(root, "tests/vectors"))
  if (!existsSync(folder)) {
    console.error(`there is no folder ${folder}`)
    return 2
  }
  const { folders, unknown } = foldersIn(folder)
  for (const path of unknown) console.log(`# ${basename(path)}: no runner yet, skipped`)
  let passed = 0
  let failed = 0
  for (const path of folders) {
    const { passed: good, deviating, failures } = runFold(path)
    for (const { name, expected, found } of failures) {
      console.log(`not ok ${name}\n  expected ${expected}\n  found    ${found}`)
    }
    console.log(`# ${basename(path)}: ${good} passed, ${failures.length} failed; ${deviating} differ from the recorded result on purpose`)
    passed += good
    failed += failures.length
  }
  if (passed + failed === 0) console.log(`# nothing ran: ${folder} is no fold's folder (${Object.keys(folds).join(", ")}) and has none`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}

process.exitCode = main(process.argv.slice(2))
