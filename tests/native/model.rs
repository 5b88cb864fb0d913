//! A second opinion: the rules of `tests/vectors/deferred-clock/README.md` and the decisions beside it, written again from the
//! text in the plainest way, with the whole store in memory. It shares nothing with the crate but the names of its options.

use std::collections::{BTreeMap, BTreeSet};

use journal_fold::deferred_clock::rebuild::{Effects, Options, Verification};
use serde_json::{json, Map, Value};
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_128;

use crate::store::{finding_text, Address, Checkpoint, ClockRow, Entry, Store};

/// What a verification says, in a form that two opinions can be compared in.
#[derive(Debug, PartialEq)]
pub struct Report {
    pub verdict: String,
    pub findings: Vec<Value>,
    /// Runs, entries, floors, clocks, deferreds.
    pub totals: [u64; 5],
    pub unexplained: Option<u64>,
    pub unfolded: u64,
    pub ignored: Vec<(String, u64, Option<(Vec<u8>, u64)>)>,
    pub not_checked: BTreeMap<String, u64>,
    pub notes: BTreeMap<String, (u64, Vec<u8>)>,
    pub digest: String,
    pub heads: Vec<Head>,
    pub plan: Option<Changes>,
}

/// Run, floor, first, last, digest.
pub type Head = (Vec<u8>, Option<u64>, Option<u64>, Option<u64>, Option<String>);

#[derive(Debug, PartialEq)]
pub struct Changes {
    /// Table, operation and row.
    pub rows: Vec<(String, String, Value)>,
    pub effects: Effects,
    pub unstorable: u64,
}

/// What the crate says.
pub fn report_of(verification: &Verification) -> Report {
    let totals = &verification.totals;
    Report {
        verdict: verification.verdict.as_str().into(),
        findings: verification.findings.iter().map(|finding| without_wording(&finding_text(finding))).collect(),
        totals: [totals.runs, totals.entries, totals.floors, totals.clocks, totals.deferreds],
        unexplained: verification.unexplained,
        unfolded: verification.unfolded,
        ignored: verification
            .ignored
            .iter()
            .map(|ignored| (ignored.reason.as_str().into(), ignored.count, ignored.first.clone()))
            .collect(),
        not_checked: verification.not_checked.iter().map(|item| (item.what.into(), item.count)).collect(),
        notes: verification.notes.iter().map(|note| (note.what.into(), (note.count, note.first_run.clone()))).collect(),
        digest: String::from_utf8(verification.digest.to_hex()).unwrap(),
        heads: verification
            .heads()
            .map(|head| {
                let digest = head.digest.map(|digest| String::from_utf8(digest.to_hex()).unwrap());
                (head.run_id.to_vec(), head.floor, head.first, head.last, digest)
            })
            .collect(),
        plan: verification.plan.as_ref().map(|plan| Changes {
            rows: plan
                .pages
                .iter()
                .flat_map(|page| {
                    let rows: Vec<Value> = serde_json::from_slice(&page.rows).unwrap();
                    rows.into_iter().map(|row| (page.table.as_str().to_string(), page.op.as_str().to_string(), row))
                })
                .collect(),
            effects: plan.effects,
            unstorable: plan.unstorable,
        }),
    }
}

/// What is wrong with a journal is told in words and at an offset; which entry it is must be the same.
fn without_wording(finding: &str) -> Value {
    let mut finding: Map<String, Value> = serde_json::from_str(finding).unwrap();
    let id = finding["id"].as_str().unwrap();
    if id == "checkpoint_missing" || finding["class"] == "refused" && !id.starts_with("journal_") {
        for member in ["expected", "found", "offset"] {
            finding.remove(member);
        }
    }
    Value::Object(finding)
}

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

fn as_time(value: &Value) -> Option<u64> {
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
    fn recorded_digest(&self) -> u128 {
        let clocks = self.clocks.iter().map(clock_print);
        let completions = self.completions.iter().map(|row| {
            let mut bytes = completion_bytes(&row.address, row.completed, row.consumed);
            for digest in [row.exit.clone().map(Some), row.metadata.clone()] {
                match digest {
                    None => bytes.push(0),
                    Some(None) => bytes.push(1),
                    Some(Some(hex)) => {
                        bytes.push(2);
                        bytes.extend((0..64).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()));
                    }
                }
            }
            xxh3_128(&bytes)
        });
        clocks.chain(completions).fold(0, u128::wrapping_add)
    }
}

fn texts(address: &Address) -> [&str; 3] {
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

fn clock_print(clock: &Clock) -> u128 {
    let [flow, execution, name] = &clock.address;
    xxh3_128(&canonical(b'c', &[flow, execution, name, clock.deferred.as_bytes()], [Some(clock.due), clock.completed]))
}

fn completion_bytes([flow, execution, name]: &Address, completed: Option<u64>, consumed: Option<u64>) -> Vec<u8> {
    canonical(b'd', &[flow, execution, name], [completed, consumed])
}

fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}

pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

const REASONS: [&str; 11] = [
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
    floor: Option<u64>,
    entries: u64,
    first: Option<u64>,
    last: Option<u64>,
    counted: bool,
    beyond_head: bool,
    ignored: Vec<(&'static str, u64)>,
    left_out: u64,
    /// The digest of what was recorded up to the baseline's head.
    at_baseline: u128,
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

fn row_finding(id: &str, class: &str, run: Option<&[u8]>, address: &Address) -> Value {
    let [flow, execution, name] = texts(address);
    let mut finding = json!({ "id": id, "class": class });
    if let Some(run) = run {
        finding["runId"] = json!(std::str::from_utf8(run).unwrap());
    }
    finding["flowName"] = json!(flow);
    finding["executionId"] = json!(execution);
    finding["name"] = json!(name);
    finding
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn same_time(stored: &str, expected: Option<u64>) -> bool {
    match (parse(stored), expected) {
        (Value::Null, None) => true,
        (value, Some(expected)) => as_time(&value) == Some(expected),
        _ => false,
    }
}

fn shown_clock(deferred: &Value, due: &Value, completed: &Value) -> Value {
    json!({ "deferredName": deferred, "dueAtMs": due, "completedAtMs": completed })
}

/// Verifies a whole store. `leaves_out` says of which runs, by place, the host leaves entries of other types out.
pub fn verify(store: &Store, options: &Options, leaves_out: impl Fn(usize) -> bool) -> Report {
    let ids = store.run_ids();
    let runs: Vec<(&Vec<u8>, Run)> = ids
        .iter()
        .enumerate()
        .map(|(place, id)| {
            let head = options.baseline.iter().find(|baseline| baseline.run_id == *id).map(|baseline| baseline.head);
            let checkpoints = store.checkpoints.get(id).map_or(&[][..], Vec::as_slice);
            (id, fold_run(store.entries(id), checkpoints, leaves_out(place), head))
        })
        .collect();
    let states: Vec<(&Vec<u8>, &State)> =
        runs.iter().filter_map(|(id, run)| run.state.as_ref().ok().map(|state| (*id, state))).collect();
    let unfolded = runs.iter().filter(|(_, run)| run.state.is_err()).count() as u64;
    let judges_all = options.whole_store && unfolded == 0;
    let text = |id: &[u8]| std::str::from_utf8(id).unwrap().to_owned();

    // Runs that cannot be folded, and runs that are not what an earlier report says, by run.
    let mut refused: Vec<(Vec<u8>, Value)> = Vec::new();
    let mut not_checked = BTreeMap::new();
    let mut count = |what: &str, by: u64| {
        if by > 0 {
            *not_checked.entry(what.to_string()).or_insert(0) += by;
        }
    };
    for (id, run) in &runs {
        if let Err((finding, Some(seq))) = run.state {
            refused.push((id.to_vec(), json!({ "id": finding, "class": "refused", "runId": text(id), "seq": seq.to_string() })));
        }
    }
    for baseline in &options.baseline {
        let shorter = |found: Option<u64>| {
            json!({ "id": "journal_shorter", "class": "refused", "runId": text(&baseline.run_id),
                "expected": baseline.head.to_string(), "found": found.map(|found| found.to_string()) })
        };
        match runs.iter().find(|(id, _)| **id == baseline.run_id) {
            None => refused.push((baseline.run_id.clone(), shorter(None))),
            Some((_, run)) if run.state.is_err() => {}
            Some((_, run)) if run.floor.is_some_and(|floor| floor > baseline.head) => count("baseline_compacted", 1),
            Some((_, run)) => {
                let head = run.last.or(run.floor);
                let expected = String::from_utf8(baseline.digest.to_hex()).unwrap();
                if head.is_none_or(|head| head < baseline.head) {
                    refused.push((baseline.run_id.clone(), shorter(head)));
                } else if hex(run.at_baseline) != expected {
                    refused.push((
                        baseline.run_id.clone(),
                        json!({ "id": "journal_rewritten", "class": "refused", "runId": text(&baseline.run_id),
                            "expected": expected, "found": hex(run.at_baseline) }),
                    ));
                }
            }
        }
    }
    refused.sort_by(|a, b| a.0.cmp(&b.0));
    let mut findings: Vec<Value> = refused.into_iter().map(|(_, finding)| finding).collect();
    for (id, run) in &runs {
        if matches!(run.state, Err((_, None))) {
            findings.push(json!({ "id": "checkpoint_missing", "class": "unjoined", "runId": text(id) }));
        }
    }

    // Clocks.
    let mut clocks: BTreeMap<&Address, Vec<(&Vec<u8>, &Clock)>> = BTreeMap::new();
    for (id, state) in &states {
        for clock in &state.clocks {
            clocks.entry(&clock.address).or_default().push((id, clock));
            if !store.live.contains(&clock.address[1]) {
                findings.push(row_finding("run_missing", "unjoined", Some(id), &clock.address));
            }
        }
    }
    for (address, records) in &clocks {
        if records.len() > 1 && store.live.contains(&address[1]) {
            let mut finding = row_finding("clock_conflict", "unjoined", None, address);
            finding["runs"] = records.iter().map(|(id, _)| json!(text(id))).collect();
            findings.push(finding);
        }
    }

    // Completions.
    let mut completions: BTreeMap<&Address, Vec<(&Vec<u8>, &Completion)>> = BTreeMap::new();
    let mut unverifiable = Vec::new();
    for (id, state) in &states {
        for row in &state.completions {
            completions.entry(&row.address).or_default().push((id, row));
            match store.completions.get(&row.address) {
                None => findings.push(row_finding("row_missing", "unjoined", Some(id), &row.address)),
                Some(stored) => {
                    let [exit, metadata] = [&stored.exit, &stored.metadata].map(|text| text.as_ref().map(|text| sha256(text)));
                    let pairs = [("exitDigest", row.exit.clone().map(Some), exit), ("metadataDigest", row.metadata.clone(), metadata)];
                    for (field, recorded, found) in pairs {
                        if recorded.as_ref().is_some_and(|recorded| *recorded != found) {
                            let mut finding = row_finding("digest_mismatch", "unjoined", Some(id), &row.address);
                            finding["field"] = json!(field);
                            finding["expected"] = json!(recorded.unwrap());
                            finding["found"] = json!(found);
                            findings.push(finding);
                            break;
                        }
                    }
                }
            }
            let unchecked = match (&row.exit, &row.metadata) {
                (None, _) if row.exit_was_malformed => "digest_malformed",
                (None, _) => "digest_absent",
                (Some(_), None) => "metadata_unchecked",
                (Some(_), Some(_)) => continue,
            };
            count(unchecked, 1);
            if options.strict {
                unverifiable.push(row_finding(unchecked, "unverifiable", Some(id), &row.address));
            }
        }
    }
    findings.append(&mut unverifiable);

    // Stored rows that nothing explains.
    let unexplained = store.completions.keys().filter(|address| !completions.contains_key(address)).count() as u64;
    let unexpected: Vec<(&Address, &ClockRow)> =
        store.clocks.iter().filter(|(address, _)| options.compare_clocks && !clocks.contains_key(address)).collect();
    count("runs_unfolded", unfolded);
    if !judges_all {
        count("completion_rows", unexplained);
        count("clock_rows", unexpected.len() as u64);
    } else if options.max_unexplained.is_some_and(|limit| unexplained > limit) {
        findings.push(json!({ "id": "unexplained_above_limit", "class": "unverifiable", "expected": options.max_unexplained, "found": unexplained }));
    }
    let is_refused = !findings.is_empty();

    // Drift, by address: clocks, then completions.
    let mut drift: Vec<(Address, Vec<Value>)> = Vec::new();
    let (mut deletes, mut updates, mut inserts, mut stamps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut effects = Effects::default();
    let row_of = |address: &Address, values: &[Value]| {
        let names = texts(address).map(|part| json!(part));
        Value::Array(names.into_iter().chain(values.iter().cloned()).collect())
    };
    let arm = |effects: &mut Effects, clock: &Clock| {
        effects.clocks_armed += 1;
        effects.clocks_overdue += u64::from(options.as_of_ms.is_some_and(|now| clock.due <= now));
    };
    if options.compare_clocks {
        for (address, records) in &clocks {
            let [(id, clock)] = records.as_slice() else { continue };
            let values = [json!(clock.deferred), json!(clock.due), json!(clock.completed)];
            match store.clocks.get(*address) {
                None => {
                    let mut finding = row_finding("clock_missing", "drift", Some(id), address);
                    finding["expected"] = shown_clock(&values[0], &values[1], &values[2]);
                    drift.push(((*address).clone(), vec![finding]));
                    inserts.push(row_of(address, &values));
                    if clock.completed.is_none() {
                        arm(&mut effects, clock);
                    }
                }
                Some(stored) => {
                    let fields = [
                        ("deferredName", parse(&stored.deferred) == values[0], &stored.deferred),
                        ("dueAtMs", same_time(&stored.due, Some(clock.due)), &stored.due),
                        ("completedAtMs", same_time(&stored.completed, clock.completed), &stored.completed),
                    ];
                    let differing: Vec<Value> = fields
                        .iter()
                        .zip(&values)
                        .filter(|((_, same, _), _)| !same)
                        .map(|((field, _, found), expected)| {
                            let mut finding = row_finding("clock_differs", "drift", Some(id), address);
                            finding["field"] = json!(field);
                            finding["expected"] = expected.clone();
                            finding["found"] = parse(found);
                            finding
                        })
                        .collect();
                    if differing.is_empty() {
                        continue;
                    }
                    drift.push(((*address).clone(), differing));
                    updates.push(row_of(address, &values));
                    match clock.completed {
                        None => arm(&mut effects, clock),
                        Some(_) => effects.pending_completed += u64::from(stored.completed == "null"),
                    }
                }
            }
        }
    }
    if judges_all {
        for (address, stored) in unexpected {
            let mut finding = row_finding("clock_unexpected", "drift", None, address);
            finding["found"] = shown_clock(&parse(&stored.deferred), &parse(&stored.due), &parse(&stored.completed));
            drift.push((address.clone(), vec![finding]));
            deletes.push(row_of(address, &[]));
            effects.pending_deleted += u64::from(stored.completed == "null");
        }
    }
    drift.sort_by(|a, b| a.0.cmp(&b.0));
    let mut notes: BTreeMap<String, (u64, Vec<u8>)> = BTreeMap::new();
    let mut note = |what: &str, run: &[u8]| {
        let (count, first) = notes.entry(what.to_string()).or_insert_with(|| (0, run.to_vec()));
        *count += 1;
        *first = std::mem::take(first).min(run.to_vec());
    };
    let mut digest: u128 = states.iter().flat_map(|(_, state)| &state.clocks).map(clock_print).fold(0, u128::wrapping_add);
    for (address, records) in &completions {
        let completed = records.iter().rev().find_map(|(_, row)| row.completed);
        let (id, last) = records.last().unwrap();
        if records.len() > 1 {
            note("recorded_by_two_runs", id);
        }
        digest = digest.wrapping_add(xxh3_128(&completion_bytes(address, completed, last.consumed)));
        let Some(stored) = store.completions.get(*address) else { continue };
        let fields = [
            ("completedAtMs", completed.is_none() || same_time(&stored.completed, completed), completed, &stored.completed),
            ("consumedAtMs", same_time(&stored.consumed, last.consumed), last.consumed, &stored.consumed),
        ];
        let differing: Vec<Value> = fields
            .iter()
            .filter(|(_, same, _, _)| !same)
            .map(|(field, _, expected, found)| {
                let mut finding = row_finding("stamp_differs", "drift", Some(id), address);
                finding["field"] = json!(field);
                finding["expected"] = json!(expected);
                finding["found"] = parse(found);
                finding
            })
            .collect();
        if differing.is_empty() {
            continue;
        }
        drift.push(((*address).clone(), differing));
        stamps.push(row_of(address, &[json!(completed), json!(last.consumed)]));
        match (stored.consumed.as_str(), last.consumed) {
            ("null", Some(_)) => effects.consumptions_set += 1,
            (consumed, None) if consumed != "null" => effects.consumptions_cleared += 1,
            _ => {}
        }
    }
    let drifts = !drift.is_empty();
    findings.extend(drift.into_iter().flat_map(|(_, findings)| findings));

    // What was covered, and what changed nothing.
    let mut ignored: Vec<(String, u64, Option<(Vec<u8>, u64)>)> = Vec::new();
    for reason in REASONS {
        let all: Vec<(&Vec<u8>, u64)> = runs
            .iter()
            .flat_map(|(id, run)| run.ignored.iter().filter(|(why, _)| *why == reason).map(move |(_, seq)| (*id, *seq)))
            .collect();
        let left_out = if reason == "other_type" { runs.iter().map(|(_, run)| run.left_out).sum() } else { 0 };
        if !all.is_empty() || left_out > 0 {
            ignored.push((reason.into(), all.len() as u64 + left_out, all.first().map(|(id, seq)| (id.to_vec(), *seq))));
        }
    }
    for (id, _) in runs.iter().filter(|(_, run)| run.beyond_head) {
        note("checkpoint_beyond_head", id);
    }
    let sum = |of: fn(&Run) -> u64| runs.iter().map(|(_, run)| of(run)).sum::<u64>();
    let verdict = if is_refused {
        "refused"
    } else if drifts {
        "drift"
    } else {
        "match"
    };
    let rows = [("clocks", "delete", deletes), ("clocks", "update", updates), ("clocks", "insert", inserts), ("deferreds", "update", stamps)];
    Report {
        verdict: verdict.into(),
        findings,
        totals: [
            sum(|run| u64::from(run.counted)),
            sum(|run| run.entries),
            sum(|run| u64::from(run.floor.is_some())),
            sum(|run| run.state.as_ref().map_or(0, |state| state.clocks.len() as u64)),
            sum(|run| run.state.as_ref().map_or(0, |state| state.completions.len() as u64)),
        ],
        unexplained: judges_all.then_some(unexplained),
        unfolded,
        ignored,
        not_checked,
        notes,
        digest: hex(digest),
        heads: runs
            .iter()
            .map(|(id, run)| {
                let digest = run.state.as_ref().ok().map(|state| hex(state.recorded_digest()));
                (id.to_vec(), run.floor, run.first, run.last.or(run.floor), digest)
            })
            .collect(),
        plan: (!is_refused && options.compare_clocks).then(|| Changes {
            rows: rows
                .into_iter()
                .flat_map(|(table, op, rows)| rows.into_iter().map(move |row| (table.to_string(), op.to_string(), row)))
                .collect(),
            effects,
            unstorable: 0,
        }),
    }
}

/// The tables that the journal alone gives: what a sound store holds, but for the texts of completions.
pub fn folded(store: &Store) -> (BTreeMap<Address, Clock>, BTreeMap<Address, (Option<u64>, Option<u64>, Completion)>) {
    let mut clocks = BTreeMap::new();
    let mut completions: BTreeMap<Address, (Option<u64>, Option<u64>, Completion)> = BTreeMap::new();
    for id in store.run_ids().iter().collect::<BTreeSet<_>>() {
        let checkpoints = store.checkpoints.get(id).map_or(&[][..], Vec::as_slice);
        let Ok(state) = fold_run(store.entries(id), checkpoints, false, None).state else { continue };
        for clock in state.clocks {
            clocks.insert(clock.address.clone(), clock);
        }
        for row in state.completions {
            let before = completions.get(&row.address).and_then(|(completed, _, _)| *completed);
            completions.insert(row.address.clone(), (row.completed.or(before), row.consumed, row));
        }
    }
    (clocks, completions)
}
