#!/usr/bin/env bash
# Benchmarks: ours and the rival in one process, in turn.   npm run bench -- [--quick] [--json] [--only WORD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh packages wasm bindgen >&2
bash scripts/ensure-build.sh >&2
# The same core natively, for the distance to the limit.
cargo build --quiet --locked --release --examples >&2
exec node --expose-gc bench/run.mjs "$@"
