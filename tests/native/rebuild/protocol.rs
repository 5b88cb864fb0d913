//! What the machine wants, what a host may do and may not, and what a host that errs gets.

use journal_fold::deferred_clock::rebuild::{Rebuild, StoredClock, StoredCompletion, Verdict, Wanted};
use journal_fold::deferred_clock::EventType;
use journal_fold::error::{Code, Error};
use journal_fold::journal::Floor;
use serde_json::json;

use super::{ids, not_checked, sound_store, verify};
use crate::history::{completed, entry, other, scheduled};
use crate::scenario::fill_tables;
use crate::store::{address, everything, key, whole_store, Address, ClockRow, CompletionRow, Entry, Parts, Store};

fn machine() -> Rebuild {
    Rebuild::new(whole_store())
}

fn give(rebuild: &mut Rebuild, id: &str, entries: &[Entry]) -> Wanted {
    rebuild.begin_run(id.as_bytes(), []).unwrap();
    rebuild.push(&Parts::of(entries).page()).unwrap();
    rebuild.end_run().unwrap()
}

fn code<T>(result: Result<T, Error>) -> Code {
    match result {
        Ok(_) => panic!("this should have failed"),
        Err(error) => error.code,
    }
}

#[test]
fn a_machine_says_what_it_wants() {
    let mut rebuild = machine();
    let wanted = give(&mut rebuild, "a", &[scheduled(0, "a", "c", 1), completed(1, "a", "d", 1, "one"), scheduled(2, "x", "c", 1)]);
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(flow, execution)| ((*flow).into(), (*execution).into())).collect()
    };
    assert_eq!(wanted, Wanted { runs: vec![b"a".to_vec()], addresses: pairs(&[("F", "a")]) });
    rebuild.end_answer().unwrap();
    // Completions need no run, and a run of foreign rows alone wants nothing before the end.
    let wanted = give(&mut rebuild, "b", &[completed(0, "b", "d", 1, "one")]);
    assert_eq!(wanted, Wanted { runs: vec![], addresses: pairs(&[("F", "b")]) });
    rebuild.end_answer().unwrap();
    assert!(give(&mut rebuild, "c", &[completed(0, "y", "d", 1, "one"), other(1)]).is_empty());
    let wanted = rebuild.end_runs().unwrap();
    assert_eq!(wanted, Wanted { runs: vec![b"x".to_vec()], addresses: pairs(&[("F", "x"), ("F", "y")]) });
    rebuild.end_answer().unwrap();
    // Of what the sweep meets it wants what it has not seen, and each once.
    let swept = pairs(&[("F", "a"), ("F", "y"), ("G", "a"), ("F", "z"), ("G", "a")]);
    let sweep = |rebuild: &mut Rebuild| rebuild.sweep(swept.iter().map(|(flow, execution)| (&**flow, &**execution))).unwrap();
    assert_eq!(sweep(&mut rebuild), Wanted { runs: vec![], addresses: pairs(&[("G", "a"), ("F", "z")]) });
    rebuild.end_answer().unwrap();
    assert!(sweep(&mut rebuild).is_empty());
    rebuild.finish().unwrap();
}

#[test]
fn runs_come_in_byte_order_and_once() {
    let mut rebuild = machine();
    give(&mut rebuild, "b", &[]);
    assert_eq!(code(rebuild.begin_run(b"b", [])), Code::RunRepeated);
    let error = rebuild.begin_run(b"a", []).unwrap_err();
    assert_eq!((error.code, error.run_id.as_deref()), (Code::RunOutOfOrder, Some(&b"a"[..])));
    assert!(error.to_string().contains("behind run b"), "{error}");
    // UTF-8 order, in which U+FF5E comes before U+1F680; UTF-16 has it the other way round.
    give(&mut rebuild, "\u{ff5e}", &[]);
    give(&mut rebuild, "\u{1f680}", &[]);
    assert_eq!(code(rebuild.begin_run("\u{ff5e}".as_bytes(), [])), Code::RunOutOfOrder);
    assert_eq!(code(rebuild.begin_run(b"", [])), Code::RunOutOfOrder);
    // Nothing of that has left a trace.
    rebuild.end_runs().unwrap();
    let verification = rebuild.finish().unwrap();
    assert_eq!(verification.heads().count(), 3);
    assert_eq!(verification.verdict, Verdict::Match);
}

#[test]
fn an_empty_id_may_come_first() {
    let mut rebuild = machine();
    give(&mut rebuild, "", &[]);
    assert_eq!(code(rebuild.begin_run(b"", [])), Code::RunRepeated);
}

#[test]
fn a_call_out_of_order_fails_and_the_machine_goes_on() {
    let store = sound_store();
    let mut rebuild = machine();
    let page = Parts::default();
    let nobody: [(&[u8], &[u8]); 0] = [];

    assert_eq!(code(rebuild.push(&page.page())), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.end_run()), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.end_answer()), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.live_run(b"a")), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.sweep(nobody)), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.check_finish()), Code::CallOutOfOrder);
    assert_eq!(code(machine().finish()), Code::CallOutOfOrder);

    rebuild.begin_run(b"a", []).unwrap();
    assert_eq!(code(rebuild.begin_run(b"b", [])), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.end_runs()), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.end_answer()), Code::CallOutOfOrder);
    rebuild.push(&Parts::of(store.entries(b"a")).page()).unwrap();
    let mut wanted = rebuild.end_run().unwrap();
    assert_eq!(code(rebuild.end_runs()), Code::AnswerMissing);
    assert_eq!(code(rebuild.check_finish()), Code::CallOutOfOrder);
    let other = give(&mut rebuild, "b", store.entries(b"b"));
    wanted.runs.extend(other.runs);
    wanted.addresses.extend(other.addresses);
    store.answer(&mut rebuild, &wanted, false);
    assert_eq!(code(rebuild.end_answer()), Code::CallOutOfOrder);

    assert!(rebuild.end_runs().unwrap().is_empty());
    assert_eq!(code(rebuild.begin_run(b"c", [])), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.end_runs()), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.push(&page.page())), Code::CallOutOfOrder);
    assert_eq!(code(rebuild.live_run(b"a")), Code::CallOutOfOrder);
    let wanted = rebuild.sweep([(&b"G"[..], &b"x"[..])]).unwrap();
    assert_eq!(code(rebuild.sweep(nobody)), Code::AnswerMissing);
    assert_eq!(code(rebuild.check_finish()), Code::AnswerMissing);
    store.answer(&mut rebuild, &wanted, false);
    rebuild.check_finish().unwrap();
    let verification = rebuild.finish().unwrap();
    assert_eq!(everything(&verification), everything(&verify(&store, &whole_store())));
}

#[test]
fn a_row_that_nobody_asked_for_is_refused() {
    let store = sound_store();
    let row = ClockRow::new("\"d\"", "1", "null");
    let completion = CompletionRow::new("one", "1", "null");
    let mut rebuild = machine();
    let refuses = |rebuild: &mut Rebuild, flow: &str, execution: &str| {
        let address = address(flow, execution, "n");
        assert_eq!(code(rebuild.stored_clock(&row.stored(&address))), Code::AnswerMalformed, "{flow} {execution}");
        assert_eq!(code(rebuild.stored_completion(&completion.stored(&address))), Code::AnswerMalformed, "{flow} {execution}");
        assert_eq!(code(rebuild.live_run(execution.as_bytes())), Code::AnswerMalformed);
    };
    let mut entries = store.entries(b"a").to_vec();
    entries.push(scheduled(8, "x", "c", 1));
    let wanted = give(&mut rebuild, "a", &entries);
    refuses(&mut rebuild, "F", "b");
    refuses(&mut rebuild, "F", "x");
    let other_flow = address("G", "a", "n");
    assert_eq!(code(rebuild.stored_clock(&row.stored(&other_flow))), Code::AnswerMalformed);
    assert_eq!(code(rebuild.stored_completion(&completion.stored(&other_flow))), Code::AnswerMalformed);
    store.answer(&mut rebuild, &wanted, false);
    let wanted = give(&mut rebuild, "b", store.entries(b"b"));
    refuses(&mut rebuild, "F", "a");
    store.answer(&mut rebuild, &wanted, false);

    let wanted = rebuild.end_runs().unwrap();
    assert_eq!(wanted.runs, [b"x".to_vec()]);
    refuses(&mut rebuild, "F", "a");
    refuses(&mut rebuild, "G", "y");
    store.answer(&mut rebuild, &wanted, false);
    let wanted = rebuild.sweep([(&b"F"[..], &b"a"[..]), (b"G", b"y")]).unwrap();
    refuses(&mut rebuild, "F", "a");
    refuses(&mut rebuild, "F", "y");
    store.answer(&mut rebuild, &wanted, false);
    let verification = rebuild.finish().unwrap();
    assert_eq!((ids(&verification), verification.unexplained), (vec!["run_missing", "clock_missing"], Some(0)));
}

#[test]
fn a_value_that_is_no_json_is_refused_before_it_does_harm() {
    let mut store = sound_store();
    store.journal.get_mut(&b"b"[..]).unwrap().push(scheduled(9, "x", "c", 1));
    store.journal.get_mut(&b"b"[..]).unwrap().push(completed(10, "x", "d", 1, "one"));
    store.live.insert("x".into());
    fill_tables(&mut store);
    let spoil = |rebuild: &mut Rebuild, address: &Address| {
        for bad in ["", "nul", "1 2", "{", "\u{1}", "'x'", "1,", "]"] {
            for place in 0..3 {
                let mut values = ["1"; 3];
                values[place] = bad;
                let [deferred_name, due_at_ms, completed_at_ms] = values.map(str::as_bytes);
                let clock = StoredClock { key: key(address), deferred_name, due_at_ms, completed_at_ms };
                assert_eq!(code(rebuild.stored_clock(&clock)), Code::AnswerMalformed, "{bad}");
                let completion = StoredCompletion { key: key(address), exit: None, metadata: None, completed_at_ms: due_at_ms, consumed_at_ms: completed_at_ms };
                if place > 0 {
                    assert_eq!(code(rebuild.stored_completion(&completion)), Code::AnswerMalformed, "{bad}");
                }
            }
        }
    };
    let mut rebuild = machine();
    for id in ["a", "b"] {
        let wanted = give(&mut rebuild, id, store.entries(id.as_bytes()));
        for name in ["c", "d", "unrecorded"] {
            spoil(&mut rebuild, &address("F", id, name));
        }
        store.answer(&mut rebuild, &wanted, false);
    }
    let wanted = rebuild.end_runs().unwrap();
    for name in ["c", "d", "unrecorded"] {
        spoil(&mut rebuild, &address("F", "x", name));
    }
    store.answer(&mut rebuild, &wanted, false);
    assert_eq!(everything(&rebuild.finish().unwrap()), everything(&verify(&store, &whole_store())));
}

#[test]
fn a_row_that_comes_twice_counts_once() {
    // A host whose answer failed halfway gives it again.
    let mut store = sound_store();
    store.journal.get_mut(&b"a"[..]).unwrap().extend([scheduled(8, "x", "c", 1), completed(9, "x", "d", 1, "one"), completed(10, "b", "d", 1, "one")]);
    store.live.insert("x".into());
    fill_tables(&mut store);
    for execution in ["a", "b", "x", "y"] {
        store.clocks.insert(address("F", execution, "unexpected"), ClockRow::new("\"d\"", "1", "null"));
        store.completions.insert(address("F", execution, "unexplained"), CompletionRow::new("one", "1", "null"));
        if let Some(row) = store.clocks.get_mut(&address("F", execution, "c")) {
            row.due = "77".into();
        }
        if let Some(row) = store.completions.get_mut(&address("F", execution, "d")) {
            (row.exit, row.consumed) = (Some("forged".into()), "7".into());
        }
    }
    let given_twice = |store: &Store| {
        let mut rebuild = machine();
        let twice = |rebuild: &mut Rebuild, wanted: &Wanted| {
            store.answer_open(rebuild, wanted, false);
            store.answer(rebuild, wanted, true);
        };
        for id in ["a", "b"] {
            let wanted = give(&mut rebuild, id, store.entries(id.as_bytes()));
            twice(&mut rebuild, &wanted);
        }
        let wanted = rebuild.end_runs().unwrap();
        twice(&mut rebuild, &wanted);
        let wanted = rebuild.sweep([(&b"F"[..], &b"y"[..])]).unwrap();
        twice(&mut rebuild, &wanted);
        rebuild.finish().unwrap()
    };
    let refused = given_twice(&store);
    assert_eq!((refused.verdict, refused.unexplained), (Verdict::Refused, Some(4)));
    assert_eq!(everything(&refused), everything(&verify(&store, &whole_store())));

    // The same where nothing is refused, so that there is a plan.
    store.journal.get_mut(&b"a"[..]).unwrap().pop();
    for (address, row) in &mut store.completions {
        row.exit = Some(if address[1] == b"b" { "two" } else { "one" }.into());
    }
    let drifted = given_twice(&store);
    assert_eq!((drifted.verdict, drifted.unexplained), (Verdict::Drift, Some(4)));
    assert_eq!(everything(&drifted), everything(&verify(&store, &whole_store())));
}

#[test]
fn a_machine_that_is_stopped_says_what_it_found_so_far() {
    let mut store = sound_store();
    store.clocks.insert(address("F", "a", "c"), ClockRow::new("\"d\"", "1", "110"));
    store.clocks.insert(address("F", "a", "x"), ClockRow::new("\"d\"", "1", "110"));
    assert_eq!(machine().finish_partial().verdict, Verdict::Partial);

    let mut rebuild = machine();
    let wanted = give(&mut rebuild, "a", store.entries(b"a"));
    store.answer(&mut rebuild, &wanted, false);
    give(&mut rebuild, "b", store.entries(b"b"));
    rebuild.begin_run(b"c", []).unwrap();
    let verification = rebuild.finish_partial();
    assert_eq!((verification.verdict, ids(&verification)), (Verdict::Partial, vec!["clock_differs"]));
    assert!(verification.plan.is_none());
    // Run b has ended and was not answered.
    assert_eq!((verification.unexplained, not_checked(&verification)), (None, vec![("runs_unanswered", 1), ("clock_rows", 1)]));
    assert_eq!(verification.heads().count(), 2);
}

#[test]
fn a_run_of_many_flows_asks_for_each_of_them_once() {
    let entries: Vec<Entry> = (0..20_000)
        .map(|seq| {
            let payload = json!({ "flowName": format!("F{}", seq / 2), "executionId": "a", "clockName": format!("c{}", seq % 2),
                "deferredName": "d", "dueAtMs": 1 });
            entry(seq, EventType::ClockScheduled, &payload.to_string())
        })
        .collect();
    let mut rebuild = machine();
    let wanted = give(&mut rebuild, "a", &entries);
    assert_eq!(wanted.addresses.len(), 10_000);
    for (flow, execution) in &wanted.addresses {
        let address = [flow.clone(), execution.clone(), b"c0".to_vec()];
        rebuild.stored_clock(&ClockRow::new("\"d\"", "1", "null").stored(&address)).unwrap();
    }
    rebuild.live_run(b"a").unwrap();
    rebuild.end_answer().unwrap();
    rebuild.end_runs().unwrap();
    let verification = rebuild.finish().unwrap();
    assert_eq!(verification.plan.unwrap().rows(), 10_000);
}

#[test]
fn checkpoints_are_given_in_any_order() {
    let store = sound_store();
    let state = br#"{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}"#;
    let mut rebuild = machine();
    let checkpoint = |seq, compacted, state| Floor { seq, compacted, state };
    rebuild.begin_run(b"a", [checkpoint(3, true, &state[..]), checkpoint(9, false, b"{"), checkpoint(1, true, b"{")]).unwrap();
    rebuild.push(&Parts::of(store.entries(b"a")).page()).unwrap();
    assert!(rebuild.end_run().unwrap().is_empty(), "everything lies at or below the floor");
    rebuild.end_runs().unwrap();
    let verification = rebuild.finish().unwrap();
    assert_eq!((verification.verdict, verification.totals.floors, verification.totals.entries), (Verdict::Match, 1, 0));
}
