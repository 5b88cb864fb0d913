//! What a verification says when it is over.

use super::forecast::{End, Forecast, HintReport};
use super::{number, Rebuild};
use crate::digest::StateDigest;
use crate::finding::{Class, Finding, Id, Verdict};
use crate::json::Writer;
use crate::observer_log::Aggregate;

/// Rows that were folded without a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The first of them. A snapshot, unless it is the beginning of the stream.
    pub first: u64,
    /// The last of them.
    pub last: u64,
    /// Whether it begins at a snapshot that was believed, because nothing before it could be compared.
    pub believed: bool,
    pub(super) open: bool,
}

/// What was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Rows that came.
    pub rows: u64,
    /// Rows that were folded, or believed.
    pub folded: u64,
    /// Sound rows that were read but not folded, because the state was not known there.
    pub not_folded: u64,
    /// Rows missing between those that came.
    pub missing: u64,
    /// The first sequence there is, when it is not 0.
    pub pruned_below: Option<u64>,
    /// The last sequence that came.
    pub last: Option<u64>,
    /// Snapshots among the rows.
    pub snapshots: u64,
    /// The latest snapshot from which a fold can begin.
    pub last_snapshot: Option<u64>,
    /// The stretches that were folded, in order.
    pub segments: Vec<Segment>,
}

/// Something that could not be checked: neither a pass nor a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotChecked {
    /// What, as a stable id.
    pub what: &'static str,
    /// What that means, in one line.
    pub meaning: &'static str,
    /// How often.
    pub count: u64,
}

/// Something worth knowing that is neither a finding nor unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// What, as a stable id.
    pub what: &'static str,
    /// What that means, in one line.
    pub meaning: &'static str,
    /// How often.
    pub count: u64,
    /// The first sequence concerned.
    pub first: u64,
}

/// What a verification found.
#[derive(Debug)]
pub struct Verification {
    /// What the findings come to.
    pub verdict: Verdict,
    /// Every finding: those of rows in the order of the stream, then the end, then the hint.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub coverage: Coverage,
    /// The sequence that the next row would take.
    pub head: u64,
    /// The stored head, if it was compared; none counts as 0.
    pub stored_head: Option<u64>,
    /// The hint, judged, if it was given.
    pub hint: Option<HintReport>,
    /// What a restore would do now, if the hint was given and everything was looked at.
    pub restore: Option<Forecast>,
    /// What could not be checked.
    pub not_checked: Vec<NotChecked>,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// The state at the end, unless it is not known.
    pub aggregate: Option<Aggregate>,
}

impl Rebuild {
    pub(super) fn conclude(mut self, head: Option<Option<u64>>, partial: bool) -> Verification {
        let end = End { coverage: &self.coverage, next: self.next, first_fault: self.first_fault };
        let judged = self.hint.judge(&end).filter(|_| !partial);
        let (hint, restore) = judged.unzip();
        // Rows below the beginning are missed only by those who have to fold them.
        if let Some(begin) = self.coverage.pruned_below.filter(|_| restore.is_some_and(|restore| restore.folded_from == Some(0))) {
            let mut finding = Finding::new(Id::RowSequence).with_values(number(0), number(begin));
            finding.seq = Some(begin);
            self.findings.insert(0, finding);
        }
        let stored_head = head.map(|head| head.unwrap_or(0));
        if let Some(stored) = stored_head.filter(|stored| *stored != self.next) {
            let id = if stored > self.next { Id::RowsMissingAtEnd } else { Id::HeadBelowRows };
            let mut finding = Finding::new(id).with_values(number(stored), number(self.next));
            finding.seq = Some(self.next);
            self.findings.push(finding);
        }
        self.findings.extend(hint.and_then(|hint| hint.finding()));
        let verdict = if partial { Verdict::Partial } else { Verdict::of(&self.findings) };
        let mut not_checked = vec![
            NotChecked {
                what: "rows_not_folded",
                meaning: "sound rows behind a fault and before the next snapshot: what they did was not judged",
                count: self.coverage.not_folded,
            },
            NotChecked {
                what: "rows_below",
                meaning: "sequences below the first row that is there",
                count: self.coverage.pruned_below.unwrap_or(0),
            },
            NotChecked {
                what: "snapshots_believed",
                meaning: "snapshots from which folding went on, with nothing before them to compare",
                count: self.coverage.segments.iter().filter(|segment| segment.believed).count() as u64,
            },
            NotChecked { what: "head", meaning: "the stored head was not given", count: u64::from(head.is_none()) },
            NotChecked { what: "hint", meaning: "the hint was not given", count: u64::from(hint.is_none()) },
        ];
        not_checked.retain(|entry| entry.count > 0);
        let notes = [
            ("off_cadence", "snapshots where none was due", self.off_cadence),
            ("not_restated", "due places without a snapshot", self.not_restated),
        ];
        let notes = notes.into_iter().filter_map(|(what, meaning, noted)| {
            noted.first.map(|first| Note { what, meaning, count: noted.count, first })
        });
        Verification {
            verdict,
            coverage: self.coverage,
            head: self.next,
            stored_head,
            hint,
            restore,
            not_checked,
            notes: notes.collect(),
            aggregate: self.known.then_some(self.aggregate),
            findings: self.findings,
        }
    }
}

impl Verification {
    /// The digest of the state at the end, unless that is not known.
    pub fn digest(&self) -> Option<StateDigest> {
        self.aggregate.as_ref().map(Aggregate::digest)
    }

    /// How many findings are of a class.
    pub fn count(&self, class: Class) -> usize {
        self.findings.iter().filter(|finding| finding.id.class() == class).count()
    }

    /// Writes everything but the state as a JSON object. Sequences and counts of rows are decimal texts.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"verdict").text(self.verdict.as_str().as_bytes());
        out.name(b"findings").open_array();
        for finding in &self.findings {
            finding.write(out);
        }
        out.close_array();
        self.coverage.write(out.name(b"coverage"));
        out.name(b"head").decimal_text(self.head);
        if let Some(stored) = self.stored_head {
            out.name(b"storedHead").decimal_text(stored);
        }
        if let Some(hint) = &self.hint {
            hint.write(out.name(b"hint"));
        }
        if let Some(restore) = &self.restore {
            restore.write(out.name(b"restore"));
        }
        out.name(b"notChecked").open_array();
        for entry in &self.not_checked {
            out.open_object().name(b"what").text(entry.what.as_bytes());
            out.name(b"meaning").text(entry.meaning.as_bytes()).name(b"count").decimal_text(entry.count).close_object();
        }
        out.close_array().name(b"notes").open_array();
        for note in &self.notes {
            out.open_object().name(b"what").text(note.what.as_bytes());
            out.name(b"meaning").text(note.meaning.as_bytes()).name(b"count").decimal_text(note.count);
            out.name(b"firstSeq").decimal_text(note.first).close_object();
        }
        out.close_array();
        if let (Some(aggregate), Some(digest)) = (&self.aggregate, self.digest()) {
            out.name(b"state").open_object();
            out.name(b"conversations").integer(aggregate.len() as u64).name(b"armed").integer(aggregate.armed_len() as u64);
            out.close_object().name(b"digest").open_object();
            out.name(b"algorithm").text(StateDigest::ALGORITHM.as_bytes()).name(b"value").text(&digest.to_hex());
            out.close_object();
        }
        out.close_object();
    }
}

impl Coverage {
    fn write(&self, out: &mut Writer) {
        out.open_object();
        for (name, value) in [
            ("rows", Some(self.rows)),
            ("folded", Some(self.folded)),
            ("notFolded", Some(self.not_folded)),
            ("missing", Some(self.missing)),
            ("snapshots", Some(self.snapshots)),
            ("prunedBelow", self.pruned_below),
            ("last", self.last),
            ("lastSnapshot", self.last_snapshot),
        ] {
            if let Some(value) = value {
                out.name(name.as_bytes()).decimal_text(value);
            }
        }
        out.name(b"segments").open_array();
        for segment in &self.segments {
            out.open_object().name(b"first").decimal_text(segment.first).name(b"last").decimal_text(segment.last);
            out.name(b"believed").boolean(segment.believed).close_object();
        }
        out.close_array().close_object();
    }
}
