//! Rows that two runs record, or that one run records of another run's execution.

use journal_fold::deferred_clock::rebuild::{Op, Table, Verdict, Verification};
use journal_fold::deferred_clock::EventType;
use journal_fold::finding::Id;
use serde_json::{json, Value};

use super::{findings, ids, notes, rows, verify};
use crate::history::{completed, consumed, entry, scheduled, store_of};
use crate::scenario::fill_tables;
use crate::store::{address, whole_store, ClockRow, CompletionRow};

#[test]
fn a_clock_of_several_runs_is_one_conflict_that_names_them_all() {
    // Also when all say the same, and also when its row says it.
    let clock = || scheduled(0, "b", "c", 100);
    let mut store = store_of([("c", vec![clock()]), ("a", vec![clock()]), ("b", vec![clock()]), ("\u{1f680}", vec![clock()]), ("\u{ff5e}", vec![clock()])]);
    store.clocks.insert(address("F", "b", "c"), ClockRow::new("\"d\"", "100", "null"));
    let verification = verify(&store, &whole_store());
    assert_eq!(
        findings(&verification).iter().map(Value::to_string).collect::<Vec<_>>(),
        ["{\"id\":\"clock_conflict\",\"class\":\"unjoined\",\"flowName\":\"F\",\"executionId\":\"b\",\"name\":\"c\",\"runs\":[\"a\",\"b\",\"c\",\"\u{ff5e}\",\"\u{1f680}\"]}"]
    );
    assert!(verification.plan.is_none());
    let unjoined = verification.unjoined();
    assert_eq!((unjoined.len(), unjoined[0].execution_id.as_slice(), &unjoined[0].row), (1, &b"b"[..], &Some(("F".into(), "c".into()))));
}

#[test]
fn two_runs_may_record_a_clock_of_a_third_that_has_no_journal() {
    let mut store = store_of([("a", vec![scheduled(0, "x", "c", 100)]), ("b", vec![scheduled(0, "x", "c", 200)])]);
    assert_eq!(ids(&verify(&store, &whole_store())), ["run_missing", "run_missing"]);
    store.live.insert("x".into());
    assert_eq!(ids(&verify(&store, &whole_store())), ["clock_conflict"]);
}

#[test]
fn a_conflict_is_left_out_when_its_clock_has_no_run() {
    let mut store = store_of([("a", vec![scheduled(0, "b", "c", 100)]), ("b", vec![scheduled(0, "b", "c", 200)])]);
    store.live.remove(&b"b"[..]);
    let verification = verify(&store, &whole_store());
    assert_eq!(ids(&verification), ["run_missing", "run_missing"]);
    let runs: Vec<_> = verification.findings.iter().map(|finding| finding.run_id.clone().unwrap()).collect();
    assert_eq!(runs, [b"a".to_vec(), b"b".to_vec()]);
}

#[test]
fn of_two_runs_that_record_a_completion_the_later_one_decides() {
    let mut store = store_of([
        ("a", vec![completed(0, "a", "d", 50, "one"), consumed(1, "a", "d", 60)]),
        ("b", vec![entry(0, EventType::DeferredCompleted, r#"{"flowName":"F","executionId":"a","deferredName":"d"}"#)]),
    ]);
    store.completions.insert(address("F", "a", "d"), CompletionRow::new("one", "50", "60"));
    let verification = verify(&store, &whole_store());
    // The later record has no time, so the earlier one's stays; it was not consumed, so the consumption goes.
    assert_eq!(
        findings(&verification).iter().map(Value::to_string).collect::<Vec<_>>(),
        [r#"{"id":"stamp_differs","class":"drift","runId":"b","flowName":"F","executionId":"a","name":"d","field":"consumedAtMs","expected":null,"found":60}"#]
    );
    assert_eq!(rows(&verification), [(Table::Deferreds, Op::Update, r#"[["F","a","d",50,null]]"#.into())]);
    assert_eq!(verification.plan.as_ref().unwrap().effects.consumptions_cleared, 1);
    assert_eq!(notes(&verification), [("recorded_by_two_runs", 1, &b"b"[..])]);
    assert_eq!((verification.totals.deferreds, verification.unexplained), (2, Some(0)));
    // The digest is that of the merged row: the same as of a journal that says it in one run.
    store.apply(verification.plan.as_ref().unwrap());
    let one_run = store_of([("a", vec![completed(0, "a", "d", 50, "one")])]);
    assert_eq!(verify(&store, &whole_store()).digest, verify(&one_run, &whole_store()).digest);
    assert_eq!(verification.digest, verify(&store, &whole_store()).digest);
}

#[test]
fn both_runs_that_record_a_completion_are_checked() {
    let mut store = store_of([("a", vec![completed(0, "a", "d", 50, "one")]), ("b", vec![completed(0, "a", "d", 50, "two")])]);
    let names = |verification: &Verification| {
        verification.findings.iter().map(|finding| (finding.id, finding.run_id.clone().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(names(&verify(&store, &whole_store())), [(Id::RowMissing, b"a".to_vec()), (Id::RowMissing, b"b".to_vec())]);
    store.completions.insert(address("F", "a", "d"), CompletionRow::new("two", "50", "null"));
    assert_eq!(names(&verify(&store, &whole_store())), [(Id::DigestMismatch, b"a".to_vec())]);
}

#[test]
fn a_foreign_row_explains_what_its_own_run_does_not() {
    let mut store = store_of([
        ("a", vec![scheduled(0, "b", "far", 100), completed(1, "b", "far", 5, "one")]),
        ("b", vec![scheduled(0, "b", "near", 100), completed(1, "b", "near", 5, "one")]),
    ]);
    fill_tables(&mut store);
    let verification = verify(&store, &whole_store());
    assert_eq!((verification.verdict, ids(&verification), verification.unexplained), (Verdict::Match, vec![], Some(0)));
}

#[test]
fn names_that_join_alike_are_not_alike() {
    // Parts are compared part by part: ("F", "ax") and ("Fa", "x") are two places.
    let named = |seq, flow: &str, execution: &str, clock: &str| {
        let payload = json!({ "flowName": flow, "executionId": execution, "clockName": clock, "deferredName": "d", "dueAtMs": seq });
        entry(seq, EventType::ClockScheduled, &payload.to_string())
    };
    let mut store = store_of([
        ("ax", vec![named(0, "F", "ax", "c"), named(1, "F", "ax", "xc")]),
        ("x", vec![named(0, "Fa", "x", "c"), named(1, "Fa", "ax", "c"), named(2, "F\u{0}", "x", "c")]),
    ]);
    fill_tables(&mut store);
    assert_eq!(verify(&store, &whole_store()).verdict, Verdict::Match);
    assert_eq!(store.clocks.len(), 5);
}
