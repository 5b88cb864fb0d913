//! The byte level: where a text, a number or a run of white space ends.

/// The first position at or after `from` that ends a plain stretch of a JSON text: a quote, a backslash or a control
/// character; the length of `text` if there is none.
///
/// Eight bytes at a time: names and digests are short, and this is where most of a fold's time goes.
#[inline(always)]
pub(super) fn plain_end(text: &[u8], from: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES.wrapping_mul(b'"' as u64));
        let backslash = word ^ (ONES.wrapping_mul(b'\\' as u64));
        // A borrow can only make a byte above the first hit look like one, and only the first is used.
        let hits = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word);
        let hits = hits & HIGHS;
        if hits != 0 {
            return at.wrapping_add((hits.trailing_zeros() >> 3) as usize);
        }
        at = at.wrapping_add(8);
    }
    while let Some(&byte) = text.get(at) {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            break;
        }
        at = at.wrapping_add(1);
    }
    at
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
