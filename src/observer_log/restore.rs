//! Restoring the aggregate from a stream: the snapshot that the hint names and the rows behind it, or all rows.
//!
//! With a good hint one row is read and then only the tail. Any doubt about the hint costs a longer fold, never a wrong state;
//! but a hinted row that cannot be read as a row is an error, and a hinted snapshot is believed. A page shorter than asked for is
//! the last: the stored head is not consulted.

use super::aggregate::Aggregate;
use super::append::Append;
use super::decode::RowReader;
use super::failure::Failure;
use super::hint::RecordHint;
use super::protocol::{Answer, Rows, StoredRow, Want};
use super::reduce::Fold;
use super::row::RowRef;

/// Rows asked for at once.
pub const PAGE_ROWS: u64 = 64;

/// Up to this head a stream without snapshots is left as it is.
pub const LONGEST_WITHOUT_SNAPSHOT: u64 = 256;

/// What was made of the hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintVerdict {
    /// There is none.
    Missing,
    /// It names a row that is not there.
    BeyondLog,
    /// It names a row that is no snapshot.
    NotASnapshot,
    /// It names a snapshot, from which the fold begins.
    Used,
}

impl HintVerdict {
    /// The verdict as the specification spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            HintVerdict::Missing => "missing",
            HintVerdict::BeyondLog => "beyond_log",
            HintVerdict::NotASnapshot => "not_a_snapshot",
            HintVerdict::Used => "used",
        }
    }
}

/// A restored stream.
#[derive(Debug)]
pub struct Restored {
    /// The state.
    pub aggregate: Aggregate,
    /// The sequence that the next row takes.
    pub head: u64,
    /// What was made of the hint.
    pub hint: HintVerdict,
    /// The sequence from which rows were folded.
    pub folded_from: u64,
    /// How many rows were folded.
    pub rows: u64,
    /// Whether a snapshot was appended.
    pub snapshot_appended: bool,
    /// Failures to record the hint: 0 or 1.
    pub hint_failures: u64,
}

/// One restore.
#[derive(Debug)]
pub struct Restore {
    hint: Option<HintVerdict>,
    folded_from: Option<u64>,
    fold: Fold,
    state: State,
}

#[derive(Debug)]
enum State {
    ReadHint,
    ReadSnapshot { sequence: u64 },
    Fold,
    Append(Append),
    Record(RecordHint),
    Over(Result<End, Failure>),
}

#[derive(Debug, Clone, Copy)]
struct End {
    head: u64,
    snapshot_appended: bool,
    hint_failures: u64,
}

impl Default for Restore {
    fn default() -> Self {
        Restore { hint: None, folded_from: None, fold: Fold::new(), state: State::ReadHint }
    }
}

impl Restore {
    /// A restore, at its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it wants next; nothing when it is over.
    pub fn want(&self) -> Option<Want<'_>> {
        match &self.state {
            State::ReadHint => Some(Want::ReadValue),
            State::ReadSnapshot { sequence } => Some(Want::ReadAt { sequence: *sequence }),
            State::Fold => Some(Want::ReadFrom { offset: self.fold.next(), limit: PAGE_ROWS }),
            State::Append(append) => append.want(),
            State::Record(hint) => hint.want(),
            State::Over(_) => None,
        }
    }

    /// Takes the answer to what it wanted. When it is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        let next = match (&mut self.state, answer) {
            (State::Append(append), answer) => {
                append.answer(answer);
                append.result().map(|result| {
                    result.map(|done| {
                        let end =
                            End { head: done.next_head, snapshot_appended: true, hint_failures: done.hint_failures };
                        State::Over(Ok(end))
                    })
                })
            }
            (State::Record(hint), answer) => {
                hint.answer(answer);
                let head = self.fold.next();
                hint.result().map(|recorded| {
                    let end = End { head, snapshot_appended: false, hint_failures: recorded.failures() };
                    Ok(State::Over(Ok(end)))
                })
            }
            (State::ReadHint, Answer::Value(value)) => Some(Ok(self.hint_read(value))),
            (State::ReadSnapshot { sequence }, Answer::Row(row)) => {
                let sequence = *sequence;
                Some(self.snapshot_read(sequence, row))
            }
            (State::Fold, Answer::Rows(rows)) => Some(self.page_read(&rows)),
            (State::Over(_), _) => None,
            (State::ReadHint | State::ReadSnapshot { .. } | State::Fold, other) => {
                self.want().map(|want| Err(Failure::of_answer(&want, &other)))
            }
        };
        match next {
            None => {}
            Some(Ok(state)) => self.state = state,
            Some(Err(failure)) => self.state = State::Over(Err(failure)),
        }
    }

    fn hint_read(&mut self, value: Option<u64>) -> State {
        match value.and_then(|number| number.checked_sub(1)) {
            Some(sequence) => State::ReadSnapshot { sequence },
            None => self.begin(HintVerdict::Missing, Fold::new()),
        }
    }

    fn snapshot_read(&mut self, sequence: u64, row: Option<StoredRow<'_>>) -> Result<State, Failure> {
        let Some(row) = row.filter(|row| row.sequence == sequence) else {
            return Ok(self.begin(HintVerdict::BeyondLog, Fold::new()));
        };
        let mut reader = RowReader::new();
        match reader.read(row.payload).map_err(|fault| Failure::Row { sequence, fault })? {
            RowRef::Snapshot { progress, armed } => {
                let aggregate = Aggregate::from_lists(progress, armed)
                    .map_err(|reason| Failure::CorruptRow { sequence, reason })?;
                // The sequence is one less than the hint, so this is the hint.
                let fold = Fold::from(aggregate, sequence.saturating_add(1));
                Ok(self.begin(HintVerdict::Used, fold))
            }
            _ => Ok(self.begin(HintVerdict::NotASnapshot, Fold::new())),
        }
    }

    fn begin(&mut self, hint: HintVerdict, fold: Fold) -> State {
        self.hint = Some(hint);
        self.folded_from = Some(fold.next());
        self.fold = fold;
        State::Fold
    }

    fn page_read(&mut self, rows: &Rows<'_>) -> Result<State, Failure> {
        self.fold.push_page(rows)?;
        if rows.len() as u64 >= PAGE_ROWS {
            return Ok(State::Fold);
        }
        let head = self.fold.next();
        if let Some(snapshot) = self.fold.last_snapshot() {
            return Ok(State::Record(RecordHint::new(snapshot.saturating_add(1))));
        }
        if self.folded_from == Some(0) && head > LONGEST_WITHOUT_SNAPSHOT {
            let snapshot = self.fold.aggregate().snapshot();
            return Append::snapshot_alone(head, snapshot.as_ref()).map(State::Append);
        }
        Ok(State::Over(Ok(End { head, snapshot_appended: false, hint_failures: 0 })))
    }

    /// What was made of the hint, as soon as that is known.
    pub fn hint(&self) -> Option<HintVerdict> {
        self.hint
    }

    /// The sequence from which rows are folded, as soon as that is known.
    pub fn folded_from(&self) -> Option<u64> {
        self.folded_from
    }

    /// How many rows were folded so far.
    pub fn rows(&self) -> u64 {
        self.fold.rows()
    }

    /// The restored stream, or why there is none; the restore itself when it is not over yet.
    pub fn into_result(self) -> Result<Result<Restored, Failure>, Box<Restore>> {
        match (self.state, self.hint, self.folded_from) {
            (State::Over(Ok(end)), Some(hint), Some(folded_from)) => Ok(Ok(Restored {
                head: end.head,
                hint,
                folded_from,
                rows: self.fold.rows(),
                snapshot_appended: end.snapshot_appended,
                hint_failures: end.hint_failures,
                aggregate: self.fold.into_aggregate(),
            })),
            (State::Over(Err(failure)), ..) => Ok(Err(failure)),
            (state, hint, folded_from) => Err(Box::new(Restore { hint, folded_from, fold: self.fold, state })),
        }
    }
}
