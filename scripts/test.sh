#!/usr/bin/env bash
# Every test. Sets up what is missing first (about 5 minutes on a fresh machine), then takes about ten.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh

started=$SECONDS
say() { printf '\n# test (%d s): %s\n' "$((SECONDS - started))" "$*"; }

bash scripts/setup.sh packages wasm bindgen browser runtimes

say "the core, natively"
if cargo clippy --version >/dev/null 2>&1; then
  cargo clippy --quiet --locked --all-targets -- -D warnings
else
  echo "# no clippy here: lints are not checked"
fi
cargo test --quiet --locked

say "the core in wasm, under Node and in Chromium"
bash scripts/test-wasm.sh

say "the package"
bash scripts/ensure-build.sh --test
node_modules/.bin/tsc -p tsconfig.test.json
CHROMIUM=$(chromium_path) node_modules/.bin/vitest run

say "the recorded cases, against the built package"
bash scripts/vectors.sh

say "all passed"
