// Changes a stream until it is killed or done, and says of each change that was acknowledged what it was:
//
//   node writer.mjs FILE STREAM FIRST COUNT     conversations FIRST, FIRST+1, …; COUNT changes, 0 for no end
import { writeSync } from "node:fs"
import Database from "better-sqlite3"
import { ObserverLogSync } from "journal-fold/observer-log"
import { ObserverLogStore } from "journal-fold/sqlite"

const [file, stream, first, count] = process.argv.slice(2)
const db = new Database(file, { timeout: 10_000 })
const store = new ObserverLogStore(db, stream)

/** A pipe takes a line at once, so that what was said is known whatever happens next. */
const say = (...words) => writeSync(1, `${words.join(" ")}\n`)

/** Another writer may have had the sequence: then the change is asked for again. */
function change(log, work) {
  for (;;) {
    try {
      return work(log)
    } catch (error) {
      if (error.code === "sequence_conflict") say("conflict")
      else if (error.code !== "store_failed" || !/busy|locked/.test(error.cause?.message)) throw error
    }
  }
}

let log
while (log === undefined) {
  try {
    log = ObserverLogSync.open(store)
  } catch (error) {
    if (error.code !== "sequence_conflict" && error.code !== "store_failed") throw error
  }
}
say("open", log.head)
let conversation = BigInt(first)
let progress = 0n
for (let place = 0; count === "0" || place < Number(count); place++) {
  if (place % 40 === 0) {
    if (place > 0) conversation += 1n
    progress = 0n
    change(log, () => log.track(conversation, progress))
    say("track", conversation)
  } else if (place % 3 === 0) {
    change(log, () => log.arm([[conversation, progress]]))
    say("arm", conversation, progress)
  } else {
    const { fired } = change(log, () => log.advance(conversation, progress + 1n))
    progress += 1n
    say("advance", conversation, progress, fired?.refusedEpoch ?? "-")
  }
}
say("done")
