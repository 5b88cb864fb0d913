//! Drift, and the plan that repairs it: which rows to insert, change and delete, and what will run differently then.

use super::StoredClock;
use crate::deferred_clock::checkpoint::write_stamp;
use crate::deferred_clock::state::{Clock, Fold, Key, Stamp};
use crate::digest::to_hex;
use crate::finding::{Finding, Id, Shown};
use crate::json::{write_integer, write_text, Writer};
use xxhash_rust::xxh3::Xxh3;

/// How many rows a page of changes holds at most.
const ROWS_A_PAGE: usize = 2000;

/// The values of a recorded clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClockValues {
    pub(super) deferred_name: Box<[u8]>,
    pub(super) due_at_ms: u64,
    pub(super) completed_at: Stamp,
}

/// A stored value, as JSON text.
type Stored = Box<[u8]>;

/// One row in which a table says something else than the journal. A pointer wide: there may be one for every row of a store, the list of
/// them grows and is sorted, and each row is given back as soon as it is written down.
#[derive(Debug)]
pub(super) struct Drift(Box<Row>);

#[derive(Debug)]
struct Row {
    names: RowNames,
    /// The run whose journal says so.
    run: Option<usize>,
    kind: Kind,
}

/// The names of a row in one allocation, because four would take more room than the names: flow, execution, name, and the recorded
/// deferred's (empty where nothing records one).
#[derive(Debug)]
struct RowNames {
    text: Box<[u8]>,
    /// Where the first three end.
    ends: [usize; 3],
}

impl RowNames {
    fn new(key: Key<'_>, deferred: &[u8]) -> Self {
        let mut text = Vec::with_capacity([key.flow, key.execution, key.name, deferred].iter().map(|name| name.len()).sum());
        let ends = [key.flow, key.execution, key.name].map(|name| {
            text.extend_from_slice(name);
            text.len()
        });
        text.extend_from_slice(deferred);
        Self { text: text.into(), ends }
    }

    fn between(&self, from: usize, to: usize) -> &[u8] {
        self.text.get(from..to).unwrap_or_default()
    }

    fn key(&self) -> Key<'_> {
        let [flow, execution, name] = self.ends;
        Key { flow: self.between(0, flow), execution: self.between(flow, execution), name: self.between(execution, name) }
    }

    fn deferred(&self) -> &[u8] {
        let [.., name] = self.ends;
        self.between(name, self.text.len())
    }
}

/// The recorded times of a clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockTimes {
    due_at_ms: u64,
    completed_at: Stamp,
}

/// What drifted. What is recorded of a clock is its times and the deferred's name, which stands with the others.
#[derive(Debug)]
pub(super) enum Kind {
    ClockMissing(ClockTimes),
    ClockDiffers { expected: ClockTimes, found: Box<[Option<Stored>; 3]>, was_pending: bool },
    ClockUnexpected { found: Box<[Stored; 3]>, was_pending: bool },
    Stamps { completed_at: Stamp, consumed_at: Stamp, found: Box<[Option<Stored>; 2]>, was_consumed: bool },
}

const CLOCK_FIELDS: [&str; 3] = ["deferredName", "dueAtMs", "completedAtMs"];
const STAMP_FIELDS: [&str; 2] = ["completedAtMs", "consumedAtMs"];

impl Drift {
    fn at(key: Key<'_>, deferred: &[u8], run: Option<usize>, kind: Kind) -> Self {
        Drift(Box::new(Row { names: RowNames::new(key, deferred), run, kind }))
    }

    pub(super) fn missing(run: usize, fold: &Fold, clock: &Clock) -> Self {
        let times = ClockTimes { due_at_ms: clock.due_at_ms, completed_at: clock.completed_at };
        Self::at(fold.key(clock.address), fold.name(clock.deferred_name), Some(run), Kind::ClockMissing(times))
    }

    pub(super) fn missing_values(run: usize, key: Key<'_>, values: &ClockValues) -> Self {
        Self::at(key, &values.deferred_name, Some(run), Kind::ClockMissing(values.times()))
    }

    pub(super) fn differs(
        run: usize,
        key: Key<'_>,
        expected: &ClockValues,
        found: [Option<Stored>; 3],
        was_pending: bool,
    ) -> Self {
        let kind = Kind::ClockDiffers { expected: expected.times(), found: Box::new(found), was_pending };
        Self::at(key, &expected.deferred_name, Some(run), kind)
    }

    pub(super) fn unexpected(row: &StoredClock<'_>) -> Self {
        let found = [row.deferred_name.into(), row.due_at_ms.into(), row.completed_at_ms.into()];
        let was_pending = row.completed_at_ms.trim_ascii() == b"null";
        Self::at(row.key, b"", None, Kind::ClockUnexpected { found: Box::new(found), was_pending })
    }

    pub(super) fn stamps(
        run: usize,
        key: Key<'_>,
        completed_at: Stamp,
        consumed_at: Stamp,
        found: [Option<Stored>; 2],
        was_consumed: bool,
    ) -> Self {
        Self::at(key, b"", Some(run), Kind::Stamps { completed_at, consumed_at, found: Box::new(found), was_consumed })
    }

    pub(super) fn key(&self) -> Key<'_> {
        self.0.names.key()
    }

    /// The run whose journal says so; none for a row that no journal explains.
    pub(super) fn run(&self) -> Option<usize> {
        self.0.run
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    pub(super) fn is_clock(&self) -> bool {
        !matches!(self.kind(), Kind::Stamps { .. })
    }

    /// The order of a report and of a plan: clocks before completions, each by address.
    pub(super) fn order(&self) -> (bool, Key<'_>) {
        (!self.is_clock(), self.key())
    }

    /// Gives each finding of this row to `report`: one for a missing or unexpected row, one for each value that differs.
    pub(super) fn findings(&self, run_id: Option<&[u8]>, mut report: impl FnMut(Finding)) {
        let finding = |id: Id, field: Option<&'static str>, expected: Shown, found: Shown| {
            let Key { flow, execution, name } = self.key();
            let mut finding = Finding::new(id).at_row(flow, execution, name);
            finding.run_id = run_id.map(<[u8]>::to_vec);
            finding.field = field;
            finding.with_values(expected, found)
        };
        match self.kind() {
            Kind::ClockMissing(times) => report(finding(Id::ClockMissing, None, Some(self.shown(*times)), None)),
            Kind::ClockUnexpected { found, .. } => {
                let mut shown = Writer::new();
                shown.open_object();
                for (field, value) in CLOCK_FIELDS.iter().zip(found.iter()) {
                    shown.name(field.as_bytes()).raw(value);
                }
                shown.close_object();
                report(finding(Id::ClockUnexpected, None, None, Some(shown.into_bytes())));
            }
            Kind::ClockDiffers { expected, found, .. } => {
                for ((field, value), expected) in CLOCK_FIELDS.iter().zip(found.iter()).zip(self.fields(*expected)) {
                    if let Some(value) = value {
                        report(finding(Id::ClockDiffers, Some(field), Some(expected), Some(value.to_vec())));
                    }
                }
            }
            Kind::Stamps { completed_at, consumed_at, found, .. } => {
                for ((field, value), expected) in STAMP_FIELDS.iter().zip(found.iter()).zip([completed_at, consumed_at]) {
                    if let Some(value) = value {
                        let mut shown = Vec::new();
                        write_stamp(&mut shown, *expected);
                        report(finding(Id::StampDiffers, Some(field), Some(shown), Some(value.to_vec())));
                    }
                }
            }
        }
    }
    /// The recorded values of a clock, each as JSON text.
    fn fields(&self, ClockTimes { due_at_ms, completed_at }: ClockTimes) -> [Vec<u8>; 3] {
        let (mut deferred, mut due, mut completed) = (Vec::new(), Vec::new(), Vec::new());
        write_text(&mut deferred, self.0.names.deferred());
        write_integer(&mut due, due_at_ms);
        write_stamp(&mut completed, completed_at);
        [deferred, due, completed]
    }

    fn shown(&self, times: ClockTimes) -> Vec<u8> {
        let mut shown = Writer::new();
        shown.open_object();
        for (field, value) in CLOCK_FIELDS.iter().zip(self.fields(times)) {
            shown.name(field.as_bytes()).raw(&value);
        }
        shown.close_object();
        shown.into_bytes()
    }
}

impl ClockValues {
    fn times(&self) -> ClockTimes {
        ClockTimes { due_at_ms: self.due_at_ms, completed_at: self.completed_at }
    }
}

/// A table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The clocks.
    Clocks,
    /// The completions.
    Deferreds,
}

impl Table {
    /// The table as a plan names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Table::Clocks => "clocks",
            Table::Deferreds => "deferreds",
        }
    }
}

/// What is done to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Rows that are not wanted any more: `[flow, execution, name]` each.
    Delete,
    /// Rows whose values change: `[flow, execution, name, deferred, due, completed]` each for clocks, and `[flow, execution,
    /// name, completed, consumed]` for completions, where a null completion leaves the stored one.
    Update,
    /// New rows: `[flow, execution, name, deferred, due, completed]` each.
    Insert,
}

impl Op {
    /// The operation as a plan names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Op::Delete => "delete",
            Op::Update => "update",
            Op::Insert => "insert",
        }
    }
}

/// Rows of one table to which one thing is done: a JSON array of arrays, in order of address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePage {
    /// The table.
    pub table: Table,
    /// What is done.
    pub op: Op,
    /// How many rows.
    pub count: usize,
    /// The rows, as JSON text.
    pub rows: Vec<u8>,
}

/// What will run differently once a plan is applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    /// Clocks that will be pending and were not, or not with this due time and deferred.
    pub clocks_armed: u64,
    /// Of these, clocks due at or before the time that the host gave.
    pub clocks_overdue: u64,
    /// Pending clocks that will be gone.
    pub pending_deleted: u64,
    /// Pending clocks that will have completed.
    pub pending_completed: u64,
    /// Consumptions that will be gone, so that a completion is consumed once more.
    pub consumptions_cleared: u64,
    /// Completions that will count as consumed.
    pub consumptions_set: u64,
}

/// The exact changes that make the tables equal to the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What will run differently.
    pub effects: Effects,
    /// The changes: clocks before completions, and of each table what goes before what changes before what comes.
    pub pages: Vec<ChangePage>,
    /// Rows that no store of UTF-8 text can hold, because a name has an unpaired surrogate. A plan with such rows cannot be applied.
    pub unstorable: u64,
}

impl Plan {
    /// The plan that repairs `drift`, which is in its order.
    /// Each row is gone once it is written down, so that not all rows are held twice.
    pub(super) fn of(drift: Vec<Drift>, as_of_ms: Option<u64>) -> Self {
        let mut plan = Plan::default();
        let mut changes = [
            Changes::of(Table::Clocks, Op::Delete),
            Changes::of(Table::Clocks, Op::Update),
            Changes::of(Table::Clocks, Op::Insert),
            Changes::of(Table::Deferreds, Op::Update),
        ];
        for row in drift {
            plan.count_effects(&row, as_of_ms);
            plan.unstorable = plan.unstorable.saturating_add(u64::from(!row.is_storable()));
            if let Some(changes) = changes.iter_mut().find(|changes| row.change() == (changes.table, changes.op)) {
                changes.add(&row);
            }
        }
        plan.pages = changes.into_iter().flat_map(Changes::into_pages).collect();
        plan
    }

    fn count_effects(&mut self, drift: &Drift, as_of_ms: Option<u64>) {
        let effects = &mut self.effects;
        let mut arm = |times: &ClockTimes| {
            bump(&mut effects.clocks_armed);
            if as_of_ms.is_some_and(|now| times.due_at_ms <= now) {
                bump(&mut effects.clocks_overdue);
            }
        };
        match drift.kind() {
            Kind::ClockMissing(times) if times.completed_at.is_none() => arm(times),
            Kind::ClockDiffers { expected, .. } if expected.completed_at.is_none() => arm(expected),
            Kind::ClockDiffers { was_pending: true, .. } => bump(&mut effects.pending_completed),
            Kind::ClockUnexpected { was_pending: true, .. } => bump(&mut effects.pending_deleted),
            Kind::Stamps { was_consumed: true, consumed_at, .. } if consumed_at.is_none() => {
                bump(&mut effects.consumptions_cleared);
            }
            Kind::Stamps { was_consumed: false, consumed_at, .. } if !consumed_at.is_none() => {
                bump(&mut effects.consumptions_set);
            }
            _ => {}
        }
    }

    /// How many rows the plan changes.
    pub fn rows(&self) -> u64 {
        self.pages.iter().map(|page| page.count as u64).sum()
    }

    /// A digest of what would be written: two plans with the same digest do the same. 32 hexadecimal digits.
    pub fn digest(&self) -> Vec<u8> {
        let mut hash = Xxh3::new();
        for page in &self.pages {
            hash.update(page.table.as_str().as_bytes());
            hash.update(page.op.as_str().as_bytes());
            hash.update(&(page.rows.len() as u64).to_le_bytes());
            hash.update(&page.rows);
        }
        to_hex(&hash.digest128().to_be_bytes())
    }
}

impl Drift {
    fn change(&self) -> (Table, Op) {
        match self.kind() {
            Kind::ClockMissing(_) => (Table::Clocks, Op::Insert),
            Kind::ClockDiffers { .. } => (Table::Clocks, Op::Update),
            Kind::ClockUnexpected { .. } => (Table::Clocks, Op::Delete),
            Kind::Stamps { .. } => (Table::Deferreds, Op::Update),
        }
    }

    fn write_change(&self, rows: &mut Writer) {
        let Key { flow, execution, name } = self.key();
        rows.open_array().text(flow).text(execution).text(name);
        match self.kind() {
            Kind::ClockUnexpected { .. } => {}
            Kind::ClockMissing(times) | Kind::ClockDiffers { expected: times, .. } => {
                for value in self.fields(*times) {
                    rows.raw(&value);
                }
            }
            Kind::Stamps { completed_at, consumed_at, .. } => {
                for stamp in [completed_at, consumed_at] {
                    match stamp.ms() {
                        Some(ms) => rows.integer(ms),
                        None => rows.null(),
                    };
                }
            }
        }
        rows.close_array();
    }

    /// Whether all names are UTF-8: unpaired surrogates are what WTF-8 has beyond it.
    fn is_storable(&self) -> bool {
        let Key { flow, execution, name } = self.key();
        [flow, execution, name, self.0.names.deferred()].into_iter().all(|name| std::str::from_utf8(name).is_ok())
    }
}

fn bump(count: &mut u64) {
    *count = count.saturating_add(1);
}

/// The pages of one kind of change, as they are written.
struct Changes {
    table: Table,
    op: Op,
    rows: Writer,
    count: usize,
    pages: Vec<ChangePage>,
}

impl Changes {
    fn of(table: Table, op: Op) -> Self {
        Self { table, op, rows: Writer::new(), count: 0, pages: Vec::new() }
    }

    fn add(&mut self, row: &Drift) {
        if self.count == 0 {
            self.rows.open_array();
        }
        row.write_change(&mut self.rows);
        self.count = self.count.saturating_add(1);
        if self.count == ROWS_A_PAGE {
            self.end_page();
        }
    }

    fn end_page(&mut self) {
        if self.count == 0 {
            return;
        }
        self.rows.close_array();
        let rows = std::mem::take(&mut self.rows).into_bytes();
        self.pages.push(ChangePage { table: self.table, op: self.op, count: std::mem::take(&mut self.count), rows });
    }

    fn into_pages(mut self) -> Vec<ChangePage> {
        self.end_page();
        self.pages
    }
}
