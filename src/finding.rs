//! Findings: what a verification reports about a store. Values, not errors: stable ids in a fixed order, never capped in number.

use crate::json::Writer;

/// What a class of findings means for a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The journal contradicts itself, or an earlier report of it, or cannot be read: a rebuild is refused.
    Refused,
    /// The journal refers to what the store does not hold: a rebuild is refused.
    Unjoined,
    /// Something could not be checked, and the caller asked that everything be: a rebuild is refused.
    Unverifiable,
    /// A table says something else than the journal: a rebuild repairs it.
    Drift,
}

impl Class {
    /// The class as reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Refused => "refused",
            Class::Unjoined => "unjoined",
            Class::Unverifiable => "unverifiable",
            Class::Drift => "drift",
        }
    }
}

/// What the findings of a verification come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// What is stored says what the journal says.
    Match,
    /// It does not, and a rebuild repairs it.
    Drift,
    /// Something does not join, so nothing must be written.
    Refused,
    /// Not everything was looked at.
    Partial,
}

impl Verdict {
    /// The verdict of a verification that looked at everything.
    pub fn of(findings: &[Finding]) -> Verdict {
        match findings.iter().map(|finding| finding.id.class()).min() {
            None => Verdict::Match,
            Some(Class::Drift) => Verdict::Drift,
            Some(Class::Refused | Class::Unjoined | Class::Unverifiable) => Verdict::Refused,
        }
    }

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

macro_rules! ids {
    ($($name:ident = $id:literal, $class:ident: $meaning:literal, $advice:literal;)+) => {
        /// A finding's stable id. Their order here is the order in which a report lists them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Id {
            $(#[doc = $meaning] $name,)+
        }

        impl Id {
            /// Every id, in report order.
            pub const ALL: &'static [Id] = &[$(Id::$name,)+];

            /// The id as reports spell it.
            pub fn as_str(self) -> &'static str {
                match self { $(Id::$name => $id,)+ }
            }

            /// Its class.
            pub fn class(self) -> Class {
                match self { $(Id::$name => Class::$class,)+ }
            }

            /// What it says, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Id::$name => $meaning,)+ }
            }

            /// What to do about it, in a few words.
            pub fn advice(self) -> &'static str {
                match self { $(Id::$name => $advice,)+ }
            }
        }
    };
}

ids! {
    EntryConflict = "entry_conflict", Refused: "two entries of a run have one seq and different content", "find out which one the engine acted on";
    EntryOutOfOrder = "entry_out_of_order", Refused: "an entry's seq is not above the last one", "read the run again in order of seq";
    PayloadNotJson = "payload_not_json", Refused: "a payload is no JSON text", "restore the entry from a backup";
    TextNotUtf8 = "text_not_utf8", Refused: "a payload is not UTF-8", "restore the entry from a backup";
    TooLarge = "too_large", Refused: "a run has more than 4 GiB of names, or 2^32 rows", "leave the run out";
    JournalShorter = "journal_shorter", Refused: "a run ends before the seq that an earlier report covered", "restore the missing entries before anything is rebuilt";
    JournalRewritten = "journal_rewritten", Refused: "the part of a run that an earlier report covered folds to something else", "compare with a backup: history was changed";
    RowMalformed = "row_malformed", Refused: "a stored row is no JSON text of a row's shape", "restore the row from a backup";
    RowVersion = "row_version", Refused: "a stored row has a schema version that its kind does not carry", "find out which program wrote it";
    RowSequence = "row_sequence", Refused: "rows are missing, repeated or out of order before this one", "restore the missing rows, or the hint that leads past them";
    CorruptRow = "corrupt_row", Refused: "a stored row contradicts the rows before it", "find out whether it, or a row before it, was changed";
    SnapshotDisagrees = "snapshot_disagrees", Refused: "a snapshot does not say what the rows before it come to", "find out whether it, or a row before it, was changed";
    PageShort = "page_short", Refused: "the store gave fewer rows than were asked for though more follow: a restore ends there", "make the store fill its pages";
    RowsMissingAtEnd = "rows_missing_at_end", Refused: "the stored head lies beyond the last row", "restore the missing rows: a restore does not notice, and appends conflict";
    HeadBelowRows = "head_below_rows", Refused: "the stored head lies below the last row", "correct the head: appends conflict";
    HintUnreadable = "hint_unreadable", Refused: "the hint names a row that cannot be read as a snapshot: every restore fails", "restore the row, or store another hint";
    HintDisagrees = "hint_disagrees", Refused: "the hint names a snapshot that contradicts the rows before it: every restore believes it", "find out which is right before anything else is appended";
    CheckpointMissing = "checkpoint_missing", Unjoined: "a run was compacted below a checkpoint that keeps no fold", "restore the checkpoint, or the entries below it";
    RunMissing = "run_missing", Unjoined: "a clock belongs to a run that has no row", "restore the run's row, or leave the run out";
    ClockConflict = "clock_conflict", Unjoined: "two or more runs record one clock", "find out which run owns the clock";
    RowMissing = "row_missing", Unjoined: "a recorded completion has no row", "restore the row: a journal holds only digests of values";
    DigestMismatch = "digest_mismatch", Unjoined: "a stored completion is not the text that was recorded", "restore the stored text";
    DigestAbsent = "digest_absent", Unverifiable: "a completion was recorded without a digest", "nothing to do: an old engine wrote it";
    DigestMalformed = "digest_malformed", Unverifiable: "a completion was recorded with a digest that is none", "look at the entry: its value cannot be checked";
    MetadataUnchecked = "metadata_unchecked", Unverifiable: "a completion was recorded without a digest of its metadata", "nothing to do: an old engine wrote it";
    UnexplainedAboveLimit = "unexplained_above_limit", Unverifiable: "more stored completions than allowed are explained by no entry", "find out who wrote them";
    ClockMissing = "clock_missing", Drift: "a recorded clock has no row", "apply inserts it";
    ClockDiffers = "clock_differs", Drift: "a clock's row says something else than the journal", "apply changes it";
    ClockUnexpected = "clock_unexpected", Drift: "a clock's row is explained by no entry", "apply deletes it";
    StampDiffers = "stamp_differs", Drift: "a completion's stamp is not the recorded one", "apply changes it";
    HintTooHigh = "hint_too_high", Drift: "the hint lies beyond the last row: restores fold everything until a snapshot passes it", "store the latest snapshot's number";
    HintWrong = "hint_wrong", Drift: "the hint names a row that is no snapshot, or is not there", "store the latest snapshot's number";
}

/// A value as a report shows it: JSON text, or nothing.
pub type Shown = Option<Vec<u8>>;

/// One thing found, with its address and both values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub id: Id,
    /// The run whose journal says so. WTF-8, as all names here.
    pub run_id: Option<Vec<u8>>,
    /// The entry's seq.
    pub seq: Option<u64>,
    /// The byte offset in a text.
    pub offset: Option<u64>,
    /// The row's flow, execution and name.
    pub row: Option<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    /// The member that differs, as the encoded fold names it.
    pub field: Option<&'static str>,
    /// What the journal says, as JSON text.
    pub expected: Shown,
    /// What was found, as JSON text.
    pub found: Shown,
    /// All runs that record the row, in byte order.
    pub runs: Vec<Vec<u8>>,
}

impl Finding {
    /// A finding with nothing but its id.
    pub fn new(id: Id) -> Self {
        Finding {
            id,
            run_id: None,
            seq: None,
            offset: None,
            row: None,
            field: None,
            expected: None,
            found: None,
            runs: Vec::new(),
        }
    }

    /// The same finding, naming a run.
    pub fn in_run(mut self, run_id: &[u8]) -> Self {
        self.run_id = Some(run_id.to_vec());
        self
    }

    /// The same finding, naming a row.
    pub fn at_row(mut self, flow: &[u8], execution: &[u8], name: &[u8]) -> Self {
        self.row = Some((flow.to_vec(), execution.to_vec(), name.to_vec()));
        self
    }

    /// The same finding, with both values.
    pub fn with_values(mut self, expected: Shown, found: Shown) -> Self {
        self.expected = expected;
        self.found = found;
        self
    }

    /// Writes the finding as a JSON object. Members that say nothing are left out; a seq is decimal text.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"id").text(self.id.as_str().as_bytes());
        out.name(b"class").text(self.id.class().as_str().as_bytes());
        if let Some(run_id) = &self.run_id {
            out.name(b"runId").text(run_id);
        }
        if let Some(seq) = self.seq {
            out.name(b"seq").decimal_text(seq);
        }
        if let Some(offset) = self.offset {
            out.name(b"offset").integer(offset);
        }
        if let Some((flow, execution, name)) = &self.row {
            out.name(b"flowName").text(flow).name(b"executionId").text(execution).name(b"name").text(name);
        }
        if let Some(field) = self.field {
            out.name(b"field").text(field.as_bytes());
        }
        if let Some(expected) = &self.expected {
            out.name(b"expected").raw(expected);
        }
        if let Some(found) = &self.found {
            out.name(b"found").raw(found);
        }
        if !self.runs.is_empty() {
            out.name(b"runs").open_array();
            for run in &self.runs {
                out.text(run);
            }
            out.close_array();
        }
        out.close_object();
    }
}

/// A text as a report shows it.
pub fn shown_text(wtf8: &[u8]) -> Shown {
    let mut out = Vec::new();
    crate::json::write_text(&mut out, wtf8);
    Some(out)
}

/// A whole number, or `null`, as a report shows it.
pub fn shown_integer(value: Option<u64>) -> Shown {
    let mut out = Vec::new();
    match value {
        Some(value) => crate::json::write_integer(&mut out, value),
        None => out.extend_from_slice(b"null"),
    }
    Some(out)
}
