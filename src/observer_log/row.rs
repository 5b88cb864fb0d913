//! A row: what it says, and its one spelling as stored text.
//!
//! ```text
//! {"schema_version":1,"row":{"row":"track","conversation_id":1,"observer_progress":0}}
//! {"schema_version":1,"row":{"row":"advance","conversation_id":1,"observer_progress":9}}
//! {"schema_version":1,"row":{"row":"arms","arms":[[1,9],[4,0]]}}
//! {"schema_version":2,"row":{"row":"snapshot","progress":[[1,9],[4,0]],"armed":[[4,0]]}}
//! ```

use super::aggregate::{write_pairs, Pair};
use crate::json::{write_integer, Writer};

/// The four kinds of row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A conversation begins to be tracked.
    Track,
    /// A conversation's progress grows.
    Advance,
    /// Arms are installed.
    Arms,
    /// The whole aggregate is restated.
    Snapshot,
}

impl Kind {
    /// All four.
    pub const ALL: [Kind; 4] = [Kind::Track, Kind::Advance, Kind::Arms, Kind::Snapshot];

    /// The kind as rows spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Track => "track",
            Kind::Advance => "advance",
            Kind::Arms => "arms",
            Kind::Snapshot => "snapshot",
        }
    }

    /// The schema version that rows of this kind carry.
    pub fn schema_version(self) -> u8 {
        match self {
            Kind::Snapshot => 2,
            Kind::Track | Kind::Advance | Kind::Arms => 1,
        }
    }
}

/// A row whose lists are borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowRef<'a> {
    /// A conversation begins to be tracked, at this progress.
    Track {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        progress: u64,
    },
    /// A conversation's progress grows to this.
    Advance {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        progress: u64,
    },
    /// These arms are installed.
    Arms(&'a [Pair]),
    /// The aggregate is this.
    Snapshot {
        /// Every conversation and its progress.
        progress: &'a [Pair],
        /// Every armed conversation and its epoch.
        armed: &'a [Pair],
    },
}

/// A row that owns its lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A conversation begins to be tracked, at this progress.
    Track {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        progress: u64,
    },
    /// A conversation's progress grows to this.
    Advance {
        /// The conversation.
        conversation_id: u64,
        /// Its progress.
        progress: u64,
    },
    /// These arms are installed.
    Arms(Vec<Pair>),
    /// The aggregate is this.
    Snapshot {
        /// Every conversation and its progress.
        progress: Vec<Pair>,
        /// Every armed conversation and its epoch.
        armed: Vec<Pair>,
    },
}

impl Row {
    /// The row, its lists borrowed.
    pub fn as_ref(&self) -> RowRef<'_> {
        match self {
            Row::Track { conversation_id, progress } => {
                RowRef::Track { conversation_id: *conversation_id, progress: *progress }
            }
            Row::Advance { conversation_id, progress } => {
                RowRef::Advance { conversation_id: *conversation_id, progress: *progress }
            }
            Row::Arms(arms) => RowRef::Arms(arms),
            Row::Snapshot { progress, armed } => RowRef::Snapshot { progress, armed },
        }
    }

    /// The row's kind.
    pub fn kind(&self) -> Kind {
        self.as_ref().kind()
    }

    /// The row as stored text.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.as_ref().encode_to(&mut out);
        out
    }
}

impl RowRef<'_> {
    /// The row's kind.
    pub fn kind(&self) -> Kind {
        match self {
            RowRef::Track { .. } => Kind::Track,
            RowRef::Advance { .. } => Kind::Advance,
            RowRef::Arms(_) => Kind::Arms,
            RowRef::Snapshot { .. } => Kind::Snapshot,
        }
    }

    /// The row with lists of its own.
    pub fn to_row(&self) -> Row {
        match *self {
            RowRef::Track { conversation_id, progress } => Row::Track { conversation_id, progress },
            RowRef::Advance { conversation_id, progress } => Row::Advance { conversation_id, progress },
            RowRef::Arms(arms) => Row::Arms(arms.to_vec()),
            RowRef::Snapshot { progress, armed } => Row::Snapshot { progress: progress.to_vec(), armed: armed.to_vec() },
        }
    }

    /// Appends the row as stored text. Lists are written in the order in which the row holds them.
    pub fn encode_to(&self, out: &mut Vec<u8>) {
        let kind = self.kind();
        out.extend_from_slice(b"{\"schema_version\":");
        write_integer(out, u64::from(kind.schema_version()));
        out.extend_from_slice(b",\"row\":{\"row\":\"");
        out.extend_from_slice(kind.as_str().as_bytes());
        match *self {
            RowRef::Track { conversation_id, progress } | RowRef::Advance { conversation_id, progress } => {
                out.extend_from_slice(b"\",\"conversation_id\":");
                write_integer(out, conversation_id);
                out.extend_from_slice(b",\"observer_progress\":");
                write_integer(out, progress);
            }
            RowRef::Arms(arms) => {
                out.extend_from_slice(b"\",\"arms\":");
                encode_pairs(out, arms);
            }
            RowRef::Snapshot { progress, armed } => {
                out.extend_from_slice(b"\",\"progress\":");
                encode_pairs(out, progress);
                out.extend_from_slice(b",\"armed\":");
                encode_pairs(out, armed);
            }
        }
        out.extend_from_slice(b"}}");
    }

    /// Writes the row as a JSON object for people and programs: members as in the stored text, numbers as decimal texts.
    pub fn write(&self, out: &mut Writer) {
        out.open_object().name(b"row").text(self.kind().as_str().as_bytes());
        match *self {
            RowRef::Track { conversation_id, progress } | RowRef::Advance { conversation_id, progress } => {
                out.name(b"conversation_id").decimal_text(conversation_id);
                out.name(b"observer_progress").decimal_text(progress);
            }
            RowRef::Arms(arms) => write_pairs(out.name(b"arms"), arms),
            RowRef::Snapshot { progress, armed } => {
                write_pairs(out.name(b"progress"), progress);
                write_pairs(out.name(b"armed"), armed);
            }
        }
        out.close_object();
    }
}

fn encode_pairs(out: &mut Vec<u8>, pairs: &[Pair]) {
    out.push(b'[');
    for (place, (id, value)) in pairs.iter().enumerate() {
        out.extend_from_slice(if place == 0 { b"[" } else { b",[" });
        write_integer(out, *id);
        out.push(b',');
        write_integer(out, *value);
        out.push(b']');
    }
    out.push(b']');
}
