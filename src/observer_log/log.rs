//! The parts put together: one stream, its aggregate and its head, one change at a time.
//!
//! Before a change the stream is restored if it is not yet, or the tail recovered if the change before ended without a sure
//! answer. Then the aggregate is asked; the row is appended, behind the snapshot when one is due; and only then is the change
//! made. When the append of a `track` or `advance` fails, the aggregate stays as it was and the tail is recovered at once, so that
//! an arm that fired all the same is not lost; when that of arms fails, or the tail tells too little, the next change begins with
//! a restore. Rows that are found in either way were perhaps never flushed: a flush comes before anything is said that rests on
//! them, because a caller who is told that a conversation is tracked already will rely on it.

use super::aggregate::Aggregate;
use super::append::Append;
use super::cadence::snapshot_before;
use super::change::{Change, Done, Outcome, Rejected, RestoredFrom};
use super::failure::Failure;
use super::live::{Live, RecoverLimits, Rejection};
use super::protocol::{Answer, Publication, Want};
use super::recover::Recover;
use super::restore::Restore;
use super::row::{Kind, Row};
use crate::error::{Code, Error};

/// How sure the aggregate and the head are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known: a restore comes first.
    Closed,
    /// Both are as the stream has them.
    Ready,
    /// An append may have landed: tail recovery comes first.
    Unsettled,
}

/// One stream.
#[derive(Debug)]
pub struct Log {
    live: Live,
    head: u64,
    standing: Standing,
    work: Work,
    /// The change that is under way; its outcome so far; and the failure of its append, once that failed.
    change: Option<Change>,
    outcome: Option<Outcome>,
    failed: Option<Failure>,
    ended: Option<Outcome>,
    /// Whether rows may have been found that nobody flushed, because an append failed or a process died; and arms that fired in them.
    unflushed: bool,
    held: Vec<Publication>,
}

#[derive(Debug, Default)]
enum Work {
    #[default]
    Nothing,
    Restore(Box<Restore>),
    Recover(Box<Recover>),
    Append(Box<Append>),
    Flush,
}

impl Default for Log {
    fn default() -> Self {
        Log {
            live: Live::default(),
            head: 0,
            standing: Standing::Closed,
            work: Work::Nothing,
            change: None,
            outcome: None,
            failed: None,
            ended: None,
            // What a process before this one appended, it may have died before it flushed.
            unflushed: true,
            held: Vec::new(),
        }
    }
}

impl Log {
    /// A stream of which nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state, as of the last change.
    pub fn aggregate(&self) -> &Aggregate {
        self.live.aggregate()
    }

    /// How sure the state is.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// The sequence that the next row takes, if that is sure.
    pub fn head(&self) -> Option<u64> {
        (self.standing == Standing::Ready).then_some(self.head)
    }

    /// Begins a change. The one before must be over and its outcome taken.
    pub fn begin(&mut self, change: Change) -> Result<(), Error> {
        if self.change.is_some() || self.ended.is_some() {
            return Err(Error::new(Code::CallOutOfOrder, "the end of the change under way", "another one"));
        }
        self.change = Some(change);
        self.outcome = Some(Outcome {
            result: Ok(Done::default()),
            publications: Vec::new(),
            restored: None,
            hint_failures: 0,
            head: None,
        });
        self.failed = None;
        self.prepare();
        Ok(())
    }

    /// What it wants next; nothing when the change is over.
    pub fn want(&self) -> Option<Want<'_>> {
        match &self.work {
            Work::Nothing => None,
            Work::Restore(restore) => restore.want(),
            Work::Recover(recover) => recover.want(),
            Work::Append(append) => append.want(),
            Work::Flush => Some(Want::Flush),
        }
    }

    /// Takes the answer to what it wanted. When the change is over, there is nothing to answer and nothing happens.
    pub fn answer(&mut self, answer: Answer<'_>) {
        match std::mem::take(&mut self.work) {
            Work::Nothing => {}
            Work::Restore(mut restore) => {
                restore.answer(answer);
                self.after_restore(*restore);
            }
            Work::Recover(mut recover) => {
                recover.answer(answer);
                self.after_recover(recover);
            }
            Work::Append(mut append) => {
                append.answer(answer);
                self.after_append(append);
            }
            Work::Flush => self.after_flush(answer),
        }
    }

    /// The outcome of the change, once it is over.
    pub fn take_outcome(&mut self) -> Option<Outcome> {
        self.ended.take()
    }

    /// Does what has to come before the change, and then the change.
    fn prepare(&mut self) {
        match self.standing {
            Standing::Closed => {
                self.live = Live::default();
                self.work = Work::Restore(Box::default());
            }
            Standing::Unsettled => self.recover_tail(),
            Standing::Ready => self.flush_and_ask(),
        }
    }

    fn recover_tail(&mut self) {
        let aggregate = std::mem::take(&mut self.live).into_aggregate();
        self.work = Work::Recover(Box::new(Recover::new(aggregate, self.head)));
    }

    fn after_restore(&mut self, restore: Restore) {
        match restore.into_result() {
            Err(unfinished) => self.work = Work::Restore(unfinished),
            Ok(Err(failure)) => self.end(Err(Rejected::Failed(failure))),
            Ok(Ok(restored)) => {
                if let Some(outcome) = &mut self.outcome {
                    outcome.hint_failures = outcome.hint_failures.saturating_add(restored.hint_failures);
                    outcome.restored = Some(RestoredFrom {
                        hint: restored.hint,
                        folded_from: restored.folded_from,
                        rows: restored.rows,
                        snapshot_appended: restored.snapshot_appended,
                    });
                }
                self.live = Live::new(restored.aggregate);
                self.head = restored.head;
                self.standing = Standing::Ready;
                self.flush_and_ask();
            }
        }
    }

    fn after_recover(&mut self, recover: Box<Recover>) {
        let Some(result) = recover.result() else {
            self.work = Work::Recover(recover);
            return;
        };
        let (aggregate, head) = recover.into_parts();
        self.unflushed |= head != self.head;
        self.live = Live::new(aggregate);
        self.head = head;
        match (result, self.failed) {
            (Ok(publication), _) => {
                self.held.extend(publication);
                self.standing = Standing::Ready;
                self.flush_and_ask();
            }
            // The store could not be read: the tail is as unsure as before.
            (Err(Failure::Store(failure)), failed) => {
                self.end(Err(Rejected::Failed(failed.unwrap_or(Failure::Store(failure)))));
            }
            // Rows before a fault are applied already, so that only a restore can tell.
            (Err(_), Some(failure)) => {
                self.close();
                self.end(Err(Rejected::Failed(failure)));
            }
            (Err(_), None) => {
                self.close();
                self.prepare();
            }
        }
    }

    /// Flushes what was found, if anything was, and then asks the aggregate; or ends a change whose append failed before.
    fn flush_and_ask(&mut self) {
        if self.unflushed {
            self.work = Work::Flush;
            return;
        }
        if let Some(outcome) = &mut self.outcome {
            outcome.publications.append(&mut self.held);
        }
        match self.failed {
            Some(failure) => self.end(Err(Rejected::Failed(failure))),
            None => self.ask(),
        }
    }

    fn after_flush(&mut self, answer: Answer<'_>) {
        if let Answer::Flushed = answer {
            self.unflushed = false;
            return self.flush_and_ask();
        }
        let failure = Failure::of_answer(&Want::Flush, &answer);
        self.end(Err(Rejected::Failed(self.failed.unwrap_or(failure))));
    }

    fn ask(&mut self) {
        let asked = match &self.change {
            None | Some(Change::Open) => return self.end(Ok(Done::default())),
            Some(Change::Track { conversation_id, progress }) => self.live.track(*conversation_id, *progress),
            Some(Change::Advance { conversation_id, progress }) => self.live.advance(*conversation_id, *progress),
            Some(Change::Recover { entries, max_entries, connection_limit, connection_tracks }) => {
                let limits = RecoverLimits {
                    max_entries: *max_entries,
                    connection_limit: *connection_limit,
                    connection_tracks,
                };
                self.live.recover(entries, &limits)
            }
        };
        match asked.map(|_| ()) {
            Ok(()) => self.append(),
            Err(Rejection::Refused(refusal)) => self.end(Err(Rejected::Refused(refusal))),
            Err(Rejection::Misplaced(_)) => {
                // A change that was left pending; it was never made.
                self.standing = Standing::Closed;
                self.prepare();
            }
        }
    }

    fn append(&mut self) {
        let snapshot = snapshot_before(self.head, self.live.aggregate());
        let Some(pending) = self.live.pending() else { return };
        match Append::new(self.head, pending.row(), snapshot.as_ref().map(Row::as_ref)) {
            Ok(append) => self.work = Work::Append(Box::new(append)),
            // Refused before anything was written.
            Err(failure) => {
                let _ = self.live.abort();
                self.end(Err(Rejected::Failed(failure)));
            }
        }
    }

    fn after_append(&mut self, append: Box<Append>) {
        match append.result() {
            None => self.work = Work::Append(append),
            Some(Ok(appended)) => match self.live.commit() {
                Ok(pending) => {
                    self.head = appended.next_head;
                    self.unflushed = false;
                    if let Some(outcome) = &mut self.outcome {
                        outcome.hint_failures = outcome.hint_failures.saturating_add(appended.hint_failures);
                    }
                    self.end(Ok(Done { fired: pending.would_fire(), statuses: pending.statuses().to_vec() }));
                }
                // Nothing can have taken the pending change away; if something has, only a restore knows.
                Err(_) => {
                    self.standing = Standing::Closed;
                    self.end(Err(Rejected::Failed(Failure::AppendUnresolved { sequence: self.head })));
                }
            },
            Some(Err(failure)) => {
                self.failed = Some(failure);
                let arms = self.live.abort().is_ok_and(|pending| pending.row().kind() == Kind::Arms);
                if arms {
                    self.close();
                    self.end(Err(Rejected::Failed(failure)));
                } else {
                    self.standing = Standing::Unsettled;
                    self.recover_tail();
                }
            }
        }
    }

    /// After an append that failed, nothing is known but by a restore.
    fn close(&mut self) {
        self.standing = Standing::Closed;
        self.unflushed = true;
    }

    fn end(&mut self, result: Result<Done, Rejected>) {
        self.work = Work::Nothing;
        self.change = None;
        let head = self.head();
        self.ended = self.outcome.take().map(|outcome| Outcome { result, head, ..outcome });
    }
}
