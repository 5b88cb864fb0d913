//! An earlier report beside the journal: runs that became shorter, and history that was rewritten.

use journal_fold::deferred_clock::rebuild::{Baseline, Options, Verdict, Verification};
use journal_fold::deferred_clock::{put_into_state, RunFold};
use journal_fold::journal::Bound;
use serde_json::json;

use super::{findings, ids, not_checked, sound_store, verify};
use crate::history::{completed, consumed, fired, other, scheduled};
use crate::scenario::fill_tables;
use crate::store::{address, encoded, push_all, whole_store, Checkpoint, Entry, Store};

fn baseline_of(verification: &Verification) -> Vec<Baseline> {
    let heads = verification.heads().filter_map(|head| Some((head.run_id.to_vec(), head.last?, head.digest?)));
    heads.map(|(run_id, head, digest)| Baseline { run_id, head, digest }).collect()
}

fn with_baseline(store: &Store, baseline: Vec<Baseline>) -> Verification {
    verify(store, &Options { baseline, ..whole_store() })
}

#[test]
fn a_journal_that_only_grew_meets_its_baseline() {
    let mut store = sound_store();
    let baseline = baseline_of(&verify(&store, &whole_store()));
    assert_eq!(baseline.len(), 2);
    store.journal.get_mut(&b"a"[..]).unwrap().extend([scheduled(9, "a", "late", 1), completed(10, "a", "late", 1, "one")]);
    store.journal.insert("0".into(), vec![scheduled(1, "0", "c", 1)]);
    store.live.insert("0".into());
    fill_tables(&mut store);
    let verification = with_baseline(&store, baseline);
    assert_eq!((verification.verdict, ids(&verification)), (Verdict::Match, vec![]));
}

#[test]
fn a_run_that_ends_before_its_baseline_is_shorter() {
    let mut store = sound_store();
    let baseline = baseline_of(&verify(&store, &whole_store()));
    let last = store.journal.get_mut(&b"a"[..]).unwrap().pop().unwrap();
    assert_eq!(last.seq, 3);
    fill_tables(&mut store);
    let verification = with_baseline(&store, baseline.clone());
    assert_eq!(
        findings(&verification),
        [json!({ "id": "journal_shorter", "class": "refused", "runId": "a", "expected": "3", "found": "2" })]
    );
    // Nothing but entries of other types is nothing.
    store.journal.insert("a".into(), vec![other(9)]);
    store.clocks.remove(&address("F", "a", "c"));
    store.completions.clear();
    store.clocks.clear();
    let verification = with_baseline(&store, baseline.clone());
    assert_eq!(findings(&verification)[0], json!({ "id": "journal_shorter", "class": "refused", "runId": "a", "expected": "3", "found": null }));
    // Nor is a run that is gone altogether, wherever it stood.
    store.journal.clear();
    let verification = with_baseline(&store, baseline);
    let gone = |run: &str, head: &str| json!({ "id": "journal_shorter", "class": "refused", "runId": run, "expected": head, "found": null });
    assert_eq!(findings(&verification), [gone("a", "3"), gone("b", "1")]);
    assert_eq!(verification.verdict, Verdict::Refused);
}

#[test]
fn a_rewritten_part_is_seen_however_small() {
    let store = sound_store();
    let baseline = baseline_of(&verify(&store, &whole_store()));
    let rewrite = |place: usize, entry: Entry| {
        let mut store = store.clone();
        store.journal.get_mut(&b"a"[..]).unwrap()[place] = entry;
        // As many entries behind it as one likes.
        store.journal.get_mut(&b"a"[..]).unwrap().push(scheduled(50, "a", "late", 1));
        fill_tables(&mut store);
        ids(&with_baseline(&store, baseline.clone()))
    };
    assert_eq!(rewrite(0, scheduled(0, "a", "c", 100)), Vec::<&str>::new());
    assert_eq!(rewrite(0, scheduled(0, "a", "c", 101)), ["journal_rewritten"]);
    assert_eq!(rewrite(1, completed(1, "a", "d", 120, "two")), ["journal_rewritten"], "only the digest of an exit");
    assert_eq!(rewrite(1, completed(1, "a", "e", 120, "one")), ["journal_rewritten"]);
    assert_eq!(rewrite(2, fired(2, "a", "c", 111)), ["journal_rewritten"]);
    assert_eq!(rewrite(3, consumed(3, "a", "d", 131)), ["journal_rewritten"]);
}

#[test]
fn a_rewritten_part_names_both_digests() {
    let mut store = sound_store();
    let mut baseline = baseline_of(&verify(&store, &whole_store()));
    let sound = String::from_utf8(baseline[1].digest.to_hex()).unwrap();
    baseline[1].digest.add_row(b"never");
    let never = String::from_utf8(baseline[1].digest.to_hex()).unwrap();
    store.journal.get_mut(&b"b"[..]).unwrap().push(scheduled(7, "b", "late", 1));
    fill_tables(&mut store);
    let finding = json!({ "id": "journal_rewritten", "class": "refused", "runId": "b", "expected": never, "found": sound });
    assert_eq!(findings(&with_baseline(&store, baseline)), [finding]);
}

#[test]
fn a_compacted_run_is_compared_when_its_floor_lies_at_or_below_the_baseline() {
    let store = sound_store();
    let baseline = baseline_of(&verify(&store, &whole_store()));
    let compacted = |seq: u64| {
        let mut store = store.clone();
        let mut run = RunFold::new();
        let bound = Bound::new(seq as f64).unwrap();
        run.begin(b"a", None, Some(bound)).unwrap();
        push_all(&mut run, store.entries(b"a"), 0).unwrap();
        let state = put_into_state(None, encoded(&run).as_bytes()).unwrap();
        store.checkpoints.insert("a".into(), vec![Checkpoint { seq, compacted: true, state }]);
        store.journal.get_mut(&b"a"[..]).unwrap().retain(|entry| entry.seq as u64 > seq);
        let verification = with_baseline(&store, baseline.clone());
        (verification.verdict, not_checked(&verification))
    };
    assert_eq!(compacted(0), (Verdict::Match, vec![]));
    assert_eq!(compacted(3), (Verdict::Match, vec![]));
    assert_eq!(compacted(4), (Verdict::Match, vec![("baseline_compacted", 1)]));
}

#[test]
fn a_refused_run_is_not_compared_with_its_baseline() {
    let mut store = sound_store();
    let baseline = baseline_of(&verify(&store, &whole_store()));
    store.journal.get_mut(&b"a"[..]).unwrap()[0].payload = b"{".to_vec();
    assert_eq!(ids(&with_baseline(&store, baseline)), ["payload_not_json"]);
}

#[test]
fn a_baseline_may_come_in_any_order_and_twice() {
    let store = sound_store();
    let mut baseline = baseline_of(&verify(&store, &whole_store()));
    baseline.extend(baseline.clone());
    baseline.reverse();
    assert_eq!(ids(&with_baseline(&store, baseline)), Vec::<&str>::new());
}
