//! A folded run beside its stored rows: which of its rows were seen, and in what they differ.

use super::plan::{ClockValues, Drift};
use super::{not_asked, describe, StoredClock, StoredCompletion, Wanted};
use crate::deferred_clock::run::RunFold;
use crate::deferred_clock::state::{Clock, Deferred, Key, Recorded, Stamp};
use crate::digest::to_hex;
use crate::error::{Code, Error};
use crate::finding::{shown_text, Finding, Id, Shown};
use crate::json::{Raw, Reader};
use crate::names::Symbol;

/// A folded run that waits for its stored rows.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) place: usize,
    pub(super) id: Vec<u8>,
    pub(super) run: RunFold,
    /// Whether the run has a row.
    pub(super) live: bool,
    own: Option<Symbol>,
    /// Which flows were asked for, by symbol.
    flows: Vec<bool>,
    seen_clocks: Vec<bool>,
    seen_deferreds: Vec<bool>,
}

/// What a stored clock row is to the journal.
pub(super) enum Row {
    /// What the journal says.
    Same,
    /// Something else.
    Drift(Drift),
    /// No entry of this run records it.
    Unrecorded,
}

/// A stored completion row that this run records, by its place in the fold.
pub(super) struct Completion {
    pub(super) index: u32,
    pub(super) mismatch: Option<Finding>,
    pub(super) drift: Option<Drift>,
}

impl Pending {
    pub(super) fn new(place: usize, id: Vec<u8>, run: RunFold, compare_clocks: bool) -> (Self, Wanted) {
        let fold = run.fold();
        let own = fold.find_execution(&id);
        let mut flows = vec![false; fold.flow_count()];
        let mut wanted = Wanted::default();
        let mut any_clock = false;
        let clock_addresses = fold.clocks().iter().map(|clock| (clock.address, true));
        let deferred_addresses = fold.deferreds().iter().map(|deferred| (deferred.address, false));
        for (address, clock) in clock_addresses.chain(deferred_addresses) {
            if Some(address.execution) == own {
                any_clock |= clock;
                if let Some(asked @ false) = flows.get_mut(address.flow.0 as usize) {
                    *asked = true;
                    wanted.addresses.push((fold.flow(address.flow).to_vec(), id.clone()));
                }
            }
        }
        if any_clock {
            wanted.runs.push(id.clone());
        }
        let seen_clocks = if compare_clocks { vec![false; fold.clocks().len()] } else { Vec::new() };
        let seen_deferreds = vec![false; fold.deferreds().len()];
        (Pending { place, id, live: false, own, flows, seen_clocks, seen_deferreds, run }, wanted)
    }

    /// The clocks of the run's own execution, with their places in the fold.
    pub(super) fn own_clocks(&self) -> impl Iterator<Item = (usize, &Clock)> {
        self.run.fold().clocks().iter().enumerate().filter(|(_, clock)| Some(clock.address.execution) == self.own)
    }

    /// The completions of the run's own execution, with their places in the fold.
    pub(super) fn own_deferreds(&self) -> impl Iterator<Item = (usize, &Deferred)> {
        self.run.fold().deferreds().iter().enumerate().filter(|(_, deferred)| Some(deferred.address.execution) == self.own)
    }

    pub(super) fn seen_clock(&self, index: usize) -> bool {
        self.seen_clocks.get(index).is_some_and(|seen| *seen)
    }

    pub(super) fn seen_deferred(&self, index: usize) -> bool {
        self.seen_deferreds.get(index).is_some_and(|seen| *seen)
    }

    pub(super) fn expect_asked(&self, key: Key<'_>) -> Result<(), Error> {
        let flow = self.run.fold().find_flow(key.flow);
        if flow.and_then(|flow| self.flows.get(flow.0 as usize)).is_some_and(|asked| *asked) {
            Ok(())
        } else {
            Err(not_asked(describe(key)))
        }
    }

    pub(super) fn join_clock(&mut self, row: &StoredClock<'_>) -> Result<Row, Error> {
        self.expect_asked(row.key)?;
        let fold = self.run.fold();
        let Some(index) = fold.find_clock(row.key) else { return Ok(Row::Unrecorded) };
        let Some(clock) = fold.clocks().get(index as usize) else { return Ok(Row::Unrecorded) };
        let expected = ClockValues {
            deferred_name: fold.name(clock.deferred_name).into(),
            due_at_ms: clock.due_at_ms,
            completed_at: clock.completed_at,
        };
        if let Some(seen) = self.seen_clocks.get_mut(index as usize) {
            *seen = true;
        }
        Ok(compare_clock(self.place, expected, row)?.map_or(Row::Same, Row::Drift))
    }

    /// Joins a stored completion; `None` when no entry of this run records it.
    pub(super) fn join_completion(&mut self, row: &StoredCompletion<'_>) -> Result<Option<Completion>, Error> {
        self.expect_asked(row.key)?;
        let fold = self.run.fold();
        let Some(index) = fold.find_deferred(row.key) else { return Ok(None) };
        let Some(deferred) = fold.deferreds().get(index as usize) else { return Ok(None) };
        let mismatch = compare_digests(row.key, deferred.exit, deferred.metadata, row.exit, row.metadata)
            .map(|finding| finding.in_run(&self.id));
        let drift = compare_stamps(
            self.place,
            row.key,
            (deferred.completed_at, deferred.consumed_at),
            (row.completed_at_ms, row.consumed_at_ms),
        )?;
        if let Some(seen) = self.seen_deferreds.get_mut(index as usize) {
            *seen = true;
        }
        Ok(Some(Completion { index, mismatch, drift }))
    }
}

/// The drift between a recorded clock and its stored row, if there is any.
pub(super) fn compare_clock(place: usize, expected: ClockValues, row: &StoredClock<'_>) -> Result<Option<Drift>, Error> {
    let deferred_same = read(row.deferred_name)?.as_text().is_some_and(|text| text.equals(&expected.deferred_name));
    let due_same = same_stamp(row.due_at_ms, Stamp::at(expected.due_at_ms))?;
    let completed_same = same_stamp(row.completed_at_ms, expected.completed_at)?;
    if deferred_same && due_same && completed_same {
        return Ok(None);
    }
    let found = [
        (!deferred_same).then(|| row.deferred_name.into()),
        (!due_same).then(|| row.due_at_ms.into()),
        (!completed_same).then(|| row.completed_at_ms.into()),
    ];
    let was_pending = matches!(read(row.completed_at_ms)?, Raw::Null);
    Ok(Some(Drift::differs(place, row.key, &expected, found, was_pending)))
}

/// The finding of a stored completion whose texts are not the recorded ones: one, whatever differs.
pub(super) fn compare_digests(
    key: Key<'_>,
    exit: Recorded,
    metadata: Recorded,
    stored_exit: Option<[u8; 32]>,
    stored_metadata: Option<[u8; 32]>,
) -> Option<Finding> {
    let (field, expected, found) = if !holds(exit, stored_exit) {
        ("exitDigest", exit, stored_exit)
    } else if !holds(metadata, stored_metadata) {
        ("metadataDigest", metadata, stored_metadata)
    } else {
        return None;
    };
    let mut finding = Finding::new(Id::DigestMismatch)
        .at_row(key.flow, key.execution, key.name)
        .with_values(shown_recorded(expected), shown_digest(found));
    finding.field = Some(field);
    Some(finding)
}

fn holds(recorded: Recorded, stored: Option<[u8; 32]>) -> bool {
    match recorded {
        Recorded::Absent => true,
        Recorded::Null => stored.is_none(),
        Recorded::Digest(digest) => stored == Some(digest),
    }
}

fn shown_digest(digest: Option<[u8; 32]>) -> Shown {
    match digest {
        Some(digest) => shown_text(&to_hex(&digest)),
        None => Some(b"null".to_vec()),
    }
}

fn shown_recorded(recorded: Recorded) -> Shown {
    match recorded {
        Recorded::Digest(digest) => shown_digest(Some(digest)),
        Recorded::Null | Recorded::Absent => shown_digest(None),
    }
}

/// The drift between a completion's recorded stamps and the stored ones. A completion without a recorded time leaves the stored
/// one; the consumption is always the recorded one, null too.
pub(super) fn compare_stamps(
    place: usize,
    key: Key<'_>,
    (completed_at, consumed_at): (Stamp, Stamp),
    (stored_completed, stored_consumed): (&[u8], &[u8]),
) -> Result<Option<Drift>, Error> {
    let completed_same = completed_at.is_none() || same_stamp(stored_completed, completed_at)?;
    let consumed_same = same_stamp(stored_consumed, consumed_at)?;
    if completed_same && consumed_same {
        return Ok(None);
    }
    let was_consumed = !matches!(read(stored_consumed)?, Raw::Null);
    let found = [
        (!completed_same).then(|| stored_completed.into()),
        (!consumed_same).then(|| stored_consumed.into()),
    ];
    Ok(Some(Drift::stamps(place, key, completed_at, consumed_at, found, was_consumed)))
}

fn same_stamp(stored: &[u8], stamp: Stamp) -> Result<bool, Error> {
    Ok(match (read(stored)?, stamp.ms()) {
        (Raw::Null, None) => true,
        (value, Some(ms)) => value.as_safe_integer() == Some(ms),
        _ => false,
    })
}

impl StoredClock<'_> {
    /// Refuses a row whose values are no JSON texts.
    pub(super) fn check(&self) -> Result<(), Error> {
        [self.deferred_name, self.due_at_ms, self.completed_at_ms].into_iter().try_for_each(|value| read(value).map(drop))
    }
}

impl StoredCompletion<'_> {
    /// Refuses a row whose stamps are no JSON texts.
    pub(super) fn check(&self) -> Result<(), Error> {
        [self.completed_at_ms, self.consumed_at_ms].into_iter().try_for_each(|value| read(value).map(drop))
    }
}

fn read(json: &[u8]) -> Result<Raw<'_>, Error> {
    let mut reader = Reader::new(json);
    let value = reader.value().and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| Error::syntax(Code::AnswerMalformed, &error))
}
