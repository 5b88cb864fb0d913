//! Order inside a run: what is skipped, what comes twice, what contradicts itself, and where a bound lies.

use journal_fold::deferred_clock::reduce::Reason;
use journal_fold::deferred_clock::{EventType, RunFold};
use journal_fold::error::{Code, Error};
use journal_fold::journal::{Bound, Floor, MAX_SEQ};

use crate::history::{completed, consumed, entry, fired, other, scheduled};
use crate::store::{encoded, push_all, Entry};

const PAGE_ROWS: [usize; 3] = [0, 1, 2];

/// Folds entries from no floor.
fn fold(entries: &[Entry], page_rows: usize) -> (RunFold, Result<(), Error>) {
    let mut run = RunFold::new();
    let pushed = push_all(&mut run, entries, page_rows);
    (run, pushed)
}

fn ignored(run: &RunFold) -> Vec<(&'static str, u64, Option<u64>)> {
    run.ignored().iter().map(|(reason, count, first)| (reason.as_str(), count, first)).collect()
}

fn clock_names(run: &RunFold) -> Vec<String> {
    let fold = run.fold();
    fold.clocks().iter().map(|clock| String::from_utf8(fold.name(clock.address.name).to_vec()).unwrap()).collect()
}

#[test]
fn gaps_are_normal() {
    for page_rows in PAGE_ROWS {
        let (run, pushed) = fold(&[scheduled(3, "r", "a", 1), scheduled(900, "r", "b", 2), fired(4_000_000, "r", "a", 3)], page_rows);
        assert_eq!(pushed, Ok(()));
        assert_eq!(ignored(&run), []);
        let coverage = run.coverage();
        assert_eq!((coverage.entries, coverage.first, coverage.last, coverage.head()), (3, Some(3), Some(4_000_000), Some(4_000_000)));
    }
}

#[test]
fn the_last_entry_once_more_is_counted_and_changes_nothing() {
    let twice = [
        scheduled(1, "r", "a", 1),
        completed(2, "r", "d", 5, "one"),
        completed(2, "r", "d", 5, "one"),
        completed(2, "r", "d", 5, "one"),
        consumed(3, "r", "d", 6),
    ];
    let once = [twice[0].clone(), twice[1].clone(), twice[4].clone()];
    for page_rows in PAGE_ROWS {
        let (run, pushed) = fold(&twice, page_rows);
        assert_eq!(pushed, Ok(()));
        assert_eq!(ignored(&run), [("redelivered", 2, Some(2))]);
        assert_eq!(run.coverage().entries, 3);
        assert_eq!(encoded(&run), encoded(&fold(&once, 0).0));
    }
}

#[test]
fn an_entry_is_known_again_behind_entries_that_are_skipped_and_behind_empty_pages() {
    for page_rows in PAGE_ROWS {
        let entries = [scheduled(1, "r", "a", 1), other(1), other(7), scheduled(1, "r", "a", 1)];
        let mut run = RunFold::new();
        push_all(&mut run, &entries[..3], page_rows).unwrap();
        run.push(&crate::store::Parts::default().page()).unwrap();
        push_all(&mut run, &entries[3..], page_rows).unwrap();
        assert_eq!(ignored(&run), [("other_type", 2, Some(1)), ("redelivered", 1, Some(1))]);
    }
}

#[test]
fn a_refused_payload_once_more_is_redelivered_too() {
    let broken = entry(1, EventType::ClockScheduled, "[]");
    let (run, pushed) = fold(&[broken.clone(), broken], 1);
    assert_eq!(pushed, Ok(()));
    assert_eq!(ignored(&run), [("redelivered", 1, Some(1)), ("not_a_record", 1, Some(1))]);
}

#[test]
fn the_last_seq_with_other_content_is_a_conflict() {
    let first = completed(4, "r", "d", 5, "one");
    let mut other_type = first.clone();
    other_type.type_code = EventType::DeferredConsumed as u8;
    for second in [completed(4, "r", "d", 6, "one"), completed(4, "r", "e", 5, "one"), other_type] {
        for page_rows in PAGE_ROWS {
            let (run, pushed) = fold(&[first.clone(), second.clone(), scheduled(5, "r", "late", 1)], page_rows);
            let error = pushed.unwrap_err();
            assert_eq!((error.code, error.seq), (Code::EntryConflict, Some(4)));
            assert!(run.fold().clocks().is_empty(), "nothing behind a conflict is folded");
        }
    }
}

#[test]
fn equal_json_in_another_spelling_is_a_conflict() {
    // What was stored is what was recorded: texts are compared, not values.
    let spaced = entry(1, EventType::ClockCompleted, "{ }");
    let (_, pushed) = fold(&[entry(1, EventType::ClockCompleted, "{}"), spaced], 0);
    assert_eq!(pushed.unwrap_err().code, Code::EntryConflict);
}

#[test]
fn a_lower_seq_is_out_of_order_and_names_the_last_one_so_that_a_host_can_resume() {
    for page_rows in PAGE_ROWS {
        let entries = [scheduled(5, "r", "a", 1), scheduled(9, "r", "b", 1), scheduled(5, "r", "a", 1)];
        let (mut run, pushed) = fold(&entries, page_rows);
        let error = pushed.unwrap_err();
        assert_eq!((error.code, error.seq), (Code::EntryOutOfOrder, Some(5)));
        assert_eq!((error.expected.as_str(), error.found.as_str()), ("a seq above 9", "5"));
        assert_eq!(run.coverage().last, Some(9));
        push_all(&mut run, &[scheduled(10, "r", "c", 1)], page_rows).unwrap();
        assert_eq!(clock_names(&run), ["a", "b", "c"]);
    }
}

#[test]
fn what_is_skipped_is_looked_at_no_further() {
    // Below the floor, above the bound, or of another type: neither order, nor UTF-8, nor JSON is judged.
    let unreadable = |seq, type_code| Entry { seq, type_code, payload: b"\xff{".to_vec() };
    let entries = [
        unreadable(9, 255),
        unreadable(9, 4),
        unreadable(9, 0),
        unreadable(10, 1),
        unreadable(3, 2),
        scheduled(11, "r", "a", 1),
        unreadable(21, 0),
        unreadable(21, 1),
        unreadable(1, 7),
        unreadable(2, 3),
        scheduled(12, "r", "b", 1),
        unreadable(20, 200),
    ];
    for page_rows in PAGE_ROWS {
        let mut run = RunFold::new();
        let state = br#"{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}"#;
        let floor = Floor { seq: 10, compacted: true, state };
        run.begin(b"r", Some(floor), Some(Bound::new(20.0).unwrap())).unwrap();
        push_all(&mut run, &entries, page_rows).unwrap();
        assert_eq!(clock_names(&run), ["a", "b"]);
        assert_eq!(ignored(&run), [("other_type", 4, Some(9)), ("below_floor", 4, Some(9)), ("above_bound", 2, Some(21))]);
        let coverage = run.coverage();
        assert_eq!((coverage.entries, coverage.floor, coverage.first, coverage.last), (2, Some(10), Some(11), Some(12)));
        assert!(!coverage.floor_beyond_head);
    }
}

#[test]
fn a_floor_beyond_the_journals_head_is_seen() {
    let state = br#"{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}"#;
    let beyond = |entries: &[Entry]| {
        let mut run = RunFold::new();
        run.begin(b"r", Some(Floor { seq: 10, compacted: true, state }), None).unwrap();
        push_all(&mut run, entries, 0).unwrap();
        run.coverage()
    };
    assert!(beyond(&[scheduled(9, "r", "a", 1)]).floor_beyond_head);
    assert!(!beyond(&[]).floor_beyond_head, "a run compacted whole has no entries");
    assert!(!beyond(&[scheduled(10, "r", "a", 1)]).floor_beyond_head);
    assert!(!beyond(&[scheduled(9, "r", "a", 1), scheduled(11, "r", "b", 1)]).floor_beyond_head);
    assert_eq!(beyond(&[]).head(), Some(10));
}

#[test]
fn seqs_reach_to_the_largest_one() {
    let last = i64::MAX;
    for page_rows in PAGE_ROWS {
        let entries = [scheduled(0, "r", "a", 1), scheduled(last - 1, "r", "b", 1), scheduled(last, "r", "c", 1)];
        let (run, pushed) = fold(&entries, page_rows);
        assert_eq!(pushed, Ok(()));
        assert_eq!((run.coverage().first, run.coverage().last), (Some(0), Some(MAX_SEQ)));
        let (_, pushed) = fold(&[scheduled(last, "r", "c", 1), scheduled(last - 1, "r", "b", 1)], page_rows);
        assert_eq!(pushed.unwrap_err().expected, format!("a seq above {last}"));
    }
    // Doubles cannot tell these apart; seqs can.
    let above = |floor: u64| {
        let mut run = RunFold::new();
        let state = br#"{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}"#;
        run.begin(b"r", Some(Floor { seq: floor, compacted: true, state }), None).unwrap();
        push_all(&mut run, &[scheduled(last - 1, "r", "b", 1), scheduled(last, "r", "c", 1)], 0).unwrap();
        clock_names(&run)
    };
    assert_eq!(above(MAX_SEQ - 1), ["c"]);
    assert_eq!(above(MAX_SEQ), Vec::<String>::new());
}

#[test]
fn a_bound_is_any_finite_number() {
    let takes = |up_to: f64| {
        let mut run = RunFold::new();
        run.begin(b"r", None, Some(Bound::new(up_to).unwrap())).unwrap();
        let entries = [scheduled(0, "r", "0", 1), scheduled(1, "r", "1", 1), scheduled(2, "r", "2", 1), scheduled(i64::MAX, "r", "max", 1)];
        push_all(&mut run, &entries, 2).unwrap();
        clock_names(&run).join(" ")
    };
    assert_eq!(takes(-1.0), "");
    assert_eq!(takes(-0.5), "");
    assert_eq!(takes(-0.0), "0");
    assert_eq!(takes(0.0), "0");
    assert_eq!(takes(0.999), "0");
    assert_eq!(takes(1.5), "0 1");
    assert_eq!(takes(2.0), "0 1 2");
    assert_eq!(takes(9_007_199_254_740_992.0), "0 1 2");
    assert_eq!(takes(9_223_372_036_854_774_784.0), "0 1 2", "the largest double below 2^63");
    assert_eq!(takes(9_223_372_036_854_775_808.0), "0 1 2 max");
    assert_eq!(takes(f64::MAX), "0 1 2 max");
    assert_eq!(takes(-f64::MAX), "");
    for not_finite in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Bound::new(not_finite).unwrap_err().code, Code::BoundInvalid);
    }
}

#[test]
fn the_floor_is_judged_before_the_bound() {
    let begin = |state: &[u8], up_to: f64| {
        let floor = Floor { seq: 10, compacted: true, state };
        RunFold::new().begin(b"r", Some(floor), Some(Bound::new(up_to).unwrap())).map_err(|error| error.code)
    };
    let sound: &[u8] = br#"{"flows.engine.deferred-clock":{"clocks":[],"deferreds":[]}}"#;
    assert_eq!(begin(sound, 10.0), Ok(()));
    assert_eq!(begin(sound, 9.999), Err(Code::BoundBelowFloor));
    assert_eq!(begin(sound, -1.0), Err(Code::BoundBelowFloor));
    for bare in [&b"{}"[..], b"[]", b"{", b"", b"\xff", b"{\"flows.engine.deferred-clock\":null}"] {
        assert_eq!(begin(bare, 3.0), Err(Code::FoldIncomplete), "{}", String::from_utf8_lossy(bare));
    }
}

#[test]
fn the_floor_is_the_highest_compacted_checkpoint() {
    let state = |clock: &str| {
        format!(
            r#"{{"flows.engine.deferred-clock":{{"clocks":[{{"flowName":"F","executionId":"r","clockName":"{clock}","deferredName":"d","dueAtMs":1,"completedAtMs":null}}],"deferreds":[]}}}}"#
        )
    };
    let (low, high) = (state("low"), state("high"));
    let checkpoint = |seq, compacted, state| Floor { seq, compacted, state };
    let picked = |checkpoints: Vec<Floor<'_>>| {
        let mut run = RunFold::new();
        run.begin(b"r", Floor::pick(checkpoints), None).map_err(|error| error.code)?;
        Ok::<_, Code>(clock_names(&run).join(" "))
    };
    assert_eq!(picked(vec![]), Ok("".into()));
    assert_eq!(picked(vec![checkpoint(9, false, high.as_bytes())]), Ok("".into()));
    let both = [checkpoint(3, true, low.as_bytes()), checkpoint(9, true, high.as_bytes())];
    assert_eq!(picked(both.to_vec()), Ok("high".into()));
    assert_eq!(picked(vec![both[1], both[0]]), Ok("high".into()));
    assert_eq!(picked(vec![both[0], checkpoint(9, false, high.as_bytes())]), Ok("low".into()));
    assert_eq!(picked(vec![both[0], checkpoint(9, true, b"{}")]), Err(Code::FoldIncomplete), "an older one never stands in");
}

#[test]
fn one_payload_that_is_not_utf8_stops_its_run_there() {
    let mut entries = vec![scheduled(1, "r", "a", 1), scheduled(2, "r", "é", 1), scheduled(3, "r", "b", 1)];
    entries[1].payload[30] = 0xff;
    for page_rows in PAGE_ROWS {
        let (run, pushed) = fold(&entries, page_rows);
        let error = pushed.unwrap_err();
        assert_eq!((error.code, error.seq, error.offset), (Code::TextNotUtf8, Some(2), Some(30)));
        assert_eq!(clock_names(&run), ["a"]);
        assert_eq!(run.coverage().last, Some(1), "the entry that stopped it was not taken");
    }
}

#[test]
fn a_page_cut_inside_a_character_is_two_payloads_that_are_not_utf8() {
    // Joined, the two halves make a character; framing is by length, so neither borrows from the other.
    let (first, second) = (b"\"\xc3".to_vec(), b"\xa9\"".to_vec());
    assert!(std::str::from_utf8(&[first.clone(), second.clone()].concat()).is_ok());
    let cut = |payload: Vec<u8>, seq| Entry { seq, type_code: 0, payload };
    let (_, pushed) = fold(&[cut(first, 1), cut(second, 2)], 0);
    let error = pushed.unwrap_err();
    assert_eq!((error.code, error.seq, error.offset), (Code::TextNotUtf8, Some(1), Some(1)));
}

#[test]
fn no_payload_can_reach_its_neighbours() {
    let smuggler = entry(1, EventType::ClockScheduled, "1},{\"x\":2");
    let (run, pushed) = fold(&[scheduled(0, "r", "a", 1), smuggler, scheduled(2, "r", "b", 1)], 0);
    let error = pushed.unwrap_err();
    assert_eq!((error.code, error.seq, error.offset), (Code::PayloadNotJson, Some(1), Some(1)));
    assert_eq!(clock_names(&run), ["a"]);
}

#[test]
fn why_an_entry_changed_nothing_is_counted_with_the_first_of_each_kind() {
    let nameless = entry(13, EventType::ClockScheduled, r#"{"flowName":"F"}"#);
    let entries = [
        fired(1, "r", "a", 1),
        consumed(2, "r", "d", 1),
        scheduled(3, "r", "a", 1),
        scheduled(4, "r", "a", 2),
        fired(5, "r", "a", 1),
        fired(6, "r", "a", 2),
        completed(7, "r", "d", 1, "one"),
        completed(8, "r", "d", 1, "two"),
        consumed(9, "r", "d", 1),
        consumed(10, "r", "d", 2),
        entry(11, EventType::ClockScheduled, "5"),
        entry(12, EventType::DeferredCompleted, "null"),
        nameless,
        fired(14, "r", "b", 1),
    ];
    let (run, pushed) = fold(&entries, 3);
    assert_eq!(pushed, Ok(()));
    assert_eq!(
        ignored(&run),
        [
            (Reason::NotARecord.as_str(), 2, Some(11)),
            (Reason::FieldRefused.as_str(), 1, Some(13)),
            (Reason::AlreadyScheduled.as_str(), 1, Some(4)),
            (Reason::NothingToComplete.as_str(), 2, Some(1)),
            (Reason::AlreadyCompleted.as_str(), 2, Some(6)),
            (Reason::NothingToConsume.as_str(), 1, Some(2)),
            (Reason::AlreadyConsumed.as_str(), 1, Some(10)),
        ]
    );
}

#[test]
fn reduce_folds_in_the_order_given() {
    let entries = [scheduled(9, "r", "a", 1), scheduled(3, "r", "b", 2), scheduled(3, "r", "c", 3), other(1), fired(1, "r", "a", 4)];
    let mut run = RunFold::new();
    run.reduce(&crate::store::Parts::of(&entries).page()).unwrap();
    assert_eq!(clock_names(&run), ["a", "b", "c"]);
    let mut bad = scheduled(4, "r", "d", 1);
    bad.payload[5] = 0xff;
    let error = run.reduce(&crate::store::Parts::of(&[bad, scheduled(5, "r", "e", 1)]).page()).unwrap_err();
    assert_eq!((error.code, error.seq, error.offset), (Code::TextNotUtf8, Some(4), Some(5)));
    let error = run.reduce(&crate::store::Parts::of(&[entry(6, EventType::ClockScheduled, "")]).page()).unwrap_err();
    assert_eq!((error.code, error.seq, error.offset), (Code::PayloadNotJson, Some(6), Some(0)));
    assert_eq!(clock_names(&run), ["a", "b", "c"]);
}

#[test]
fn a_run_begins_anew() {
    let mut run = RunFold::new();
    run.begin(b"one", None, Some(Bound::new(1.0).unwrap())).unwrap();
    push_all(&mut run, &[scheduled(1, "one", "a", 1), scheduled(2, "one", "b", 1)], 0).unwrap();
    run.begin(b"two", None, None).unwrap();
    assert_eq!((encoded(&run).as_str(), ignored(&run).len()), (r#"{"clocks":[],"deferreds":[]}"#, 0));
    assert_eq!(run.coverage().last, None);
    push_all(&mut run, &[scheduled(1, "two", "b", 1), scheduled(2, "two", "c", 1)], 0).unwrap();
    assert_eq!(clock_names(&run), ["b", "c"]);
    // After a failure too.
    assert!(run.begin_from(b"{\"clocks\":[]}").is_err());
    assert!(run.fold().clocks().is_empty());
    run.begin_from(br#"{"clocks":[],"deferreds":[]}"#).unwrap();
    push_all(&mut run, &[scheduled(0, "three", "d", 1)], 0).unwrap();
    assert_eq!(clock_names(&run), ["d"]);
}
