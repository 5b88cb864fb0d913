//! Our aggregate beside an independent implementation of it: the same operations must give the same outcomes and states.

use std::cell::RefCell;
use std::collections::BTreeMap;

use journal_fold::observer_log::live::{RecoverLimits, Rejection, Status};
use journal_fold::observer_log::row::RowRef;
use journal_fold::observer_log::{Aggregate, Fired, Live, Pair, Refusal};
use liminal_protocol::lifecycle::{
    ObserverProgressAdvanceDecision, ObserverProgressAdvanceError, ObserverProgressTrackDecision,
    ObserverProgressTrackError, ObserverRecoveryAggregate, ObserverRecoveryAggregateRestoreError, ObserverRecoveryArm,
    ObserverRecoveryTransactionDecision,
};
use liminal_protocol::wire::{
    ConnectionConversationCapacityExceeded, InvalidObserverEpoch, InvalidObserverEpochList, ObserverRecoveryHandshake,
    ObserverRecoveryResponse, ObserverRefusal, ServerValue,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};
use proptest::test_runner::{Config, TestRunner};

#[derive(Debug, Clone)]
enum Op {
    Track(u64, u64, bool),
    Advance(u64, u64, bool),
    Recover { entries: Vec<Pair>, max: u64, limit: u64, tracks: Vec<u64>, commit: bool },
    Arms(Vec<Pair>),
    Snapshot { progress: Option<Vec<Pair>>, armed: Option<Vec<Pair>> },
    Lists(Vec<Pair>, Vec<Pair>),
}

/// Few, so that they meet; and the ones at which arithmetic breaks.
fn id() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0_u64..4, 1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) + 1, 1 << 32])]
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0_u64..4, 1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) + 1])]
}

fn some_pairs() -> impl Strategy<Value = Vec<Pair>> {
    vec((id(), value()), 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    let limit = || prop_oneof![1 => 0_u64..4, 3 => Just(u64::MAX)];
    let recover = (some_pairs(), limit(), limit(), vec(id(), 0..3), any::<bool>());
    prop_oneof![
        4 => (id(), value(), any::<bool>()).prop_map(|(id, value, commit)| Op::Track(id, value, commit)),
        4 => (id(), value(), any::<bool>()).prop_map(|(id, value, commit)| Op::Advance(id, value, commit)),
        4 => recover.prop_map(|(entries, max, limit, tracks, commit)| Op::Recover { entries, max, limit, tracks, commit }),
        3 => some_pairs().prop_map(Op::Arms),
        2 => (prop::option::of(some_pairs()), prop::option::of(some_pairs()))
            .prop_map(|(progress, armed)| Op::Snapshot { progress, armed }),
        1 => (some_pairs(), some_pairs()).prop_map(|(progress, armed)| Op::Lists(progress, armed)),
        1 => (some_pairs(), vec(any::<Index>(), 0..4)).prop_map(|(progress, armed)| {
            let armed = armed.iter().filter(|_| !progress.is_empty()).map(|index| *index.get(&progress));
            Op::Lists(progress.clone(), armed.collect())
        }),
    ]
}

fn refusal_of_lists(error: ObserverRecoveryAggregateRestoreError) -> Refusal {
    use ObserverRecoveryAggregateRestoreError as Theirs;
    match error {
        Theirs::DuplicateProgress { conversation_id } => Refusal::DuplicateProgress { conversation_id },
        Theirs::DuplicateArm { conversation_id } => Refusal::DuplicateArm { conversation_id },
        Theirs::ArmWithoutProgress { conversation_id } => Refusal::ArmWithoutProgress { conversation_id },
        Theirs::ArmEpochMismatch { conversation_id, armed_epoch, current_observer_progress: current } => {
            Refusal::ArmEpochMismatch { conversation_id, armed_epoch, current }
        }
    }
}

fn refusal_of_recovery(response: &ObserverRecoveryResponse) -> Refusal {
    match response.server_value() {
        ServerValue::InvalidObserverEpochList(InvalidObserverEpochList::TooManyEntries { presented_entries, max_entries }) => {
            Refusal::TooManyEntries { presented: *presented_entries, max_entries: *max_entries }
        }
        ServerValue::InvalidObserverEpochList(InvalidObserverEpochList::DuplicateConversation {
            conversation_id,
            first_index,
            duplicate_index,
        }) => Refusal::DuplicateConversation {
            conversation_id: *conversation_id,
            first_index: *first_index,
            duplicate_index: *duplicate_index,
        },
        ServerValue::ConnectionConversationCapacityExceeded(
            ConnectionConversationCapacityExceeded::ObserverRecovery { conversation_id, limit },
        ) => Refusal::ConnectionCapacityExceeded { conversation_id: *conversation_id, limit: *limit },
        ServerValue::InvalidObserverEpoch(InvalidObserverEpoch::ConversationUnknown { conversation_id, presented_epoch }) => {
            Refusal::EntryUnknown { conversation_id: *conversation_id, presented: *presented_epoch }
        }
        ServerValue::InvalidObserverEpoch(InvalidObserverEpoch::EpochAhead {
            conversation_id,
            presented_epoch,
            current_observer_progress,
        }) => Refusal::EpochAhead {
            conversation_id: *conversation_id,
            presented: *presented_epoch,
            current: *current_observer_progress,
        },
        other => panic!("no refusal: {other:?}"),
    }
}

fn fired(arm: Option<ObserverRecoveryArm>) -> Option<Fired> {
    arm.map(|arm| Fired { conversation_id: arm.conversation_id(), epoch: arm.refused_epoch() })
}

/// What an operation came to, in our words.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Refused(Refusal),
    Done { fired: Option<Fired>, statuses: Vec<Status>, arms: Vec<Pair> },
}

fn done() -> Came {
    Came::Done { fired: None, statuses: Vec::new(), arms: Vec::new() }
}

fn ours(live: &mut Live, op: &Op) -> Came {
    let (asked, commit) = match op {
        Op::Track(id, value, commit) => (live.track(*id, *value), commit),
        Op::Advance(id, value, commit) => (live.advance(*id, *value), commit),
        Op::Recover { entries, max, limit, tracks, commit } => {
            let limits = RecoverLimits { max_entries: *max, connection_limit: *limit, connection_tracks: tracks };
            (live.recover(entries, &limits), commit)
        }
        Op::Arms(arms) => return applied(live, RowRef::Arms(arms)),
        Op::Snapshot { progress, armed } => {
            let progress = progress.clone().unwrap_or_else(|| live.aggregate().progress_list());
            let armed = armed.clone().unwrap_or_else(|| live.aggregate().armed_list());
            return applied(live, RowRef::Snapshot { progress: &progress, armed: &armed });
        }
        Op::Lists(progress, armed) => {
            return match Aggregate::from_lists(progress, armed) {
                Ok(aggregate) => {
                    *live = Live::new(aggregate);
                    done()
                }
                Err(refusal) => Came::Refused(refusal),
            }
        }
    };
    let pending = match asked {
        Ok(pending) => pending.clone(),
        Err(Rejection::Refused(refusal)) => return Came::Refused(refusal),
        Err(Rejection::Misplaced(error)) => panic!("{error}"),
    };
    let end = if *commit { live.commit() } else { live.abort() };
    assert_eq!(end.unwrap(), pending);
    Came::Done { fired: pending.would_fire(), statuses: pending.statuses().to_vec(), arms: pending.arms().to_vec() }
}

fn applied(live: &mut Live, row: RowRef<'_>) -> Came {
    let mut aggregate = std::mem::take(live).into_aggregate();
    let came = aggregate.apply(row);
    *live = Live::new(aggregate);
    came.map_or_else(Came::Refused, |fired| Came::Done { fired, statuses: Vec::new(), arms: Vec::new() })
}

fn theirs(aggregate: ObserverRecoveryAggregate, op: &Op) -> (ObserverRecoveryAggregate, Came) {
    match op {
        Op::Track(id, value, commit) => match aggregate.decide_track(*id, *value) {
            ObserverProgressTrackDecision::Refuse {
                aggregate,
                error: ObserverProgressTrackError::AlreadyTracked { conversation_id },
            } => (aggregate, Came::Refused(Refusal::AlreadyTracked { conversation_id })),
            ObserverProgressTrackDecision::Commit(pending) => {
                (if *commit { pending.commit() } else { pending.abort() }, done())
            }
        },
        Op::Advance(id, value, commit) => match aggregate.decide_progress_advance(*id, *value) {
            ObserverProgressAdvanceDecision::Refuse { aggregate, error } => (
                aggregate,
                Came::Refused(match error {
                    ObserverProgressAdvanceError::ConversationUnknown { conversation_id } => {
                        Refusal::ConversationUnknown { conversation_id }
                    }
                    ObserverProgressAdvanceError::NotAdvancing {
                        conversation_id,
                        current_observer_progress: current,
                        presented_progress: presented,
                    } => Refusal::NotAdvancing { conversation_id, current, presented },
                }),
            ),
            ObserverProgressAdvanceDecision::Commit(pending) => {
                let came = Came::Done { fired: fired(pending.fired_arm()), statuses: Vec::new(), arms: Vec::new() };
                (if *commit { pending.commit().0 } else { pending.abort() }, came)
            }
        },
        Op::Recover { entries, max, limit, tracks, commit } => {
            let refusals = entries.iter();
            let refusals = refusals.map(|(id, epoch)| ObserverRefusal { conversation_id: *id, refused_epoch: *epoch });
            let request = ObserverRecoveryHandshake { observer_refusals: refusals.collect() };
            match aggregate.decide_recovery(&request, *max, *limit, tracks) {
                ObserverRecoveryTransactionDecision::Respond { aggregate, response } => {
                    (aggregate, Came::Refused(refusal_of_recovery(&response)))
                }
                ObserverRecoveryTransactionDecision::Commit(pending) => {
                    let statuses = pending.outcome().statuses.iter().map(|status| Status {
                        conversation_id: status.conversation_id,
                        refused_epoch: status.refused_epoch,
                        current: status.current_observer_progress,
                        armed: status.armed,
                    });
                    let arms = pending.arms().iter().map(|arm| (arm.conversation_id(), arm.refused_epoch()));
                    let came = Came::Done { fired: None, statuses: statuses.collect(), arms: arms.collect() };
                    (if *commit { pending.commit().0 } else { pending.abort() }, came)
                }
            }
        }
        Op::Arms(arms) => {
            let (progress, armed) = (aggregate.progress_rows(), aggregate.armed_rows());
            match aggregate.install_restored_arms(arms) {
                Ok(aggregate) => (aggregate, done()),
                // It is consumed by the refusal, so it is made again as it was.
                Err(error) => {
                    let before = ObserverRecoveryAggregate::restore(&progress, &armed).unwrap();
                    (before, Came::Refused(refusal_of_lists(error)))
                }
            }
        }
        Op::Snapshot { progress, armed } => {
            let same_progress = progress.as_ref().is_none_or(|progress| *progress == aggregate.progress_rows());
            let same_armed = armed.as_ref().is_none_or(|armed| *armed == aggregate.armed_rows());
            let came = match (same_progress, same_armed) {
                (true, true) => done(),
                _ => Came::Refused(Refusal::SnapshotDisagrees { same_progress, same_armed }),
            };
            (aggregate, came)
        }
        Op::Lists(progress, armed) => match ObserverRecoveryAggregate::restore(progress, armed) {
            Ok(made) => (made, done()),
            Err(error) => (aggregate, Came::Refused(refusal_of_lists(error))),
        },
    }
}

#[test]
fn every_outcome_and_state_is_that_of_an_independent_implementation() {
    let met: RefCell<BTreeMap<&'static str, u32>> = RefCell::default();
    let config = Config { cases: 6_000, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&vec(op(), 0..60), |ops| {
            let (mut live, mut rival) = (Live::default(), ObserverRecoveryAggregate::new());
            for op in &ops {
                let here = ours(&mut live, op);
                let (next, there) = theirs(rival, op);
                rival = next;
                let what = match &here {
                    Came::Refused(refusal) => refusal.kind(),
                    Came::Done { fired: Some(_), .. } => "fired",
                    Came::Done { .. } => "done",
                };
                *met.borrow_mut().entry(what).or_default() += 1;
                prop_assert_eq!(here, there, "{:?}", op);
                prop_assert_eq!(live.aggregate().progress_list(), rival.progress_rows(), "{:?}", op);
                prop_assert_eq!(live.aggregate().armed_list(), rival.armed_rows(), "{:?}", op);
                prop_assert_eq!(live.aggregate().armed_len(), rival.armed_rows().len());
            }
            for id in [0, 1, 2, 3, 4, u64::MAX] {
                prop_assert_eq!(live.aggregate().progress(id), rival.observer_progress(id));
                prop_assert_eq!(live.aggregate().armed(id), rival.armed_epoch(id));
            }
            Ok(())
        })
        .unwrap();
    let met = met.into_inner();
    for what in [
        "done", "fired", "already_tracked", "conversation_unknown", "not_advancing", "arm_without_progress",
        "arm_epoch_mismatch", "snapshot_disagrees", "duplicate_progress", "duplicate_arm", "too_many_entries",
        "duplicate_conversation", "connection_capacity_exceeded", "epoch_ahead",
    ] {
        assert!(met.get(what).is_some_and(|count| *count > 50), "{what} was hardly met: {met:?}");
    }
}
