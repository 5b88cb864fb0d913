//! A JSON text: its spelling in the source, and the WTF-8 it stands for.

use super::scan::same_and_plain;

/// The body of a JSON text between its quotes, already judged; escapes are resolved only when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawText<'a> {
    pub(super) body: &'a [u8],
    pub(super) escaped: bool,
}

impl<'a> RawText<'a> {
    /// True for `""`: no escape spells nothing.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// The text's bytes when no escape spells any of them, as is nearly always so.
    #[inline(always)]
    pub fn plain(&self) -> Option<&'a [u8]> {
        (!self.escaped).then_some(self.body)
    }

    /// The text as it is spelled in the source, without its quotes.
    pub fn spelled(&self) -> &'a [u8] {
        self.body
    }

    /// Whether the text is `wtf8`.
    #[inline(always)]
    pub fn equals(&self, wtf8: &[u8]) -> bool {
        if !self.escaped {
            return same_and_plain(self.body, wtf8);
        }
        // An escape is never shorter than what it spells.
        self.body.len() > wtf8.len() && self.to_wtf8() == wtf8
    }

    /// The text in WTF-8: UTF-8, but for unpaired surrogates, which are three bytes each.
    pub fn to_wtf8(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len());
        self.append_to(&mut out);
        out
    }

    /// Appends the text in WTF-8 to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if self.escaped {
            append_unescaped(self.body, out);
        } else {
            out.extend_from_slice(self.body);
        }
    }
}

#[cold]
fn append_unescaped(body: &[u8], out: &mut Vec<u8>) {
    let mut rest = body;
    while let Some(plain) = rest.iter().position(|&byte| byte == b'\\') {
        let (before, escape) = rest.split_at(plain);
        out.extend_from_slice(before);
        rest = match escape {
            [_, b'u', after @ ..] => append_unicode_escape(after, out),
            [_, letter, after @ ..] => {
                out.push(match letter {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
                after
            }
            _ => &[],
        };
    }
    out.extend_from_slice(rest);
}

/// Appends the code point whose first four hex digits begin `after`, and returns what follows it. A high surrogate takes
/// the escape of a low one behind it along; alone, each is encoded for itself.
fn append_unicode_escape<'a>(after: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((unit, rest)) = hex4(after) else { return &[] };
    if let (0xd800..=0xdbff, [b'\\', b'u', second @ ..]) = (unit, rest) {
        if let Some((low @ 0xdc00..=0xdfff, rest)) = hex4(second) {
            append_pair(unit, low, out);
            return rest;
        }
    }
    append_unit(unit, out);
    rest
}

fn append_pair(high: u32, low: u32, out: &mut Vec<u8>) {
    let code = 0x1_0000_u32.wrapping_add(((high & 0x3ff) << 10) | (low & 0x3ff));
    out.extend_from_slice(&[
        0xf0 | (code >> 18) as u8,
        0x80 | ((code >> 12) & 0x3f) as u8,
        0x80 | ((code >> 6) & 0x3f) as u8,
        0x80 | (code & 0x3f) as u8,
    ]);
}

fn append_unit(unit: u32, out: &mut Vec<u8>) {
    match unit {
        0..=0x7f => out.push(unit as u8),
        0x80..=0x7ff => out.extend_from_slice(&[0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
        _ => out.extend_from_slice(&[
            0xe0 | (unit >> 12) as u8,
            0x80 | ((unit >> 6) & 0x3f) as u8,
            0x80 | (unit & 0x3f) as u8,
        ]),
    }
}

/// The value of four hex digits, and what follows them.
pub(super) fn hex4(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = bytes.split_first_chunk::<4>()?;
    let mut value = 0;
    for &digit in digits {
        value = (value << 4) | char::from(digit).to_digit(16)?;
    }
    Some((value, rest))
}
