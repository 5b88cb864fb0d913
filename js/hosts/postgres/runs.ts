/** The runs of a store, one after another: pages, floors and ids asked for, all in order of run, go into a rebuild. */
import type { Rebuild } from "../../folds/deferred-clock/rebuild.js"
import type { ExecutionAddress } from "../../folds/deferred-clock/types.js"
import { compareUtf8 } from "../../folds/deferred-clock/verify.js"
import { namingSeqs, type FloorReader, type Segment, type StoredFloor } from "./journal.js"
import type { RecordedDigests } from "./jsonb.js"
import type { RowReader } from "./rows.js"

/** Runs whose rows are asked for together. Small runs would otherwise cost a query each. */
const runsAnAnswer = 256
/** Entries after which waiting runs are answered, so that large ones do not pile up. */
const entriesAnAnswer = 20_000

/** Turns pages, floors and ids asked for, all in order of run, into the runs of a rebuild. */
export class RunLoop {
  readonly #rebuild: Rebuild
  readonly #rows: RowReader
  readonly #floors: FloorReader
  readonly #recorded: RecordedDigests | undefined
  readonly #except: ReadonlySet<string>
  readonly #ids: readonly string[]
  #nextId = 0
  #current: string | undefined
  #wantedRuns: string[] = []
  #wantedAddresses: ExecutionAddress[] = []
  #waitingRuns = 0
  #waitingEntries = 0
  entries = 0
  runs = 0

  constructor(
    rebuild: Rebuild,
    rows: RowReader,
    floors: FloorReader,
    recorded: RecordedDigests | undefined,
    { except, ids }: { readonly except: ReadonlySet<string>; readonly ids: readonly string[] }
  ) {
    this.#rebuild = rebuild
    this.#rows = rows
    this.#floors = floors
    this.#recorded = recorded
    this.#except = except
    this.#ids = ids
  }

  /** Takes entries of the next run, or more of the current one. */
  async segment(segment: Segment): Promise<void> {
    this.entries += segment.entries
    if (this.#except.has(segment.runId)) return
    if (segment.runId !== this.#current) {
      await this.#before(segment.runId)
      this.#begin(segment.runId, await this.#floorOf(segment.runId))
    }
    this.#waitingEntries += segment.entries
    namingSeqs(segment.runId, () =>
      this.#rebuild.pushLists(segment.payloads, segment.lengths, segment.seqs, segment.types, 0)
    )
    this.#recorded?.push(segment)
  }

  /** Ends the last run. */
  async end(): Promise<void> {
    await this.#before(undefined)
    await this.#answer()
  }

  /** Ends before the last run: those that have ended are compared, and the one in the middle counts for nothing. */
  async stop(): Promise<void> {
    await this.#answer()
  }

  /** Ends the current run, and takes those without entries that stand before `runId`: they have a floor, or were asked for. */
  async #before(runId: string | undefined): Promise<void> {
    await this.#endRun()
    for (;;) {
      const floor = await this.#floors.peek()
      const id = this.#ids[this.#nextId]
      const next = floor === undefined || (id !== undefined && compareUtf8(id, floor.runId) < 0) ? id : floor.runId
      if (next === undefined || (runId !== undefined && compareUtf8(next, runId) >= 0)) return
      const own = await this.#floorOf(next)
      if (this.#except.has(next)) continue
      this.#begin(next, own)
      await this.#endRun()
    }
  }

  /** Takes the floor of a run that has come, and its id. */
  async #floorOf(runId: string): Promise<StoredFloor | undefined> {
    if (this.#ids[this.#nextId] === runId) this.#nextId += 1
    const floor = await this.#floors.peek()
    if (floor?.runId !== runId) return undefined
    this.#floors.take()
    return floor
  }

  #begin(runId: string, floor: StoredFloor | undefined): void {
    const floors = floor === undefined ? [] : [{ seq: floor.seq, compactedAtMs: 0, stateText: floor.stateText }]
    this.#rebuild.beginRun(runId, floors)
    this.#recorded?.begin(runId, floors)
    this.#current = runId
    this.runs += 1
  }

  async #endRun(): Promise<void> {
    if (this.#current === undefined) return
    this.#current = undefined
    const wanted = this.#rebuild.endRun()
    this.#recorded?.end()
    for (const run of wanted.runs) this.#wantedRuns.push(run)
    for (const address of wanted.addresses) this.#wantedAddresses.push(address)
    this.#waitingRuns += 1
    if (this.#waitingRuns >= runsAnAnswer || this.#waitingEntries >= entriesAnAnswer) await this.#answer()
  }

  async #answer(): Promise<void> {
    await this.#rows.answer(this.#rebuild, { runs: this.#wantedRuns, addresses: this.#wantedAddresses })
    this.#wantedRuns = []
    this.#wantedAddresses = []
    this.#waitingRuns = 0
    this.#waitingEntries = 0
  }
}
