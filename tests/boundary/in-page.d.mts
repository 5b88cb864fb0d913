/** See in-page.mjs. */
export function foldAndVerify(module: typeof import("journal-fold/deferred-clock"), entries: unknown): Promise<string>
