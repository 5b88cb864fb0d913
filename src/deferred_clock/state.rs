//! The state of the fold: clock rows and completion rows, each in the order in which they first appeared.

use super::opening::{Opening, Owner};
use crate::digest::{Sha256Bytes, StateDigest};
use crate::error::Error;
use crate::sort::sort_by;
use crate::names::{clear_rows, hash, too_large, Arena, Index, Interner, Span, Symbol};

/// A time in milliseconds since 1970, 0 to 2^53-1, or none. Times are never compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u64);

impl Stamp {
    /// No time: `null`.
    pub const NONE: Stamp = Stamp(u64::MAX);

    /// A time; a number beyond 2^53-1 is not one and must not come here.
    #[inline]
    pub fn at(ms: u64) -> Stamp {
        Stamp(ms)
    }

    /// The time in milliseconds, or `None` for `null`.
    #[inline]
    pub fn ms(self) -> Option<u64> {
        (self.0 != u64::MAX).then_some(self.0)
    }

    /// Whether there is no time. A time of 0 is one.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == u64::MAX
    }

    /// Its eight canonical bytes.
    fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

impl From<Option<u64>> for Stamp {
    fn from(ms: Option<u64>) -> Stamp {
        ms.map_or(Stamp::NONE, Stamp)
    }
}

/// What was recorded of a text: nothing, that there is none, or its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing was recorded, so nothing can be checked.
    Absent,
    /// There is no such text (metadata only).
    Null,
    /// The text's digest.
    Digest(Sha256Bytes),
}

/// Why a digest was not recorded, when it was not: what a verification counts as unverifiable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestGap {
    /// A digest was recorded.
    None,
    /// The member was absent or null.
    Absent,
    /// The member held something that is no digest.
    Malformed,
}

/// An address: flow, execution and name, compared part by part and never joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The flow.
    pub flow: Symbol,
    /// The execution.
    pub execution: Symbol,
    /// The clock's or the deferred's name.
    pub name: Span,
}

/// A clock row.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Its address.
    pub address: Address,
    /// The deferred that it completes; no part of its address.
    pub deferred_name: Span,
    /// When it is due, in ms.
    pub due_at_ms: u64,
    /// When it completed.
    pub completed_at: Stamp,
}

/// A completion row.
#[derive(Debug, Clone, Copy)]
pub struct Deferred {
    /// Its address.
    pub address: Address,
    /// When it completed, if that was recorded.
    pub completed_at: Stamp,
    /// When it was consumed.
    pub consumed_at: Stamp,
    /// The digest of its exit: never [`Recorded::Null`].
    pub exit: Recorded,
    /// Why there is no digest of its exit.
    pub exit_gap: DigestGap,
    /// The digest of its metadata.
    pub metadata: Recorded,
}

/// Two digests of one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digests {
    /// Over the rows as the tables hold them: clocks whole, completions by address and stamps.
    pub state: StateDigest,
    /// Over all that was recorded, digests of exits and metadata included: what a rewritten entry changes.
    pub recorded: StateDigest,
}

/// The folded state of one or more runs. Rows keep the place where they first appeared.
#[derive(Debug, Default)]
pub struct Fold {
    flows: Interner,
    executions: Interner,
    names: Arena,
    clocks: Vec<Clock>,
    deferreds: Vec<Deferred>,
    clock_index: Index,
    deferred_index: Index,
    opening: Opening,
}

/// A row's borrowed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'a> {
    /// The flow.
    pub flow: &'a [u8],
    /// The execution.
    pub execution: &'a [u8],
    /// The clock's or the deferred's name.
    pub name: &'a [u8],
}



#[inline(always)]
fn address_hash(owner: Owner, name: &[u8]) -> u32 {
    hash(name, (u64::from(owner.flow.0) << 32) | u64::from(owner.execution.0))
}

impl Fold {
    /// The empty state.
    pub fn new() -> Self {
        Self::default()
    }

    /// All clocks in fold order.
    pub fn clocks(&self) -> &[Clock] {
        &self.clocks
    }

    /// All completions in fold order.
    pub fn deferreds(&self) -> &[Deferred] {
        &self.deferreds
    }

    /// A flow's text.
    pub fn flow(&self, symbol: Symbol) -> &[u8] {
        self.flows.get(symbol)
    }

    /// An execution's text.
    pub fn execution(&self, symbol: Symbol) -> &[u8] {
        self.executions.get(symbol)
    }

    /// The symbol of a flow that some row or entry named, below [`Fold::flow_count`].
    pub fn find_flow(&self, flow: &[u8]) -> Option<Symbol> {
        self.flows.find(flow)
    }

    /// How many flows were named.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// The symbol of an execution that some row or entry named.
    pub fn find_execution(&self, execution: &[u8]) -> Option<Symbol> {
        self.executions.find(execution)
    }

    /// A name's text.
    pub fn name(&self, span: Span) -> &[u8] {
        self.names.get(span)
    }

    /// An address as texts.
    pub fn key(&self, address: Address) -> Key<'_> {
        Key {
            flow: self.flows.get(address.flow),
            execution: self.executions.get(address.execution),
            name: self.names.get(address.name),
        }
    }

    /// How payloads begin.
    #[inline(always)]
    pub(super) fn opening(&self) -> &Opening {
        &self.opening
    }

    /// How payloads begin, to change it.
    pub(super) fn opening_mut(&mut self) -> &mut Opening {
        &mut self.opening
    }

    /// A flow and an execution, interned.
    #[inline]
    pub(super) fn owner(&mut self, flow: &[u8], execution: &[u8]) -> Result<Owner, Error> {
        Ok(Owner { flow: self.flows.intern(flow)?, execution: self.executions.intern(execution)? })
    }

    /// A flow and an execution, if some row or entry named both.
    #[inline]
    pub(super) fn known_owner(&self, flow: &[u8], execution: &[u8]) -> Option<Owner> {
        Some(Owner { flow: self.flows.find(flow)?, execution: self.executions.find(execution)? })
    }

    /// The place of a clock in [`Fold::clocks`].
    #[inline]
    pub fn find_clock(&self, key: Key<'_>) -> Option<u32> {
        let owner = self.known_owner(key.flow, key.execution)?;
        self.clock_at(owner, key.name, address_hash(owner, key.name))
    }

    /// The place of a completion in [`Fold::deferreds`].
    #[inline]
    pub fn find_deferred(&self, key: Key<'_>) -> Option<u32> {
        let owner = self.known_owner(key.flow, key.execution)?;
        self.deferred_at(owner, key.name, address_hash(owner, key.name))
    }

    #[inline(always)]
    fn clock_at(&self, owner: Owner, name: &[u8], hash: u32) -> Option<u32> {
        self.clock_index
            .find(hash, |index| self.clocks.get(index as usize).is_some_and(|row| self.is_at(row.address, owner, name)))
    }

    #[inline(always)]
    fn deferred_at(&self, owner: Owner, name: &[u8], hash: u32) -> Option<u32> {
        self.deferred_index
            .find(hash, |index| self.deferreds.get(index as usize).is_some_and(|row| self.is_at(row.address, owner, name)))
    }

    #[inline(always)]
    fn is_at(&self, address: Address, owner: Owner, name: &[u8]) -> bool {
        address.flow == owner.flow && address.execution == owner.execution && self.names.get(address.name) == name
    }

    /// The row of a clock, to change it.
    #[inline(always)]
    pub(super) fn clock_of(&mut self, owner: Owner, name: &[u8]) -> Option<&mut Clock> {
        let index = self.clock_at(owner, name, address_hash(owner, name))?;
        self.clocks.get_mut(index as usize)
    }

    /// The row of a completion, to change it.
    #[inline(always)]
    pub(super) fn deferred_of(&mut self, owner: Owner, name: &[u8]) -> Option<&mut Deferred> {
        let index = self.deferred_at(owner, name, address_hash(owner, name))?;
        self.deferreds.get_mut(index as usize)
    }

    /// Adds a clock unless its address is taken; says whether it did. `replace` puts the values in the row that is there.
    #[inline]
    pub(super) fn add_clock_of(&mut self, owner: Owner, name: &[u8], row: NewClock<'_>, replace: bool) -> Result<bool, Error> {
        let hash = address_hash(owner, name);
        if let Some(index) = self.clock_at(owner, name, hash) {
            if replace {
                let deferred_name = self.names.keep(row.deferred_name)?;
                if let Some(clock) = self.clocks.get_mut(index as usize) {
                    clock.deferred_name = deferred_name;
                    clock.due_at_ms = row.due_at_ms;
                    clock.completed_at = row.completed_at;
                }
            }
            return Ok(false);
        }
        let index = next_index(self.clocks.len())?;
        let address = Address { flow: owner.flow, execution: owner.execution, name: self.names.keep(name)? };
        let deferred_name = self.names.keep(row.deferred_name)?;
        self.clocks.push(Clock {
            address,
            deferred_name,
            due_at_ms: row.due_at_ms,
            completed_at: row.completed_at,
        });
        self.clock_index.insert(hash, index);
        Ok(true)
    }

    /// Adds a completion unless its address is taken; says whether it did. `replace` puts the values in the row that is there.
    #[inline]
    pub(super) fn add_deferred_of(&mut self, owner: Owner, name: &[u8], row: NewDeferred, replace: bool) -> Result<bool, Error> {
        let made = |address| Deferred {
            address,
            completed_at: row.completed_at,
            consumed_at: row.consumed_at,
            exit: row.exit,
            exit_gap: row.exit_gap,
            metadata: row.metadata,
        };
        let hash = address_hash(owner, name);
        if let Some(index) = self.deferred_at(owner, name, hash) {
            if let (true, Some(deferred)) = (replace, self.deferreds.get_mut(index as usize)) {
                *deferred = made(deferred.address);
            }
            return Ok(false);
        }
        let index = next_index(self.deferreds.len())?;
        let address = Address { flow: owner.flow, execution: owner.execution, name: self.names.keep(name)? };
        self.deferreds.push(made(address));
        self.deferred_index.insert(hash, index);
        Ok(true)
    }

    /// The digest of the state over its rows as the tables hold them: clocks whole, completions by address and stamps.
    pub fn digest(&self) -> StateDigest {
        self.digests().state
    }

    /// Both digests of the state in one pass.
    pub fn digests(&self) -> Digests {
        let mut digests = Digests::default();
        let mut bytes = Vec::new();
        for clock in &self.clocks {
            self.clock_bytes(clock, &mut bytes);
            digests.state.add_row(&bytes);
        }
        digests.recorded = digests.state;
        for deferred in &self.deferreds {
            self.deferred_bytes(deferred, &mut bytes);
            digests.state.add_row(&bytes);
            for recorded in [deferred.exit, deferred.metadata] {
                match recorded {
                    Recorded::Absent => bytes.push(0),
                    Recorded::Null => bytes.push(1),
                    Recorded::Digest(digest) => {
                        bytes.push(2);
                        bytes.extend_from_slice(&digest);
                    }
                }
            }
            digests.recorded.add_row(&bytes);
        }
        digests
    }

    /// The canonical bytes of every row, as [`Fold::digest`] takes them, sorted by address: clocks, then completions.
    pub fn canonical_rows(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let mut clocks: Vec<&Clock> = self.clocks.iter().collect();
        sort_by(&mut clocks, |one, other| self.key(one.address).cmp(&self.key(other.address)));
        let mut deferreds: Vec<&Deferred> = self.deferreds.iter().collect();
        sort_by(&mut deferreds, |one, other| self.key(one.address).cmp(&self.key(other.address)));
        let clocks = clocks.into_iter().map(|clock| {
            let mut bytes = Vec::new();
            self.clock_bytes(clock, &mut bytes);
            bytes
        });
        let deferreds = deferreds.into_iter().map(|deferred| {
            let mut bytes = Vec::new();
            self.deferred_bytes(deferred, &mut bytes);
            bytes
        });
        clocks.chain(deferreds)
    }

    fn clock_bytes(&self, clock: &Clock, out: &mut Vec<u8>) {
        canonical_clock(
            self.key(clock.address),
            self.names.get(clock.deferred_name),
            clock.due_at_ms,
            clock.completed_at,
            out,
        );
    }

    fn deferred_bytes(&self, deferred: &Deferred, out: &mut Vec<u8>) {
        canonical_deferred(self.key(deferred.address), deferred.completed_at, deferred.consumed_at, out);
    }

    /// Forgets the clocks alone: a repeated list in a kept fold replaces the one before it.
    pub(super) fn clear_clocks(&mut self) {
        self.clocks.clear();
        self.clock_index.clear();
    }

    /// Forgets the completions alone.
    pub(super) fn clear_deferreds(&mut self) {
        self.deferreds.clear();
        self.deferred_index.clear();
    }

    /// Empties the state for another run, keeping memory that a run of usual size needs.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.executions.clear();
        self.names.clear();
        clear_rows(&mut self.clocks);
        clear_rows(&mut self.deferreds);
        self.clock_index.clear();
        self.deferred_index.clear();
        self.opening.clear();
    }
}

/// The values of a clock to add.
pub(super) struct NewClock<'a> {
    pub(super) deferred_name: &'a [u8],
    pub(super) due_at_ms: u64,
    pub(super) completed_at: Stamp,
}

/// The values of a completion to add.
pub(super) struct NewDeferred {
    pub(super) completed_at: Stamp,
    pub(super) consumed_at: Stamp,
    pub(super) exit: Recorded,
    pub(super) exit_gap: DigestGap,
    pub(super) metadata: Recorded,
}

fn next_index(length: usize) -> Result<u32, Error> {
    u32::try_from(length).map_err(|_| too_large("at most 2^32 rows"))
}

fn canonical_texts(tag: u8, texts: &[&[u8]], out: &mut Vec<u8>) {
    out.clear();
    out.push(tag);
    for text in texts {
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text);
    }
}

/// The canonical bytes of a clock row: `c`, each text behind its length (8 bytes, least significant first), the due time and
/// the completion (8 bytes each, all ones for `null`).
pub fn canonical_clock(key: Key<'_>, deferred_name: &[u8], due_at_ms: u64, completed_at: Stamp, out: &mut Vec<u8>) {
    canonical_texts(b'c', &[key.flow, key.execution, key.name, deferred_name], out);
    out.extend_from_slice(&due_at_ms.to_le_bytes());
    out.extend_from_slice(&completed_at.to_bytes());
}

/// The canonical bytes of a completion row: `d`, its address, its completion and its consumption, as in [`canonical_clock`].
pub fn canonical_deferred(key: Key<'_>, completed_at: Stamp, consumed_at: Stamp, out: &mut Vec<u8>) {
    canonical_texts(b'd', &[key.flow, key.execution, key.name], out);
    out.extend_from_slice(&completed_at.to_bytes());
    out.extend_from_slice(&consumed_at.to_bytes());
}
