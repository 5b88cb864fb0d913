//! Plans: what they change, how they are cut, and what will run differently.

use journal_fold::deferred_clock::rebuild::{Op, Options, Verdict};
use journal_fold::deferred_clock::EventType;
use serde_json::Value;

use super::{rows, sound_store, verify};
use crate::history::{completed, consumed, entry, fired, scheduled, store_of};
use crate::store::{address, finding_text, whole_store, ClockRow, CompletionRow, Host, Store};

#[test]
fn effects_say_what_will_run_differently() {
    let pending = |due: u64| ClockRow::new("\"d\"", &due.to_string(), "null");
    let mut store = store_of([(
        "a",
        vec![
            scheduled(0, "a", "missing, overdue", 10),
            scheduled(1, "a", "missing, due now", 20),
            scheduled(2, "a", "missing, later", 21),
            scheduled(3, "a", "missing, completed", 10),
            fired(4, "a", "missing, completed", 11),
            scheduled(5, "a", "due otherwise", 5),
            scheduled(6, "a", "was completed", 30),
            scheduled(7, "a", "was pending", 10),
            fired(8, "a", "was pending", 12),
            scheduled(9, "a", "completed otherwise", 10),
            fired(10, "a", "completed otherwise", 12),
            completed(11, "a", "cleared", 1, "one"),
            completed(12, "a", "set", 1, "one"),
            consumed(13, "a", "set", 2),
            completed(14, "a", "moved", 1, "one"),
            consumed(15, "a", "moved", 2),
            completed(16, "a", "still consumed", 1, "one"),
            consumed(17, "a", "still consumed", 2),
        ],
    )]);
    for (name, row) in [
        ("due otherwise", pending(6)),
        ("was completed", ClockRow::new("\"d\"", "30", "31")),
        ("was pending", pending(10)),
        ("completed otherwise", ClockRow::new("\"d\"", "10", "13")),
        ("unexpected, pending", pending(1)),
        ("unexpected, completed", ClockRow::new("\"d\"", "1", "2")),
    ] {
        store.clocks.insert(address("F", "a", name), row);
    }
    for (name, completed, consumed) in [("cleared", "1", "9"), ("set", "1", "null"), ("moved", "1", "9"), ("still consumed", "0", "2")] {
        store.completions.insert(address("F", "a", name), CompletionRow::new("one", completed, consumed));
    }
    let effects = |as_of_ms| verify(&store, &Options { as_of_ms, ..whole_store() }).plan.unwrap().effects;
    let found = effects(Some(20));
    assert_eq!((found.clocks_armed, found.clocks_overdue), (5, 3));
    assert_eq!((found.pending_deleted, found.pending_completed), (1, 1));
    assert_eq!((found.consumptions_cleared, found.consumptions_set), (1, 1));
    assert_eq!(effects(None).clocks_overdue, 0, "the core has no clock of its own");
    assert_eq!(effects(Some(0)).clocks_overdue, 0);
}

#[test]
fn a_plan_comes_in_pages() {
    let name = |i: usize| format!("c{i:05}");
    let entries = (0..4_500).map(|i| scheduled(i as i64, "a", &name(4_499 - i), 1)).collect();
    let mut store = store_of([("a", entries)]);
    for i in 0..2_001 {
        store.clocks.insert(address("F", "b", &name(i)), ClockRow::new("\"d\"", "1", "null"));
    }
    let verification = verify(&store, &whole_store());
    let plan = verification.plan.as_ref().unwrap();
    let pages: Vec<_> = plan.pages.iter().map(|page| (page.op, page.count)).collect();
    assert_eq!(pages, [(Op::Delete, 2_000), (Op::Delete, 1), (Op::Insert, 2_000), (Op::Insert, 2_000), (Op::Insert, 500)]);
    assert_eq!(plan.rows(), 6_501);
    let names: Vec<String> = plan.pages[2..]
        .iter()
        .flat_map(|page| serde_json::from_slice::<Vec<Vec<Value>>>(&page.rows).unwrap())
        .map(|row| row[2].as_str().unwrap().to_string())
        .collect();
    assert!(names.iter().eq((0..4_500).map(name).collect::<Vec<_>>().iter()), "in order of address");
    store.apply(plan);
    assert_eq!(verify(&store, &whole_store()).verdict, Verdict::Match);
}

#[test]
fn plans_that_do_the_same_have_one_digest() {
    let mut store = sound_store();
    let digest = |store: &Store, host: &Host| store.verify(&whole_store(), host).plan.unwrap().digest();
    let empty = digest(&store, &Host::default());
    store.clocks.clear();
    let full = digest(&store, &Host::default());
    assert_ne!(empty, full);
    assert_eq!(full.len(), 32);
    assert_eq!(full, digest(&store, &Host { page_rows: 1, descending: true, runs_an_answer: 2, ..Host::default() }));
    // The same values are inserted here and updated there.
    let mut differing = sound_store();
    differing.clocks.values_mut().for_each(|row| row.due = "7".into());
    let rows_of = |store: &Store| rows(&verify(store, &whole_store())).into_iter().map(|(_, _, rows)| rows).collect::<Vec<_>>();
    assert_eq!(rows_of(&store), rows_of(&differing));
    assert_ne!(full, digest(&differing, &Host::default()));
    // A column that another row had is another plan; a row that was as planned all along is none.
    store.clocks.insert(address("F", "a", "c"), ClockRow::new("\"d\"", "100", "110"));
    assert_ne!(full, digest(&store, &Host::default()));
}

#[test]
fn a_row_that_no_store_of_utf8_can_hold_is_counted_in_its_plan() {
    let lone = r#"{"flowName":"F","executionId":"a","clockName":"\ud800","deferredName":"d","dueAtMs":1}"#;
    let lone_deferred = r#"{"flowName":"F","executionId":"a","clockName":"c","deferredName":"x\udfff","dueAtMs":1}"#;
    let store = store_of([("a", vec![entry(0, EventType::ClockScheduled, lone), entry(1, EventType::ClockScheduled, lone_deferred), scheduled(2, "a", "\u{fffd}", 1)])]);
    let verification = verify(&store, &whole_store());
    let plan = verification.plan.as_ref().unwrap();
    assert_eq!((plan.rows(), plan.unstorable), (3, 2));
    let text = &rows(&verification)[0].2;
    // In order of bytes, in which an unpaired surrogate comes before U+FFFD.
    assert_eq!(text, "[[\"F\",\"a\",\"c\",\"x\\udfff\",1,null],[\"F\",\"a\",\"\\ud800\",\"d\",1,null],[\"F\",\"a\",\"\u{fffd}\",\"d\",1,null]]");
    assert!(finding_text(&verification.findings[1]).contains(r#""name":"\ud800""#));
}
