#!/usr/bin/env bash
# The main job on an example store. Sets up and builds what is missing first; needs no browser.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh packages wasm bindgen
bash scripts/ensure-build.sh
exec node .build/demo/main.js
