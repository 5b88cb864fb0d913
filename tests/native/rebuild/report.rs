//! What a report says, and in which order.

use journal_fold::deferred_clock::rebuild::{Baseline, Op, Options, Table, Verdict};
use journal_fold::deferred_clock::EventType;
use journal_fold::digest::StateDigest;
use journal_fold::finding::Class;
use serde_json::{json, Value};

use super::{bare_floor, findings, ids, not_checked, rows, sound_store, verify};
use crate::history::{completed, entry, scheduled, store_of};
use crate::model::sha256;
use crate::scenario::fill_tables;
use crate::store::{address, whole_store, ClockRow, CompletionRow};

#[test]
fn a_report_has_its_parts_in_order() {
    // Flow order is not run order is not fold order: each part has its own.
    let broken = || vec![entry(0, EventType::ClockScheduled, "{")];
    let mut store = store_of([
        ("a", broken()),
        ("b", vec![scheduled(0, "gone", "z", 1), scheduled(1, "gone", "y", 1), completed(2, "b", "z", 1, "one"), completed(3, "b", "y", 1, "one")]),
        ("c", vec![]),
        ("d", vec![completed(0, "b", "x", 1, "one"), completed(1, "d", "x", 1, "one"), scheduled(2, "gone", "x", 1), scheduled(3, "b", "c", 1)]),
        ("e", vec![scheduled(0, "e", "c", 1), completed(1, "e", "u", 1, "one"), scheduled(2, "b", "c", 1)]),
        ("f", broken()),
    ]);
    store.live.remove(&b"gone"[..]);
    bare_floor(&mut store, "c", 1);
    for (execution, name) in [("b", "y"), ("d", "x"), ("e", "u")] {
        store.completions.insert(address("F", execution, name), CompletionRow::new("forged", "2", "null"));
    }
    let mut options = whole_store();
    options.baseline = vec![Baseline { run_id: "bb".into(), head: 1, digest: StateDigest::default() }];
    let verification = verify(&store, &options);
    let found: Vec<String> = verification
        .findings
        .iter()
        .map(|finding| {
            let run = finding.run_id.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let name = finding.row.as_ref().map(|(_, _, name)| String::from_utf8_lossy(name)).unwrap_or_default();
            format!("{} {run} {name}", finding.id.as_str()).trim_end().to_string()
        })
        .collect();
    assert_eq!(
        found,
        [
            "payload_not_json a",
            "journal_shorter bb",
            "payload_not_json f",
            "checkpoint_missing c",
            "run_missing b z",
            "run_missing b y",
            "run_missing d x",
            "clock_conflict  c",
            "row_missing b z",
            "digest_mismatch b y",
            "row_missing d x",
            "digest_mismatch d x",
            "digest_mismatch e u",
            "clock_missing e c",
            "clock_missing d x",
            "clock_missing b y",
            "clock_missing b z",
            "stamp_differs b y",
            "stamp_differs d x",
            "stamp_differs e u",
        ]
    );
}

#[test]
fn drift_is_reported_by_column_with_both_values() {
    let mut store = sound_store();
    store.clocks.insert(address("F", "a", "c"), ClockRow::new("\"other\"", "1.5", "null"));
    store.clocks.remove(&address("F", "b", "c"));
    store.clocks.insert(address("G", "b", "c"), ClockRow::new("7", "\"soon\"", "null"));
    let row = store.completions.get_mut(&address("F", "a", "d")).unwrap();
    (row.completed, row.consumed) = ("0".into(), "true".into());
    let verification = verify(&store, &whole_store());
    let found: Vec<String> = findings(&verification).iter().map(Value::to_string).collect();
    assert_eq!(
        found,
        [
            r#"{"id":"clock_differs","class":"drift","runId":"a","flowName":"F","executionId":"a","name":"c","field":"deferredName","expected":"d","found":"other"}"#,
            r#"{"id":"clock_differs","class":"drift","runId":"a","flowName":"F","executionId":"a","name":"c","field":"dueAtMs","expected":100,"found":1.5}"#,
            r#"{"id":"clock_differs","class":"drift","runId":"a","flowName":"F","executionId":"a","name":"c","field":"completedAtMs","expected":110,"found":null}"#,
            r#"{"id":"clock_missing","class":"drift","runId":"b","flowName":"F","executionId":"b","name":"c","expected":{"deferredName":"d","dueAtMs":200,"completedAtMs":null}}"#,
            r#"{"id":"clock_unexpected","class":"drift","flowName":"G","executionId":"b","name":"c","found":{"deferredName":7,"dueAtMs":"soon","completedAtMs":null}}"#,
            r#"{"id":"stamp_differs","class":"drift","runId":"a","flowName":"F","executionId":"a","name":"d","field":"completedAtMs","expected":120,"found":0}"#,
            r#"{"id":"stamp_differs","class":"drift","runId":"a","flowName":"F","executionId":"a","name":"d","field":"consumedAtMs","expected":130,"found":true}"#,
        ]
    );
    assert_eq!(
        rows(&verification),
        [
            (Table::Clocks, Op::Delete, r#"[["G","b","c"]]"#.into()),
            (Table::Clocks, Op::Update, r#"[["F","a","c","d",100,110]]"#.into()),
            (Table::Clocks, Op::Insert, r#"[["F","b","c","d",200,null]]"#.into()),
            (Table::Deferreds, Op::Update, r#"[["F","a","d",120,130]]"#.into()),
        ]
    );
}

#[test]
fn a_recorded_null_leaves_a_completions_time_and_clears_its_consumption() {
    let mut store = store_of([("a", vec![entry(0, EventType::DeferredCompleted, r#"{"flowName":"F","executionId":"a","deferredName":"d","completedAtMs":-1}"#)])]);
    store.completions.insert(address("F", "a", "d"), CompletionRow::new("one", "77", "null"));
    assert_eq!(verify(&store, &whole_store()).verdict, Verdict::Match);
    store.completions.insert(address("F", "a", "d"), CompletionRow::new("one", "77", "0"));
    let verification = verify(&store, &whole_store());
    assert_eq!(rows(&verification), [(Table::Deferreds, Op::Update, r#"[["F","a","d",null,null]]"#.into())]);
    store.apply(verification.plan.as_ref().unwrap());
    assert_eq!(store.completions[&address("F", "a", "d")], CompletionRow::new("one", "77", "null"));
}

#[test]
fn what_a_completion_leaves_unchecked_is_counted_by_its_winning_entry() {
    let recorded = |seq, name: &str, digests: &str| {
        entry(seq, EventType::DeferredCompleted, &format!(r#"{{"flowName":"F","executionId":"a","deferredName":"{name}","completedAtMs":1{digests}}}"#))
    };
    let one = sha256("one");
    let exit = format!(r#","exitDigest":"{one}""#);
    let mut store = store_of([(
        "a",
        vec![
            recorded(0, "absent", ""),
            recorded(1, "null", r#","exitDigest":null,"metadataDigest":null"#),
            recorded(2, "malformed", r#","exitDigest":"abc""#),
            recorded(3, "upper", &format!(r#","exitDigest":"{}","metadataDigest":null"#, one.to_uppercase())),
            recorded(4, "no metadata", &exit),
            recorded(5, "bad metadata", &format!(r#"{exit},"metadataDigest":5"#)),
            recorded(6, "sound", &format!(r#"{exit},"metadataDigest":null"#)),
            // Later ones change nothing.
            recorded(7, "sound", ""),
            recorded(8, "absent", &format!(r#"{exit},"metadataDigest":null"#)),
        ],
    )]);
    fill_tables(&mut store);
    store.completions.values_mut().for_each(|row| row.exit = Some("one".into()));
    let verification = verify(&store, &whole_store());
    assert_eq!(verification.verdict, Verdict::Match);
    assert_eq!(not_checked(&verification), [("digest_absent", 2), ("digest_malformed", 2), ("metadata_unchecked", 2)]);
    assert_eq!(verification.plan.as_ref().map(|plan| plan.rows()), Some(0));

    let strict = verify(&store, &Options { strict: true, ..whole_store() });
    assert_eq!((strict.verdict, strict.plan.is_none()), (Verdict::Refused, true));
    assert!(strict.findings.iter().all(|finding| finding.id.class() == Class::Unverifiable));
    assert_eq!(
        ids(&strict),
        ["digest_absent", "digest_absent", "digest_malformed", "digest_malformed", "metadata_unchecked", "metadata_unchecked"]
    );
    assert!(strict.unjoined().is_empty());
}

#[test]
fn unexplained_completions_are_counted_and_only_too_many_are_a_finding() {
    let mut store = sound_store();
    for name in ["x", "y"] {
        store.completions.insert(address("F", "a", name), CompletionRow::new("one", "1", "null"));
    }
    store.completions.insert(address("G", "nobody", "z"), CompletionRow::new("one", "1", "null"));
    let with = |max_unexplained| verify(&store, &Options { max_unexplained, ..whole_store() });
    for allowed in [None, Some(3), Some(u64::MAX)] {
        let verification = with(allowed);
        assert_eq!((verification.verdict, verification.unexplained), (Verdict::Match, Some(3)));
    }
    let verification = with(Some(2));
    assert_eq!((verification.verdict, verification.unexplained), (Verdict::Refused, Some(3)));
    assert_eq!(findings(&verification)[0], json!({ "id": "unexplained_above_limit", "class": "unverifiable", "expected": 2, "found": 3 }));
    // Who has not seen every run cannot say it.
    let some = verify(&store, &Options { max_unexplained: Some(0), whole_store: false, ..whole_store() });
    assert_eq!((some.verdict, some.unexplained, not_checked(&some)), (Verdict::Match, None, vec![("completion_rows", 2)]));
}

#[test]
fn drift_that_is_not_listed_is_in_the_plan_all_the_same() {
    let mut store = sound_store();
    store.clocks.clear();
    store.completions.get_mut(&address("F", "b", "d")).unwrap().completed = "1".into();
    let listed = verify(&store, &whole_store());
    assert!(ids(&listed).contains(&"clock_missing") && ids(&listed).contains(&"stamp_differs"));
    let unlisted = verify(&store, &Options { unlisted_drift: true, ..whole_store() });
    assert_eq!((unlisted.verdict, ids(&unlisted)), (listed.verdict, vec![]));
    assert_eq!(unlisted.plan.unwrap().digest(), listed.plan.unwrap().digest());
    // What refuses is listed always.
    store.completions.clear();
    let refused = verify(&store, &Options { unlisted_drift: true, ..whole_store() });
    assert_eq!(refused.verdict, Verdict::Refused);
    assert!(ids(&refused).iter().all(|id| *id == "row_missing") && !ids(&refused).is_empty());
}

#[test]
fn without_clock_rows_nothing_is_said_of_them_and_there_is_no_plan() {
    let mut store = sound_store();
    store.clocks.insert(address("F", "a", "c"), ClockRow::new("\"other\"", "1", "null"));
    store.clocks.insert(address("F", "a", "more"), ClockRow::new("\"other\"", "1", "null"));
    store.completions.get_mut(&address("F", "b", "d")).unwrap().completed = "1".into();
    // Even when a host gives them all the same.
    let verification = verify(&store, &Options { compare_clocks: false, ..whole_store() });
    assert_eq!((ids(&verification), verification.plan.is_none()), (vec!["stamp_differs"], true));
    // A clock without a run and a clock of two runs are still seen.
    store.live.remove(&b"b"[..]);
    store.journal.insert("0".into(), vec![scheduled(0, "a", "c", 1)]);
    let verification = verify(&store, &Options { compare_clocks: false, ..whole_store() });
    assert_eq!(ids(&verification), ["run_missing", "clock_conflict", "stamp_differs"]);
}
