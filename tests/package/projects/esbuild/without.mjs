import { capture } from "journal-fold/deferred-clock"

try {
  capture({ runId: "r", entries: [] }, 100)
} catch ({ code, message }) {
  console.log(code, message.includes("journal-fold/inline"))
}
