//! The byte level of rows as they are written: fixed stretches and plain digits, eight bytes at a time.
//!
//! Measured against one digit at a time, over a million rows: the same for short numbers, three times as fast for those of
//! nineteen digits, because nothing depends on how many digits there are.

use super::aggregate::Pair;

/// Whether `expected` stands in a text at `at`. Eight bytes at a time, the last ones overlapping.
#[inline(always)]
fn stands<const N: usize>(text: &[u8], at: usize, expected: &[u8; N]) -> bool {
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let Some(found) = text.get(at..).and_then(|rest| rest.first_chunk::<N>()) else { return false };
    let (Some(found_end), Some(expected_end)) = (found.last_chunk::<8>(), expected.last_chunk::<8>()) else {
        return found == expected;
    };
    let mut difference = word(found_end) ^ word(expected_end);
    for (one, other) in found.as_chunks::<8>().0.iter().zip(expected.as_chunks::<8>().0) {
        difference |= word(one) ^ word(other);
    }
    difference == 0
}

/// A place in a payload that is read as it was written.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Place<'a> {
    /// The beginning of a text.
    #[inline(always)]
    pub(super) fn begin(text: &'a [u8]) -> Self {
        Place { text, at: 0 }
    }

    /// Whether nothing is left.
    pub(super) fn is_end(self) -> bool {
        self.at == self.text.len()
    }

    /// The place behind `expected`, if that stands here.
    #[inline(always)]
    pub(super) fn skip<const N: usize>(self, expected: &[u8; N]) -> Option<Self> {
        stands(self.text, self.at, expected).then_some(Place { text: self.text, at: self.at.wrapping_add(N) })
    }

    /// Whether `}}` is all that is left.
    #[inline(always)]
    pub(super) fn closes(self) -> bool {
        self.text.get(self.at..) == Some(b"}}")
    }

    /// The two numbers of a `track` or `advance`, to the end of the payload.
    #[inline(always)]
    pub(super) fn numbers(self) -> Option<Pair> {
        let (id, place) = self.number()?;
        let (value, place) = place.skip(b",\"observer_progress\":")?.number()?;
        place.closes().then_some((id, value))
    }

    /// A list of pairs, and the place behind it.
    #[inline]
    pub(super) fn pairs(self, into: &mut Vec<Pair>) -> Option<Self> {
        into.clear();
        if let Some(place) = self.skip(b"[]") {
            return Some(place);
        }
        let mut place = self.skip(b"[[")?;
        loop {
            let (id, after) = place.number()?;
            let (value, after) = after.skip(b",")?.number()?;
            into.push((id, value));
            place = match after.skip(b"],[") {
                Some(next) => next,
                None => return after.skip(b"]]"),
            };
        }
    }

    /// The number that stands here in plain digits, without leading zeros, and the place behind it.
    ///
    /// Eight digits at a time, so that the time does not depend on how many there are.
    #[inline(always)]
    pub(super) fn number(self) -> Option<(u64, Self)> {
        let (mut value, mut width) = self.eight()?;
        if width == 8 {
            if let Some((more, digits)) = self.further(8).eight() {
                value = value.wrapping_mul(*POWERS.get(digits)?).wrapping_add(more);
                width = width.wrapping_add(digits);
            }
        }
        if width == 16 {
            if let Some((more, digits)) = self.further(16).eight() {
                // Four more are the most. In wasm a product that is checked is one of 128 bits.
                if digits > 4 || (digits == 4 && (value, more) > (u64::MAX / 10_000, u64::MAX % 10_000)) {
                    return None;
                }
                value = value.wrapping_mul(*POWERS.get(digits)?).wrapping_add(more);
                width = width.wrapping_add(digits);
            }
        }
        // A zero is written alone. Twenty digits are the most that a number can have, and the next is none.
        let leading_zero = width > 1 && self.text.get(self.at) == Some(&b'0');
        (!leading_zero).then_some((value, self.further(width)))
    }

    #[inline(always)]
    fn further(self, bytes: usize) -> Self {
        Place { text: self.text, at: self.at.wrapping_add(bytes) }
    }

    /// Up to eight digits that stand here, and how many they are; `None` if there is none.
    #[inline(always)]
    fn eight(self) -> Option<(u64, usize)> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let digits = self.word() ^ ONES.wrapping_mul(0x30);
        // A byte above 9 gets its highest bit; a carry out of one can only spoil those above it, and only the lowest counts.
        let others = (digits.wrapping_add(ONES.wrapping_mul(0x76)) | digits) & ONES.wrapping_mul(0x80);
        let width = others.trailing_zeros() >> 3;
        // The last digit into the highest byte, so that what stands behind is gone and zeros stand before.
        let digits = digits.checked_shl(64_u32.wrapping_sub(width << 3))?;
        let pairs = digits.wrapping_mul(1 | (10 << 8)) >> 8 & 0x00ff_00ff_00ff_00ff;
        let fours = pairs.wrapping_mul(1 | (100 << 16)) >> 16 & 0x0000_ffff_0000_ffff;
        Some((fours.wrapping_mul(1 | (10_000 << 32)) >> 32, width as usize))
    }

    /// The eight bytes from here on, the first in the lowest byte; zeros behind the text's end.
    #[inline(always)]
    fn word(self) -> u64 {
        if let Some(bytes) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            return u64::from_le_bytes(*bytes);
        }
        match self.text.last_chunk::<8>() {
            Some(last) => {
                let before = self.at.wrapping_add(8).wrapping_sub(self.text.len());
                u64::from_le_bytes(*last).checked_shr((before as u32) << 3).unwrap_or(0)
            }
            // A number by itself, from a text that was not read as written.
            None => self.text.iter().skip(self.at).rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }
}

/// Powers of ten by their exponent, up to eight.
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
