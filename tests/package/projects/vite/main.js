import { capture, init } from "journal-fold/deferred-clock"
import { contentDigest } from "journal-fold/digest"
import { entries } from "./journal.mjs"

await init()
document.title = JSON.stringify({ clocks: capture({ runId: "r", entries }, 100).clocks.length, digest: contentDigest("größe") })
