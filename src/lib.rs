//! Rebuild what a journal says, and prove that the tables agree.
//!
//! A durable system writes a *journal* (entries in order) and keeps *tables* derived from it. This crate folds the journal,
//! reads and writes *checkpoints* (the state at a position), and *verifies*: it joins the folded state with stored rows and says
//! either exactly how to make the tables equal to the journal, or everything that does not join. It writes nothing itself, and
//! knows no clock, no randomness and no I/O; the host supplies pages and rows.
//!
//! | room | what it is for |
//! | --- | --- |
//! | [`json`] | reads JSON text as `JSON.parse` judges it, and writes it back |
//! | [`journal`] | entries, pages, and what order, gaps, repeats and floors mean |
//! | [`digest`] | digests of stored text and of a state |
//! | [`names`] | texts kept once |
//! | [`finding`] | what a verification reports |
//! | [`error`] | what a malformed call gets |
//! | [`deferred_clock`] | the fold of a workflow engine's clocks and completions |
//! | [`observer_log`] | the fold of a row stream with snapshots, and its restore and append protocol |
//!
//! `wasm` (only on wasm32) is the boundary to JavaScript, and the one room that names it.

pub mod deferred_clock;
pub mod digest;
pub mod error;
pub mod finding;
pub mod journal;
pub mod json;
pub mod names;
pub mod observer_log;
mod sort;

#[cfg(target_arch = "wasm32")]
pub mod wasm;
