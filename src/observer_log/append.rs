//! One append: a snapshot when one is due, and the row behind it, in one atomic write and one flush.
//!
//! Neither the row nor the snapshot's content is checked against any state here. What can be refused is refused before anything
//! is written: a snapshot that is missing, not due or none, a row of the wrong kind, a head that no sequence could follow.

use super::cadence::snapshot_due;
use super::failure::{Failure, Misuse};
use super::hint::RecordHint;
use super::protocol::{Answer, Batch, Want};
use super::row::{Kind, RowRef};
use super::settle::SettledAppend;

/// What an append came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The head after it.
    pub next_head: u64,
    /// Failures to record the hint: 0 or 1.
    pub hint_failures: u64,
}

/// One append.
#[derive(Debug)]
pub struct Append {
    next_head: u64,
    /// The number of the snapshot that is written, if one is.
    snapshot: Option<u64>,
    state: State,
}

#[derive(Debug)]
enum State {
    Write(SettledAppend),
    Flush,
    Hint(RecordHint),
    Over(Result<Appended, Failure>),
}

impl Append {
    /// An append of a row at a head, with the snapshot that is due there ([`super::cadence::snapshot_before`]).
    pub fn new(head: u64, row: RowRef<'_>, snapshot: Option<RowRef<'_>>) -> Result<Self, Failure> {
        let misuse = match (snapshot_due(head), snapshot) {
            _ if row.kind() == Kind::Snapshot => Some(Misuse::RowIsSnapshot),
            (_, Some(other)) if other.kind() != Kind::Snapshot => Some(Misuse::SnapshotIsAnotherRow),
            (true, None) => Some(Misuse::SnapshotMissing),
            (false, Some(_)) => Some(Misuse::SnapshotNotDue),
            _ => None,
        };
        if let Some(misuse) = misuse {
            return Err(Failure::AppendMisuse { sequence: head, misuse });
        }
        Self::of(head, snapshot.is_some(), Batch::of(snapshot.into_iter().chain([row])))
    }

    /// The append of a snapshot alone, with which a restore shortens the next one. It may fall on any head.
    pub(super) fn snapshot_alone(head: u64, snapshot: RowRef<'_>) -> Result<Self, Failure> {
        Self::of(head, true, Batch::of([snapshot]))
    }

    fn of(head: u64, snapshot: bool, payloads: Batch) -> Result<Self, Failure> {
        let next_head =
            head.checked_add(payloads.len()).ok_or(Failure::Sequence { expected: u64::MAX, actual: head })?;
        Ok(Append {
            next_head,
            snapshot: snapshot.then(|| head.saturating_add(1)),
            state: State::Write(SettledAppend::new(head, payloads)),
        })
    }

    /// What it wants next; nothing when it is over.
    pub fn want(&self) -> Option<Want<'_>> {
        match &self.state {
            State::Write(write) => write.want(),
            State::Flush => Some(Want::Flush),
            State::Hint(hint) => hint.want(),
            State::Over(_) => None,
        }
    }

    /// Takes the answer to what it wanted. When it is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        match &mut self.state {
            State::Write(write) => {
                write.answer(answer);
                match write.result() {
                    None => {}
                    Some(Ok(head)) if head == self.next_head => self.state = State::Flush,
                    Some(Ok(head)) => {
                        self.end(Err(Failure::AssignedSequence { expected: self.next_head, actual: head }));
                    }
                    Some(Err(failure)) => self.end(Err(failure)),
                }
            }
            State::Flush => match (answer, self.snapshot) {
                (Answer::Flushed, Some(number)) => self.state = State::Hint(RecordHint::new(number)),
                (Answer::Flushed, None) => self.end(Ok(Appended { next_head: self.next_head, hint_failures: 0 })),
                (other, _) => self.end(Err(Failure::of_answer(&Want::Flush, &other))),
            },
            State::Hint(hint) => {
                hint.answer(answer);
                if let Some(recorded) = hint.result() {
                    self.end(Ok(Appended { next_head: self.next_head, hint_failures: recorded.failures() }));
                }
            }
            State::Over(_) => {}
        }
    }

    fn end(&mut self, result: Result<Appended, Failure>) {
        self.state = State::Over(result);
    }

    /// The next head, or why there is none, once it is over.
    pub fn result(&self) -> Option<Result<Appended, Failure>> {
        match self.state {
            State::Over(result) => Some(result),
            _ => None,
        }
    }
}
