// Stamps the crate's version: node scripts/stamp.mjs FILE...   A .js file gets the constant, a .d.ts its declaration, and
// package.json the manifest.
import { readFileSync, writeFileSync } from "node:fs"

const version = /^version = "(.*)"/m.exec(readFileSync("Cargo.toml", "utf8"))[1]
const doc = "/** The version of this package. */\n"
for (const file of process.argv.slice(2)) {
  if (file.endsWith("package.json")) {
    const manifest = JSON.parse(readFileSync("pkg.json", "utf8"))
    writeFileSync(file, `${JSON.stringify({ ...manifest, version }, null, 2)}\n`)
  } else if (file.endsWith(".d.ts")) {
    writeFileSync(file, `${doc}export declare const version: string\n`)
  } else {
    writeFileSync(file, `${doc}export const version = "${version}"\n`)
  }
}
