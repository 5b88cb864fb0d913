/** The package with the module for tests: deliberate traps, and the JSON reader and writer laid open. */
import { cpSync, existsSync, rmSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The functions that only the module for tests has. */
export interface TestGlue {
  test_panic(): void
  test_stack_overflow(depth: number): number
  test_out_of_memory(): number
  test_json(length: number): string
  test_json_member(length: number, nameLength: number): string | undefined
  object_count(): number
}

/** Makes a copy of the package whose module is the one for tests, and gives its folder's address. */
export function makeTestBuild(name: string): URL {
  const module = `${root}.build/test-wasm/core`
  if (!existsSync(module)) throw new Error("no module for tests here: scripts/build.sh --test makes it")
  const folder = `${root}.build/test-pkg-${name}`
  rmSync(folder, { recursive: true, force: true })
  cpSync(`${root}pkg`, folder, { recursive: true })
  cpSync(module, `${folder}/wasm/core`, { recursive: true })
  return new URL(`file://${folder}/`)
}

/** A file of that copy. */
export async function load<Module>(folder: URL, file: string): Promise<Module> {
  return (await import(new URL(file, folder).href)) as Module
}
