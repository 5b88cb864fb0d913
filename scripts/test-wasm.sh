#!/usr/bin/env bash
# The core's recorded cases in wasm: compiled once, run under Node and in headless Chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh

cargo_path=$(wasm_cargo_path)
chromium=$(chromium_path)
chromedriver=$(chromedriver_path)
# A browser that is not where its driver looks for it has to be named.
settings=.build/webdriver.json
mkdir -p .build
node -e '
  const settings = JSON.parse(require("node:fs").readFileSync("tests/wasm/webdriver.json", "utf8"))
  settings["goog:chromeOptions"].binary = process.argv[1]
  require("node:fs").writeFileSync(process.argv[2], JSON.stringify(settings))
' "$chromium" "$settings"

run() {
  PATH="$cargo_path:$PATH" RUSTFLAGS="-Ctarget-feature=+simd128" CARGO_TARGET_DIR=target/wasm-tests \
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER="$PWD/.tools/bin/wasm-bindgen-test-runner" \
    cargo test --locked --target wasm32-unknown-unknown --test wasm
}

echo "# under Node"
run
echo "# in Chromium"
WASM_BINDGEN_USE_BROWSER=1 CHROMEDRIVER="$chromedriver" WASM_BINDGEN_TEST_WEBDRIVER_JSON="$PWD/$settings" \
  WASM_BINDGEN_TEST_TIMEOUT=120 run
