//! Writes whose outcome is settled: when a store cannot say whether a write was made, it is looked for, and sent once more if it
//! is not there. Neither row nor number is ever written twice.

use super::failure::{Failure, StoreFailure};
use super::protocol::{Answer, Batch, Want};

/// One atomic append, settled.
#[derive(Debug)]
pub struct SettledAppend {
    head: u64,
    payloads: Batch,
    state: Append,
}

#[derive(Debug, Clone, Copy)]
enum Append {
    Sent,
    LookedFor,
    SentAgain,
    LookedForAgain { conflict: Failure },
    Over(Result<u64, Failure>),
}

impl SettledAppend {
    /// An append of payloads at a head.
    pub fn new(head: u64, payloads: Batch) -> Self {
        SettledAppend { head, payloads, state: Append::Sent }
    }

    /// What it wants next; nothing when it is over.
    pub fn want(&self) -> Option<Want<'_>> {
        match self.state {
            Append::Sent | Append::SentAgain => {
                Some(Want::AppendAll { expected_head: self.head, payloads: &self.payloads })
            }
            Append::LookedFor | Append::LookedForAgain { .. } => {
                Some(Want::ReadFrom { offset: self.head, limit: self.payloads.len() })
            }
            Append::Over(_) => None,
        }
    }

    /// Takes the answer to what it wanted. When it is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        let Some(want) = self.want() else { return };
        let failure = Failure::of_answer(&want, &answer);
        let unknown = Failure::Store(StoreFailure::OutcomeUnknown);
        self.state = match (self.state, answer) {
            (Append::Sent | Append::SentAgain, Answer::Appended(head)) => Append::Over(Ok(head)),
            (Append::Sent, Answer::OutcomeUnknown) => Append::LookedFor,
            (Append::SentAgain, Answer::SequenceConflict { .. }) => Append::LookedForAgain { conflict: failure },
            (Append::LookedFor | Append::LookedForAgain { .. }, Answer::Rows(rows)) if self.payloads.stands_at(self.head, &rows) => {
                // As many rows stand there as were sent, so their sum can be named.
                Append::Over(Ok(self.head.saturating_add(self.payloads.len())))
            }
            (Append::LookedFor, Answer::Rows(rows)) if rows.is_empty() => Append::SentAgain,
            (Append::LookedFor, Answer::Rows(_)) => Append::Over(Err(Failure::Store(StoreFailure::SequenceConflict {
                expected: self.head,
                actual: self.head.saturating_add(1),
            }))),
            (Append::LookedForAgain { conflict }, Answer::Rows(_)) => Append::Over(Err(conflict)),
            (Append::LookedFor | Append::LookedForAgain { .. }, Answer::Failed | Answer::OutcomeUnknown) => {
                Append::Over(Err(unknown))
            }
            (Append::Over(result), _) => Append::Over(result),
            _ => Append::Over(Err(failure)),
        };
    }

    /// The head after the append, or why there is none, once it is over. A head is what the store answered: it is not judged.
    pub fn result(&self) -> Option<Result<u64, Failure>> {
        match self.state {
            Append::Over(result) => Some(result),
            _ => None,
        }
    }
}

/// One compare-and-swap, settled.
#[derive(Debug)]
pub struct SettledSwap {
    old: u64,
    new: u64,
    state: Swap,
}

#[derive(Debug, Clone, Copy)]
enum Swap {
    Sent,
    LookedFor,
    SentAgain,
    LookedForAgain,
    Over(Result<(), Failure>),
}

impl SettledSwap {
    /// A swap of one number for another. No number counts as 0.
    pub fn new(old: u64, new: u64) -> Self {
        SettledSwap { old, new, state: Swap::Sent }
    }

    /// What it wants next; nothing when it is over.
    pub fn want(&self) -> Option<Want<'_>> {
        match self.state {
            Swap::Sent | Swap::SentAgain => Some(Want::Swap { old: self.old, new: self.new }),
            Swap::LookedFor | Swap::LookedForAgain => Some(Want::ReadValue),
            Swap::Over(_) => None,
        }
    }

    /// Takes the answer to what it wanted. When it is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        let Some(want) = self.want() else { return };
        let failure = Failure::of_answer(&want, &answer);
        let unknown = Failure::Store(StoreFailure::OutcomeUnknown);
        self.state = match (self.state, answer) {
            (Swap::Sent | Swap::SentAgain, Answer::Swapped) => Swap::Over(Ok(())),
            (Swap::Sent, Answer::OutcomeUnknown) => Swap::LookedFor,
            (Swap::SentAgain, Answer::ValueConflict { .. }) => Swap::LookedForAgain,
            (Swap::LookedFor | Swap::LookedForAgain, Answer::Value(value)) => {
                let actual = value.unwrap_or(0);
                match self.state {
                    _ if actual == self.new => Swap::Over(Ok(())),
                    Swap::LookedFor if actual == self.old => Swap::SentAgain,
                    _ => Swap::Over(Err(Failure::Store(StoreFailure::ValueConflict { expected: self.old, actual }))),
                }
            }
            (Swap::LookedFor | Swap::LookedForAgain, Answer::Failed | Answer::OutcomeUnknown) => Swap::Over(Err(unknown)),
            (Swap::Over(result), _) => Swap::Over(result),
            _ => Swap::Over(Err(failure)),
        };
    }

    /// Whether the number was stored, or why not, once it is over.
    pub fn result(&self) -> Option<Result<(), Failure>> {
        match self.state {
            Swap::Over(result) => Some(result),
            _ => None,
        }
    }
}
