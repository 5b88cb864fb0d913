//! Where snapshot rows fall: 256 other rows lie between two of them, so every 257th sequence is due.

use super::aggregate::Aggregate;
use super::row::Row;

/// Rows between two snapshots.
pub const INTERVAL: u64 = 256;

const PERIOD: u64 = 257;

/// Whether a snapshot is due at a head: at 256, 513, 770 and so on. An appender that finds one due writes it there, and its own
/// row behind it.
#[inline]
pub fn snapshot_due(head: u64) -> bool {
    head % PERIOD == INTERVAL
}

/// The head after appending `rows` rows from `head` on, with the snapshots that fall due on the way; `None` when it would pass
/// 2^64-1.
pub fn head_after(head: u64, rows: u64) -> Option<u64> {
    // The rows that fit before the next due head. The remainder is at most 256.
    let fitting = INTERVAL.wrapping_sub(head % PERIOD);
    let Some(beyond) = rows.checked_sub(fitting).filter(|beyond| *beyond > 0) else {
        return head.checked_add(rows);
    };
    let snapshots = beyond.wrapping_sub(1) / INTERVAL;
    head.checked_add(rows)?.checked_add(1)?.checked_add(snapshots)
}

/// The snapshot row of a state when one is due at `head`.
pub fn snapshot_before(head: u64, state: &Aggregate) -> Option<Row> {
    snapshot_due(head).then(|| state.snapshot())
}
