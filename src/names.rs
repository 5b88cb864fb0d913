//! Names kept once: an arena for texts and an interner for those that recur in every entry.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Code, Error};

/// Where a text stands in an [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    length: u32,
}

/// Texts one behind another: no allocation for each.
#[derive(Debug, Default)]
pub struct Arena {
    bytes: Vec<u8>,
}

impl Arena {
    /// The text at `span`.
    #[inline(always)]
    pub fn get(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.bytes.get(start..start.wrapping_add(span.length as usize)).unwrap_or_default()
    }

    /// Keeps `text`.
    #[inline]
    pub fn keep(&mut self, text: &[u8]) -> Result<Span, Error> {
        let (Ok(start), Ok(length)) = (u32::try_from(self.bytes.len()), u32::try_from(text.len())) else {
            return Err(too_large("at most 4 GiB of names"));
        };
        self.bytes.extend_from_slice(text);
        Ok(Span { start, length })
    }

    /// Forgets all texts.
    pub fn clear(&mut self) {
        clear_rows(&mut self.bytes);
    }
}

pub(crate) fn too_large(expected: &str) -> Error {
    Error::new(Code::TooLarge, expected, "more")
}

/// A hash that is kept beside an index, so that neither growth nor a near miss touches what the index points to.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    index: u32,
}

/// An index of rows or texts by the hash of their key.
#[derive(Debug, Default)]
pub struct Index {
    table: HashTable<Slot>,
}

/// hashbrown takes a bucket from the low bits and a tag from the high ones; both must come from the 32 bits kept.
#[inline(always)]
fn spread(hash: u32) -> u64 {
    (u64::from(hash) << 32) | u64::from(hash)
}

impl Index {
    /// The entry whose key has this hash and for which `matches` holds.
    #[inline]
    pub fn find(&self, hash: u32, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(spread(hash), |slot| slot.hash == hash && matches(slot.index)).map(|slot| slot.index)
    }

    /// Adds an entry that is not there yet.
    #[inline]
    pub fn insert(&mut self, hash: u32, index: u32) {
        self.table.insert_unique(spread(hash), Slot { hash, index }, |slot| spread(slot.hash));
    }

    /// Forgets all entries. A table much larger than what it held is given back, so that one large run does not make every
    /// small one after it slow.
    pub fn clear(&mut self) {
        if self.table.capacity() > 1024 && self.table.len() < self.table.capacity() / 8 {
            self.table = HashTable::new();
        } else {
            self.table.clear();
        }
    }
}

/// The hash of a text under a seed.
#[inline(always)]
pub fn hash(text: &[u8], seed: u64) -> u32 {
    let hash = xxh3_64_with_seed(text, seed);
    (hash ^ (hash >> 32)) as u32
}

/// An interned text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol(pub u32);

/// Gives equal texts equal symbols. The text asked for last is compared first: in a run nearly every entry names the same
/// flow and execution.
#[derive(Debug, Default)]
pub struct Interner {
    arena: Arena,
    spans: Vec<Span>,
    index: Index,
    last: u32,
}

impl Interner {
    /// The text of a symbol.
    #[inline]
    pub fn get(&self, symbol: Symbol) -> &[u8] {
        self.spans.get(symbol.0 as usize).map_or(&[], |span| self.arena.get(*span))
    }

    /// The symbol of `text`, if it was interned.
    #[inline]
    pub fn find(&self, text: &[u8]) -> Option<Symbol> {
        if self.spans.get(self.last as usize).is_some_and(|span| self.arena.get(*span) == text) {
            return Some(Symbol(self.last));
        }
        self.look_up(hash(text, 0), text)
    }

    /// The symbol of `text`, interning it when it is new.
    #[inline]
    pub fn intern(&mut self, text: &[u8]) -> Result<Symbol, Error> {
        if self.spans.get(self.last as usize).is_some_and(|span| self.arena.get(*span) == text) {
            return Ok(Symbol(self.last));
        }
        let hash = hash(text, 0);
        let symbol = match self.look_up(hash, text) {
            Some(symbol) => symbol,
            None => {
                let next = u32::try_from(self.spans.len()).map_err(|_| too_large("at most 2^32 names"))?;
                self.spans.push(self.arena.keep(text)?);
                self.index.insert(hash, next);
                Symbol(next)
            }
        };
        self.last = symbol.0;
        Ok(symbol)
    }

    fn look_up(&self, hash: u32, text: &[u8]) -> Option<Symbol> {
        self.index
            .find(hash, |symbol| self.spans.get(symbol as usize).is_some_and(|span| self.arena.get(*span) == text))
            .map(Symbol)
    }

    /// How many texts there are: every symbol is below it.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Forgets all texts.
    pub fn clear(&mut self) {
        self.arena.clear();
        clear_rows(&mut self.spans);
        self.index.clear();
        self.last = 0;
    }
}

/// Empties `rows`, and gives back memory that only an unusually large run needed.
pub(crate) fn clear_rows<Row>(rows: &mut Vec<Row>) {
    let bytes = rows.capacity().saturating_mul(size_of::<Row>());
    if bytes > 1 << 16 && rows.len() < rows.capacity() / 8 {
        *rows = Vec::new();
    } else {
        rows.clear();
    }
}
