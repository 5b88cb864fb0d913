/** The verbs, each said once: what it takes, what it does, how its help reads. Their work is in a file of their names. */
import { judgingOptions, readingOptions, scopeOptions, type OptionName } from "./options.js"
import type { Context } from "./context.js"

/** The work of a verb; gives the exit code. */
export type Work = (context: Context) => Promise<number>

/** One verb. */
export interface VerbSpec {
  readonly name: string
  /** Its positionals, as help shows them. */
  readonly usage: readonly string[]
  /** How many positionals there may be. */
  readonly positionals: readonly [fewest: number, most: number]
  /** One line. */
  readonly summary: string
  /** More, in lines. */
  readonly about: readonly string[]
  readonly options: readonly OptionName[]
  readonly load: () => Promise<Work>
}

/** All verbs, in the order of help. */
export const verbs: readonly VerbSpec[] = [
  {
    name: "verify",
    usage: ["FILE"],
    positionals: [1, 1],
    summary: "compare a store's tables with its journal",
    about: [
      "Reads from one snapshot, beside a running engine, and writes nothing. Prints",
      "one line a finding; every other line begins with #. FILE is a SQLite store, the",
      "postgres:// URL of one in Postgres, or one run that export wrote. A password is",
      "better given as PGPASSWORD than in the URL; it is never printed.",
      "",
      "With --fold observer-log, looks at a stream: every row against those before it,",
      "every snapshot, the stored head, and what a restore would make of the hint."
    ],
    options: ["fold", "stream", ...scopeOptions, ...judgingOptions, "max-findings", "max-seconds", ...readingOptions],
    load: async () => (await import("./verify.js")).verify
  },
  {
    name: "plan",
    usage: ["FILE"],
    positionals: [1, 1],
    summary: "say what would make them agree",
    about: [
      "Says what is to be written so that the tables say what the journal says. Reads",
      "as verify does. With --out the plan goes to a file, which apply takes: it",
      "carries its scope and names along."
    ],
    options: ["out", ...scopeOptions, ...judgingOptions, "max-findings", "max-seconds", ...readingOptions],
    load: async () => (await import("./plan.js")).plan
  },
  {
    name: "apply",
    usage: ["FILE", "[PLAN]"],
    positionals: [1, 2],
    summary: "make them agree; a dry run without --write",
    about: [
      "Makes the tables say what the journal says. A dry run unless --write is given.",
      "All is done in one transaction, which folds the journal and is rolled back",
      "unless everything is as planned. With a PLAN, which plan --out wrote, exactly",
      "that is written, or nothing, when the store has changed since."
    ],
    options: [
      "write",
      "allow-delete-pending",
      "allow-unconsume",
      ...scopeOptions,
      ...judgingOptions,
      "max-findings",
      "max-seconds",
      ...readingOptions
    ],
    load: async () => (await import("./apply.js")).apply
  },
  {
    name: "capture",
    usage: ["FILE", "RUN"],
    positionals: [1, 2],
    summary: "print one run's fold, or a checkpoint's state",
    about: [
      "Prints the fold as one line of JSON, and nothing else. The run may also be given",
      "as --run ID. FILE is a store, or one run that export wrote, which needs no RUN.",
      "With --fold observer-log, prints the snapshot row that restates a stream."
    ],
    options: ["fold", "stream", "run", "up-to", "checkpoint-state", ...readingOptions],
    load: async () => (await import("./capture.js")).capture
  },
  {
    name: "status",
    usage: ["FILE"],
    positionals: [1, 1],
    summary: "say where a stream of an observer log stands",
    about: [
      "Prints its range, rows and snapshots, what its hint is worth, how many rows a",
      "restore would read, and the state. Reads from one snapshot and writes nothing."
    ],
    options: ["fold", "stream", "max-seconds", ...readingOptions],
    load: async () => (await import("./status.js")).status
  },
  {
    name: "export",
    usage: ["FILE", "RUN"],
    positionals: [1, 2],
    summary: "write one run as lines of JSON",
    about: [
      "For a bug report or a closer look: its checkpoint, its entries of all types, its",
      "rows. Values of completions are replaced by their digests. Payloads and",
      "checkpoint states are written as stored: look at them before you send them to",
      "anyone. The run may also be given as --run ID."
    ],
    options: ["run", "show-values", "digest", ...readingOptions],
    load: async () => (await import("./export.js")).exportVerb
  },
  {
    name: "explain",
    usage: ["ID"],
    positionals: [0, 1],
    summary: "say what a word of a report means",
    about: [
      "A finding, an error, a reason why an entry was ignored, a verdict, an exit code:",
      "what it means, and what to do about it. Without an ID, lists all."
    ],
    options: ["json", "no-color", "help"],
    load: async () => (await import("./explain.js")).explain
  }
]

/** The exit codes. */
export const exitCodes = { match: 0, drift: 1, couldNotLook: 2, refused: 3, partial: 4 } as const
