//! The byte level: where a text, a number or a run of white space ends.
//!
//! Stretches of texts are looked at eight bytes at a time: names are short, and this is where most of a fold's time goes. Sixteen at a
//! time, by vectors or by two words, took half as long again. What has gone on for some words is likely to go on: it is passed over in
//! blocks.

use super::block::{has_special, BLOCK};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The first position at or after `from` that ends a plain stretch of a JSON text: a quote, a backslash or a control
/// character; the length of `text` if there is none.
#[inline(always)]
pub(super) fn plain_end(text: &[u8], from: usize) -> usize {
    first(text, from, specials, special, true)
}

/// The first position at or after `from` that `JSON.stringify` may not leave as it stands: what ends a plain stretch, and
/// 0xed, which begins surrogates (and some ordinary characters besides).
#[inline(always)]
pub(super) fn verbatim_end(text: &[u8], from: usize) -> usize {
    let surrogate = |word: u64| zeros(word ^ ONES.wrapping_mul(0xed));
    first(text, from, |word| specials(word) | surrogate(word), |byte| special(byte) || byte == 0xed, false)
}

/// Whether two stretches are the same, and nothing in them ends a plain one: then the name they spell is the same.
#[inline(always)]
pub(super) fn same_and_plain(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let same = |(one, other): (&[u8; 8], &[u8; 8])| one == other && specials(u64::from_le_bytes(*one)) == 0;
    if let (Some(one_end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        // The last eight bytes overlap those before, which costs less than a loop over the rest.
        let mut before = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
        return same((one_end, other_end)) && before.all(same);
    }
    one.iter().zip(other).all(|(one, other)| one == other && !special(*one))
}

/// Whether `text` begins with `beginning`.
#[inline(always)]
pub fn begins_with(text: &[u8], beginning: &[u8]) -> bool {
    let Some(text) = text.get(..beginning.len()) else { return false };
    if let (Some(one_end), Some(other_end)) = (text.last_chunk::<8>(), beginning.last_chunk::<8>()) {
        // The end tells most names apart.
        return one_end == other_end && text.as_chunks::<8>().0 == beginning.as_chunks::<8>().0;
    }
    text == beginning
}

/// Both predicates say the same; the one over eight bytes gives a word whose lowest set bit lies in the first hit.
#[inline(always)]
fn first(text: &[u8], from: usize, in_eight: impl Fn(u64) -> u64, in_one: impl Fn(u8) -> bool, by_blocks: bool) -> usize {
    let mut at = from;
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let hits = in_eight(u64::from_le_bytes(*chunk));
        if hits != 0 {
            return at.wrapping_add((hits.trailing_zeros() >> 3) as usize);
        }
        at = at.wrapping_add(8);
        if by_blocks && at.wrapping_sub(from) == WORDS_BEFORE_BLOCKS * 8 {
            at = blocks_end(text, at);
        }
    }
    while text.get(at).is_some_and(|&byte| !in_one(byte)) {
        at = at.wrapping_add(1);
    }
    at
}

/// Words after which a stretch is long.
const WORDS_BEFORE_BLOCKS: usize = 4;

/// The beginning of the first block at or after `from` that has a special byte, or is not whole.
#[inline(never)]
fn blocks_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while text.get(at..).and_then(|rest| rest.first_chunk()).is_some_and(|block| !has_special(block)) {
        at = at.wrapping_add(BLOCK);
    }
    at
}

#[inline(always)]
fn special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[inline(always)]
pub(super) fn specials(word: u64) -> u64 {
    // Exchanging 0x20 and 0x22 puts the quote next to the control characters, so that one comparison finds them all. A borrow
    // can only make a byte above a hit look like one, and only the first is used; a byte of 0x80 and above never does.
    let quote_and_controls = (word ^ ONES.wrapping_mul(0x02)).wrapping_sub(ONES.wrapping_mul(0x21)) & !word & HIGHS;
    quote_and_controls | zeros(word ^ ONES.wrapping_mul(b'\\' as u64))
}

/// Not 0 if a byte is 0; the lowest set bit lies in the first one.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// The first position at or after `from` that is no JSON white space.
#[inline(always)]
pub(super) fn white_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at = at.wrapping_add(1);
    }
    at
}

#[inline(always)]
fn digits_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(b'0'..=b'9') = text.get(at) {
        at = at.wrapping_add(1);
    }
    at
}

/// The end of the number that begins at `from` (a minus sign or a digit), or the offset at which it is none.
#[inline(always)]
pub(super) fn number_end(text: &[u8], from: usize) -> Result<usize, usize> {
    let mut at = from;
    if let Some(b'-') = text.get(at) {
        at = at.wrapping_add(1);
    }
    at = match text.get(at) {
        Some(b'0') => at.wrapping_add(1),
        Some(b'1'..=b'9') => digits_end(text, at.wrapping_add(1)),
        _ => return Err(at),
    };
    if let Some(b'.') = text.get(at) {
        let fraction = at.wrapping_add(1);
        at = digits_end(text, fraction);
        if at == fraction {
            return Err(at);
        }
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at = at.wrapping_add(1);
        if let Some(b'+' | b'-') = text.get(at) {
            at = at.wrapping_add(1);
        }
        let exponent = at;
        at = digits_end(text, exponent);
        if at == exponent {
            return Err(at);
        }
    }
    Ok(at)
}

/// Whether the array or object that each open bracket began is an object, innermost last: one bit a level.
#[derive(Default)]
pub(super) struct Nesting {
    depth: usize,
    innermost: u64,
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    pub(super) fn open(&mut self, object: bool) {
        if self.depth & 63 == 0 && self.depth > 0 {
            self.outer.push(self.innermost);
        }
        self.depth = self.depth.wrapping_add(1);
        self.innermost = (self.innermost << 1) | u64::from(object);
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.innermost >>= 1;
        if self.depth & 63 == 0 && self.depth > 0 {
            self.innermost = self.outer.pop().unwrap_or(0);
        }
    }

    /// Whether the innermost open bracket is an object's, or `None` when none is open.
    #[inline]
    pub(super) fn innermost_is_object(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.innermost & 1 == 1)
    }
}
