//! Reads a row from its stored text.
//!
//! Rows as they are written ([`super::row`]) are read directly, byte by byte, with nothing built and nothing allocated. Any other
//! spelling goes through the JSON reader: spaces, any order of members, escapes, further members. The text and its shape are
//! judged first, the version after that.
//!
//! How strict: an array in place of an object is refused, and so is text that is not UTF-8, wherever it stands. What further
//! members hold is judged as the specification has it: beside the row by the JSON grammar alone; inside the row in full
//! (no unpaired surrogate, no number beyond a double, at most 127 levels in the whole payload).

use super::aggregate::Pair;
use super::row::{Kind, RowRef};
use super::written::Place;
use crate::json::{first_invalid_utf8, nearest_double, Raw, RawText, Reader, SyntaxError};

/// Why a stored text is no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFault {
    /// The text is not JSON, or not of a row's shape.
    Malformed(SyntaxError),
    /// The version is not the one that the row's kind carries.
    Version {
        /// The one it carries.
        expected: u8,
        /// The one found.
        found: u8,
    },
}

impl From<SyntaxError> for RowFault {
    fn from(error: SyntaxError) -> Self {
        RowFault::Malformed(error)
    }
}

/// Reads rows one after another. Lists of the last row stay here, so that reading the next one allocates nothing.
#[derive(Debug, Default)]
pub struct RowReader {
    progress: Vec<Pair>,
    armed: Vec<Pair>,
}

/// A row but for its lists, which the reader keeps.
enum Shape {
    Track(u64, u64),
    Advance(u64, u64),
    Arms,
    Snapshot,
}

impl RowReader {
    /// A reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a row. Its lists are borrowed from the reader, until the next one is read.
    pub fn read(&mut self, payload: &[u8]) -> Result<RowRef<'_>, RowFault> {
        self.read_inlined(payload)
    }

    /// The same for a loop over many rows. Wasm hands results of calls on through memory, which costs as much as reading a row.
    #[inline(always)]
    pub(super) fn read_inlined(&mut self, payload: &[u8]) -> Result<RowRef<'_>, RowFault> {
        let shape = match self.as_written(payload) {
            Some(shape) => shape,
            None => self.as_json(payload)?,
        };
        Ok(match shape {
            Shape::Track(conversation_id, progress) => RowRef::Track { conversation_id, progress },
            Shape::Advance(conversation_id, progress) => RowRef::Advance { conversation_id, progress },
            Shape::Arms => RowRef::Arms(&self.armed),
            Shape::Snapshot => RowRef::Snapshot { progress: &self.progress, armed: &self.armed },
        })
    }

    /// Reads the one spelling in which rows are written; `None` for any other, sound or not.
    #[inline(always)]
    fn as_written(&mut self, payload: &[u8]) -> Option<Shape> {
        let place = Place::begin(payload);
        let Some(row) = place.skip(b"{\"schema_version\":1,\"row\":{\"row\":\"") else {
            return self.snapshot_as_written(place);
        };
        if let Some(place) = row.skip(b"advance\",\"conversation_id\":") {
            let (conversation_id, progress) = place.numbers()?;
            return Some(Shape::Advance(conversation_id, progress));
        }
        if let Some(place) = row.skip(b"track\",\"conversation_id\":") {
            let (conversation_id, progress) = place.numbers()?;
            return Some(Shape::Track(conversation_id, progress));
        }
        row.skip(b"arms\",\"arms\":")?.pairs(&mut self.armed)?.closes().then_some(Shape::Arms)
    }

    fn snapshot_as_written(&mut self, place: Place<'_>) -> Option<Shape> {
        let list = place.skip(b"{\"schema_version\":2,\"row\":{\"row\":\"snapshot\",\"progress\":")?;
        let list = list.pairs(&mut self.progress)?.skip(b",\"armed\":")?;
        list.pairs(&mut self.armed)?.closes().then_some(Shape::Snapshot)
    }

    /// Reads any spelling. Kept out of the way of the one that is read all the time.
    #[cold]
    #[inline(never)]
    fn as_json(&mut self, payload: &[u8]) -> Result<Shape, RowFault> {
        if let Some(offset) = first_invalid_utf8(payload) {
            return Err(fault(payload, offset, "UTF-8").into());
        }
        let mut reader = Reader::new(payload);
        let Some(mut cursor) = reader.enter_object() else {
            return Err(fault(payload, reader.offset(), "an object").into());
        };
        let mut version = None;
        let mut row = None;
        let mut last = reader.offset();
        while let Some(name) = reader.member(&mut cursor)? {
            reader.white_space();
            let at = reader.offset();
            judge_text(name).map_err(|expected| fault(payload, last, expected))?;
            if name.equals(b"schema_version") {
                let found = number(payload, at, reader.value()?, "a whole number from 0 to 255")?;
                let found = u8::try_from(found).map_err(|_| fault(payload, at, "a whole number from 0 to 255"))?;
                if version.replace(found).is_some() {
                    return Err(fault(payload, at, "only one schema_version").into());
                }
            } else if name.equals(b"row") {
                if row.is_some() {
                    return Err(fault(payload, at, "only one row").into());
                }
                row = Some(self.members(payload, &mut reader)?);
            } else {
                reader.value()?;
            }
            last = reader.offset();
        }
        // Behind the closing brace.
        let end = reader.offset().saturating_sub(1);
        reader.end()?;
        let found = version.ok_or_else(|| fault(payload, end, "a schema_version"))?;
        let (kind, shape) = row.ok_or_else(|| fault(payload, end, "a row"))?;
        let expected = kind.schema_version();
        if found != expected {
            return Err(RowFault::Version { expected, found });
        }
        Ok(shape)
    }

    /// Reads the row inside the payload; the reader is before it.
    fn members(&mut self, payload: &[u8], reader: &mut Reader<'_>) -> Result<(Kind, Shape), SyntaxError> {
        let Some(mut cursor) = reader.enter_object() else {
            return Err(fault(payload, reader.offset(), "an object"));
        };
        let mut found = Found::default();
        let mut last = reader.offset();
        while let Some(name) = reader.member(&mut cursor)? {
            reader.white_space();
            let at = reader.offset();
            judge_text(name).map_err(|expected| fault(payload, last, expected))?;
            let value = reader.value()?;
            found.take(payload, name, Value { at, value })?;
            last = reader.offset();
        }
        found.end = last;
        let kind = found.kind(payload)?;
        let shape = match kind {
            Kind::Track => Shape::Track(found.number(payload, CONVERSATION)?, found.number(payload, PROGRESS_OF)?),
            Kind::Advance => Shape::Advance(found.number(payload, CONVERSATION)?, found.number(payload, PROGRESS_OF)?),
            Kind::Arms => {
                found.pairs(payload, ARMS, &mut self.armed)?;
                Shape::Arms
            }
            Kind::Snapshot => {
                found.pairs(payload, PROGRESS, &mut self.progress)?;
                found.pairs(payload, ARMED, &mut self.armed)?;
                Shape::Snapshot
            }
        };
        found.judge_rest(payload)?;
        Ok((kind, shape))
    }
}

/// A row's members, each with what is expected when it is missing and when it comes twice.
const NAMES: [(&[u8], &str, &str); 6] = [
    (b"row", "a kind under \"row\"", "only one kind under \"row\""),
    (b"conversation_id", "a conversation_id", "only one conversation_id"),
    (b"observer_progress", "an observer_progress", "only one observer_progress"),
    (b"arms", "a list of arms", "only one list of arms"),
    (b"progress", "a list of progress", "only one list of progress"),
    (b"armed", "a list under \"armed\"", "only one list under \"armed\""),
];
const KIND: usize = 0;
const CONVERSATION: usize = 1;
const PROGRESS_OF: usize = 2;
const ARMS: usize = 3;
const PROGRESS: usize = 4;
const ARMED: usize = 5;

/// Levels that a value inside the row may add to the two around it.
const DEEPEST_INSIDE: usize = 125;

#[derive(Clone, Copy)]
struct Value<'a> {
    at: usize,
    value: Raw<'a>,
}

/// The members of a row as they were found. Which of them are needed is known when the kind is.
#[derive(Default)]
struct Found<'a> {
    first: [Option<Value<'a>>; 6],
    repeated: [Option<usize>; 6],
    needed: [bool; 6],
    end: usize,
}

impl<'a> Found<'a> {
    fn take(&mut self, payload: &[u8], name: RawText<'a>, value: Value<'a>) -> Result<(), SyntaxError> {
        let place = NAMES.iter().position(|(known, ..)| name.equals(known));
        match place.and_then(|place| Some((self.first.get_mut(place)?, self.repeated.get_mut(place)?))) {
            Some((first @ None, _)) => {
                *first = Some(value);
                Ok(())
            }
            Some((_, repeated)) => {
                repeated.get_or_insert(value.at);
                judge(payload, value)
            }
            None => judge(payload, value),
        }
    }

    /// The value of a member that is needed once.
    fn need(&mut self, payload: &[u8], place: usize) -> Result<Value<'a>, SyntaxError> {
        let (_, missing, twice) = NAMES.get(place).copied().unwrap_or_default();
        if let Some(needed) = self.needed.get_mut(place) {
            *needed = true;
        }
        if let Some(Some(at)) = self.repeated.get(place) {
            return Err(fault(payload, *at, twice));
        }
        self.first.get(place).copied().flatten().ok_or_else(|| fault(payload, self.end, missing))
    }

    fn kind(&mut self, payload: &[u8]) -> Result<Kind, SyntaxError> {
        let Value { at, value } = self.need(payload, KIND)?;
        let kind = value.as_text().and_then(|text| Kind::ALL.into_iter().find(|kind| text.equals(kind.as_str().as_bytes())));
        kind.ok_or_else(|| fault(payload, at, "track, advance, arms or snapshot"))
    }

    fn number(&mut self, payload: &[u8], place: usize) -> Result<u64, SyntaxError> {
        let Value { at, value } = self.need(payload, place)?;
        number(payload, at, value, PLAIN_NUMBER)
    }

    fn pairs(&mut self, payload: &[u8], place: usize, into: &mut Vec<Pair>) -> Result<(), SyntaxError> {
        let Value { at, value } = self.need(payload, place)?;
        into.clear();
        let Raw::Array(span) = value else { return Err(fault(payload, at, "a list of pairs")) };
        let mut reader = Reader::new(span);
        let mut reader = Pairs { payload, start: at, reader: &mut reader };
        reader.read(into)
    }

    /// Judges in full what the kind does not need.
    fn judge_rest(&self, payload: &[u8]) -> Result<(), SyntaxError> {
        let rest = self.first.iter().zip(self.needed).filter(|(_, needed)| !needed);
        rest.filter_map(|(value, _)| *value).try_for_each(|value| judge(payload, value))
    }
}

const PLAIN_NUMBER: &str = "a whole number from 0 to 2^64-1, in plain digits";
const PAIR: &str = "a pair of numbers";

/// A list of pairs, somewhere in a payload.
struct Pairs<'a, 'r> {
    payload: &'r [u8],
    start: usize,
    reader: &'r mut Reader<'a>,
}

impl Pairs<'_, '_> {
    fn read(&mut self, into: &mut Vec<Pair>) -> Result<(), SyntaxError> {
        let Some(mut list) = self.reader.enter_array() else { return Err(self.fault("a list of pairs")) };
        while self.reader.element(&mut list)? {
            let Some(mut pair) = self.reader.enter_array() else { return Err(self.fault(PAIR)) };
            if !self.reader.element(&mut pair)? {
                return Err(self.fault(PAIR));
            }
            let id = self.number()?;
            if !self.reader.element(&mut pair)? {
                return Err(self.fault(PAIR));
            }
            let value = self.number()?;
            if self.reader.element(&mut pair)? {
                return Err(self.fault(PAIR));
            }
            into.push((id, value));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<u64, SyntaxError> {
        self.reader.white_space();
        let at = self.start.saturating_add(self.reader.offset());
        number(self.payload, at, self.reader.value()?, PLAIN_NUMBER)
    }

    fn fault(&self, expected: &'static str) -> SyntaxError {
        fault(self.payload, self.start.saturating_add(self.reader.offset()), expected)
    }
}

fn fault(payload: &[u8], offset: usize, expected: &'static str) -> SyntaxError {
    SyntaxError { offset, expected, found: payload.get(offset).copied() }
}

/// A whole number in plain digits: no sign, point, exponent or quotes. The JSON grammar has ruled out leading zeros.
fn number(payload: &[u8], at: usize, value: Raw<'_>, expected: &'static str) -> Result<u64, SyntaxError> {
    let spelled = if let Raw::Number(spelled) = value { spelled } else { b"" };
    match Place::begin(spelled).number() {
        Some((number, place)) if place.is_end() => Ok(number),
        _ => Err(fault(payload, at, expected)),
    }
}

/// Judges a value that nothing needs as a reader that builds it would.
fn judge(payload: &[u8], Value { at, value }: Value<'_>) -> Result<(), SyntaxError> {
    match value {
        Raw::Null | Raw::Bool(_) => Ok(()),
        Raw::Number(_) | Raw::Text(_) => judge_scalar(value).map_err(|expected| fault(payload, at, expected)),
        Raw::Array(span) | Raw::Object(span) => judge_span(payload, at, span),
    }
}

fn judge_scalar(value: Raw<'_>) -> Result<(), &'static str> {
    match value {
        Raw::Number(spelled) if !nearest_double(spelled).is_finite() => Err("a number within the range of a double"),
        Raw::Text(text) => judge_text(text),
        _ => Ok(()),
    }
}

fn judge_text(text: RawText<'_>) -> Result<(), &'static str> {
    // What the payload holds as it stands is UTF-8; only escapes can spell half a pair.
    if text.plain().is_some() || first_invalid_utf8(&text.to_wtf8()).is_none() {
        return Ok(());
    }
    Err("no unpaired surrogate")
}

/// Judges every text and number of an array or object, which is known to be JSON, and its depth.
fn judge_span(payload: &[u8], start: usize, span: &[u8]) -> Result<(), SyntaxError> {
    let mut at: usize = 0;
    let mut depth: usize = 0;
    while let Some(rest @ [byte, ..]) = span.get(at..) {
        let here = start.saturating_add(at);
        let mut width = 1;
        match byte {
            b'[' | b'{' => {
                depth = depth.saturating_add(1);
                if depth > DEEPEST_INSIDE {
                    return Err(fault(payload, here, "at most 127 levels in the whole payload"));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' | b'-' | b'0'..=b'9' => {
                let mut reader = Reader::new(rest);
                let value = reader.value()?;
                judge_scalar(value).map_err(|expected| fault(payload, here, expected))?;
                width = reader.offset().max(1);
            }
            _ => {}
        }
        at = at.saturating_add(width);
    }
    Ok(())
}
