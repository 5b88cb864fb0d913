//! Reads JSON text exactly as `JSON.parse` judges it, and takes out only what is asked for.
//!
//! The rules this module keeps:
//!
//! - Text is accepted or refused as ECMA-262's `JSON.parse` accepts or refuses it. No depth limit, no recursion.
//! - Of repeated members the last counts; a member's name may be spelled with escapes; `__proto__` is an ordinary name.
//! - A number is its nearest double, correctly rounded; beyond a double it is an infinity, not an error.
//! - An unpaired surrogate is kept: inside as [WTF-8](https://simonsapin.github.io/wtf-8/), outside as an escape.
//!
//! Input is UTF-8 that has been validated already (see [`first_invalid_utf8`]); bytes of 0x80 and above are not looked at again.

mod block;
mod number;
mod reader;
mod scan;
mod text;
mod utf16;
mod write;

pub use number::{nearest_double, safe_integer, MAX_SAFE_INTEGER};
pub use reader::{members, members_behind, Cursor, Reader};
pub use scan::begins_with;
pub use text::RawText;
pub use utf16::append_utf8;
pub use write::{write_double, write_integer, write_text, Writer};

use core::fmt;

/// Why a text is not JSON: where reading stopped, what would have let it go on and what stood there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset into the text, from 0; equal to its length when the text ended too early.
    pub offset: usize,
    /// What would have let reading go on, in a few words.
    pub expected: &'static str,
    /// The byte that stood there, or `None` at the end of the text.
    pub found: Option<u8>,
}

impl core::error::Error for SyntaxError {}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}, found ", self.expected, self.offset)?;
        match self.found {
            None => f.write_str("the end of the text"),
            Some(byte) if byte.is_ascii_graphic() => write!(f, "'{}'", char::from(byte)),
            Some(byte) => write!(f, "byte 0x{byte:02x}"),
        }
    }
}

/// One value of a text, judged but not built: a span of the text, so it costs nothing to skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is spelled.
    Number(&'a [u8]),
    /// A text between its quotes.
    Text(RawText<'a>),
    /// An array with its brackets.
    Array(&'a [u8]),
    /// An object with its braces.
    Object(&'a [u8]),
}

impl<'a> Raw<'a> {
    /// The text, if this value is one.
    pub fn as_text(&self) -> Option<RawText<'a>> {
        match self {
            Raw::Text(text) => Some(*text),
            _ => None,
        }
    }

    /// The value as a whole number from 0 to 2^53-1, if its nearest double is one ([`safe_integer`]).
    pub fn as_safe_integer(&self) -> Option<u64> {
        match self {
            Raw::Number(spelled) => safe_integer(spelled),
            _ => None,
        }
    }
}

/// Where `bytes` stop being UTF-8: the offset of the first byte that is no part of it, or `None` when all is well.
pub fn first_invalid_utf8(bytes: &[u8]) -> Option<usize> {
    // Most text is ASCII throughout, and that can be told by vectors.
    if bytes.chunks(64).all(|block| block.iter().fold(0, |all, byte| all | byte) < 0x80) {
        return None;
    }
    core::str::from_utf8(bytes).err().map(|error| error.valid_up_to())
}
