//! Pages as SQL assembles them: lengths and seqs as decimal lists, types as one digit each.

use super::Page;
use crate::error::{Code, Error};

/// The parts of a page that were read from lists. Kept from page to page, so that reading the next one allocates nothing.
#[derive(Debug, Default)]
pub struct Lists {
    ends: Vec<u32>,
    seqs: Vec<i64>,
    types: Vec<u8>,
}

impl Lists {
    /// A page of joined payloads and the lists that an aggregate query gives beside them: byte lengths and seqs, each in
    /// decimal and separated by commas, and type codes, one digit each.
    ///
    /// The counts must agree, because an aggregate that skips a NULL in one column would shift every later entry. A length of
    /// -1 stands for a NULL payload, which is read as an empty text: no JSON.
    pub fn page<'a>(&'a mut self, bytes: &'a [u8], lengths: &[u8], seqs: &[u8], types: &[u8]) -> Result<Page<'a>, Error> {
        self.ends.clear();
        self.seqs.clear();
        self.types.clear();
        let mut end: u32 = 0;
        each_number(lengths, |length| {
            let length = if length == -1 { 0 } else { u32::try_from(length).ok()? };
            end = end.checked_add(length)?;
            self.ends.push(end);
            Some(())
        })?;
        each_number(seqs, |seq| {
            self.seqs.push(seq);
            Some(())
        })?;
        for digit in types {
            self.types.push(digit.wrapping_sub(b'0'));
        }
        Page::new(bytes, &self.ends, &self.seqs, &self.types)
    }
}

fn each_number(list: &[u8], mut take: impl FnMut(i64) -> Option<()>) -> Result<(), Error> {
    if list.is_empty() {
        return Ok(());
    }
    for item in list.split(|byte| *byte == b',') {
        if decimal(item).and_then(&mut take).is_none() {
            return Err(Error::new(
                Code::PageMalformed,
                "whole numbers separated by commas, and at most 4 GiB of payloads",
                String::from_utf8_lossy(item.get(..item.len().min(40)).unwrap_or_default()),
            ));
        }
    }
    Ok(())
}

fn decimal(item: &[u8]) -> Option<i64> {
    let (negative, digits) = match item {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i64::from(digit))?;
    }
    Some(if negative { value.wrapping_neg() } else { value })
}
