/** What holds for any store: a rebuild makes a match, a compaction changes nothing, and how a store is read is of no matter. */
import fc from "fast-check"
import { describe, expect, it, vi } from "vitest"
import type { Verification } from "journal-fold/deferred-clock"
import { apply, checkpointStateText, plan, rebuild, verify, type SqliteVerifyOptions } from "journal-fold/sqlite"
// The limits of a read are nobody's option: what is found must not depend on them.
import { connect, reading } from "../../pkg/hosts/sqlite/connection.js"
import { runAll, verifying, type ReadLimits } from "../../pkg/hosts/sqlite/verify.js"
import { damages } from "../../js/demo/damages.js"
import { copyOf, demoStore, derivedRows, emptyStore, storyOf, verifyInMemory, type Db } from "./stores.js"

vi.setConfig({ testTimeout: 60_000 })

const { db: sound } = demoStore({ runs: 24 })
const soundRows = derivedRows(sound)
const both = { allowDeletePending: true, allowUnconsume: true }

/** Changes to the derived tables that a rebuild can undo, by the place of the row they strike. */
const drifts = {
  "a clock deleted": "DELETE FROM flows_clock_deadlines WHERE rowid = :at",
  "a due time altered": "UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + :by WHERE rowid = :at",
  "a clock pending again": "UPDATE flows_clock_deadlines SET completed_at_ms = NULL WHERE rowid = :at",
  "a clock fired": "UPDATE flows_clock_deadlines SET completed_at_ms = :by WHERE rowid = :at",
  "a clock that aims elsewhere": "UPDATE flows_clock_deadlines SET deferred_name = 'x' || :by WHERE rowid = :at",
  "a clock moved to another name": "UPDATE OR IGNORE flows_clock_deadlines SET clock_name = 'moved ' || :by WHERE rowid = :at",
  "a clock invented": "INSERT OR IGNORE INTO flows_clock_deadlines SELECT flow_name, execution_id, 'new ' || :by, 'd', :by, NULL FROM flows_clock_deadlines WHERE rowid = :at",
  "a clock of nobody": "INSERT OR IGNORE INTO flows_clock_deadlines VALUES ('G' || :at, 'nobody', 'c' || :by, 'd', :by, :at)",
  "a completion's time altered": "UPDATE flows_deferred_completions SET completed_at_ms = :by WHERE rowid = :at",
  "a consumption lost": "UPDATE flows_deferred_completions SET consumed_at_ms = NULL WHERE rowid = :at",
  "a consumption invented": "UPDATE flows_deferred_completions SET consumed_at_ms = :by WHERE rowid = :at"
}

const strikes = fc.array(
  fc.record({ what: fc.constantFrom(...Object.keys(drifts)), at: fc.integer({ min: 1, max: 160 }), by: fc.integer({ min: 0, max: 99 }) }),
  { maxLength: 60 }
)

function struck(db: Db, list: readonly { what: string; at: number; by: number }[]): Db {
  const copy = copyOf(db)
  for (const { what, ...values } of list) copy.prepare(drifts[what as keyof typeof drifts]).run(values)
  return copy
}

describe("a rebuild", () => {
  it("makes any drifted store a match, with an empty plan and the tables of old", () => {
    fc.assert(fc.property(strikes, (list) => {
      const db = struck(sound, list)
      const { rows } = plan(db)
      expect(rebuild(db, both).rows).toBe(rows)
      expect(verify(db)).toMatchObject({ verdict: "match", findings: [], plan: { rows: 0 } })
      expect(derivedRows(db)).toBe(soundRows)
    }), { numRuns: 60 })
  })

  it("does the same as a plan that is applied", () => {
    fc.assert(fc.property(strikes, (list) => {
      const [one, two] = [struck(sound, list), struck(sound, list)]
      expect(apply(one, plan(one), both)).toEqual(rebuild(two, both))
      expect(derivedRows(one)).toBe(derivedRows(two))
    }), { numRuns: 15 })
  })

  it("that is refused changes nothing", () => {
    fc.assert(fc.property(strikes, fc.constantFrom(...damages.filter((damage) => damage.class === "unjoined" || damage.class === "refused")), (list, damage) => {
      const db = struck(sound, list)
      try {
        damage.apply(db)
      } catch {
        // The strikes have taken what it would damage.
        return
      }
      const before = derivedRows(db)
      expect(() => rebuild(db, both)).toThrow(expect.objectContaining({ code: "fold_incomplete" }))
      expect(derivedRows(db)).toBe(before)
    }), { numRuns: 30 })
  })
})

describe("a compaction", () => {
  it("changes neither findings nor what is rebuilt nor the state's digest, wherever it cuts", () => {
    fc.assert(fc.property(strikes, fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 12 }), (list, cuts) => {
      const whole = struck(demoStore({ runs: 12, checkpointStateText: undefined as never }).db, list)
      const compacted = copyOf(whole)
      const runs = compacted.prepare("SELECT run_id, min(seq) AS first, max(seq) AS last FROM flows_journal_events GROUP BY run_id").all() as { run_id: string; first: number; last: number }[]
      for (const [which, where] of cuts) {
        const { run_id: runId, first, last } = runs[which % runs.length] as (typeof runs)[number]
        const upTo = first + (where % (last - first + 1))
        const highest = compacted.prepare("SELECT max(seq) FROM flows_journal_checkpoints WHERE run_id = ? AND compacted_at_ms IS NOT NULL").pluck().get(runId) as number | null
        if (highest !== null && highest >= upTo) continue
        compacted.transaction(() => {
          const state = checkpointStateText(compacted, runId, upTo)
          compacted.prepare("INSERT OR REPLACE INTO flows_journal_checkpoints VALUES (?, ?, ?, 0)").run(runId, upTo, state)
          compacted.prepare("DELETE FROM flows_journal_events WHERE run_id = ? AND seq <= ?").run(runId, upTo)
        })()
      }
      const told = ({ verdict, findings, unjoined, rebuilt, stateDigest, plan: made }: Verification) => ({ verdict, findings, unjoined, rebuilt, stateDigest, plan: made?.digest })
      expect(told(verify(compacted))).toEqual(told(verify(whole)))
    }), { numRuns: 25 })
  })
})

describe("what is found", () => {
  it("is what a verification of the same rows in memory finds, to the last byte of the plan", () => {
    // Bytes that are no UTF-8 are not in the strings that a driver hands out: only the host, which reads bytes, can see them.
    const legible = damages.filter(({ name }) => name !== "payload-not-utf8")
    fc.assert(fc.property(strikes, fc.subarray(legible, { maxLength: 4 }), (list, chosen) => {
      const db = struck(sound, list)
      for (const damage of chosen) {
        try {
          damage.apply(db)
        } catch {
          // Something else has taken its victim.
        }
      }
      const options = { heads: true, asOfMs: 1_735_700_000_000, strict: list.length % 2 === 0 }
      expect({ ...verify(db, options), digestFunction: "module" }).toEqual(verifyInMemory(db, options))
    }), { numRuns: 60 })
  })
})

describe("how a store is read", () => {
  const verifyIn = (db: Db, limits: ReadLimits, options: SqliteVerifyOptions = {}): Verification => {
    const connection = connect(db)
    return reading(connection, () => runAll(verifying(connection, options, limits), undefined))
  }
  const limits = fc.record({
    pages: fc.record({
      mostRows: fc.constantFrom(1, 2, 3, 7, 64, 4096),
      fewestRows: fc.constantFrom(1, 2),
      bytesAPage: fc.constantFrom(1, 100, 1000, 1 << 20),
      longPayload: fc.constantFrom(0, 90, 150, 4096)
    }),
    rowsAQuery: fc.constantFrom(1, 2, 3, 10, 5000)
  })
  const scopes = fc.constantFrom<SqliteVerifyOptions>({}, { runs: "live" }, { runs: ["acme-000000", "acme-000001", "nobody"] }, { except: ["acme-000001"] })

  it("is of no matter: rows and bytes a page, rows a query", () => {
    fc.assert(fc.property(strikes, limits, scopes, (list, given, scope) => {
      const db = struck(sound, list)
      expect(verifyIn(db, given, { ...scope, heads: true })).toEqual(verify(db, { ...scope, heads: true }))
    }), { numRuns: 60 })
  })

  it("is of no matter when a journal, a floor and a table are broken in many ways", () => {
    const db = copyOf(sound)
    for (const damage of damages.filter(({ name }) => !/^(payload|checkpoint|run-row)/.test(name))) damage.apply(db)
    const expected = verify(db)
    expect(Object.keys(expected.counts).length).toBeGreaterThan(5)
    fc.assert(fc.property(limits, (given) => {
      expect(verifyIn(db, given)).toEqual(expected)
    }), { numRuns: 40 })
  })

  it("is of no matter for entries with payloads of any length, none at all among them", () => {
    fc.assert(fc.property(fc.array(fc.constantFrom(0, 1, 50, 151, 4096, 4097, 20_000), { maxLength: 30 }), limits, (sizes, given) => {
      const db = emptyStore()
      const story = storyOf(db).run("r")
      sizes.forEach((size, place) => {
        story.append("r", place % 3 === 0 ? "another.type" : "flows.engine.clock-completed", size === 0 ? null : `{"pad":"${"x".repeat(size)}"}`)
        story.clock("r", `c${place}`)
      })
      expect(verifyIn(db, given)).toEqual(verify(db))
    }), { numRuns: 40 })
  })

  it("is of no matter for the encoding", () => {
    fc.assert(fc.property(strikes, limits, (list, given) => {
      const db = struck(sound, list)
      const other = emptyStore({ encoding: "UTF-16le" })
      for (const table of ["flows_runs", "flows_journal_events", "flows_journal_checkpoints", "flows_clock_deadlines", "flows_deferred_completions"]) {
        const columns = other.prepare(`SELECT * FROM ${table}`).columns().map(({ name }) => name)
        const insert = other.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => "?").join(", ")})`)
        other.transaction(() => {
          for (const row of db.prepare(`SELECT ${columns.join(", ")} FROM ${table}`).raw().iterate() as Iterable<unknown[]>) insert.run(...row)
        })()
      }
      expect(verifyIn(other, given, { heads: true })).toEqual(verify(db, { heads: true }))
    }), { numRuns: 10 })
  })
})
