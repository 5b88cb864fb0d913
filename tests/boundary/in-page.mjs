// What browser.test.ts does, in a page and under Node alike. Plain JavaScript, because a page gets it as it stands.

function outcomeOf(work) {
  try {
    return work()
  } catch ({ code, message }) {
    return { code, message }
  }
}

/** A call before init(), then several init(), then the call again. */
export async function initialise({ init, initial, reduce }) {
  const before = outcomeOf(() => reduce(initial, []))
  await Promise.all([init(), init()])
  await init()
  return { before, after: outcomeOf(() => reduce(initial, [])) }
}

/** A journal folded and verified: everything that comes out. */
export async function foldAndVerify({ Fold, init, verifyRebuild }, entries) {
  await init()
  const fold = new Fold({ runId: "r" })
  fold.push(entries)
  const folded = { state: fold.stateText(), digest: fold.digest(), sha256: fold.digest("sha256"), report: fold.report() }
  const completions = fold.state().deferreds.map((row) => ({ exitDigest: null, metadataDigest: null, ...row, completedAtMs: 1, consumedAtMs: null }))
  fold.dispose()
  const store = { runs: [{ runId: "r", entries }], liveRuns: ["r"], clocks: [] }
  const refused = verifyRebuild({ ...store, completions: [] })
  const planned = verifyRebuild({ ...store, completions }, { heads: true })
  return JSON.stringify({ folded, refused, planned })
}

/** Two traps, what an object from before says, and the next call. */
export async function trap({ Fold, init, initial, reduce }, _, { call }) {
  await init()
  const old = new Fold()
  const panic = outcomeOf(() => call((module) => module.test_panic()))
  const ofOld = outcomeOf(() => old.state())
  const overflow = outcomeOf(() => call((module) => module.test_stack_overflow(10_000_000)))
  old.dispose()
  return { panic, ofOld, overflow, after: outcomeOf(() => reduce(initial, [])) }
}

/** Runs one of these against the package under `base`. */
export async function inPage(base, name, argument) {
  const work = { initialise, foldAndVerify, trap }[name]
  return work(await import(`${base}folds/deferred-clock/index.js`), argument, await import(`${base}core/engine.js`))
}
