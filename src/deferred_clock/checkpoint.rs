//! The fold inside a checkpoint's state: read whole or not at all, written with fixed members, put into a state's text.

use std::borrow::Cow;

use super::reduce::{digest, name, time};
use super::state::{Clock, Deferred, DigestGap, Fold, Key, NewClock, NewDeferred, Recorded, Stamp};
use super::CHECKPOINT_KEY;
use crate::digest::to_hex;
use crate::error::{found_byte, Code, Error};
use crate::json::{first_invalid_utf8, write_integer, write_text, Raw, Reader, SyntaxError};

/// Why a text keeps no fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFold {
    /// The text is not UTF-8 from this byte on.
    NotUtf8(usize),
    /// The text is no JSON.
    NotJson(SyntaxError),
    /// The text is JSON, but not an object.
    NotARecord,
    /// The state has nothing under the fold's key.
    KeyMissing,
    /// What is kept is no fold: not two lists, or a row that breaks a rule.
    Malformed,
    /// The fold is larger than a state may be.
    TooLarge(Error),
}

impl NoFold {
    /// The reason in a few words, as a finding shows it.
    pub fn describe(&self) -> String {
        match self {
            NoFold::NotUtf8(offset) => format!("a text that is not UTF-8 from byte {offset} on"),
            NoFold::NotJson(error) => format!("a text that is no JSON: {error}"),
            NoFold::NotARecord => "a state that is no object".into(),
            NoFold::KeyMissing => format!("a state without {CHECKPOINT_KEY}"),
            NoFold::Malformed => format!("a malformed fold under {CHECKPOINT_KEY}"),
            NoFold::TooLarge(error) => error.to_string(),
        }
    }
}

impl From<SyntaxError> for NoFold {
    fn from(error: SyntaxError) -> Self {
        NoFold::NotJson(error)
    }
}

impl From<Error> for NoFold {
    fn from(error: Error) -> Self {
        NoFold::TooLarge(error)
    }
}

impl Fold {
    /// Replaces the state by the fold that a checkpoint's state keeps. On failure the state is left empty.
    pub fn read_checkpoint(&mut self, state: &[u8]) -> Result<(), NoFold> {
        let read = self.try_read_checkpoint(state);
        if read.is_err() {
            self.clear();
        }
        read
    }

    fn try_read_checkpoint(&mut self, state: &[u8]) -> Result<(), NoFold> {
        self.clear();
        judge_utf8(state)?;
        let mut reader = Reader::new(state);
        let Some(mut members) = reader.enter_object() else {
            reader.value()?;
            reader.end()?;
            return Err(NoFold::NotARecord);
        };
        let mut kept = None;
        while let Some(member) = reader.member(&mut members)? {
            if member.equals(CHECKPOINT_KEY.as_bytes()) {
                // Of repeated keys the last counts.
                self.clear();
                kept = Some(self.read_rows(&mut reader)?);
            } else {
                reader.value()?;
            }
        }
        reader.end()?;
        match kept {
            None => Err(NoFold::KeyMissing),
            Some(false) => Err(NoFold::Malformed),
            Some(true) => Ok(()),
        }
    }

    /// Replaces the state by an encoded fold. On failure the state is left empty.
    pub fn read_encoded(&mut self, encoded: &[u8]) -> Result<(), Error> {
        let found = match self.try_read_encoded(encoded) {
            Ok(true) => return Ok(()),
            Ok(false) => "other JSON".into(),
            Err(NoFold::TooLarge(error)) => {
                self.clear();
                return Err(error);
            }
            Err(other) => other.describe(),
        };
        self.clear();
        Err(Error::new(Code::StateMalformed, "an encoded fold: { clocks: [...], deferreds: [...] }", found))
    }

    fn try_read_encoded(&mut self, encoded: &[u8]) -> Result<bool, NoFold> {
        self.clear();
        judge_utf8(encoded)?;
        let mut reader = Reader::new(encoded);
        let whole = self.read_rows(&mut reader)?;
        reader.end()?;
        Ok(whole)
    }

    /// Reads an encoded fold; `false` if the value is JSON but no fold. The value is judged to its end either way.
    fn read_rows(&mut self, reader: &mut Reader<'_>) -> Result<bool, NoFold> {
        let Some(mut members) = reader.enter_object() else {
            reader.value()?;
            return Ok(false);
        };
        let (mut clocks, mut deferreds) = (false, false);
        while let Some(member) = reader.member(&mut members)? {
            if member.equals(b"clocks") {
                self.clear_clocks();
                clocks = self.read_list(reader, Fold::read_clock)?;
            } else if member.equals(b"deferreds") {
                self.clear_deferreds();
                deferreds = self.read_list(reader, Fold::read_deferred)?;
            } else {
                reader.value()?;
            }
        }
        Ok(clocks && deferreds)
    }

    fn read_list(
        &mut self,
        reader: &mut Reader<'_>,
        read_row: fn(&mut Fold, &mut Reader<'_>) -> Result<bool, NoFold>,
    ) -> Result<bool, NoFold> {
        let Some(mut elements) = reader.enter_array() else {
            reader.value()?;
            return Ok(false);
        };
        let mut whole = true;
        while reader.element(&mut elements)? {
            if whole {
                whole = read_row(self, reader)?;
            } else {
                reader.value()?;
            }
        }
        Ok(whole)
    }

    fn read_clock(&mut self, reader: &mut Reader<'_>) -> Result<bool, NoFold> {
        const WANTED: [&[u8]; 6] =
            [b"flowName", b"executionId", b"clockName", b"deferredName", b"dueAtMs", b"completedAtMs"];
        let Some([flow, execution, clock, deferred, due, completed]) = reader.members(&WANTED)? else {
            return Ok(false);
        };
        let (Some(flow), Some(execution), Some(clock)) = (name(flow), name(execution), name(clock)) else {
            return Ok(false);
        };
        let (Some(deferred), Some(due_at_ms), Some(completed_at)) = (name(deferred), time(due), stamp(completed)) else {
            return Ok(false);
        };
        let owner = self.owner(&flow, &execution)?;
        self.add_clock_of(owner, &clock, NewClock { deferred_name: &deferred, due_at_ms, completed_at }, true)?;
        Ok(true)
    }

    fn read_deferred(&mut self, reader: &mut Reader<'_>) -> Result<bool, NoFold> {
        const WANTED: [&[u8]; 7] = [
            b"flowName",
            b"executionId",
            b"deferredName",
            b"completedAtMs",
            b"exitDigest",
            b"metadataDigest",
            b"consumedAtMs",
        ];
        let Some([flow, execution, deferred, completed, exit, metadata, consumed]) = reader.members(&WANTED)? else {
            return Ok(false);
        };
        let (Some(flow), Some(execution), Some(deferred)) = (name(flow), name(execution), name(deferred)) else {
            return Ok(false);
        };
        let (Some(completed_at), Some(consumed_at)) = (stamp(completed), stamp(consumed)) else { return Ok(false) };
        let exit = match (exit, digest(exit)) {
            (None, _) => Recorded::Absent,
            (Some(_), Some(digest)) => Recorded::Digest(digest),
            (Some(_), None) => return Ok(false),
        };
        let metadata = match (metadata, digest(metadata)) {
            (None, _) => Recorded::Absent,
            (Some(Raw::Null), _) => Recorded::Null,
            (Some(_), Some(digest)) => Recorded::Digest(digest),
            (Some(_), None) => return Ok(false),
        };
        let exit_gap = if exit == Recorded::Absent { DigestGap::Absent } else { DigestGap::None };
        let owner = self.owner(&flow, &execution)?;
        self.add_deferred_of(owner, &deferred, NewDeferred { completed_at, consumed_at, exit, exit_gap, metadata }, true)?;
        Ok(true)
    }

    /// The encoded fold as JSON text: rows in fold order, members in their fixed order, an absent digest left out.
    pub fn write_encoded(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"clocks\":[");
        for (index, clock) in self.clocks().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_clock(clock, out);
        }
        out.extend_from_slice(b"],\"deferreds\":[");
        for (index, deferred) in self.deferreds().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_deferred(deferred, out);
        }
        out.extend_from_slice(b"]}");
    }

    /// One clock row as JSON text.
    pub fn write_clock(&self, clock: &Clock, out: &mut Vec<u8>) {
        let key = self.key(clock.address);
        write_address(key, b"clockName", out);
        out.extend_from_slice(b",\"deferredName\":");
        write_text(out, self.name(clock.deferred_name));
        out.extend_from_slice(b",\"dueAtMs\":");
        write_integer(out, clock.due_at_ms);
        out.extend_from_slice(b",\"completedAtMs\":");
        write_stamp(out, clock.completed_at);
        out.push(b'}');
    }

    /// One completion row as JSON text.
    pub fn write_deferred(&self, deferred: &Deferred, out: &mut Vec<u8>) {
        let key = self.key(deferred.address);
        write_address(key, b"deferredName", out);
        out.extend_from_slice(b",\"completedAtMs\":");
        write_stamp(out, deferred.completed_at);
        write_digest(out, b",\"exitDigest\":", deferred.exit);
        write_digest(out, b",\"metadataDigest\":", deferred.metadata);
        out.extend_from_slice(b",\"consumedAtMs\":");
        write_stamp(out, deferred.consumed_at);
        out.push(b'}');
    }
}

fn judge_utf8(text: &[u8]) -> Result<(), NoFold> {
    match first_invalid_utf8(text) {
        None => Ok(()),
        Some(offset) => Err(NoFold::NotUtf8(offset)),
    }
}

/// A kept stamp: null or a time, but there.
fn stamp(value: Option<Raw<'_>>) -> Option<Stamp> {
    match value {
        Some(Raw::Null) => Some(Stamp::NONE),
        other => time(other).map(Stamp::at),
    }
}

fn write_address(key: Key<'_>, name_member: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"flowName\":");
    write_text(out, key.flow);
    out.extend_from_slice(b",\"executionId\":");
    write_text(out, key.execution);
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name_member);
    out.extend_from_slice(b"\":");
    write_text(out, key.name);
}

/// Writes a stamp: a whole number or `null`.
pub(super) fn write_stamp(out: &mut Vec<u8>, stamp: Stamp) {
    match stamp.ms() {
        Some(ms) => write_integer(out, ms),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_digest(out: &mut Vec<u8>, member: &[u8], recorded: Recorded) {
    match recorded {
        Recorded::Absent => {}
        Recorded::Null => {
            out.extend_from_slice(member);
            out.extend_from_slice(b"null");
        }
        Recorded::Digest(digest) => {
            out.extend_from_slice(member);
            out.push(b'"');
            out.extend_from_slice(&to_hex(&digest));
            out.push(b'"');
        }
    }
}

/// Puts an encoded fold into a state's text, whose own spelling is kept: in the place where the base already has the key, else
/// at its end. A base that is no JSON object is [`Code::BaseNotObject`]; without a base the state holds the fold alone.
pub fn put_into_state(base: Option<&[u8]>, encoded: &[u8]) -> Result<Vec<u8>, Error> {
    let base = base.unwrap_or(b"{}");
    if let Some(offset) = first_invalid_utf8(base) {
        let mut made = Error::new(Code::BaseNotObject, "a JSON object in UTF-8 as the base", found_byte(base.get(offset).copied()));
        made.offset = Some(offset as u64);
        return Err(made);
    }
    let place = find_place(base).map_err(|error| {
        let mut made = Error::syntax(Code::BaseNotObject, &error);
        made.expected = format!("a JSON object as the base: {}", made.expected);
        made
    })?;
    let Some(place) = place else {
        return Err(Error::new(Code::BaseNotObject, "a JSON object as the base", "other JSON"));
    };
    let (before, value, after) = match place {
        Place::Value { start, end } => (base.get(..start), Cow::Borrowed(encoded), base.get(end..)),
        Place::End { at, empty } => {
            let mut member = Vec::with_capacity(encoded.len().saturating_add(40));
            if !empty {
                member.push(b',');
            }
            write_text(&mut member, CHECKPOINT_KEY.as_bytes());
            member.push(b':');
            member.extend_from_slice(encoded);
            (base.get(..at), Cow::Owned(member), base.get(at..))
        }
    };
    Ok([before.unwrap_or_default(), &value, after.unwrap_or_default()].concat())
}

enum Place {
    /// The key is there: its last value, which is the one that counts.
    Value { start: usize, end: usize },
    /// The key is not there: before the closing brace.
    End { at: usize, empty: bool },
}

fn find_place(base: &[u8]) -> Result<Option<Place>, SyntaxError> {
    let mut reader = Reader::new(base);
    let Some(mut members) = reader.enter_object() else {
        reader.value()?;
        reader.end()?;
        return Ok(None);
    };
    let mut place = None;
    let mut empty = true;
    while let Some(member) = reader.member(&mut members)? {
        empty = false;
        reader.white_space();
        let start = reader.offset();
        reader.value()?;
        if member.equals(CHECKPOINT_KEY.as_bytes()) {
            place = Some(Place::Value { start, end: reader.offset() });
        }
    }
    let end = Place::End { at: reader.offset().saturating_sub(1), empty };
    reader.end()?;
    Ok(Some(place.unwrap_or(end)))
}

/// One way in which a checkpoint's fold and the entries' fold differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The row as the entries give it, as JSON text; `None` when they give none there.
    pub expected: Option<Vec<u8>>,
    /// The row as the checkpoint keeps it; `None` when it keeps none there.
    pub found: Option<Vec<u8>>,
}

/// Compares two folds row by row in fold order, which is part of what a checkpoint keeps: empty when they are the same.
pub fn differences(expected: &Fold, found: &Fold) -> Vec<Difference> {
    let mut all = Vec::new();
    compare_lists(expected.clocks(), found.clocks(), |fold, row, out| fold.write_clock(row, out), expected, found, &mut all);
    compare_lists(
        expected.deferreds(),
        found.deferreds(),
        |fold, row, out| fold.write_deferred(row, out),
        expected,
        found,
        &mut all,
    );
    all
}

fn compare_lists<Row>(
    expected: &[Row],
    found: &[Row],
    write: fn(&Fold, &Row, &mut Vec<u8>),
    expected_fold: &Fold,
    found_fold: &Fold,
    all: &mut Vec<Difference>,
) {
    let text = |fold: &Fold, row: Option<&Row>| {
        row.map(|row| {
            let mut out = Vec::new();
            write(fold, row, &mut out);
            out
        })
    };
    for index in 0..expected.len().max(found.len()) {
        let expected = text(expected_fold, expected.get(index));
        let found = text(found_fold, found.get(index));
        if expected != found {
            all.push(Difference { expected, found });
        }
    }
}
