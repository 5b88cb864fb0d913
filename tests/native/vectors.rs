//! The recorded cases under `tests/vectors/deferred-clock`, and where we differ from them on purpose (`deviations.json`).

use journal_fold::deferred_clock::rebuild::{Verdict, Verification};
use journal_fold::deferred_clock::reduce::Outcome;
use journal_fold::deferred_clock::{put_into_state, EventType, Fold, RunFold, CHECKPOINT_KEY};
use journal_fold::error::{Error, Unjoined};
use journal_fold::journal::{Bound, Floor, OTHER_TYPE};
use journal_fold::json::Writer;
use serde_json::{json, Map, Value};

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::recorded::read_file;
use crate::store::{encoded, everything, pages, push_all, whole_store, Address, Checkpoint, ClockRow, CompletionRow, Entry, Host, Store};

const PAGE_ROWS: [usize; 4] = [1, 3, 512, 0];

/// Runs every case of a file but those that only exist in a JavaScript memory, and fails naming each case that fails.
fn run_file(file: &str, run: fn(&Value) -> Result<(), String>) {
    let deviations = read_file("deviations.json");
    let cases = read_file(&format!("deferred-clock/{file}.json"));
    let (mut passed, mut failed) = (0, Vec::new());
    for case in cases.as_array().unwrap() {
        if case.get("inMemoryOnly").is_some() {
            continue;
        }
        let mut case = expand(case);
        let name = case["name"].as_str().unwrap().to_owned();
        let deviation = &deviations["deferred-clock"][file][&name];
        if let Some(expected) = deviation.get("expected") {
            let members = case.as_object_mut().unwrap();
            members.insert("expected".into(), expected.clone());
            members.remove("expectedKeys");
        }
        match run(&case) {
            Ok(()) => passed += 1,
            Err(why) => failed.push(format!("{file}/{name}: {why}")),
        }
    }
    println!("{file}: {passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {} failed\n{}", failed.len(), passed + failed.len(), failed.join("\n"));
    assert!(passed > 0, "no case ran");
}

/// Writes `repeat` items out.
fn expand(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut all = Vec::new();
            for item in items {
                match (item.get("repeat").and_then(Value::as_i64), item.get("template")) {
                    (Some(count), Some(template)) => all.extend((0..count).map(|i| fill(template, i))),
                    _ => all.push(expand(item)),
                }
            }
            Value::Array(all)
        }
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), expand(value))).collect())
        }
        other => other.clone(),
    }
}

/// A template's `i`th item.
fn fill(template: &Value, i: i64) -> Value {
    match template {
        Value::String(text) => Value::String(fill_text(text, i)),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, i)).collect()),
        Value::Object(members) => {
            if let Some(numbers) = members.get("$n").and_then(Value::as_array) {
                return json!(numbers[0].as_i64().unwrap() + numbers[1].as_i64().unwrap() * i);
            }
            Value::Object(members.iter().map(|(name, value)| (name.clone(), fill(value, i))).collect())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, i: i64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once("{{") {
        let (numbers, after) = tail.split_once("}}").unwrap();
        let (from, step) = numbers.split_once(',').unwrap();
        out += before;
        out += &(from.parse::<i64>().unwrap() + step.parse::<i64>().unwrap() * i).to_string();
        rest = after;
    }
    out + rest
}

/// The JSON text of a member: as spelled when its spelling is given.
fn text_of(item: &Value, member: &str) -> Option<String> {
    match item.get(format!("{member}Text")) {
        Some(text) => Some(text.as_str().unwrap().to_owned()),
        None => item.get(member).map(Value::to_string),
    }
}

fn seq_of(item: &Value) -> u64 {
    match &item["seq"] {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_u64().unwrap(),
    }
}

fn list<'a>(case: &'a Value, member: &str) -> &'a [Value] {
    case.get(member).map_or(&[], |items| items.as_array().unwrap().as_slice())
}

fn bytes(text: &Value) -> Vec<u8> {
    text.as_str().unwrap().as_bytes().to_vec()
}

fn entry_of(item: &Value) -> Entry {
    let event = EventType::from_name(&bytes(&item["eventType"]));
    Entry {
        seq: seq_of(item) as i64,
        type_code: event.map_or(OTHER_TYPE, |event| event as u8),
        payload: text_of(item, "payload").unwrap().into_bytes(),
    }
}

fn checkpoint_of(item: &Value) -> Checkpoint {
    Checkpoint {
        seq: seq_of(item),
        compacted: !item["compactedAtMs"].is_null(),
        state: text_of(item, "state").unwrap().into_bytes(),
    }
}

fn same(expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        Ok(())
    } else {
        Err(format!("\n  expected {expected}\n  found    {found}"))
    }
}

/// Without the wording of its message; the order of members stays.
fn error_shape(error: &Value) -> Value {
    let members = error.as_object().unwrap().iter().filter(|(name, _)| *name != "message");
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn unjoined_text(all: &[Unjoined]) -> String {
    let mut out = Writer::new();
    out.open_array();
    for unjoined in all {
        unjoined.write(&mut out);
    }
    out.close_array();
    String::from_utf8(out.into_bytes()).unwrap()
}

fn error_text(error: &Error) -> String {
    let mut text = format!("{{\"error\":{{\"code\":\"{}\"", error.code.as_str());
    if !error.unjoined.is_empty() {
        text += &format!(",\"unjoined\":{}", unjoined_text(&error.unjoined));
    }
    text + "}}"
}

fn expected_fold_or_error(case: &Value) -> String {
    match case.get("expected").and_then(|expected| expected.get("error")) {
        Some(error) => json!({ "error": error_shape(error) }).to_string(),
        None => text_of(case, "expected").unwrap(),
    }
}

#[test]
fn reduce() {
    run_file("reduce", |case| {
        let entries: Vec<Entry> = list(case, "entries").iter().map(entry_of).collect();
        let start = text_of(case, "start").unwrap_or_else(|| "{\"clocks\":[],\"deferreds\":[]}".into());
        let expected = text_of(case, "expected").unwrap();

        let mut fold = Fold::new();
        fold.read_encoded(start.as_bytes()).map_err(|error| error.to_string())?;
        let mut applied = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let Some(event) = EventType::from_code(entry.type_code) else { continue };
            match fold.apply(event, &entry.payload).map_err(|refusal| Error::from(refusal).to_string())? {
                Outcome::Applied => applied.push(index),
                Outcome::Ignored(_) => {}
            }
        }
        let mut out = Vec::new();
        fold.write_encoded(&mut out);
        same(&expected, std::str::from_utf8(&out).unwrap())?;
        if let Some(indices) = case.get("applied") {
            same(&indices.to_string(), &json!(applied).to_string())?;
        }

        for page_rows in PAGE_ROWS {
            let mut run = RunFold::new();
            run.begin_from(start.as_bytes()).map_err(|error| error.to_string())?;
            for parts in pages(&entries, page_rows) {
                run.reduce(&parts.page()).map_err(|error| error.to_string())?;
            }
            same(&expected, &encoded(&run)).map_err(|why| format!("pages of {page_rows}: {why}"))?;
        }
        Ok(())
    });
}

#[test]
fn checkpoint() {
    run_file("checkpoint", |case| match case["op"].as_str().unwrap() {
        "fromCheckpoint" => {
            let state = text_of(case, "checkpointState").unwrap();
            let mut run = Fold::new();
            let found = match run.read_checkpoint(state.as_bytes()) {
                Err(_) => {
                    assert!(run.clocks().is_empty() && run.deferreds().is_empty(), "a fold is taken whole or not at all");
                    "null".into()
                }
                Ok(()) => {
                    let mut out = Vec::new();
                    run.write_encoded(&mut out);
                    String::from_utf8(out).unwrap()
                }
            };
            same(&text_of(case, "expected").unwrap(), &found)
        }
        "checkpointState" => PAGE_ROWS.into_iter().try_for_each(|page_rows| checkpoint_state(case, page_rows)),
        other => Err(format!("no operation {other}")),
    });
}

fn checkpoint_state(case: &Value, page_rows: usize) -> Result<(), String> {
    let base = text_of(case, "base");
    let made = capture_run(case, page_rows)
        .and_then(|run| put_into_state(base.as_deref().map(str::as_bytes), encoded(&run).as_bytes()));
    let expected = &case["expected"];
    let made = match (made, expected.get("error")) {
        (Ok(made), None) => made,
        (Err(error), Some(_)) => return same(&expected_fold_or_error(case), &error_text(&error)),
        (Ok(made), Some(error)) => return same(&error.to_string(), &String::from_utf8_lossy(&made)),
        (Err(error), None) => return Err(error.to_string()),
    };
    let made: Map<String, Value> = serde_json::from_slice(&made).map_err(|error| error.to_string())?;
    same(&expected[CHECKPOINT_KEY].to_string(), &made[CHECKPOINT_KEY].to_string())?;
    if *expected != Value::Object(made.clone()) {
        return Err(format!("expected {expected}, found {}", Value::Object(made)));
    }
    same(&case["expectedKeys"].to_string(), &json!(in_javascript_order(made.keys())).to_string())
}

/// An object's keys as JavaScript lists them: those that are array indices first, by number.
fn in_javascript_order<'a>(keys: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut keys: Vec<&String> = keys.collect();
    keys.sort_by_key(|key| key.parse::<u32>().ok().filter(|index| index.to_string() == **key).map_or(u64::MAX, u64::from));
    keys
}

/// Folds the case's run from its floor up to its bound.
fn capture_run(case: &Value, page_rows: usize) -> Result<RunFold, Error> {
    let id = case["runId"].as_str().unwrap();
    let of_run = |item: &&Value| item.get("runId").is_none_or(|of| of == id);
    let mut entries: Vec<Entry> = list(case, "entries").iter().filter(of_run).map(entry_of).collect();
    entries.sort_by_key(|entry| entry.seq);
    let checkpoints: Vec<Checkpoint> = list(case, "floors").iter().filter(of_run).map(checkpoint_of).collect();
    let floors = checkpoints
        .iter()
        .map(|checkpoint| Floor { seq: checkpoint.seq, compacted: checkpoint.compacted, state: &checkpoint.state });
    let mut run = RunFold::new();
    run.begin(id.as_bytes(), Floor::pick(floors), Some(Bound::new(case["upTo"].as_f64().unwrap())?))?;
    push_all(&mut run, &entries, page_rows)?;
    Ok(run)
}

#[test]
fn capture() {
    run_file("capture", |case| {
        for page_rows in PAGE_ROWS {
            let found = match capture_run(case, page_rows) {
                Ok(run) => encoded(&run),
                Err(error) => error_text(&error),
            };
            same(&expected_fold_or_error(case), &found).map_err(|why| format!("pages of {page_rows}: {why}"))?;
        }
        Ok(())
    });
}

fn store_of(case: &Value) -> Store {
    let mut store = Store { live: list(case, "runs").iter().map(bytes).collect(), ..Store::default() };
    for item in list(case, "journal") {
        store.journal.entry(bytes(&item["runId"])).or_default().push(entry_of(item));
    }
    for entries in store.journal.values_mut() {
        entries.sort_by_key(|entry| entry.seq);
    }
    for item in list(case, "checkpoints") {
        store.checkpoints.entry(bytes(&item["runId"])).or_default().push(checkpoint_of(item));
    }
    for row in list(case, "clockRows") {
        let [deferred, due, completed] = ["deferredName", "dueAtMs", "completedAtMs"].map(|column| row[column].to_string());
        store.clocks.insert(address_of(row, "clockName"), ClockRow { deferred, due, completed });
    }
    for row in list(case, "deferredRows") {
        let [exit, metadata] = ["exitJson", "metadataJson"].map(|column| row[column].as_str().map(String::from));
        let [completed, consumed] = ["completedAtMs", "consumedAtMs"].map(|column| row[column].to_string());
        store.completions.insert(address_of(row, "deferredName"), CompletionRow { exit, metadata, completed, consumed });
    }
    store
}

fn address_of(row: &Value, name: &str) -> Address {
    ["flowName", "executionId", name].map(|column| bytes(&row[column]))
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// The result of a rebuild with the tables after it, as the cases record them.
fn rebuilt_text(verification: &Verification, store: &Store) -> String {
    let shown = |address: &Address| address.clone().map(|part| String::from_utf8(part).unwrap());
    let clocks = store.clocks.iter().map(|(address, row)| {
        let [flow, execution, clock] = shown(address);
        json!({ "flowName": flow, "executionId": execution, "clockName": clock,
            "deferredName": value(&row.deferred), "dueAtMs": value(&row.due), "completedAtMs": value(&row.completed) })
    });
    let deferreds = store.completions.iter().map(|(address, row)| {
        let [flow, execution, deferred] = shown(address);
        json!({ "flowName": flow, "executionId": execution, "deferredName": deferred,
            "exitJson": row.exit, "metadataJson": row.metadata,
            "completedAtMs": value(&row.completed), "consumedAtMs": value(&row.consumed) })
    });
    let result = match verification.verdict {
        Verdict::Match | Verdict::Drift => {
            let totals = &verification.totals;
            let rebuilt = json!({ "runs": totals.runs, "clocks": totals.clocks, "deferreds": totals.deferreds,
                "unexplained": verification.unexplained });
            format!("\"rebuilt\":{rebuilt}")
        }
        Verdict::Refused | Verdict::Partial => {
            format!("\"error\":{{\"code\":\"fold_incomplete\",\"unjoined\":{}}}", unjoined_text(&verification.unjoined()))
        }
    };
    let (clocks, deferreds): (Vec<Value>, Vec<Value>) = (clocks.collect(), deferreds.collect());
    format!("{{{result},\"clockRowsAfter\":{},\"deferredRowsAfter\":{}}}", json!(clocks), json!(deferreds))
}

/// The expected result, compact and without messages. Unpaired surrogates stay the escapes that they are.
fn expected_rebuild(case: &Value) -> String {
    const MARK: &str = "\u{f8ff}";
    // No case has the mark, so a reader that refuses unpaired surrogates can carry their escapes through.
    let text = text_of(case, "expected").unwrap().replace("\\ud800", &format!("{MARK}d800"));
    let mut expected: Value = serde_json::from_str(&text).unwrap();
    if let Some(error) = expected.get("error").map(error_shape) {
        expected["error"] = error;
    }
    expected.to_string().replace(MARK, "\\u")
}

#[test]
fn rebuild() {
    run_file("rebuild", |case| {
        let store = store_of(case);
        let expected = expected_rebuild(case);
        let mut first = None;
        for page_rows in PAGE_ROWS {
            for leaves_out in [false, true] {
                let host = Host { page_rows, leaves_out, runs_an_answer: 1 + page_rows % 5, ..Host::default() };
                let verification = store.verify(&whole_store(), &host);
                let mut after = store.clone();
                if let Some(plan) = &verification.plan {
                    after.apply(plan);
                }
                let found = rebuilt_text(&verification, &after);
                // What the row's text is afterwards may depend on the store.
                let (expected, found) = if case.get("driverSpecific").is_some() {
                    (value(&expected)["rebuilt"].to_string(), value(&found)["rebuilt"].to_string())
                } else {
                    (expected.clone(), found)
                };
                same(&expected, &found).map_err(|why| format!("pages of {page_rows}: {why}"))?;
                if !leaves_out {
                    let all = everything(&verification);
                    same(first.get_or_insert_with(|| all.clone()), &all).map_err(|why| format!("pages of {page_rows}: {why}"))?;
                }
                if verification.plan.is_some() {
                    let again = after.verify(&whole_store(), &host);
                    same("Match, 0 rows", &format!("{:?}, {} rows", again.verdict, again.plan.map_or(0, |plan| plan.rows())))
                        .map_err(|why| format!("after the plan: {why}"))?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn every_deviation_names_its_decision_and_reason() {
    let deviations = read_file("deviations.json");
    let mut count = 0;
    for (file, cases) in deviations["deferred-clock"].as_object().unwrap() {
        for (name, deviation) in cases.as_object().unwrap() {
            for member in ["decision", "reason", "expected"] {
                assert!(deviation.get(member).is_some(), "{file}/{name} has no {member}");
            }
            count += 1;
        }
    }
    assert!(count > 0);
}
