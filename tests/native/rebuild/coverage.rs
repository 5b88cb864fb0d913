//! What was covered: runs, heads, and entries that changed nothing.

use journal_fold::deferred_clock::rebuild::Rebuild;
use journal_fold::deferred_clock::EventType;
use journal_fold::journal::MAX_SEQ;

use super::{bare_floor, sound_store, verify};
use crate::history::{entry, other, scheduled, store_of};
use crate::store::{whole_store, Checkpoint, Host, Parts};

#[test]
fn heads_say_how_far_each_run_was_looked_at() {
    let mut store = sound_store();
    store.journal.insert("c".into(), vec![other(4)]);
    let state = br#"{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}"#;
    store.checkpoints.insert("d".into(), vec![Checkpoint { seq: MAX_SEQ, compacted: true, state: state.to_vec() }]);
    store.journal.insert("e".into(), vec![scheduled(2, "e", "c", 1), entry(3, EventType::ClockScheduled, "")]);
    let verification = verify(&store, &whole_store());
    let heads: Vec<_> =
        verification.heads().map(|head| (head.run_id, head.floor, head.first, head.last, head.digest.is_some())).collect();
    assert_eq!(
        heads,
        [
            (&b"a"[..], None, Some(0), Some(3), true),
            (b"b", None, Some(0), Some(1), true),
            (b"c", None, None, None, true),
            (b"d", Some(MAX_SEQ), None, Some(MAX_SEQ), true),
            (b"e", None, Some(2), Some(2), false),
        ]
    );
    let digest = verification.heads_digest();
    assert_eq!(digest, verify(&store, &whole_store()).heads_digest());
    store.journal.get_mut(&b"b"[..]).unwrap().push(scheduled(2, "b", "late", 1));
    assert_ne!(digest, verify(&store, &whole_store()).heads_digest());
}

#[test]
fn runs_count_when_they_have_an_entry_of_the_four_types_or_a_floor() {
    let mut store = store_of([
        ("a", vec![other(0)]),
        ("b", vec![entry(0, EventType::DeferredConsumed, "null")]),
        ("c", vec![entry(0, EventType::DeferredConsumed, "{"), other(1)]),
        ("d", vec![]),
    ]);
    bare_floor(&mut store, "e", 0);
    store.checkpoints.insert("f".into(), vec![Checkpoint { seq: 1, compacted: false, state: b"{}".to_vec() }]);
    for leaves_out in [false, true] {
        let verification = store.verify(&whole_store(), &Host { leaves_out, page_rows: 1, ..Host::default() });
        assert_eq!(verification.totals.runs, 3);
    }
}

#[test]
fn other_types_are_counted_whether_they_are_passed_on_or_left_out() {
    let store = store_of([("a", vec![other(0), scheduled(1, "a", "c", 1), other(2)])]);
    let mut rebuild = Rebuild::new(whole_store());
    rebuild.begin_run(b"a", []).unwrap();
    rebuild.skipped(2);
    rebuild.push(&Parts::of(&store.entries(b"a")[1..2]).page()).unwrap();
    let wanted = rebuild.end_run().unwrap();
    store.answer(&mut rebuild, &wanted, false);
    rebuild.end_runs().unwrap();
    let ignored = rebuild.finish().unwrap().ignored;
    assert_eq!((ignored[0].reason.as_str(), ignored[0].count, &ignored[0].first), ("other_type", 2, &None));
    let ignored = verify(&store, &whole_store()).ignored;
    assert_eq!((ignored[0].reason.as_str(), ignored[0].count, &ignored[0].first), ("other_type", 2, &Some((b"a".to_vec(), 0))));
}
