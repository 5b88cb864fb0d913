//! A page: many entries of one run in four parallel parts, as a database can assemble them.

use super::{Seq, MAX_SEQ};
use crate::error::{Code, Error};
use crate::json::first_invalid_utf8;

/// The type code of an entry that no fold asks for.
pub const OTHER_TYPE: u8 = 255;

/// One entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its place in the run.
    pub seq: Seq,
    /// The fold's number for its event type, or [`OTHER_TYPE`].
    pub type_code: u8,
    /// Its payload's JSON text. Not judged yet, not even as UTF-8 unless the page was.
    pub payload: &'a [u8],
}

/// Entries of one run, in ascending seq.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
    seqs: &'a [i64],
    types: &'a [u8],
    utf8: bool,
}

impl<'a> Page<'a> {
    /// A page of its parts: all payloads joined, where each ends (bytes), each seq, and each type's number.
    ///
    /// Framing is by length alone: nothing inside a payload can shift its neighbours. Parts that do not fit together are
    /// [`Code::PageMalformed`]; a negative seq is [`Code::SeqInvalid`].
    pub fn new(bytes: &'a [u8], ends: &'a [u32], seqs: &'a [i64], types: &'a [u8]) -> Result<Self, Error> {
        let mut page = Self::of_texts(bytes, ends, seqs, types)?;
        // A single pass over all of it costs less than one over each, but joins what was cut inside a character.
        let starts_character = |end: &u32| bytes.get(*end as usize).is_none_or(|byte| byte & 0xc0 != 0x80);
        page.utf8 = first_invalid_utf8(bytes).is_none() && ends.iter().all(starts_character);
        Ok(page)
    }

    /// A page whose payloads the caller knows to be UTF-8, each by itself, because it encoded them. Framing is checked as in [`Page::new`].
    pub fn of_texts(bytes: &'a [u8], ends: &'a [u32], seqs: &'a [i64], types: &'a [u8]) -> Result<Self, Error> {
        let malformed = |expected: String, found: String| Err(Error::new(Code::PageMalformed, expected, found));
        if ends.len() != seqs.len() || ends.len() != types.len() {
            return malformed(
                "as many ends as seqs and types".into(),
                format!("{} ends, {} seqs, {} types", ends.len(), seqs.len(), types.len()),
            );
        }
        let mut last = 0;
        for &end in ends {
            if end < last {
                return malformed("ends that do not descend".into(), format!("{end} after {last}"));
            }
            last = end;
        }
        if last as usize != bytes.len() {
            return malformed(format!("a last end of {}", bytes.len()), last.to_string());
        }
        if let Some(negative) = seqs.iter().find(|seq| **seq < 0) {
            return Err(Error::new(Code::SeqInvalid, "a seq from 0 to 2^63-1", negative.to_string()));
        }
        Ok(Page { bytes, ends, seqs, types, utf8: true })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether every payload is known to be UTF-8; if not, each must be looked at by itself.
    pub fn is_utf8(&self) -> bool {
        self.utf8
    }

    /// The entries in order.
    #[inline]
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let bytes = self.bytes;
        let mut start = 0;
        self.ends.iter().zip(self.seqs).zip(self.types).map(move |((&end, &seq), &type_code)| {
            let payload = bytes.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            Entry { seq: (seq as u64) & MAX_SEQ, type_code, payload }
        })
    }
}
