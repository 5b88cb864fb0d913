// The tests of stores over `node:sqlite`, in a Node that has it:  node node-sqlite.mjs FILE
import { DatabaseSync } from "node:sqlite"
import { ObserverLogStore } from "journal-fold/sqlite"
import { durableStoreTests } from "journal-fold/testing"

const [file] = process.argv.slice(2)
const connections = new Map()
let count = 0
const connect = (path) => {
  const db = new DatabaseSync(path)
  const store = new ObserverLogStore(db, "stream", { durability: "process" })
  connections.set(store, { db, path })
  return store
}
const tests = durableStoreTests({
  open: () => connect(`${file}-${(count += 1)}`),
  again: (store) => connect(connections.get(store).path),
  close: (store) => connections.get(store).db.close()
})
let [passed, failed] = [0, 0]
for (const { name, run } of tests) {
  try {
    await run()
    passed += 1
  } catch (error) {
    failed += 1
    console.log(`${name}: ${error.message}`)
  }
}
console.log(`${passed} passed, ${failed} failed`)
