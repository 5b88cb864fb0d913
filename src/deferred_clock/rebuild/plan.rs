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

/// One row in which a table says something else than the journal.
#[derive(Debug)]
pub(super) struct Drift {
    pub(super) flow: Box<[u8]>,
    pub(super) execution: Box<[u8]>,
    pub(super) name: Box<[u8]>,
    /// The run whose journal says so.
    pub(super) run: Option<usize>,
    pub(super) kind: Kind,
}

/// What drifted.
#[derive(Debug)]
pub(super) enum Kind {
    ClockMissing(ClockValues),
    ClockDiffers { expected: ClockValues, found: [Option<Stored>; 3], was_pending: bool },
    ClockUnexpected { found: [Stored; 3], was_pending: bool },
    Stamps { completed_at: Stamp, consumed_at: Stamp, found: [Option<Stored>; 2], was_consumed: bool },
}

const CLOCK_FIELDS: [&str; 3] = ["deferredName", "dueAtMs", "completedAtMs"];
const STAMP_FIELDS: [&str; 2] = ["completedAtMs", "consumedAtMs"];

impl Drift {
    fn at(key: Key<'_>, run: Option<usize>, kind: Kind) -> Self {
        Drift { flow: key.flow.into(), execution: key.execution.into(), name: key.name.into(), run, kind }
    }

    pub(super) fn missing(run: usize, fold: &Fold, clock: &Clock) -> Self {
        let values = ClockValues {
            deferred_name: fold.name(clock.deferred_name).into(),
            due_at_ms: clock.due_at_ms,
            completed_at: clock.completed_at,
        };
        Self::missing_values(run, fold.key(clock.address), values)
    }

    pub(super) fn missing_values(run: usize, key: Key<'_>, values: ClockValues) -> Self {
        Self::at(key, Some(run), Kind::ClockMissing(values))
    }

    pub(super) fn differs(
        run: usize,
        key: Key<'_>,
        expected: ClockValues,
        found: [Option<Stored>; 3],
        was_pending: bool,
    ) -> Self {
        Self::at(key, Some(run), Kind::ClockDiffers { expected, found, was_pending })
    }

    pub(super) fn unexpected(row: &StoredClock<'_>) -> Self {
        let found = [row.deferred_name.into(), row.due_at_ms.into(), row.completed_at_ms.into()];
        let was_pending = row.completed_at_ms.trim_ascii() == b"null";
        Self::at(row.key, None, Kind::ClockUnexpected { found, was_pending })
    }

    pub(super) fn stamps(
        run: usize,
        key: Key<'_>,
        completed_at: Stamp,
        consumed_at: Stamp,
        found: [Option<Stored>; 2],
        was_consumed: bool,
    ) -> Self {
        Self::at(key, Some(run), Kind::Stamps { completed_at, consumed_at, found, was_consumed })
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { flow: &self.flow, execution: &self.execution, name: &self.name }
    }

    pub(super) fn is_clock(&self) -> bool {
        !matches!(self.kind, Kind::Stamps { .. })
    }

    /// The order of a report and of a plan: clocks before completions, each by address.
    pub(super) fn order(&self) -> (bool, Key<'_>) {
        (!self.is_clock(), self.key())
    }

    /// Gives each finding of this row to `report`: one for a missing or unexpected row, one for each value that differs.
    pub(super) fn findings(&self, run_id: Option<&[u8]>, mut report: impl FnMut(Finding)) {
        let finding = |id: Id, field: Option<&'static str>, expected: Shown, found: Shown| {
            let mut finding = Finding::new(id).at_row(&self.flow, &self.execution, &self.name);
            finding.run_id = run_id.map(<[u8]>::to_vec);
            finding.field = field;
            finding.with_values(expected, found)
        };
        match &self.kind {
            Kind::ClockMissing(values) => report(finding(Id::ClockMissing, None, Some(values.shown()), None)),
            Kind::ClockUnexpected { found, .. } => {
                let mut shown = Writer::new();
                shown.open_object();
                for (field, value) in CLOCK_FIELDS.iter().zip(found) {
                    shown.name(field.as_bytes()).raw(value);
                }
                shown.close_object();
                report(finding(Id::ClockUnexpected, None, None, Some(shown.into_bytes())));
            }
            Kind::ClockDiffers { expected, found, .. } => {
                for ((field, value), expected) in CLOCK_FIELDS.iter().zip(found).zip(expected.fields()) {
                    if let Some(value) = value {
                        report(finding(Id::ClockDiffers, Some(field), Some(expected), Some(value.to_vec())));
                    }
                }
            }
            Kind::Stamps { completed_at, consumed_at, found, .. } => {
                for ((field, value), expected) in STAMP_FIELDS.iter().zip(found).zip([completed_at, consumed_at]) {
                    if let Some(value) = value {
                        let mut shown = Vec::new();
                        write_stamp(&mut shown, *expected);
                        report(finding(Id::StampDiffers, Some(field), Some(shown), Some(value.to_vec())));
                    }
                }
            }
        }
    }
}

impl ClockValues {
    fn fields(&self) -> [Vec<u8>; 3] {
        let (mut deferred, mut due, mut completed) = (Vec::new(), Vec::new(), Vec::new());
        write_text(&mut deferred, &self.deferred_name);
        write_integer(&mut due, self.due_at_ms);
        write_stamp(&mut completed, self.completed_at);
        [deferred, due, completed]
    }

    fn shown(&self) -> Vec<u8> {
        let mut shown = Writer::new();
        shown.open_object();
        for (field, value) in CLOCK_FIELDS.iter().zip(self.fields()) {
            shown.name(field.as_bytes()).raw(&value);
        }
        shown.close_object();
        shown.into_bytes()
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
        let mut arm = |values: &ClockValues| {
            bump(&mut effects.clocks_armed);
            if as_of_ms.is_some_and(|now| values.due_at_ms <= now) {
                bump(&mut effects.clocks_overdue);
            }
        };
        match &drift.kind {
            Kind::ClockMissing(values) if values.completed_at.is_none() => arm(values),
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
        match self.kind {
            Kind::ClockMissing(_) => (Table::Clocks, Op::Insert),
            Kind::ClockDiffers { .. } => (Table::Clocks, Op::Update),
            Kind::ClockUnexpected { .. } => (Table::Clocks, Op::Delete),
            Kind::Stamps { .. } => (Table::Deferreds, Op::Update),
        }
    }

    fn write_change(&self, rows: &mut Writer) {
        rows.open_array().text(&self.flow).text(&self.execution).text(&self.name);
        match &self.kind {
            Kind::ClockUnexpected { .. } => {}
            Kind::ClockMissing(values) | Kind::ClockDiffers { expected: values, .. } => {
                for value in values.fields() {
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
        let deferred = match &self.kind {
            Kind::ClockMissing(values) | Kind::ClockDiffers { expected: values, .. } => &values.deferred_name,
            _ => &self.name,
        };
        [&self.flow, &self.execution, &self.name, deferred].into_iter().all(|name| std::str::from_utf8(name).is_ok())
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
