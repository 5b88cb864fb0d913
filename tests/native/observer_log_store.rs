//! A stream and a number in memory, with scripted failures: the model of section 9 of the observer log's specification.

use std::collections::{BTreeMap, HashMap, VecDeque};

use journal_fold::observer_log::protocol::{Answer, Rows, StoredRow, Want};
use serde_json::{json, Value};

/// An answer that owns its rows.
#[derive(Debug, Clone)]
pub enum Answered {
    Value(Option<u64>),
    Row(Option<(u64, Vec<u8>)>),
    Rows(Page),
    Head(Option<u64>),
    Appended(u64),
    Flushed,
    Swapped,
    SequenceConflict(u64),
    ValueConflict(u64),
    OutcomeUnknown,
    Failed,
}

#[derive(Debug, Clone, Default)]
pub struct Page {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    sequences: Vec<u64>,
}

impl Page {
    pub fn of<'a>(rows: impl IntoIterator<Item = (u64, &'a [u8])>) -> Page {
        let mut page = Page::default();
        for (sequence, payload) in rows {
            page.bytes.extend_from_slice(payload);
            page.ends.push(page.bytes.len() as u32);
            page.sequences.push(sequence);
        }
        page
    }

    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.bytes, &self.ends, &self.sequences).unwrap()
    }
}

impl Answered {
    pub fn as_answer(&self) -> Answer<'_> {
        match self {
            Answered::Value(value) => Answer::Value(*value),
            Answered::Row(row) => {
                Answer::Row(row.as_ref().map(|(sequence, payload)| StoredRow { sequence: *sequence, payload }))
            }
            Answered::Rows(page) => Answer::Rows(page.rows()),
            Answered::Head(head) => Answer::Head(*head),
            Answered::Appended(head) => Answer::Appended(*head),
            Answered::Flushed => Answer::Flushed,
            Answered::Swapped => Answer::Swapped,
            Answered::SequenceConflict(actual) => Answer::SequenceConflict { actual: *actual },
            Answered::ValueConflict(actual) => Answer::ValueConflict { actual: *actual },
            Answered::OutcomeUnknown => Answer::OutcomeUnknown,
            Answered::Failed => Answer::Failed,
        }
    }

    fn error_name(&self) -> Option<&'static str> {
        match self {
            Answered::SequenceConflict(_) => Some("sequence_conflict"),
            Answered::ValueConflict(_) => Some("value_conflict"),
            Answered::OutcomeUnknown => Some("outcome_unknown"),
            Answered::Failed => Some("injected_failure"),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Store {
    pub rows: BTreeMap<u64, Vec<u8>>,
    pub head: Option<u64>,
    pub value: Option<u64>,
    pub io: Vec<Value>,
    script: HashMap<String, VecDeque<Value>>,
    page_cap: Option<u64>,
    point_read_skips: bool,
    late_append: Option<(u64, Vec<Vec<u8>>)>,
    late_swap: Option<(u64, u64)>,
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn payloads(list: &Value) -> Vec<Vec<u8>> {
    list.as_array().unwrap().iter().map(|payload| payload.as_str().unwrap().as_bytes().to_vec()).collect()
}

impl Store {
    /// A store that holds just this.
    pub fn holding(rows: BTreeMap<u64, Vec<u8>>, head: Option<u64>, value: Option<u64>) -> Store {
        Store { rows, head, value, ..Store::default() }
    }

    /// Takes a case's script.
    pub fn script(&mut self, script: &Value) {
        for (call, behaviours) in script.as_object().into_iter().flatten() {
            match call.as_str() {
                "page_cap" => self.page_cap = Some(number(behaviours)),
                "point_read_skips" => self.point_read_skips = behaviours.as_bool().unwrap(),
                _ => {
                    let list = behaviours.as_array().unwrap().iter().cloned().collect();
                    self.script.insert(call.clone(), list);
                }
            }
        }
    }

    /// What the script has for this call: a name, and what goes with it.
    fn behaviour(&mut self, call: &str) -> (String, Value) {
        match self.script.get_mut(call).and_then(VecDeque::pop_front) {
            None => ("ok".into(), Value::Null),
            Some(Value::String(name)) => (name, Value::Null),
            Some(Value::Object(members)) => members.into_iter().next().unwrap(),
            Some(other) => panic!("no behaviour: {other}"),
        }
    }

    pub fn serve(&mut self, want: &Want<'_>) -> Answered {
        let call = want.name();
        let (behaviour, detail) = self.behaviour(call);
        let answer = match *want {
            _ if behaviour == "fail" => Answered::Failed,
            Want::ReadValue => Answered::Value(self.value),
            Want::ReadHead => Answered::Head(self.head),
            Want::Flush => Answered::Flushed,
            Want::ReadAt { sequence } => {
                let last = if self.point_read_skips { u64::MAX } else { sequence };
                Answered::Row(self.rows.range(sequence..=last).next().map(|(sequence, payload)| (*sequence, payload.clone())))
            }
            Want::ReadFrom { offset, limit } => {
                let limit = limit.min(self.page_cap.unwrap_or(u64::MAX)) as usize;
                let rows = self.rows.range(offset..).take(limit);
                Answered::Rows(Page::of(rows.map(|(sequence, payload)| (*sequence, payload.as_slice()))))
            }
            Want::AppendAll { expected_head, payloads } => {
                let payloads = payloads.payloads().map(<[u8]>::to_vec).collect();
                self.scripted_append(expected_head, payloads, &behaviour, &detail)
            }
            Want::Swap { old, new } => self.scripted_swap(old, new, &behaviour, &detail),
        };
        self.record(want, &answer);
        answer
    }

    fn scripted_append(&mut self, head: u64, sent: Vec<Vec<u8>>, behaviour: &str, detail: &Value) -> Answered {
        if let Some((head, payloads)) = self.late_append.take() {
            self.append(head, payloads);
        }
        match behaviour {
            "ok" => self.append(head, sent),
            "unknown_applied" => {
                self.append(head, sent);
                Answered::OutcomeUnknown
            }
            "unknown_not_applied" => Answered::OutcomeUnknown,
            "unknown_late" => {
                self.late_append = Some((head, sent));
                Answered::OutcomeUnknown
            }
            "unknown_foreign" => {
                self.append(self.head.unwrap_or(0), payloads(detail));
                Answered::OutcomeUnknown
            }
            "unknown_then_foreign" => {
                self.late_append = Some((head, payloads(detail)));
                Answered::OutcomeUnknown
            }
            "wrong_next" => {
                self.append(head, sent);
                Answered::Appended(number(detail))
            }
            other => panic!("no behaviour {other}"),
        }
    }

    /// The plain append. Without a higher number the head stays at 2^64-1.
    pub fn append(&mut self, head: u64, payloads: Vec<Vec<u8>>) -> Answered {
        let actual = self.head.unwrap_or(0);
        if head != actual {
            return Answered::SequenceConflict(actual);
        }
        let mut next = actual;
        for payload in payloads {
            self.rows.insert(next, payload);
            next = next.saturating_add(1);
        }
        self.head = Some(next);
        Answered::Appended(next)
    }

    fn scripted_swap(&mut self, old: u64, new: u64, behaviour: &str, detail: &Value) -> Answered {
        if let Some((old, new)) = self.late_swap.take() {
            self.swap(old, new);
        }
        match behaviour {
            "ok" => self.swap(old, new),
            "unknown_applied" => {
                self.swap(old, new);
                Answered::OutcomeUnknown
            }
            "unknown_not_applied" => Answered::OutcomeUnknown,
            "unknown_late" => {
                self.late_swap = Some((old, new));
                Answered::OutcomeUnknown
            }
            "race" => {
                self.value = Some(number(detail));
                self.swap(old, new)
            }
            "regress_same" => Answered::ValueConflict(old),
            other => panic!("no behaviour {other}"),
        }
    }

    fn swap(&mut self, old: u64, new: u64) -> Answered {
        let actual = self.value.unwrap_or(0);
        if old != actual {
            return Answered::ValueConflict(actual);
        }
        self.value = Some(new);
        Answered::Swapped
    }

    fn record(&mut self, want: &Want<'_>, answer: &Answered) {
        let text = |number: u64| json!(number.to_string());
        let optional = |number: Option<u64>| number.map_or(Value::Null, text);
        let mut call = vec![json!(want.name())];
        match *want {
            Want::ReadAt { sequence } => call.push(text(sequence)),
            Want::ReadFrom { offset, limit } => call.extend([text(offset), text(limit)]),
            Want::AppendAll { expected_head, payloads } => call.extend([text(expected_head), text(payloads.len())]),
            Want::Swap { old, new } => call.extend([text(old), text(new)]),
            Want::ReadValue | Want::ReadHead | Want::Flush => {}
        }
        call.push(match (answer.error_name(), answer) {
            (Some(name), _) => json!(name),
            (_, Answered::Value(number) | Answered::Head(number)) => optional(*number),
            (_, Answered::Row(row)) => match (row, want) {
                (None, _) => json!("none"),
                (Some((found, _)), Want::ReadAt { sequence }) if found == sequence => json!("row"),
                _ => json!("later_row"),
            },
            (_, Answered::Rows(page)) => text(page.rows().len() as u64),
            (_, Answered::Appended(head)) => text(*head),
            (_, Answered::Flushed) => json!("ok"),
            (_, Answered::Swapped) => json!("swapped"),
            (_, other) => panic!("no record of {other:?}"),
        });
        self.io.push(Value::Array(call));
    }
}

/// Does what a machine wants until it wants nothing more.
#[macro_export]
macro_rules! drive {
    ($machine:expr, $store:expr) => {
        while let Some(want) = $machine.want() {
            let answer = $store.serve(&want);
            $machine.answer(answer.as_answer());
        }
    };
}
