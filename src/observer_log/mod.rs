//! A durable row stream with snapshots inside it and a hint outside it: which conversations are tracked, how far each has come,
//! and which of them somebody waits for.
//!
//! The rules are those of `tests/vectors/observer-log/README.md`; what it leaves open is decided beside the recorded cases in
//! `tests/vectors/deviations.json` and in the README. All numbers are unsigned, exact up to 2^64-1, and checked.
//!
//! - [`aggregate`]: the state, what each row does to it, every refusal.
//! - [`live`]: changes that are asked for first and made after their row was appended.
//! - [`row`]: a row as stored text, both ways.
//! - [`cadence`]: where snapshot rows fall.
//! - [`reduce`]: rows in sequence onto an aggregate.
//! - [`protocol`]: what a machine wants of a store, and what a store answers.
//! - [`append`], [`settle`], [`hint`], [`restore`], [`recover`]: one machine each. None does I/O: it says which read or write
//!   it wants next and is given the answer, so the same code runs over any store.
//! - [`log`] and [`change`]: all of them put together, so that a caller cannot get the order wrong.
//! - [`rebuild`]: the whole stream looked at: every row, every snapshot, the head, the hint.

pub mod aggregate;
pub mod append;
pub mod cadence;
pub mod change;
mod decode;
pub mod failure;
pub mod hint;
pub mod live;
pub mod log;
pub mod protocol;
pub mod rebuild;
pub mod recover;
pub mod reduce;
pub mod refusal;
pub mod restore;
pub mod row;
pub mod settle;
mod written;

pub use aggregate::{Aggregate, Fired, Pair};
pub use decode::{RowFault, RowReader};
pub use failure::Failure;
pub use live::Live;
pub use log::Log;
pub use protocol::{Answer, Rows, Want};
pub use reduce::Fold;
pub use refusal::Refusal;
pub use row::Row;
