//! Every run against the stored rows: a machine that folds one run after another, says which stored rows it wants to see, and
//! ends with everything that does not join, or the exact changes that make the tables equal to the journal.
//!
//! It does no I/O and holds nothing the size of the store. Of a run that was answered it keeps a few bytes a row: a fingerprint
//! of each address, and for completions the stamps. Rows that name another run's execution (*foreign* rows) are kept whole,
//! because every way in which two runs can meet goes through one; they are joined when all runs are there.
//!
//! ```text
//! begin_run, push…, end_run ─▶ Wanted ─▶ live_run / stored_clock / stored_completion…, end_answer   (several runs may share one)
//! end_runs ─▶ Wanted ─▶ … end_answer
//! sweep(addresses)… ─▶ Wanted ─▶ … end_answer
//! finish ─▶ Verification
//! ```

mod conclude;
mod join;
mod ledger;
mod plan;
mod report;

pub use plan::{ChangePage, Effects, Op, Plan, Table};
pub use report::{Head, Note, NotChecked, Totals, Verdict, Verification};

use self::join::{Pending, Row};
use self::ledger::{print_of, Ledger, Prints};
use self::plan::Drift;
use super::run::{refused_run, Ignored, RunFold};
use super::state::Key;
use crate::digest::{fingerprint, StateDigest};
use crate::error::{Code, Error};
use crate::finding::{shown_integer, shown_text, Finding, Id};
use crate::journal::{Floor, Page, Seq};
use crate::names::{Arena, Span};
use crate::sort::sort_by;

/// What to check, beyond what is always checked.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Completions recorded without a sound digest become findings.
    pub strict: bool,
    /// More stored completions than this that no entry explains become a finding.
    pub max_unexplained: Option<u64>,
    /// The time, in ms, by which a clock to be armed counts as overdue. The core has no clock of its own.
    pub as_of_ms: Option<u64>,
    /// Clock rows will be given; without them only completions are compared, and there is no plan.
    pub compare_clocks: bool,
    /// Every run of the store will be given. Only then can a stored row be called unexplained.
    pub whole_store: bool,
    /// Drift is left out of the findings: who only wants the plan has all of it there. Verdict and plan stay the same.
    pub unlisted_drift: bool,
    /// What an earlier report covered of the runs in scope. A run in it that is not given is gone.
    pub baseline: Vec<Baseline>,
}

/// What an earlier report said of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// The run.
    pub run_id: Vec<u8>,
    /// The last seq it covered.
    pub head: Seq,
    /// The digest of all that was recorded up to there.
    pub digest: StateDigest,
}

/// Stored rows that the machine wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Run ids to look up among the runs that have a row.
    pub runs: Vec<Vec<u8>>,
    /// Flow and execution of which every clock and every completion is wanted.
    pub addresses: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Wanted {
    /// Whether nothing is wanted, so that no answer is needed.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.addresses.is_empty()
    }
}

/// A stored clock row. The values are JSON texts, as stored: a store may hold what no journal would say.
#[derive(Debug, Clone, Copy)]
pub struct StoredClock<'a> {
    /// Its address.
    pub key: Key<'a>,
    /// Its deferred's name, as JSON text.
    pub deferred_name: &'a [u8],
    /// Its due time, as JSON text.
    pub due_at_ms: &'a [u8],
    /// Its completion, as JSON text.
    pub completed_at_ms: &'a [u8],
}

/// A stored completion row: digests in place of its texts.
#[derive(Debug, Clone, Copy)]
pub struct StoredCompletion<'a> {
    /// Its address.
    pub key: Key<'a>,
    /// SHA-256 of the exit's stored text; `None` for SQL's NULL.
    pub exit: Option<[u8; 32]>,
    /// SHA-256 of the metadata's stored text; `None` for SQL's NULL.
    pub metadata: Option<[u8; 32]>,
    /// Its completion, as JSON text.
    pub completed_at_ms: &'a [u8],
    /// Its consumption, as JSON text.
    pub consumed_at_ms: &'a [u8],
}

/// What the machine keeps of a run that is over.
#[derive(Debug)]
struct RunRecord {
    id: Span,
    /// Where the run's own rows begin in the ledger.
    own_clocks: usize,
    own_deferreds: usize,
    floor: Option<Seq>,
    first: Option<Seq>,
    last: Option<Seq>,
    /// The digest of all that was recorded, when the run was folded.
    digest: Option<StateDigest>,
}

#[derive(Debug)]
struct Current {
    id: Vec<u8>,
    span: Span,
    run: RunFold,
    refusal: Option<Error>,
    counted: bool,
    baseline: Option<Baseline>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Runs,
    Rest,
}

/// Where a finding stands in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    stage: Stage,
    run: u32,
    row: u32,
}

/// The parts of a report, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    RefusedRun,
    BareFloor,
    ClockWithoutRun,
    ClockConflict,
    Completion,
    Unverifiable,
    Unexplained,
}

/// The machine.
#[derive(Debug)]
pub struct Rebuild {
    options: Options,
    ids: Arena,
    runs: Vec<RunRecord>,
    current: Option<Current>,
    pending: Vec<Pending>,
    spare: Vec<RunFold>,
    ledger: Ledger,
    asked: Prints,
    awaiting: bool,
    phase: Phase,
    live_executions: Prints,
    findings: Vec<(Order, Finding)>,
    drift: Vec<Drift>,
    totals: Totals,
    unfolded: u64,
    ignored: report::IgnoredTotals,
    notes: report::Notes,
    not_checked: report::NotCheckedTotals,
    digest: StateDigest,
    baseline_next: usize,
    buffer: Vec<u8>,
}

impl Rebuild {
    /// A machine that has seen nothing.
    pub fn new(mut options: Options) -> Self {
        // The runs come in this order.
        sort_by(&mut options.baseline, |a, b| a.run_id.cmp(&b.run_id));
        options.baseline.dedup_by(|a, b| a.run_id == b.run_id);
        Rebuild {
            options,
            ids: Arena::default(),
            runs: Vec::new(),
            current: None,
            pending: Vec::new(),
            spare: Vec::new(),
            ledger: Ledger::default(),
            asked: Prints::default(),
            awaiting: false,
            phase: Phase::Runs,
            live_executions: Prints::default(),
            findings: Vec::new(),
            drift: Vec::new(),
            totals: Totals::default(),
            unfolded: 0,
            ignored: report::IgnoredTotals::default(),
            notes: report::Notes::default(),
            not_checked: report::NotCheckedTotals::default(),
            digest: StateDigest::default(),
            baseline_next: 0,
            buffer: Vec::new(),
        }
    }

    /// Begins a run with its checkpoints, of which the machine picks the floor. Runs come in ascending byte order.
    pub fn begin_run<'a>(&mut self, id: &[u8], checkpoints: impl IntoIterator<Item = Floor<'a>>) -> Result<(), Error> {
        if self.phase != Phase::Runs || self.current.is_some() {
            return Err(out_of_order("the end of the run before", "the beginning of a run"));
        }
        if let Some(last) = self.runs.last() {
            let last = self.ids.get(last.id);
            if id <= last {
                let (code, expected) = if id == last {
                    (Code::RunRepeated, "each run once")
                } else {
                    (Code::RunOutOfOrder, "runs in ascending order of their bytes")
                };
                let found = format!("it behind run {}", String::from_utf8_lossy(last));
                return Err(Error::new(code, expected, found).in_run(id));
            }
        }
        let span = self.ids.keep(id)?;
        let baseline = self.baseline_of(id);
        let floor = Floor::pick(checkpoints);
        let mut run = self.spare.pop().unwrap_or_default();
        let refusal = match run.begin(id, floor, None) {
            Ok(()) => None,
            Err(error) if refused_run(&error).is_some() => Some(error),
            Err(error) => return Err(error),
        };
        run.mark(baseline.as_ref().map(|baseline| baseline.head));
        self.current = Some(Current { id: id.to_vec(), span, run, refusal, counted: floor.is_some(), baseline });
        Ok(())
    }

    /// The baseline of a run. Runs that the baseline has and the store skips are findings.
    fn baseline_of(&mut self, id: &[u8]) -> Option<Baseline> {
        while let Some(baseline) = self.options.baseline.get(self.baseline_next) {
            if baseline.run_id.as_slice() > id {
                return None;
            }
            let baseline = baseline.clone();
            self.baseline_next = self.baseline_next.saturating_add(1);
            if baseline.run_id == id {
                return Some(baseline);
            }
            self.run_gone(&baseline);
        }
        None
    }

    fn run_gone(&mut self, baseline: &Baseline) {
        let finding = Finding::new(Id::JournalShorter)
            .in_run(&baseline.run_id)
            .with_values(shown_text(baseline.head.to_string().as_bytes()), shown_integer(None));
        self.report(Stage::RefusedRun, self.runs.len(), 0, finding);
    }

    /// Folds a page of the current run. A run whose journal contradicts itself, cannot be read or is too large is a finding, and
    /// the rest of its pages are passed over.
    pub fn push(&mut self, page: &Page<'_>) -> Result<(), Error> {
        let Some(current) = &mut self.current else {
            return Err(out_of_order("the beginning of a run", "a page"));
        };
        current.counted |= page.entries().any(|entry| super::EventType::from_code(entry.type_code).is_some());
        if current.refusal.is_some() {
            return Ok(());
        }
        match current.run.push(page) {
            Ok(()) => Ok(()),
            Err(error) if refused_run(&error).is_some() => {
                current.refusal = Some(error);
                Ok(())
            }
            Err(error) => Err(error.in_run(&current.id)),
        }
    }

    /// Counts entries of other types that the host left out of the current run's pages.
    pub fn skipped(&mut self, count: u64) {
        self.ignored.add(super::reduce::Reason::OtherType, count);
    }

    /// Ends the current run and says which stored rows it is to be joined with. Several runs may be ended before an answer is
    /// given that covers all of them.
    pub fn end_run(&mut self) -> Result<Wanted, Error> {
        let Some(Current { id, span, mut run, refusal, counted, baseline }) = self.current.take() else {
            return Err(out_of_order("the beginning of a run", "the end of one"));
        };
        let place = self.runs.len();
        let coverage = run.coverage();
        self.runs.push(RunRecord {
            id: span,
            own_clocks: self.ledger.own_clocks.len(),
            own_deferreds: self.ledger.own_deferreds.len(),
            floor: coverage.floor,
            first: coverage.first,
            last: coverage.last,
            digest: None,
        });
        self.totals.runs = self.totals.runs.saturating_add(u64::from(counted));
        self.totals.entries = self.totals.entries.saturating_add(coverage.entries);
        self.totals.floors = self.totals.floors.saturating_add(u64::from(coverage.floor.is_some()));
        self.note_ignored(run.ignored(), &id);
        if let Some(error) = refusal {
            self.refuse_run(place, &id, &error);
            self.give_back(run);
            return Ok(Wanted::default());
        }
        if coverage.floor_beyond_head {
            self.notes.checkpoint_beyond_head(&id);
        }
        if let Some(baseline) = baseline {
            self.compare_with_baseline(place, &id, &mut run, &baseline);
        }
        let fold = run.fold();
        let digests = fold.digests();
        self.digest.merge(digests.state);
        if let Some(record) = self.runs.last_mut() {
            record.digest = Some(digests.recorded);
        }
        self.totals.clocks = self.totals.clocks.saturating_add(fold.clocks().len() as u64);
        self.totals.deferreds = self.totals.deferreds.saturating_add(fold.deferreds().len() as u64);
        self.count_digest_gaps(place, &run);
        self.ledger.take(place, &id, run.fold(), &mut self.buffer);
        let (pending, wanted) = Pending::new(place, id, run, self.options.compare_clocks);
        if wanted.is_empty() {
            self.give_back(pending.run);
        } else {
            for (flow, execution) in &wanted.addresses {
                self.asked.insert(fingerprint(&mut self.buffer, &[flow, execution]));
            }
            self.pending.push(pending);
            self.awaiting = true;
        }
        Ok(wanted)
    }

    fn give_back(&mut self, run: RunFold) {
        // One is enough when each run is answered by itself; runs that share an answer need more, but not without end.
        if self.spare.len() < 256 {
            self.spare.push(run);
        }
    }

    fn note_ignored(&mut self, ignored: &Ignored, id: &[u8]) {
        for (reason, count, first) in ignored.iter() {
            self.ignored.add(reason, count);
            if let Some(seq) = first {
                self.ignored.first(reason, id, seq);
            }
        }
    }

    fn refuse_run(&mut self, place: usize, id: &[u8], error: &Error) {
        self.unfolded = self.unfolded.saturating_add(1);
        let Some(finding_id) = refused_run(error) else { return };
        let mut finding = Finding::new(finding_id)
            .in_run(id)
            .with_values(shown_text(error.expected.as_bytes()), shown_text(error.found.as_bytes()));
        finding.seq = error.seq;
        finding.offset = error.offset;
        let stage = if finding_id == Id::CheckpointMissing { Stage::BareFloor } else { Stage::RefusedRun };
        self.report(stage, place, 0, finding);
    }

    fn compare_with_baseline(&mut self, place: usize, id: &[u8], run: &mut RunFold, baseline: &Baseline) {
        let coverage = run.coverage();
        if coverage.floor.is_some_and(|floor| floor > baseline.head) {
            self.not_checked.baseline_compacted = self.not_checked.baseline_compacted.saturating_add(1);
        } else if coverage.head() < Some(baseline.head) {
            let found = coverage.head().map_or_else(|| shown_integer(None), |head| shown_text(head.to_string().as_bytes()));
            let finding = Finding::new(Id::JournalShorter)
                .in_run(id)
                .with_values(shown_text(baseline.head.to_string().as_bytes()), found);
            self.report(Stage::RefusedRun, place, 0, finding);
        } else {
            let found = run.digest_at_mark();
            if found != baseline.digest {
                let finding = Finding::new(Id::JournalRewritten)
                    .in_run(id)
                    .with_values(shown_text(&baseline.digest.to_hex()), shown_text(&found.to_hex()));
                self.report(Stage::RefusedRun, place, 0, finding);
            }
        }
    }

    fn report(&mut self, stage: Stage, run: usize, row: usize, finding: Finding) {
        let order = Order { stage, run: saturate(run), row: saturate(row) };
        self.findings.push((order, finding));
    }

    /// Answers that a wanted run has a row.
    pub fn live_run(&mut self, id: &[u8]) -> Result<(), Error> {
        self.expect_answer()?;
        let not_asked = || not_asked(format!("run {}", String::from_utf8_lossy(id)));
        if self.phase == Phase::Rest {
            let print = fingerprint(&mut self.buffer, &[id]);
            if !self.ledger.wants_run(print) {
                return Err(not_asked());
            }
            self.live_executions.insert(print);
            return Ok(());
        }
        let place = self.pending_at(id);
        let pending = place.and_then(|place| self.pending.get_mut(place)).ok_or_else(not_asked)?;
        pending.live = true;
        Ok(())
    }

    /// Answers with a stored clock row under a wanted flow and execution. A row that comes twice counts once, so an answer that
    /// failed may be given again. Without [`Options::compare_clocks`] rows are passed over.
    pub fn stored_clock(&mut self, row: &StoredClock<'_>) -> Result<(), Error> {
        self.expect_answer()?;
        row.check()?;
        if self.phase == Phase::Rest {
            return self.rest_clock(row);
        }
        let place = self.pending_at(row.key.execution);
        let Some(pending) = place.and_then(|place| self.pending.get_mut(place)) else {
            return Err(not_asked(describe(row.key)));
        };
        if !self.options.compare_clocks {
            return pending.expect_asked(row.key);
        }
        match pending.join_clock(row)? {
            Row::Same => {}
            Row::Drift(drift) => self.drift.push(drift),
            Row::Unrecorded => self.drift.push(Drift::unexpected(row)),
        }
        Ok(())
    }

    /// Answers with a stored completion row under a wanted flow and execution. A row that comes twice counts once.
    pub fn stored_completion(&mut self, row: &StoredCompletion<'_>) -> Result<(), Error> {
        self.expect_answer()?;
        row.check()?;
        if self.phase == Phase::Rest {
            return self.rest_completion(row);
        }
        let place = self.pending_at(row.key.execution);
        let Some(pending) = place.and_then(|place| self.pending.get_mut(place)) else {
            return Err(not_asked(describe(row.key)));
        };
        let run = pending.place;
        match pending.join_completion(row)? {
            None => self.ledger.unrecorded.push(print_of(row.key, &mut self.buffer)),
            Some(join::Completion { index, mismatch, drift }) => {
                self.drift.extend(drift);
                if let Some(finding) = mismatch {
                    self.report(Stage::Completion, run, index as usize, finding);
                }
            }
        }
        Ok(())
    }

    /// Ends an answer: whatever was wanted and not given does not exist.
    pub fn end_answer(&mut self) -> Result<(), Error> {
        self.expect_answer()?;
        self.awaiting = false;
        for pending in std::mem::take(&mut self.pending) {
            self.close(&pending);
            self.give_back(pending.run);
        }
        Ok(())
    }

    /// Reports what the stored rows lack of a run.
    fn close(&mut self, pending: &Pending) {
        let fold = pending.run.fold();
        for (index, clock) in pending.own_clocks() {
            let key = fold.key(clock.address);
            if !pending.live {
                let finding = Finding::new(Id::RunMissing).in_run(&pending.id).at_row(key.flow, key.execution, key.name);
                self.report(Stage::ClockWithoutRun, pending.place, index, finding);
            }
            if self.options.compare_clocks && !pending.seen_clock(index) {
                self.drift.push(Drift::missing(pending.place, fold, clock));
            }
        }
        for (index, deferred) in pending.own_deferreds() {
            if !pending.seen_deferred(index) {
                let key = fold.key(deferred.address);
                let finding = Finding::new(Id::RowMissing).in_run(&pending.id).at_row(key.flow, key.execution, key.name);
                self.report(Stage::Completion, pending.place, index, finding);
            }
        }
    }

    /// Ends the runs, and asks for what the foreign rows are to be joined with.
    pub fn end_runs(&mut self) -> Result<Wanted, Error> {
        if self.current.is_some() || self.phase != Phase::Runs {
            return Err(out_of_order("the end of the last run", "the end of the runs"));
        }
        self.expect_nothing_awaited()?;
        while let Some(baseline) = self.options.baseline.get(self.baseline_next).cloned() {
            self.baseline_next = self.baseline_next.saturating_add(1);
            self.run_gone(&baseline);
        }
        self.phase = Phase::Rest;
        let starts: Vec<(usize, usize)> = self.runs.iter().map(|run| (run.own_clocks, run.own_deferreds)).collect();
        let (runs, ids) = (&self.runs, &self.ids);
        self.ledger.gather(&starts, |execution| {
            runs.binary_search_by(|run| ids.get(run.id).cmp(execution)).ok()
        });
        let wanted = self.ledger.wanted();
        self.awaiting = !wanted.is_empty();
        Ok(wanted)
    }

    /// Takes flows and executions that stored rows have, in any order and as often as the host likes, and asks for the rows of
    /// those that no run asked for. A whole store is swept once over both tables; then nothing stored has escaped.
    pub fn sweep<'a>(&mut self, addresses: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<Wanted, Error> {
        if self.phase != Phase::Rest {
            return Err(out_of_order("the end of the runs", "a sweep"));
        }
        self.expect_nothing_awaited()?;
        let mut wanted = Wanted::default();
        for (flow, execution) in addresses {
            let print = fingerprint(&mut self.buffer, &[flow, execution]);
            if !self.asked.contains(print) && self.ledger.sweep(print) {
                wanted.addresses.push((flow.to_vec(), execution.to_vec()));
            }
        }
        self.awaiting = !wanted.is_empty();
        Ok(wanted)
    }

    fn rest_clock(&mut self, row: &StoredClock<'_>) -> Result<(), Error> {
        let print = self.expect_asked_in_rest(row.key)?;
        if !self.options.compare_clocks {
            return Ok(());
        }
        if self.ledger.join_clock(row, &mut self.buffer, &mut self.drift)? {
            return Ok(());
        }
        // Rows that a run asked for have been judged with it.
        if !self.asked.contains(print) {
            self.drift.push(Drift::unexpected(row));
        }
        Ok(())
    }

    fn rest_completion(&mut self, row: &StoredCompletion<'_>) -> Result<(), Error> {
        let print = self.expect_asked_in_rest(row.key)?;
        if self.ledger.join_completion(row, &mut self.buffer) {
            return Ok(());
        }
        if !self.asked.contains(print) {
            self.ledger.unrecorded.push(print_of(row.key, &mut self.buffer));
        }
        Ok(())
    }

    /// The fingerprint of a row's flow and execution, which must have been wanted since the runs ended.
    fn expect_asked_in_rest(&mut self, key: Key<'_>) -> Result<u128, Error> {
        let print = fingerprint(&mut self.buffer, &[key.flow, key.execution]);
        if self.ledger.wants_address(print) {
            Ok(print)
        } else {
            Err(not_asked(describe(key)))
        }
    }

    fn pending_at(&self, execution: &[u8]) -> Option<usize> {
        self.pending.binary_search_by(|pending| pending.id.as_slice().cmp(execution)).ok()
    }

    fn expect_answer(&self) -> Result<(), Error> {
        if self.awaiting {
            Ok(())
        } else {
            Err(out_of_order("something wanted", "an answer"))
        }
    }

    fn expect_nothing_awaited(&self) -> Result<(), Error> {
        if self.awaiting {
            return Err(Error::new(Code::AnswerMissing, "an answer to what was wanted, ended", "none"));
        }
        Ok(())
    }

    /// Whether [`Rebuild::finish`] has its place here. It takes the machine along even when it fails, so a host that would go on
    /// asks first.
    pub fn check_finish(&self) -> Result<(), Error> {
        if self.phase != Phase::Rest {
            return Err(out_of_order("the end of the runs", "the end of the work"));
        }
        self.expect_nothing_awaited()
    }

    /// Ends the work. Everything wanted must have been answered.
    pub fn finish(mut self) -> Result<Verification, Error> {
        self.check_finish()?;
        self.close_foreign()?;
        Ok(self.conclude(false))
    }

    /// Ends the work before everything was looked at: the verdict is [`Verdict::Partial`], with what was found so far. A row that
    /// a run not looked at records too may be judged otherwise in the end.
    pub fn finish_partial(self) -> Verification {
        self.conclude(true)
    }

    /// The totals so far, for a progress line.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }
}

fn out_of_order(expected: &str, found: &str) -> Error {
    Error::new(Code::CallOutOfOrder, expected, found)
}

fn not_asked(found: String) -> Error {
    Error::new(Code::AnswerMalformed, "only what was wanted", found)
}

fn describe(key: Key<'_>) -> String {
    format!(
        "a row of flow {}, execution {}",
        String::from_utf8_lossy(key.flow),
        String::from_utf8_lossy(key.execution)
    )
}

fn saturate(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
