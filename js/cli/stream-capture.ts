/** `capture FILE --fold observer-log`: the state of a stream, as the text of the snapshot row that restates it. */
import { JournalFoldError } from "../core/errors.js"
import { Aggregate, aggregateOf } from "../folds/observer-log/aggregate.js"
import { optionError, type Arguments } from "./arguments.js"
import type { Context } from "./context.js"
import { documentPieces, Spelled } from "./json.js"
import { withStream, type OpenStream } from "./stream.js"
import { exitCodes } from "./verbs.js"

const page = 512
const maximum = 2n ** 64n - 1n

/** Captures a stream: all of its rows, or those up to a sequence. */
export async function captureStream({ args, output }: Context): Promise<number> {
  const upTo = boundFrom(args)
  await withStream(args, async (stream) => {
    using aggregate = startOf(stream, upTo)
    const folded = foldUpTo(aggregate, stream, upTo)
    const text = aggregate.snapshot()
    if (!args.has("json")) return output.lines([text])
    return output.write(
      documentPieces({
        format: "journal-fold/stream-capture",
        version: 1,
        file: args.file,
        fold: "observer-log",
        stream: stream.name,
        upTo: args.text("up-to"),
        rows: String(folded),
        head: String(aggregate.next ?? 0n),
        stateDigest: aggregate.digest(),
        snapshot: new Spelled(text)
      })
    )
  })
  return exitCodes.match
}

/** What the fold begins with: nothing, or the snapshot at which a stream begins whose rows below it were deleted. */
function startOf({ store }: OpenStream, upTo: bigint): Aggregate {
  const [first] = store.readFrom(0n, 1)
  if (first === undefined || first.sequence === 0n) return new Aggregate()
  const sequence = first.sequence as bigint
  const found = sequence <= upTo ? aggregateOf(first.payload) : undefined
  if (found === undefined) throw pruned(sequence)
  return found
}

/** Folds the stream's rows from its first one on, and says how many. */
function foldUpTo(aggregate: Aggregate, { store }: OpenStream, upTo: bigint): bigint {
  let [offset, folded] = [0n, 0n]
  for (;;) {
    const rows = store.readFrom(offset, page)
    const wanted = rows.filter(({ sequence }) => (sequence as bigint) <= upTo)
    aggregate.push(wanted)
    folded += BigInt(wanted.length)
    const last = rows.at(-1)?.sequence as bigint | undefined
    if (last === undefined || last >= upTo || last === maximum) return folded
    offset = last + 1n
  }
}

function pruned(first: bigint): JournalFoldError {
  return new JournalFoldError("row_sequence", `expected a row at sequence 0, or a snapshot to begin with, found the first row at ${first}: what was below it is gone`, {
    seq: String(first),
    expected: "0",
    found: String(first)
  })
}

function boundFrom(args: Arguments): bigint {
  const text = args.text("up-to")
  if (text === undefined) return maximum
  const bound = /^\d{1,20}$/.test(text) ? BigInt(text) : maximum + 1n
  if (bound > maximum) throw optionError("up-to", "a sequence", text)
  return bound
}
