//! Streams in the notation of the recorded cases.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use journal_fold::observer_log::{cadence, Aggregate, Row};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::observer_log::number;
use crate::observer_log_store::Store;

/// A stream in the notation of the specification.
#[derive(Default)]
pub struct Stream {
    next: u64,
    rows: BTreeMap<u64, Vec<u8>>,
    model: Aggregate,
}

impl Stream {
    pub fn build(notation: &Value) -> Store {
        let mut stream = Stream { next: number(&notation["start"]), ..Stream::default() };
        for part in notation["parts"].as_array().unwrap() {
            let (kind, part) = part.as_object().unwrap().iter().next().unwrap();
            match kind.as_str() {
                "payloads" => {
                    for payload in part.as_array().unwrap() {
                        stream.push(payload.as_str().unwrap().as_bytes().to_vec());
                    }
                }
                "tracks" => {
                    for i in 0..number(&part["count"]) {
                        let id = number(&part["first"]) + i;
                        stream.apply(part, Row::Track { conversation_id: id, progress: number(&part["progress"]) });
                    }
                }
                "history" => stream.history(part),
                "snapshot" => stream.push(stream.model.snapshot().encode()),
                other => panic!("no part {other}"),
            }
        }
        let head = (stream.next > 0).then_some(stream.next);
        for edit in notation.get("edits").and_then(Value::as_array).into_iter().flatten() {
            if let Some(sequence) = edit.get("replace") {
                let payload = edit["payload"].as_str().unwrap().as_bytes().to_vec();
                stream.rows.insert(number(sequence), payload).unwrap();
            } else if let Some(sequence) = edit.get("remove") {
                stream.rows.remove(&number(sequence)).unwrap();
            } else {
                stream.rows = stream.rows.split_off(&number(&edit["remove_below"]));
            }
        }
        Store::holding(stream.rows, head, None)
    }

    fn history(&mut self, part: &Value) {
        let (first, conversations, every) =
            (number(&part["first"]), number(&part["conversations"]), number(&part["arms_every"]));
        for i in 0..number(&part["rows"]) {
            let conversation_id = first + i % conversations;
            let row = match self.model.progress(conversation_id) {
                None => Row::Track { conversation_id, progress: 0 },
                Some(progress) if every > 0 && i % every == 0 => Row::Arms(vec![(conversation_id, progress)]),
                Some(progress) => Row::Advance { conversation_id, progress: progress + 1 },
            };
            self.apply(part, row);
        }
    }

    fn apply(&mut self, part: &Value, row: Row) {
        if part["snapshots"] == true && cadence::snapshot_due(self.next) {
            self.push(self.model.snapshot().encode());
        }
        self.model.apply(row.as_ref()).unwrap();
        self.push(row.encode());
    }

    fn push(&mut self, payload: Vec<u8>) {
        self.rows.insert(self.next, payload);
        self.next = self.next.saturating_add(1);
    }
}

/// The digest of a store's rows, by which a case checks whoever builds its stream.
pub fn stream_digest(store: &Store) -> String {
    let mut hash = Sha256::new();
    for (sequence, payload) in &store.rows {
        hash.update(format!("{sequence} "));
        hash.update(payload);
        hash.update("\n");
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}
