//! The end of the work: foreign rows are judged, findings put in order, and the plan made.

use super::join::{compare_digests, compare_stamps};
use super::ledger::{DeferredRecord, Stored};
use super::plan::{Drift, Kind, Plan};
use super::report::{Verdict, Verification};
use super::{Rebuild, Stage};
use crate::deferred_clock::run::RunFold;
use crate::deferred_clock::state::{canonical_deferred, DigestGap, Key, Recorded, Stamp};
use crate::digest::fingerprint;
use crate::error::Error;
use crate::sort::sort_by;
use crate::finding::{shown_integer, Class, Finding, Id};

impl Rebuild {
    /// Counts what a run's completions leave unchecked; with `strict` each is a finding.
    pub(super) fn count_digest_gaps(&mut self, place: usize, run: &RunFold) {
        let fold = run.fold();
        for (index, deferred) in fold.deferreds().iter().enumerate() {
            let (id, count) = match (deferred.exit_gap, deferred.metadata) {
                (DigestGap::Absent, _) => (Id::DigestAbsent, &mut self.not_checked.digest_absent),
                (DigestGap::Malformed, _) => (Id::DigestMalformed, &mut self.not_checked.digest_malformed),
                (DigestGap::None, Recorded::Absent) => {
                    (Id::MetadataUnchecked, &mut self.not_checked.metadata_unchecked)
                }
                (DigestGap::None, _) => continue,
            };
            *count = count.saturating_add(1);
            if self.options.strict {
                let key = fold.key(deferred.address);
                let mut finding = Finding::new(id).at_row(key.flow, key.execution, key.name);
                finding.run_id = self.runs.get(place).map(|run| self.ids.get(run.id).to_vec());
                self.report(Stage::Unverifiable, place, index, finding);
            }
        }
    }

    /// Judges the foreign rows, now that all runs and their stored rows are there.
    pub(super) fn close_foreign(&mut self) -> Result<(), Error> {
        let ledger = std::mem::take(&mut self.ledger);
        let mut buffer = std::mem::take(&mut self.buffer);

        for clock in &ledger.clocks {
            let print = fingerprint(&mut buffer, &[clock.key.as_key().execution]);
            if !self.live_executions.contains(print) {
                let finding = self.finding_at(Id::RunMissing, clock.run, clock.key.as_key());
                self.report(Stage::ClockWithoutRun, clock.run, clock.row, finding);
            }
        }

        let mut conflicts = Vec::new();
        for (group, seen) in ledger.clock_groups() {
            let Some(clock) = group.records.iter().find_map(|record| ledger.clocks.get(record.foreign?)) else { continue };
            if group.records.len() > 1 {
                let print = fingerprint(&mut buffer, &[clock.key.as_key().execution]);
                if self.live_executions.contains(print) {
                    conflicts.push((&clock.key, group));
                }
            } else if !seen && self.options.compare_clocks {
                self.drift.push(Drift::missing_values(clock.run, clock.key.as_key(), &clock.values));
            }
        }
        sort_by(&mut conflicts, |(one, _), (other, _)| one.cmp(other));
        for (place, (key, group)) in conflicts.into_iter().enumerate() {
            let key = key.as_key();
            let mut finding = Finding::new(Id::ClockConflict).at_row(key.flow, key.execution, key.name);
            finding.runs = group.records.iter().map(|record| self.run_id(record.run).to_vec()).collect();
            self.report(Stage::ClockConflict, place, 0, finding);
        }

        let mut merged = Vec::new();
        for (group, stored) in ledger.deferred_groups() {
            let mut address = None;
            for deferred in group.records.iter().filter_map(|record| ledger.deferreds.get(record.foreign?)) {
                let key = deferred.key.as_key();
                address = Some(key);
                let finding = match stored {
                    None => Some(self.finding_at(Id::RowMissing, deferred.run, key)),
                    Some(stored) => {
                        compare_digests(key, deferred.exit, deferred.metadata, stored.exit, stored.metadata)
                            .map(|finding| finding.in_run(self.run_id(deferred.run)))
                    }
                };
                if let Some(finding) = finding {
                    // Completions of one run stand in fold order, own and foreign alike.
                    self.report(Stage::Completion, deferred.run, deferred.row, finding);
                }
            }
            let Some(key) = address else { continue };
            merged.extend(self.merge_records(key, &group.records, stored)?);
        }

        // Rows that a foreign record explains, or that several runs claim, were judged above.
        self.drift.retain(|drift| match drift.kind() {
            Kind::ClockUnexpected { .. } => !ledger.records_clock(drift.key(), &mut buffer),
            Kind::ClockMissing(_) | Kind::ClockDiffers { .. } => {
                ledger.clock_group(drift.key(), &mut buffer).is_none_or(|group| group.records.len() == 1)
            }
            Kind::Stamps { .. } => !ledger.records_completion(drift.key(), &mut buffer),
        });
        self.drift.append(&mut merged);
        self.ledger = ledger;
        self.buffer = buffer;
        Ok(())
    }

    /// Judges the stamps of a completion that foreign rows record against the row merged over all runs that record it, in
    /// byte order: a recorded time replaces an earlier one, and the last run's consumption counts, null too.
    fn merge_records(
        &mut self,
        key: Key<'_>,
        records: &[DeferredRecord],
        stored: Option<&Stored>,
    ) -> Result<Option<Drift>, Error> {
        let mut completed_at = Stamp::NONE;
        let mut consumed_at = Stamp::NONE;
        let mut bytes = Vec::new();
        for record in records {
            if !record.completed_at.is_none() {
                completed_at = record.completed_at;
            }
            consumed_at = record.consumed_at;
            canonical_deferred(key, record.completed_at, record.consumed_at, &mut bytes);
            self.digest.remove_row(&bytes);
        }
        canonical_deferred(key, completed_at, consumed_at, &mut bytes);
        self.digest.add_row(&bytes);
        let Some(last) = records.last() else { return Ok(None) };
        if records.len() > 1 {
            let run_id = self.run_id(last.run).to_vec();
            self.notes.recorded_by_two_runs(&run_id);
        }
        let Some(stored) = stored else { return Ok(None) };
        let stamps = (&*stored.completed_at_ms, &*stored.consumed_at_ms);
        compare_stamps(last.run, key, (completed_at, consumed_at), stamps)
    }

    fn run_id(&self, place: usize) -> &[u8] {
        self.runs.get(place).map_or(&[], |run| self.ids.get(run.id))
    }

    fn finding_at(&self, id: Id, run: usize, key: Key<'_>) -> Finding {
        Finding::new(id).in_run(self.run_id(run)).at_row(key.flow, key.execution, key.name)
    }

    /// Puts everything in order.
    pub(super) fn conclude(mut self, partial: bool) -> Verification {
        let judges_all = self.options.whole_store && self.unfolded == 0 && !partial;
        let unexplained = self.ledger.unexplained();
        let mut drift = std::mem::take(&mut self.drift);
        sort_by(&mut drift, |a, b| a.order().cmp(&b.order()));
        // Of one row there is one drift, however often it was answered.
        drift.dedup_by(|a, b| a.order() == b.order());
        if !judges_all {
            self.not_checked.completion_rows = unexplained;
            let before = drift.len();
            drift.retain(|drift| !matches!(drift.kind(), Kind::ClockUnexpected { .. }));
            self.not_checked.clock_rows = before.saturating_sub(drift.len()) as u64;
        }
        self.not_checked.runs_unfolded = self.unfolded;
        if partial {
            self.not_checked.runs_unanswered = self.pending.len() as u64;
            self.not_checked.foreign_rows = self.ledger.foreign_rows();
        }
        if let Some(limit) = self.options.max_unexplained.filter(|limit| judges_all && unexplained > *limit) {
            let finding = Finding::new(Id::UnexplainedAboveLimit)
                .with_values(shown_integer(Some(limit)), shown_integer(Some(unexplained)));
            self.report(Stage::Unexplained, 0, 0, finding);
        }

        let mut ordered = std::mem::take(&mut self.findings);
        sort_by(&mut ordered, |(one, _), (other, _)| one.cmp(other));
        ordered.dedup_by(|(a, _), (b, _)| a == b && a.stage == Stage::Completion);
        let mut findings: Vec<Finding> = ordered.into_iter().map(|(_, finding)| finding).collect();
        let refused = findings.iter().any(|finding| finding.id.class() != Class::Drift);
        for row in drift.iter().filter(|_| !self.options.unlisted_drift) {
            row.findings(row.run().map(|run| self.run_id(run)), |finding| findings.push(finding));
        }
        let verdict = match (partial, refused, drift.is_empty()) {
            (true, _, _) => Verdict::Partial,
            (_, true, _) => Verdict::Refused,
            (_, _, false) => Verdict::Drift,
            (_, _, true) => Verdict::Match,
        };
        let writable = matches!(verdict, Verdict::Match | Verdict::Drift) && self.options.compare_clocks;
        let plan = writable.then(|| Plan::of(drift, self.options.as_of_ms));
        Verification {
            verdict,
            findings,
            totals: self.totals,
            unexplained: judges_all.then_some(unexplained),
            unfolded: self.unfolded,
            ignored: self.ignored.into_list(),
            not_checked: self.not_checked.into_list(),
            notes: self.notes.into_list(),
            digest: self.digest,
            plan,
            ids: self.ids,
            runs: self.runs,
        }
    }
}
