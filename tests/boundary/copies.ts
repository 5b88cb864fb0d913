/** Copies of the built package, each an instance of its own. */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { fileURLToPath, pathToFileURL } from "node:url"

/** The project's folder, ending in a slash. */
export const root = fileURLToPath(new URL("../../", import.meta.url))

export type Engine = typeof import("../../pkg/core/engine.js")
export type DeferredClock = typeof import("../../pkg/folds/deferred-clock/index.js")
export type Root = typeof import("../../pkg/index.js")

/** The functions that only the module for tests has. */
export interface TestGlue {
  test_panic(): void
  test_stack_overflow(depth: number): number
  test_out_of_memory(): number
  test_json(length: number): string
  test_json_member(length: number, nameLength: number): string | undefined
  object_count(): number
}

let made = 0

/**
 * Copies the package to a new folder and gives its address.
 *
 * @param changes `host`: the entry that every runtime gets; `testModule`: the module with deliberate traps in place of the published
 */
export function copyOfPackage(changes: { readonly host?: "browser" | "workerd" | "node"; readonly testModule?: boolean } = {}): URL {
  made += 1
  const folder = `${root}.build/copies/${process.pid}-${made}/`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  cpSync(`${root}pkg/`, folder, { recursive: true })
  if (changes.testModule) {
    const module = `${root}.build/test-wasm/core`
    if (!existsSync(module)) throw new Error("the module for tests is missing: run scripts/build.sh --test")
    cpSync(module, `${folder}wasm/core`, { recursive: true })
  }
  if (changes.host) {
    const manifest = JSON.parse(readFileSync(`${folder}package.json`, "utf8")) as { imports: Record<string, unknown> }
    manifest.imports["#host"] = `./entries/${changes.host}.js`
    writeFileSync(`${folder}package.json`, JSON.stringify(manifest))
  }
  return pathToFileURL(folder)
}

/** Removes every copy that this process made. */
export function removeCopies(): void {
  for (; made > 0; made--) rmSync(`${root}.build/copies/${process.pid}-${made}/`, { recursive: true, force: true })
}

/** Imports a file of a copy. */
export async function load<Module>(copy: URL, file: string): Promise<Module> {
  return (await import(new URL(file, copy).href)) as Module
}

/** What `work` throws. */
export function thrownBy(work: () => unknown): Error & { code?: string } {
  try {
    work()
  } catch (error) {
    return error as Error
  }
  throw new Error("nothing was thrown")
}
