# Where the tools are. Sourced by the other scripts; installs nothing (scripts/setup.sh does).

# Prints a folder to put first in PATH so that `cargo build --target wasm32-unknown-unknown` works; fails if none is known.
wasm_cargo_path() {
  local rustc folder
  for rustc in "$(command -v rustc || true)" /usr/bin/rustc; do
    [ -x "$rustc" ] || continue
    folder="$("$rustc" --print sysroot 2>/dev/null)/lib/rustlib/wasm32-unknown-unknown/lib"
    if compgen -G "$folder/libstd-*.rlib" >/dev/null; then
      dirname "$rustc"
      return 0
    fi
  done
  return 1
}

# The version of wasm-bindgen that the crate is pinned to; its command line must be exactly the same.
bindgen_version() {
  sed -n 's/^wasm-bindgen = { version = "=\([0-9.]*\)".*/\1/p' Cargo.toml
}

chromium_path() {
  command -v "${CHROMIUM:-chromium}" || command -v chromium-browser || command -v google-chrome
}

chromedriver_path() {
  command -v "${CHROMEDRIVER:-chromedriver}"
}
