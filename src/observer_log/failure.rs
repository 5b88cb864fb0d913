//! What ends a machine without its result. Always names the sequence of the row at fault.

use core::fmt;

use super::decode::RowFault;
use super::protocol::{Answer, Want};
use super::refusal::Refusal;
use crate::error::{found_byte, Code, Error};
use crate::json::Writer;

/// Why an append was refused before anything was written: a mistake of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// A snapshot is due and none was given.
    SnapshotMissing,
    /// A snapshot was given and none is due.
    SnapshotNotDue,
    /// The row itself is a snapshot.
    RowIsSnapshot,
    /// What was given as the snapshot is another row.
    SnapshotIsAnotherRow,
}

impl Misuse {
    /// The mistake as reports spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Misuse::SnapshotMissing => "snapshot_missing",
            Misuse::SnapshotNotDue => "snapshot_not_due",
            Misuse::RowIsSnapshot => "row_is_snapshot",
            Misuse::SnapshotIsAnotherRow => "snapshot_is_another_row",
        }
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Misuse::SnapshotMissing => ("a snapshot, which is due", "none"),
            Misuse::SnapshotNotDue => ("no snapshot, as none is due", "one"),
            Misuse::RowIsSnapshot => ("a track, advance or arms row", "a snapshot"),
            Misuse::SnapshotIsAnotherRow => ("a snapshot", "another row"),
        }
    }
}

/// What a store refused or could not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFailure {
    /// The head was another: nothing was appended.
    SequenceConflict {
        /// The head at which the append was sent.
        expected: u64,
        /// The store's.
        actual: u64,
    },
    /// The stored number was another: nothing was stored.
    ValueConflict {
        /// The number that was to be replaced.
        expected: u64,
        /// The store's.
        actual: u64,
    },
    /// A write may or may not have been made.
    OutcomeUnknown,
    /// The call failed; the host knows why.
    Failed,
}

/// What ended a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A stored text is no row.
    Row {
        /// The row's sequence.
        sequence: u64,
        /// What is wrong with it.
        fault: RowFault,
    },
    /// A row's sequence is not the one expected next; both numbers are 2^64-1 when none can follow it.
    Sequence {
        /// The sequence expected.
        expected: u64,
        /// The row's.
        actual: u64,
    },
    /// A store answered an append with another head than follows from it. The rows are in the store.
    AssignedSequence {
        /// The head expected.
        expected: u64,
        /// The one answered.
        actual: u64,
    },
    /// The aggregate refused a stored row.
    CorruptRow {
        /// The row's sequence.
        sequence: u64,
        /// Why.
        reason: Refusal,
    },
    /// An append was asked for wrongly. Nothing was written.
    AppendMisuse {
        /// The head of the append.
        sequence: u64,
        /// The mistake.
        misuse: Misuse,
    },
    /// What became of an append cannot be told from the tail of the stream: only a restore can.
    AppendUnresolved {
        /// The head of the append.
        sequence: u64,
    },
    /// The store refused, or could not say.
    Store(StoreFailure),
    /// An answer does not fit what was wanted.
    Answer {
        /// What was wanted.
        wanted: &'static str,
        /// What was given.
        given: &'static str,
    },
}

impl Failure {
    /// What an answer that is not the wanted one comes to.
    pub(super) fn of_answer(wanted: &Want<'_>, answer: &Answer<'_>) -> Failure {
        match (wanted, answer) {
            (_, Answer::Failed) => Failure::Store(StoreFailure::Failed),
            (_, Answer::OutcomeUnknown) => Failure::Store(StoreFailure::OutcomeUnknown),
            (Want::AppendAll { expected_head, .. }, Answer::SequenceConflict { actual }) => {
                Failure::Store(StoreFailure::SequenceConflict { expected: *expected_head, actual: *actual })
            }
            (Want::Swap { old, .. }, Answer::ValueConflict { actual }) => {
                Failure::Store(StoreFailure::ValueConflict { expected: *old, actual: *actual })
            }
            _ => Failure::Answer { wanted: wanted.name(), given: answer.name() },
        }
    }

    /// The kind, as the specification spells it; `append_misuse` and `answer` are ours.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Row { fault: RowFault::Malformed(_), .. } => "json",
            Failure::Row { fault: RowFault::Version { .. }, .. } => "schema_version",
            Failure::Sequence { .. } => "sequence",
            Failure::AssignedSequence { .. } => "assigned_sequence",
            Failure::CorruptRow { .. } => "corrupt_row",
            Failure::AppendMisuse { .. } => "append_misuse",
            Failure::AppendUnresolved { .. } => "append_unresolved",
            Failure::Store(_) => "store",
            Failure::Answer { .. } => "answer",
        }
    }

    /// The code under which hosts know the failure.
    pub fn code(&self) -> Code {
        match self {
            Failure::Row { fault: RowFault::Malformed(_), .. } => Code::RowMalformed,
            Failure::Row { fault: RowFault::Version { .. }, .. } => Code::RowVersion,
            Failure::Sequence { .. } => Code::RowSequence,
            Failure::AssignedSequence { .. } => Code::AssignedSequence,
            Failure::CorruptRow { .. } => Code::CorruptRow,
            Failure::AppendMisuse { .. } => Code::AppendMisuse,
            Failure::AppendUnresolved { .. } => Code::AppendUnresolved,
            Failure::Store(StoreFailure::SequenceConflict { .. }) => Code::SequenceConflict,
            Failure::Store(StoreFailure::OutcomeUnknown) => Code::OutcomeUnknown,
            Failure::Store(StoreFailure::ValueConflict { .. } | StoreFailure::Failed) => Code::StoreFailed,
            Failure::Answer { .. } => Code::AnswerMalformed,
        }
    }

    /// The sequence of the row at fault, or of the append.
    pub fn sequence(&self) -> Option<u64> {
        match *self {
            Failure::Row { sequence, .. }
            | Failure::CorruptRow { sequence, .. }
            | Failure::AppendMisuse { sequence, .. }
            | Failure::AppendUnresolved { sequence } => Some(sequence),
            Failure::Sequence { actual, .. } => Some(actual),
            Failure::Store(StoreFailure::SequenceConflict { expected, .. }) => Some(expected),
            Failure::AssignedSequence { .. } | Failure::Store(_) | Failure::Answer { .. } => None,
        }
    }

    /// What was expected and what was found, in words.
    pub fn texts(&self) -> (String, String) {
        let numbers = |expected: &str, wanted: u64, found: &str, actual: u64| {
            (format!("{expected}{wanted}"), format!("{found}{actual}"))
        };
        match *self {
            Failure::Row { fault: RowFault::Malformed(error), .. } => (error.expected.into(), found_byte(error.found)),
            Failure::Row { fault: RowFault::Version { expected, found }, .. } => {
                numbers("schema_version ", expected.into(), "", found.into())
            }
            Failure::Sequence { expected: u64::MAX, .. } => {
                ("a sequence that another can follow".into(), "the end of the numbers".into())
            }
            Failure::Sequence { expected, actual } => numbers("the row at sequence ", expected, "the one at ", actual),
            Failure::AssignedSequence { expected, actual } => numbers("the head ", expected, "", actual),
            Failure::CorruptRow { reason, .. } => ("a row that the aggregate takes".into(), reason.to_string()),
            Failure::AppendMisuse { misuse, .. } => {
                let (expected, found) = misuse.texts();
                (expected.into(), found.into())
            }
            Failure::AppendUnresolved { .. } => {
                ("at most the two rows of one append, up to the stored head".into(), "something else".into())
            }
            Failure::Store(StoreFailure::SequenceConflict { expected, actual }) => numbers("the head ", expected, "", actual),
            Failure::Store(StoreFailure::ValueConflict { expected, actual }) => numbers("the number ", expected, "", actual),
            Failure::Store(StoreFailure::OutcomeUnknown) => ("an answer that can be relied on".into(), "none".into()),
            Failure::Store(StoreFailure::Failed) => ("an answer".into(), "a failure".into()),
            Failure::Answer { wanted, given } => (format!("an answer to {wanted}"), given.into()),
        }
    }

    /// Writes the failure as a JSON object: `kind` and the members that the specification compares, then `code`, `message` and
    /// `at`, the sequence of the row at fault, with the `offset` into its text.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"kind").text(self.kind().as_bytes());
        match *self {
            Failure::Row { fault: RowFault::Version { found, .. }, .. } => {
                out.name(b"version").integer(found.into());
            }
            Failure::Row { .. } => {}
            Failure::Sequence { expected, actual } | Failure::AssignedSequence { expected, actual } => {
                out.name(b"expected").decimal_text(expected).name(b"actual").decimal_text(actual);
            }
            Failure::CorruptRow { sequence, reason } => {
                out.name(b"sequence").decimal_text(sequence);
                reason.write(out.name(b"reason"));
            }
            Failure::AppendMisuse { sequence, misuse } => {
                out.name(b"sequence").decimal_text(sequence).name(b"misuse").text(misuse.as_str().as_bytes());
            }
            Failure::AppendUnresolved { sequence } => {
                out.name(b"sequence").decimal_text(sequence);
            }
            Failure::Store(failure) => failure.write(out),
            Failure::Answer { wanted, given } => {
                out.name(b"wanted").text(wanted.as_bytes()).name(b"given").text(given.as_bytes());
            }
        }
        out.name(b"code").text(self.code().as_str().as_bytes());
        out.name(b"message").text(self.to_string().as_bytes());
        if let Some(sequence) = self.sequence() {
            out.name(b"at").decimal_text(sequence);
        }
        if let Failure::Row { fault: RowFault::Malformed(error), .. } = self {
            out.name(b"offset").integer(error.offset as u64);
        }
        out.close_object();
    }
}

impl StoreFailure {
    /// The failure's name, as the specification spells it.
    pub fn name(&self) -> &'static str {
        match self {
            StoreFailure::SequenceConflict { .. } => "sequence_conflict",
            StoreFailure::ValueConflict { .. } => "value_conflict",
            StoreFailure::OutcomeUnknown => "outcome_unknown",
            StoreFailure::Failed => "failed",
        }
    }

    fn write(&self, out: &mut Writer) {
        out.name(b"name").text(self.name().as_bytes());
        if let StoreFailure::SequenceConflict { expected, actual } | StoreFailure::ValueConflict { expected, actual } = *self {
            out.name(b"expected").decimal_text(expected).name(b"actual").decimal_text(actual);
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(*self).fmt(f)
    }
}

impl core::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let (expected, found) = failure.texts();
        let mut error = Error::new(failure.code(), expected, found);
        error.seq = failure.sequence();
        if let Failure::Row { fault: RowFault::Malformed(syntax), .. } = failure {
            error.offset = Some(syntax.offset as u64);
        }
        error
    }
}
