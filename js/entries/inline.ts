/**
 * `journal-fold/inline`: the module's bytes inside the script, for bundlers that drop files (esbuild, rollup, server bundles).
 * Import it once, before the first call; it costs a third more than the file.
 */
import { provide } from "../core/engine.js"
import { base64 } from "../wasm/core/inline.js"

provide(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)))
