//! The inbox: memory that the host writes into before a call.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;

use crate::json::append_utf8;

/// The buffer. Whole words, so that seqs and ends can be read where they stand.
#[derive(Default)]
pub(super) struct Inbox {
    words: Vec<u64>,
    /// Kept for [`inbox_to_utf8`].
    text: Vec<u8>,
}

thread_local! {
    static INBOX: RefCell<Inbox> = RefCell::default();
}

/// An inbox larger than this is not kept for what needs far less.
const KEPT_WORDS: usize = 8 << 20;

/// Memory for at least `capacity` bytes, as its address. Its content and its place hold until the next call of this function; the
/// view of memory must be taken anew after every call, because any call may grow it.
#[wasm_bindgen]
pub fn inbox(capacity: usize) -> *const u64 {
    INBOX.with_borrow_mut(|inbox| {
        let words = capacity.div_ceil(8);
        let have = inbox.words.len();
        if words > have || (have > KEPT_WORDS && words < have / 8) {
            // Nothing in it is worth copying, and the old one need not be there beside the new one.
            inbox.words = Vec::new();
            inbox.words = vec![0; if words < KEPT_WORDS { words.next_power_of_two() } else { words }];
        }
        inbox.words.as_ptr()
    })
}

/// Makes UTF-8 of UTF-16 that the host has written behind the head of a page of `rows` entries, at the next even place, and byte ends of
/// the ends in units; says how many bytes it is. Nothing when there is an unpaired surrogate.
#[wasm_bindgen]
pub fn inbox_to_utf8(rows: usize, units: usize) -> Option<usize> {
    let head = rows.saturating_mul(13);
    INBOX.with_borrow_mut(|inbox| {
        let mut text = std::mem::take(&mut inbox.text);
        text.clear();
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut inbox.words);
        let start = head.saturating_add(head & 1);
        let end = start.saturating_add(units.saturating_mul(2));
        let unit_ends: &[u32] = bytemuck::cast_slice(all.get(rows.saturating_mul(8)..rows.saturating_mul(12))?);
        let units: &[u16] = bytemuck::try_cast_slice(all.get(start..end)?).ok()?;
        let mut ends = Vec::with_capacity(rows);
        let mut from = 0;
        for end in unit_ends.iter().copied() {
            if !append_utf8(units.get(from..end as usize)?, &mut text) {
                return None;
            }
            from = end as usize;
            ends.push(u32::try_from(text.len()).ok()?);
        }
        all.get_mut(head..head.saturating_add(text.len()))?.copy_from_slice(&text);
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut inbox.words);
        let at = rows.saturating_mul(2);
        words.get_mut(at..at.saturating_add(rows))?.copy_from_slice(&ends);
        let length = text.len();
        inbox.text = text;
        Some(length)
    })
}

/// Whether there is a U+FFFD in UTF-8 that the host has just written: what an encoder makes of an unpaired surrogate, and rare otherwise.
#[wasm_bindgen]
pub fn inbox_has_replacement(start: usize, length: usize) -> bool {
    const FIRST: u8 = 0xef;
    with(|inbox| {
        let bytes = inbox.bytes(start, length);
        // Whole blocks at once; hardly any has a byte that such a character begins with.
        let mut at: usize = 0;
        while let Some(block) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let block = block.get(..32).unwrap_or(block);
            let end = at.saturating_add(block.len());
            if block.iter().fold(false, |found, byte| found | (*byte == FIRST)) {
                let reach = bytes.get(at..end.saturating_add(2).min(bytes.len())).unwrap_or_default();
                if reach.windows(3).any(|three| three == "\u{fffd}".as_bytes()) {
                    return true;
                }
            }
            at = end;
        }
        false
    })
}

/// Reads the inbox.
pub(super) fn with<T>(read: impl FnOnce(&Inbox) -> T) -> T {
    INBOX.with_borrow(read)
}

impl Inbox {
    /// `length` bytes from `start`; shorter when the host says more than it asked for.
    pub(super) fn bytes(&self, start: usize, length: usize) -> &[u8] {
        let all: &[u8] = bytemuck::cast_slice(&self.words);
        let start = start.min(all.len());
        let end = start.saturating_add(length).min(all.len());
        all.get(start..end).unwrap_or_default()
    }

    /// `count` unsigned numbers from the beginning.
    pub(super) fn words(&self, count: usize) -> &[u64] {
        self.words.get(..count).unwrap_or_default()
    }

    /// `count` seqs from the beginning.
    pub(super) fn seqs(&self, count: usize) -> &[i64] {
        bytemuck::cast_slice(self.words.get(..count).unwrap_or_default())
    }

    /// `count` ends behind `seqs` seqs.
    pub(super) fn ends(&self, seqs: usize, count: usize) -> &[u32] {
        let all: &[u32] = bytemuck::cast_slice(&self.words);
        let start = seqs.saturating_mul(2);
        all.get(start..start.saturating_add(count)).unwrap_or_default()
    }
}
