//! A workflow engine's durable clocks and deferred completions.
//!
//! The rules are those of `tests/vectors/deferred-clock/README.md`; what it leaves open is decided beside the recorded cases in
//! `tests/vectors/deviations.json` and in the README.
//!
//! - [`state`]: the rows, their addresses, their digest.
//! - [`reduce`]: one entry onto the state.
//! - [`checkpoint`]: the fold inside a checkpoint's state.
//! - [`run`]: one run, from its floor, in order, up to a bound.
//! - [`rebuild`]: every run against the stored rows.

pub mod checkpoint;
mod opening;
pub mod rebuild;
pub mod reduce;
pub mod run;
pub mod state;

pub use checkpoint::put_into_state;
pub use reduce::EventType;
pub use run::RunFold;
pub use state::Fold;

/// The member of a checkpoint's state under which the fold is kept.
pub const CHECKPOINT_KEY: &str = "flows.engine.deferred-clock";
