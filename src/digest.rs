//! Digests: SHA-256 of stored text, and the digest of a state.

use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_128;

/// The 32 bytes of a SHA-256.
pub type Sha256Bytes = [u8; 32];

const HEX: &[u8; 16] = b"0123456789abcdef";

/// SHA-256 of a text's UTF-8 bytes: what a journal records of a stored completion.
pub fn content_digest(utf8: &[u8]) -> Sha256Bytes {
    Sha256::digest(utf8).into()
}

/// Lower-case hexadecimal digits of `bytes`.
pub fn to_hex(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        out.extend(HEX.get(usize::from(byte >> 4)));
        out.extend(HEX.get(usize::from(byte & 0xf)));
    }
    out
}

/// The digest that exactly 64 characters of `0-9a-f` spell; anything else is none.
#[inline]
pub fn from_hex(text: &[u8]) -> Option<Sha256Bytes> {
    let digits: &[u8; 64] = text.try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        let [high, low] = *pair;
        *byte = (hex_digit(high)? << 4) | hex_digit(low)?;
    }
    Some(bytes)
}

#[inline(always)]
fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
        b'a'..=b'f' => Some(digit.wrapping_sub(b'a' - 10)),
        _ => None,
    }
}

/// The digest of a state: the sum, modulo 2^128, of the XXH3-128 of each row's canonical bytes.
///
/// A sum, so that parts of a store merge in any grouping and a changed row costs one subtraction and one addition; not XOR,
/// because two equal rows must not cancel. It tells states apart that differ by accident; it is no protection against
/// somebody who wants two states to look alike. For that there is SHA-256 over the sorted rows ([`sorted_rows_sha256`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateDigest(u128);

impl StateDigest {
    /// The algorithm's name, which travels with every value.
    pub const ALGORITHM: &'static str = "sum-xxh3-128";

    /// Adds a row by its canonical bytes.
    #[inline]
    pub fn add_row(&mut self, canonical: &[u8]) {
        self.0 = self.0.wrapping_add(xxh3_128(canonical));
    }

    /// Takes a row away again.
    #[inline]
    pub fn remove_row(&mut self, canonical: &[u8]) {
        self.0 = self.0.wrapping_sub(xxh3_128(canonical));
    }

    /// Adds all rows of another part.
    pub fn merge(&mut self, other: StateDigest) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// 32 lower-case hexadecimal digits, most significant first.
    pub fn to_hex(self) -> Vec<u8> {
        to_hex(&self.0.to_be_bytes())
    }

    /// Reads what [`StateDigest::to_hex`] wrote.
    pub fn from_hex(text: &[u8]) -> Option<StateDigest> {
        if text.len() != 32 {
            return None;
        }
        let mut value: u128 = 0;
        for &digit in text {
            value = (value << 4) | u128::from(hex_digit(digit)?);
        }
        Some(StateDigest(value))
    }
}

/// SHA-256 over the canonical bytes of rows that come sorted by address, clocks before completions, each behind its length: for
/// those who need a cryptographic digest of a state. It can be neither merged nor updated.
pub fn sorted_rows_sha256(rows: impl IntoIterator<Item = Vec<u8>>) -> Sha256Bytes {
    let mut hash = Sha256::new();
    for row in rows {
        hash.update((row.len() as u64).to_le_bytes());
        hash.update(&row);
    }
    hash.finalize().into()
}

/// A 128-bit fingerprint of some texts in order, each with its length, so that no two sequences of texts read alike.
pub fn fingerprint(buffer: &mut Vec<u8>, texts: &[&[u8]]) -> u128 {
    buffer.clear();
    for text in texts {
        buffer.extend_from_slice(&(text.len() as u64).to_le_bytes());
        buffer.extend_from_slice(text);
    }
    xxh3_128(buffer)
}
