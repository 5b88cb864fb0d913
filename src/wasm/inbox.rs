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

/// Memory for at least `capacity` bytes, as its address. It stays in place until a larger one is asked for; the view of memory
/// must be taken anew after every call, because a call may grow it.
#[wasm_bindgen]
pub fn inbox(capacity: usize) -> *const u64 {
    INBOX.with_borrow_mut(|inbox| {
        let words = capacity.div_ceil(8);
        if words > inbox.words.len() {
            // Nothing in it is worth copying.
            inbox.words = Vec::new();
            inbox.words.resize(words.next_power_of_two(), 0);
        }
        inbox.words.as_ptr()
    })
}

/// Gives the inbox's memory back when it is larger than `keep` bytes.
#[wasm_bindgen]
pub fn inbox_shrink(keep: usize) {
    INBOX.with_borrow_mut(|inbox| {
        if inbox.words.len() > keep.div_ceil(8) {
            inbox.words = Vec::new();
        }
    });
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
