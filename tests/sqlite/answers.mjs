// Everything the host says of one store, and what is in its tables after a rebuild: the same work for either driver.
import { apply, capture, checkCheckpoint, checkpointStateText, plan, rebuild, verify, verifyFile } from "journal-fold/sqlite"

const told = (error) => ({ code: error.code, message: error.message, details: error.details })

function outcomeOf(work) {
  try {
    return work()
  } catch (error) {
    return told(error)
  }
}

/** The tests read tables through the driver itself, whose errors are its own. */
function readable(work) {
  try {
    return work()
  } catch {
    return "unreadable"
  }
}

/**
 * @param open opens a file with a driver; gives its database, for writing
 * @param path a store that this may change
 */
export async function answersOf(open, path, runIds) {
  const ofFile = await verifyFile(path, { heads: true, busyTimeoutMs: 20 }).catch(told)
  const db = outcomeOf(() => open(path))
  if (db.code !== undefined) return { ofFile, open: db }
  const rows = (table, order) => db.prepare(`SELECT * FROM ${table} ORDER BY ${order}`).all().map((row) => Object.values(row))
  const derived = () => [
    rows("flows_clock_deadlines", "flow_name, execution_id, clock_name"),
    rows("flows_deferred_completions", "flow_name, execution_id, deferred_name")
  ]
  const answers = {
    ofFile,
    verified: outcomeOf(() => verify(db, { heads: true, asOfMs: 1_735_700_000_000 })),
    live: outcomeOf(() => verify(db, { runs: "live", strict: true })),
    nested: outcomeOf(() => {
      db.exec("BEGIN")
      try {
        return rebuild(db).rebuilt
      } finally {
        db.exec("ROLLBACK")
      }
    }),
    stopped: outcomeOf(() => verify(db, { onProgress: () => false }).verdict),
    planned: outcomeOf(() => plan(db).digest),
    captured: runIds.map((runId) => outcomeOf(() => capture(db, runId, 1e6))),
    checkpoints: runIds.map((runId) =>
      outcomeOf(() => {
        // As a compaction does: inside the caller's transaction, of which it stays a part.
        db.exec("BEGIN")
        try {
          const text = checkpointStateText(db, runId, 9_000_000_000_000_000, '{"a":1}')
          return [text, checkCheckpoint(db, runId, 9_000_000_000_000_000, text)]
        } finally {
          db.exec("ROLLBACK")
        }
      })
    ),
    refused: outcomeOf(() => rebuild(db).rebuilt),
    stale: outcomeOf(() => {
      const made = plan(db)
      db.exec("UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1")
      try {
        return apply(db, made, { allowDeletePending: true, allowUnconsume: true }).rowsChanged
      } finally {
        db.exec("UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms - 1")
      }
    }),
    rebuilt: outcomeOf(() => rebuild(db, { allowDeletePending: true, allowUnconsume: true }).rebuilt),
    derived: readable(derived)
  }
  const again = outcomeOf(() => verify(db))
  // No statement and no transaction was left open.
  outcomeOf(() => db.exec("BEGIN EXCLUSIVE; ROLLBACK"))
  db.close()
  return JSON.parse(JSON.stringify({ ...answers, again }))
}
