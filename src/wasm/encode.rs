//! JSON texts of what leaves the module.

use crate::deferred_clock::rebuild::{Verification, Wanted};
use crate::deferred_clock::run::{Coverage, Ignored};
use crate::digest::{to_hex, StateDigest};
use crate::error::{Code, Error};
use crate::finding::Id;
use crate::json::Writer;

/// A JSON text of ours as a string: names are escaped wherever they are not UTF-8, so nothing is lost.
pub(super) fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// An error's code and details, as an object that is not closed yet.
pub(super) fn error_open(error: &Error) -> Writer {
    let mut out = Writer::new();
    out.open_object().name(b"code").text(error.code.as_str().as_bytes());
    out.name(b"message").text(error.to_string().as_bytes());
    if let Some(run_id) = &error.run_id {
        out.name(b"runId").text(run_id);
    }
    if let Some(seq) = error.seq {
        out.name(b"seq").decimal_text(seq);
    }
    if let Some(offset) = error.offset {
        out.name(b"offset").integer(offset);
    }
    out.name(b"expected").text(error.expected.as_bytes()).name(b"found").text(error.found.as_bytes());
    if error.code == Code::FoldIncomplete {
        out.name(b"unjoined").open_array();
        for unjoined in &error.unjoined {
            unjoined.write(&mut out);
        }
        out.close_array();
    }
    out
}

pub(super) fn error_codes() -> Vec<u8> {
    let mut out = Writer::new();
    out.open_object();
    for code in Code::ALL {
        out.name(code.as_str().as_bytes()).text(code.meaning().as_bytes());
    }
    out.close_object();
    out.into_bytes()
}

pub(super) fn finding_ids() -> Vec<u8> {
    let mut out = Writer::new();
    out.open_object();
    for id in Id::ALL {
        out.name(id.as_str().as_bytes()).open_object();
        out.name(b"class").text(id.class().as_str().as_bytes());
        out.name(b"meaning").text(id.meaning().as_bytes());
        out.name(b"advice").text(id.advice().as_bytes());
        out.close_object();
    }
    out.close_object();
    out.into_bytes()
}

/// What is wanted: run ids, and flow and execution of each address.
pub(super) fn wanted(wanted: &Wanted) -> Vec<u8> {
    let mut out = Writer::new();
    out.open_object().name(b"runs").open_array();
    for run in &wanted.runs {
        out.text(run);
    }
    out.close_array().name(b"addresses").open_array();
    for (flow, execution) in &wanted.addresses {
        out.open_array().text(flow).text(execution).close_array();
    }
    out.close_array().close_object();
    out.into_bytes()
}

fn optional_seq(out: &mut Writer, name: &[u8], seq: Option<u64>) {
    if let Some(seq) = seq {
        out.name(name).decimal_text(seq);
    }
}

/// What a run covers and what of it changed nothing.
pub(super) fn run_report(coverage: &Coverage, ignored: &Ignored) -> Vec<u8> {
    let mut out = Writer::new();
    out.open_object().name(b"entries").integer(coverage.entries);
    optional_seq(&mut out, b"floor", coverage.floor);
    optional_seq(&mut out, b"first", coverage.first);
    optional_seq(&mut out, b"last", coverage.last);
    out.name(b"ignored").open_array();
    for (reason, count, first) in ignored.iter() {
        out.open_object().name(b"reason").text(reason.as_str().as_bytes()).name(b"count").integer(count);
        optional_seq(&mut out, b"firstSeq", first);
        out.close_object();
    }
    out.close_array().close_object();
    out.into_bytes()
}

/// Everything of a verification but its lists that grow with the store.
pub(super) fn summary(verification: &Verification) -> Vec<u8> {
    let mut out = Writer::new();
    let totals = &verification.totals;
    out.open_object().name(b"verdict").text(verification.verdict.as_str().as_bytes());
    out.name(b"findingCount").integer(verification.findings.len() as u64);
    out.name(b"rebuilt").open_object();
    out.name(b"runs").integer(totals.runs).name(b"clocks").integer(totals.clocks);
    out.name(b"deferreds").integer(totals.deferreds).name(b"unexplained");
    match verification.unexplained {
        Some(unexplained) => out.integer(unexplained),
        None => out.null(),
    };
    out.close_object();
    out.name(b"coverage").open_object();
    out.name(b"runs").integer(totals.runs).name(b"entries").integer(totals.entries);
    out.name(b"floors").integer(totals.floors).name(b"unfolded").integer(verification.unfolded);
    out.name(b"headsDigest").text(&to_hex(&verification.heads_digest().to_be_bytes()));
    out.close_object();
    out.name(b"ignored").open_array();
    for ignored in &verification.ignored {
        out.open_object().name(b"reason").text(ignored.reason.as_str().as_bytes());
        out.name(b"meaning").text(ignored.reason.meaning().as_bytes());
        out.name(b"count").integer(ignored.count);
        if let Some((run_id, seq)) = &ignored.first {
            out.name(b"firstRunId").text(run_id).name(b"firstSeq").decimal_text(*seq);
        }
        out.close_object();
    }
    out.close_array().name(b"notChecked").open_array();
    for item in &verification.not_checked {
        out.open_object().name(b"what").text(item.what.as_bytes());
        out.name(b"meaning").text(item.meaning.as_bytes()).name(b"count").integer(item.count).close_object();
    }
    out.close_array().name(b"notes").open_array();
    for note in &verification.notes {
        out.open_object().name(b"what").text(note.what.as_bytes()).name(b"meaning").text(note.meaning.as_bytes());
        out.name(b"count").integer(note.count).name(b"firstRunId").text(&note.first_run).close_object();
    }
    out.close_array().name(b"stateDigest");
    state_digest(&mut out, StateDigest::ALGORITHM, &verification.digest.to_hex());
    if let Some(plan) = &verification.plan {
        let effects = &plan.effects;
        out.name(b"plan").open_object().name(b"digest").text(&plan.digest());
        out.name(b"rows").integer(plan.rows()).name(b"unstorable").integer(plan.unstorable);
        out.name(b"effects").open_object();
        out.name(b"clocksArmed").integer(effects.clocks_armed);
        out.name(b"clocksOverdue").integer(effects.clocks_overdue);
        out.name(b"pendingDeleted").integer(effects.pending_deleted);
        out.name(b"pendingCompleted").integer(effects.pending_completed);
        out.name(b"consumptionsCleared").integer(effects.consumptions_cleared);
        out.name(b"consumptionsSet").integer(effects.consumptions_set);
        out.close_object().name(b"pages").open_array();
        for page in &plan.pages {
            out.open_object().name(b"table").text(page.table.as_str().as_bytes());
            out.name(b"op").text(page.op.as_str().as_bytes());
            out.name(b"count").integer(page.count as u64).close_object();
        }
        out.close_array().close_object();
    }
    out.close_object();
    out.into_bytes()
}

/// A state's digest with the name of its algorithm.
pub(super) fn state_digest(out: &mut Writer, algorithm: &str, hex: &[u8]) {
    out.open_object().name(b"algorithm").text(algorithm.as_bytes()).name(b"value").text(hex).close_object();
}

/// `count` findings from `from`, as an array.
pub(super) fn findings(verification: &Verification, from: usize, count: usize) -> Vec<u8> {
    let mut out = Writer::new();
    out.open_array();
    for finding in verification.findings.iter().skip(from).take(count) {
        finding.write(&mut out);
    }
    out.close_array();
    out.into_bytes()
}

/// `count` heads from `from`, as an array.
pub(super) fn heads(verification: &Verification, from: usize, count: usize) -> Vec<u8> {
    let mut out = Writer::new();
    out.open_array();
    for head in verification.heads().skip(from).take(count) {
        out.open_object().name(b"runId").text(head.run_id);
        optional_seq(&mut out, b"floor", head.floor);
        optional_seq(&mut out, b"first", head.first);
        optional_seq(&mut out, b"last", head.last);
        if let Some(digest) = head.digest {
            out.name(b"digest").text(&digest.to_hex());
        }
        out.close_object();
    }
    out.close_array();
    out.into_bytes()
}

/// The references that do not join, as an array.
pub(super) fn unjoined(verification: &Verification) -> Vec<u8> {
    let mut out = Writer::new();
    out.open_array();
    for unjoined in verification.unjoined() {
        unjoined.write(&mut out);
    }
    out.close_array();
    out.into_bytes()
}
