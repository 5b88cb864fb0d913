//! The whole stream looked at: every row, every snapshot against the fold so far, the end against the stored head, the hint.
//!
//! It never stops at the first problem. What a broken, missing or refused row would have changed is not known, so the state is
//! lost there; rows behind it are still read, and folding goes on from the next snapshot, which is believed because nothing is
//! left to compare it with: exactly what a restore does with the snapshot that the hint names. What lies between is counted, and
//! is neither a pass nor a finding.
//!
//! ```text
//! Rebuild::new(hint) ─▶ (push_page(rows)… ─▶ answered(asked, found))… ─▶ finish(stored head) ─▶ Verification
//! ```
//!
//! It does no I/O. Memory follows the aggregate and the findings, not the stream.

mod forecast;
mod report;

pub use forecast::{Forecast, ForecastEnd, HintReport, HintState};
pub use report::{Coverage, Note, NotChecked, Segment, Verification};

use self::forecast::{HintRow, HintWatch};
use super::aggregate::{Aggregate, Pair};
use super::cadence::snapshot_due;
use super::decode::{RowFault, RowReader};
use super::failure::Failure;
use super::protocol::{Rows, StoredRow};
use super::refusal::Refusal;
use super::row::RowRef;
use crate::finding::{shown_text, Finding, Id};
use crate::json::Writer;

/// A verification under way.
#[derive(Debug)]
pub struct Rebuild {
    aggregate: Aggregate,
    /// Whether the aggregate is known. If not, a snapshot is awaited.
    known: bool,
    /// Whether the aggregate, when it is known, began at a snapshot that was believed.
    believing: bool,
    next: u64,
    reader: RowReader,
    hint: HintWatch,
    coverage: Coverage,
    findings: Vec<Finding>,
    /// The first fault that a fold of everything meets, the missing beginning of a pruned stream among them.
    first_fault: Option<Failure>,
    short_page: Option<(u64, u64)>,
    off_cadence: Noted,
    not_restated: Noted,
}

#[derive(Debug, Default, Clone, Copy)]
struct Noted {
    count: u64,
    first: Option<u64>,
}

impl Noted {
    fn at(&mut self, sequence: u64) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert(sequence);
    }
}

impl Rebuild {
    /// A verification of a stream from its first row. `hint` is the stored number (`Some(None)` when nothing is stored), or
    /// `None` when the hint is not to be judged.
    pub fn new(hint: Option<Option<u64>>) -> Self {
        Rebuild {
            aggregate: Aggregate::new(),
            known: true,
            believing: false,
            next: 0,
            reader: RowReader::new(),
            hint: HintWatch::new(hint),
            coverage: Coverage::default(),
            findings: Vec::new(),
            first_fault: None,
            short_page: None,
            off_cadence: Noted::default(),
            not_restated: Noted::default(),
        }
    }

    /// The sequence of the row that comes next, which is where a host reads on.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What was looked at so far, for a progress line.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Looks at a page of rows.
    pub fn push_page(&mut self, rows: &Rows<'_>) {
        for row in rows.iter() {
            self.push(row);
        }
    }

    /// Says of the rows pushed since the last such call that they were a store's answer: how many it was asked for, and how many
    /// it gave. Fewer, with rows behind them, would end a restore too early.
    pub fn answered(&mut self, asked: u64, found: u64) {
        self.short_page = (found < asked).then_some((asked, found));
    }

    /// Looks at one row.
    pub fn push(&mut self, row: StoredRow<'_>) {
        let StoredRow { sequence, payload } = row;
        if let Some((asked, found)) = self.short_page.take() {
            let finding = Finding::new(Id::PageShort).with_values(number(asked), number(found));
            self.findings.push(at(finding, sequence));
        }
        self.coverage.rows = self.coverage.rows.saturating_add(1);
        if !self.follows(sequence) {
            return;
        }
        self.coverage.last = Some(sequence);
        // Taken out while it lends its lists.
        let mut reader = std::mem::take(&mut self.reader);
        match reader.read(payload) {
            Ok(row) => self.look_at(sequence, row),
            Err(fault) => {
                self.hint.see(sequence, || HintRow::Unreadable(Failure::Row { sequence, fault }));
                self.fault(Failure::Row { sequence, fault });
                self.lose();
            }
        }
        self.reader = reader;
        match sequence.checked_add(1) {
            Some(next) => self.next = next,
            None => self.fault(Failure::Sequence { expected: u64::MAX, actual: u64::MAX }),
        }
    }

    /// Whether the row is at or behind the one expected. Rows missing before it leave nothing known.
    fn follows(&mut self, sequence: u64) -> bool {
        let expected = self.next;
        if sequence == expected && self.coverage.last != Some(u64::MAX) {
            return true;
        }
        let failure = Failure::Sequence { expected, actual: sequence };
        if sequence <= expected {
            self.fault(failure);
            return false;
        }
        if self.coverage.last.is_none() {
            // Rows below a snapshot may be gone, as long as the hint leads there: judged at the end.
            self.coverage.pruned_below = Some(sequence);
            self.first_fault.get_or_insert(failure);
        } else {
            self.coverage.missing = self.coverage.missing.saturating_add(sequence.wrapping_sub(expected));
            self.fault(failure);
        }
        self.lose();
        true
    }

    fn look_at(&mut self, sequence: u64, row: RowRef<'_>) {
        if let RowRef::Snapshot { progress, armed } = row {
            self.coverage.snapshots = self.coverage.snapshots.saturating_add(1);
            if !snapshot_due(sequence) {
                self.off_cadence.at(sequence);
            }
            return self.look_at_snapshot(sequence, progress, armed);
        }
        if snapshot_due(sequence) {
            self.not_restated.at(sequence);
        }
        self.hint.see(sequence, || HintRow::NotASnapshot);
        if !self.known {
            self.coverage.not_folded = self.coverage.not_folded.saturating_add(1);
            return;
        }
        match self.aggregate.apply(row) {
            Ok(_) => self.folded(sequence),
            Err(reason) => {
                self.fault(Failure::CorruptRow { sequence, reason });
                self.lose();
            }
        }
    }

    fn look_at_snapshot(&mut self, sequence: u64, progress: &[Pair], armed: &[Pair]) {
        let judged = if self.known {
            self.aggregate.apply(RowRef::Snapshot { progress, armed })
        } else if ascending(progress) && ascending(armed) {
            Ok(None)
        } else {
            // No aggregate lists itself like that, whatever it is.
            Err(Refusal::SnapshotDisagrees { same_progress: ascending(progress), same_armed: ascending(armed) })
        };
        if self.known && judged.is_ok() {
            self.hint.see(sequence, || HintRow::Snapshot { agrees: true });
            self.coverage.last_snapshot = Some(sequence);
            return self.folded(sequence);
        }
        let disagreement = at(self.disagreement(progress, armed), sequence);
        self.lose();
        match Aggregate::from_lists(progress, armed) {
            Ok(aggregate) => {
                self.hint.see(sequence, || HintRow::Snapshot { agrees: judged.is_ok() });
                if let Err(reason) = judged {
                    self.findings.push(disagreement);
                    self.note_fault(Failure::CorruptRow { sequence, reason });
                }
                self.coverage.last_snapshot = Some(sequence);
                self.aggregate = aggregate;
                self.known = true;
                self.folded(sequence);
            }
            Err(reason) => {
                let failure = Failure::CorruptRow { sequence, reason };
                self.hint.see(sequence, || HintRow::Unreadable(failure));
                self.findings.push(finding_of(&failure));
                self.note_fault(judged.err().map_or(failure, |reason| Failure::CorruptRow { sequence, reason }));
            }
        }
    }

    /// Names the first pair at which a snapshot and the fold differ; without a fold, the list that no aggregate gives.
    fn disagreement(&self, progress: &[Pair], armed: &[Pair]) -> Finding {
        let mut finding = Finding::new(Id::SnapshotDisagrees);
        if !self.known {
            finding.field = Some(if ascending(progress) { "armed" } else { "progress" });
            return finding.with_values(shown_text(b"ascending conversations"), shown_text(b"another order"));
        }
        let lists = [("progress", self.aggregate.progress_list(), progress), ("armed", self.aggregate.armed_list(), armed)];
        for (list, ours, theirs) in lists {
            if let Some((expected, found)) = first_difference(&ours, theirs) {
                finding.field = Some(list);
                return finding.with_values(pair(expected), pair(found));
            }
        }
        finding
    }

    fn folded(&mut self, sequence: u64) {
        self.coverage.folded = self.coverage.folded.saturating_add(1);
        match self.coverage.segments.last_mut() {
            Some(segment) if segment.open => segment.last = sequence,
            _ => self.coverage.segments.push(Segment { first: sequence, last: sequence, believed: self.believing, open: true }),
        }
    }

    /// From here on the state is not known.
    fn lose(&mut self) {
        self.known = false;
        self.believing = true;
        self.aggregate = Aggregate::new();
        if let Some(segment) = self.coverage.segments.last_mut() {
            segment.open = false;
        }
    }

    fn note_fault(&mut self, failure: Failure) {
        self.first_fault.get_or_insert(failure);
        self.hint.fault(failure);
    }

    fn fault(&mut self, failure: Failure) {
        self.findings.push(finding_of(&failure));
        self.note_fault(failure);
    }

    /// Ends the work. `head` is the stored head (`Some(None)` when nothing was ever appended), of the same view of the store as
    /// the rows, or `None` when it is not to be compared.
    pub fn finish(self, head: Option<Option<u64>>) -> Verification {
        self.conclude(head, false)
    }

    /// Ends the work before everything was looked at.
    pub fn finish_partial(self) -> Verification {
        self.conclude(None, true)
    }
}

fn at(mut finding: Finding, sequence: u64) -> Finding {
    finding.seq = Some(sequence);
    finding
}

fn finding_of(failure: &Failure) -> Finding {
    let id = match failure {
        Failure::Row { fault: RowFault::Malformed(_), .. } => Id::RowMalformed,
        Failure::Row { .. } => Id::RowVersion,
        Failure::Sequence { .. } => Id::RowSequence,
        _ => Id::CorruptRow,
    };
    let mut finding = Finding::new(id);
    finding.seq = failure.sequence();
    match failure {
        Failure::Row { fault: RowFault::Malformed(error), .. } => {
            finding.offset = Some(error.offset as u64);
            let (expected, found) = failure.texts();
            finding.with_values(shown_text(expected.as_bytes()), shown_text(found.as_bytes()))
        }
        Failure::Row { fault: RowFault::Version { expected, found }, .. } => {
            finding.with_values(number(u64::from(*expected)), number(u64::from(*found)))
        }
        Failure::Sequence { expected, actual } => finding.with_values(number(*expected), number(*actual)),
        Failure::CorruptRow { reason, .. } => {
            let mut out = Writer::new();
            reason.write(&mut out);
            finding.with_values(None, Some(out.into_bytes()))
        }
        _ => finding,
    }
}

/// A number as a report shows it: decimal text, because it may be any up to 2^64-1.
fn number(value: u64) -> crate::finding::Shown {
    shown_text(value.to_string().as_bytes())
}

fn pair(pair: Option<Pair>) -> crate::finding::Shown {
    let mut out = Writer::new();
    match pair {
        Some((id, value)) => out.open_array().decimal_text(id).decimal_text(value).close_array(),
        None => out.null(),
    };
    Some(out.into_bytes())
}

fn ascending(pairs: &[Pair]) -> bool {
    pairs.is_sorted_by(|(before, _), (after, _)| before < after)
}

fn first_difference(ours: &[Pair], theirs: &[Pair]) -> Option<(Option<Pair>, Option<Pair>)> {
    let longest = ours.len().max(theirs.len());
    let both = (0..longest).map(|place| (ours.get(place).copied(), theirs.get(place).copied()));
    both.into_iter().find(|(ours, theirs)| ours != theirs)
}
