//! The recorded cases under `tests/vectors/observer-log`, and where we differ from them on purpose (`deviations.json`).

use std::collections::BTreeMap;
use journal_fold::json::Writer;
use journal_fold::observer_log::aggregate::Pair;
use journal_fold::observer_log::append::Append;
use journal_fold::observer_log::live::{Pending, RecoverLimits, Rejection};
use journal_fold::observer_log::protocol::StoredRow;
use journal_fold::observer_log::recover::Recover;
use journal_fold::observer_log::restore::Restore;
use journal_fold::observer_log::{cadence, Aggregate, Failure, Fold, Live, Refusal, Row, RowReader};
use serde_json::{json, Value};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::drive;
use crate::observer_log_store::Store;
use crate::observer_log_stream::{stream_digest, Stream};
use crate::recorded::read_file;

type Run = fn(&Value) -> Result<(), String>;

/// Runs every case of every array named, and fails naming each case that fails. A case that differs on purpose must give the
/// result listed beside the cases, and not the recorded one.
fn run_file(file: &str, arrays: &[(&str, Run)]) {
    let cases = read_file(&format!("observer-log/{file}.json"));
    let deviations = &read_file("deviations.json")["observer-log"][file];
    let mut left: Vec<&String> = deviations.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    let (mut ran, mut failed) = (0, Vec::new());
    for (array, run) in arrays {
        for case in cases[array].as_array().unwrap() {
            ran += 1;
            let name = case["name"].as_str().map_or_else(|| case.to_string(), String::from);
            let recorded = run(case);
            let result = match deviations.get(&name) {
                None => recorded,
                Some(deviation) => {
                    left.retain(|left| **left != name);
                    match recorded {
                        Ok(()) => Err("gives the recorded result, though it is listed as a deviation".into()),
                        Err(_) => run(&with_result(case, &deviation["expected"])),
                    }
                }
            };
            if let Err(why) = result {
                failed.push(format!("{file}/{array}/{name}: {why}"));
            }
        }
    }
    println!("{file}: {} passed, {} failed", ran - failed.len(), failed.len());
    assert!(failed.is_empty(), "{} of {ran} failed\n{}", failed.len(), failed.join("\n"));
    assert_eq!(cases["cases"].as_u64(), Some(ran as u64), "every case ran");
    assert!(left.is_empty(), "deviations without a case: {left:?}");
}

/// The case with another result: in place of its `expect`, or else of a decoded row.
fn with_result(case: &Value, expected: &Value) -> Value {
    let mut case = case.clone();
    let members = case.as_object_mut().unwrap();
    if members.contains_key("expect") {
        members.insert("expect".into(), expected.clone());
    } else {
        members.retain(|name, _| !["row", "canonical"].contains(&name.as_str()));
        members.extend(expected.as_object().unwrap().clone());
    }
    case
}

pub fn number(value: &Value) -> u64 {
    value.as_str().unwrap_or_else(|| panic!("no decimal text: {value}")).parse().unwrap()
}

fn optional(value: &Value) -> Option<u64> {
    (!value.is_null()).then(|| number(value))
}

fn pairs(value: &Value) -> Vec<Pair> {
    value.as_array().unwrap().iter().map(|pair| (number(&pair[0]), number(&pair[1]))).collect()
}

fn row(value: &Value) -> Row {
    let (conversation_id, progress) = (&value["conversation_id"], &value["observer_progress"]);
    match value["row"].as_str().unwrap() {
        "track" => Row::Track { conversation_id: number(conversation_id), progress: number(progress) },
        "advance" => Row::Advance { conversation_id: number(conversation_id), progress: number(progress) },
        "arms" => Row::Arms(pairs(&value["arms"])),
        "snapshot" => Row::Snapshot { progress: pairs(&value["progress"]), armed: pairs(&value["armed"]) },
        other => panic!("no row {other}"),
    }
}

fn written(write: impl FnOnce(&mut Writer)) -> Value {
    let mut out = Writer::new();
    write(&mut out);
    serde_json::from_slice(out.as_bytes()).unwrap()
}

fn state(aggregate: &Aggregate) -> Value {
    written(|out| aggregate.write(out))
}

fn aggregate(value: &Value) -> Aggregate {
    Aggregate::from_lists(&pairs(&value["progress"]), &pairs(&value["armed"])).unwrap()
}

fn refusal(refusal: &Refusal) -> Value {
    written(|out| refusal.write(out))
}

fn same(what: &str, expected: &Value, found: &Value) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}\n  expected {expected}\n  found    {found}"))
}

/// Compares what the specification compares of an error, and the sequence of the row at fault where a case has it.
fn same_error(expected: &Value, found: &Failure) -> Result<(), String> {
    let mut given = written(|out| found.write(out));
    if given["name"] == "failed" {
        given["name"] = json!("injected_failure");
    }
    for member in ["kind", "version", "expected", "actual", "sequence", "name", "reason"] {
        if let Some(value) = expected.get(member) {
            same(&format!("error: {given}: {member}"), value, &given[member])?;
        } else if member != "reason" && given.get(member).is_some() {
            return Err(format!("error: {given}: {member} is not in {expected}"));
        }
    }
    if let Some(at) = expected.get("row_at") {
        same(&format!("error: {given}: at"), at, &given["at"])?;
    }
    Ok(())
}

/// The decoded row, or the failure under a sequence that does not matter.
fn decode(payload: &[u8]) -> Result<Row, Failure> {
    let mut reader = RowReader::new();
    reader.read(payload).map(|row| row.to_row()).map_err(|fault| Failure::Row { sequence: 0, fault })
}

#[test]
fn aggregates() {
    run_file("aggregate", &[("fold", fold_case), ("live", live_case), ("restore", lists_case)]);
}

fn fold_case(case: &Value) -> Result<(), String> {
    let start = case.get("start").map_or_else(Aggregate::new, aggregate);
    let mut fold = Fold::from(start, 0);
    let expect = &case["expect"];
    let mut steps = Vec::new();
    let mut refused_at = Value::Null;
    for (sequence, value) in case["rows"].as_array().unwrap().iter().enumerate() {
        let payload = row(value).encode();
        match fold.push(StoredRow { sequence: sequence as u64, payload: &payload }) {
            Ok(step) => {
                let mut made = state(fold.aggregate());
                made["outcome"] = json!("applied");
                made["fired"] = step.fired.map_or(Value::Null, |fired| written(|out| fired.write(out)));
                steps.push(made);
            }
            Err(Failure::CorruptRow { sequence: at, reason }) => {
                assert_eq!(at, sequence as u64);
                steps.push(json!({ "outcome": "refused", "reason": refusal(&reason) }));
                refused_at = json!(sequence);
                break;
            }
            Err(other) => return Err(other.to_string()),
        }
    }
    same("steps", &expect["steps"], &json!(steps))?;
    same("refused_at", &expect["refused_at"], &refused_at)?;
    let end = state(fold.aggregate());
    same("progress", &expect["progress"], &end["progress"])?;
    same("armed", &expect["armed"], &end["armed"])
}

fn lists_case(case: &Value) -> Result<(), String> {
    match Aggregate::from_lists(&pairs(&case["progress"]), &pairs(&case["armed"])) {
        Ok(made) => same("state", &case["state"], &state(&made)),
        Err(reason) => same("refused", &case["refused"], &refusal(&reason)),
    }
}

fn live_case(case: &Value) -> Result<(), String> {
    let mut live = Live::default();
    let ops = case["ops"].as_array().unwrap();
    let mut outcomes = Vec::new();
    for op in ops {
        let mut outcome = live_op(&mut live, op);
        outcome["state"] = state(live.aggregate());
        outcomes.push(outcome);
    }
    same("outcomes", &case["expect"], &json!(outcomes))
}

fn live_op(live: &mut Live, op: &Value) -> Value {
    let name = op["op"].as_str().unwrap();
    let id = op.get("conversation_id").map(number);
    let asked = match (name, id) {
        ("read", Some(id)) => {
            let text = |number: Option<u64>| number.map_or(Value::Null, |number| json!(number.to_string()));
            let aggregate = live.aggregate();
            return json!({ "outcome": "read", "progress": text(aggregate.progress(id)), "armed": text(aggregate.armed(id)) });
        }
        ("track", Some(id)) => live.track(id, number(&op["observer_progress"])),
        ("advance", Some(id)) => live.advance(id, number(&op["observer_progress"])),
        ("recover", None) => {
            let tracks: Vec<u64> = op["connection_tracks"].as_array().unwrap().iter().map(number).collect();
            let limits = RecoverLimits {
                max_entries: number(&op["max_entries"]),
                connection_limit: number(&op["connection_limit"]),
                connection_tracks: &tracks,
            };
            live.recover(&pairs(&op["refusals"]), &limits)
        }
        _ => panic!("no operation {op}"),
    };
    let pending = match asked {
        Err(Rejection::Refused(reason)) => return json!({ "outcome": "refused", "reason": refusal(&reason) }),
        Err(Rejection::Misplaced(error)) => panic!("{error}"),
        Ok(pending) => pending.clone(),
    };
    assert!(matches!(live.track(1, 1), Err(Rejection::Misplaced(_))), "nothing else may be asked while a change is pending");
    let mut outcome = described(name, &pending);
    if op["then"] == "commit" {
        assert_eq!(live.commit().unwrap(), pending);
        outcome["outcome"] = json!("committed");
        if let Some(fires) = outcome.as_object_mut().unwrap().remove("would_fire") {
            outcome["fired"] = fires;
        }
    } else {
        live.abort().unwrap();
        outcome["outcome"] = json!("aborted");
    }
    outcome
}

fn described(op: &str, pending: &Pending) -> Value {
    match op {
        "advance" => {
            json!({ "would_fire": pending.would_fire().map_or(Value::Null, |fired| written(|out| fired.write(out))) })
        }
        "recover" => {
            let statuses: Vec<Value> = pending.statuses().iter().map(|status| written(|out| status.write(out))).collect();
            let arms: Vec<[String; 2]> =
                pending.arms().iter().map(|(id, epoch)| [id.to_string(), epoch.to_string()]).collect();
            json!({ "arms": arms, "statuses": statuses })
        }
        _ => json!({}),
    }
}

#[test]
fn rows() {
    run_file("rows", &[("encode", encode_case), ("decode", decode_case)]);
}

fn encode_case(case: &Value) -> Result<(), String> {
    let row = row(&case["row"]);
    let encoded = String::from_utf8(row.encode()).unwrap();
    same("payload", &case["payload"], &json!(encoded))?;
    match decode(encoded.as_bytes()) {
        Ok(read) if read == row => Ok(()),
        other => Err(format!("read back as {other:?}")),
    }
}

fn decode_case(case: &Value) -> Result<(), String> {
    let payload = match case["payload"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let hex = case["payload_hex"].as_str().unwrap();
            let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
    };
    match decode(&payload) {
        Ok(found) => {
            same("row", &case["row"], &written(|out| found.as_ref().write(out)))?;
            same("canonical", &case["canonical"], &json!(found.encode() == payload))
        }
        Err(failure) => same_error(&case["error"], &failure),
    }
}

#[test]
fn cadences() {
    run_file(
        "cadence",
        &[
            ("snapshot_due", |case| same("due", &case["due"], &json!(cadence::snapshot_due(number(&case["head"]))))),
            ("head_after", |case| {
                let next = cadence::head_after(number(&case["head"]), number(&case["rows"]));
                same("next", &case["next"], &next.map_or(Value::Null, |next| json!(next.to_string())))
            }),
            ("snapshot_before", |case| {
                let snapshot = cadence::snapshot_before(number(&case["head"]), &aggregate(&case["state"]));
                let payload = snapshot.map_or(Value::Null, |row| json!(String::from_utf8(row.encode()).unwrap()));
                same("payload", &case["payload"], &payload)
            }),
        ],
    );
    let file = read_file("observer-log/cadence.json");
    let first: Vec<Value> = (0..3000).filter(|head| cadence::snapshot_due(*head)).map(|head| json!(head.to_string())).collect();
    assert_eq!(file["first_due_heads"], json!(first));
    assert_eq!(file["interval"], json!(cadence::INTERVAL.to_string()));
}

fn appended(rows: impl Iterator<Item = (u64, Vec<u8>)>) -> Value {
    rows.map(|(sequence, payload)| json!({ "sequence": sequence.to_string(), "payload": String::from_utf8(payload).unwrap() }))
        .collect()
}

fn store_after(expect: &Value, store: &Store, failures: u64) -> Result<(), String> {
    let hint = store.value.map_or(Value::Null, |value| json!(value.to_string()));
    same("hint_after", &expect["hint_after"], &hint)?;
    same("hint_failures", &expect["hint_failures"], &json!(failures))?;
    same("io", &expect["io"], &json!(store.io))
}

#[test]
fn appends() {
    run_file("append", &[("append", append_case)]);
}

fn append_case(case: &Value) -> Result<(), String> {
    let expect = &case["expect"];
    let head = number(&case["expected_head"]);
    let snapshot = (!case["snapshot"].is_null()).then(|| row(&case["snapshot"]));
    let mut store = Store::holding(BTreeMap::new(), Some(number(&case["store_head"])), optional(&case["hint"]));
    store.script(&case["store"]);
    same("due", &expect["due"], &json!(cadence::snapshot_due(head)))?;
    let result = Append::new(head, row(&case["row"]).as_ref(), snapshot.as_ref().map(Row::as_ref)).and_then(|mut append| {
        drive!(append, store);
        append.result().unwrap()
    });
    let mut failures = 0;
    match (&result, expect.get("error")) {
        (Ok(done), None) => {
            failures = done.hint_failures;
            same("next_head", &expect["next_head"], &json!(done.next_head.to_string()))?;
        }
        (Err(failure), Some(error)) => same_error(error, failure)?,
        (found, _) => return Err(format!("expected {expect}, found {found:?}")),
    }
    same("appended", &expect["appended"], &appended(store.rows.clone().into_iter()))?;
    store_after(expect, &store, failures)
}

#[test]
fn restores() {
    run_file("restore", &[("restore", restore_case)]);
}

fn restore_case(case: &Value) -> Result<(), String> {
    let mut store = Stream::build(&case["stream"]);
    same("stream_rows", &case["stream_rows"], &json!(store.rows.len().to_string()))?;
    same("stream_head", &case["stream_head"], &json!(store.head.unwrap_or(0).to_string()))?;
    same("stream_digest", &case["stream_digest"], &json!(stream_digest(&store)))?;
    store.value = optional(&case["hint"]);
    store.script(&case["store"]);
    if let Some(expected) = case["expect"].get("whole_fold") {
        let mut fold = Fold::new();
        let whole = store.rows.iter().try_for_each(|(sequence, payload)| {
            fold.push(StoredRow { sequence: *sequence, payload }).map(|_| ())
        });
        match whole {
            Ok(()) => same("whole_fold", expected, &json!("same"))?,
            Err(failure) => same_error(expected, &failure)?,
        }
    }
    restore_once(&case["expect"], &mut store)?;
    match case.get("expect_again") {
        None => Ok(()),
        Some(again) => restore_once(again, &mut store).map_err(|why| format!("again: {why}")),
    }
}

fn restore_once(expect: &Value, store: &mut Store) -> Result<(), String> {
    let before = store.rows.clone();
    store.io.clear();
    let mut restore = Restore::new();
    drive!(restore, store);
    let verdict = restore.hint().map_or(Value::Null, |verdict| json!(verdict.as_str()));
    same("hint_verdict", &expect["hint_verdict"], &verdict)?;
    let from = restore.folded_from().map_or(Value::Null, |from| json!(from.to_string()));
    same("folded_from", &expect["folded_from"], &from)?;
    let mut failures = 0;
    match (restore.into_result().unwrap(), expect.get("error")) {
        (Ok(restored), None) => {
            failures = restored.hint_failures;
            same("state", &expect["state"], &state(&restored.aggregate))?;
            same("next_sequence", &expect["next_sequence"], &json!(restored.head.to_string()))?;
        }
        (Err(failure), Some(error)) => same_error(error, &failure)?,
        (found, _) => return Err(format!("expected {expect}, found {found:?}")),
    }
    let added = store.rows.clone().into_iter().filter(|(sequence, _)| !before.contains_key(sequence));
    same("appended", &expect["appended"], &appended(added))?;
    store_after(expect, store, failures)
}

#[test]
fn recoveries() {
    run_file("recover", &[("recover", recover_case)]);
}

fn recover_case(case: &Value) -> Result<(), String> {
    let expect = &case["expect"];
    let rows = case["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| (number(&row["sequence"]), row["payload"].as_str().unwrap().as_bytes().to_vec()));
    let mut store = Store::holding(rows.collect(), optional(&case["store_head"]), None);
    store.script(&case["store"]);
    let mut recover = Recover::new(aggregate(&case["state"]), number(&case["head"]));
    drive!(recover, store);
    match (recover.result().unwrap(), expect.get("error")) {
        (Ok(publication), None) => {
            let found = publication.map_or(Value::Null, |found| written(|out| found.write(out)));
            same("publication", &expect["publication"], &found)?;
        }
        (Err(failure), Some(error)) => same_error(error, &failure)?,
        (found, _) => return Err(format!("expected {expect}, found {found:?}")),
    }
    same("state", &expect["state"], &state(recover.aggregate()))?;
    same("head", &expect["head"], &json!(recover.head().to_string()))?;
    same("io", &expect["io"], &json!(store.io))
}
