/** Floors: of each run the compacted checkpoint with the highest seq. Their states may be large, so each is read when its run comes. */
import { isUtf8 } from "node:buffer"
import type { Floor } from "../../folds/deferred-clock/types.js"
import type { Scope } from "../scope.js"
import type { Connection } from "./connection.js"
import { runIdOf } from "./journal.js"
import type { Names } from "./names.js"
import { checkpointStatements, type CheckpointStatements } from "./statements.js"

/** A run's floor. */
export interface StoredFloor {
  readonly runId: string
  readonly seq: string
}

/** Reads floors. */
export class FloorReader {
  readonly #connection: Connection
  readonly #utf8: boolean
  readonly #statements: CheckpointStatements

  constructor(connection: Connection, names: Names, scope: Scope, utf8: boolean) {
    this.#connection = connection
    this.#utf8 = utf8
    this.#statements = checkpointStatements(names, scope)
  }

  /** Every run's floor, in order of run. For stores in UTF-8, whose own order is that of a verification. */
  *floors(): Generator<StoredFloor, undefined> {
    // An empty id is an id too: begin at it.
    let after: Uint8Array = new Uint8Array(0)
    let sql = this.#statements.from
    for (;;) {
      const rows = this.#connection.all(sql, after)
      sql = this.#statements.after
      for (const [, seq, run] of rows) yield { runId: runIdOf(run as Uint8Array), seq: String(seq) }
      const last = rows.at(-1)
      if (last === undefined) return
      // By its bytes: a text that is no UTF-8 would be another one when bound again.
      after = last[2] as Uint8Array
    }
  }

  /** A run's floor, if it has one. */
  floorOf(runId: string): StoredFloor | undefined {
    const [row] = this.#connection.all(this.#statements.one, runId)
    return row === undefined ? undefined : { runId, seq: String(row[1]) }
  }

  /** A floor with its state, as the fold takes it. A state that is NULL or no UTF-8 is no JSON. */
  read(floor: StoredFloor): Floor {
    return { seq: floor.seq, compactedAtMs: 0, stateText: this.#stateOf(floor) }
  }

  #stateOf({ runId, seq }: StoredFloor): string {
    const sql = this.#utf8 ? this.#statements.stateBytes : this.#statements.state
    const state = this.#connection.all(sql, runId, seq)[0]?.[0]
    if (!(state instanceof Uint8Array)) return String(state ?? "")
    return isUtf8(state) ? Buffer.from(state.buffer, state.byteOffset, state.byteLength).toString() : ""
  }
}
