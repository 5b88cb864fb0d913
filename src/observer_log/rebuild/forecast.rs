//! The hint judged against the stream, and what a restore would do now.

use super::Coverage;
use crate::finding::{Finding, Id};
use crate::json::Writer;
use crate::observer_log::failure::Failure;
use crate::observer_log::restore::{HintVerdict, LONGEST_WITHOUT_SNAPSHOT};

/// What stands where the hint points.
#[derive(Debug, Clone, Copy)]
pub(super) enum HintRow {
    NotASnapshot,
    Unreadable(Failure),
    Snapshot { agrees: bool },
}

/// Watches for the row that the hint names, and for the first fault behind it.
#[derive(Debug)]
pub(super) struct HintWatch {
    stored: Option<Option<u64>>,
    row: Option<HintRow>,
    rows_behind: u64,
    fault_behind: Option<Failure>,
}

impl HintWatch {
    pub(super) fn new(stored: Option<Option<u64>>) -> Self {
        HintWatch { stored, row: None, rows_behind: 0, fault_behind: None }
    }

    /// The sequence that the hint names.
    fn sequence(&self) -> Option<u64> {
        self.stored.flatten().and_then(|number| number.checked_sub(1))
    }

    #[inline]
    pub(super) fn see(&mut self, sequence: u64, row: impl FnOnce() -> HintRow) {
        match self.sequence() {
            Some(hinted) if hinted == sequence => self.row = Some(row()),
            Some(hinted) if hinted < sequence => self.rows_behind = self.rows_behind.saturating_add(1),
            _ => {}
        }
    }

    pub(super) fn fault(&mut self, failure: Failure) {
        if self.sequence().is_some_and(|hinted| failure.sequence().is_some_and(|sequence| sequence > hinted)) {
            self.fault_behind.get_or_insert(failure);
        }
    }
}

/// What the stored hint is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintState {
    /// There is none, and no snapshot that it could name.
    NotNeeded,
    /// It names the latest snapshot.
    Good,
    /// There is none, though there are snapshots: the next restore folds everything, and records one.
    Missing,
    /// It names a snapshot that is not the latest: the next restore folds a longer tail, and records the latest.
    Stale,
    /// It names a row beyond the end: restores fold everything until a snapshot passes it.
    TooHigh,
    /// It names a row that is no snapshot, or is not there.
    Wrong,
    /// It names a row that cannot be read as a snapshot: restores fail.
    Unreadable,
    /// It names a snapshot that contradicts the rows before it: restores believe it.
    Disagrees,
}

impl HintState {
    /// The state as reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            HintState::NotNeeded => "not_needed",
            HintState::Good => "good",
            HintState::Missing => "missing",
            HintState::Stale => "stale",
            HintState::TooHigh => "too_high",
            HintState::Wrong => "wrong",
            HintState::Unreadable => "unreadable",
            HintState::Disagrees => "disagrees",
        }
    }

    /// The finding that it is. None, stale and missing come about in ordinary operation and heal by themselves.
    pub(super) fn finding(self) -> Option<Id> {
        match self {
            HintState::NotNeeded | HintState::Good | HintState::Missing | HintState::Stale => None,
            HintState::TooHigh => Some(Id::HintTooHigh),
            HintState::Wrong => Some(Id::HintWrong),
            HintState::Unreadable => Some(Id::HintUnreadable),
            HintState::Disagrees => Some(Id::HintDisagrees),
        }
    }
}

/// The hint, judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintReport {
    /// The stored number.
    pub stored: Option<u64>,
    /// What it is worth.
    pub state: HintState,
    /// The number of the latest snapshot, which is what the hint should be; 0 for none.
    pub latest: u64,
}

/// What a restore would do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// What it would make of the hint; `None` when it fails before that.
    pub hint: Option<HintVerdict>,
    /// From which sequence it would fold.
    pub folded_from: Option<u64>,
    /// How it would end.
    pub end: Result<ForecastEnd, Failure>,
}

/// How a restore that does not fail would end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForecastEnd {
    /// Rows folded.
    pub rows: u64,
    /// The head.
    pub head: u64,
    /// Whether it would append a snapshot.
    pub appends_snapshot: bool,
    /// The hint that would be stored then.
    pub hint: Option<u64>,
}

/// The end of the stream, as far as it was read.
pub(super) struct End<'a> {
    pub(super) coverage: &'a Coverage,
    pub(super) next: u64,
    pub(super) first_fault: Option<Failure>,
}

impl HintWatch {
    /// The hint judged, and the forecast; nothing when no hint was given.
    pub(super) fn judge(&self, end: &End<'_>) -> Option<(HintReport, Forecast)> {
        let stored = self.stored?;
        let latest = end.coverage.last_snapshot.map_or(0, |sequence| sequence.saturating_add(1));
        let state = match (self.sequence(), self.row) {
            (None, _) if latest == 0 => HintState::NotNeeded,
            (None, _) => HintState::Missing,
            (Some(sequence), None) if sequence >= end.next => HintState::TooHigh,
            (Some(_), None | Some(HintRow::NotASnapshot)) => HintState::Wrong,
            (Some(_), Some(HintRow::Unreadable(_))) => HintState::Unreadable,
            (Some(_), Some(HintRow::Snapshot { agrees: false })) => HintState::Disagrees,
            (Some(_), Some(HintRow::Snapshot { agrees: true })) if stored == Some(latest) => HintState::Good,
            (Some(_), Some(HintRow::Snapshot { agrees: true })) => HintState::Stale,
        };
        Some((HintReport { stored, state, latest }, self.forecast(stored, latest, end)))
    }

    fn forecast(&self, stored: Option<u64>, latest: u64, end: &End<'_>) -> Forecast {
        let (hint, folded_from, rows, fault) = match (self.sequence(), self.row) {
            (Some(_), Some(HintRow::Unreadable(failure))) => {
                return Forecast { hint: None, folded_from: None, end: Err(failure) };
            }
            (Some(sequence), Some(HintRow::Snapshot { .. })) => {
                (HintVerdict::Used, sequence.saturating_add(1), self.rows_behind, self.fault_behind)
            }
            (None, _) => (HintVerdict::Missing, 0, end.coverage.rows, end.first_fault),
            (Some(_), None) => (HintVerdict::BeyondLog, 0, end.coverage.rows, end.first_fault),
            (Some(_), Some(HintRow::NotASnapshot)) => (HintVerdict::NotASnapshot, 0, end.coverage.rows, end.first_fault),
        };
        // With a good hint the end is no lower than the row behind the snapshot.
        let mut head = end.next.max(folded_from);
        let met = latest > folded_from;
        let appends_snapshot = !met && folded_from == 0 && head > LONGEST_WITHOUT_SNAPSHOT;
        let recorded = if appends_snapshot {
            head = head.saturating_add(1);
            Some(head)
        } else {
            met.then_some(latest)
        };
        let hint_after = if recorded > Some(stored.unwrap_or(0)) { recorded } else { stored };
        let done = ForecastEnd { rows, head, appends_snapshot, hint: hint_after };
        Forecast { hint: Some(hint), folded_from: Some(folded_from), end: fault.map_or(Ok(done), Err) }
    }
}

impl HintReport {
    /// The finding that the hint is, if it is one.
    pub(super) fn finding(&self) -> Option<Finding> {
        let id = self.state.finding()?;
        Some(Finding::new(id).with_values(super::number(self.latest), super::number(self.stored.unwrap_or(0))))
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.open_object().name(b"state").text(self.state.as_str().as_bytes());
        optional(out.name(b"stored"), self.stored);
        out.name(b"latest").decimal_text(self.latest).close_object();
    }
}

impl Forecast {
    pub(super) fn write(&self, out: &mut Writer) {
        out.open_object();
        if let Some(hint) = self.hint {
            out.name(b"hint").text(hint.as_str().as_bytes());
        }
        if let Some(from) = self.folded_from {
            out.name(b"foldedFrom").decimal_text(from);
        }
        match &self.end {
            Ok(end) => {
                out.name(b"rows").decimal_text(end.rows).name(b"head").decimal_text(end.head);
                out.name(b"appendsSnapshot").boolean(end.appends_snapshot);
                optional(out.name(b"hintAfter"), end.hint);
            }
            Err(failure) => failure.write(out.name(b"error")),
        }
        out.close_object();
    }
}

fn optional(out: &mut Writer, value: Option<u64>) {
    match value {
        Some(value) => out.decimal_text(value),
        None => out.null(),
    };
}
