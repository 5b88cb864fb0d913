// The README's tables, from the module's own: node scripts/tables.mjs writes them into README.md.
import { readFileSync, writeFileSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { call } from "../pkg/core/engine.js"

/** The table of findings. */
export function findingTable() {
  const ids = Object.entries(JSON.parse(call((module) => module.finding_ids())))
  const rows = ids.map(([id, { class: name, meaning, advice }]) => `| \`${id}\` | ${name} | ${meaning} | ${advice} |`)
  return ["| finding | class | what it says | what to do |", "| --- | --- | --- | --- |", ...rows].join("\n")
}

/** The table of error codes. */
export function errorTable() {
  const codes = Object.entries(JSON.parse(call((module) => module.error_codes())))
  return ["| code | what it says |", "| --- | --- |", ...codes.map(([code, meaning]) => `| \`${code}\` | ${meaning} |`)].join("\n")
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  let text = readFileSync("README.md", "utf8")
  for (const [name, table] of Object.entries({ findings: findingTable(), errors: errorTable() })) {
    text = text.replace(new RegExp(`<!-- table: ${name} -->\\n(\\n*\\|.*)*\\n*`), () => `<!-- table: ${name} -->\n\n${table}\n\n`)
  }
  writeFileSync("README.md", text)
}
