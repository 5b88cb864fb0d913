// A process of the example engine that writes to a store until it is told to stop:  node writer.mjs FILE [MS BETWEEN STEPS]
import Database from "better-sqlite3"
import { checkpointStateText } from "journal-fold/sqlite"
import { Engine } from "../../.build/demo/engine.js"

const [path, pauseMs = "0"] = process.argv.slice(2)
const db = new Database(path, { timeout: 10_000 })
db.pragma("synchronous = OFF")
const engine = new Engine(db, { seed: 11, entriesPerRun: 30, compactingPercent: 60, checkpointStateText })
let steps = 0
process.on("message", () => {
  process.send({ steps, compacted: engine.entriesCompacted })
  db.close()
  process.disconnect()
  clearTimeout(timer)
})
const write = () => {
  const until = Date.now() + 5
  do {
    engine.step()
    steps += 1
  } while (Date.now() < until && pauseMs === "0")
  timer = pauseMs === "0" ? setImmediate(write) : setTimeout(write, Number(pauseMs))
}
let timer = setTimeout(write)
process.on("disconnect", () => process.exit(0))
process.send("ready")
