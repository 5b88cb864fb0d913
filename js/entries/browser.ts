/** Browsers: the module is fetched from beside this file, by an address that bundlers see and follow. */
import { JournalFoldError } from "../core/errors.js"

export function loadSync(): BufferSource | undefined {
  return undefined
}

export async function load(): Promise<WebAssembly.Module> {
  const url = new URL("../wasm/core/journal_fold_bg.wasm", import.meta.url)
  // Test runners with a simulated browser pick this entry under Node, where a file cannot be fetched.
  if (url.protocol === "file:") return WebAssembly.compile(readFile(url))
  const response = await fetch(url)
  if (!response.ok) {
    throw new JournalFoldError("not_initialized", `the module could not be loaded: ${url.href} answered ${response.status}`)
  }
  try {
    return await WebAssembly.compileStreaming(response.clone())
  } catch {
    // A server that sends another content type than application/wasm.
    return WebAssembly.compile(await response.arrayBuffer())
  }
}

function readFile(url: URL): BufferSource {
  const fs = (
    globalThis as { process?: { getBuiltinModule?: (name: string) => typeof import("node:fs") | undefined } }
  ).process?.getBuiltinModule?.("node:fs")
  if (fs === undefined) throw new JournalFoldError("not_initialized", `the module could not be loaded: ${url.href} is a file`)
  return fs.readFileSync(url)
}
