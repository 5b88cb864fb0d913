/** Which runs a host looks at, and what it leaves out. */
import { describe, invalid } from "../core/errors.js"
import { compareUtf8 } from "../folds/deferred-clock/verify.js"

/** Which runs are looked at. */
export type Scope =
  | { readonly kind: "all" }
  | { readonly kind: "live" }
  | { readonly kind: "runs"; readonly ids: readonly string[] }

/** What a caller asks for. */
export interface ScopeOptions {
  /** Only these runs, or only those that have a row (`"live"`). */
  readonly runs?: Iterable<string> | "live"
  /** All runs but these. */
  readonly except?: Iterable<string>
}

/** The scope of a verification, and what it leaves out in words. */
export interface ScopeOf {
  readonly scope: Scope
  readonly except: ReadonlySet<string>
  readonly leftOut?: string
}

/** The scope that options name. */
export function scopeOf({ runs, except }: ScopeOptions): ScopeOf {
  const excluded = new Set(ids("except", except))
  const words = excluded.size === 0 ? [] : [excluded.size === 1 ? `run ${describe([...excluded][0])}` : `${excluded.size} runs named`]
  if (runs === undefined) return { scope: { kind: "all" }, except: excluded, ...(words[0] && { leftOut: words[0] }) }
  if (runs === "live") {
    return { scope: { kind: "live" }, except: excluded, leftOut: ["runs without a row", ...words].join(", ") }
  }
  const chosen = [...new Set(ids("runs", runs))].filter((id) => !excluded.has(id)).sort(compareUtf8)
  return {
    scope: { kind: "runs", ids: chosen },
    except: excluded,
    leftOut: chosen.length === 1 ? `all runs but ${describe(chosen[0])}` : `all runs but ${chosen.length}`
  }
}

function ids(option: string, given: Iterable<string> | undefined): string[] {
  if (given === undefined) return []
  if (typeof given === "string" || typeof given[Symbol.iterator] !== "function") {
    throw invalid("option_invalid", `${option} as a list of run ids`, given)
  }
  return Array.from(given, (id) => {
    if (typeof id !== "string") throw invalid("option_invalid", `${option} as a list of run ids`, id)
    return id
  })
}
