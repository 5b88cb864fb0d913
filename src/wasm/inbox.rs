//! The inbox: memory that the host writes into before a call.

use std::cell::RefCell;

use wasm_bindgen::prelude::wasm_bindgen;

/// The buffer. Whole words, so that seqs and ends can be read where they stand.
#[derive(Default)]
pub(super) struct Inbox {
    words: Vec<u64>,
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
