/** Streams of an observer log on the command line: verify, capture, status. */
import Database from "better-sqlite3"
import { describe, expect, it } from "vitest"
import { ObserverLogSync, reduce, verifyStoreSync } from "journal-fold/observer-log"
import { ObserverLogStore } from "journal-fold/sqlite"
import { emptyStore, file, folder, path, run, runJson } from "./harness.js"

type Db = Database.Database

function blob(sequence: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(sequence))
  return bytes
}

/** A file with a stream of 1,003 rows and three snapshots, after `change`. */
function stream(name: string, change: (db: Db) => void = () => {}, streams: readonly string[] = ["observers"]): string {
  const db = new Database(path(name))
  db.pragma("synchronous = OFF")
  for (const each of streams) {
    const log = ObserverLogSync.open(new ObserverLogStore(db, each, { durability: "process" }))
    for (let place = 0; place < 1000; place++) {
      const id = place % 20
      if (place < 20) log.track(id, 0)
      else if (place % 7 === 0) log.arm([[id, log.progress(id) as bigint]])
      else log.advance(id, (log.progress(id) as bigint) + 1n)
    }
    log.close()
  }
  change(db)
  db.close()
  return path(name)
}

const damagedBy = (db: Db): void => {
  const row = "WHERE sequence = ?"
  db.prepare(`UPDATE observer_log_rows SET payload = replace(payload, 'advance', 'advanse') ${row}`).run(blob(99))
  db.prepare(`DELETE FROM observer_log_rows ${row}`).run(blob(600))
  db.prepare(`DELETE FROM observer_log_rows ${row}`).run(blob(1002))
  db.prepare("UPDATE observer_log_values SET value = ? WHERE name = 'hint'").run(blob(5000))
}

const sound = stream("stream.db")
const damaged = stream("damaged-stream.db", damagedBy)
const ofLog = ["--fold", "observer-log"]
const withoutTimes = (text: string): string => text.replace(/took {9}.*/g, "took").replaceAll(`${folder}/`, "")

interface StreamDocument {
  readonly verdict: string
  readonly exitCode: number
  readonly stream: string
  readonly head: string
  readonly storedHead: string
  readonly hint: { readonly state: string; readonly stored: string; readonly latest: string }
  readonly coverage: { readonly rows: string; readonly snapshots: string; readonly last: string }
  readonly restore: { readonly rows: string; readonly foldedFrom: string; readonly error?: { readonly code: string; readonly seq: string } }
  readonly findings: readonly { readonly id: string; readonly seq?: string }[]
  readonly error?: { readonly code: string }
}

describe("verify --fold observer-log", () => {
  it("says of a sound stream what it covered, and what a restore would do", () => {
    const ran = run(["verify", sound, ...ofLog, "--stream", "observers"])
    expect(ran).toMatchObject({ status: 0, stderr: "" })
    expect(withoutTimes(ran.stdout)).toMatchInlineSnapshot(`
      "# journal-fold 0.1.0 verify stream.db --fold observer-log --stream observers
      #
      # MATCH  every row follows from those before it
      #
      #   covered      1,003 rows, sequences 0 to 1,002, in one snapshot
      #                3 snapshots, the last sound one at 770
      #   findings     none
      #   not checked  nothing
      #   hint         771: names the latest snapshot
      #   tail         a restore would read one snapshot and 232 rows from 771 on
      #   state        20 conversations, 3 armed
      #   digest       sum-xxh3-128 3e61e2113ee69e82a72729c2b20b7f6b
      #   took
      "
    `)
  })

  it("names every damage at its place, in lines that no terminal breaks", () => {
    const ran = run(["verify", damaged, ...ofLog])
    expect(ran).toMatchObject({ status: 3, stderr: "" })
    const lines = ran.stdout.split("\n")
    expect(lines.filter((line) => !line.startsWith("#") && line !== "")).toEqual([
      `row_malformed class=refused seq=99 offset=33 expected="track, advance, arms or snapshot" found="'\\"'"`,
      "row_sequence class=refused seq=601 expected=600 found=601",
      "rows_missing_at_end class=refused seq=1002 expected=1003 found=1002",
      "hint_too_high class=drift expected=771 found=5000"
    ])
    // The first line names the file, wherever that is.
    for (const line of lines.slice(1).filter((line) => line.startsWith("#"))) expect(line.length, line).toBeLessThanOrEqual(80)
    expect(ran.stdout).toContain("#   next         journal-fold explain row_malformed\n")
    expect(run(["verify", damaged, ...ofLog, "--max-findings", "1"]).stdout).toContain("# … and 3 more findings, not printed (--max-findings 1)\n")
  })

  it("prints a document whose numbers are decimal texts", () => {
    const { status, document } = runJson<StreamDocument>(["verify", damaged, ...ofLog])
    expect(status).toBe(3)
    expect(document).toMatchObject({
      verdict: "refused",
      exitCode: 3,
      stream: "observers",
      head: "1002",
      storedHead: "1003",
      hint: { state: "too_high", stored: "5000", latest: "771" },
      coverage: { rows: "1001", snapshots: "3", last: "1001" },
      restore: { error: { code: "row_malformed", seq: "99" } }
    })
    expect(document.findings.map(({ id }) => id)).toEqual(["row_malformed", "row_sequence", "rows_missing_at_end", "hint_too_high"])
  })

  it("calls a stream whose hint alone is wrong drift", () => {
    const name = stream("hint.db", (db) => db.prepare("UPDATE observer_log_values SET value = ? WHERE name = 'hint'").run(blob(7)))
    const { status, document } = runJson<StreamDocument>(["verify", name, ...ofLog])
    expect(status).toBe(1)
    expect(document.findings.map(({ id }) => id)).toEqual(["hint_wrong"])
  })

  it("stops when its time is over, with a partial report", () => {
    const ran = run(["verify", sound, ...ofLog, "--max-seconds", "0"])
    expect(ran.status).toBe(4)
    expect(ran.stdout).toContain("# PARTIAL  stopped before the end, after 0 s\n")
    expect(ran.stdout).toContain("whatever comes after what is covered")
    expect(ran.stdout).toContain("#   next         journal-fold verify")
  })

  it("reads tables of other names", () => {
    const name = stream("named.db", (db) => db.exec('ALTER TABLE observer_log_rows RENAME TO "my rows"; ALTER TABLE observer_log_values RENAME TO "my values"'))
    const names = file("stream-names.json", '{"rows":"my rows","values":"my values"}')
    expect(run(["verify", name, ...ofLog, "--names", names]).status).toBe(0)
    expect(run(["verify", name, ...ofLog])).toMatchObject({ status: 2, stderr: expect.stringContaining("store_table_missing") })
  })
})

describe("status", () => {
  it("prints range, rows, snapshots, hint and tail", () => {
    const ran = run(["status", sound])
    expect(ran).toMatchObject({ status: 0, stderr: "" })
    expect(withoutTimes(ran.stdout)).toMatchInlineSnapshot(`
      "# journal-fold 0.1.0 status stream.db --fold observer-log --stream observers
      #   range        0 to 1,002; the next row takes 1,003
      #   rows         1,003
      #   snapshots    3, the last sound one at 770
      #   hint         771: names the latest snapshot
      #   tail         a restore would read one snapshot and 232 rows from 771 on
      #   state        20 conversations, 3 armed
      #   digest       sum-xxh3-128 3e61e2113ee69e82a72729c2b20b7f6b
      #   verdict      nothing is wrong
      #   took
      "
    `)
  })

  it("says that something is wrong, and who says what", () => {
    const { status, stdout } = run(["status", damaged, ...ofLog, "--stream", "observers"])
    expect(status).toBe(0)
    expect(stdout).toContain("#   rows         1,001, 1 missing between them\n")
    expect(stdout).toContain("#   verdict      4 findings, refused: verify names them\n")
    expect(stdout).toContain(`#   next         journal-fold verify ${damaged} --fold observer-log --stream observers\n`)
    expect(runJson<StreamDocument>(["status", damaged]).document).toMatchObject({ verdict: "refused", exitCode: 0 })
  })

  it("says of a stream whose beginning was deleted where it begins", () => {
    const pruned = stream("pruned.db", (db) => db.prepare("DELETE FROM observer_log_rows WHERE sequence < ?").run(blob(513)))
    expect(run(["status", pruned]).stdout).toContain("#   range        513 to 1,002; the next row takes 1,003; rows below were deleted\n")
  })

  it("asks which stream is meant, and says which there are", () => {
    const two = stream("two.db", () => {}, ["a", "b b"])
    expect(run(["status", two])).toMatchObject({ status: 2, stderr: expect.stringContaining('has 2 streams: name one with --stream: "a", "b b"') })
    expect(run(["status", two, "--stream", "b b"]).stdout).toContain("--stream 'b b'\n")
    const { status, document } = runJson<StreamDocument>(["status", two, "--stream", "c"])
    expect(status).toBe(2)
    expect(document.error?.code).toBe("stream_unknown")
  })

  it("says of a store without streams that it has none", () => {
    const none = emptyStore("none.db", (db) => void new ObserverLogStore(db, "s"))
    expect(run(["status", none])).toMatchObject({ status: 2, stderr: expect.stringContaining("stream_unknown") })
    expect(run(["status", emptyStore("no-tables.db")])).toMatchObject({ status: 2, stderr: expect.stringContaining("store_table_missing") })
    expect(run(["status", path("nowhere.db")])).toMatchObject({ status: 2, stderr: expect.stringContaining("store_unreadable") })
    expect(run(["status", "postgres://localhost/x"])).toMatchObject({ status: 2, stderr: expect.stringContaining("SQLite") })
  })
})

describe("capture --fold observer-log", () => {
  const open = (name: string): ObserverLogStore => new ObserverLogStore(new Database(name, { readonly: true }), "observers", { create: false, durability: "process" })

  it("prints the snapshot that restates the stream, or its beginning", () => {
    const rows = open(sound).readFrom(0n, 2000)
    for (const upTo of [0, 30, 256, 1002]) {
      const { stdout, status } = run(["capture", sound, ...ofLog, "--up-to", String(upTo)])
      expect(status).toBe(0)
      const { progress, armed } = JSON.parse(JSON.stringify(reduce({ progress: [], armed: [] }, rows.slice(0, upTo + 1)))) as Record<string, string[][]>
      expect(JSON.parse(stdout)).toEqual({
        schema_version: 2,
        row: { row: "snapshot", progress: progress?.map((pair) => pair.map(Number)), armed: armed?.map((pair) => pair.map(Number)) }
      })
    }
    expect(run(["capture", sound, ...ofLog]).stdout).toBe(run(["capture", sound, ...ofLog, "--up-to", "18446744073709551615"]).stdout)
    const { document } = runJson<{ stateDigest: unknown; rows: string; head: string }>(["capture", sound, ...ofLog])
    expect(document).toMatchObject({ rows: "1003", head: "1003", stateDigest: verifyStoreSync(open(sound)).stateDigest })
  })

  it("begins at the snapshot to which a stream was pruned", () => {
    const pruned = stream("pruned-capture.db", (db) => db.prepare("DELETE FROM observer_log_rows WHERE sequence < ?").run(blob(513)))
    expect(run(["capture", pruned, ...ofLog]).stdout).toBe(run(["capture", sound, ...ofLog]).stdout)
    expect(run(["capture", pruned, ...ofLog, "--up-to", "512"])).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("row_sequence") })
    const headless = stream("headless.db", (db) => db.prepare("DELETE FROM observer_log_rows WHERE sequence < ?").run(blob(514)))
    expect(run(["capture", headless, ...ofLog])).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("row_sequence") })
  })

  it("refuses what is about runs, and a stream without its fold", () => {
    for (const [words, said] of [
      [["capture", sound, "run-1", ...ofLog], "has no runs"],
      [["verify", sound, "--strict", ...ofLog], "--strict is about runs"],
      [["verify", sound, "--stream", "observers"], "add --fold observer-log"],
      [["verify", sound, "--fold", "observers"], "expected deferred-clock or observer-log"],
      [["status", sound, "--fold", "deferred-clock"], "status is about a stream"],
      [["capture", sound, ...ofLog, "--up-to", "18446744073709551616"], "--up-to"]
    ] as const) {
      expect(run(words)).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(said) })
    }
  })
})
