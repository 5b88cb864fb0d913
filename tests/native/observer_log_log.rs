//! The log as a caller has it, over stores that fail and processes that die: no acknowledged row is lost, none is written twice,
//! and whatever happened, the next process restores.

use std::collections::{BTreeMap, BTreeSet};

use journal_fold::error::Code;
use journal_fold::observer_log::append::Append;
use journal_fold::observer_log::change::{Change, Outcome, Rejected};
use journal_fold::observer_log::log::{Log, Standing};
use journal_fold::observer_log::protocol::{Publication, Want};
use journal_fold::observer_log::row::RowRef;
use journal_fold::observer_log::{Aggregate, Answer, Failure, Fired, Refusal, Row, RowReader};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{json, Value};

use crate::drive;
use crate::observer_log_stream::Stream;
use crate::observer_log_store::{Answered, Store};

fn track(conversation_id: u64) -> Change {
    Change::Track { conversation_id, progress: 0 }
}

fn advance(conversation_id: u64, progress: u64) -> Change {
    Change::Advance { conversation_id, progress }
}

fn arm(conversation_id: u64, epoch: u64) -> Change {
    let entries = vec![(conversation_id, epoch)];
    Change::Recover { entries, max_entries: 10, connection_limit: 10, connection_tracks: Vec::new() }
}

fn make(log: &mut Log, store: &mut Store, change: Change) -> Outcome {
    log.begin(change).unwrap();
    drive!(log, store);
    log.take_outcome().unwrap()
}

fn fold(store: &Store) -> Aggregate {
    let mut reader = RowReader::new();
    let mut aggregate = Aggregate::new();
    for (place, (sequence, payload)) in store.rows.iter().enumerate() {
        assert_eq!(*sequence, place as u64, "rows follow one another");
        aggregate.apply(reader.read(payload).unwrap()).unwrap();
    }
    aggregate
}

fn script(store: &mut Store, script: Value) {
    store.script(&script);
}

#[test]
fn a_change_is_restored_for_asked_appended_and_made() {
    let (mut log, mut store) = (Log::new(), Store::default());
    let first = make(&mut log, &mut store, track(7));
    assert_eq!((first.restored.unwrap().rows, first.head), (0, Some(1)));
    assert_eq!(make(&mut log, &mut store, track(7)).result, Err(Rejected::Refused(Refusal::AlreadyTracked { conversation_id: 7 })));
    let armed = make(&mut log, &mut store, arm(7, 0)).result.unwrap();
    assert!(armed.statuses[0].armed);
    let fired = make(&mut log, &mut store, advance(7, 3)).result.unwrap().fired;
    assert_eq!(fired, Some(Fired { conversation_id: 7, epoch: 0 }));
    assert_eq!((log.head(), log.aggregate().progress(7)), (Some(3), Some(3)));
    assert_eq!(*log.aggregate(), fold(&store));
}

#[test]
fn snapshots_fall_due_by_themselves() {
    let (mut log, mut store) = (Log::new(), Store::default());
    for id in 0..600 {
        make(&mut log, &mut store, track(id)).result.unwrap();
    }
    assert_eq!((store.head, store.value), (Some(602), Some(514)));
    assert_eq!(*log.aggregate(), fold(&store));
    let mut again = Log::new();
    let outcome = make(&mut again, &mut store, Change::Open);
    assert_eq!(outcome.restored.map(|restored| (restored.folded_from, restored.rows)), Some((514, 88)));
}

#[test]
fn an_advance_whose_append_failed_is_found_in_the_tail_with_the_arm_that_it_fired() {
    let (mut log, mut store) = (Log::new(), Store::default());
    make(&mut log, &mut store, track(1));
    make(&mut log, &mut store, arm(1, 0));
    // The row lands, and the store cannot be read back in time: only tail recovery finds it.
    script(&mut store, json!({ "append_all": ["unknown_applied"], "read_from": ["fail"] }));
    let outcome = make(&mut log, &mut store, advance(1, 5));
    assert_eq!(outcome.result.map_err(|rejected| matches!(rejected, Rejected::Failed(failure) if failure.code() == Code::OutcomeUnknown)), Err(true));
    assert_eq!(outcome.publications, [Publication { conversation_id: 1, refused_epoch: 0, observer_progress: 5 }]);
    assert_eq!((log.standing(), log.head(), log.aggregate().progress(1)), (Standing::Ready, Some(3), Some(5)));
    // Asked once more it is refused, which is how the caller knows that it stands.
    assert!(matches!(make(&mut log, &mut store, advance(1, 5)).result, Err(Rejected::Refused(Refusal::NotAdvancing { .. }))));

    // And when the tail cannot be read either, the next change begins with it.
    script(&mut store, json!({ "append_all": ["unknown_applied"], "read_from": ["fail", "fail"] }));
    assert!(make(&mut log, &mut store, advance(1, 6)).result.is_err());
    assert_eq!((log.standing(), log.head()), (Standing::Unsettled, None));
    assert!(make(&mut log, &mut store, advance(1, 7)).result.is_ok());
    assert_eq!(store.rows.len(), 5);
    assert_eq!(*log.aggregate(), fold(&store));
}

#[test]
fn after_failed_arms_and_after_a_tail_that_tells_too_little_the_stream_is_restored() {
    let (mut log, mut store) = (Log::new(), Store::default());
    make(&mut log, &mut store, track(1));
    script(&mut store, json!({ "append_all": ["unknown_applied"], "read_from": ["fail"] }));
    assert!(make(&mut log, &mut store, arm(1, 0)).result.is_err());
    assert_eq!(log.standing(), Standing::Closed);
    let outcome = make(&mut log, &mut store, Change::Open);
    assert_eq!((outcome.restored.unwrap().rows, log.aggregate().armed(1)), (2, Some(0)));

    // Another process has appended three rows meanwhile: that is no tail of one append.
    for id in 10..13 {
        let row = RowRef::Track { conversation_id: id, progress: 0 };
        let mut append = Append::new(store.head.unwrap(), row, None).unwrap();
        drive!(append, store);
    }
    let outcome = make(&mut log, &mut store, track(2));
    assert!(matches!(outcome.result, Err(Rejected::Failed(failure)) if failure.code() == Code::SequenceConflict));
    assert_eq!(log.standing(), Standing::Closed);
    assert!(make(&mut log, &mut store, track(2)).restored.is_some());
    assert_eq!(*log.aggregate(), fold(&store));
}

#[test]
fn a_change_at_the_end_of_all_sequences_is_refused_before_anything_is_written() {
    let payload = r#"{"schema_version":2,"row":{"row":"snapshot","progress":[[1,4]],"armed":[]}}"#;
    let mut store = Stream::build(&json!({ "start": (u64::MAX - 2).to_string(), "parts": [{ "payloads": [payload] }] }));
    store.value = Some(u64::MAX - 1);
    let mut log = Log::new();
    let outcome = make(&mut log, &mut store, advance(1, 5));
    // The head is due, and a snapshot with a row behind it finds no room.
    let full = Failure::Sequence { expected: u64::MAX, actual: u64::MAX - 1 };
    assert_eq!(outcome.result, Err(Rejected::Failed(full)));
    assert_eq!((store.rows.len(), log.standing(), log.head()), (1, Standing::Ready, Some(u64::MAX - 1)));
    assert_eq!(log.aggregate().progress(1), Some(4), "nothing was changed");
}

#[test]
fn one_change_at_a_time_and_answers_that_fit() {
    let mut log = Log::new();
    log.begin(track(1)).unwrap();
    assert_eq!(log.begin(track(2)).unwrap_err().code, Code::CallOutOfOrder);
    log.answer(Answer::Appended(5));
    let outcome = log.take_outcome().unwrap();
    assert!(matches!(outcome.result, Err(Rejected::Failed(failure)) if failure.code() == Code::AnswerMalformed));
    // Nothing is wanted: an answer to nothing does nothing.
    log.answer(Answer::Flushed);
    assert!(log.want().is_none() && log.take_outcome().is_none());
    assert!(log.begin(track(1)).is_ok());
}

/// What chance does: a small generator, so that a failing run can be run again from its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// A store that fails now and then, and forgets what was not flushed when the process dies.
struct Flaky {
    store: Store,
    durable_head: u64,
    chance: Chance,
    trouble: u64,
}

impl Flaky {
    fn serve(&mut self, want: &Want<'_>) -> Answered {
        if self.chance.once_in(self.trouble) {
            let write = ["fail", "unknown_applied", "unknown_not_applied", "unknown_late"];
            let behaviour = match want {
                Want::AppendAll { .. } | Want::Swap { .. } => write[self.chance.below(4) as usize],
                _ => "fail",
            };
            self.store.script(&json!({ want.name(): [behaviour] }));
        }
        let answer = self.store.serve(want);
        if matches!(answer, Answered::Flushed) {
            self.durable_head = self.store.head.unwrap_or(0);
        }
        answer
    }

    /// The process is gone. What was not flushed may be gone too; a write that was on its way may still arrive.
    fn die(&mut self) {
        if self.chance.once_in(2) {
            self.store.rows.split_off(&self.durable_head);
            self.store.head = (self.durable_head > 0).then_some(self.durable_head);
        }
    }
}

/// What a change writes, as text. But for arms, which may be installed twice, every change of the tests below writes another one.
fn payload_of(change: &Change) -> Option<Vec<u8>> {
    match *change {
        Change::Track { conversation_id, progress } => Some(Row::Track { conversation_id, progress }.encode()),
        Change::Advance { conversation_id, progress } => Some(Row::Advance { conversation_id, progress }.encode()),
        _ => None,
    }
}

/// Whether the change is made, or stands already.
fn stands(outcome: &Outcome) -> bool {
    match outcome.result {
        Ok(_) => true,
        Err(Rejected::Refused(Refusal::AlreadyTracked { .. } | Refusal::NotAdvancing { .. })) => true,
        Err(Rejected::Refused(other)) => panic!("{other}"),
        Err(Rejected::Failed(_)) => false,
    }
}

/// Ten conversations that are tracked, then advanced and armed in turn.
fn changes(writer: u64, count: u64) -> Vec<Change> {
    let mut progress = [0; 10];
    (0..count)
        .map(|place| {
            let own = &mut progress[(place % 10) as usize];
            let id = writer * 1000 + place % 10;
            match place {
                0..10 => track(id),
                _ if place % 3 == 0 => arm(id, *own),
                _ => {
                    *own = place;
                    advance(id, place)
                }
            }
        })
        .collect()
}

fn times(store: &Store) -> BTreeMap<&[u8], u32> {
    let mut times = BTreeMap::new();
    store.rows.values().for_each(|payload| *times.entry(payload.as_slice()).or_default() += 1);
    times
}

/// Whether the arm that an advance fired is told: at once, or when tail recovery finds the row. Only a restore, which does not see
/// what was armed before, may swallow it.
#[derive(Default)]
struct Told {
    owed: Option<Publication>,
}

impl Told {
    fn watch(&mut self, change: &Change, armed: Option<u64>, outcome: &Outcome) -> Result<(), TestCaseError> {
        if outcome.publications.iter().any(|publication| Some(*publication) == self.owed) || outcome.restored.is_some() {
            self.owed = None;
        }
        let &Change::Advance { conversation_id, progress } = change else { return Ok(()) };
        match &outcome.result {
            Ok(done) => {
                if outcome.restored.is_none() && outcome.publications.is_empty() {
                    prop_assert_eq!(done.fired.map(|fired| fired.epoch), armed);
                }
                self.owed = None;
            }
            Err(Rejected::Refused(_)) => prop_assert_eq!(self.owed, None, "an arm fired and nobody was told"),
            Err(Rejected::Failed(_)) => {
                let owed = armed.map(|refused_epoch| Publication { conversation_id, refused_epoch, observer_progress: progress });
                let told = outcome.publications.iter().any(|publication| Some(*publication) == owed);
                if outcome.restored.is_none() && !told {
                    self.owed = self.owed.or(owed);
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn processes_that_die_at_any_call_lose_no_acknowledged_row_and_repeat_none(
        seed in 1..u64::MAX, trouble in 2_u64..40, lives in vec(1_u64..400, 1..40), count in 20_u64..400,
    ) {
        let mut flaky = Flaky { store: Store::default(), durable_head: 0, chance: Chance(seed), trouble };
        let mut left = changes(0, count);
        left.reverse();
        let mut acknowledged: BTreeSet<Vec<u8>> = BTreeSet::new();
        for life in lives.into_iter().chain([u64::MAX]) {
            if life == u64::MAX {
                // The last process meets no trouble, and must come to the end.
                flaky.trouble = u64::MAX;
            }
            let mut log = Log::new();
            let mut calls: u64 = 0;
            let mut failures: u64 = 0;
            let mut told = Told::default();
            'life: while let Some(change) = left.last() {
                let armed = match change {
                    Change::Advance { conversation_id, .. } => log.aggregate().armed(*conversation_id),
                    _ => None,
                };
                log.begin(change.clone()).unwrap();
                while let Some(want) = log.want() {
                    if calls == life {
                        // It dies before the call, or before it hears the answer.
                        if flaky.chance.once_in(2) {
                            flaky.serve(&want);
                        }
                        flaky.die();
                        break 'life;
                    }
                    calls += 1;
                    let answer = flaky.serve(&want);
                    log.answer(answer.as_answer());
                }
                let outcome = log.take_outcome().unwrap();
                // One write of the process before may still have been on its way.
                failures += u64::from(life == u64::MAX && !stands(&outcome));
                prop_assert!(failures <= 1, "{:?}", outcome);
                if outcome.result.is_ok() {
                    acknowledged.extend(payload_of(change));
                }
                told.watch(change, armed, &outcome)?;
                if stands(&outcome) {
                    left.pop();
                }
                if log.standing() == Standing::Ready {
                    prop_assert_eq!(log.aggregate(), &fold(&flaky.store));
                    prop_assert_eq!(log.head(), Some(flaky.store.head.unwrap_or(0)));
                }
            }
            let times = times(&flaky.store);
            for payload in &acknowledged {
                prop_assert_eq!(times.get(payload.as_slice()), Some(&1), "{}", String::from_utf8_lossy(payload));
            }
            for (payload, times) in times {
                let text = String::from_utf8_lossy(payload);
                prop_assert!(times == 1 || text.contains("arms") || text.contains("snapshot"), "{}", text);
            }
            fold(&flaky.store);
        }
        prop_assert!(left.is_empty());
    }

    #[test]
    fn two_writers_take_turns_at_every_sequence_and_neither_loses_a_row(
        seed in 1..u64::MAX, trouble in 3_u64..60, count in 10_u64..200,
    ) {
        let mut flaky = Flaky { store: Store::default(), durable_head: 0, chance: Chance(seed), trouble };
        let mut writers: Vec<(Log, Vec<Change>)> = (0..2).map(|writer| {
            let mut left = changes(writer, count);
            left.reverse();
            (Log::new(), left)
        }).collect();
        let mut calls: u64 = 0;
        while writers.iter().any(|(_, left)| !left.is_empty()) {
            calls += 1;
            prop_assert!(calls < 1_000_000, "both come to an end");
            let place = flaky.chance.below(2) as usize;
            let (log, left) = &mut writers[place];
            if let Some(want) = log.want() {
                let answer = flaky.serve(&want);
                log.answer(answer.as_answer());
            } else if let Some(outcome) = log.take_outcome() {
                if stands(&outcome) {
                    left.pop();
                }
            } else if let Some(change) = left.last() {
                log.begin(change.clone()).unwrap();
            }
        }
        let times = times(&flaky.store);
        for change in changes(0, count).iter().chain(&changes(1, count)) {
            if let Some(payload) = payload_of(change) {
                prop_assert_eq!(times.get(payload.as_slice()), Some(&1), "{:?}", change);
            }
        }
        fold(&flaky.store);
    }
}
