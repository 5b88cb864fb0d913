//! Writes JSON as `JSON.stringify` does, byte for byte.

use super::scan::verbatim_end;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a text in quotes. `wtf8` is WTF-8: an unpaired surrogate becomes its escape, as in a well-formed `JSON.stringify`.
pub fn write_text(out: &mut Vec<u8>, wtf8: &[u8]) {
    out.reserve(wtf8.len().wrapping_add(2));
    out.push(b'"');
    let mut rest = wtf8;
    loop {
        let (before, special) = rest.split_at_checked(verbatim_end(rest, 0)).unwrap_or((rest, &[]));
        out.extend_from_slice(before);
        rest = match special {
            [0xed, second @ 0xa0..=0xbf, third, after @ ..] => {
                let unit = 0xd000 | (u16::from(second & 0x3f) << 6) | u16::from(third & 0x3f);
                write_unit_escape(out, unit);
                after
            }
            [byte, after @ ..] => {
                match byte {
                    0x08 => out.extend_from_slice(b"\\b"),
                    0x0c => out.extend_from_slice(b"\\f"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'"' => out.extend_from_slice(b"\\\""),
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0..=0x1f => write_unit_escape(out, u16::from(*byte)),
                    _ => out.push(*byte),
                }
                after
            }
            [] => break,
        };
    }
    out.push(b'"');
}

fn write_unit_escape(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = usize::from((unit >> shift) & 0xf);
        out.extend(HEX.get(digit));
    }
}

/// Appends a whole number in decimal.
pub fn write_integer(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; 20];
    let mut value = value;
    let mut used: usize = 0;
    for slot in digits.iter_mut().rev() {
        *slot = b'0'.wrapping_add((value % 10) as u8);
        value /= 10;
        used = used.wrapping_add(1);
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(digits.len().wrapping_sub(used)..).unwrap_or_default());
}

/// Appends a double in ECMAScript's shortest form; `null` for an infinity or not-a-number, and `0` for `-0`.
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Builds one JSON text: commas and colons fall into place by themselves.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// An empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// The text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    // A call each: laid out in place, the commas alone were a tenth of the module.
    #[inline(never)]
    fn before_value(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(b',');
        }
    }

    /// Opens an object, as a value.
    #[inline(never)]
    pub fn open_object(&mut self) -> &mut Self {
        self.before_value();
        self.out.push(b'{');
        self
    }

    /// Closes the innermost object.
    #[inline(never)]
    pub fn close_object(&mut self) -> &mut Self {
        self.out.push(b'}');
        self
    }

    /// Opens an array, as a value.
    #[inline(never)]
    pub fn open_array(&mut self) -> &mut Self {
        self.before_value();
        self.out.push(b'[');
        self
    }

    /// Closes the innermost array.
    #[inline(never)]
    pub fn close_array(&mut self) -> &mut Self {
        self.out.push(b']');
        self
    }

    /// The name of the next member.
    #[inline(never)]
    pub fn name(&mut self, name: &[u8]) -> &mut Self {
        self.before_value();
        write_text(&mut self.out, name);
        self.out.push(b':');
        self
    }

    /// A text, from WTF-8.
    #[inline(never)]
    pub fn text(&mut self, wtf8: &[u8]) -> &mut Self {
        self.before_value();
        write_text(&mut self.out, wtf8);
        self
    }

    /// A whole number.
    #[inline(never)]
    pub fn integer(&mut self, value: u64) -> &mut Self {
        self.before_value();
        write_integer(&mut self.out, value);
        self
    }

    /// A whole number as decimal text: what a JavaScript reader may not lose digits of.
    #[inline(never)]
    pub fn decimal_text(&mut self, value: u64) -> &mut Self {
        self.before_value();
        self.out.push(b'"');
        write_integer(&mut self.out, value);
        self.out.push(b'"');
        self
    }

    /// A double.
    #[inline(never)]
    pub fn double(&mut self, value: f64) -> &mut Self {
        self.before_value();
        write_double(&mut self.out, value);
        self
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.raw(if value { b"true" } else { b"false" })
    }

    /// `null`.
    pub fn null(&mut self) -> &mut Self {
        self.raw(b"null")
    }

    /// A value that is JSON text already.
    #[inline(never)]
    pub fn raw(&mut self, json: &[u8]) -> &mut Self {
        self.before_value();
        self.out.extend_from_slice(json);
        self
    }
}
