//! A second opinion: the rules of `tests/vectors/deferred-clock/README.md` and the decisions beside it, written again from the
//! text in the plainest way, with the whole store in memory. It shares nothing with the crate but the names of its options.

mod fold;
mod verify;

use std::collections::BTreeMap;

use journal_fold::deferred_clock::rebuild::{Effects, Verification};
use serde_json::{Map, Value};

use crate::store::{finding_text, Address, Store};

pub use fold::{sha256, Clock, Completion, State};
pub use verify::{same_time, verify};

/// What a verification says, in a form that two opinions can be compared in.
#[derive(Debug, PartialEq)]
pub struct Report {
    pub verdict: String,
    pub findings: Vec<Value>,
    /// Runs, entries, floors, clocks, deferreds.
    pub totals: [u64; 5],
    pub unexplained: Option<u64>,
    pub unfolded: u64,
    pub ignored: Vec<Ignored>,
    pub not_checked: BTreeMap<String, u64>,
    pub notes: BTreeMap<String, (u64, Vec<u8>)>,
    pub digest: String,
    pub heads: Vec<Head>,
    pub plan: Option<Changes>,
}

/// Reason, how many, and run and seq of the first.
pub type Ignored = (String, u64, Option<(Vec<u8>, u64)>);

/// Run, floor, first, last, digest.
pub type Head = (Vec<u8>, Option<u64>, Option<u64>, Option<u64>, Option<String>);

#[derive(Debug, PartialEq)]
pub struct Changes {
    /// Table, operation and row.
    pub rows: Vec<(String, String, Value)>,
    pub effects: Effects,
    pub unstorable: u64,
}

/// What the crate says.
pub fn report_of(verification: &Verification) -> Report {
    let totals = &verification.totals;
    Report {
        verdict: verification.verdict.as_str().into(),
        findings: verification.findings.iter().map(|finding| without_wording(&finding_text(finding))).collect(),
        totals: [totals.runs, totals.entries, totals.floors, totals.clocks, totals.deferreds],
        unexplained: verification.unexplained,
        unfolded: verification.unfolded,
        ignored: verification
            .ignored
            .iter()
            .map(|ignored| (ignored.reason.as_str().into(), ignored.count, ignored.first.clone()))
            .collect(),
        not_checked: verification.not_checked.iter().map(|item| (item.what.into(), item.count)).collect(),
        notes: verification.notes.iter().map(|note| (note.what.into(), (note.count, note.first_run.clone()))).collect(),
        digest: String::from_utf8(verification.digest.to_hex()).unwrap(),
        heads: verification
            .heads()
            .map(|head| {
                let digest = head.digest.map(|digest| String::from_utf8(digest.to_hex()).unwrap());
                (head.run_id.to_vec(), head.floor, head.first, head.last, digest)
            })
            .collect(),
        plan: verification.plan.as_ref().map(|plan| Changes {
            rows: plan
                .pages
                .iter()
                .flat_map(|page| {
                    let rows: Vec<Value> = serde_json::from_slice(&page.rows).unwrap();
                    rows.into_iter().map(|row| (page.table.as_str().to_string(), page.op.as_str().to_string(), row))
                })
                .collect(),
            effects: plan.effects,
            unstorable: plan.unstorable,
        }),
    }
}

/// What is wrong with a journal is told in words and at an offset; which entry it is must be the same.
fn without_wording(finding: &str) -> Value {
    let mut finding: Map<String, Value> = serde_json::from_str(finding).unwrap();
    let id = finding["id"].as_str().unwrap();
    if id == "checkpoint_missing" || finding["class"] == "refused" && !id.starts_with("journal_") {
        for member in ["expected", "found", "offset"] {
            finding.remove(member);
        }
    }
    Value::Object(finding)
}

/// Clocks, and completions with their merged stamps.
pub type Tables = (BTreeMap<Address, Clock>, BTreeMap<Address, (Option<u64>, Option<u64>, Completion)>);

/// The tables that the journal alone gives: what a sound store holds, but for the texts of completions.
pub fn folded(store: &Store) -> Tables {
    let mut clocks = BTreeMap::new();
    let mut completions: BTreeMap<Address, (Option<u64>, Option<u64>, Completion)> = BTreeMap::new();
    for id in store.run_ids() {
        let checkpoints = store.checkpoints.get(&id).map_or(&[][..], Vec::as_slice);
        let Ok(state) = fold::fold_run(store.entries(&id), checkpoints, false, None).state else { continue };
        for clock in state.clocks {
            clocks.insert(clock.address.clone(), clock);
        }
        for row in state.completions {
            let before = completions.get(&row.address).and_then(|(completed, _, _)| *completed);
            completions.insert(row.address.clone(), (row.completed.or(before), row.consumed, row));
        }
    }
    (clocks, completions)
}
