//! The journal: entries in pages, and what order, gaps, repeats and floors mean.
//!
//! A run's entries come in ascending seq; gaps are normal. Entries at or below the run's floor, above the caller's bound, or of
//! other types are skipped before any other check, and counted.

mod floor;
mod lists;
mod order;
mod page;

pub use lists::Lists;
pub use floor::{Bound, Floor};
pub use order::{Order, Place};
pub use page::{Entry, Page, OTHER_TYPE};

/// A seq: 0 to 2^63-1.
pub type Seq = u64;

/// The largest seq.
pub const MAX_SEQ: Seq = i64::MAX as u64;
