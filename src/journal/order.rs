//! Order inside a run: ascending seqs, and an entry that comes twice.

use super::{Entry, Seq};
use crate::error::{Code, Error};

/// What an entry is to the entries before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Above the last one: fold it.
    Next,
    /// The last one again, to the letter: counted, no effect.
    Redelivered,
}

/// The last entry taken, against which the next one is judged.
#[derive(Debug, Default)]
pub struct Order {
    last: Option<(Seq, u8)>,
    last_payload: Vec<u8>,
}

impl Order {
    /// The last seq taken.
    pub fn last_seq(&self) -> Option<Seq> {
        self.last.map(|(seq, _)| seq)
    }

    /// Judges `entry` against the last one. `previous` is the last payload when it is at hand (the entry before on the same
    /// page), which spares a copy of every payload.
    #[inline]
    pub fn place(&self, entry: &Entry<'_>, previous: Option<&[u8]>) -> Result<Place, Error> {
        match self.last {
            Some((last, _)) if entry.seq > last => Ok(Place::Next),
            None => Ok(Place::Next),
            Some((last, type_code)) if entry.seq == last => {
                if type_code == entry.type_code && previous.unwrap_or(&self.last_payload) == entry.payload {
                    Ok(Place::Redelivered)
                } else {
                    Err(Error::new(
                        Code::EntryConflict,
                        "the content that came before under this seq, or a higher seq",
                        "other content",
                    )
                    .at_seq(entry.seq))
                }
            }
            Some((last, _)) => Err(Error::new(
                Code::EntryOutOfOrder,
                format!("a seq above {last}"),
                entry.seq.to_string(),
            )
            .at_seq(entry.seq)),
        }
    }

    /// Takes `entry` as the last one; its payload must be given to [`Order::keep_payload`] before the page goes.
    #[inline]
    pub fn take(&mut self, entry: &Entry<'_>) {
        self.last = Some((entry.seq, entry.type_code));
    }

    /// Keeps the last payload beyond its page.
    pub fn keep_payload(&mut self, payload: &[u8]) {
        self.last_payload.clear();
        self.last_payload.extend_from_slice(payload);
    }

    /// Forgets everything: another run begins.
    pub fn clear(&mut self) {
        self.last = None;
        self.last_payload.clear();
    }
}
