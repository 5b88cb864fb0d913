/** Node, Bun and Deno: the module is a file beside this one, read at first use. */
import { readFileSync } from "node:fs"

export function loadSync(): BufferSource | undefined {
  return readFileSync(new URL("../wasm/core/journal_fold_bg.wasm", import.meta.url))
}

export async function load(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(loadSync() as BufferSource)
}
