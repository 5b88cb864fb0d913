//! Live transactions: a change is asked for, its row is appended, and only then is the change made. Nothing else touches the
//! aggregate in between.

use std::collections::{BTreeMap, BTreeSet};

use super::aggregate::{Aggregate, Fired, Pair};
use super::refusal::Refusal;
use super::row::{Row, RowRef};
use crate::error::{Code, Error};
use crate::json::Writer;

/// An aggregate, and the change to it that is pending.
#[derive(Debug, Default)]
pub struct Live {
    aggregate: Aggregate,
    pending: Option<Pending>,
}

/// A change that was asked for and not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    row: Row,
    would_fire: Option<Fired>,
    statuses: Vec<Status>,
}

/// What a recover request says of one of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The conversation.
    pub conversation_id: u64,
    /// The epoch that the entry names.
    pub refused_epoch: u64,
    /// The conversation's progress.
    pub current: u64,
    /// Whether the entry is armed: its epoch is the progress. If not, the progress has moved already.
    pub armed: bool,
}

/// What bounds a recover request.
#[derive(Debug, Clone, Copy)]
pub struct RecoverLimits<'a> {
    /// Entries allowed.
    pub max_entries: u64,
    /// Conversations that a connection may track.
    pub connection_limit: u64,
    /// Those that the asking connection tracks already. Repeats count once.
    pub connection_tracks: &'a [u64],
}

/// Why a request was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The aggregate refuses it. Nothing changed.
    Refused(Refusal),
    /// The caller must end the pending change first.
    Misplaced(Error),
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Rejection::Refused(refusal)
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Error {
        match rejection {
            Rejection::Refused(refusal) => Error::from(refusal),
            Rejection::Misplaced(error) => error,
        }
    }
}

impl Pending {
    /// The row to append before the change is committed. A recover request's arms, in its order; also when there is none.
    pub fn row(&self) -> RowRef<'_> {
        self.row.as_ref()
    }

    /// The arm that an advance will fire.
    pub fn would_fire(&self) -> Option<Fired> {
        self.would_fire
    }

    /// What a recover request says of each of its entries, in its order.
    pub fn statuses(&self) -> &[Status] {
        &self.statuses
    }

    /// The arms that a recover request installs, in its order.
    pub fn arms(&self) -> &[Pair] {
        match &self.row {
            Row::Arms(arms) => arms,
            _ => &[],
        }
    }
}

impl Status {
    /// Writes the status as a JSON object.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"conversation_id").decimal_text(self.conversation_id);
        out.name(b"refused_epoch").decimal_text(self.refused_epoch);
        out.name(b"current").decimal_text(self.current).name(b"armed").boolean(self.armed).close_object();
    }
}

impl Live {
    /// A live aggregate.
    pub fn new(aggregate: Aggregate) -> Self {
        Live { aggregate, pending: None }
    }

    /// The state, as it is without the pending change.
    pub fn aggregate(&self) -> &Aggregate {
        &self.aggregate
    }

    /// The state, for keeps; a pending change is dropped.
    pub fn into_aggregate(self) -> Aggregate {
        self.aggregate
    }

    /// The pending change.
    pub fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// Asks for a conversation to be tracked.
    pub fn track(&mut self, conversation_id: u64, progress: u64) -> Result<&Pending, Rejection> {
        self.free()?;
        self.aggregate.judge_track(conversation_id)?;
        Ok(self.hold(Row::Track { conversation_id, progress }, None, Vec::new()))
    }

    /// Asks for a conversation's progress to grow.
    pub fn advance(&mut self, conversation_id: u64, progress: u64) -> Result<&Pending, Rejection> {
        self.free()?;
        let would_fire = self.aggregate.judge_advance(conversation_id, progress)?;
        Ok(self.hold(Row::Advance { conversation_id, progress }, would_fire, Vec::new()))
    }

    /// Asks for arms: of each conversation and epoch, whether its progress has moved on already, or else an arm.
    ///
    /// Checked, each over the whole request before the next: the number of entries; conversations named twice; the connection's
    /// places; each entry against the aggregate.
    pub fn recover(&mut self, entries: &[Pair], limits: &RecoverLimits<'_>) -> Result<&Pending, Rejection> {
        self.free()?;
        let statuses = plan(&self.aggregate, entries, limits)?;
        let armed = statuses.iter().filter(|status| status.armed);
        let arms = armed.map(|status| (status.conversation_id, status.refused_epoch)).collect();
        Ok(self.hold(Row::Arms(arms), None, statuses))
    }

    fn free(&self) -> Result<(), Rejection> {
        match self.pending {
            None => Ok(()),
            Some(_) => {
                Err(Rejection::Misplaced(Error::new(Code::CallOutOfOrder, "the end of the pending change", "another one")))
            }
        }
    }

    fn hold(&mut self, row: Row, would_fire: Option<Fired>, statuses: Vec<Status>) -> &Pending {
        self.pending.insert(Pending { row, would_fire, statuses })
    }

    fn take(&mut self) -> Result<Pending, Error> {
        self.pending.take().ok_or_else(|| Error::new(Code::CallOutOfOrder, "a pending change", "none"))
    }

    /// Makes the pending change, whose row was appended. The arm that it fired is [`Pending::would_fire`].
    pub fn commit(&mut self) -> Result<Pending, Error> {
        let pending = self.take()?;
        // It was judged against this very state.
        self.aggregate.apply(pending.row.as_ref())?;
        Ok(pending)
    }

    /// Drops the pending change. The state is exactly as before.
    pub fn abort(&mut self) -> Result<Pending, Error> {
        self.take()
    }
}

fn plan(aggregate: &Aggregate, entries: &[Pair], limits: &RecoverLimits<'_>) -> Result<Vec<Status>, Refusal> {
    let presented = entries.len() as u64;
    if presented > limits.max_entries {
        return Err(Refusal::TooManyEntries { presented, max_entries: limits.max_entries });
    }
    let mut places = BTreeMap::new();
    for (index, (conversation_id, _)) in (0_u64..).zip(entries) {
        if let Some(first_index) = places.insert(*conversation_id, index) {
            return Err(Refusal::DuplicateConversation {
                conversation_id: *conversation_id,
                first_index,
                duplicate_index: index,
            });
        }
    }
    let tracked: BTreeSet<u64> = limits.connection_tracks.iter().copied().collect();
    let mut taken = tracked.len() as u64;
    for &(conversation_id, _) in entries.iter().filter(|(id, _)| !tracked.contains(id)) {
        if taken >= limits.connection_limit {
            return Err(Refusal::ConnectionCapacityExceeded { conversation_id, limit: limits.connection_limit });
        }
        taken = taken.saturating_add(1);
    }
    entries.iter().map(|entry| status(aggregate, *entry)).collect()
}

fn status(aggregate: &Aggregate, (conversation_id, presented): Pair) -> Result<Status, Refusal> {
    let current = aggregate.progress(conversation_id).ok_or(Refusal::EntryUnknown { conversation_id, presented })?;
    if presented > current {
        return Err(Refusal::EpochAhead { conversation_id, presented, current });
    }
    Ok(Status { conversation_id, refused_epoch: presented, current, armed: presented == current })
}
