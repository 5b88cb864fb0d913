//! A store in memory and a host for it: gives the rebuild machine its pages and the rows it wants, and applies its plans.

use std::collections::{BTreeMap, BTreeSet};

use journal_fold::deferred_clock::rebuild::{Op, Options, Plan, Rebuild, StoredClock, StoredCompletion, Table, Verification, Wanted};
use journal_fold::deferred_clock::state::Key;
use journal_fold::deferred_clock::{EventType, RunFold};
use journal_fold::digest::content_digest;
use journal_fold::error::Error;
use journal_fold::journal::{Floor, Page};
use serde_json::Value;

/// Flow, execution and name.
pub type Address = [Vec<u8>; 3];

pub fn address(flow: &str, execution: &str, name: &str) -> Address {
    [flow, execution, name].map(|part| part.as_bytes().to_vec())
}

pub fn key(address: &Address) -> Key<'_> {
    let [flow, execution, name] = address;
    Key { flow, execution, name }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: i64,
    pub type_code: u8,
    pub payload: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: u64,
    pub compacted: bool,
    pub state: Vec<u8>,
}

/// A stored clock; its values are JSON texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockRow {
    pub deferred: String,
    pub due: String,
    pub completed: String,
}

/// A stored completion; its stamps are JSON texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRow {
    pub exit: Option<String>,
    pub metadata: Option<String>,
    pub completed: String,
    pub consumed: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Store {
    pub live: BTreeSet<Vec<u8>>,
    pub journal: BTreeMap<Vec<u8>, Vec<Entry>>,
    pub checkpoints: BTreeMap<Vec<u8>, Vec<Checkpoint>>,
    pub clocks: BTreeMap<Address, ClockRow>,
    pub completions: BTreeMap<Address, CompletionRow>,
}

/// How a host goes about it. None of this may change what a verification says.
#[derive(Debug, Clone)]
pub struct Host {
    /// Entries a page; 0 for all in one.
    pub page_rows: usize,
    /// Runs that share one answer.
    pub runs_an_answer: usize,
    /// Leaves entries of other types out of every run at an odd place, and passes them on for the others.
    pub leaves_out: bool,
    /// Gives stored rows in descending order.
    pub descending: bool,
    /// Flows and executions a sweep; 0 for all in one.
    pub sweep_addresses: usize,
}

impl Default for Host {
    fn default() -> Self {
        Host { page_rows: 0, runs_an_answer: 1, leaves_out: false, descending: false, sweep_addresses: 0 }
    }
}

/// The parts of a page.
#[derive(Debug, Default)]
pub struct Parts {
    pub bytes: Vec<u8>,
    pub ends: Vec<u32>,
    pub seqs: Vec<i64>,
    pub types: Vec<u8>,
}

impl Parts {
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Parts {
        let mut parts = Parts::default();
        for entry in entries {
            parts.bytes.extend_from_slice(&entry.payload);
            parts.ends.push(parts.bytes.len() as u32);
            parts.seqs.push(entry.seq);
            parts.types.push(entry.type_code);
        }
        parts
    }

    pub fn page(&self) -> Page<'_> {
        Page::new(&self.bytes, &self.ends, &self.seqs, &self.types).unwrap()
    }
}

pub fn pages(entries: &[Entry], page_rows: usize) -> Vec<Parts> {
    let rows = if page_rows == 0 { entries.len().max(1) } else { page_rows };
    entries.chunks(rows).map(Parts::of).collect()
}

pub fn push_all(run: &mut RunFold, entries: &[Entry], page_rows: usize) -> Result<(), Error> {
    pages(entries, page_rows).iter().try_for_each(|parts| run.push(&parts.page()))
}

pub fn encoded(run: &RunFold) -> String {
    let mut out = Vec::new();
    run.fold().write_encoded(&mut out);
    String::from_utf8(out).unwrap()
}

impl Store {
    /// Every run that has an entry or a checkpoint, in byte order.
    pub fn run_ids(&self) -> Vec<Vec<u8>> {
        self.journal.keys().chain(self.checkpoints.keys()).collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    pub fn floors(&self, id: &[u8]) -> Vec<Floor<'_>> {
        let checkpoints = self.checkpoints.get(id).map_or(&[][..], Vec::as_slice);
        checkpoints
            .iter()
            .map(|checkpoint| Floor { seq: checkpoint.seq, compacted: checkpoint.compacted, state: &checkpoint.state })
            .collect()
    }

    pub fn entries(&self, id: &[u8]) -> &[Entry] {
        self.journal.get(id).map_or(&[], Vec::as_slice)
    }

    /// Begins, fills and ends one run.
    pub fn give_run(&self, rebuild: &mut Rebuild, id: &[u8], leaves_out: bool, page_rows: usize) -> Wanted {
        rebuild.begin_run(id, self.floors(id)).unwrap();
        let all = self.entries(id);
        let given: Vec<Entry> =
            all.iter().filter(|entry| !leaves_out || EventType::from_code(entry.type_code).is_some()).cloned().collect();
        rebuild.skipped((all.len() - given.len()) as u64);
        for parts in pages(&given, page_rows) {
            rebuild.push(&parts.page()).unwrap();
        }
        rebuild.end_run().unwrap()
    }

    /// Gives the stored rows that are wanted, and ends the answer.
    pub fn answer(&self, rebuild: &mut Rebuild, wanted: &Wanted, descending: bool) {
        self.answer_open(rebuild, wanted, descending);
        rebuild.end_answer().unwrap();
    }

    /// Gives the stored rows that are wanted.
    pub fn answer_open(&self, rebuild: &mut Rebuild, wanted: &Wanted, descending: bool) {
        let wants = |address: &Address| {
            wanted.addresses.iter().any(|(flow, execution)| *flow == address[0] && *execution == address[1])
        };
        let mut clocks: Vec<_> = self.clocks.iter().filter(|(address, _)| wants(address)).collect();
        let mut completions: Vec<_> = self.completions.iter().filter(|(address, _)| wants(address)).collect();
        if descending {
            clocks.reverse();
            completions.reverse();
        }
        for (address, row) in clocks {
            rebuild.stored_clock(&row.stored(address)).unwrap();
        }
        for run in wanted.runs.iter().filter(|run| self.live.contains(*run)) {
            rebuild.live_run(run).unwrap();
        }
        for (address, row) in completions {
            rebuild.stored_completion(&row.stored(address)).unwrap();
        }
    }

    pub fn verify(&self, options: &Options, host: &Host) -> Verification {
        let mut rebuild = Rebuild::new(options.clone());
        let ids = self.run_ids();
        let mut together = Wanted::default();
        for (place, id) in ids.iter().enumerate() {
            let wanted = self.give_run(&mut rebuild, id, host.leaves_out && place % 2 == 1, host.page_rows);
            together.runs.extend(wanted.runs);
            together.addresses.extend(wanted.addresses);
            let due = (place + 1) % host.runs_an_answer == 0 || place + 1 == ids.len();
            if due && !together.is_empty() {
                self.answer(&mut rebuild, &together, host.descending);
                together = Wanted::default();
            }
        }
        let wanted = rebuild.end_runs().unwrap();
        if !wanted.is_empty() {
            self.answer(&mut rebuild, &wanted, host.descending);
        }
        if options.whole_store {
            let swept: Vec<(&[u8], &[u8])> =
                self.clocks.keys().chain(self.completions.keys()).map(|[flow, execution, _]| (&**flow, &**execution)).collect();
            let addresses = if host.sweep_addresses == 0 { swept.len().max(1) } else { host.sweep_addresses };
            for some in swept.chunks(addresses) {
                let wanted = rebuild.sweep(some.iter().copied()).unwrap();
                if !wanted.is_empty() {
                    self.answer(&mut rebuild, &wanted, host.descending);
                }
            }
        }
        rebuild.finish().unwrap()
    }

    /// Applies a plan, and checks that each change meets the row it was made for.
    pub fn apply(&mut self, plan: &Plan) {
        for page in &plan.pages {
            let rows: Vec<Vec<Value>> = serde_json::from_slice(&page.rows).unwrap();
            assert_eq!(rows.len(), page.count);
            for row in rows {
                let address: Address = [0, 1, 2].map(|part| row[part].as_str().unwrap().as_bytes().to_vec());
                let values: Vec<String> = row[3..].iter().map(Value::to_string).collect();
                match (page.table, page.op, values.as_slice()) {
                    (Table::Clocks, Op::Delete, []) => assert!(self.clocks.remove(&address).is_some()),
                    (Table::Clocks, op @ (Op::Insert | Op::Update), [deferred, due, completed]) => {
                        let row = ClockRow { deferred: deferred.clone(), due: due.clone(), completed: completed.clone() };
                        assert_eq!(self.clocks.insert(address, row).is_none(), op == Op::Insert);
                    }
                    (Table::Deferreds, Op::Update, [completed, consumed]) => {
                        let row = self.completions.get_mut(&address).unwrap();
                        if completed != "null" {
                            row.completed.clone_from(completed);
                        }
                        row.consumed.clone_from(consumed);
                    }
                    other => panic!("no plan has {other:?}"),
                }
            }
        }
    }
}

impl ClockRow {
    pub fn new(deferred: &str, due: &str, completed: &str) -> Self {
        ClockRow { deferred: deferred.into(), due: due.into(), completed: completed.into() }
    }

    pub fn stored<'a>(&'a self, address: &'a Address) -> StoredClock<'a> {
        StoredClock {
            key: key(address),
            deferred_name: self.deferred.as_bytes(),
            due_at_ms: self.due.as_bytes(),
            completed_at_ms: self.completed.as_bytes(),
        }
    }
}

impl CompletionRow {
    pub fn new(exit: &str, completed: &str, consumed: &str) -> Self {
        CompletionRow { exit: Some(exit.into()), metadata: None, completed: completed.into(), consumed: consumed.into() }
    }

    pub fn stored<'a>(&'a self, address: &'a Address) -> StoredCompletion<'a> {
        let digest = |text: &Option<String>| text.as_ref().map(|text| content_digest(text.as_bytes()));
        StoredCompletion {
            key: key(address),
            exit: digest(&self.exit),
            metadata: digest(&self.metadata),
            completed_at_ms: self.completed.as_bytes(),
            consumed_at_ms: self.consumed.as_bytes(),
        }
    }
}

/// What is checked of a whole store.
pub fn whole_store() -> Options {
    Options { compare_clocks: true, whole_store: true, ..Options::default() }
}

/// Everything that a verification says, as text.
pub fn everything(verification: &Verification) -> String {
    let mut text = format!(
        "{:?}\n{:?}\n{:?} {}\n{:?}\n{:?}\n{:?}\n{}\n",
        verification.verdict,
        verification.totals,
        verification.unexplained,
        verification.unfolded,
        verification.ignored,
        verification.not_checked,
        verification.notes,
        String::from_utf8(verification.digest.to_hex()).unwrap(),
    );
    for finding in &verification.findings {
        text += &finding_text(finding);
        text += "\n";
    }
    for head in verification.heads() {
        text += &format!("{head:?}\n");
    }
    if let Some(plan) = &verification.plan {
        text += &format!("{:?} {} {}\n", plan.effects, plan.unstorable, String::from_utf8(plan.digest()).unwrap());
        for page in &plan.pages {
            text += &format!("{:?} {:?} {}\n", page.table, page.op, String::from_utf8_lossy(&page.rows));
        }
    }
    text
}

/// A finding as reports write it.
pub fn finding_text(finding: &journal_fold::finding::Finding) -> String {
    let mut out = journal_fold::json::Writer::new();
    finding.write(&mut out);
    String::from_utf8(out.into_bytes()).unwrap()
}
