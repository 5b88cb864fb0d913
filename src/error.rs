//! Errors: what a malformed call gets. One table of stable codes, one shape of details.
//!
//! What a *store* or a *journal* has wrong is a [finding](crate::finding), not an error, wherever a verification can go on.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::json::{SyntaxError, Writer};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $meaning:literal,)+) => {
        /// A stable error code. The table is the same for Rust and JavaScript; hosts add no codes of their own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] $name,)+
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// The code as it appears in `error.code`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// What the code says, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning,)+ }
            }
        }
    };
}

codes! {
    FoldIncomplete = "fold_incomplete": "the journal refers to what the store does not hold",
    PayloadNotJson = "payload_not_json": "a payload is no JSON text",
    TextNotUtf8 = "text_not_utf8": "a text is not UTF-8",
    EntryConflict = "entry_conflict": "two entries of one run have the same seq and different content",
    EntryOutOfOrder = "entry_out_of_order": "an entry's seq is not above the last one of its run",
    RunOutOfOrder = "run_out_of_order": "runs do not come in ascending order of their UTF-8 bytes",
    RunRepeated = "run_repeated": "a run comes twice",
    BoundBelowFloor = "bound_below_floor": "a bound lies below the floor, whose fold holds later facts",
    BoundInvalid = "bound_invalid": "a bound is no finite number",
    SeqInvalid = "seq_invalid": "a seq is no whole number from 0 to 2^63-1",
    StateMalformed = "state_malformed": "an encoded fold is malformed",
    BaseNotObject = "base_not_object": "the base of a checkpoint state is no JSON object",
    PageMalformed = "page_malformed": "the parts of a page do not fit together",
    AnswerMalformed = "answer_malformed": "an answer with stored rows is malformed",
    AnswerMissing = "answer_missing": "rows that were asked for were not answered",
    CallOutOfOrder = "call_out_of_order": "a call came where the protocol has no place for it",
    TooLarge = "too_large": "more than 4 GiB of names, or 2^32 rows, in one run",
    RowMalformed = "row_malformed": "a stored row is no JSON text of a row's shape",
    RowVersion = "row_version": "a stored row has a schema version that its kind does not carry",
    RowSequence = "row_sequence": "a row's sequence is not the one that comes next, or none can follow it",
    CorruptRow = "corrupt_row": "a stored row contradicts the rows before it",
    RequestRefused = "request_refused": "the aggregate refuses what was asked of it; nothing changed",
    AppendMisuse = "append_misuse": "a snapshot is missing, not due or none, or the row is one; nothing was written",
    AssignedSequence = "assigned_sequence": "a store answered an append with another head than follows from it",
    AppendUnresolved = "append_unresolved": "what became of an append cannot be told from the stream's tail; restore",
    SequenceConflict = "sequence_conflict": "another writer has appended to the stream; nothing was written",
    OutcomeUnknown = "outcome_unknown": "a write may or may not have been made",
    StoreFailed = "store_failed": "a store could not do what was asked of it",
    PayloadTooDeep = "payload_too_deep": "a live value is nested too deep for JSON.stringify; give its text instead",
    ValueNotJson = "value_not_json": "a live value has no JSON text",
    ArgumentInvalid = "argument_invalid": "an argument has the wrong type",
    OptionUnknown = "option_unknown": "an option has an unknown name",
    OptionInvalid = "option_invalid": "an option has a wrong value",
    NotInitialized = "not_initialized": "the module is not loaded yet; call init() and await it",
    EngineTrap = "engine_trap": "the module trapped; it was made anew and the next call works",
    EngineRestarted = "engine_restarted": "an object belongs to an instance that is gone after a trap",
    Disposed = "disposed": "an object was used after it was disposed of",
    StoreNotSqlite = "store_not_sqlite": "a file is no SQLite database",
    StoreUnreadable = "store_unreadable": "a store could not be opened or read",
    StoreCorrupt = "store_corrupt": "a store is damaged or truncated",
    StoreBusy = "store_busy": "a store stayed locked beyond the busy timeout",
    StoreTableMissing = "store_table_missing": "a store lacks a table",
    StoreColumnMissing = "store_column_missing": "a table of a store lacks a column",
    StoreReadOnly = "store_read_only": "a store cannot be written",
    StoreTooOld = "store_too_old": "the SQLite library is older than 3.43",
    StalePlan = "stale_plan": "a plan was made from another state of the store; nothing was written",
    PlanEmpty = "plan_refused": "there is no plan, because the verification refused the store",
    DeletesPending = "deletes_pending": "a plan deletes pending clocks, which allowDeletePending must allow",
    ClearsConsumption = "clears_consumption": "a plan clears consumptions, which allowUnconsume must allow",
    RowsChangedMismatch = "rows_changed_mismatch": "other rows changed than planned; everything was rolled back",
    RowNotWritable = "row_not_writable": "the store refused a planned row; everything was rolled back",
    NestedTransaction = "nested_transaction": "the connection is inside a transaction that writing cannot join",
    Aborted = "aborted": "the caller stopped the work",
    ExportMalformed = "export_malformed": "an exported journal is malformed",
    RunUnknown = "run_unknown": "the store knows no such run",
    StreamUnknown = "stream_unknown": "the store has no such stream",
}

/// A reference of the journal that the store does not join, with exactly the members that reports of the reference have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjoined {
    /// Why it does not join.
    pub reason: &'static str,
    /// The run, for a floor without a fold; else the execution of the row. WTF-8.
    pub execution_id: Vec<u8>,
    /// The row's flow and name, for all but floors. WTF-8.
    pub row: Option<(Vec<u8>, Vec<u8>)>,
}

impl Unjoined {
    /// Writes the reference as a JSON object: `reason`, `executionId`, and for rows `flowName` and `name`.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"reason").text(self.reason.as_bytes());
        out.name(b"executionId").text(&self.execution_id);
        if let Some((flow, name)) = &self.row {
            out.name(b"flowName").text(flow).name(b"name").text(name);
        }
        out.close_object();
    }
}

/// A typed error: a stable code, where it was met, what was expected there and what was found.
///
/// Its [`Details`] stand behind a pointer, so that a result that carries no error stays small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct Error(Box<Details>);

impl Deref for Error {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

/// What an [`Error`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The stable code.
    pub code: Code,
    /// The run concerned, as WTF-8.
    pub run_id: Option<Vec<u8>>,
    /// The seq of the entry concerned.
    pub seq: Option<u64>,
    /// A byte offset into the text concerned.
    pub offset: Option<u64>,
    /// What was expected.
    pub expected: String,
    /// What was found instead.
    pub found: String,
    /// For [`Code::FoldIncomplete`]: every reference that does not join.
    pub unjoined: Vec<Unjoined>,
}

impl Error {
    /// An error with what was expected and what was found.
    pub fn new(code: Code, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Error(Box::new(Details {
            code,
            run_id: None,
            seq: None,
            offset: None,
            expected: expected.into(),
            found: found.into(),
            unjoined: Vec::new(),
        }))
    }

    /// A text that is no JSON.
    pub fn syntax(code: Code, error: &SyntaxError) -> Self {
        let mut made = Error::new(code, error.expected, found_byte(error.found));
        made.offset = Some(error.offset as u64);
        made
    }

    /// A run compacted below a checkpoint that keeps no fold.
    pub fn checkpoint_missing(run_id: &[u8]) -> Self {
        let mut made = Error::new(
            Code::FoldIncomplete,
            "a checkpoint that keeps a deferred/clock fold",
            "a compacted checkpoint without one",
        );
        made.unjoined.push(Unjoined {
            reason: crate::finding::Id::CheckpointMissing.as_str(),
            execution_id: run_id.to_vec(),
            row: None,
        });
        made.in_run(run_id)
    }

    /// The same error, naming a run.
    pub fn in_run(mut self, run_id: &[u8]) -> Self {
        self.run_id = Some(run_id.to_vec());
        self
    }

    /// The same error, naming a seq.
    pub fn at_seq(mut self, seq: u64) -> Self {
        self.seq = Some(seq);
        self
    }

    fn message(&self) -> String {
        use fmt::Write as _;
        let mut text = format!("{}: expected {}, found {}", self.code.meaning(), self.expected, self.found);
        // Writing to a String cannot fail.
        if let Some(run) = &self.run_id {
            let _ = write!(text, "; run {}", String::from_utf8_lossy(run));
        }
        if let Some(seq) = self.seq {
            let _ = write!(text, ", seq {seq}");
        }
        if let Some(offset) = self.offset {
            let _ = write!(text, ", byte {offset}");
        }
        text
    }
}

/// How a report names the byte at which a text stopped making sense.
pub fn found_byte(found: Option<u8>) -> String {
    match found {
        None => "the end of the text".into(),
        Some(byte) if byte.is_ascii_graphic() => format!("'{}'", char::from(byte)),
        Some(byte) => format!("byte 0x{byte:02x}"),
    }
}
