#!/usr/bin/env bash
# Runs recorded cases against the built package, setting up and building what is missing first.
#
#   npm run vectors -- [FOLDER]     a fold's folder, or a folder of such folders; default: tests/vectors
set -euo pipefail
from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh packages wasm bindgen >&2
bash scripts/ensure-build.sh >&2
if [ $# -gt 0 ]; then
  # npm runs scripts in the project's folder; a relative name is meant where the caller stands.
  case "$1" in
    /*) folder=$1 ;;
    *) folder=${INIT_CWD:-$from}/$1 ;;
  esac
  exec node scripts/vectors.mjs "$folder"
fi
exec node scripts/vectors.mjs
