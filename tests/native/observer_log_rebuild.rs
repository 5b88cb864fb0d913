//! Whole streams: a restore of any prefix is the fold of it, and a verification names every problem it can see, says what the hint
//! is worth, and foretells what a restore does.

use std::cell::RefCell;
use std::collections::BTreeMap;

use journal_fold::finding::{Finding, Verdict};
use journal_fold::json::Writer;
use journal_fold::observer_log::rebuild::{Forecast, ForecastEnd, HintState, Rebuild, Verification};
use journal_fold::observer_log::restore::Restore;
use journal_fold::observer_log::{cadence, Aggregate, Failure, Row};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{json, Value};

use crate::drive;
use crate::observer_log_stream::Stream;
use crate::recorded::read_file;
use crate::observer_log_store::{Page, Store};

fn verify(store: &Store, page_rows: usize) -> Verification {
    let mut rebuild = Rebuild::new(Some(store.value));
    let rows: Vec<(u64, &[u8])> = store.rows.iter().map(|(sequence, payload)| (*sequence, payload.as_slice())).collect();
    for page in rows.chunks(page_rows) {
        rebuild.push_page(&Page::of(page.iter().copied()).rows());
        rebuild.answered(page.len() as u64, page.len() as u64);
    }
    rebuild.finish(Some(store.head))
}

fn report(verification: &Verification) -> Value {
    let mut out = Writer::new();
    verification.write(&mut out);
    serde_json::from_slice(out.as_bytes()).unwrap()
}

fn found(verification: &Verification) -> Vec<(&'static str, Option<u64>)> {
    verification.findings.iter().map(|finding| (finding.id.as_str(), finding.seq)).collect()
}

fn stream(rows: u64, snapshots: bool) -> Store {
    Stream::build(&json!({ "start": "0", "parts": [{ "history": {
        "rows": rows.to_string(), "first": "1", "conversations": "5", "arms_every": "3", "snapshots": snapshots,
    } }] }))
}

/// The fold of the rows below a sequence, by the aggregate alone.
fn folded(store: &Store, below: u64) -> Aggregate {
    let mut reader = journal_fold::observer_log::RowReader::new();
    let mut aggregate = Aggregate::new();
    for payload in store.rows.range(..below).map(|(_, payload)| payload) {
        aggregate.apply(reader.read(payload).unwrap()).unwrap();
    }
    aggregate
}

/// What a restore of the store does, with what it leaves behind.
fn restored(store: &Store) -> Forecast {
    let mut store = store.clone();
    let mut restore = Restore::new();
    drive!(restore, store);
    let (hint, folded_from) = (restore.hint(), restore.folded_from());
    let end = restore.into_result().unwrap();
    let end = end.map(|end| ForecastEnd {
        rows: end.rows,
        head: end.head,
        appends_snapshot: end.snapshot_appended,
        hint: store.value,
    });
    Forecast { hint, folded_from, end }
}

/// An error, but for why exactly a row was refused: a snapshot that builds no aggregate is refused in two ways.
fn shape(failure: Failure) -> (&'static str, Option<u64>) {
    (failure.kind(), failure.sequence())
}

fn same_as_forecast(store: &Store, verification: &Verification) -> Result<(), TestCaseError> {
    let (foretold, done) = (verification.restore.unwrap(), restored(store));
    prop_assert_eq!((foretold.hint, foretold.folded_from), (done.hint, done.folded_from));
    prop_assert_eq!(foretold.end.map_err(shape), done.end.map_err(shape));
    Ok(())
}

#[test]
fn every_recorded_restore_is_foretold() {
    let mut ran = 0;
    for case in read_file("observer-log/restore.json")["restore"].as_array().unwrap() {
        if case.get("store").is_some() {
            continue;
        }
        let mut store = Stream::build(&case["stream"]);
        store.value = case["hint"].as_str().map(|number| number.parse().unwrap());
        // Where the rows do not end at the stored head a restore that appends meets a conflict, which no look at the rows shows.
        let missing = store.rows.keys().last().map_or(0, |last| last.saturating_add(1)) != store.head.unwrap_or(0);
        let verification = verify(&store, 100);
        if missing && verification.restore.unwrap().end.is_ok_and(|end| end.appends_snapshot) {
            continue;
        }
        same_as_forecast(&store, &verification).unwrap_or_else(|why| panic!("{}: {why}", case["name"]));
        let first = verification.findings.first().map(|finding| finding.seq);
        let faulty = case["expect"]["whole_fold"] != "same";
        assert!(!faulty || first.is_some() || verification.coverage.pruned_below.is_some(), "{}", case["name"]);
        ran += 1;
    }
    assert!(ran > 90, "{ran}");
}

#[test]
fn a_sound_stream_matches_whatever_its_length() {
    for rows in [0, 1, 63, 64, 256, 257, 258, 513, 514, 1000] {
        let mut store = stream(rows, true);
        let mut restore = Restore::new();
        drive!(restore, store);
        let verification = verify(&store, 64);
        assert_eq!(verification.verdict, Verdict::Match, "{rows}");
        assert_eq!(found(&verification), []);
        assert_eq!(verification.coverage.rows, store.rows.len() as u64);
        assert_eq!(verification.coverage.folded, verification.coverage.rows);
        assert_eq!(verification.aggregate, Some(restore.into_result().unwrap().unwrap().aggregate));
        assert!(verification.not_checked.is_empty());
    }
}

#[test]
fn a_broken_row_is_named_and_checking_goes_on_from_the_next_snapshot() {
    let mut store = stream(1000, true);
    store.value = Some(771);
    let second = store.rows[&600].clone();
    store.rows.insert(100, b"nope".to_vec());
    // Behind a fault a row is still read, and its refusal is not known; behind the snapshot it is.
    store.rows.insert(120, b"{}".to_vec());
    store.rows.insert(600, Row::Track { conversation_id: 1, progress: 0 }.encode());
    store.rows.insert(601, second);
    let verification = verify(&store, 50);
    assert_eq!(verification.verdict, Verdict::Refused);
    assert_eq!(found(&verification), [("row_malformed", Some(100)), ("row_malformed", Some(120)), ("corrupt_row", Some(600))]);
    let report = report(&verification);
    assert_eq!(report["findings"][0], json!({
        "id": "row_malformed", "class": "refused", "seq": "100", "offset": 0, "expected": "an object", "found": "'n'",
    }));
    assert_eq!(report["findings"][2]["found"], json!({ "kind": "already_tracked", "conversation_id": "1" }));
    assert_eq!(report["coverage"]["segments"], json!([
        { "first": "0", "last": "99", "believed": false },
        { "first": "256", "last": "599", "believed": true },
        { "first": "770", "last": "1002", "believed": true },
    ]));
    // Rows 101 to 255 but the second broken one, and 601 to 769.
    assert_eq!(verification.coverage.not_folded, 154 + 169);
    assert_eq!(verification.hint.unwrap().state, HintState::Good);
    // A restore sees nothing of all this.
    assert_eq!(report["restore"], json!({
        "hint": "used", "foldedFrom": "771", "rows": "232", "head": "1003", "appendsSnapshot": false, "hintAfter": "771",
    }));
}

#[test]
fn a_snapshot_that_disagrees_is_named_with_the_first_pair_that_differs() {
    let mut store = stream(300, true);
    let mut wrong = folded(&store, 256).progress_list();
    let armed = folded(&store, 256).armed_list();
    let place = wrong.iter().position(|pair| !armed.contains(pair)).unwrap();
    let right = wrong[place];
    wrong[place].1 += 1;
    store.rows.insert(256, Row::Snapshot { progress: wrong, armed }.encode());
    for hint in [None, Some(257)] {
        store.value = hint;
        let verification = verify(&store, 64);
        let finding = &verification.findings[0];
        assert_eq!((finding.id.as_str(), finding.seq, finding.field), ("snapshot_disagrees", Some(256), Some("progress")));
        assert_eq!(finding.expected.as_deref(), Some(format!("[\"{}\",\"{}\"]", right.0, right.1).as_bytes()));
        assert_eq!(finding.found.as_deref(), Some(format!("[\"{}\",\"{}\"]", right.0, right.1 + 1).as_bytes()));
        let believed = verification.findings.iter().any(|finding| finding.id.as_str() == "hint_disagrees");
        assert_eq!(believed, hint.is_some(), "a restore believes the snapshot that the hint names");
        assert_eq!(verification.verdict, Verdict::Refused);
    }
}

#[test]
fn rows_missing_in_the_middle_at_the_beginning_and_at_the_end_are_noticed() {
    let mut store = stream(300, true);
    store.value = Some(257);
    store.rows.remove(&40);
    store.rows.remove(&41);
    store.rows.remove(&300);
    let verification = verify(&store, 64);
    assert_eq!(found(&verification), [("row_sequence", Some(42)), ("rows_missing_at_end", Some(300))]);
    assert_eq!(verification.coverage.missing, 2);
    let report = report(&verification);
    assert_eq!((&report["findings"][0]["expected"], &report["findings"][0]["found"]), (&json!("40"), &json!("42")));
    assert_eq!((&report["findings"][1]["expected"], &report["findings"][1]["found"]), (&json!("301"), &json!("300")));

    // Rows below the snapshot may be gone, as long as the hint leads past them.
    let mut store = stream(300, true);
    store.rows = store.rows.split_off(&256);
    store.value = Some(257);
    let verification = verify(&store, 64);
    assert_eq!((verification.verdict, verification.coverage.pruned_below), (Verdict::Match, Some(256)));
    assert_eq!(verification.not_checked.iter().map(|entry| (entry.what, entry.count)).collect::<Vec<_>>(), [("rows_below", 256), ("snapshots_believed", 1)]);
    for hint in [None, Some(280), Some(9999)] {
        store.value = hint;
        assert_eq!(found(&verify(&store, 64))[0], ("row_sequence", Some(256)), "a pruned stream needs its hint");
    }

    // A head that is lower than the rows, and one of a stream that lost everything.
    let mut store = stream(10, true);
    store.head = Some(9);
    assert_eq!(found(&verify(&store, 64)), [("head_below_rows", Some(10))]);
    store.rows.clear();
    assert_eq!(found(&verify(&store, 64)), [("rows_missing_at_end", Some(0))]);
}

#[test]
fn a_page_that_comes_back_short_before_the_end_is_a_finding() {
    let store = stream(100, true);
    let rows: Vec<(u64, &[u8])> = store.rows.iter().map(|(sequence, payload)| (*sequence, payload.as_slice())).collect();
    let mut rebuild = Rebuild::new(Some(None));
    for page in rows.chunks(10) {
        let page = Page::of(page.iter().copied());
        let asked = if rebuild.next() == 40 { 64 } else { 10 };
        rebuild.push_page(&page.rows());
        rebuild.answered(asked, page.rows().len() as u64);
    }
    let verification = rebuild.finish(Some(store.head));
    assert_eq!(found(&verification), [("page_short", Some(50))]);
    assert_eq!(verification.coverage.folded, 100, "the rows behind it are looked at all the same");
}

#[test]
fn a_hint_is_good_stale_missing_too_high_wrong_or_unreadable() {
    let mut store = stream(600, true);
    for (hint, state, finding) in [
        (Some(514), HintState::Good, None),
        (Some(257), HintState::Stale, None),
        (None, HintState::Missing, None),
        (Some(0), HintState::Missing, None),
        (Some(603), HintState::TooHigh, Some("hint_too_high")),
        (Some(u64::MAX), HintState::TooHigh, Some("hint_too_high")),
        (Some(515), HintState::Wrong, Some("hint_wrong")),
        (Some(1), HintState::Wrong, Some("hint_wrong")),
    ] {
        store.value = hint;
        let verification = verify(&store, 64);
        let judged = verification.hint.unwrap();
        assert_eq!((judged.stored, judged.state, judged.latest), (hint, state, 514));
        assert_eq!(found(&verification), Vec::from_iter(finding.map(|id| (id, None))), "{hint:?}");
        assert_eq!(verification.verdict, if finding.is_some() { Verdict::Drift } else { Verdict::Match });
        same_as_forecast(&store, &verification).unwrap();
    }
    for (payload, id) in [("nope", "row_malformed"), (r#"{"schema_version":2,"row":{"row":"snapshot","progress":[],"armed":[[1,1]]}}"#, "corrupt_row")] {
        store.value = Some(514);
        store.rows.insert(513, payload.into());
        let verification = verify(&store, 64);
        assert_eq!(found(&verification), [(id, Some(513)), ("hint_unreadable", None)]);
        assert_eq!(verification.hint.unwrap().latest, 257);
        same_as_forecast(&store, &verification).unwrap();
    }
    assert_eq!(verify(&stream(100, true), 64).hint.unwrap().state, HintState::NotNeeded);
}

#[test]
fn what_was_not_given_is_not_checked_and_what_was_not_looked_at_is_partial() {
    let store = stream(300, true);
    let page = Page::of(store.rows.iter().map(|(sequence, payload)| (*sequence, payload.as_slice())));
    let mut rebuild = Rebuild::new(None);
    rebuild.push_page(&page.rows());
    let verification = rebuild.finish(None);
    assert_eq!(verification.verdict, Verdict::Match);
    assert_eq!(verification.not_checked.iter().map(|entry| entry.what).collect::<Vec<_>>(), ["head", "hint"]);
    assert!(verification.restore.is_none());

    let mut rebuild = Rebuild::new(Some(Some(9999)));
    rebuild.push_page(&page.rows());
    let verification = rebuild.finish_partial();
    assert_eq!(verification.verdict, Verdict::Partial);
    assert!(verification.restore.is_none() && verification.findings.is_empty());
}

#[test]
fn a_stream_that_keeps_no_cadence_is_sound_and_says_so() {
    let store = stream(300, false);
    let verification = verify(&store, 64);
    assert_eq!(verification.verdict, Verdict::Match);
    assert_eq!(report(&verification)["notes"][0]["what"], "not_restated");
    assert_eq!(report(&verification)["notes"][0]["firstSeq"], "256");
    let mut store = stream(3, false);
    let snapshot = folded(&store, 3).snapshot().encode();
    store.append(3, vec![snapshot]);
    assert_eq!(report(&verify(&store, 64))["notes"], json!([
        { "what": "off_cadence", "meaning": "snapshots where none was due", "count": "1", "firstSeq": "3" },
    ]));
}

#[test]
fn a_row_that_no_other_can_follow_is_a_finding() {
    let last = r#"{"schema_version":1,"row":{"row":"arms","arms":[]}}"#;
    let rows = [(u64::MAX - 1, Aggregate::new().snapshot().encode()), (u64::MAX, last.into())];
    let mut store = Store::holding(rows.into(), Some(u64::MAX), Some(u64::MAX));
    let verification = verify(&store, 64);
    assert_eq!(found(&verification), [("row_sequence", Some(u64::MAX))]);
    same_as_forecast(&store, &verification).unwrap();
    store.rows.remove(&u64::MAX);
    assert_eq!(found(&verify(&store, 64)), []);
}

/// A change to a sound stream: at a place, of a kind.
#[derive(Debug, Clone)]
struct Damage {
    at: Index,
    /// One of the two places where snapshots stand, rather than any.
    snapshot: Option<u64>,
    kind: u8,
    payload: Row,
}

fn damage() -> impl Strategy<Value = Damage> {
    let snapshot = prop::option::weighted(0.3, select(vec![256_u64, 513]));
    (any::<Index>(), snapshot, 0..7_u8, crate::observer_log_rows::any_row())
        .prop_map(|(at, snapshot, kind, payload)| Damage { at, snapshot, kind, payload })
}

impl Damage {
    fn to(&self, store: &mut Store) {
        let any = store.rows.keys().nth(self.at.index(store.rows.len().max(1))).copied();
        let Some(sequence) = self.snapshot.or(any) else { return };
        let Some(payload) = store.rows.get_mut(&sequence) else { return };
        match self.kind {
            0 => payload.truncate(self.at.index(payload.len())),
            1 => payload.iter_mut().skip(self.at.index(60)).take(1).for_each(|byte| *byte ^= 1),
            2 => *payload = self.payload.encode(),
            3 => drop(store.rows.remove(&sequence)),
            4 => {
                let text = String::from_utf8_lossy(payload).replace("\"schema_version\":1", "\"schema_version\":3");
                *payload = text.into_bytes();
            }
            5 => {
                let snapshot = folded_as_far_as_sound(&self.payload, sequence);
                *payload = snapshot;
            }
            // Rows swapped: each is sound by itself.
            _ => {
                let before = payload.clone();
                if let Some(other) = store.rows.get_mut(&sequence.saturating_add(1)) {
                    let other = std::mem::replace(other, before);
                    store.rows.insert(sequence, other);
                }
            }
        }
    }
}

/// A snapshot out of nowhere: sometimes one that builds, sometimes in no order.
fn folded_as_far_as_sound(row: &Row, sequence: u64) -> Vec<u8> {
    let progress = match row {
        Row::Arms(pairs) | Row::Snapshot { progress: pairs, .. } => pairs.clone(),
        Row::Track { conversation_id, progress } | Row::Advance { conversation_id, progress } => vec![(*conversation_id, *progress)],
    };
    let armed = progress.iter().take((sequence % 3) as usize).copied().collect();
    Row::Snapshot { progress, armed }.encode()
}

#[derive(Debug, Clone)]
struct Scenario {
    rows: u64,
    snapshots: bool,
    hint: Option<u64>,
    head: u64,
    pruned: Option<u64>,
    damages: Vec<Damage>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let hint = prop::option::of(prop_oneof![4 => Just(257_u64), 4 => Just(514), 1 => Just(0), 2 => 0_u64..700, 1 => Just(u64::MAX)]);
    let head = prop_oneof![4 => Just(0_u64), 1 => 0_u64..2];
    let rows = prop_oneof![1 => 0_u64..20, 4 => 240_u64..600];
    (rows, prop_oneof![4 => Just(true), 1 => Just(false)], hint, head, prop::option::weighted(0.2, 0_u64..600), vec(damage(), 0..4))
        .prop_map(|(rows, snapshots, hint, head, pruned, damages)| Scenario { rows, snapshots, hint, head, pruned, damages })
}

impl Scenario {
    fn store(&self) -> Store {
        let mut store = stream(self.rows, self.snapshots);
        store.value = self.hint;
        for damage in &self.damages {
            damage.to(&mut store);
        }
        if let Some(pruned) = self.pruned {
            store.rows = store.rows.split_off(&pruned);
        }
        store
    }
}

#[test]
fn what_a_restore_does_is_foretold_whatever_the_damage() {
    let met: RefCell<BTreeMap<String, u32>> = RefCell::default();
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&scenario(), |scenario| {
            let mut store = scenario.store();
            // The end of the rows, so that a snapshot that the restore appends meets no conflict.
            let end = store.rows.keys().last().map_or(0, |last| last + 1);
            store.head = Some(end);
            let verification = verify(&store, 64);
            same_as_forecast(&store, &verification)?;
            let mut met = met.borrow_mut();
            let forecast = verification.restore.unwrap();
            let names = verification.findings.iter().map(|finding| finding.id.as_str());
            let states = [verification.verdict.as_str(), verification.hint.unwrap().state.as_str()];
            for what in names.chain(states).chain(forecast.end.err().map(|failure| failure.kind())) {
                *met.entry(what.into()).or_default() += 1;
            }
            // A restore that fails, fails at something that was found.
            if let Err(failure) = forecast.end {
                let at = failure.sequence();
                prop_assert!(verification.findings.iter().any(|finding| finding.seq == at), "{:?}: {:?}", failure, verification.findings);
            }
            Ok(())
        })
        .unwrap();
    let met = met.into_inner();
    for what in [
        "match", "drift", "refused", "row_malformed", "row_version", "row_sequence", "corrupt_row", "snapshot_disagrees",
        "hint_unreadable", "hint_disagrees", "hint_too_high", "hint_wrong", "good", "stale", "missing", "json", "sequence",
        "schema_version", "corrupt_row",
    ] {
        assert!(met.get(what).is_some_and(|count| *count > 3), "{what} was hardly met: {met:?}");
    }
}

fn as_text(findings: &[Finding]) -> String {
    let mut out = Writer::new();
    out.open_array();
    findings.iter().for_each(|finding| finding.write(&mut out));
    out.close_array();
    String::from_utf8(out.into_bytes()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_do_not_change_what_is_found(scenario in scenario(), one in 1_usize..70, other in 1_usize..70) {
        let mut store = scenario.store();
        store.head = Some(scenario.head);
        let (one, other) = (verify(&store, one), verify(&store, other));
        prop_assert_eq!(report(&one), report(&other));
        prop_assert_eq!(as_text(&one.findings), as_text(&other.findings));
    }

    #[test]
    fn a_restore_of_any_prefix_is_the_fold_of_that_prefix(rows in 0_u64..700, cut in any::<Index>(), hint in 0_u64..800, snapshots in any::<bool>()) {
        let mut store = stream(rows, snapshots);
        let cut = cut.index(store.rows.len() + 1) as u64;
        store.rows.split_off(&cut);
        store.head = Some(cut);
        store.value = (hint > 0).then_some(hint);
        let expected = folded(&store, u64::MAX);
        for _ in 0..2 {
            let mut restore = Restore::new();
            drive!(restore, store);
            let restored = restore.into_result().unwrap().unwrap();
            prop_assert_eq!(&restored.aggregate, &expected);
            prop_assert_eq!(restored.head, store.rows.len() as u64);
            // Whatever snapshot it appended says what the rows come to.
            prop_assert_eq!(&folded(&store, u64::MAX), &expected);
        }
    }

    #[test]
    fn every_snapshot_is_the_fold_of_what_stands_before_it(rows in 0_u64..1200) {
        let store = stream(rows, true);
        for sequence in store.rows.keys().copied().filter(|sequence| cadence::snapshot_due(*sequence)) {
            let before = folded(&store, sequence);
            prop_assert_eq!(&before.snapshot().encode(), &store.rows[&sequence]);
            prop_assert_eq!(cadence::snapshot_before(sequence, &before), Some(before.snapshot()));
        }
        prop_assert_eq!(cadence::head_after(0, rows), Some(store.rows.len() as u64));
    }
}
