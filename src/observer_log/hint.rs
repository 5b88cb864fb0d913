//! Recording the hint: one more than the sequence of the latest snapshot known. It never goes down, and a failure to record it
//! is only counted.

use super::failure::{Failure, StoreFailure};
use super::protocol::{Answer, Want};
use super::settle::SettledSwap;

/// Raises the stored hint to one past a snapshot.
#[derive(Debug)]
pub struct RecordHint {
    target: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Read,
    Swap { old: u64, swap: SettledSwap },
    Over(Recorded),
}

/// How recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The hint is at least this far now.
    Done,
    /// It could not be recorded. The stream is none the worse.
    Failed(Failure),
}

impl Recorded {
    /// 1 for a failure, which is what callers add up.
    pub fn failures(self) -> u64 {
        match self {
            Recorded::Done => 0,
            Recorded::Failed(_) => 1,
        }
    }
}

impl RecordHint {
    /// Records a snapshot by its number, which is one more than its sequence.
    pub fn new(number: u64) -> Self {
        RecordHint { target: number, state: State::Read }
    }

    /// What it wants next; nothing when it is over.
    pub fn want(&self) -> Option<Want<'_>> {
        match &self.state {
            State::Read => Some(Want::ReadValue),
            State::Swap { swap, .. } => swap.want(),
            State::Over(_) => None,
        }
    }

    /// Takes the answer to what it wanted. When it is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        match &mut self.state {
            State::Read => match answer {
                Answer::Value(value) => self.raise_from(value.unwrap_or(0)),
                other => self.state = State::Over(Recorded::Failed(Failure::of_answer(&Want::ReadValue, &other))),
            },
            State::Swap { old, swap } => {
                swap.answer(answer);
                let old = *old;
                match swap.result() {
                    None => {}
                    Some(Ok(())) => self.state = State::Over(Recorded::Done),
                    // Another number stands there: on with that one. A conflict over the number that was expected would go on
                    // for ever.
                    Some(Err(Failure::Store(StoreFailure::ValueConflict { actual, .. }))) if actual != old => {
                        self.raise_from(actual);
                    }
                    Some(Err(failure)) => self.state = State::Over(Recorded::Failed(failure)),
                }
            }
            State::Over(_) => {}
        }
    }

    fn raise_from(&mut self, stored: u64) {
        self.state = if stored < self.target {
            State::Swap { old: stored, swap: SettledSwap::new(stored, self.target) }
        } else {
            State::Over(Recorded::Done)
        };
    }

    /// How it ended, once it is over.
    pub fn result(&self) -> Option<Recorded> {
        match self.state {
            State::Over(recorded) => Some(recorded),
            _ => None,
        }
    }
}
