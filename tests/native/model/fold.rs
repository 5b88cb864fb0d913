//! One run, folded the plain way.

use serde_json::{json, Map, Value};
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_128;

use crate::store::{Address, Checkpoint, Entry};

#[derive(Debug, Clone)]
pub struct Clock {
    pub address: Address,
    pub deferred: String,
    pub due: u64,
    pub completed: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Completion {
    pub address: Address,
    pub completed: Option<u64>,
    pub consumed: Option<u64>,
    pub exit: Option<String>,
    pub exit_was_malformed: bool,
    /// `Some(None)` for a recorded null.
    pub metadata: Option<Option<String>>,
}

#[derive(Debug, Clone, Default)]
pub struct State {
    pub clocks: Vec<Clock>,
    pub completions: Vec<Completion>,
}

fn name(payload: &Map<String, Value>, member: &str) -> Option<String> {
    payload.get(member)?.as_str().filter(|text| !text.is_empty()).map(String::from)
}

pub(super) fn as_time(value: &Value) -> Option<u64> {
    let double = value.as_number()?.as_f64()?;
    (double.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&double)).then_some(double as u64)
}

fn time(payload: &Map<String, Value>, member: &str) -> Option<u64> {
    as_time(payload.get(member)?)
}

fn as_digest(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let lower_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (text.len() == 64 && text.chars().all(lower_hex)).then(|| text.into())
}

fn address_of(payload: &Map<String, Value>, member: &str) -> Option<Address> {
    Some(["flowName", "executionId", member].map(|part| name(payload, part)).map(|part| part.map(String::into_bytes))).and_then(
        |[flow, execution, name]| Some([flow?, execution?, name?]),
    )
}

impl State {
    /// Folds one entry; the reason why it changed nothing.
    pub fn apply(&mut self, type_code: u8, payload: &Value) -> Result<(), &'static str> {
        let payload = payload.as_object().ok_or("not_a_record")?;
        let member = if type_code < 2 { "clockName" } else { "deferredName" };
        let address = address_of(payload, member).ok_or("field_refused")?;
        let clock = self.clocks.iter_mut().find(|clock| clock.address == address);
        let completion = self.completions.iter_mut().find(|completion| completion.address == address);
        match type_code {
            0 => {
                let deferred = name(payload, "deferredName").ok_or("field_refused")?;
                let due = time(payload, "dueAtMs").ok_or("field_refused")?;
                if clock.is_some() {
                    return Err("already_scheduled");
                }
                self.clocks.push(Clock { address, deferred, due, completed: None });
            }
            1 => {
                let at = time(payload, "completedAtMs").ok_or("field_refused")?;
                let clock = clock.ok_or("nothing_to_complete")?;
                if clock.completed.is_some() {
                    return Err("already_completed");
                }
                clock.completed = Some(at);
            }
            2 => {
                if completion.is_some() {
                    return Err("already_completed");
                }
                let exit_value = payload.get("exitDigest").filter(|value| !value.is_null());
                let exit = exit_value.and_then(as_digest);
                let metadata = match payload.get("metadataDigest") {
                    _ if exit.is_none() => None,
                    Some(Value::Null) => Some(None),
                    other => other.and_then(as_digest).map(Some),
                };
                self.completions.push(Completion {
                    address,
                    completed: time(payload, "completedAtMs"),
                    consumed: None,
                    exit_was_malformed: exit.is_none() && exit_value.is_some(),
                    exit,
                    metadata,
                });
            }
            3 => {
                let at = time(payload, "consumedAtMs").ok_or("field_refused")?;
                let completion = completion.ok_or("nothing_to_consume")?;
                if completion.consumed.is_some() {
                    return Err("already_consumed");
                }
                completion.consumed = Some(at);
            }
            other => panic!("no type {other}"),
        }
        Ok(())
    }

    /// The fold that a checkpoint's state keeps.
    pub fn from_checkpoint(state: &[u8]) -> Option<State> {
        let state: Value = serde_json::from_slice(state).ok()?;
        let kept = state.as_object()?.get("flows.engine.deferred-clock")?.as_object()?;
        let stamp = |row: &Map<String, Value>, member: &str| match row.get(member)? {
            Value::Null => Some(None),
            other => as_time(other).map(Some),
        };
        let mut made = State::default();
        for row in kept.get("clocks")?.as_array()? {
            let row = row.as_object()?;
            let clock = Clock {
                address: address_of(row, "clockName")?,
                deferred: name(row, "deferredName")?,
                due: time(row, "dueAtMs")?,
                completed: stamp(row, "completedAtMs")?,
            };
            match made.clocks.iter_mut().find(|known| known.address == clock.address) {
                Some(known) => *known = clock,
                None => made.clocks.push(clock),
            }
        }
        for row in kept.get("deferreds")?.as_array()? {
            let row = row.as_object()?;
            let digest = |member: &str| match row.get(member) {
                None => Some(None),
                Some(value) => as_digest(value).map(Some),
            };
            let metadata = match row.get("metadataDigest") {
                Some(Value::Null) => Some(None),
                _ => digest("metadataDigest")?.map(Some),
            };
            let completion = Completion {
                address: address_of(row, "deferredName")?,
                completed: stamp(row, "completedAtMs")?,
                consumed: stamp(row, "consumedAtMs")?,
                exit: digest("exitDigest")?,
                exit_was_malformed: false,
                metadata,
            };
            match made.completions.iter_mut().find(|known| known.address == completion.address) {
                Some(known) => *known = completion,
                None => made.completions.push(completion),
            }
        }
        Some(made)
    }

    /// The encoded fold.
    pub fn encode(&self) -> Value {
        let clocks: Vec<Value> = self
            .clocks
            .iter()
            .map(|clock| {
                let [flow, execution, name] = texts(&clock.address);
                json!({ "flowName": flow, "executionId": execution, "clockName": name, "deferredName": clock.deferred,
                    "dueAtMs": clock.due, "completedAtMs": clock.completed })
            })
            .collect();
        let deferreds: Vec<Value> = self
            .completions
            .iter()
            .map(|row| {
                let [flow, execution, name] = texts(&row.address);
                let mut made = json!({ "flowName": flow, "executionId": execution, "deferredName": name,
                    "completedAtMs": row.completed });
                if let Some(exit) = &row.exit {
                    made["exitDigest"] = json!(exit);
                }
                if let Some(metadata) = &row.metadata {
                    made["metadataDigest"] = json!(metadata);
                }
                made["consumedAtMs"] = json!(row.consumed);
                made
            })
            .collect();
        json!({ "clocks": clocks, "deferreds": deferreds })
    }

    /// The digest of all that was recorded.
    pub(super) fn recorded_digest(&self) -> u128 {
        let clocks = self.clocks.iter().map(clock_print);
        let completions = self.completions.iter().map(|row| {
            let mut bytes = completion_bytes(&row.address, row.completed, row.consumed);
            for digest in [row.exit.clone().map(Some), row.metadata.clone()] {
                match digest {
                    None => bytes.push(0),
                    Some(None) => bytes.push(1),
                    Some(Some(hex)) => {
                        bytes.push(2);
                        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
                        bytes.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
                    }
                }
            }
            xxh3_128(&bytes)
        });
        clocks.chain(completions).fold(0, u128::wrapping_add)
    }
}

pub(super) fn texts(address: &Address) -> [&str; 3] {
    [0, 1, 2].map(|part| std::str::from_utf8(&address[part]).unwrap())
}

fn canonical(tag: u8, texts: &[&[u8]], times: [Option<u64>; 2]) -> Vec<u8> {
    let mut bytes = vec![tag];
    for text in texts {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text);
    }
    for time in times {
        bytes.extend(time.unwrap_or(u64::MAX).to_le_bytes());
    }
    bytes
}

pub(super) fn clock_print(clock: &Clock) -> u128 {
    let [flow, execution, name] = &clock.address;
    xxh3_128(&canonical(b'c', &[flow, execution, name, clock.deferred.as_bytes()], [Some(clock.due), clock.completed]))
}

pub(super) fn completion_bytes([flow, execution, name]: &Address, completed: Option<u64>, consumed: Option<u64>) -> Vec<u8> {
    canonical(b'd', &[flow, execution, name], [completed, consumed])
}

pub(super) fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}

pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) const REASONS: [&str; 11] = [
    "other_type",
    "below_floor",
    "above_bound",
    "redelivered",
    "not_a_record",
    "field_refused",
    "already_scheduled",
    "nothing_to_complete",
    "already_completed",
    "nothing_to_consume",
    "already_consumed",
];

#[derive(Debug)]
pub struct Run {
    /// The state, or which finding stands for the run and at which seq.
    pub state: Result<State, (&'static str, Option<u64>)>,
    pub(super) floor: Option<u64>,
    pub(super) entries: u64,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    pub(super) counted: bool,
    pub(super) beyond_head: bool,
    pub(super) ignored: Vec<(&'static str, u64)>,
    pub(super) left_out: u64,
    /// The digest of what was recorded up to the baseline's head.
    pub(super) at_baseline: u128,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            state: Ok(State::default()),
            floor: None,
            entries: 0,
            first: None,
            last: None,
            counted: false,
            beyond_head: false,
            ignored: Vec::new(),
            left_out: 0,
            at_baseline: 0,
        }
    }
}

/// Folds one run.
pub fn fold_run(entries: &[Entry], checkpoints: &[Checkpoint], leaves_out: bool, baseline_head: Option<u64>) -> Run {
    let floor = checkpoints.iter().filter(|checkpoint| checkpoint.compacted).max_by_key(|checkpoint| checkpoint.seq);
    let mut run = Run {
        floor: floor.map(|floor| floor.seq),
        counted: floor.is_some() || entries.iter().any(|entry| entry.type_code < 4),
        left_out: entries.iter().filter(|entry| leaves_out && entry.type_code >= 4).count() as u64,
        ..Run::default()
    };
    let mut state = match floor.map(|floor| State::from_checkpoint(&floor.state)) {
        Some(None) => {
            run.state = Err(("checkpoint_missing", None));
            return run;
        }
        Some(Some(state)) => state,
        None => State::default(),
    };
    run.at_baseline = state.recorded_digest();
    let mut last: Option<&Entry> = None;
    let mut highest_below = None;
    for entry in entries {
        let seq = entry.seq as u64;
        if entry.type_code >= 4 {
            if !leaves_out {
                run.ignored.push(("other_type", seq));
            }
            continue;
        }
        if run.floor.is_some_and(|floor| seq <= floor) {
            run.ignored.push(("below_floor", seq));
            highest_below = highest_below.max(Some(seq));
            continue;
        }
        if let Some(last) = last {
            if entry == last {
                run.ignored.push(("redelivered", seq));
                continue;
            }
            if entry.seq <= last.seq {
                let id = if entry.seq == last.seq { "entry_conflict" } else { "entry_out_of_order" };
                run.state = Err((id, Some(seq)));
                return run;
            }
        }
        let Ok(text) = std::str::from_utf8(&entry.payload) else {
            run.state = Err(("text_not_utf8", Some(seq)));
            return run;
        };
        let Ok(payload) = serde_json::from_str::<Value>(text) else {
            run.state = Err(("payload_not_json", Some(seq)));
            return run;
        };
        if let Err(reason) = state.apply(entry.type_code, &payload) {
            run.ignored.push((reason, seq));
        }
        if baseline_head.is_some_and(|head| seq <= head) {
            run.at_baseline = state.recorded_digest();
        }
        run.entries += 1;
        run.first = run.first.or(Some(seq));
        run.last = Some(seq);
        last = Some(entry);
    }
    run.beyond_head = run.last.is_none() && highest_below.is_some() && highest_below < run.floor;
    run.state = Ok(state);
    run
}

