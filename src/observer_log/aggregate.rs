//! The state: the progress of every tracked conversation, and which of them are armed.
//!
//! An arm's epoch always equals its conversation's progress, so an arm is one flag beside the progress, and the invariant cannot
//! be broken. There is no limit on the number of conversations. Ids are spread by a fixed function: whoever may choose them
//! freely can make a table slow on purpose, but never wrong.

use core::hash::{BuildHasherDefault, Hasher};

use hashbrown::hash_map::Entry;
use hashbrown::HashMap;

use super::refusal::Refusal;
use super::row::{Row, RowRef};
use crate::digest::StateDigest;
use crate::json::Writer;

/// A conversation and its progress, or the epoch of its arm.
pub type Pair = (u64, u64);

/// An arm that an advance removed: somebody is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fired {
    /// The conversation.
    pub conversation_id: u64,
    /// The epoch at which the arm was installed.
    pub epoch: u64,
}

impl Fired {
    /// Writes `conversation_id` and `refused_epoch` as a JSON object.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"conversation_id").decimal_text(self.conversation_id);
        out.name(b"refused_epoch").decimal_text(self.epoch).close_object();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    progress: u64,
    armed: bool,
}

impl Slot {
    #[inline(always)]
    fn may_advance(self, conversation_id: u64, presented: u64) -> Result<(), Refusal> {
        if presented <= self.progress {
            return Err(Refusal::NotAdvancing { conversation_id, current: self.progress, presented });
        }
        Ok(())
    }

    #[inline(always)]
    fn may_arm(self, conversation_id: u64, armed_epoch: u64) -> Result<(), Refusal> {
        if armed_epoch != self.progress {
            return Err(Refusal::ArmEpochMismatch { conversation_id, armed_epoch, current: self.progress });
        }
        Ok(())
    }

    #[inline(always)]
    fn arm(self, conversation_id: u64) -> Option<Fired> {
        self.armed.then_some(Fired { conversation_id, epoch: self.progress })
    }
}

/// Spreads an id over all bits: the table takes a bucket from the low ones and a tag from the high ones.
#[derive(Debug, Default, Clone, Copy)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline(always)]
    fn write_u64(&mut self, id: u64) {
        let spread = (id ^ (id >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The state.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Aggregate {
    slots: HashMap<u64, Slot, BuildHasherDefault<IdHasher>>,
    armed: usize,
}

impl Aggregate {
    /// The state before any row.
    pub fn new() -> Self {
        Self::default()
    }

    /// A state from its lists, each in any order: all progress, then all arms. The first fault decides.
    pub fn from_lists(progress: &[Pair], armed: &[Pair]) -> Result<Self, Refusal> {
        let mut made = Aggregate::new();
        made.slots.reserve(progress.len());
        for &(conversation_id, progress) in progress {
            match made.slots.entry(conversation_id) {
                Entry::Occupied(_) => return Err(Refusal::DuplicateProgress { conversation_id }),
                Entry::Vacant(free) => free.insert(Slot { progress, armed: false }),
            };
        }
        for &(conversation_id, epoch) in armed {
            let slot = made.slots.get_mut(&conversation_id).ok_or(Refusal::ArmWithoutProgress { conversation_id })?;
            slot.may_arm(conversation_id, epoch)?;
            if slot.armed {
                return Err(Refusal::DuplicateArm { conversation_id });
            }
            slot.armed = true;
        }
        made.armed = armed.len();
        Ok(made)
    }

    /// How many conversations are tracked.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many of them are armed.
    pub fn armed_len(&self) -> usize {
        self.armed
    }

    /// A conversation's progress, if it is tracked.
    #[inline]
    pub fn progress(&self, conversation_id: u64) -> Option<u64> {
        self.slots.get(&conversation_id).map(|slot| slot.progress)
    }

    /// The epoch of a conversation's arm, if it is armed.
    #[inline]
    pub fn armed(&self, conversation_id: u64) -> Option<u64> {
        self.slots.get(&conversation_id)?.arm(conversation_id).map(|arm| arm.epoch)
    }

    /// Every conversation and its progress, in ascending order of conversations.
    pub fn progress_list(&self) -> Vec<Pair> {
        sorted(self.slots.iter().map(|(id, slot)| (*id, slot.progress)).collect())
    }

    /// Every armed conversation and its epoch, in ascending order of conversations.
    pub fn armed_list(&self) -> Vec<Pair> {
        sorted(self.slots.iter().filter(|(_, slot)| slot.armed).map(|(id, slot)| (*id, slot.progress)).collect())
    }

    /// The snapshot row that restates the state.
    pub fn snapshot(&self) -> Row {
        Row::Snapshot { progress: self.progress_list(), armed: self.armed_list() }
    }

    /// Applies a row. An `advance` says which arm it fired; a refused row leaves everything as it was.
    pub fn apply(&mut self, row: RowRef<'_>) -> Result<Option<Fired>, Refusal> {
        self.apply_inlined(row)
    }

    /// The same for a loop over many rows, for the reason that [`super::decode::RowReader`] has.
    #[inline(always)]
    pub(super) fn apply_inlined(&mut self, row: RowRef<'_>) -> Result<Option<Fired>, Refusal> {
        match row {
            RowRef::Track { conversation_id, progress } => self.track(conversation_id, progress).map(|()| None),
            RowRef::Advance { conversation_id, progress } => self.advance(conversation_id, progress),
            RowRef::Arms(arms) => self.arm(arms).map(|()| None),
            RowRef::Snapshot { progress, armed } => self.agrees(progress, armed).map(|()| None),
        }
    }

    #[inline(always)]
    fn track(&mut self, conversation_id: u64, progress: u64) -> Result<(), Refusal> {
        match self.slots.entry(conversation_id) {
            Entry::Occupied(_) => Err(Refusal::AlreadyTracked { conversation_id }),
            Entry::Vacant(free) => {
                free.insert(Slot { progress, armed: false });
                Ok(())
            }
        }
    }

    #[inline(always)]
    fn advance(&mut self, conversation_id: u64, progress: u64) -> Result<Option<Fired>, Refusal> {
        let slot = self.slots.get_mut(&conversation_id).ok_or(Refusal::ConversationUnknown { conversation_id })?;
        slot.may_advance(conversation_id, progress)?;
        let fired = slot.arm(conversation_id);
        *slot = Slot { progress, armed: false };
        self.armed = self.armed.wrapping_sub(usize::from(fired.is_some()));
        Ok(fired)
    }

    /// Whether a `track` would be refused, without making it.
    pub(super) fn judge_track(&self, conversation_id: u64) -> Result<(), Refusal> {
        match self.slots.get(&conversation_id) {
            Some(_) => Err(Refusal::AlreadyTracked { conversation_id }),
            None => Ok(()),
        }
    }

    /// Whether an `advance` would be refused, and which arm it would fire, without making it.
    pub(super) fn judge_advance(&self, conversation_id: u64, progress: u64) -> Result<Option<Fired>, Refusal> {
        let slot = self.slots.get(&conversation_id).ok_or(Refusal::ConversationUnknown { conversation_id })?;
        slot.may_advance(conversation_id, progress)?;
        Ok(slot.arm(conversation_id))
    }

    /// Installs arms, all or none. One that stands already is installed again without effect.
    #[inline(always)]
    fn arm(&mut self, arms: &[Pair]) -> Result<(), Refusal> {
        if let [(conversation_id, epoch)] = *arms {
            // Nearly always there is one, and then nothing needs to be undone.
            let slot = self.slots.get_mut(&conversation_id).ok_or(Refusal::ArmWithoutProgress { conversation_id })?;
            slot.may_arm(conversation_id, epoch)?;
            self.armed = self.armed.wrapping_add(usize::from(!slot.armed));
            slot.armed = true;
            return Ok(());
        }
        for &(conversation_id, epoch) in arms {
            let slot = self.slots.get(&conversation_id).ok_or(Refusal::ArmWithoutProgress { conversation_id })?;
            slot.may_arm(conversation_id, epoch)?;
        }
        for (conversation_id, _) in arms {
            if let Some(slot) = self.slots.get_mut(conversation_id) {
                self.armed = self.armed.wrapping_add(usize::from(!slot.armed));
                slot.armed = true;
            }
        }
        Ok(())
    }

    /// Whether a snapshot's lists are exactly those that the aggregate gives for itself. Ascending lists of the right length
    /// whose every pair stands here are just that, so nothing has to be sorted.
    #[inline(never)]
    fn agrees(&self, progress: &[Pair], armed: &[Pair]) -> Result<(), Refusal> {
        let same_progress = progress.len() == self.slots.len()
            && ascending(progress)
            && progress.iter().all(|(id, value)| self.slots.get(id).is_some_and(|slot| slot.progress == *value));
        let same_armed = armed.len() == self.armed
            && ascending(armed)
            && armed.iter().all(|(id, epoch)| self.slots.get(id).is_some_and(|slot| slot.armed && slot.progress == *epoch));
        if same_progress && same_armed {
            return Ok(());
        }
        Err(Refusal::SnapshotDisagrees { same_progress, same_armed })
    }

    /// The digest of the state: the sum over its conversations ([`StateDigest`]), each as 17 bytes: id, progress (both least
    /// significant byte first) and whether it is armed.
    pub fn digest(&self) -> StateDigest {
        let mut digest = StateDigest::default();
        for (id, slot) in &self.slots {
            digest.add_row(&canonical(*id, *slot));
        }
        digest
    }

    /// The bytes that [`Aggregate::digest`] adds up, in ascending order of conversations: what a cryptographic digest is over
    /// ([`crate::digest::sorted_rows_sha256`]).
    pub fn canonical_rows(&self) -> Vec<Vec<u8>> {
        let mut all: Vec<(u64, Slot)> = self.slots.iter().map(|(id, slot)| (*id, *slot)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter().map(|(id, slot)| canonical(id, slot).to_vec()).collect()
    }

    /// Writes `progress` and `armed`, each a list of pairs of decimal texts, as a JSON object.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"progress");
        write_pairs(out, &self.progress_list());
        out.name(b"armed");
        write_pairs(out, &self.armed_list());
        out.close_object();
    }
}

/// Writes a list of pairs of decimal texts.
pub fn write_pairs(out: &mut Writer, pairs: &[Pair]) {
    out.open_array();
    for (id, value) in pairs {
        out.open_array().decimal_text(*id).decimal_text(*value).close_array();
    }
    out.close_array();
}

fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_unstable();
    pairs
}

fn ascending(pairs: &[Pair]) -> bool {
    pairs.is_sorted_by(|(before, _), (after, _)| before < after)
}

fn canonical(id: u64, slot: Slot) -> [u8; 17] {
    let mut bytes = [u8::from(slot.armed); 17];
    for (byte, value) in bytes.iter_mut().zip(id.to_le_bytes().into_iter().chain(slot.progress.to_le_bytes())) {
        *byte = value;
    }
    bytes
}
