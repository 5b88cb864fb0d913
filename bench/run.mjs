// npm run bench [-- --quick] [--json] [--only WORD]   ours and the rival in one process, in turn.
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { cpus, totalmem } from "node:os"
import { parseArgs } from "node:util"
import { version } from "journal-fold"

const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, json: { type: "boolean" }, only: { type: "string" } }
})

const files = readdirSync(new URL("./scenarios/", import.meta.url)).filter((file) => file.endsWith(".mjs")).sort()
const rows = []
const number = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))

function show({ scenario, size, unit, ours, rival, ratio, target }) {
  const sizeText = size === undefined ? "" : size.toLocaleString("en")
  const verdict = target === undefined || ratio === undefined ? "" : ratio >= target ? "reached" : "short"
  console.log(
    [
      scenario.padEnd(44),
      sizeText.padStart(10),
      number(ours.best).padStart(9),
      (Number.isNaN(rival.best) ? "" : number(rival.best)).padStart(9),
      unit.padEnd(12),
      (ratio === undefined ? "" : ratio.toFixed(2)).padStart(6),
      (target === undefined ? "" : target.toFixed(1)).padStart(6),
      verdict
    ].join(" ")
  )
}

if (!options.json) {
  console.log(
    `${"scenario".padEnd(44)} ${"size".padStart(10)} ${"ours".padStart(9)} ${"rival".padStart(9)} ${"unit".padEnd(12)} ${"ratio".padStart(6)} ${"target".padStart(6)}`
  )
}
for (const file of files) {
  if (options.only !== undefined && !file.includes(options.only)) continue
  const { run } = await import(`./scenarios/${file}`)
  for await (const row of run({ quick: options.quick === true })) {
    // A ratio says how many times faster ours is; where smaller is not faster, a scenario gives its own.
    const ratio = row.ratio ?? (Number.isNaN(row.rival.best) ? undefined : row.rival.best / row.ours.best)
    const whole = { ...row, ratio }
    rows.push(whole)
    if (!options.json) show(whole)
  }
}
const flat = rows.map(({ scenario, size, unit, ours, rival, ratio, target }) => ({
  scenario,
  size: size ?? null,
  unit,
  ours: ours.best,
  oursMedian: ours.median,
  rival: Number.isNaN(rival.best) ? null : rival.best,
  rivalMedian: Number.isNaN(rival.median) ? null : rival.median,
  ratio: ratio ?? null,
  target: target ?? null
}))
if (options.json) console.log(JSON.stringify(flat, null, 2))
if (options.only === undefined) {
  const folder = new URL("./results/", import.meta.url)
  mkdirSync(folder, { recursive: true })
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, memoryGiB: Math.round(totalmem() / 2 ** 30) }
  const versions = { "journal-fold": version, node: process.version }
  const name = options.quick ? "quick.json" : "full.json"
  writeFileSync(new URL(name, folder), `${JSON.stringify({ date: new Date().toISOString(), machine, versions, rows: flat }, null, 2)}\n`)
}
