//! How payloads begin: nearly every entry of a run names the same flow and execution, in the same place and spelling. Where one begins as
//! the one before did, to the byte, there is nothing to read, compare or look up again.

use crate::json::begins_with;
use crate::names::Symbol;

/// A flow and an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) flow: Symbol,
    pub(super) execution: Symbol,
}

/// The beginning of the last payload that was read to its end, up to its second member, when its first two are flow and execution.
#[derive(Debug, Default)]
pub(super) struct Opening {
    text: Vec<u8>,
    owner: Option<Owner>,
}

impl Opening {
    /// Whose payload begins like this, and how many bytes of it tell that.
    #[inline(always)]
    pub(super) fn of(&self, payload: &[u8]) -> Option<(Owner, usize)> {
        let owner = self.owner?;
        begins_with(payload, &self.text).then_some((owner, self.text.len()))
    }

    /// Remembers how `payload` begins, if its names stand there compactly and without escapes.
    #[inline(never)]
    pub(super) fn remember(&mut self, payload: &[u8], flow: &[u8], execution: &[u8], owner: Owner) {
        const FLOW: &[u8] = b"{\"flowName\":\"";
        if !payload.starts_with(FLOW) {
            return;
        }
        self.text.clear();
        for part in [FLOW, flow, b"\",\"executionId\":\"", execution, b"\""] {
            self.text.extend_from_slice(part);
        }
        // What escapes spell does not stand in the payload as it is: no name with an escape passes.
        self.owner = payload.starts_with(&self.text).then_some(owner);
    }

    /// Forgets it: symbols mean something else from now on.
    pub(super) fn clear(&mut self) {
        self.owner = None;
    }
}
