//! The fold's calls.

use std::cell::RefCell;

use serde::Deserialize;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::JsValue;

use super::errors::thrown;
use super::objects::{self, keep, Object};
use super::{encode, inbox};
use crate::deferred_clock::checkpoint::differences;
use crate::deferred_clock::rebuild::{Baseline, Options, Rebuild, StoredClock, StoredCompletion};
use crate::deferred_clock::state::Key;
use crate::deferred_clock::{put_into_state, EventType, Fold, RunFold, CHECKPOINT_KEY};
use crate::digest::{from_hex, sorted_rows_sha256, to_hex, StateDigest};
use crate::error::{Code, Error};
use crate::journal::{Bound, Floor, Lists, Page, Seq, MAX_SEQ};
use crate::json::{write_text, Raw, Reader, SyntaxError, Writer};

struct StagedFloor {
    seq: Seq,
    compacted: bool,
    state: Vec<u8>,
}

thread_local! {
    static FLOORS: RefCell<Vec<StagedFloor>> = const { RefCell::new(Vec::new()) };
    static LISTS: RefCell<Lists> = RefCell::default();
}

/// The four event types, by their numbers, and the key of a kept fold behind them.
#[wasm_bindgen]
pub fn deferred_clock_names() -> Vec<String> {
    EventType::ALL.iter().map(|event| event.name()).chain([CHECKPOINT_KEY]).map(String::from).collect()
}

/// Stages a checkpoint for the next run to begin; its state's text is in the inbox. What is no UTF-8 is no JSON either.
#[wasm_bindgen]
pub fn stage_floor(seq: i64, compacted: bool, state_length: usize) {
    let state = inbox::with(|inbox| inbox.bytes(0, state_length).to_vec());
    // The host has looked at the seq: a negative one never comes here.
    FLOORS.with_borrow_mut(|floors| floors.push(StagedFloor { seq: (seq as u64).min(MAX_SEQ), compacted, state }));
}

/// Takes the staged checkpoints, whatever becomes of the call: none is left for another run.
fn with_floors<T>(call: impl FnOnce(&mut dyn Iterator<Item = Floor<'_>>) -> T) -> T {
    let staged = FLOORS.take();
    let mut floors = staged.iter().map(|floor| Floor {
        seq: floor.seq,
        compacted: floor.compacted,
        state: if std::str::from_utf8(&floor.state).is_ok() { &floor.state } else { &[0xff] },
    });
    call(&mut floors)
}

/// A new run without entries.
#[wasm_bindgen]
pub fn run_new() -> u32 {
    keep(Object::Run(Box::new(RunFold::new())))
}

/// Begins a run, whose id is in the inbox, from the staged checkpoints. A bound that is not a number is none.
#[wasm_bindgen]
pub fn run_begin(number: u32, id_length: usize, bound: Option<f64>) -> Result<(), JsValue> {
    with_floors(|floors| {
        objects::run(number, |run| {
            let bound = bound.map(Bound::new).transpose()?;
            inbox::with(|inbox| run.begin(inbox.bytes(0, id_length), Floor::pick(floors), bound))
        })
    })
}

/// Begins from an encoded fold in the inbox.
#[wasm_bindgen]
pub fn run_begin_from(number: u32, length: usize) -> Result<(), JsValue> {
    objects::run(number, |run| inbox::with(|inbox| run.begin_from(inbox.bytes(0, length))))
}

/// Folds a page from the inbox: `rows` seqs (8 bytes each), ends (4), types (1), then `length` bytes of payloads. `utf8` says that the
/// host encoded each payload as UTF-8 itself, so that nobody need look.
#[wasm_bindgen]
pub fn run_push(number: u32, rows: usize, length: usize, utf8: bool) -> Result<(), JsValue> {
    objects::run(number, |run| with_page(rows, length, utf8, |page| run.push(page)))
}

/// Folds entries of a page in the order given and checks no order.
#[wasm_bindgen]
pub fn run_reduce(number: u32, rows: usize, length: usize, utf8: bool) -> Result<(), JsValue> {
    objects::run(number, |run| with_page(rows, length, utf8, |page| run.reduce(page)))
}

fn with_page<T>(
    rows: usize,
    length: usize,
    utf8: bool,
    call: impl FnOnce(&Page<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    inbox::with(|inbox| {
        let types = inbox.bytes(rows.saturating_mul(12), rows);
        let bytes = inbox.bytes(rows.saturating_mul(13), length);
        let page = if utf8 { Page::of_texts } else { Page::new };
        call(&page(bytes, inbox.ends(rows, rows), inbox.seqs(rows), types)?)
    })
}

/// The encoded fold.
#[wasm_bindgen]
pub fn run_state(number: u32) -> Result<String, JsValue> {
    objects::run(number, |run| Ok(encode::text(encoded(run.fold()))))
}

fn encoded(fold: &Fold) -> Vec<u8> {
    let mut out = Vec::new();
    fold.write_encoded(&mut out);
    out
}

/// A checkpoint's state that keeps the fold: the base in the inbox with the fold in it, or the fold alone.
#[wasm_bindgen]
pub fn run_checkpoint(number: u32, base_length: Option<usize>) -> Result<String, JsValue> {
    objects::run(number, |run| {
        inbox::with(|inbox| {
            let base = base_length.map(|length| inbox.bytes(0, length));
            put_into_state(base, &encoded(run.fold())).map(encode::text)
        })
    })
}

/// Compares the fold that the checkpoint state in the inbox keeps with the run's: a JSON object of `matches`, `found` (why no
/// fold was found) and `differences`.
#[wasm_bindgen]
pub fn run_check_checkpoint(number: u32, length: usize) -> Result<String, JsValue> {
    objects::run(number, |run| {
        let mut kept = Fold::new();
        let read = inbox::with(|inbox| kept.read_checkpoint(inbox.bytes(0, length)));
        let mut out = Writer::new();
        out.open_object();
        let all = match &read {
            Ok(()) => differences(run.fold(), &kept),
            Err(_) => Vec::new(),
        };
        out.name(b"matches").boolean(read.is_ok() && all.is_empty());
        if let Err(no_fold) = &read {
            out.name(b"found").text(no_fold.describe().as_bytes());
        }
        out.name(b"differences").open_array();
        for difference in &all {
            out.open_object();
            if let Some(expected) = &difference.expected {
                out.name(b"expected").raw(expected);
            }
            if let Some(found) = &difference.found {
                out.name(b"found").raw(found);
            }
            out.close_object();
        }
        out.close_array().close_object();
        Ok(encode::text(out.into_bytes()))
    })
}

/// The digest of the state, with its algorithm.
#[wasm_bindgen]
pub fn run_digest(number: u32, sha256: bool) -> Result<String, JsValue> {
    objects::run(number, |run| {
        let mut out = Writer::new();
        if sha256 {
            encode::state_digest(&mut out, "sha256", &to_hex(&sorted_rows_sha256(run.fold().canonical_rows())));
        } else {
            encode::state_digest(&mut out, StateDigest::ALGORITHM, &run.fold().digest().to_hex());
        }
        Ok(encode::text(out.into_bytes()))
    })
}

/// What the run covers, and what of it changed nothing.
#[wasm_bindgen]
pub fn run_report(number: u32) -> Result<String, JsValue> {
    objects::run(number, |run| Ok(encode::text(encode::run_report(&run.coverage(), run.ignored()))))
}

/// The encoded fold that the checkpoint state in the inbox keeps, or nothing.
#[wasm_bindgen]
pub fn read_checkpoint(length: usize) -> Option<String> {
    let mut fold = Fold::new();
    let read = inbox::with(|inbox| fold.read_checkpoint(inbox.bytes(0, length)));
    read.is_ok().then(|| encode::text(encoded(&fold)))
}

/// The options of a rebuild, as the host gives them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RebuildOptions {
    strict: bool,
    max_unexplained: Option<u64>,
    as_of_ms: Option<u64>,
    compare_clocks: bool,
    whole_store: bool,
    unlisted_drift: bool,
}

/// A new rebuild. The baseline is in the inbox: a JSON array of `[runId, last seq in decimal, digest]`, or empty.
#[wasm_bindgen]
pub fn rebuild_new(options: JsValue, baseline_length: usize) -> Result<u32, JsValue> {
    let options: RebuildOptions = serde_wasm_bindgen::from_value(options)
        .map_err(|error| thrown(Error::new(Code::OptionInvalid, "options of a rebuild", error.to_string())))?;
    let baseline = inbox::with(|inbox| baseline(inbox.bytes(0, baseline_length))).map_err(thrown)?;
    let options = Options {
        strict: options.strict,
        max_unexplained: options.max_unexplained,
        as_of_ms: options.as_of_ms,
        compare_clocks: options.compare_clocks,
        whole_store: options.whole_store,
        unlisted_drift: options.unlisted_drift,
        baseline,
    };
    Ok(keep(Object::Rebuild(Box::new(Rebuild::new(options)))))
}

fn baseline(text: &[u8]) -> Result<Vec<Baseline>, Error> {
    let malformed = |found: String| Error::new(Code::OptionInvalid, "a baseline: the heads of an earlier report", found);
    let mut all = Vec::new();
    if text.is_empty() {
        return Ok(all);
    }
    let mut reader = Reader::new(text);
    let read = each(&mut reader, |reader| {
        let row = texts::<3>(reader)?;
        let made = row.and_then(|[run_id, head, digest]| {
            Some(Baseline {
                run_id,
                head: std::str::from_utf8(&head).ok()?.parse().ok()?,
                digest: StateDigest::from_hex(&digest)?,
            })
        });
        Ok(made.map(|made| all.push(made)).is_some())
    });
    match read {
        Ok(true) => Ok(all),
        Ok(false) => Err(malformed("something else".into())),
        Err(error) => Err(malformed(error.to_string())),
    }
}

/// Begins a run, whose id is in the inbox, with the staged checkpoints.
#[wasm_bindgen]
pub fn rebuild_begin_run(number: u32, id_length: usize) -> Result<(), JsValue> {
    with_floors(|floors| {
        objects::rebuild(number, |rebuild| inbox::with(|inbox| rebuild.begin_run(inbox.bytes(0, id_length), floors)))
    })
}

/// Folds a page of the current run from the inbox, laid out as for [`run_push`].
#[wasm_bindgen]
pub fn rebuild_push(number: u32, rows: usize, length: usize, utf8: bool) -> Result<(), JsValue> {
    objects::rebuild(number, |rebuild| with_page(rows, length, utf8, |page| rebuild.push(page)))
}

/// Folds a page of the current run from the inbox as SQL assembles it: payloads, then lengths, seqs and types as lists.
/// `skipped` entries of other types were left out.
#[wasm_bindgen]
pub fn rebuild_push_lists(
    number: u32,
    payloads: usize,
    lengths: usize,
    seqs: usize,
    types: usize,
    skipped: u32,
) -> Result<(), JsValue> {
    objects::rebuild(number, |rebuild| {
        rebuild.skipped(u64::from(skipped));
        with_lists(payloads, lengths, seqs, types, |page| rebuild.push(page))
    })
}

/// Folds a page of a run from the inbox as SQL assembles it.
#[wasm_bindgen]
pub fn run_push_lists(
    number: u32,
    payloads: usize,
    lengths: usize,
    seqs: usize,
    types: usize,
) -> Result<(), JsValue> {
    objects::run(number, |run| with_lists(payloads, lengths, seqs, types, |page| run.push(page)))
}

fn with_lists(
    payloads: usize,
    lengths: usize,
    seqs: usize,
    types: usize,
    call: impl FnOnce(&Page<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    inbox::with(|inbox| {
        LISTS.with_borrow_mut(|lists| {
            let lengths_at = payloads;
            let seqs_at = lengths_at.saturating_add(lengths);
            let types_at = seqs_at.saturating_add(seqs);
            call(&lists.page(
                inbox.bytes(0, payloads),
                inbox.bytes(lengths_at, lengths),
                inbox.bytes(seqs_at, seqs),
                inbox.bytes(types_at, types),
            )?)
        })
    })
}

/// Ends the current run; what is wanted for it, or nothing.
#[wasm_bindgen]
pub fn rebuild_end_run(number: u32) -> Result<Option<String>, JsValue> {
    objects::rebuild(number, |rebuild| {
        let wanted = rebuild.end_run()?;
        Ok((!wanted.is_empty()).then(|| encode::text(encode::wanted(&wanted))))
    })
}

/// Ends the runs; what is wanted for the foreign rows, or nothing.
#[wasm_bindgen]
pub fn rebuild_end_runs(number: u32) -> Result<Option<String>, JsValue> {
    objects::rebuild(number, |rebuild| {
        let wanted = rebuild.end_runs()?;
        Ok((!wanted.is_empty()).then(|| encode::text(encode::wanted(&wanted))))
    })
}

/// Sweeps flows and executions, a JSON array of pairs in the inbox; what is wanted of them, or nothing.
#[wasm_bindgen]
pub fn rebuild_sweep(number: u32, length: usize) -> Result<Option<String>, JsValue> {
    objects::rebuild(number, |rebuild| {
        let mut addresses = Vec::new();
        let read = inbox::with(|inbox| {
            each(&mut Reader::new(inbox.bytes(0, length)), |reader| {
                Ok(texts::<2>(reader)?.map(|[flow, execution]| addresses.push((flow, execution))).is_some())
            })
        });
        answered(read)?;
        let wanted =
            rebuild.sweep(addresses.iter().map(|(flow, execution)| (flow.as_slice(), execution.as_slice())))?;
        Ok((!wanted.is_empty()).then(|| encode::text(encode::wanted(&wanted))))
    })
}

/// Takes an answer from the inbox: a JSON object of `runs` (ids that have a row), `clocks` (flow, execution, name, deferred, due,
/// completed each) and `completions` (flow, execution, name, exit digest, metadata digest, completed, consumed each; a digest is
/// null where the text is NULL). `last` ends it.
#[wasm_bindgen]
pub fn rebuild_answer(number: u32, length: usize, last: bool) -> Result<(), JsValue> {
    objects::rebuild(number, |rebuild| {
        inbox::with(|inbox| answer(rebuild, inbox.bytes(0, length)))?;
        if last {
            rebuild.end_answer()?;
        }
        Ok(())
    })
}

fn answer(rebuild: &mut Rebuild, text: &[u8]) -> Result<(), Error> {
    let mut failed = Ok(());
    let mut reader = Reader::new(text);
    let read = (|| {
        let Some(mut members) = reader.enter_object() else {
            reader.value()?;
            return Ok(false);
        };
        let mut sound = true;
        while let Some(member) = reader.member(&mut members)? {
            let mut take = |taken: Result<(), Error>| {
                if failed.is_ok() {
                    failed = taken;
                }
                failed.is_ok()
            };
            sound &= if member.equals(b"runs") {
                each(&mut reader, |reader| match reader.value()? {
                    Raw::Text(run) => Ok(take(rebuild.live_run(&run.to_wtf8()))),
                    _ => Ok(false),
                })?
            } else if member.equals(b"clocks") {
                each(&mut reader, |reader| {
                    let Some([flow, execution, name, deferred, due, completed]) = values::<6>(reader)? else {
                        return Ok(false);
                    };
                    let Some(address) = Address::of(flow, execution, name) else { return Ok(false) };
                    let (deferred, due, completed) = (json(deferred), json(due), json(completed));
                    Ok(take(rebuild.stored_clock(&StoredClock {
                        key: address.key(),
                        deferred_name: &deferred,
                        due_at_ms: &due,
                        completed_at_ms: &completed,
                    })))
                })?
            } else if member.equals(b"completions") {
                each(&mut reader, |reader| {
                    let Some([flow, execution, name, exit, metadata, completed, consumed]) = values::<7>(reader)? else {
                        return Ok(false);
                    };
                    let Some(address) = Address::of(flow, execution, name) else { return Ok(false) };
                    let (Some(exit), Some(metadata)) = (stored_digest(exit), stored_digest(metadata)) else {
                        return Ok(false);
                    };
                    let (completed, consumed) = (json(completed), json(consumed));
                    Ok(take(rebuild.stored_completion(&StoredCompletion {
                        key: address.key(),
                        exit,
                        metadata,
                        completed_at_ms: &completed,
                        consumed_at_ms: &consumed,
                    })))
                })?
            } else {
                false
            };
        }
        reader.end()?;
        Ok(sound)
    })();
    failed?;
    answered(read)
}

fn answered(read: Result<bool, SyntaxError>) -> Result<(), Error> {
    match read {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::new(Code::AnswerMalformed, "stored rows as arrays of their columns", "something else")),
        Err(error) => Err(Error::syntax(Code::AnswerMalformed, &error)),
    }
}

/// Ends the work and gives the verification's number; the rebuild is gone. With `partial` it may end anywhere.
#[wasm_bindgen]
pub fn rebuild_finish(number: u32, partial: bool) -> Result<u32, JsValue> {
    if !partial {
        objects::rebuild(number, |rebuild| rebuild.check_finish())?;
    }
    let Some(Object::Rebuild(rebuild)) = objects::take(number) else {
        return Err(thrown(Error::new(Code::Disposed, "a rebuild that is there", "one that is over")));
    };
    let verification = if partial { rebuild.finish_partial() } else { rebuild.finish().map_err(thrown)? };
    Ok(keep(Object::Verification(Box::new(verification))))
}

/// Everything of a verification but its long lists.
#[wasm_bindgen]
pub fn verification_summary(number: u32) -> Result<String, JsValue> {
    objects::verification(number, |verification| Ok(encode::text(encode::summary(verification))))
}

/// Some of its findings.
#[wasm_bindgen]
pub fn verification_findings(number: u32, from: usize, count: usize) -> Result<String, JsValue> {
    objects::verification(number, |verification| Ok(encode::text(encode::findings(verification, from, count))))
}

/// Some of its heads.
#[wasm_bindgen]
pub fn verification_heads(number: u32, from: usize, count: usize) -> Result<String, JsValue> {
    objects::verification(number, |verification| Ok(encode::text(encode::heads(verification, from, count))))
}

/// The references that do not join.
#[wasm_bindgen]
pub fn verification_unjoined(number: u32) -> Result<String, JsValue> {
    objects::verification(number, |verification| Ok(encode::text(encode::unjoined(verification))))
}

/// The rows of one page of its plan.
#[wasm_bindgen]
pub fn verification_plan_page(number: u32, page: usize) -> Result<String, JsValue> {
    objects::verification(number, |verification| {
        let rows = verification.plan.as_ref().and_then(|plan| plan.pages.get(page)).map(|page| page.rows.clone());
        Ok(encode::text(rows.unwrap_or_default()))
    })
}

struct Address {
    flow: Vec<u8>,
    execution: Vec<u8>,
    name: Vec<u8>,
}

impl Address {
    /// An address, or `None` if one of its parts is no text.
    fn of(flow: Raw<'_>, execution: Raw<'_>, name: Raw<'_>) -> Option<Self> {
        Some(Address {
            flow: flow.as_text()?.to_wtf8(),
            execution: execution.as_text()?.to_wtf8(),
            name: name.as_text()?.to_wtf8(),
        })
    }

    fn key(&self) -> Key<'_> {
        Key { flow: &self.flow, execution: &self.execution, name: &self.name }
    }
}

/// A stored text's digest: `Some(None)` for NULL, `None` for what is no digest.
fn stored_digest(value: Raw<'_>) -> Option<Option<[u8; 32]>> {
    match value {
        Raw::Null => Some(None),
        Raw::Text(text) => from_hex(&text.to_wtf8()).map(Some),
        _ => None,
    }
}

/// A value as JSON text again.
fn json(value: Raw<'_>) -> Vec<u8> {
    match value {
        Raw::Null => b"null".to_vec(),
        Raw::Bool(true) => b"true".to_vec(),
        Raw::Bool(false) => b"false".to_vec(),
        Raw::Number(spelled) | Raw::Array(spelled) | Raw::Object(spelled) => spelled.to_vec(),
        Raw::Text(text) => {
            let mut out = Vec::new();
            write_text(&mut out, &text.to_wtf8());
            out
        }
    }
}

/// Reads each element of an array by `read`; `false` if there is no array or an element is not as it should be.
fn each<'a>(
    reader: &mut Reader<'a>,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<bool, SyntaxError>,
) -> Result<bool, SyntaxError> {
    let Some(mut elements) = reader.enter_array() else {
        reader.value()?;
        return Ok(false);
    };
    let mut sound = true;
    while reader.element(&mut elements)? {
        sound &= read(reader)?;
    }
    Ok(sound)
}

/// Reads an array of exactly `N` values; `None` for anything else.
fn values<'a, const N: usize>(reader: &mut Reader<'a>) -> Result<Option<[Raw<'a>; N]>, SyntaxError> {
    let mut found = [Raw::Null; N];
    let mut count: usize = 0;
    let sound = each(reader, |reader| {
        let value = reader.value()?;
        if let Some(slot) = found.get_mut(count) {
            *slot = value;
        }
        count = count.saturating_add(1);
        Ok(true)
    })?;
    Ok((sound && count == N).then_some(found))
}

fn texts<const N: usize>(reader: &mut Reader<'_>) -> Result<Option<[Vec<u8>; N]>, SyntaxError> {
    let Some(found) = values::<N>(reader)? else { return Ok(None) };
    Ok(found.iter().all(|value| value.as_text().is_some()).then(|| {
        found.map(|value| value.as_text().map(|text| text.to_wtf8()).unwrap_or_default())
    }))
}
