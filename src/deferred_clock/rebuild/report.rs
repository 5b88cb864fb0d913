//! What a verification says when it is over.

use super::plan::Plan;
use super::RunRecord;
use crate::deferred_clock::reduce::Reason;
use crate::digest::StateDigest;
use crate::error::Unjoined;
use crate::finding::{Class, Finding};
use crate::journal::Seq;
use crate::names::Arena;
use xxhash_rust::xxh3::Xxh3;

/// What the findings come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The tables say what the journal says.
    Match,
    /// They do not, and a rebuild repairs it.
    Drift,
    /// Something does not join, so nothing must be written.
    Refused,
    /// Not everything was looked at.
    Partial,
}

impl Verdict {
    /// The verdict as reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Match => "match",
            Verdict::Drift => "drift",
            Verdict::Refused => "refused",
            Verdict::Partial => "partial",
        }
    }
}

/// What was covered and what a rebuild would report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs with an entry of the four types, even a refused one, or a floor.
    pub runs: u64,
    /// Entries of the four types that were folded, applied or not.
    pub entries: u64,
    /// Runs that have a floor.
    pub floors: u64,
    /// Folded clock rows, over all runs.
    pub clocks: u64,
    /// Folded completion rows, over all runs: one that two runs record counts twice.
    pub deferreds: u64,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What, as a stable id.
    pub what: &'static str,
    /// What that means, in one line.
    pub meaning: &'static str,
    /// How often.
    pub count: u64,
    /// The first run concerned, in byte order.
    pub first_run: Vec<u8>,
}

/// Entries that changed nothing, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredTotal {
    /// Why.
    pub reason: Reason,
    /// How many.
    pub count: u64,
    /// Run and seq of the first, unless the host left them out itself.
    pub first: Option<(Vec<u8>, Seq)>,
}

/// What was covered of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// The run.
    pub run_id: &'a [u8],
    /// The floor's seq.
    pub floor: Option<Seq>,
    /// The first seq folded.
    pub first: Option<Seq>,
    /// The last seq folded, or else the floor's.
    pub last: Option<Seq>,
    /// The digest of all that was recorded; `None` for a run that was not folded.
    pub digest: Option<StateDigest>,
}

/// What a verification found.
#[derive(Debug)]
pub struct Verification {
    /// What the findings come to.
    pub verdict: Verdict,
    /// Every finding, in report order: refused runs; then floors without a fold, clocks without a run, clocks of several runs and
    /// completions that do not join, each by run and fold order; then what could not be verified; then drift by address.
    pub findings: Vec<Finding>,
    /// What was covered.
    pub totals: Totals,
    /// Stored completions that nothing explains; `None` when that cannot be said.
    pub unexplained: Option<u64>,
    /// Runs that could not be folded.
    pub unfolded: u64,
    /// What changed nothing, by reason.
    pub ignored: Vec<IgnoredTotal>,
    /// What could not be checked.
    pub not_checked: Vec<NotChecked>,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// The digest of the folded state, merged over runs.
    pub digest: StateDigest,
    /// The changes that make the tables equal to the journal; `None` when nothing may be written, or clocks were not given.
    pub plan: Option<Plan>,
    pub(super) ids: Arena,
    pub(super) runs: Vec<RunRecord>,
}

impl Verification {
    /// What was covered of each run, in byte order.
    pub fn heads(&self) -> impl Iterator<Item = Head<'_>> {
        self.runs.iter().map(|run| Head {
            run_id: self.ids.get(run.id),
            floor: run.floor,
            first: run.first,
            last: run.last.or(run.floor),
            digest: run.digest,
        })
    }

    /// A digest of every run's id and last seq: two verifications with the same one looked at the same entries' extent.
    pub fn heads_digest(&self) -> u128 {
        let mut hash = Xxh3::new();
        for head in self.heads() {
            hash.update(&(head.run_id.len() as u64).to_le_bytes());
            hash.update(head.run_id);
            hash.update(&head.last.map_or(u64::MAX, |last| last).to_le_bytes());
        }
        hash.digest128()
    }

    /// The references that do not join, as the reference fold reports them: the findings of class *unjoined*, in order.
    pub fn unjoined(&self) -> Vec<Unjoined> {
        let unjoined = self.findings.iter().filter(|finding| finding.id.class() == Class::Unjoined);
        unjoined
            .map(|finding| Unjoined {
                reason: finding.id.as_str(),
                execution_id: match &finding.row {
                    Some((_, execution, _)) => execution.clone(),
                    None => finding.run_id.clone().unwrap_or_default(),
                },
                row: finding.row.as_ref().map(|(flow, _, name)| (flow.clone(), name.clone())),
            })
            .collect()
    }
}

/// Counts of ignored entries over all runs.
#[derive(Debug, Default)]
pub(super) struct IgnoredTotals {
    counts: [u64; Reason::ALL.len()],
    firsts: [Option<(Vec<u8>, Seq)>; Reason::ALL.len()],
}

impl IgnoredTotals {
    pub(super) fn add(&mut self, reason: Reason, count: u64) {
        if let Some(slot) = self.counts.get_mut(reason as usize) {
            *slot = slot.saturating_add(count);
        }
    }

    pub(super) fn first(&mut self, reason: Reason, run_id: &[u8], seq: Seq) {
        if let Some(slot) = self.firsts.get_mut(reason as usize) {
            slot.get_or_insert_with(|| (run_id.to_vec(), seq));
        }
    }

    pub(super) fn into_list(self) -> Vec<IgnoredTotal> {
        let all = Reason::ALL.iter().zip(self.counts).zip(self.firsts);
        all.filter(|((_, count), _)| *count > 0)
            .map(|((reason, count), first)| IgnoredTotal { reason: *reason, count, first })
            .collect()
    }
}

/// Notes as they are gathered.
#[derive(Debug, Default)]
pub(super) struct Notes {
    beyond_head: Option<(u64, Vec<u8>)>,
    two_runs: Option<(u64, Vec<u8>)>,
}

fn note(slot: &mut Option<(u64, Vec<u8>)>, run_id: &[u8]) {
    let (count, first) = slot.get_or_insert_with(|| (0, run_id.to_vec()));
    *count = count.saturating_add(1);
    if run_id < first.as_slice() {
        *first = run_id.to_vec();
    }
}

impl Notes {
    pub(super) fn checkpoint_beyond_head(&mut self, run_id: &[u8]) {
        note(&mut self.beyond_head, run_id);
    }

    pub(super) fn recorded_by_two_runs(&mut self, run_id: &[u8]) {
        note(&mut self.two_runs, run_id);
    }

    pub(super) fn into_list(self) -> Vec<Note> {
        [
            (
                "checkpoint_beyond_head",
                "runs whose floor lies beyond the last entry that is still there",
                self.beyond_head,
            ),
            ("recorded_by_two_runs", "completions that two or more runs record; the last run in byte order decides", self.two_runs),
        ]
        .into_iter()
        .filter_map(|(what, meaning, noted)| {
            noted.map(|(count, first_run)| Note { what, meaning, count, first_run })
        })
        .collect()
    }
}

/// Counts of what could not be checked.
#[derive(Debug, Default)]
pub(super) struct NotCheckedTotals {
    pub(super) digest_absent: u64,
    pub(super) digest_malformed: u64,
    pub(super) metadata_unchecked: u64,
    pub(super) baseline_compacted: u64,
    pub(super) clock_rows: u64,
    pub(super) completion_rows: u64,
    pub(super) runs_unfolded: u64,
    pub(super) runs_unanswered: u64,
    pub(super) foreign_rows: u64,
}

impl NotCheckedTotals {
    pub(super) fn into_list(self) -> Vec<NotChecked> {
        [
            ("digest_absent", "completions recorded without a digest: their values were not compared", self.digest_absent),
            ("digest_malformed", "completions recorded with a digest that is none", self.digest_malformed),
            ("metadata_unchecked", "completions recorded without a digest of their metadata", self.metadata_unchecked),
            ("runs_unfolded", "runs that could not be folded", self.runs_unfolded),
            ("runs_unanswered", "runs that were folded and not compared, because the work ended before", self.runs_unanswered),
            ("foreign_rows", "rows recorded of another run's execution, which are compared at the end", self.foreign_rows),
            ("clock_rows", "clock rows that a run which was not folded, or is out of scope, may explain", self.clock_rows),
            ("completion_rows", "completions that a run which was not folded, or is out of scope, may explain", self.completion_rows),
            ("baseline_compacted", "runs compacted beyond what the baseline covers", self.baseline_compacted),
        ]
        .into_iter()
        .filter(|(_, _, count)| *count > 0)
        .map(|(what, meaning, count)| NotChecked { what, meaning, count })
        .collect()
    }
}
