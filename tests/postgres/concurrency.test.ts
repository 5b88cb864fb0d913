/** Beside engines that write throughout: a verification raises no false alarm, and a rebuild changes nothing that it should not. */
import pg from "pg"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { rebuild, verify } from "journal-fold/postgres"
import { Engine } from "./engine.js"
import { freshStore } from "./stores.js"

let pool: pg.Pool
let clients: pg.Client[] = []

beforeEach(async () => {
  const { client, url } = await freshStore()
  const others = await Promise.all(
    Array.from({ length: 2 }, async () => {
      const other = new pg.Client({ connectionString: url })
      await other.connect()
      return other
    })
  )
  clients = [client, ...others]
  pool = new pg.Pool({ connectionString: url, max: 3 })
  return async () => {
    await pool.end()
    await Promise.all(clients.map((one) => one.end()))
  }
}, 60_000)

let stop: AbortController
let working: Promise<unknown>
let engines: Engine[]

async function started(sharesLock: boolean): Promise<void> {
  stop = new AbortController()
  engines = clients.map((client, place) => new Engine(client, `engine ${place}`, { runs: 12, sharesLock }))
  for (const engine of engines) for (let step = 0; step < 150; step++) await engine.step()
  working = Promise.all(engines.map((engine) => engine.work(stop.signal)))
}
afterEach(async () => {
  stop.abort()
  await working
})

describe("three engines that write throughout", () => {
  it("are verified forty times, and nothing is found", async () => {
    await started(false)
    let entries = 0
    for (let time = 0; time < 40; time++) {
      const { verdict, findings, rebuilt, coverage } = await verify(pool)
      expect(findings).toEqual([])
      expect(verdict).toBe("match")
      expect(rebuilt.unexplained).toBe(0)
      entries = coverage.entries
    }
    stop.abort()
    await working
    expect(entries).toBeGreaterThan(0)
    expect(engines.reduce((sum, { compactions }) => sum + compactions, 0)).toBeGreaterThan(3)
  }, 60_000)

  it.each([
    ["share the lock", true],
    ["know nothing of a rebuild", false]
  ])("and %s: every rebuild beside them is refused for being in the way, or leaves the tables sound", async (_, sharesLock) => {
    await started(sharesLock)
    let done = 0
    for (let time = 0; time < 8; time++) {
      // Somebody's hand: clocks that no engine will touch again are altered, which a rebuild has to repair.
      await pool.query(`UPDATE flows_clock_deadlines SET due_at_ms = due_at_ms + 1000000 WHERE (flow_name, execution_id, clock_name) IN
        (SELECT flow_name, execution_id, clock_name FROM flows_clock_deadlines WHERE completed_at_ms IS NOT NULL ORDER BY random() LIMIT 5)`)
      try {
        const { rows } = await rebuild(pool, { lockTimeoutMs: 20_000 })
        expect(rows).toBeGreaterThan(0)
        done += 1
        const { verdict, findings } = await verify(pool)
        expect(findings).toEqual([])
        expect(verdict).toBe("match")
      } catch (error) {
        expect(error).toMatchObject({ code: "store_busy" })
      }
    }
    expect(done).toBeGreaterThan(0)
    stop.abort()
    await working
    await rebuild(pool)
    expect((await verify(pool)).verdict).toBe("match")
  }, 60_000)
})
