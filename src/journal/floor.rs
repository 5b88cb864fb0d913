//! Floors: the checkpoint that a compacted run's entries were deleted below.

use super::Seq;
use crate::error::{Code, Error};

/// A checkpoint of a run.
#[derive(Debug, Clone, Copy)]
pub struct Floor<'a> {
    /// The last seq that its state covers.
    pub seq: Seq,
    /// Whether the run was compacted to it. A checkpoint never compacted to is no floor; a compaction time of 0 is one.
    pub compacted: bool,
    /// The state's JSON text.
    pub state: &'a [u8],
}

impl<'a> Floor<'a> {
    /// The floor among a run's checkpoints: the compacted one with the highest seq. An older one never stands in for it.
    pub fn pick(checkpoints: impl IntoIterator<Item = Floor<'a>>) -> Option<Floor<'a>> {
        checkpoints.into_iter().filter(|checkpoint| checkpoint.compacted).reduce(|best, next| {
            if next.seq >= best.seq {
                next
            } else {
                best
            }
        })
    }
}

/// The last seq to fold, inclusive. Any finite number will do: -1 takes nothing, 1.5 takes seqs 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound(f64);

impl Bound {
    /// A bound; one that is not finite is [`Code::BoundInvalid`].
    pub fn new(up_to: f64) -> Result<Self, Error> {
        if up_to.is_finite() {
            Ok(Bound(up_to))
        } else {
            // Spelled here, because the standard library's spelling of doubles would be 15 KB of the module.
            let found = if up_to.is_nan() {
                "NaN"
            } else if up_to > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            };
            Err(Error::new(Code::BoundInvalid, "a finite number", found))
        }
    }

    /// Whether `seq` lies at or below the bound.
    #[inline]
    pub fn takes(self, seq: Seq) -> bool {
        // Above 2^53 the nearest double of a seq may be another number, so compare as integers where a double is one.
        if self.0 < 0.0 {
            return false;
        }
        // The cast saturates, so a bound beyond every seq stays beyond.
        seq <= self.0 as u64
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // As JavaScript spells it: the module has that at hand already.
        f.write_str(ryu_js::Buffer::new().format_finite(self.0))
    }
}
