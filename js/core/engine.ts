/**
 * The instance of the module: loaded at first use, called through one door, made anew after a trap.
 *
 * In Node, Bun and Deno it loads itself, synchronously. In a browser `init()` must have been awaited, because a page cannot
 * compile a module of this size synchronously. No top-level await anywhere, so `require()` of this package works too.
 */
import * as glue from "../wasm/core/journal_fold.js"
import * as host from "#host"
import { EngineTrapError, fromThrown, JournalFoldError } from "./errors.js"

/** The functions of the module. */
export type Glue = typeof glue

/** Where a module can be had from: its address, its bytes, a response that carries them, or the compiled module. */
export type ModuleSource = string | URL | Response | ArrayBuffer | ArrayBufferView | WebAssembly.Module

let state: "absent" | "ready" | "broken" = "absent"
let generation = 0
let provided: BufferSource | WebAssembly.Module | undefined
let initializing: Promise<void> | undefined
let memory: WebAssembly.Memory | undefined

/**
 * How often the instance has been made anew. An object keeps the number at its birth: a handle of an instance that is gone must
 * never reach the one that came after it.
 */
export function currentGeneration(): number {
  return generation
}

/** Gives the module's bytes before first use, for hosts that have no file to load: what `journal-fold/inline` does. */
export function provide(source: BufferSource | WebAssembly.Module): void {
  provided ??= source
}

function start(source: BufferSource | WebAssembly.Module): void {
  const module = source instanceof WebAssembly.Module ? source : new WebAssembly.Module(source)
  // The glue would keep another module for good, once it was made an instance of.
  if (!WebAssembly.Module.exports(module).some(({ name }) => name === "inbox")) {
    throw new JournalFoldError("not_initialized", "the module that was given is another one than this package's")
  }
  glue.initSync({ module })
  state = "ready"
}

/**
 * Loads the module. Needed in browsers, once, before the first call; elsewhere harmless. Repeated calls share one promise, and a
 * failed one may be repeated.
 *
 * @param source Where to load it from; by default the file beside this one.
 */
export function init(source?: ModuleSource | Promise<ModuleSource>): Promise<void> {
  if (state !== "absent") return Promise.resolve()
  initializing ??= load(source)
    .then((module) => {
      if (state === "absent") start(module)
    })
    .catch((error: unknown) => {
      initializing = undefined
      throw error
    })
  return initializing
}

async function load(given?: ModuleSource | Promise<ModuleSource>): Promise<BufferSource | WebAssembly.Module> {
  const source = (await given) ?? provided
  if (source === undefined) return host.loadSync() ?? host.load()
  if (typeof source === "string" || source instanceof URL) return compile(await fetch(source))
  if (typeof Response === "function" && source instanceof Response) return compile(source)
  // Not left to the synchronous start: a page may not compile much while it waits.
  return source instanceof WebAssembly.Module ? source : WebAssembly.compile(source as BufferSource)
}

async function compile(response: Response): Promise<WebAssembly.Module> {
  if (!response.ok) {
    throw new JournalFoldError("not_initialized", `the module could not be loaded: ${response.url} answered ${response.status}`)
  }
  return WebAssembly.compile(await response.arrayBuffer())
}

function instance(): Glue {
  if (state === "absent") start(provided ?? loadNow())
  else if (state === "broken" && !renewed()) throw new EngineTrapError("the module trapped and could not be made anew", undefined)
  return glue
}

function loadNow(): BufferSource | WebAssembly.Module {
  let source: BufferSource | WebAssembly.Module | undefined
  try {
    source = host.loadSync()
  } catch (cause) {
    throw new JournalFoldError(
      "not_initialized",
      "the module's file is not beside this package's code, as happens in a bundle: import journal-fold/inline before anything else",
      {},
      { cause }
    )
  }
  if (source !== undefined) return source
  throw new JournalFoldError(
    "not_initialized",
    "the module is not loaded yet: call init() of the same subpath and await it before anything else"
  )
}

/**
 * Calls the module. An error that it throws becomes a typed one; anything else that comes out of it is a trap, after which the
 * instance is made anew.
 *
 * `work` may only call the module, write its memory and ask handles for their numbers: whatever else it throws counts as a trap.
 */
export function call<Result>(work: (module: Glue) => Result): Result {
  const module = instance()
  try {
    return work(module)
  } catch (error) {
    if (error instanceof Error && error.name === "JournalFold") throw fromThrown(error.message)
    // A handle that was disposed of, or whose instance is gone, says so before the module is called; so does what is too large.
    if (error instanceof JournalFoldError) throw error
    throw trapped(error)
  }
}

function trapped(cause: unknown): EngineTrapError {
  let message = ""
  try {
    message = glue.last_panic()
  } catch {
    // The instance is too far gone to say why.
  }
  const outcome = renewed() ? "was made anew" : "could not be made anew yet"
  const reason = message || (cause instanceof Error ? cause.message : String(cause))
  return new EngineTrapError(`the module trapped and ${outcome}: ${reason}`, cause)
}

/** Makes the instance anew, and says whether that worked; if not, the next call tries again. Objects of the old one are gone anyhow. */
function renewed(): boolean {
  state = "broken"
  generation += 1
  memory = undefined
  try {
    glue.__wbg_reset_state()
  } catch {
    return false
  }
  state = "ready"
  return true
}

/** A view of the module's memory. Taken anew after every call that may grow it. */
export function memoryBuffer(module: Glue): ArrayBuffer {
  memory ??= module.module_memory() as WebAssembly.Memory
  return memory.buffer as ArrayBuffer
}
