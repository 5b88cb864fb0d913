//! The observer log's machines: the host asks what is wanted, does just that with its store, and answers.

use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::objects::{self, keep, Object};
use super::observer_log::{recover_request, with_rows};
use super::{encode, errors, inbox};
use crate::error::{Code, Error};
use crate::json::Writer;
use crate::observer_log::append::Append;
use crate::observer_log::change::Change;
use crate::observer_log::log::Standing;
use crate::observer_log::protocol::{Answer, StoredRow, Want};
use crate::observer_log::recover::Recover;
use crate::observer_log::restore::Restore;
use crate::observer_log::row::Row;
use crate::observer_log::{Failure, Live, Log};

/// One of the machines.
pub(super) enum Machine {
    Log(Log),
    Restore(Box<Restore>),
    Append(Append),
    Recover(Recover),
}

impl Machine {
    fn want(&self) -> Option<Want<'_>> {
        match self {
            Machine::Log(log) => log.want(),
            Machine::Restore(restore) => restore.want(),
            Machine::Append(append) => append.want(),
            Machine::Recover(recover) => recover.want(),
        }
    }

    fn answer(&mut self, answer: Answer<'_>) {
        match self {
            Machine::Log(log) => log.answer(answer),
            Machine::Restore(restore) => restore.answer(answer),
            Machine::Append(append) => append.answer(answer),
            Machine::Recover(recover) => recover.answer(answer),
        }
    }
}

fn machine(machine: Machine) -> u32 {
    keep(Object::Machine(Box::new(machine)))
}

/// A stream of which nothing is known yet.
#[wasm_bindgen]
pub fn log_new() -> u32 {
    machine(Machine::Log(Log::new()))
}

/// A restore.
#[wasm_bindgen]
pub fn restore_new() -> u32 {
    machine(Machine::Restore(Box::default()))
}

/// An append at a head: of the row whose stored text of `payload` bytes is in the inbox, and of the snapshot whose text of `snapshot`
/// bytes stands behind it, if there is one.
#[wasm_bindgen]
pub fn append_new(head: u64, payload: usize, snapshot: usize) -> Result<u32, JsValue> {
    let read = |start: usize, length: usize| {
        inbox::with(|inbox| {
            let mut reader = crate::observer_log::RowReader::new();
            reader.read(inbox.bytes(start, length)).map(|row| row.to_row())
        })
    };
    let thrown = |failure: Failure| errors::thrown_failure(&Error::from(failure), &failure);
    let row_fault = |fault| thrown(Failure::Row { sequence: head, fault });
    let row = read(0, payload).map_err(row_fault)?;
    let snapshot = (snapshot > 0).then(|| read(payload, snapshot)).transpose().map_err(row_fault)?;
    let append = Append::new(head, row.as_ref(), snapshot.as_ref().map(Row::as_ref)).map_err(thrown)?;
    Ok(machine(Machine::Append(append)))
}

/// A tail recovery of an append that was issued at a head, from the aggregate as it was before.
#[wasm_bindgen]
pub fn recover_new(live: u32, head: u64) -> Result<u32, JsValue> {
    let aggregate = objects::live(live, |live| Ok(live.aggregate().clone()))?;
    Ok(machine(Machine::Recover(Recover::new(aggregate, head))))
}

/// What the machine wants next: the call's number and its two arguments ([`Want::record`]); nothing when it is over.
#[wasm_bindgen]
pub fn machine_want(number: u32) -> Result<Vec<u64>, JsValue> {
    objects::machine(number, |machine| Ok(machine.want().map(|want| want.record().to_vec()).unwrap_or_default()))
}

/// The payloads of the append that is wanted, joined.
#[wasm_bindgen]
pub fn machine_payloads(number: u32) -> Result<Vec<u8>, JsValue> {
    objects::machine(number, |machine| match machine.want() {
        Some(Want::AppendAll { payloads, .. }) => Ok(payloads.bytes().to_vec()),
        _ => Err(Error::new(Code::CallOutOfOrder, "an append that is wanted", "none")),
    })
}

/// Where each payload of the append that is wanted ends.
#[wasm_bindgen]
pub fn machine_payload_ends(number: u32) -> Result<Vec<u32>, JsValue> {
    objects::machine(number, |machine| match machine.want() {
        Some(Want::AppendAll { payloads, .. }) => {
            Ok(payloads.ends().iter().map(|end| u32::try_from(*end).unwrap_or(u32::MAX)).collect())
        }
        _ => Err(Error::new(Code::CallOutOfOrder, "an append that is wanted", "none")),
    })
}

/// Answers with rows in the inbox.
#[wasm_bindgen]
pub fn machine_answer_rows(number: u32, count: usize, length: usize) -> Result<(), JsValue> {
    objects::machine(number, |machine| {
        with_rows(count, length, |rows| {
            machine.answer(Answer::Rows(*rows));
            Ok(())
        })
    })
}

/// Answers with the one row whose payload is in the inbox.
#[wasm_bindgen]
pub fn machine_answer_row(number: u32, sequence: u64, length: usize) -> Result<(), JsValue> {
    objects::machine(number, |machine| {
        inbox::with(|inbox| machine.answer(Answer::Row(Some(StoredRow { sequence, payload: inbox.bytes(0, length) }))));
        Ok(())
    })
}

/// Answers without rows: a stored number (0), no row (1), the head (2), a new head (3), flushed (4), swapped (5), a conflict over
/// the head (6) or the number (7), outcome unknown (8), failed (9).
#[wasm_bindgen]
pub fn machine_answer(number: u32, kind: u8, value: Option<u64>) -> Result<(), JsValue> {
    let given = value.unwrap_or(0);
    let answer = match kind {
        0 => Answer::Value(value),
        1 => Answer::Row(None),
        2 => Answer::Head(value),
        3 => Answer::Appended(given),
        4 => Answer::Flushed,
        5 => Answer::Swapped,
        6 => Answer::SequenceConflict { actual: given },
        7 => Answer::ValueConflict { actual: given },
        8 => Answer::OutcomeUnknown,
        _ => Answer::Failed,
    };
    objects::machine(number, |machine| {
        machine.answer(answer);
        Ok(())
    })
}

fn log<T>(number: u32, call: impl FnOnce(&mut Log) -> Result<T, Error>) -> Result<T, JsValue> {
    objects::machine(number, |machine| match machine {
        Machine::Log(log) => call(log),
        _ => Err(Error::new(Code::CallOutOfOrder, "a log", "another machine")),
    })
}

/// Begins a change of a log: nothing but that it is restored and settled (0), a `track` (1) or an `advance` (2).
#[wasm_bindgen]
pub fn log_begin(number: u32, kind: u8, conversation: u64, progress: u64) -> Result<(), JsValue> {
    let change = match kind {
        0 => Change::Open,
        1 => Change::Track { conversation_id: conversation, progress },
        _ => Change::Advance { conversation_id: conversation, progress },
    };
    log(number, |log| log.begin(change))
}

/// Begins a recover request, laid out in the inbox as for `live_recover`.
#[wasm_bindgen]
pub fn log_begin_recover(
    number: u32,
    entries: usize,
    tracks: usize,
    max_entries: u64,
    connection_limit: u64,
) -> Result<(), JsValue> {
    let (entries, connection_tracks) = recover_request(entries, tracks);
    log(number, |log| log.begin(Change::Recover { entries, max_entries, connection_limit, connection_tracks }))
}

/// The outcome of the change of a log that is over.
#[wasm_bindgen]
pub fn log_outcome(number: u32) -> Result<String, JsValue> {
    log(number, |log| match log.take_outcome() {
        Some(outcome) => {
            let mut out = Writer::new();
            outcome.write(&mut out);
            Ok(encode::text(out.into_bytes()))
        }
        None => Err(Error::new(Code::CallOutOfOrder, "a change that is over", "none")),
    })
}

/// Another aggregate in the state of a log.
#[wasm_bindgen]
pub fn log_aggregate(number: u32) -> Result<u32, JsValue> {
    let aggregate = log(number, |log| Ok(log.aggregate().clone()))?;
    Ok(keep(Object::Live(Box::new(Live::new(aggregate)))))
}

/// A conversation's progress in a log, or with `armed` the epoch of its arm.
#[wasm_bindgen]
pub fn log_progress(number: u32, conversation: u64, armed: bool) -> Result<Option<u64>, JsValue> {
    log(number, |log| {
        let aggregate = log.aggregate();
        Ok(if armed { aggregate.armed(conversation) } else { aggregate.progress(conversation) })
    })
}

/// The sequence that the next row of a log takes, if that is sure.
#[wasm_bindgen]
pub fn log_head(number: u32) -> Result<Option<u64>, JsValue> {
    log(number, |log| Ok(log.head()))
}

/// How sure the state of a log is: 0 closed, 1 ready, 2 unsettled.
#[wasm_bindgen]
pub fn log_standing(number: u32) -> Result<u8, JsValue> {
    log(number, |log| {
        Ok(match log.standing() {
            Standing::Closed => 0,
            Standing::Ready => 1,
            Standing::Unsettled => 2,
        })
    })
}

/// The result of a restore, an append or a tail recovery that is over: a JSON object with `error`, or with what it came to. Of a restore
/// and a recovery there is an aggregate, whose number is under `aggregate`; the machine is gone then.
#[wasm_bindgen]
pub fn machine_result(number: u32) -> Result<String, JsValue> {
    let Some(Object::Machine(taken)) = objects::take(number) else {
        return Err(errors::thrown(Error::new(Code::Disposed, "a machine that is there", "one that is over")));
    };
    let mut out = Writer::new();
    out.open_object();
    match *taken {
        Machine::Restore(restore) => {
            if let Some(hint) = restore.hint() {
                out.name(b"hint").text(hint.as_str().as_bytes());
            }
            if let Some(from) = restore.folded_from() {
                out.name(b"foldedFrom").decimal_text(from);
            }
            match restore.into_result() {
                Ok(Ok(restored)) => {
                    out.name(b"head").decimal_text(restored.head).name(b"rows").decimal_text(restored.rows);
                    out.name(b"snapshotAppended").boolean(restored.snapshot_appended);
                    out.name(b"hintFailures").integer(restored.hint_failures);
                    kept(&mut out, Live::new(restored.aggregate));
                }
                Ok(Err(failure)) => failure.write(out.name(b"error")),
                Err(_) => return Err(unfinished()),
            }
        }
        Machine::Append(append) => match append.result() {
            Some(Ok(appended)) => {
                out.name(b"head").decimal_text(appended.next_head).name(b"hintFailures").integer(appended.hint_failures);
            }
            Some(Err(failure)) => failure.write(out.name(b"error")),
            None => return Err(unfinished()),
        },
        Machine::Recover(recover) => {
            match recover.result() {
                Some(Ok(Some(publication))) => publication.write(out.name(b"publication")),
                Some(Ok(None)) => {}
                Some(Err(failure)) => failure.write(out.name(b"error")),
                None => return Err(unfinished()),
            }
            let (aggregate, head) = recover.into_parts();
            out.name(b"head").decimal_text(head);
            kept(&mut out, Live::new(aggregate));
        }
        Machine::Log(_) => return Err(unfinished()),
    }
    out.close_object();
    Ok(encode::text(out.into_bytes()))
}

fn kept(out: &mut Writer, live: Live) {
    out.name(b"aggregate").integer(u64::from(keep(Object::Live(Box::new(live)))));
}

fn unfinished() -> JsValue {
    errors::thrown(Error::new(Code::CallOutOfOrder, "the end of the work", "its result asked for"))
}
