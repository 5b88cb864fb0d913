//! One run: its floor, its entries in order up to a bound, and what was passed over on the way.

use super::checkpoint::NoFold;
use super::reduce::{EventType, Outcome, Reason, Refusal};
use super::state::Fold;
use crate::digest::StateDigest;
use crate::error::{found_byte, Code, Error};
use crate::finding::Id;
use crate::journal::{Bound, Entry, Floor, Order, Page, Place, Seq};
use crate::json::first_invalid_utf8;

/// How many entries changed nothing, by reason, and the first of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ignored {
    counts: [u64; Reason::ALL.len()],
    firsts: [Option<Seq>; Reason::ALL.len()],
}

impl Ignored {
    #[inline]
    fn count(&mut self, reason: Reason, seq: Seq) {
        let place = reason as usize;
        if let (Some(count), Some(first)) = (self.counts.get_mut(place), self.firsts.get_mut(place)) {
            *count = count.saturating_add(1);
            first.get_or_insert(seq);
        }
    }

    /// Each reason that occurred: how often, and the first seq.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64, Option<Seq>)> + '_ {
        Reason::ALL
            .iter()
            .zip(self.counts)
            .zip(self.firsts)
            .filter(|((_, count), _)| *count > 0)
            .map(|((reason, count), first)| (*reason, count, first))
    }
}

/// What a run covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Entries of the four types that were folded, applied or not.
    pub entries: u64,
    /// The floor's seq, when the run has a floor.
    pub floor: Option<Seq>,
    /// The first seq folded.
    pub first: Option<Seq>,
    /// The last seq folded.
    pub last: Option<Seq>,
    /// Whether the run has entries, but none as high as its floor: the checkpoint lies beyond the journal's head.
    pub floor_beyond_head: bool,
}

impl Coverage {
    /// The last seq that the fold accounts for.
    pub fn head(&self) -> Option<Seq> {
        self.last.or(self.floor)
    }
}

/// One run being folded.
#[derive(Debug, Default)]
pub struct RunFold {
    fold: Fold,
    order: Order,
    bound: Option<Bound>,
    floor: Option<Seq>,
    last_below_floor: Option<Seq>,
    first: Option<Seq>,
    entries: u64,
    ignored: Ignored,
    mark: Option<Seq>,
    digest_at_mark: Option<StateDigest>,
}

impl RunFold {
    /// An empty run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a run at its floor, forgetting what was there. A floor without a fold is [`Code::FoldIncomplete`]; a bound below
    /// a sound floor is [`Code::BoundBelowFloor`].
    pub fn begin(&mut self, run_id: &[u8], floor: Option<Floor<'_>>, bound: Option<Bound>) -> Result<(), Error> {
        self.begin_at_floor(floor, bound).map_err(|no_fold| match no_fold {
            NoFold::TooLarge(error) => error.in_run(run_id),
            other => {
                let mut error = Error::checkpoint_missing(run_id);
                error.found = other.describe();
                error
            }
        })?;
        if let (Some(bound), Some(floor)) = (bound, floor) {
            if !bound.takes(floor.seq) {
                return Err(Error::new(
                    Code::BoundBelowFloor,
                    format!("a bound at or above the floor's seq {}", floor.seq),
                    bound.to_string(),
                )
                .in_run(run_id));
            }
        }
        Ok(())
    }

    fn begin_at_floor(&mut self, floor: Option<Floor<'_>>, bound: Option<Bound>) -> Result<(), NoFold> {
        self.order.clear();
        self.bound = bound;
        self.floor = floor.map(|floor| floor.seq);
        self.last_below_floor = None;
        self.first = None;
        self.entries = 0;
        self.ignored = Ignored::default();
        self.mark = None;
        self.digest_at_mark = None;
        match floor {
            Some(floor) => self.fold.read_checkpoint(floor.state),
            None => {
                self.fold.clear();
                Ok(())
            }
        }
    }

    /// Begins from an encoded fold in place of a floor.
    pub fn begin_from(&mut self, encoded: &[u8]) -> Result<(), Error> {
        self.begin(b"", None, None)?;
        self.fold.read_encoded(encoded)
    }

    /// Folds a page. An entry that cannot be taken stops it: everything before that entry is folded, the entry and what follows
    /// is not, and the error names its seq.
    pub fn push(&mut self, page: &Page<'_>) -> Result<(), Error> {
        let mut previous = None;
        let mut stopped = Ok(());
        for entry in page.entries() {
            if let Err(error) = self.push_entry(&entry, &mut previous, page.is_utf8()) {
                stopped = Err(error.at_seq(entry.seq));
                break;
            }
        }
        if let Some(payload) = previous {
            self.order.keep_payload(payload);
        }
        stopped
    }

    /// Folds a page in the order given and checks neither order nor repeats: entries of other types are passed over.
    pub fn reduce(&mut self, page: &Page<'_>) -> Result<(), Error> {
        for entry in page.entries() {
            let Some(event) = EventType::from_code(entry.type_code) else { continue };
            judge_utf8(&entry, page.is_utf8()).map_err(|error| error.at_seq(entry.seq))?;
            self.fold.apply(event, entry.payload).map_err(|refusal| Error::from(refusal).at_seq(entry.seq))?;
        }
        Ok(())
    }

    #[inline]
    fn push_entry<'a>(&mut self, entry: &Entry<'a>, previous: &mut Option<&'a [u8]>, utf8: bool) -> Result<(), Error> {
        let Some(event) = EventType::from_code(entry.type_code) else {
            self.ignored.count(Reason::OtherType, entry.seq);
            return Ok(());
        };
        if self.floor.is_some_and(|floor| entry.seq <= floor) {
            self.last_below_floor = self.last_below_floor.max(Some(entry.seq));
            self.ignored.count(Reason::BelowFloor, entry.seq);
            return Ok(());
        }
        if self.bound.is_some_and(|bound| !bound.takes(entry.seq)) {
            self.ignored.count(Reason::AboveBound, entry.seq);
            return Ok(());
        }
        if self.mark.is_some_and(|mark| entry.seq > mark) {
            self.digest_at_mark();
        }
        if self.order.place(entry, *previous)? == Place::Redelivered {
            self.ignored.count(Reason::Redelivered, entry.seq);
            return Ok(());
        }
        judge_utf8(entry, utf8)?;
        let outcome = self.fold.apply(event, entry.payload).map_err(|refusal: Refusal| Error::from(refusal))?;
        self.order.take(entry);
        *previous = Some(entry.payload);
        self.first.get_or_insert(entry.seq);
        self.entries = self.entries.saturating_add(1);
        if let Outcome::Ignored(reason) = outcome {
            self.ignored.count(reason, entry.seq);
        }
        Ok(())
    }

    /// Asks for the digest of all that was recorded up to `seq` ([`RunFold::digest_at_mark`]). Called after [`RunFold::begin`].
    pub fn mark(&mut self, seq: Option<Seq>) {
        self.mark = seq;
    }

    /// The digest of all that was recorded when the first entry above the mark came, or of all when none has come.
    pub fn digest_at_mark(&mut self) -> StateDigest {
        self.mark = None;
        *self.digest_at_mark.get_or_insert_with(|| self.fold.digests().recorded)
    }

    /// The state so far.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// What was passed over so far.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// What the run covers so far.
    pub fn coverage(&self) -> Coverage {
        Coverage {
            entries: self.entries,
            floor: self.floor,
            first: self.first,
            last: self.order.last_seq(),
            floor_beyond_head: self.order.last_seq().is_none()
                && self.last_below_floor.is_some_and(|last| Some(last) < self.floor),
        }
    }
}

/// Judges a payload as UTF-8 unless its whole page is known to be.
#[inline(always)]
fn judge_utf8(entry: &Entry<'_>, page_is_utf8: bool) -> Result<(), Error> {
    if page_is_utf8 {
        return Ok(());
    }
    match first_invalid_utf8(entry.payload) {
        None => Ok(()),
        Some(offset) => {
            let mut error = Error::new(Code::TextNotUtf8, "UTF-8", found_byte(entry.payload.get(offset).copied()));
            error.offset = Some(offset as u64);
            Err(error)
        }
    }
}

/// The finding that stands for an error of a run's journal, for verifications that go on without the run; `None` for errors
/// that are none of the journal's.
pub fn refused_run(error: &Error) -> Option<Id> {
    match error.code {
        Code::EntryConflict => Some(Id::EntryConflict),
        Code::EntryOutOfOrder => Some(Id::EntryOutOfOrder),
        Code::PayloadNotJson => Some(Id::PayloadNotJson),
        Code::TextNotUtf8 => Some(Id::TextNotUtf8),
        Code::TooLarge => Some(Id::TooLarge),
        Code::FoldIncomplete => Some(Id::CheckpointMissing),
        _ => None,
    }
}
