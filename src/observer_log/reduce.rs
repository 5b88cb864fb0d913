//! Rows in sequence onto an aggregate. The first fault stops it, and leaves everything before that row applied.

use super::aggregate::{Aggregate, Fired};
use super::decode::RowReader;
use super::failure::Failure;
use super::protocol::{Rows, StoredRow};
use super::row::{Kind, RowRef};

/// An aggregate and the sequence of the row it takes next.
#[derive(Debug, Default)]
pub struct Fold {
    aggregate: Aggregate,
    next: u64,
    last_snapshot: Option<u64>,
    rows: u64,
    reader: RowReader,
}

/// What a row did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The row's kind.
    pub kind: Kind,
    /// The arm it fired.
    pub fired: Option<Fired>,
}

impl Fold {
    /// The fold of a whole stream: nothing yet, and row 0 next.
    pub fn new() -> Self {
        Self::default()
    }

    /// A fold that goes on from an aggregate, with the row at `next`.
    pub fn from(aggregate: Aggregate, next: u64) -> Self {
        Fold { aggregate, next, ..Self::default() }
    }

    /// Folds one row: its sequence must be the next one, its text a row, and the aggregate must take it.
    pub fn push(&mut self, row: StoredRow<'_>) -> Result<Step, Failure> {
        self.push_inlined(row)
    }

    #[inline(always)]
    fn push_inlined(&mut self, row: StoredRow<'_>) -> Result<Step, Failure> {
        let StoredRow { sequence, payload } = row;
        if sequence != self.next {
            return Err(Failure::Sequence { expected: self.next, actual: sequence });
        }
        let row = self.reader.read_inlined(payload).map_err(|fault| Failure::Row { sequence, fault })?;
        let fired = self.aggregate.apply_inlined(row).map_err(|reason| Failure::CorruptRow { sequence, reason })?;
        if let RowRef::Snapshot { .. } = row {
            self.last_snapshot = Some(sequence);
        }
        let step = Step { kind: row.kind(), fired };
        self.rows = self.rows.saturating_add(1);
        self.next = sequence.checked_add(1).ok_or(Failure::Sequence { expected: u64::MAX, actual: u64::MAX })?;
        Ok(step)
    }

    /// Folds a page of rows.
    #[inline(never)]
    pub fn push_page(&mut self, rows: &Rows<'_>) -> Result<(), Failure> {
        rows.iter().try_for_each(|row| self.push_inlined(row).map(|_| ()))
    }

    /// The state so far.
    pub fn aggregate(&self) -> &Aggregate {
        &self.aggregate
    }

    /// The state so far, for keeps.
    pub fn into_aggregate(self) -> Aggregate {
        self.aggregate
    }

    /// The sequence of the next row: the head, when there is none.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The sequence of the last snapshot met.
    pub fn last_snapshot(&self) -> Option<u64> {
        self.last_snapshot
    }

    /// How many rows were folded.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}
