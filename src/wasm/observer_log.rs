//! The observer log's rows, aggregates, cadence and verification.
//!
//! Numbers cross as `bigint`s or as whole words in the inbox, exact up to 2^64-1; in JSON they are decimal text.

use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::errors::{thrown, thrown_failure, thrown_refusal};
use super::objects::{self, keep, Object};
use super::{encode, inbox};
use crate::digest::{sorted_rows_sha256, to_hex, StateDigest};
use crate::error::{Code, Error};
use crate::json::Writer;
use crate::observer_log::aggregate::{Aggregate, Pair};
use crate::observer_log::append::Append;
use crate::observer_log::cadence;
use crate::observer_log::live::{Pending, RecoverLimits, Rejection};
use crate::observer_log::protocol::flat;
use crate::observer_log::rebuild::Rebuild;
use crate::observer_log::reduce::Fold;
use crate::observer_log::row::{Row, RowRef};
use crate::observer_log::{Failure, Live, RowReader, Rows};

/// Pairs that stand in the inbox as two words each.
pub(super) fn pairs(words: &[u64]) -> Vec<Pair> {
    words.as_chunks::<2>().0.iter().map(|[id, value]| (*id, *value)).collect()
}

/// The row in the inbox: of a `track` (0) or `advance` (1) its two numbers, of `arms` (2) its pairs, of a `snapshot` (3) the pairs
/// of `progress` and those of `armed` behind them.
pub(super) fn row(kind: u8, first: usize, second: usize) -> Result<Row, Error> {
    inbox::with(|inbox| {
        let all = inbox.words(first.saturating_add(second).saturating_mul(2));
        let (first, second) = all.split_at_checked(first.saturating_mul(2)).unwrap_or((all, &[]));
        match (kind, first) {
            (0, &[conversation_id, progress]) => Ok(Row::Track { conversation_id, progress }),
            (1, &[conversation_id, progress]) => Ok(Row::Advance { conversation_id, progress }),
            (2, _) => Ok(Row::Arms(pairs(first))),
            (3, _) => Ok(Row::Snapshot { progress: pairs(first), armed: pairs(second) }),
            _ => Err(Error::new(Code::ArgumentInvalid, "a kind of row from 0 to 3 and its numbers", kind.to_string())),
        }
    })
}

/// Reads the `count` rows in the inbox, laid out as a page of entries whose types nobody looks at, with `length` bytes of payloads.
pub(super) fn with_rows<T>(
    count: usize,
    length: usize,
    call: impl FnOnce(&Rows<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    inbox::with(|inbox| {
        let payloads = inbox.bytes(count.saturating_mul(13), length);
        call(&Rows::new(payloads, inbox.ends(count, count), inbox.words(count))?)
    })
}

/// A row's stored text.
#[wasm_bindgen]
pub fn row_encode(kind: u8, first: usize, second: usize) -> Result<String, JsValue> {
    row(kind, first, second).map(|row| encode::text(row.encode())).map_err(thrown)
}

/// The row whose stored text is in the inbox, as a JSON object. `sequence` is where it stands, if that is known.
#[wasm_bindgen]
pub fn row_decode(length: usize, sequence: Option<u64>) -> Result<String, JsValue> {
    inbox::with(|inbox| {
        let mut reader = RowReader::new();
        match reader.read(inbox.bytes(0, length)) {
            Ok(row) => {
                let mut out = Writer::new();
                row.write(&mut out);
                Ok(encode::text(out.into_bytes()))
            }
            Err(fault) => {
                let failure = Failure::Row { sequence: sequence.unwrap_or(0), fault };
                let mut error = Error::from(failure);
                error.seq = sequence;
                Err(thrown_failure(&error, &failure))
            }
        }
    })
}

/// Whether a snapshot is due at a head.
#[wasm_bindgen]
pub fn snapshot_due(head: u64) -> bool {
    cadence::snapshot_due(head)
}

/// The head after some rows, with the snapshots that fall due on the way; nothing beyond 2^64-1.
#[wasm_bindgen]
pub fn head_after(head: u64, rows: u64) -> Option<u64> {
    cadence::head_after(head, rows)
}

/// An aggregate from its lists: pairs in the inbox, those of `progress` first.
#[wasm_bindgen]
pub fn live_new(progress: usize, armed: usize) -> Result<u32, JsValue> {
    let made = inbox::with(|inbox| {
        let all = inbox.words(progress.saturating_add(armed).saturating_mul(2));
        let (progress, armed) = all.split_at_checked(progress.saturating_mul(2)).unwrap_or((all, &[]));
        Aggregate::from_lists(&pairs(progress), &pairs(armed))
    });
    match made {
        Ok(aggregate) => Ok(keep(Object::Live(Box::new(Live::new(aggregate))))),
        Err(refusal) => Err(thrown_refusal(&refusal)),
    }
}

/// The aggregate of the snapshot row whose stored text is in the inbox; nothing when it is another row.
#[wasm_bindgen]
pub fn live_of_snapshot(length: usize) -> Result<Option<u32>, JsValue> {
    inbox::with(|inbox| {
        let mut reader = RowReader::new();
        let fault = |failure: Failure| {
            let mut error = Error::from(failure);
            error.seq = None;
            thrown_failure(&error, &failure)
        };
        match reader.read(inbox.bytes(0, length)) {
            Ok(RowRef::Snapshot { progress, armed }) => Aggregate::from_lists(progress, armed)
                .map(|aggregate| Some(keep(Object::Live(Box::new(Live::new(aggregate))))))
                .map_err(|refusal| thrown_refusal(&refusal)),
            Ok(_) => Ok(None),
            Err(row) => Err(fault(Failure::Row { sequence: 0, fault: row })),
        }
    })
}

/// Another aggregate in the same state, without the pending change.
#[wasm_bindgen]
pub fn live_clone(number: u32) -> Result<u32, JsValue> {
    let aggregate = objects::live(number, |live| Ok(live.aggregate().clone()))?;
    Ok(keep(Object::Live(Box::new(Live::new(aggregate)))))
}

/// Folds the rows in the inbox onto an aggregate, the first of them at `next` if that is given, and gives the sequence behind the
/// last. Rows before a fault stay folded.
#[wasm_bindgen]
pub fn live_fold(number: u32, count: usize, length: usize, next: Option<u64>) -> Result<Option<u64>, JsValue> {
    let mut failed = None;
    let folded = objects::live(number, |live| {
        if live.pending().is_some() {
            return Err(Error::new(Code::CallOutOfOrder, "the end of the pending change", "rows to fold"));
        }
        with_rows(count, length, |rows| {
            let Some(first) = next.or_else(|| rows.iter().next().map(|row| row.sequence)) else { return Ok(next) };
            let mut fold = Fold::from(std::mem::take(live).into_aggregate(), first);
            failed = fold.push_page(rows).err();
            let next = fold.next();
            *live = Live::new(fold.into_aggregate());
            Ok(Some(next))
        })
    });
    match failed {
        Some(failure) => Err(thrown_failure(&Error::from(failure), &failure)),
        None => folded,
    }
}

/// A conversation's progress; nothing when it is not tracked.
#[wasm_bindgen]
pub fn live_progress(number: u32, conversation: u64) -> Result<Option<u64>, JsValue> {
    objects::live(number, |live| Ok(live.aggregate().progress(conversation)))
}

/// The epoch of a conversation's arm; nothing when it has none.
#[wasm_bindgen]
pub fn live_armed(number: u32, conversation: u64) -> Result<Option<u64>, JsValue> {
    objects::live(number, |live| Ok(live.aggregate().armed(conversation)))
}

/// How many conversations are tracked, or armed.
#[wasm_bindgen]
pub fn live_count(number: u32, armed: bool) -> Result<usize, JsValue> {
    objects::live(number, |live| Ok(if armed { live.aggregate().armed_len() } else { live.aggregate().len() }))
}

/// Every tracked conversation with its progress, or every armed one with its epoch: two numbers each, in ascending order.
#[wasm_bindgen]
pub fn live_list(number: u32, armed: bool) -> Result<Vec<u64>, JsValue> {
    objects::live(number, |live| {
        let aggregate = live.aggregate();
        Ok(flat(&if armed { aggregate.armed_list() } else { aggregate.progress_list() }))
    })
}

/// The stored text of the snapshot row that restates the aggregate.
#[wasm_bindgen]
pub fn live_snapshot(number: u32) -> Result<String, JsValue> {
    objects::live(number, |live| Ok(encode::text(live.aggregate().snapshot().encode())))
}

/// The digest of the aggregate.
#[wasm_bindgen]
pub fn live_digest(number: u32, sha256: bool) -> Result<String, JsValue> {
    objects::live(number, |live| {
        let mut out = Writer::new();
        if sha256 {
            encode::state_digest(&mut out, "sha256", &to_hex(&sorted_rows_sha256(live.aggregate().canonical_rows())));
        } else {
            encode::state_digest(&mut out, StateDigest::ALGORITHM, &live.aggregate().digest().to_hex());
        }
        Ok(encode::text(out.into_bytes()))
    })
}

fn pending(pending: &Pending) -> String {
    let mut out = Writer::new();
    let mut payload = Vec::new();
    pending.row().encode_to(&mut payload);
    out.open_object().name(b"payload").text(&payload);
    if let Some(fired) = pending.would_fire() {
        fired.write(out.name(b"wouldFire"));
    }
    out.name(b"statuses").open_array();
    for status in pending.statuses() {
        status.write(&mut out);
    }
    out.close_array().close_object();
    encode::text(out.into_bytes())
}

fn asked<T>(
    number: u32,
    ask: impl FnOnce(&mut Live) -> Result<T, Rejection>,
) -> Result<T, JsValue> {
    let mut refused = None;
    let asked = objects::live(number, |live| {
        ask(live).map_err(|rejection| match rejection {
            Rejection::Refused(refusal) => {
                refused = Some(refusal);
                Error::from(refusal)
            }
            Rejection::Misplaced(error) => error,
        })
    });
    match refused {
        Some(refusal) => Err(thrown_refusal(&refusal)),
        None => asked,
    }
}

/// Asks for a conversation to be tracked; the pending change.
#[wasm_bindgen]
pub fn live_track(number: u32, conversation: u64, progress: u64) -> Result<String, JsValue> {
    asked(number, |live| live.track(conversation, progress).map(pending))
}

/// Asks for a conversation's progress to grow; the pending change.
#[wasm_bindgen]
pub fn live_advance(number: u32, conversation: u64, progress: u64) -> Result<String, JsValue> {
    asked(number, |live| live.advance(conversation, progress).map(pending))
}

/// Asks for arms: `entries` pairs in the inbox, then the conversations that the connection tracks; the pending change.
#[wasm_bindgen]
pub fn live_recover(
    number: u32,
    entries: usize,
    tracks: usize,
    max_entries: u64,
    connection_limit: u64,
) -> Result<String, JsValue> {
    let (entries, tracks) = recover_request(entries, tracks);
    let limits = RecoverLimits { max_entries, connection_limit, connection_tracks: &tracks };
    asked(number, |live| live.recover(&entries, &limits).map(pending))
}

/// A recover request from the inbox.
pub(super) fn recover_request(entries: usize, tracks: usize) -> (Vec<Pair>, Vec<u64>) {
    inbox::with(|inbox| {
        let all = inbox.words(entries.saturating_mul(2).saturating_add(tracks));
        let (entries, tracks) = all.split_at_checked(entries.saturating_mul(2)).unwrap_or((all, &[]));
        (pairs(entries), tracks.to_vec())
    })
}

/// Makes the pending change, or drops it.
#[wasm_bindgen]
pub fn live_end(number: u32, commit: bool) -> Result<(), JsValue> {
    objects::live(number, |live| if commit { live.commit() } else { live.abort() }.map(drop))
}

/// Judges an append at a head and gives its payloads, joined by line feeds, which no payload has: the snapshot when one is due, and
/// the row in the inbox behind it. The aggregate gives the snapshot.
#[wasm_bindgen]
pub fn plan_append(number: u32, head: u64, kind: u8, first: usize, second: usize) -> Result<String, JsValue> {
    let row = row(kind, first, second).map_err(thrown)?;
    let snapshot = objects::live(number, |live| Ok(cadence::snapshot_before(head, live.aggregate())))?;
    if let Err(failure) = Append::new(head, row.as_ref(), snapshot.as_ref().map(Row::as_ref)) {
        return Err(thrown_failure(&Error::from(failure), &failure));
    }
    let mut out = snapshot.map(|snapshot| snapshot.encode()).unwrap_or_default();
    if !out.is_empty() {
        out.push(b'\n');
    }
    row.as_ref().encode_to(&mut out);
    Ok(encode::text(out))
}

/// A verification of a stream. The hint is judged when `judge_hint` says so; it may be none.
#[wasm_bindgen]
pub fn stream_rebuild_new(judge_hint: bool, hint: Option<u64>) -> u32 {
    keep(Object::StreamRebuild(Box::new(Rebuild::new(judge_hint.then_some(hint)))))
}

/// Looks at the rows in the inbox; gives the sequence that comes next.
#[wasm_bindgen]
pub fn stream_rebuild_push(number: u32, count: usize, length: usize) -> Result<u64, JsValue> {
    objects::stream_rebuild(number, |rebuild| {
        with_rows(count, length, |rows| {
            rebuild.push_page(rows);
            Ok(rebuild.next())
        })
    })
}

/// Says of the rows pushed since the last such call that they were a store's answer, which was asked for so many.
#[wasm_bindgen]
pub fn stream_rebuild_answered(number: u32, asked: f64, found: f64) -> Result<(), JsValue> {
    objects::stream_rebuild(number, |rebuild| {
        // Counts of rows in memory: whole and small.
        rebuild.answered(asked as u64, found as u64);
        Ok(())
    })
}

/// Ends the verification and gives what it found; it is gone. The stored head is compared when `compare_head` says so; it may be
/// none. With `partial` not everything was looked at.
#[wasm_bindgen]
pub fn stream_rebuild_finish(
    number: u32,
    compare_head: bool,
    head: Option<u64>,
    partial: bool,
) -> Result<String, JsValue> {
    let Some(Object::StreamRebuild(rebuild)) = objects::take(number) else {
        return Err(thrown(Error::new(Code::Disposed, "a verification that is there", "one that is over")));
    };
    let verification = if partial { rebuild.finish_partial() } else { rebuild.finish(compare_head.then_some(head)) };
    let mut out = Writer::new();
    verification.write(&mut out);
    Ok(encode::text(out.into_bytes()))
}
