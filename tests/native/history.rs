//! Short histories, entry by entry: flow `F`, deferred `d` and no metadata unless a test says otherwise.

use journal_fold::deferred_clock::EventType;
use journal_fold::digest::{content_digest, to_hex};
use serde_json::json;

use crate::store::{Entry, Store};

pub fn entry(seq: i64, event: EventType, payload: &str) -> Entry {
    Entry { seq, type_code: event as u8, payload: payload.as_bytes().to_vec() }
}

pub fn scheduled(seq: i64, execution: &str, clock: &str, due_at_ms: u64) -> Entry {
    let payload = json!({ "flowName": "F", "executionId": execution, "clockName": clock, "deferredName": "d", "dueAtMs": due_at_ms });
    entry(seq, EventType::ClockScheduled, &payload.to_string())
}

pub fn fired(seq: i64, execution: &str, clock: &str, completed_at_ms: u64) -> Entry {
    let payload = json!({ "flowName": "F", "executionId": execution, "clockName": clock, "completedAtMs": completed_at_ms });
    entry(seq, EventType::ClockCompleted, &payload.to_string())
}

pub fn completed(seq: i64, execution: &str, deferred: &str, completed_at_ms: u64, exit: &str) -> Entry {
    let digest = String::from_utf8(to_hex(&content_digest(exit.as_bytes()))).unwrap();
    let payload = json!({ "flowName": "F", "executionId": execution, "deferredName": deferred,
        "completedAtMs": completed_at_ms, "exitDigest": digest, "metadataDigest": null });
    entry(seq, EventType::DeferredCompleted, &payload.to_string())
}

pub fn consumed(seq: i64, execution: &str, deferred: &str, consumed_at_ms: u64) -> Entry {
    let payload = json!({ "flowName": "F", "executionId": execution, "deferredName": deferred, "consumedAtMs": consumed_at_ms });
    entry(seq, EventType::DeferredConsumed, &payload.to_string())
}

/// An entry of a type that no fold asks for.
pub fn other(seq: i64) -> Entry {
    Entry { seq, type_code: journal_fold::journal::OTHER_TYPE, payload: b"{\"other\":true}".to_vec() }
}

/// A store of live runs with these journals and empty tables.
pub fn store_of<const N: usize>(runs: [(&str, Vec<Entry>); N]) -> Store {
    Store {
        live: runs.iter().map(|(id, _)| id.as_bytes().to_vec()).collect(),
        journal: runs.into_iter().map(|(id, entries)| (id.as_bytes().to_vec(), entries)).collect(),
        ..Store::default()
    }
}
