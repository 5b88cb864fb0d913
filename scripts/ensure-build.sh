#!/usr/bin/env bash
# Builds unless the last build is newer than everything it is made of.
#
#   scripts/ensure-build.sh [--test]     --test: with the module for tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stamp=".build/built${1:-}"
# Tests and the demo import the package by its name, as its users do. npm takes the link away whenever it installs.
mkdir -p node_modules
ln -sfn ../pkg node_modules/journal-fold
if [ -f "$stamp" ] && [ -f pkg/package.json ] &&
  [ -z "$(find Cargo.toml Cargo.lock src js scripts tsconfig*.json pkg.json README.md package-lock.json -newer "$stamp" -type f -print -quit)" ]; then
  exit 0
fi
bash scripts/build.sh "$@"
touch "$stamp" .build/built
