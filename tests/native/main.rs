//! The core, natively: one file a topic.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod checkpoint;
mod digest;
mod history;
mod json;
mod model;
mod observer_log;
mod observer_log_log;
mod observer_log_rebuild;
mod observer_log_rival;
mod observer_log_rows;
mod observer_log_store;
mod observer_log_stream;
mod order;
mod pages;
mod properties;
mod rebuild;
mod recorded;
mod scenario;
mod store;
mod vectors;
