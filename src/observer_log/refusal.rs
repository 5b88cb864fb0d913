//! Why the aggregate refuses. A refusal changes nothing.

use core::fmt;

use crate::error::{Code, Error};
use crate::json::Writer;

/// Why a row or a request was refused, with the numbers that decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The conversation is tracked already.
    AlreadyTracked {
        /// The conversation.
        conversation_id: u64,
    },
    /// An advance names a conversation that is not tracked.
    ConversationUnknown {
        /// The conversation.
        conversation_id: u64,
    },
    /// An advance does not go beyond the current progress.
    NotAdvancing {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        current: u64,
        /// The progress asked for.
        presented: u64,
    },
    /// An arm names a conversation that is not tracked.
    ArmWithoutProgress {
        /// The conversation.
        conversation_id: u64,
    },
    /// An arm's epoch is not its conversation's progress.
    ArmEpochMismatch {
        /// The conversation.
        conversation_id: u64,
        /// The arm's epoch.
        armed_epoch: u64,
        /// The progress.
        current: u64,
    },
    /// A snapshot does not list what the aggregate lists, pair for pair.
    SnapshotDisagrees {
        /// Whether the progress list is the same.
        same_progress: bool,
        /// Whether the list of arms is the same.
        same_armed: bool,
    },
    /// A list of progress names a conversation twice.
    DuplicateProgress {
        /// The conversation.
        conversation_id: u64,
    },
    /// A list of arms names a conversation twice.
    DuplicateArm {
        /// The conversation.
        conversation_id: u64,
    },
    /// A recover request has more entries than allowed.
    TooManyEntries {
        /// How many it has.
        presented: u64,
        /// How many are allowed.
        max_entries: u64,
    },
    /// A recover request names a conversation twice.
    DuplicateConversation {
        /// The conversation.
        conversation_id: u64,
        /// The place of its first entry, from 0.
        first_index: u64,
        /// The place of its second entry.
        duplicate_index: u64,
    },
    /// A recover request needs more places than its connection has.
    ConnectionCapacityExceeded {
        /// The first conversation without a place.
        conversation_id: u64,
        /// How many places there are.
        limit: u64,
    },
    /// An entry of a recover request names a conversation that is not tracked.
    EntryUnknown {
        /// The conversation.
        conversation_id: u64,
        /// The entry's epoch.
        presented: u64,
    },
    /// An entry of a recover request has an epoch above the progress.
    EpochAhead {
        /// The conversation.
        conversation_id: u64,
        /// The entry's epoch.
        presented: u64,
        /// The progress.
        current: u64,
    },
    /// An `arms` row where tail recovery looks: plans are recovered by a restore.
    ArmsRow,
}

impl Refusal {
    /// The refusal's kind, as the specification spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::AlreadyTracked { .. } => "already_tracked",
            Refusal::ConversationUnknown { .. } | Refusal::EntryUnknown { .. } => "conversation_unknown",
            Refusal::NotAdvancing { .. } => "not_advancing",
            Refusal::ArmWithoutProgress { .. } => "arm_without_progress",
            Refusal::ArmEpochMismatch { .. } => "arm_epoch_mismatch",
            Refusal::SnapshotDisagrees { .. } => "snapshot_disagrees",
            Refusal::DuplicateProgress { .. } => "duplicate_progress",
            Refusal::DuplicateArm { .. } => "duplicate_arm",
            Refusal::TooManyEntries { .. } => "too_many_entries",
            Refusal::DuplicateConversation { .. } => "duplicate_conversation",
            Refusal::ConnectionCapacityExceeded { .. } => "connection_capacity_exceeded",
            Refusal::EpochAhead { .. } => "epoch_ahead",
            Refusal::ArmsRow => "arms_row",
        }
    }

    /// The numbers by name, in the order in which the specification lists them.
    fn numbers(&self) -> [Option<(&'static str, u64)>; 3] {
        let conversation = |id: u64| Some(("conversation_id", id));
        match *self {
            Refusal::AlreadyTracked { conversation_id }
            | Refusal::ConversationUnknown { conversation_id }
            | Refusal::ArmWithoutProgress { conversation_id }
            | Refusal::DuplicateProgress { conversation_id }
            | Refusal::DuplicateArm { conversation_id } => [conversation(conversation_id), None, None],
            Refusal::NotAdvancing { conversation_id, current, presented } => {
                [conversation(conversation_id), Some(("current", current)), Some(("presented", presented))]
            }
            Refusal::ArmEpochMismatch { conversation_id, armed_epoch, current } => {
                [conversation(conversation_id), Some(("armed_epoch", armed_epoch)), Some(("current", current))]
            }
            Refusal::TooManyEntries { presented, max_entries } => {
                [Some(("presented", presented)), Some(("max_entries", max_entries)), None]
            }
            Refusal::DuplicateConversation { conversation_id, first_index, duplicate_index } => [
                conversation(conversation_id),
                Some(("first_index", first_index)),
                Some(("duplicate_index", duplicate_index)),
            ],
            Refusal::ConnectionCapacityExceeded { conversation_id, limit } => {
                [conversation(conversation_id), Some(("limit", limit)), None]
            }
            Refusal::EntryUnknown { conversation_id, presented } => {
                [conversation(conversation_id), Some(("presented", presented)), None]
            }
            Refusal::EpochAhead { conversation_id, presented, current } => {
                [conversation(conversation_id), Some(("presented", presented)), Some(("current", current))]
            }
            Refusal::SnapshotDisagrees { .. } | Refusal::ArmsRow => [None, None, None],
        }
    }

    /// The two lists of a snapshot, each `same` or `differs`.
    fn lists(&self) -> Option<[(&'static str, &'static str); 2]> {
        let word = |same: bool| if same { "same" } else { "differs" };
        match *self {
            Refusal::SnapshotDisagrees { same_progress, same_armed } => {
                Some([("progress", word(same_progress)), ("armed", word(same_armed))])
            }
            _ => None,
        }
    }

    /// Writes the refusal as a JSON object: its kind, then its numbers as decimal text.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"kind").text(self.kind().as_bytes());
        for (name, value) in self.numbers().into_iter().flatten() {
            out.name(name.as_bytes()).decimal_text(value);
        }
        for (name, word) in self.lists().into_iter().flatten() {
            out.name(name.as_bytes()).text(word.as_bytes());
        }
        out.close_object();
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        for (name, value) in self.numbers().into_iter().flatten() {
            write!(f, ", {name} {value}")?;
        }
        for (name, word) in self.lists().into_iter().flatten() {
            write!(f, ", {name} {word}")?;
        }
        Ok(())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::new(Code::RequestRefused, "a request that the aggregate takes", refusal.to_string())
    }
}
