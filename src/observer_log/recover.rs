//! Tail recovery: what became of one append whose outcome stayed uncertain, found out without a restore.
//!
//! The caller holds the aggregate as it was before the append, and the head at which it was issued. Rows applied before a fault
//! stay applied and the head stays past them; a publication found so far is dropped with the fault.

use super::aggregate::Aggregate;
use super::decode::RowReader;
use super::failure::Failure;
use super::protocol::{Answer, Publication, Rows, StoredRow, Want};
use super::refusal::Refusal;
use super::row::RowRef;

/// One append writes two rows at most, so a third shows that it cannot be told apart.
const LIMIT: u64 = 3;

/// One recovery.
#[derive(Debug)]
pub struct Recover {
    aggregate: Aggregate,
    issued: u64,
    head: u64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    ReadTail,
    ReadHead,
    Over(Result<Option<Publication>, Failure>),
}

impl Recover {
    /// A recovery of an append that was issued at `head` from the aggregate as it was before.
    pub fn new(aggregate: Aggregate, head: u64) -> Self {
        Recover { aggregate, issued: head, head, state: State::ReadTail }
    }

    /// What it wants next; nothing when it is over.
    pub fn want(&self) -> Option<Want<'static>> {
        match self.state {
            State::ReadTail => Some(Want::ReadFrom { offset: self.issued, limit: LIMIT }),
            State::ReadHead => Some(Want::ReadHead),
            State::Over(_) => None,
        }
    }

    /// Takes the answer to what it wanted. When it is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        let Some(want) = self.want() else { return };
        let unresolved = Failure::AppendUnresolved { sequence: self.issued };
        self.state = match (self.state, answer) {
            (State::ReadTail, Answer::Rows(rows)) if rows.is_empty() => State::ReadHead,
            (State::ReadTail, Answer::Rows(rows)) if rows.len() as u64 >= LIMIT => State::Over(Err(unresolved)),
            (State::ReadTail, Answer::Rows(rows)) => State::Over(self.apply(&rows)),
            (State::ReadHead, Answer::Head(head)) if head.unwrap_or(0) == self.issued => State::Over(Ok(None)),
            (State::ReadHead, Answer::Head(_)) => State::Over(Err(unresolved)),
            (_, other) => State::Over(Err(Failure::of_answer(&want, &other))),
        };
    }

    fn apply(&mut self, rows: &Rows<'_>) -> Result<Option<Publication>, Failure> {
        let mut reader = RowReader::new();
        let mut publication = None;
        for StoredRow { sequence, payload } in rows.iter() {
            if sequence != self.head {
                return Err(Failure::Sequence { expected: self.head, actual: sequence });
            }
            let next = sequence.checked_add(1).ok_or(Failure::Sequence { expected: u64::MAX, actual: u64::MAX })?;
            let row = reader.read(payload).map_err(|fault| Failure::Row { sequence, fault })?;
            let corrupt = |reason| Failure::CorruptRow { sequence, reason };
            if let RowRef::Arms(_) = row {
                return Err(corrupt(Refusal::ArmsRow));
            }
            let fired = self.aggregate.apply(row).map_err(corrupt)?;
            if let RowRef::Advance { progress, .. } = row {
                publication = fired.map(|arm| Publication {
                    conversation_id: arm.conversation_id,
                    refused_epoch: arm.epoch,
                    observer_progress: progress,
                });
            }
            self.head = next;
        }
        Ok(publication)
    }

    /// The state as it is now.
    pub fn aggregate(&self) -> &Aggregate {
        &self.aggregate
    }

    /// The head as it is now.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The arm fired by the last advance found, or none; or why nothing can be said. Once it is over.
    pub fn result(&self) -> Option<Result<Option<Publication>, Failure>> {
        match self.state {
            State::Over(result) => Some(result),
            _ => None,
        }
    }

    /// The state and the head, for keeps.
    pub fn into_parts(self) -> (Aggregate, u64) {
        (self.aggregate, self.head)
    }
}
