/** The runs of a store, one after another: segments and floors, both in order of run, go into a rebuild, and stored rows come back. */
import type { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import type { FloorReader, StoredFloor } from "./floors.js"
import { pushSegment, type Segment } from "./journal.js"
import type { RowReader } from "./rows.js"

/** Runs whose rows are asked for together. Small runs would otherwise cost some queries each. */
const runsAnAnswer = 256
/** Entries after which waiting runs are answered: about as many rows as one query gives. */
const entriesAnAnswer = 10_000

/** Turns segments and floors into the runs of a rebuild. */
export class RunLoop {
  readonly #rebuild: Rebuild
  readonly #taker: Parameters<typeof pushSegment>[1]
  readonly #rows: RowReader
  readonly #floorReader: FloorReader
  readonly #except: ReadonlySet<string>
  readonly #floors: Iterator<StoredFloor, undefined>
  #nextFloor: StoredFloor | undefined
  #current: string | undefined
  #wantedRuns: string[] = []
  #wantedAddresses: ExecutionAddress[] = []
  #endedRuns = 0
  #endedEntries = 0
  entries = 0
  runs = 0

  /** With `ordered`, segments come in order of run, and runs that have only a floor are found between them. */
  constructor(rebuild: Rebuild, rows: RowReader, floorReader: FloorReader, except: ReadonlySet<string>, ordered: boolean) {
    this.#rebuild = rebuild
    this.#taker = { push: (rows) => rebuild.push(rows), pushLists: (...lists) => rebuild.pushLists(...lists, 0) }
    this.#rows = rows
    this.#floorReader = floorReader
    this.#except = except
    this.#floors = ordered ? floorReader.floors() : [].values()
    this.#nextFloor = this.#floors.next().value
  }

  /** Begins one run by its id, whether it has entries or not. */
  run(runId: string): void {
    if (this.#except.has(runId)) return
    this.#endRun()
    this.#begin(runId, this.#floorReader.floorOf(runId))
  }

  /** Takes entries of the next run, or more of the current one. */
  segment(segment: Segment): void {
    this.entries += segment.entries
    const { runId } = segment
    if (this.#except.has(runId)) return
    if (runId !== this.#current) {
      this.#endRun()
      this.#floorsBefore(runId)
      this.#begin(runId, this.#nextFloor?.runId === runId ? this.#takeFloor() : undefined)
    }
    this.#endedEntries += segment.entries
    pushSegment(segment, this.#taker)
  }

  /** Ends the last run. */
  end(): void {
    this.#endRun()
    this.#floorsBefore(undefined)
    this.#answer()
  }

  /** Ends before the last run: those that have ended are compared, and the one in the middle counts for nothing. */
  stop(): void {
    this.#answer()
  }

  /** Runs that have a floor and no entries, in their place. */
  #floorsBefore(runId: string | undefined): void {
    while (this.#nextFloor !== undefined && (runId === undefined || compareUtf8(this.#nextFloor.runId, runId) < 0)) {
      const floor = this.#takeFloor() as StoredFloor
      if (this.#except.has(floor.runId)) continue
      this.#begin(floor.runId, floor)
      this.#endRun()
    }
  }

  #takeFloor(): StoredFloor | undefined {
    const floor = this.#nextFloor
    this.#nextFloor = this.#floors.next().value
    return floor
  }

  #begin(runId: string, floor: StoredFloor | undefined): void {
    this.#rebuild.beginRun(runId, floor === undefined ? undefined : [this.#floorReader.read(floor)])
    this.#current = runId
    this.runs += 1
  }

  #endRun(): void {
    if (this.#current === undefined) return
    this.#current = undefined
    const { runs, addresses } = this.#rebuild.endRun()
    for (const run of runs) this.#wantedRuns.push(run)
    for (const address of addresses) this.#wantedAddresses.push(address)
    this.#endedRuns += 1
    if (this.#endedRuns >= runsAnAnswer || this.#endedEntries >= entriesAnAnswer) this.#answer()
  }

  #answer(): void {
    this.#rows.answer({ runs: this.#wantedRuns, addresses: this.#wantedAddresses })
    this.#wantedRuns = []
    this.#wantedAddresses = []
    this.#endedRuns = 0
    this.#endedEntries = 0
  }
}
