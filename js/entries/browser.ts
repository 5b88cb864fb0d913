/** Browsers: the module is fetched from beside this file, by an address that bundlers see and follow. */
import { JournalFoldError } from "../core/errors.js"

const name = "../wasm/core/journal_fold_bg.wasm"
const here = import.meta.url

export function loadSync(): BufferSource | undefined {
  return undefined
}

export async function load(): Promise<WebAssembly.Module> {
  const url = new URL("../wasm/core/journal_fold_bg.wasm", import.meta.url)
  const file = fileUnderNode(url.protocol === "file:" ? url : new URL(name, here))
  if (file !== undefined) return WebAssembly.compile(file)
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

/** The file itself where there is one: test runners with a simulated browser pick this entry under Node, which fetches no files. */
function fileUnderNode(url: URL): BufferSource | undefined {
  type Process = { getBuiltinModule?: (name: string) => typeof import("node:fs") | undefined }
  const fs = (globalThis as { process?: Process }).process?.getBuiltinModule?.("node:fs")
  return url.protocol === "file:" && fs?.existsSync(url) ? fs.readFileSync(url) : undefined
}
