//! What a caller asks of a [log](super::log), and how it ended.

use super::aggregate::{Fired, Pair};
use super::failure::Failure;
use super::live::Status;
use super::protocol::Publication;
use super::refusal::Refusal;
use super::restore::HintVerdict;
use crate::json::Writer;

/// What a caller wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing but that the stream is restored and settled.
    Open,
    /// A conversation is to be tracked.
    Track {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        progress: u64,
    },
    /// A conversation's progress is to grow.
    Advance {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        progress: u64,
    },
    /// Conversations are to be armed, or said to have moved on ([`super::live::Live::recover`]).
    Recover {
        /// Each conversation and epoch.
        entries: Vec<Pair>,
        /// Entries allowed.
        max_entries: u64,
        /// Conversations that a connection may track.
        connection_limit: u64,
        /// Those that the asking connection tracks already.
        connection_tracks: Vec<u64>,
    },
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What it did, or why it did nothing that is sure.
    pub result: Result<Done, Rejected>,
    /// Arms that fired in appends whose outcome was only found out by tail recovery: those before this change, or its own.
    pub publications: Vec<Publication>,
    /// The restore that this change needed.
    pub restored: Option<RestoredFrom>,
    /// Failures to record the hint.
    pub hint_failures: u64,
    /// The head now; not known after a failure that only a restore can clear up.
    pub head: Option<u64>,
}

/// A change that was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// The arm that an advance fired.
    pub fired: Option<Fired>,
    /// What was asked, entry by entry.
    pub statuses: Vec<Status>,
}

/// A change that was not made, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// The aggregate refuses it. Nothing was written.
    Refused(Refusal),
    /// A machine ended without its result.
    Failed(Failure),
}

/// Where a restore began and what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredFrom {
    /// What was made of the hint.
    pub hint: HintVerdict,
    /// The sequence from which rows were folded.
    pub folded_from: u64,
    /// How many rows were folded.
    pub rows: u64,
    /// Whether a snapshot was appended.
    pub snapshot_appended: bool,
}

impl Outcome {
    /// Writes the outcome as a JSON object: `refused` or `error` when the change was not made, or else what it did.
    pub fn write(&self, out: &mut Writer) {
        out.open_object();
        match &self.result {
            Ok(done) => {
                if let Some(fired) = done.fired {
                    fired.write(out.name(b"fired"));
                }
                out.name(b"statuses").open_array();
                for status in &done.statuses {
                    status.write(out);
                }
                out.close_array();
            }
            Err(Rejected::Refused(refusal)) => refusal.write(out.name(b"refused")),
            Err(Rejected::Failed(failure)) => failure.write(out.name(b"error")),
        }
        out.name(b"publications").open_array();
        for publication in &self.publications {
            publication.write(out);
        }
        out.close_array();
        if let Some(restored) = &self.restored {
            out.name(b"restored").open_object().name(b"hint").text(restored.hint.as_str().as_bytes());
            out.name(b"foldedFrom").decimal_text(restored.folded_from).name(b"rows").decimal_text(restored.rows);
            out.name(b"snapshotAppended").boolean(restored.snapshot_appended).close_object();
        }
        out.name(b"hintFailures").integer(self.hint_failures);
        if let Some(head) = self.head {
            out.name(b"head").decimal_text(head);
        }
        out.close_object();
    }
}
