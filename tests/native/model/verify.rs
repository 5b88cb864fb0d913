//! All runs beside all rows, joined the plain way.

use std::collections::{BTreeMap, BTreeSet};

use journal_fold::deferred_clock::rebuild::{Effects, Options};
use serde_json::{json, Value};
use xxhash_rust::xxh3::xxh3_128;

use super::fold::{as_time, clock_print, completion_bytes, fold_run, hex, sha256, texts, Clock, Completion, Run, State};
use super::{Changes, Ignored, Report};
use crate::store::{Address, ClockRow, Store};

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

pub fn same_time(stored: &str, expected: Option<u64>) -> bool {
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

    // Stored rows that nothing explains. When only some runs are given, only rows beside theirs are looked at.
    let asked: BTreeSet<&[Vec<u8>]> = clocks.keys().chain(completions.keys()).map(|address| &address[..2]).collect();
    let looked_at = |address: &Address| options.whole_store || asked.contains(&address[..2]);
    let unexplained =
        store.completions.keys().filter(|address| looked_at(address) && !completions.contains_key(address)).count() as u64;
    let unexpected: Vec<(&Address, &ClockRow)> = store
        .clocks
        .iter()
        .filter(|(address, _)| options.compare_clocks && looked_at(address) && !clocks.contains_key(address))
        .collect();
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
    let mut ignored: Vec<Ignored> = Vec::new();
    for reason in super::fold::REASONS {
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

