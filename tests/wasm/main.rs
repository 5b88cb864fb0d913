//! The core in WebAssembly: the same cases as natively, under Node and in a browser (`scripts/test-wasm.sh` runs both).
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

#[path = "../native/observer_log.rs"]
mod observer_log;
// The native suites use more of it than the cases do.
#[allow(dead_code)]
#[path = "../native/observer_log_store.rs"]
mod observer_log_store;
#[path = "../native/observer_log_stream.rs"]
mod observer_log_stream;
#[path = "../native/recorded.rs"]
mod recorded;
// The native suites use more of it than the cases do.
#[allow(dead_code)]
#[path = "../native/store.rs"]
mod store;
#[path = "../native/vectors.rs"]
mod vectors;

mod boundary;
