/** A stream of an observer log as the verbs read it: which one is meant, and a look at the whole of it. */
import { describe, JournalFoldError } from "../core/errors.js"
import { verifyStore } from "../folds/observer-log/rebuild.js"
import type { StreamReader } from "../folds/observer-log/store.js"
import type { StreamVerification } from "../folds/observer-log/types.js"
import { isPostgresUrl } from "../hosts/postgres/open.js"
import { connect, reading } from "../hosts/sqlite/connection.js"
import { ObserverLogStore, type ObserverLogStoreOptions } from "../hosts/sqlite/observer-log-store.js"
import { openFile } from "../hosts/sqlite/open.js"
import { usageError, type Arguments } from "./arguments.js"
import { busyTimeoutFrom, namesFrom } from "./inputs.js"
import { watched, type StoppedBy } from "./look.js"
import { defaultBusyTimeoutMs, looksLikeRun } from "./source.js"

/** An open stream, read in one snapshot. */
export interface OpenStream {
  readonly name: string
  readonly store: ObserverLogStore
}

/** Opens the stream that a command names and lets `work` read it, in one snapshot. */
export async function withStream<Result>(args: Arguments, work: (stream: OpenStream) => Promise<Result>): Promise<Result> {
  if (isPostgresUrl(args.store)) throw usageError("an observer log is read from a SQLite store, and this is the URL of another")
  if (looksLikeRun(args.store)) throw usageError(`${args.file} is an exported run, which has no streams`)
  const tables = namesFrom(args) as ObserverLogStoreOptions["tables"]
  const { busyTimeoutMs = defaultBusyTimeoutMs } = busyTimeoutFrom(args)
  const { db, close } = await openFile(args.store, { readOnly: true, busyTimeoutMs })
  const connection = connect(db)
  try {
    connection.exec("BEGIN")
    const named = reading(connection, () => ObserverLogStore.streams(db, tables))
    const name = streamFrom(args, named)
    const options = { durability: "process", create: false, ...(tables && { tables }) } as const
    return await work({ name, store: new ObserverLogStore(db, name, options) })
  } finally {
    if (connection.inTransaction) connection.exec("ROLLBACK")
    close()
  }
}

/** The stream that was asked for; without a name, the only one there is. */
function streamFrom(args: Arguments, streams: readonly string[]): string {
  const asked = args.text("stream")
  if (asked !== undefined && streams.includes(asked)) return asked
  const some = streams.slice(0, 5).map((name) => JSON.stringify(name)).join(", ")
  const there = streams.length > 5 ? `${some} and ${streams.length - 5} more` : some || "none"
  if (asked !== undefined) {
    throw new JournalFoldError("stream_unknown", `${args.file} has no stream ${describe(asked)}; it has ${there}`, { found: asked, expected: there })
  }
  if (streams.length === 1) return streams[0] as string
  if (streams.length === 0) throw new JournalFoldError("stream_unknown", `${args.file} has no stream yet`, { expected: "a stream", found: "none" })
  throw usageError(`${args.file} has ${streams.length} streams: name one with --stream: ${there}`)
}

/** What a look at a stream gave. */
export interface StreamLook {
  readonly stream: string
  readonly verification: StreamVerification
  readonly stoppedBy?: StoppedBy
}

/** Looks at the whole of the stream that a command names. */
export function lookAtStream(args: Arguments, startMs: number): Promise<StreamLook> {
  return watched(args, startMs, (onProgress, stoppedBy) =>
    withStream(args, async ({ name, store }) => {
      const stop = new AbortController()
      const verification = await verifyStore(breathing(store), {
        signal: stop.signal,
        onProgress: ({ rows, head }) => {
          if (onProgress({ entries: Number(rows), total: Number(head), unit: "rows" }) === false) stop.abort()
        }
      })
      const by = verification.verdict === "partial" ? stoppedBy() : undefined
      return { stream: name, verification, ...(by && { stoppedBy: by }) }
    })
  )
}

/** Milliseconds of reading between two turns of the event loop, in which a Ctrl-C is heard. */
const sliceMs = 20

/** What is read of a store that answers at once, with turns of the event loop in between. */
function breathing(store: ObserverLogStore): StreamReader {
  let until = performance.now() + sliceMs
  return {
    readFrom: async (offset, limit) => {
      if (performance.now() >= until) {
        await new Promise((resolve) => setImmediate(resolve))
        until = performance.now() + sliceMs
      }
      return store.readFrom(offset, limit)
    },
    readValue: () => store.readValue(),
    readHead: () => store.readHead()
  }
}
