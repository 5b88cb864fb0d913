// Asks a list of stores by `node:sqlite`, in a process of a Node that has it.
import { DatabaseSync } from "node:sqlite"
import { answersOf } from "./answers.mjs"

process.on("message", async ({ stores, runIds }) => {
  const answers = []
  for (const path of stores) answers.push(await answersOf((file) => new DatabaseSync(file), path, runIds))
  process.send(answers)
})
process.send("ready")
