// Writes a wasm file as a module that exports it in base64: node scripts/inline.mjs FILE OUT (without extension).
import { readFileSync, writeFileSync } from "node:fs"

const [file, out] = process.argv.slice(2)
writeFileSync(`${out}.js`, `export const base64 = "${readFileSync(file).toString("base64")}"\n`)
writeFileSync(`${out}.d.ts`, `export declare const base64: string\n`)
