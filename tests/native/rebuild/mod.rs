//! Every run against the stored rows: what is found, in which order, what a plan does, and what a host may not do.

mod baseline;
mod coverage;
mod plan;
mod protocol;
mod refused;
mod report;
mod two_runs;

use journal_fold::deferred_clock::rebuild::{Op, Options, Table, Verification};
use serde_json::Value;

use crate::history::{completed, consumed, fired, scheduled, store_of};
use crate::scenario::fill_tables;
use crate::store::{finding_text, Checkpoint, Host, Store};

fn verify(store: &Store, options: &Options) -> Verification {
    store.verify(options, &Host::default())
}

fn ids(verification: &Verification) -> Vec<&'static str> {
    verification.findings.iter().map(|finding| finding.id.as_str()).collect()
}

fn findings(verification: &Verification) -> Vec<Value> {
    verification.findings.iter().map(|finding| serde_json::from_str(&finding_text(finding)).unwrap()).collect()
}

fn not_checked(verification: &Verification) -> Vec<(&'static str, u64)> {
    verification.not_checked.iter().map(|item| (item.what, item.count)).collect()
}

fn notes(verification: &Verification) -> Vec<(&'static str, u64, &[u8])> {
    verification.notes.iter().map(|note| (note.what, note.count, note.first_run.as_slice())).collect()
}

/// The rows of a plan: table, operation, and the rows as text.
fn rows(verification: &Verification) -> Vec<(Table, Op, String)> {
    let plan = verification.plan.as_ref().unwrap();
    plan.pages.iter().map(|page| (page.table, page.op, String::from_utf8(page.rows.clone()).unwrap())).collect()
}

/// Two runs whose tables say what their journals say.
fn sound_store() -> Store {
    let mut store = store_of([
        ("a", vec![scheduled(0, "a", "c", 100), completed(1, "a", "d", 120, "one"), fired(2, "a", "c", 110), consumed(3, "a", "d", 130)]),
        ("b", vec![scheduled(0, "b", "c", 200), completed(1, "b", "d", 220, "two")]),
    ]);
    fill_tables(&mut store);
    store
}

fn bare_floor(store: &mut Store, run: &str, seq: u64) {
    store.checkpoints.insert(run.into(), vec![Checkpoint { seq, compacted: true, state: b"{\"engine\":1}".to_vec() }]);
}
