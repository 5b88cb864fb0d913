//! The boundary to JavaScript: the only room that names it. Every function here decodes, calls, encodes.
//!
//! Bulk text crosses as UTF-8 bytes that the host writes straight into the [`inbox`]; a generated `&str` argument would copy
//! ASCII one character at a time in JavaScript, at twelve times the cost. Results leave as text. Nothing calls back into
//! JavaScript during a fold.
//!
//! State stays inside, behind numbers that [`objects`] gives out. The host guards them by the generation of the instance: after
//! a trap the instance is made anew, and a number of the old one must never reach the new one.
//!
//! Errors are thrown as `Error`s whose message is the JSON text of code and details; anything else that is thrown is a trap.

mod deferred_clock;
mod encode;
mod errors;
mod inbox;
mod objects;
mod observer_log;
mod protocol;
#[cfg(feature = "test-exports")]
mod testing;

use wasm_bindgen::prelude::wasm_bindgen;

use crate::digest::{content_digest as digest_of, to_hex};

/// Runs once an instance is made: from then on a panic leaves its message behind.
#[wasm_bindgen(start)]
pub fn start() {
    errors::keep_panics();
}

/// The version of this module.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// SHA-256 of the text in the inbox, as lower-case hexadecimal digits.
#[wasm_bindgen]
pub fn content_digest(length: usize) -> String {
    inbox::with(|inbox| encode::text(to_hex(&digest_of(inbox.bytes(0, length)))))
}

/// The table of error codes, as a JSON object of meanings by code.
#[wasm_bindgen]
pub fn error_codes() -> String {
    encode::text(encode::error_codes())
}

/// The table of findings, as a JSON object of class, meaning and advice by id.
#[wasm_bindgen]
pub fn finding_ids() -> String {
    encode::text(encode::finding_ids())
}

/// The module's memory, to write into the inbox. An instance made anew has another one.
#[wasm_bindgen]
pub fn module_memory() -> wasm_bindgen::JsValue {
    wasm_bindgen::memory()
}
