//! Runs that cannot be folded: each is a finding, and the others go on.

use journal_fold::deferred_clock::rebuild::Verdict;
use journal_fold::deferred_clock::EventType;
use journal_fold::finding::Class;

use super::{bare_floor, findings, ids, not_checked, sound_store, verify};
use crate::history::{entry, scheduled, store_of};
use crate::store::{address, whole_store, Checkpoint, ClockRow, CompletionRow, Entry, Host};

#[test]
fn a_run_that_cannot_be_folded_does_not_hide_the_others() {
    let broken = [
        ("entry_conflict", vec![scheduled(1, "m", "c", 1), scheduled(1, "m", "c", 2)], 1),
        ("entry_out_of_order", vec![scheduled(5, "m", "c", 1), scheduled(4, "m", "d", 1)], 4),
        ("payload_not_json", vec![scheduled(5, "m", "c", 1), entry(6, EventType::ClockScheduled, "{")], 6),
        ("text_not_utf8", vec![Entry { seq: 7, type_code: 0, payload: b"\"\xff\"".to_vec() }], 7),
    ];
    for (id, entries, seq) in broken {
        let mut store = sound_store();
        store.live.insert("m".into());
        store.journal.insert("m".into(), entries);
        store.clocks.get_mut(&address("F", "b", "c")).unwrap().due = "5".into();
        // What the broken run may explain is neither unexpected nor unexplained.
        store.clocks.insert(address("F", "m", "c"), ClockRow::new("\"d\"", "1", "null"));
        store.clocks.insert(address("F", "elsewhere", "c"), ClockRow::new("\"d\"", "1", "null"));
        store.completions.insert(address("F", "a", "who"), CompletionRow::new("one", "1", "null"));
        for page_rows in [0, 1] {
            let verification = store.verify(&whole_store(), &Host { page_rows, ..Host::default() });
            assert_eq!(verification.verdict, Verdict::Refused);
            assert_eq!(ids(&verification), [id, "clock_differs"]);
            let finding = &verification.findings[0];
            assert_eq!((finding.id.class(), finding.run_id.as_deref(), finding.seq), (Class::Refused, Some(&b"m"[..]), Some(seq)));
            assert_eq!(verification.unexplained, None);
            assert_eq!(not_checked(&verification), [("runs_unfolded", 1), ("clock_rows", 2), ("completion_rows", 1)]);
            assert_eq!((verification.unfolded, verification.totals.runs, verification.totals.clocks), (1, 3, 2));
            assert!(verification.plan.is_none());
            assert!(verification.unjoined().is_empty(), "only unjoined references are in the error");
        }
    }
}

#[test]
fn a_refused_run_says_where_its_payload_breaks() {
    let store = store_of([("a", vec![entry(3, EventType::ClockCompleted, "{\"a\":tru}")])]);
    let finding = &findings(&verify(&store, &whole_store()))[0];
    assert_eq!(
        finding.to_string(),
        r#"{"id":"payload_not_json","class":"refused","runId":"a","seq":"3","offset":8,"expected":"true, false or null","found":"'}'"}"#
    );
}

#[test]
fn a_floor_without_a_fold_hides_its_runs_tail() {
    let mut store = sound_store();
    store.journal.get_mut(&b"a"[..]).unwrap().push(entry(9, EventType::ClockScheduled, "{"));
    bare_floor(&mut store, "a", 2);
    let verification = verify(&store, &whole_store());
    assert_eq!(ids(&verification), ["checkpoint_missing"]);
    assert_eq!(
        findings(&verification)[0].to_string(),
        r#"{"id":"checkpoint_missing","class":"unjoined","runId":"a","expected":"a checkpoint that keeps a deferred/clock fold","found":"a state without flows.engine.deferred-clock"}"#
    );
    let unjoined = verification.unjoined();
    assert_eq!((unjoined[0].reason, unjoined[0].execution_id.as_slice(), &unjoined[0].row), ("checkpoint_missing", &b"a"[..], &None));
    assert_eq!(not_checked(&verification), [("runs_unfolded", 1), ("clock_rows", 1), ("completion_rows", 1)]);
}

#[test]
fn a_floor_says_why_it_keeps_no_fold() {
    for (state, why) in [
        (&b"{"[..], "a text that is no JSON: expected a member's name in quotes at byte 1, found the end of the text"),
        (b"\"\xff\"", "a text that is not UTF-8 from byte 1 on"),
        (b"[]", "a state that is no object"),
        (b"{}", "a state without flows.engine.deferred-clock"),
        (b"{\"flows.engine.deferred-clock\":[]}", "a malformed fold under flows.engine.deferred-clock"),
    ] {
        let mut store = store_of([]);
        store.checkpoints.insert("a".into(), vec![Checkpoint { seq: 1, compacted: true, state: state.into() }]);
        assert_eq!(findings(&verify(&store, &whole_store()))[0]["found"], why);
    }
}
