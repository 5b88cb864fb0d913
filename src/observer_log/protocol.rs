//! What a machine wants of a store and what a store answers.
//!
//! A machine is asked what it wants ([`Want`]), the host does just that, and gives the machine the [`Answer`]; when nothing is
//! wanted any more the machine has a result. Both are small records beside payload bytes, so that they cross a boundary well.

use super::aggregate::Pair;
use super::row::RowRef;
use crate::error::{Code, Error};
use crate::json::Writer;

/// One call of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want<'a> {
    /// The hint: [`Answer::Value`].
    ReadValue,
    /// The row at a sequence: [`Answer::Row`].
    ReadAt {
        /// The sequence.
        sequence: u64,
    },
    /// Rows at and above a sequence, ascending: [`Answer::Rows`].
    ReadFrom {
        /// The lowest sequence.
        offset: u64,
        /// How many rows at most.
        limit: u64,
    },
    /// The head, if anything was ever appended: [`Answer::Head`].
    ReadHead,
    /// Payloads to append, all or none, at exactly this head: [`Answer::Appended`] or [`Answer::SequenceConflict`].
    AppendAll {
        /// The head at which the first of them is to stand.
        expected_head: u64,
        /// The payloads.
        payloads: &'a Batch,
    },
    /// Everything appended made durable: [`Answer::Flushed`].
    Flush,
    /// The hint changed if it is the old number, where none is 0: [`Answer::Swapped`] or [`Answer::ValueConflict`].
    Swap {
        /// The number that must be there.
        old: u64,
        /// The number to store.
        new: u64,
    },
}

impl Want<'_> {
    /// The call's name, as the specification has it.
    pub fn name(&self) -> &'static str {
        match self {
            Want::ReadValue => "read_value",
            Want::ReadAt { .. } => "read_at",
            Want::ReadFrom { .. } => "read_from",
            Want::ReadHead => "read_head",
            Want::AppendAll { .. } => "append_all",
            Want::Flush => "flush",
            Want::Swap { .. } => "cas",
        }
    }

    /// The call as three numbers: 1 to 7 in the order of this type, then its two arguments, 0 where it has none. The second
    /// argument of an append is the number of payloads.
    pub fn record(&self) -> [u64; 3] {
        match *self {
            Want::ReadValue => [1, 0, 0],
            Want::ReadAt { sequence } => [2, sequence, 0],
            Want::ReadFrom { offset, limit } => [3, offset, limit],
            Want::ReadHead => [4, 0, 0],
            Want::AppendAll { expected_head, payloads } => [5, expected_head, payloads.len()],
            Want::Flush => [6, 0, 0],
            Want::Swap { old, new } => [7, old, new],
        }
    }
}

/// What a store answers.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The stored number, if there is one.
    Value(Option<u64>),
    /// The row, if there is one. One of another sequence counts as none.
    Row(Option<StoredRow<'a>>),
    /// The rows. Fewer than asked for are the last.
    Rows(Rows<'a>),
    /// The head, if anything was ever appended.
    Head(Option<u64>),
    /// The payloads were appended, and this is the head now.
    Appended(u64),
    /// Everything is durable.
    Flushed,
    /// The number was stored.
    Swapped,
    /// Nothing was appended: the head is this.
    SequenceConflict {
        /// The head.
        actual: u64,
    },
    /// Nothing was stored: the number there is this, 0 for none.
    ValueConflict {
        /// The number.
        actual: u64,
    },
    /// A write may or may not have been made.
    OutcomeUnknown,
    /// The call failed and changed nothing. The host keeps what it caught.
    Failed,
}

impl Answer<'_> {
    /// The answer's name.
    pub fn name(&self) -> &'static str {
        match self {
            Answer::Value(_) => "a stored number",
            Answer::Row(_) => "a row",
            Answer::Rows(_) => "rows",
            Answer::Head(_) => "a stored head",
            Answer::Appended(_) => "a new head",
            Answer::Flushed => "flushed",
            Answer::Swapped => "swapped",
            Answer::SequenceConflict { .. } => "a sequence conflict",
            Answer::ValueConflict { .. } => "a value conflict",
            Answer::OutcomeUnknown => "outcome unknown",
            Answer::Failed => "failed",
        }
    }
}

/// A row as a store holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRow<'a> {
    /// Its place in the stream.
    pub sequence: u64,
    /// Its text. Not judged yet, not even as UTF-8.
    pub payload: &'a [u8],
}

/// Rows in the order in which a store gave them: payloads joined, and where each ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
    sequences: &'a [u64],
}

impl<'a> Rows<'a> {
    /// Rows of their parts. Framing is by length alone: nothing inside a payload can shift its neighbours. Parts that do not fit
    /// together are [`Code::PageMalformed`].
    pub fn new(bytes: &'a [u8], ends: &'a [u32], sequences: &'a [u64]) -> Result<Self, Error> {
        let malformed = |expected: String, found: String| Err(Error::new(Code::PageMalformed, expected, found));
        if ends.len() != sequences.len() {
            return malformed(format!("{} ends", sequences.len()), ends.len().to_string());
        }
        if !ends.is_sorted() {
            return malformed("ends that do not descend".into(), "a descent".into());
        }
        let last = ends.last().map_or(0, |end| *end as usize);
        if last != bytes.len() {
            return malformed(format!("a last end of {}", bytes.len()), last.to_string());
        }
        Ok(Rows { bytes, ends, sequences })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rows in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = StoredRow<'a>> {
        let bytes = self.bytes;
        let mut start = 0;
        self.ends.iter().zip(self.sequences).map(move |(&end, &sequence)| {
            let payload = bytes.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            StoredRow { sequence, payload }
        })
    }
}

/// Payloads to append together: one row, or a snapshot and the row behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// The rows as stored text, in order.
    pub fn of<'a>(rows: impl IntoIterator<Item = RowRef<'a>>) -> Batch {
        let mut batch = Batch::default();
        for row in rows {
            row.encode_to(&mut batch.bytes);
            batch.ends.push(batch.bytes.len());
        }
        batch
    }

    /// How many payloads there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// All payloads joined.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each payload ends.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The payloads in order.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let payload = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            payload
        })
    }

    /// Whether these rows are the batch, byte for byte, from `head` on.
    pub(super) fn stands_at(&self, head: u64, rows: &Rows<'_>) -> bool {
        let own = (0..).map(|place| head.checked_add(place)).zip(self.payloads());
        rows.len() as u64 == self.len()
            && rows.iter().zip(own).all(|(row, (sequence, payload))| Some(row.sequence) == sequence && row.payload == payload)
    }
}

/// An arm that a recovered advance fired, and the progress that fired it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The conversation.
    pub conversation_id: u64,
    /// The epoch at which the arm was installed.
    pub refused_epoch: u64,
    /// The progress that fired it.
    pub observer_progress: u64,
}

impl Publication {
    /// Writes the publication as a JSON object.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"conversation_id").decimal_text(self.conversation_id);
        out.name(b"refused_epoch").decimal_text(self.refused_epoch);
        out.name(b"observer_progress").decimal_text(self.observer_progress).close_object();
    }
}

/// A list of pairs as two numbers each, for boundaries that carry flat lists.
pub fn flat(pairs: &[Pair]) -> Vec<u64> {
    pairs.iter().flat_map(|(id, value)| [*id, *value]).collect()
}
