/** Writes an exported run, line by line. Who writes says what comes; this room knows how it is spelled and counts. */
import { version } from "../version.js"
import { kinds, runFold, runFormat, runFormatVersion, visibleJson, type Counts, type Kind, type RunFileHeader } from "./format.js"

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Spells lines, each with its line feed, and counts them. */
export class RunFileWriter {
  readonly #counts: Counts = { checkpoints: 0, entries: 0, runs: 0, clocks: 0, completions: 0 }
  /** Texts that were no UTF-8 and went as base64. */
  base64 = 0

  header({ runId, floor, eventTypes, values }: RunFileHeader): string {
    return line({
      format: runFormat,
      version: runFormatVersion,
      fold: runFold,
      foldVersion: version,
      runId,
      floor: floor ?? null,
      eventTypes,
      values
    })
  }

  /** `compactedAtMs` is spelled as JSON already. */
  checkpoint(seq: string, compactedAtMs: string, state: string | Uint8Array | null): string {
    return this.#counted("checkpoint", `{"seq":${JSON.stringify(seq)},"compactedAtMs":${compactedAtMs},${this.text("state", state)}}`)
  }

  entry(seq: string, type: string | Uint8Array | null, payload: string | Uint8Array | null): string {
    return this.#counted("entry", `{"seq":${JSON.stringify(seq)},${this.text("type", type)},${this.text("payload", payload)}}`)
  }

  run(runId: string): string {
    return this.#counted("run", `{"runId":${JSON.stringify(runId)}}`)
  }

  /** A row by its members, each spelled as `"name":value` already: a 64-bit integer keeps all its digits. */
  row(kind: "clock" | "completion", members: readonly string[]): string {
    return this.#counted(kind, `{${members.join(",")}}`)
  }

  /** A line that another exported run has, as it is. */
  again(kind: Kind, text: string): string {
    this.#counts[kinds[kind]] += 1
    return `${visibleJson(text)}\n`
  }

  end(): string {
    return line({ end: this.#counts })
  }

  /** A text member, or a base64 one when the bytes are no text. */
  text(name: string, value: string | Uint8Array | null): string {
    if (value === null || typeof value === "string") return `"${name}":${JSON.stringify(value)}`
    try {
      return `"${name}":${JSON.stringify(decoder.decode(value))}`
    } catch {
      this.base64 += 1
      return `"${name}Base64":"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")}"`
    }
  }

  #counted(kind: Kind, members: string): string {
    this.#counts[kinds[kind]] += 1
    return `${visibleJson(`{"${kind}":${members}}`)}\n`
  }
}

function line(value: unknown): string {
  return `${visibleJson(JSON.stringify(value))}\n`
}
