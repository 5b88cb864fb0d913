/** What the tests of the observer log share: rows, pages of them, stores that take their time. */
import { MemoryStore, ObserverLogSync, type DurableStore, type RowInput, type RowPage, type StoredRow } from "journal-fold/observer-log"

export const most = 2n ** 64n - 1n
export const track = (conversationId: bigint | number, observerProgress: bigint | number = 0): RowInput => ({ row: "track", conversationId, observerProgress })

export function codeOf(work: () => unknown): string | undefined {
  try {
    work()
  } catch (error) {
    return (error as { code?: string }).code
  }
  return undefined
}

/** Rows of a stream, as a log writes them. */
export function rowsOf(changes: number): StoredRow[] {
  const store = new MemoryStore()
  const log = ObserverLogSync.open(store)
  for (let place = 0; place < changes; place++) {
    const id = BigInt(place % 30) * 2n ** 59n
    const progress = log.progress(id)
    if (progress === undefined) log.track(id, 5n)
    else if (place % 4 === 0) log.arm([[id, progress]])
    else log.advance(id, progress + 2n ** 54n)
  }
  log.close()
  return store.readFrom(0n, changes * 2)
}

/** The same rows as a page of bytes. */
export function pageOf(rows: readonly StoredRow[]): RowPage {
  const payloads = rows.map(({ payload }) => Buffer.from(payload as string))
  let end = 0
  return {
    bytes: new Uint8Array(Buffer.concat(payloads)),
    ends: Uint32Array.from(payloads, ({ length }) => (end += length)),
    sequences: BigUint64Array.from(rows, ({ sequence }) => BigInt(sequence))
  }
}

/** A store that answers later, in turns of the event loop, and says what it is asked. */
export function slow(store: MemoryStore): DurableStore & { readonly asked: string[] } {
  const asked: string[] = []
  const method =
    <Method extends keyof DurableStore>(name: Method) =>
    async (...args: Parameters<DurableStore[Method]>) => {
      asked.push(name)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2))
      return (store[name] as (...args: unknown[]) => unknown)(...args)
    }
  return {
    asked,
    readFrom: method("readFrom"),
    readAt: method("readAt"),
    appendAll: method("appendAll"),
    flush: method("flush"),
    readValue: method("readValue"),
    cas: method("cas"),
    readHead: method("readHead")
  } as unknown as DurableStore & { readonly asked: string[] }
}
