//! What holds for every store: the verification is what a plain model says, whoever the host is and wherever the journal is cut.

use std::cell::RefCell;
use std::collections::BTreeMap;

use journal_fold::deferred_clock::rebuild::{Baseline, Rebuild, Verdict, Verification};
use journal_fold::deferred_clock::{put_into_state, EventType, Fold, RunFold};
use journal_fold::error::Error;
use journal_fold::journal::{Bound, Floor, Page};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::model;
use crate::scenario::{earlier_report, host, lie, options, scenario, sound_scenario};
use crate::store::{
    address, encoded, everything, finding_text, push_all, whole_store, Checkpoint, ClockRow, CompletionRow, Entry, Host, Parts, Store,
};

fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}

#[test]
fn a_verification_is_what_the_model_says() {
    // A test of this kind is worth what it meets, so it counts that.
    let met: RefCell<BTreeMap<String, u32>> = RefCell::default();
    let strategy = (scenario(), options(), host(), prop::option::of(lie()));
    TestRunner::new(cases(4_000))
        .run(&strategy, |(scenario, mut options, host, lie)| {
            let store = scenario.store();
            if let Some(lie) = lie {
                options.baseline = earlier_report(&store, lie);
            }
            let verification = store.verify(&options, &host);
            let found = model::report_of(&verification);
            let expected = model::verify(&store, &options, |place| host.leaves_out && place % 2 == 1);
            let mut met = met.borrow_mut();
            let ids = found.findings.iter().map(|finding| finding["id"].as_str().unwrap().to_string());
            let others = found.not_checked.keys().chain(found.notes.keys()).cloned();
            for what in ids.chain(others).chain([found.verdict.clone()]) {
                *met.entry(what).or_default() += 1;
            }
            prop_assert_eq!(found, expected);
            Ok(())
        })
        .unwrap();
    let met = met.into_inner();
    let wanted = [
        "match", "drift", "refused", "entry_conflict", "entry_out_of_order", "payload_not_json", "text_not_utf8",
        "journal_shorter", "journal_rewritten", "checkpoint_missing", "run_missing", "clock_conflict", "row_missing",
        "digest_mismatch", "digest_absent", "digest_malformed", "metadata_unchecked", "unexplained_above_limit",
        "clock_missing", "clock_differs", "clock_unexpected", "stamp_differs", "recorded_by_two_runs", "runs_unfolded",
        "clock_rows", "completion_rows", "baseline_compacted", "checkpoint_beyond_head",
    ];
    for what in wanted {
        assert!(met.get(what).is_some_and(|count| *count > 10), "{what} was hardly met: {met:?}");
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn no_host_changes_what_a_verification_says(
        scenario in scenario(), options in options(), one in host(), mut other in host(), lie in prop::option::of(lie()),
    ) {
        let store = scenario.store();
        let mut options = options;
        if let Some(lie) = lie {
            options.baseline = earlier_report(&store, lie);
        }
        other.leaves_out = one.leaves_out;
        prop_assert_eq!(everything(&store.verify(&options, &one)), everything(&store.verify(&options, &other)));
    }

    #[test]
    fn after_its_plan_a_store_is_as_its_journal_says(scenario in sound_scenario(), host in host()) {
        let mut store = scenario.store();
        let verification = store.verify(&whole_store(), &host);
        let Some(plan) = &verification.plan else {
            prop_assert_eq!(verification.verdict, Verdict::Refused);
            return Ok(());
        };
        prop_assert_eq!(plan.rows() == 0, verification.verdict == Verdict::Match);
        store.apply(plan);
        let again = store.verify(&whole_store(), &host);
        prop_assert_eq!(again.verdict, Verdict::Match);
        prop_assert!(again.findings.is_empty());
        prop_assert_eq!(again.plan.as_ref().map(|plan| plan.rows()), Some(0));
        prop_assert_eq!(again.digest, verification.digest);
        prop_assert_eq!(again.unexplained, verification.unexplained);
        // And no row is another than the plain model's.
        let (clocks, completions) = model::folded(&store);
        prop_assert!(store.clocks.keys().eq(clocks.keys()));
        for (address, (_, consumed, _)) in completions {
            prop_assert!(model::same_time(&store.completions[&address].consumed, consumed));
        }
    }

    #[test]
    fn a_store_and_its_compacted_twin_say_the_same(
        scenario in scenario(), options in options(), host in host(),
        cuts in vec((any::<usize>(), 0_u64..40, any::<bool>()), 1..6),
    ) {
        let mut options = options;
        options.strict = false;
        let store = scenario.store();
        let mut twin = store.clone();
        let ids = store.run_ids();
        prop_assume!(!ids.is_empty());
        for (pick, cut, keeps_entries) in cuts {
            compact(&mut twin, &ids[pick % ids.len()], cut, keeps_entries);
        }
        let (store, twin) = (store.verify(&options, &host), twin.verify(&options, &host));
        prop_assert_eq!(findings(&store), findings(&twin));
        let rebuilt = |of: &Verification| (of.totals.runs, of.totals.clocks, of.totals.deferreds, of.unexplained);
        prop_assert_eq!(rebuilt(&store), rebuilt(&twin));
        prop_assert_eq!(store.digest, twin.digest);
        prop_assert_eq!(store.verdict, twin.verdict);
        prop_assert_eq!(&store.plan, &twin.plan);
        let digests = |of: &Verification| of.heads().map(|head| (head.run_id.to_vec(), head.digest)).collect::<Vec<_>>();
        prop_assert_eq!(digests(&store), digests(&twin));
    }

    #[test]
    fn a_report_is_a_baseline_that_its_own_store_meets(
        scenario in scenario(), host in host(), cuts in vec((any::<usize>(), 0_u64..40), 0..3),
    ) {
        let mut store = scenario.store();
        let first = store.verify(&whole_store(), &host);
        let baseline: Vec<Baseline> = first
            .heads()
            .filter_map(|head| Some(Baseline { run_id: head.run_id.to_vec(), head: head.last?, digest: head.digest? }))
            .collect();
        let ids = store.run_ids();
        for (pick, cut) in cuts {
            if !ids.is_empty() {
                compact(&mut store, &ids[pick % ids.len()], cut, false);
            }
        }
        let mut options = whole_store();
        options.baseline = baseline;
        let again = store.verify(&options, &host);
        prop_assert_eq!(findings(&first), findings(&again));
    }

    #[test]
    fn folding_in_two_parts_through_an_encoding_is_folding_at_once(
        scenario in scenario(), cut in any::<usize>(), page_rows in select(vec![0_usize, 1, 2, 5]), other_rows in select(vec![0_usize, 1, 3]),
    ) {
        let store = scenario.store();
        for entries in store.journal.values() {
            let mut at_once = RunFold::new();
            if push_all(&mut at_once, entries, page_rows).is_err() {
                continue;
            }
            let (before, after) = entries.split_at(cut % (entries.len() + 1));
            let mut first = RunFold::new();
            push_all(&mut first, before, other_rows).unwrap();
            let mut second = RunFold::new();
            second.begin_from(encoded(&first).as_bytes()).unwrap();
            prop_assert_eq!(encoded(&second), encoded(&first));
            push_all(&mut second, after, other_rows).unwrap();
            prop_assert_eq!(encoded(&second), encoded(&at_once));
            prop_assert_eq!(second.fold().digests(), at_once.fold().digests());
            prop_assert_eq!(second.fold().digest(), at_once.fold().digest());
        }
    }

    #[test]
    fn a_fold_survives_its_encoding_and_its_checkpoint(scenario in scenario(), base in select(vec![None, Some("{}"), Some(" {\"a\" : 1 } "),
        Some("{\"flows.engine.deferred-clock\":[],\"flows.engine.deferred-clock\":2 ,\"z\":{}}")]),
    ) {
        let store = scenario.store();
        for entries in store.journal.values() {
            let mut run = RunFold::new();
            let _ = push_all(&mut run, entries, 0);
            let text = encoded(&run);
            let mut read = Fold::new();
            read.read_encoded(text.as_bytes()).unwrap();
            let mut again = Vec::new();
            read.write_encoded(&mut again);
            prop_assert_eq!(std::str::from_utf8(&again).unwrap(), &text);

            let state = put_into_state(base.map(str::as_bytes), text.as_bytes()).unwrap();
            let mut kept = Fold::new();
            prop_assert!(kept.read_checkpoint(&state).is_ok());
            let mut again = Vec::new();
            kept.write_encoded(&mut again);
            prop_assert_eq!(std::str::from_utf8(&again).unwrap(), &text);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        payloads in vec(prop_oneof![
            vec(any::<u8>(), 0..40),
            "\\PC{0,30}".prop_map(String::into_bytes),
            r#"[{}\[\]",:\\u0-9a-f null]{0,40}"#.prop_map(String::into_bytes),
        ], 0..8),
        types in vec(any::<u8>(), 8),
        seqs in vec(select(vec![0_i64, 1, 2, 3, i64::MAX]), 8),
        state in vec(any::<u8>(), 0..60),
    ) {
        let mut ends = Vec::new();
        let mut bytes = Vec::new();
        for payload in &payloads {
            bytes.extend_from_slice(payload);
            ends.push(bytes.len() as u32);
        }
        let count = payloads.len();
        let page = Page::new(&bytes, &ends, &seqs[..count], &types[..count]).unwrap();
        let mut run = RunFold::new();
        let _ = run.push(&page);
        let _ = run.begin(b"r", Some(Floor { seq: 1, compacted: true, state: &state }), None);
        let mut rebuild = Rebuild::new(whole_store());
        rebuild.begin_run(b"r", [Floor { seq: 1, compacted: true, state: &state }]).unwrap();
        rebuild.push(&page).unwrap();
        let _ = rebuild.end_run();
        let _ = put_into_state(Some(&state), b"{}");
    }
}

#[derive(Debug, Clone)]
enum Call {
    BeginRun(&'static str),
    Push(u8, i64, &'static str),
    EndRun,
    Live(&'static str),
    Clock(&'static str, &'static str, [&'static str; 3]),
    Completion(&'static str, &'static str, [&'static str; 2]),
    EndAnswer,
    EndRuns,
    Sweep(&'static str, &'static str),
}

fn call() -> impl Strategy<Value = Call> {
    let id = || select(vec!["", "a", "b", "c"]);
    let flow = || select(vec!["F", "G", ""]);
    let value = || select(vec!["null", "1", "\"d\"", "{", "", "1e400", "[[]]"]);
    let payload = select(vec![
        r#"{"flowName":"F","executionId":"a","clockName":"c","deferredName":"d","dueAtMs":1,"completedAtMs":1,"consumedAtMs":1}"#,
        r#"{"flowName":"F","executionId":"b","clockName":"c","deferredName":"d","dueAtMs":2,"completedAtMs":1,"consumedAtMs":1}"#,
        r#"{"flowName":"G","executionId":"c","clockName":"c","deferredName":"d","dueAtMs":3,"exitDigest":"x"}"#,
        "{",
    ]);
    prop_oneof![
        2 => id().prop_map(Call::BeginRun),
        3 => (0_u8..5, 0_i64..9, payload).prop_map(|(type_code, seq, payload)| Call::Push(type_code, seq, payload)),
        3 => Just(Call::EndRun),
        1 => id().prop_map(Call::Live),
        2 => (flow(), id(), [value(), value(), value()]).prop_map(|(flow, id, values)| Call::Clock(flow, id, values)),
        2 => (flow(), id(), [value(), value()]).prop_map(|(flow, id, values)| Call::Completion(flow, id, values)),
        3 => Just(Call::EndAnswer),
        1 => Just(Call::EndRuns),
        1 => (flow(), id()).prop_map(|(flow, id)| Call::Sweep(flow, id)),
    ]
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn no_order_of_calls_makes_the_machine_panic(calls in vec(call(), 0..60), partial in any::<bool>()) {
        let mut rebuild = Rebuild::new(whole_store());
        for call in calls {
            // Whatever fails fails by name, and the next call is as good as if it had never been made.
            let _: Result<(), Error> = match call {
                Call::BeginRun(id) => rebuild.begin_run(id.as_bytes(), []),
                Call::Push(type_code, seq, payload) => {
                    let entry = Entry { seq, type_code, payload: payload.into() };
                    rebuild.push(&Parts::of(&[entry]).page())
                }
                Call::EndRun => rebuild.end_run().map(drop),
                Call::Live(id) => rebuild.live_run(id.as_bytes()),
                Call::Clock(flow, id, [deferred, due, completed]) => {
                    rebuild.stored_clock(&ClockRow::new(deferred, due, completed).stored(&address(flow, id, "c")))
                }
                Call::Completion(flow, id, [completed, consumed]) => {
                    rebuild.stored_completion(&CompletionRow::new("one", completed, consumed).stored(&address(flow, id, "d")))
                }
                Call::EndAnswer => rebuild.end_answer(),
                Call::EndRuns => rebuild.end_runs().map(drop),
                Call::Sweep(flow, id) => rebuild.sweep([(flow.as_bytes(), id.as_bytes())]).map(drop),
            };
        }
        let finishes = rebuild.check_finish();
        if partial {
            prop_assert_eq!(rebuild.finish_partial().verdict, Verdict::Partial);
        } else {
            prop_assert_eq!(rebuild.finish().map(drop), finishes);
        }
    }
}

fn findings(verification: &Verification) -> Vec<String> {
    verification.findings.iter().map(finding_text).collect()
}

/// Compacts a run up to `cut`, as an engine would: the fold is captured, then what it covers is deleted. A run that cannot be
/// captured whole, or has nothing to keep, is left alone.
fn compact(store: &mut Store, id: &[u8], cut: u64, keeps_entries: bool) {
    let entries = store.entries(id).to_vec();
    let floor = Floor::pick(store.floors(id));
    let counted = floor.is_some() || entries.iter().any(|entry| EventType::from_code(entry.type_code).is_some());
    if !counted || floor.is_some_and(|floor| floor.seq >= cut) {
        return;
    }
    let mut whole = RunFold::new();
    if whole.begin(id, floor, None).is_err() || push_all(&mut whole, &entries, 0).is_err() {
        return;
    }
    let mut run = RunFold::new();
    run.begin(id, floor, Some(Bound::new(cut as f64).unwrap())).unwrap();
    push_all(&mut run, &entries, 0).unwrap();
    let state = put_into_state(None, encoded(&run).as_bytes()).unwrap();
    let checkpoints = store.checkpoints.entry(id.to_vec()).or_default();
    checkpoints.retain(|checkpoint| checkpoint.seq != cut);
    checkpoints.push(Checkpoint { seq: cut, compacted: true, state });
    if !keeps_entries {
        let kept = store.journal.entry(id.to_vec()).or_default();
        kept.retain(|entry| entry.seq as u64 > cut);
    }
}

#[test]
fn a_large_run_and_small_ones_share_a_machine() {
    // The machine keeps a run's memory for the next one, and gives it back when the next ones are small.
    let mut store = Store::default();
    for (id, count) in [("a", 3_000), ("b", 2), ("c", 0), ("d", 5), ("e", 2_000)] {
        store.live.insert(id.into());
        let entries = (0..count)
            .map(|seq| {
                let payload = format!(
                    r#"{{"flowName":"F{}","executionId":"{id}","clockName":"c{seq}","deferredName":"d","dueAtMs":{seq}}}"#,
                    seq % 7
                );
                crate::history::entry(seq, EventType::ClockScheduled, &payload)
            })
            .collect();
        store.journal.insert(id.into(), entries);
    }
    let host = Host { page_rows: 512, ..Host::default() };
    let verification = store.verify(&whole_store(), &host);
    assert_eq!((verification.totals.clocks, verification.findings.len()), (5_007, 5_007));
    store.apply(&verification.plan.unwrap());
    assert_eq!(store.verify(&whole_store(), &Host { runs_an_answer: 3, ..host }).verdict, Verdict::Match);
}
