import "journal-fold/inline"
import { capture } from "journal-fold/deferred-clock"
import { entries } from "./journal.mjs"

console.log(capture({ runId: "r", entries }, 100).clocks.length)
