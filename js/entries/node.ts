/** Node, Bun and Deno: the module is a file beside this one, read at first use. */
import { readFileSync } from "node:fs"

const name = "../wasm/core/journal_fold_bg.wasm"
const here = import.meta.url

export function loadSync(): BufferSource | undefined {
  // Spelled out for bundlers that see such an address, bring the file along and put its new one here. A test runner's simulated
  // browser puts one here that is no file's.
  const url = new URL("../wasm/core/journal_fold_bg.wasm", import.meta.url)
  return readFileSync(url.protocol === "file:" ? url : new URL(name, here))
}

export async function load(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(loadSync() as BufferSource)
}
