//! What is kept of all runs so that they can be joined with each other: a fingerprint of every own row, and every foreign row.

use std::ops::Range;

use hashbrown::HashTable;

use super::join::compare_clock;
use super::plan::{ClockValues, Drift};
use super::{StoredClock, StoredCompletion, Wanted};
use crate::deferred_clock::state::{Address, Fold, Key, Recorded, Stamp};
use crate::digest::fingerprint;
use crate::error::Error;
use crate::sort::sort_by;

/// A set of 128-bit fingerprints.
#[derive(Debug, Default)]
pub(super) struct Prints(HashTable<u128>);

impl Prints {
    pub(super) fn contains(&self, print: u128) -> bool {
        self.0.find(short(print), |known| *known == print).is_some()
    }

    /// Adds a fingerprint; `false` if it was there.
    pub(super) fn insert(&mut self, print: u128) -> bool {
        if self.contains(print) {
            return false;
        }
        self.0.insert_unique(short(print), print, |known| short(*known));
        true
    }
}

fn short(print: u128) -> u64 {
    print as u64
}

/// A completion that a run records of its own execution.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnDeferred {
    print: u128,
    completed_at: Stamp,
    consumed_at: Stamp,
}

/// An address kept whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnedKey {
    flow: Box<[u8]>,
    execution: Box<[u8]>,
    name: Box<[u8]>,
}

impl OwnedKey {
    pub(super) fn as_key(&self) -> Key<'_> {
        Key { flow: &self.flow, execution: &self.execution, name: &self.name }
    }

    fn of(fold: &Fold, address: Address) -> Self {
        let key = fold.key(address);
        OwnedKey { flow: key.flow.into(), execution: key.execution.into(), name: key.name.into() }
    }
}

/// A clock that a run records of another execution.
#[derive(Debug)]
pub(super) struct ForeignClock {
    pub(super) run: usize,
    pub(super) row: usize,
    pub(super) key: OwnedKey,
    pub(super) values: ClockValues,
}

/// A completion that a run records of another execution.
#[derive(Debug)]
pub(super) struct ForeignDeferred {
    pub(super) run: usize,
    pub(super) row: usize,
    pub(super) key: OwnedKey,
    pub(super) exit: Recorded,
    pub(super) metadata: Recorded,
    pub(super) completed_at: Stamp,
    pub(super) consumed_at: Stamp,
}

/// All records of one address that at least one foreign row has.
#[derive(Debug)]
pub(super) struct Group<Record> {
    pub(super) print: u128,
    /// By run, in byte order.
    pub(super) records: Vec<Record>,
}

/// A record of a clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockRecord {
    pub(super) run: usize,
    /// Its place among the foreign clocks, unless it is the own one.
    pub(super) foreign: Option<usize>,
}

/// A record of a completion.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeferredRecord {
    pub(super) run: usize,
    /// Its place among the foreign completions, unless it is the own one.
    pub(super) foreign: Option<usize>,
    pub(super) completed_at: Stamp,
    pub(super) consumed_at: Stamp,
}

/// A stored completion that belongs to a group.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) exit: Option<[u8; 32]>,
    pub(super) metadata: Option<[u8; 32]>,
    pub(super) completed_at_ms: Box<[u8]>,
    pub(super) consumed_at_ms: Box<[u8]>,
}

/// Groups by the fingerprint of their address.
#[derive(Debug)]
struct Groups<Record> {
    all: Vec<Group<Record>>,
    index: HashTable<usize>,
}

impl<Record> Default for Groups<Record> {
    fn default() -> Self {
        Groups { all: Vec::new(), index: HashTable::new() }
    }
}

impl<Record> Groups<Record> {
    fn place(&self, print: u128) -> Option<usize> {
        self.index.find(short(print), |place| self.all.get(*place).is_some_and(|group| group.print == print)).copied()
    }

    fn add(&mut self, print: u128, record: Record) {
        match self.place(print) {
            Some(place) => {
                if let Some(group) = self.all.get_mut(place) {
                    group.records.push(record);
                }
            }
            None => {
                let all = &self.all;
                self.index.insert_unique(short(print), all.len(), |place| {
                    all.get(*place).map_or(0, |group| short(group.print))
                });
                self.all.push(Group { print, records: vec![record] });
            }
        }
    }
}

/// The ledger of all runs.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) own_clocks: Vec<u128>,
    pub(super) own_deferreds: Vec<OwnDeferred>,
    pub(super) clocks: Vec<ForeignClock>,
    pub(super) deferreds: Vec<ForeignDeferred>,
    /// Stored completions that no own record explains.
    pub(super) unrecorded: Vec<u128>,
    clock_groups: Groups<ClockRecord>,
    deferred_groups: Groups<DeferredRecord>,
    /// By place among the groups.
    seen_clocks: Vec<bool>,
    stored: Vec<Option<Stored>>,
    /// Runs, and flows with executions, that were wanted since the runs ended.
    wanted_runs: Prints,
    wanted_addresses: Prints,
}

impl Ledger {
    /// How many rows are recorded of another run's execution than the one that records them.
    pub(super) fn foreign_rows(&self) -> u64 {
        (self.clocks.len() as u64).saturating_add(self.deferreds.len() as u64)
    }

    /// Takes what must be kept of a folded run.
    pub(super) fn take(&mut self, run: usize, id: &[u8], fold: &Fold, buffer: &mut Vec<u8>) {
        let own = fold.find_execution(id);
        for (row, clock) in fold.clocks().iter().enumerate() {
            if Some(clock.address.execution) == own {
                self.own_clocks.push(print_of(fold.key(clock.address), buffer));
            } else {
                let values = ClockValues {
                    deferred_name: fold.name(clock.deferred_name).into(),
                    due_at_ms: clock.due_at_ms,
                    completed_at: clock.completed_at,
                };
                self.clocks.push(ForeignClock { run, row, key: OwnedKey::of(fold, clock.address), values });
            }
        }
        for (row, deferred) in fold.deferreds().iter().enumerate() {
            let (completed_at, consumed_at) = (deferred.completed_at, deferred.consumed_at);
            if Some(deferred.address.execution) == own {
                let print = print_of(fold.key(deferred.address), buffer);
                self.own_deferreds.push(OwnDeferred { print, completed_at, consumed_at });
            } else {
                self.deferreds.push(ForeignDeferred {
                    run,
                    row,
                    key: OwnedKey::of(fold, deferred.address),
                    exit: deferred.exit,
                    metadata: deferred.metadata,
                    completed_at,
                    consumed_at,
                });
            }
        }
    }

    /// Brings all records of each foreign row's address together. `starts` says where each run's own rows begin, and `find_run`
    /// gives the place of an execution among the runs.
    pub(super) fn gather(&mut self, starts: &[(usize, usize)], find_run: impl Fn(&[u8]) -> Option<usize>) {
        let mut buffer = Vec::new();
        let mut named = Vec::new();
        for (place, clock) in self.clocks.iter().enumerate() {
            let record = ClockRecord { run: clock.run, foreign: Some(place) };
            self.clock_groups.add(print_of(clock.key.as_key(), &mut buffer), record);
            named.extend(find_run(&clock.key.execution));
        }
        for (place, deferred) in self.deferreds.iter().enumerate() {
            let record = DeferredRecord {
                run: deferred.run,
                foreign: Some(place),
                completed_at: deferred.completed_at,
                consumed_at: deferred.consumed_at,
            };
            self.deferred_groups.add(print_of(deferred.key.as_key(), &mut buffer), record);
            named.extend(find_run(&deferred.key.execution));
        }
        sort_by(&mut named, Ord::cmp);
        named.dedup();
        for run in named {
            let (clocks, deferreds) = self.own_rows(starts, run);
            for print in self.own_clocks.get(clocks).unwrap_or_default() {
                if let Some(group) = self.clock_groups.place(*print).and_then(|at| self.clock_groups.all.get_mut(at)) {
                    group.records.push(ClockRecord { run, foreign: None });
                }
            }
            for own in self.own_deferreds.get(deferreds).unwrap_or_default() {
                let place = self.deferred_groups.place(own.print);
                if let Some(group) = place.and_then(|at| self.deferred_groups.all.get_mut(at)) {
                    group.records.push(DeferredRecord {
                        run,
                        foreign: None,
                        completed_at: own.completed_at,
                        consumed_at: own.consumed_at,
                    });
                }
            }
        }
        for group in &mut self.clock_groups.all {
            sort_by(&mut group.records, |one, other| one.run.cmp(&other.run));
        }
        for group in &mut self.deferred_groups.all {
            sort_by(&mut group.records, |one, other| one.run.cmp(&other.run));
        }
        self.seen_clocks = vec![false; self.clock_groups.all.len()];
        self.stored = vec![None; self.deferred_groups.all.len()];
    }

    fn own_rows(&self, starts: &[(usize, usize)], run: usize) -> (Range<usize>, Range<usize>) {
        let start = starts.get(run).copied().unwrap_or_default();
        let end = starts
            .get(run.saturating_add(1))
            .copied()
            .unwrap_or((self.own_clocks.len(), self.own_deferreds.len()));
        (start.0..end.0, start.1..end.1)
    }

    /// What the foreign rows are to be joined with.
    pub(super) fn wanted(&mut self) -> Wanted {
        let mut buffer = Vec::new();
        let mut wanted = Wanted::default();
        for clock in &self.clocks {
            if self.wanted_runs.insert(fingerprint(&mut buffer, &[&clock.key.execution])) {
                wanted.runs.push(clock.key.execution.to_vec());
            }
        }
        let keys = self.clocks.iter().map(|clock| &clock.key).chain(self.deferreds.iter().map(|deferred| &deferred.key));
        for key in keys {
            if self.wanted_addresses.insert(fingerprint(&mut buffer, &[&key.flow, &key.execution])) {
                wanted.addresses.push((key.flow.to_vec(), key.execution.to_vec()));
            }
        }
        wanted
    }

    /// Whether a flow and execution, by fingerprint, still has to be asked for in the sweep; remembers that it was.
    pub(super) fn sweep(&mut self, print: u128) -> bool {
        self.wanted_addresses.insert(print)
    }

    /// Whether a run, by fingerprint, was asked for.
    pub(super) fn wants_run(&self, print: u128) -> bool {
        self.wanted_runs.contains(print)
    }

    /// Whether a flow and execution, by fingerprint, was asked for.
    pub(super) fn wants_address(&self, print: u128) -> bool {
        self.wanted_addresses.contains(print)
    }

    /// Joins a stored clock row with the foreign record of its address; `false` if there is none.
    pub(super) fn join_clock(
        &mut self,
        row: &StoredClock<'_>,
        buffer: &mut Vec<u8>,
        drift: &mut Vec<Drift>,
    ) -> Result<bool, Error> {
        let Some(place) = self.clock_groups.place(print_of(row.key, buffer)) else { return Ok(false) };
        if let Some(seen) = self.seen_clocks.get_mut(place) {
            *seen = true;
        }
        let records = self.clock_groups.all.get(place).map_or(&[][..], |group| &group.records);
        // A clock that several runs record is a conflict, and nothing can be said of its row.
        if let [ClockRecord { run, foreign: Some(foreign) }] = records {
            if let Some(clock) = self.clocks.get(*foreign) {
                drift.extend(compare_clock(*run, clock.values.clone(), row)?);
            }
        }
        Ok(true)
    }

    /// Keeps a stored completion row for the foreign records of its address; `false` if there is none.
    pub(super) fn join_completion(&mut self, row: &StoredCompletion<'_>, buffer: &mut Vec<u8>) -> bool {
        let Some(place) = self.deferred_groups.place(print_of(row.key, buffer)) else { return false };
        if let Some(slot) = self.stored.get_mut(place) {
            *slot = Some(Stored {
                exit: row.exit,
                metadata: row.metadata,
                completed_at_ms: row.completed_at_ms.into(),
                consumed_at_ms: row.consumed_at_ms.into(),
            });
        }
        true
    }

    /// The groups of clocks, and whether a stored row was seen of each.
    pub(super) fn clock_groups(&self) -> impl Iterator<Item = (&Group<ClockRecord>, bool)> {
        self.clock_groups.all.iter().zip(self.seen_clocks.iter().copied())
    }

    /// The groups of completions, and the stored row of each.
    pub(super) fn deferred_groups(&self) -> impl Iterator<Item = (&Group<DeferredRecord>, Option<&Stored>)> {
        self.deferred_groups.all.iter().zip(self.stored.iter().map(Option::as_ref))
    }

    /// Whether a foreign row records the clock.
    pub(super) fn records_clock(&self, key: Key<'_>, buffer: &mut Vec<u8>) -> bool {
        self.clock_groups.place(print_of(key, buffer)).is_some()
    }

    /// Whether a foreign row records the completion.
    pub(super) fn records_completion(&self, key: Key<'_>, buffer: &mut Vec<u8>) -> bool {
        self.deferred_groups.place(print_of(key, buffer)).is_some()
    }

    /// The group of a clock's address, if a foreign row records it.
    pub(super) fn clock_group(&self, key: Key<'_>, buffer: &mut Vec<u8>) -> Option<&Group<ClockRecord>> {
        self.clock_groups.place(print_of(key, buffer)).and_then(|place| self.clock_groups.all.get(place))
    }

    /// How many stored completions nothing explains.
    pub(super) fn unexplained(&mut self) -> u64 {
        sort_by(&mut self.unrecorded, Ord::cmp);
        self.unrecorded.dedup();
        self.unrecorded.iter().filter(|print| self.deferred_groups.place(**print).is_none()).count() as u64
    }
}

pub(super) fn print_of(key: Key<'_>, buffer: &mut Vec<u8>) -> u128 {
    fingerprint(buffer, &[key.flow, key.execution, key.name])
}
