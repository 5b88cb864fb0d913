//! Random stores: journals of a few runs over few names, so that addresses meet often, and tables that agree with them but for
//! some damages.

use journal_fold::deferred_clock::rebuild::{Baseline, Options};
use journal_fold::digest::StateDigest;
use journal_fold::journal::OTHER_TYPE;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{json, Value};

use crate::model::{self, sha256, State};
use crate::store::{Checkpoint, ClockRow, CompletionRow, Entry, Host, Store};

/// In UTF-8 order the last two stand as here, in UTF-16 order the other way round.
pub const RUNS: [&str; 6] = ["a", "a\u{0}", "b", "é", "\u{ff5e}", "\u{1f680}"];
const EXECUTIONS: [&str; 7] = ["a", "a\u{0}", "b", "é", "\u{ff5e}", "\u{1f680}", "ghost"];
const FLOWS: [&str; 2] = ["F", "F\u{0}"];
const NAMES: [&str; 3] = ["c", "d", "c d"];
/// The first seven are times.
const TIMES: [&str; 11] = ["0", "1", "2", "5.0", "30e-1", "9007199254740991", "-0", "-1", "1.5", "null", "\"4\""];
const STORED: [&str; 10] = ["null", "0", "1", "2", "5.0", "3", "\"4\"", "1.5", "true", "9007199254740991"];
const NOT_A_DIGEST: &str = "\"7692C3AD3540BB803C020B3AEE66CD8887123234EA0C6E7143C0ADD73FF431ED\"";

/// One entry of the four types, before it is text.
#[derive(Debug, Clone)]
pub struct Event {
    kind: u8,
    flow: usize,
    /// `None` for the run's own execution.
    execution: Option<usize>,
    name: usize,
    time: usize,
    exit: usize,
    metadata: usize,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Sound,
    NameMissing,
    NotARecord,
    RepeatedKey,
    NotJson,
    NotUtf8,
}

/// Where an entry comes behind the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Next(i64),
    Again,
    SameSeq,
    Back,
}

#[derive(Debug, Clone)]
struct Floor {
    run: usize,
    seq: u64,
    compacted: bool,
    kept: Kept,
    events: Vec<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kept {
    Fold,
    Nothing,
    Malformed,
    NotJson,
}

#[derive(Debug, Clone)]
struct Damage {
    kind: u8,
    pick: usize,
    value: usize,
    text: usize,
}

/// Everything random about a store.
#[derive(Debug, Clone)]
pub struct Scenario {
    entries: Vec<(usize, Event, Step)>,
    floors: Vec<Floor>,
    damages: Vec<Damage>,
    /// Entries may name another run's execution.
    foreign: bool,
    /// Journals may contradict themselves or be unreadable, and floors may keep nothing.
    unruly: bool,
    ghost_lives: bool,
}

fn event() -> impl Strategy<Value = Event> {
    (
        0_u8..5,
        0..FLOWS.len(),
        prop_oneof![2 => Just(None), 1 => (0..EXECUTIONS.len()).prop_map(Some)],
        0..NAMES.len(),
        prop_oneof![6 => 0..7_usize, 1 => 7..TIMES.len() + 1],
        prop_oneof![6 => Just(0_usize), 3 => 1..6_usize],
        0..5_usize,
        prop_oneof![
            30 => Just(Shape::Sound),
            1 => select(vec![Shape::NameMissing, Shape::NotARecord, Shape::RepeatedKey]),
            1 => select(vec![Shape::NotJson, Shape::NotUtf8]),
        ],
    )
        .prop_map(|(kind, flow, execution, name, time, exit, metadata, shape)| Event {
            kind,
            flow,
            execution,
            name,
            time,
            exit,
            metadata,
            shape,
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![30 => (1_i64..4).prop_map(Step::Next), 3 => Just(Step::Again), 1 => Just(Step::SameSeq), 1 => Just(Step::Back)]
}

fn floor() -> impl Strategy<Value = Floor> {
    (
        0..RUNS.len(),
        0_u64..20,
        prop::bool::weighted(0.8),
        prop_oneof![8 => Just(Kept::Fold), 3 => select(vec![Kept::Nothing, Kept::Malformed, Kept::NotJson])],
        vec(event(), 0..6),
    )
        .prop_map(|(run, seq, compacted, kept, events)| Floor { run, seq, compacted, kept, events })
}

fn damage() -> impl Strategy<Value = Damage> {
    (0_u8..13, any::<usize>(), 0..STORED.len(), any::<usize>()).prop_map(|(kind, pick, value, text)| Damage { kind, pick, value, text })
}

pub fn scenario() -> impl Strategy<Value = Scenario> {
    (
        vec((0..RUNS.len(), event(), step()), 0..50),
        vec(floor(), 0..3),
        prop_oneof![2 => Just(Vec::new()), 3 => vec(damage(), 1..6)],
        any::<bool>(),
        prop::bool::weighted(0.3),
        any::<bool>(),
    )
        .prop_map(|(entries, floors, damages, foreign, unruly, ghost_lives)| Scenario {
            entries,
            floors,
            damages,
            foreign,
            unruly,
            ghost_lives,
        })
}

/// Stores that can be rebuilt, most of the time: sound journals whose clocks no two runs claim.
pub fn sound_scenario() -> impl Strategy<Value = Scenario> {
    scenario().prop_map(|mut scenario| {
        scenario.unruly = false;
        scenario.ghost_lives = true;
        for (_, event, _) in &mut scenario.entries {
            event.exit = 0;
            event.metadata = 0;
            if event.kind < 2 {
                event.execution = None;
            }
        }
        for floor in &mut scenario.floors {
            floor.events.retain(|event| event.execution.is_none());
            for event in &mut floor.events {
                event.exit = 0;
                event.metadata = 0;
            }
        }
        scenario.damages.retain(|damage| !(5..=7).contains(&damage.kind) && damage.kind != 11);
        scenario
    })
}

impl Event {
    fn payload(&self, own: &str) -> Vec<u8> {
        match self.shape {
            Shape::NotARecord => return b"[1]".to_vec(),
            Shape::NotJson => return b"{\"flowName\":\"F\",}".to_vec(),
            Shape::NotUtf8 => return b"{\"flowName\":\"\xe9\"}".to_vec(),
            Shape::Sound | Shape::NameMissing | Shape::RepeatedKey => {}
        }
        let execution = self.execution.map_or(own, |place| EXECUTIONS[place]);
        let mut members: Vec<(&str, String)> = vec![("flowName", json!(FLOWS[self.flow]).to_string())];
        members.push(("executionId", json!(execution).to_string()));
        let clock = self.kind < 2;
        if self.shape != Shape::NameMissing {
            members.push((if clock { "clockName" } else { "deferredName" }, json!(NAMES[self.name]).to_string()));
        }
        if self.kind == 0 {
            members.push(("deferredName", json!(NAMES[self.exit % NAMES.len()]).to_string()));
        }
        if let Some(time) = TIMES.get(self.time) {
            members.push((["dueAtMs", "completedAtMs", "completedAtMs", "consumedAtMs"][usize::from(self.kind)], (*time).into()));
        }
        if self.kind == 2 {
            let exit = [json!(sha256("one")), json!(sha256("two")), json!(null)].map(|digest| digest.to_string());
            match self.exit {
                3 => {}
                4 => members.push(("exitDigest", NOT_A_DIGEST.into())),
                5 => members.push(("exitDigest", "5".into())),
                other => members.push(("exitDigest", exit[other].clone())),
            }
            match self.metadata {
                0 | 1 => members.push(("metadataDigest", "null".into())),
                2 => members.push(("metadataDigest", json!(sha256("meta")).to_string())),
                3 => members.push(("metadataDigest", NOT_A_DIGEST.into())),
                _ => {}
            }
        }
        if self.shape == Shape::RepeatedKey {
            members.insert(0, ("flowName", "\"not this one\"".into()));
        }
        let members: Vec<String> = members.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    }
}

impl Scenario {
    fn tame(&self, event: &Event) -> Event {
        let mut event = event.clone();
        if !self.foreign {
            event.execution = None;
        }
        if !self.unruly && matches!(event.shape, Shape::NotJson | Shape::NotUtf8) {
            event.shape = Shape::Sound;
        }
        event
    }

    /// The store: journals and checkpoints, and tables as the journals say, then damaged.
    pub fn store(&self) -> Store {
        let mut store = Store { live: RUNS.iter().map(|run| run.as_bytes().to_vec()).collect(), ..Store::default() };
        if self.ghost_lives {
            store.live.insert(b"ghost".to_vec());
        }
        for (run, event, step) in &self.entries {
            let event = self.tame(event);
            let entries = store.journal.entry(RUNS[*run].as_bytes().to_vec()).or_default();
            let made = |seq| match event.kind {
                // Nobody looks at what entries of other types hold.
                4 => Entry { seq, type_code: if event.name == 0 { OTHER_TYPE } else { 4 }, payload: b"\xff{".to_vec() },
                kind => Entry { seq, type_code: kind, payload: event.payload(RUNS[*run]) },
            };
            let last = entries.last().cloned();
            let seq = last.as_ref().map_or(0, |last| last.seq);
            let next = match (step, last) {
                (Step::Again, Some(last)) => last,
                (Step::SameSeq, Some(_)) if self.unruly => made(seq),
                (Step::Back, Some(_)) if self.unruly => made((seq - 1).max(0)),
                (Step::Next(gap), _) => made(seq + gap),
                _ => made(seq + 1),
            };
            entries.push(next);
        }
        for floor in &self.floors {
            let mut state = State::default();
            for event in floor.events.iter().filter(|event| event.kind < 4) {
                let event = self.tame(event);
                let payload = event.payload(RUNS[floor.run]);
                if let Ok(payload) = serde_json::from_slice::<Value>(&payload) {
                    let _ = state.apply(event.kind, &payload);
                }
            }
            let kept = state.encode();
            let state = match if self.unruly { floor.kept } else { Kept::Fold } {
                Kept::Fold => json!({ "engine": 1, "flows.engine.deferred-clock": kept }).to_string(),
                Kept::Nothing => json!({ "engine": kept }).to_string(),
                Kept::Malformed => json!({ "flows.engine.deferred-clock": { "clocks": kept["clocks"] } }).to_string(),
                Kept::NotJson => "{".into(),
            };
            let checkpoints = store.checkpoints.entry(RUNS[floor.run].as_bytes().to_vec()).or_default();
            if checkpoints.iter().all(|checkpoint| checkpoint.seq != floor.seq) {
                checkpoints.push(Checkpoint { seq: floor.seq, compacted: floor.compacted, state: state.into_bytes() });
            }
        }
        fill_tables(&mut store);
        for damage in &self.damages {
            damage.inflict(&mut store);
        }
        store
    }
}

/// Fills the tables as the journals say.
pub fn fill_tables(store: &mut Store) {
    let (clocks, completions) = model::folded(store);
    let stamp = |time: Option<u64>| json!(time).to_string();
    for (address, clock) in clocks {
        let row = ClockRow::new(&json!(clock.deferred).to_string(), &clock.due.to_string(), &stamp(clock.completed));
        store.clocks.insert(address, row);
    }
    for (address, (completed, consumed, recorded)) in completions {
        let exit = ["one", "two"].into_iter().find(|text| recorded.exit.as_ref() == Some(&sha256(text))).unwrap_or("legacy");
        let metadata = recorded.metadata.flatten().map(|_| "meta".to_string());
        let row = CompletionRow {
            exit: Some(exit.into()),
            metadata,
            completed: completed.map_or("7".into(), |at| at.to_string()),
            consumed: stamp(consumed),
        };
        store.completions.insert(address, row);
    }
}

impl Damage {
    fn inflict(&self, store: &mut Store) {
        let part = |texts: &[&str], by: usize| texts[(self.text / by) % texts.len()].as_bytes().to_vec();
        let somewhere = [part(&FLOWS, 1), part(&EXECUTIONS, 2), part(&NAMES, 14)];
        let value = STORED[self.value].to_string();
        let clock = store.clocks.keys().nth(self.pick % store.clocks.len().max(1)).cloned();
        let completion = store.completions.keys().nth(self.pick % store.completions.len().max(1)).cloned();
        match (self.kind, clock, completion) {
            (0, Some(clock), _) => {
                store.clocks.remove(&clock);
            }
            (1, Some(clock), _) => store.clocks.get_mut(&clock).unwrap().deferred = value,
            (2, Some(clock), _) => store.clocks.get_mut(&clock).unwrap().due = value,
            (3, Some(clock), _) => store.clocks.get_mut(&clock).unwrap().completed = value,
            (4, _, _) => {
                store.clocks.entry(somewhere).or_insert(ClockRow::new("\"d\"", "3", &value));
            }
            (5, _, Some(completion)) => {
                store.completions.remove(&completion);
            }
            (6, _, Some(completion)) => store.completions.get_mut(&completion).unwrap().exit = Some("forged".into()),
            (7, _, Some(completion)) => {
                store.completions.get_mut(&completion).unwrap().metadata = Some("forged".into());
            }
            (8, _, Some(completion)) => store.completions.get_mut(&completion).unwrap().completed = value,
            (9, _, Some(completion)) => store.completions.get_mut(&completion).unwrap().consumed = value,
            (10, _, _) => {
                store.completions.entry(somewhere).or_insert(CompletionRow::new("one", "3", &value));
            }
            (11, _, _) => {
                let id = store.live.iter().nth(self.pick % store.live.len().max(1)).cloned();
                id.map(|id| store.live.remove(&id));
            }
            (12, _, Some(completion)) => store.completions.get_mut(&completion).unwrap().exit = None,
            _ => {}
        }
    }
}

pub fn host() -> impl Strategy<Value = Host> {
    (select(vec![0_usize, 1, 2, 3, 7]), 1_usize..5, any::<bool>(), any::<bool>(), 0_usize..4).prop_map(
        |(page_rows, runs_an_answer, leaves_out, descending, sweep_addresses)| Host {
            page_rows,
            runs_an_answer,
            leaves_out,
            descending,
            sweep_addresses,
        },
    )
}

/// Options without a baseline.
pub fn options() -> impl Strategy<Value = Options> {
    (
        prop::bool::weighted(0.2),
        prop_oneof![3 => Just(None), 1 => (0_u64..2).prop_map(Some)],
        prop_oneof![Just(None), Just(Some(2))],
        prop::bool::weighted(0.85),
        prop::bool::weighted(0.85),
    )
        .prop_map(|(strict, max_unexplained, as_of_ms, compare_clocks, whole_store)| Options {
            strict,
            max_unexplained,
            as_of_ms,
            compare_clocks,
            whole_store,
            unlisted_drift: false,
            baseline: Vec::new(),
        })
}

/// How a baseline lies.
#[derive(Debug, Clone, Copy)]
pub enum Lie {
    None,
    RunGone,
    Rewritten(usize),
    Longer(usize),
    /// It is from before any compaction.
    BeforeCompaction,
}

pub fn lie() -> impl Strategy<Value = Lie> {
    prop_oneof![
        Just(Lie::None),
        Just(Lie::RunGone),
        any::<usize>().prop_map(Lie::Rewritten),
        any::<usize>().prop_map(Lie::Longer),
        Just(Lie::BeforeCompaction),
    ]
}

/// What a report of the first half of every journal would have covered.
pub fn earlier_report(store: &Store, lie: Lie) -> Vec<Baseline> {
    let mut earlier = store.clone();
    for entries in earlier.journal.values_mut() {
        entries.truncate(entries.len() / 2);
    }
    if matches!(lie, Lie::BeforeCompaction) {
        earlier.checkpoints.clear();
    }
    let heads = model::verify(&earlier, &Options::default(), |_| false).heads;
    let mut all: Vec<Baseline> = heads
        .into_iter()
        .filter_map(|(run_id, _, _, last, digest)| {
            Some(Baseline { run_id, head: last?, digest: StateDigest::from_hex(digest?.as_bytes())? })
        })
        .collect();
    let place = |pick: usize, all: &[Baseline]| pick % all.len().max(1);
    match lie {
        Lie::None | Lie::BeforeCompaction => {}
        Lie::RunGone => all.push(Baseline { run_id: "c gone".into(), head: 3, digest: StateDigest::default() }),
        Lie::Rewritten(pick) => {
            let place = place(pick, &all);
            all.get_mut(place).into_iter().for_each(|baseline| baseline.digest.add_row(b"never"));
        }
        Lie::Longer(pick) => {
            let place = place(pick, &all);
            all.get_mut(place).into_iter().for_each(|baseline| baseline.head += 40);
        }
    }
    all.sort_by(|a, b| a.run_id.cmp(&b.run_id));
    all
}
