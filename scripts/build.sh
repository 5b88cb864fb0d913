#!/usr/bin/env bash
# Builds the published package into pkg/: cargo, wasm-bindgen, wasm-opt, TypeScript, manifest. About 40 s the first time.
#
#   scripts/build.sh          what is published
#   scripts/build.sh --test   the same, and a second module with the deliberate traps and the JSON oracle in .build/test-wasm
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh

say() { printf '# build: %s\n' "$*" >&2; }

cargo_path=$(wasm_cargo_path) || { echo "# build: no wasm32 target here; run: npm run setup" >&2; exit 1; }
[ -x .tools/bin/wasm-bindgen ] || { echo "# build: no wasm-bindgen here; run: npm run setup" >&2; exit 1; }

# Named one by one: all features at once give a module that Node 20 cannot load.
features=(--enable-simd --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int --enable-mutable-globals
  --enable-reference-types --enable-multivalue)

# module NAME INTO CARGO-FLAGS...: one wasm module with its glue.
module() {
  local name=$1 into=$2
  shift 2
  PATH="$cargo_path:$PATH" RUSTFLAGS="-Ctarget-feature=+simd128" CARGO_TARGET_DIR="target/wasm-$name" \
    cargo build --quiet --locked --release --lib --target wasm32-unknown-unknown "$@"
  rm -rf "$into"
  .tools/bin/wasm-bindgen --target web --experimental-reset-state-function --omit-default-module-path \
    --remove-name-section --remove-producers-section --out-dir "$into" --out-name journal_fold \
    "target/wasm-$name/wasm32-unknown-unknown/release/journal_fold.wasm"
  node_modules/.bin/wasm-opt -O3 "${features[@]}" "$into/journal_fold_bg.wasm" -o "$into/journal_fold_bg.wasm"
  rm -f "$into/journal_fold_bg.wasm.d.ts"
  # What js/core relies on in generated code: fail here, not in a user's page.
  grep -q 'export function __wbg_reset_state' "$into/journal_fold.js"
  if grep -q 'import.meta.url' "$into/journal_fold.js"; then
    say "the glue names a default path of its own, which would make bundlers copy the module twice"
    exit 1
  fi
}

say "the wasm module"
module core .build/generated/wasm/core
node scripts/inline.mjs .build/generated/wasm/core/journal_fold_bg.wasm .build/generated/wasm/core/inline
if [ "${1:-}" = --test ]; then
  say "the wasm module with test exports"
  module test .build/test-wasm/core --features test-exports
fi

say "TypeScript"
node scripts/stamp.mjs .build/generated/version.d.ts
rm -rf pkg
mkdir -p pkg/wasm
cp -r .build/generated/wasm/core pkg/wasm/core
node_modules/.bin/tsc -p tsconfig.json
node scripts/stamp.mjs pkg/version.js pkg/package.json
cp README.md LICENSE .build/generated/version.d.ts pkg/
if [ -f pkg/cli/main.js ]; then chmod +x pkg/cli/main.js; fi

# The demo and the examples import the package by its name, as its users do.
ln -sfn ../pkg node_modules/journal-fold
node_modules/.bin/tsc -p tsconfig.demo.json
node_modules/.bin/tsc -p tsconfig.examples.json
