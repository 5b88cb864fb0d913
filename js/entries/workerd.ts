/** workerd (Cloudflare Workers): bytes may not be compiled there; the module is imported as one. */
import module from "../wasm/core/journal_fold_bg.wasm"

export function loadSync(): WebAssembly.Module {
  return module
}

export async function load(): Promise<WebAssembly.Module> {
  return module
}
