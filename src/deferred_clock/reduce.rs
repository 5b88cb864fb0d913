//! One entry onto the state. First write wins by place in the stream, whatever the times say.

use std::borrow::Cow;

use super::opening::Owner;
use super::state::{DigestGap, Fold, NewClock, NewDeferred, Recorded, Stamp};
use crate::digest::from_hex;
use crate::error::{Code, Error};
use crate::json::{members, members_behind, Raw, RawText, SyntaxError};

/// The four types of entry that this fold asks for. Their numbers are the type codes of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventType {
    /// A clock was scheduled.
    ClockScheduled = 0,
    /// A clock completed.
    ClockCompleted = 1,
    /// A deferred was completed.
    DeferredCompleted = 2,
    /// A completion was consumed.
    DeferredConsumed = 3,
}

impl EventType {
    /// All four, by their numbers.
    pub const ALL: [EventType; 4] = [
        EventType::ClockScheduled,
        EventType::ClockCompleted,
        EventType::DeferredCompleted,
        EventType::DeferredConsumed,
    ];

    /// The type's name in a journal.
    pub fn name(self) -> &'static str {
        match self {
            EventType::ClockScheduled => "flows.engine.clock-scheduled",
            EventType::ClockCompleted => "flows.engine.clock-completed",
            EventType::DeferredCompleted => "flows.engine.deferred-completed",
            EventType::DeferredConsumed => "flows.engine.deferred-consumed",
        }
    }

    /// The type of a page's type code; `None` for every other one.
    #[inline]
    pub fn from_code(code: u8) -> Option<EventType> {
        match code {
            0 => Some(EventType::ClockScheduled),
            1 => Some(EventType::ClockCompleted),
            2 => Some(EventType::DeferredCompleted),
            3 => Some(EventType::DeferredConsumed),
            _ => None,
        }
    }

    /// The type of a name in a journal; names are compared exactly.
    pub fn from_name(name: &[u8]) -> Option<EventType> {
        EventType::ALL.into_iter().find(|event| event.name().as_bytes() == name)
    }
}

macro_rules! reasons {
    ($($name:ident = $reason:literal: $meaning:literal,)+) => {
        /// Why an entry changed nothing. A closed list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reason {
            $(#[doc = $meaning] $name,)+
        }

        impl Reason {
            /// Every reason, in the order in which reports list them.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)+];

            /// The reason as reports spell it.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $reason,)+ }
            }

            /// What it says, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Reason::$name => $meaning,)+ }
            }
        }
    };
}

reasons! {
    OtherType = "other_type": "an entry of another type",
    BelowFloor = "below_floor": "an entry at or below the run's floor",
    AboveBound = "above_bound": "an entry above the bound",
    Redelivered = "redelivered": "the last entry once more",
    NotARecord = "not_a_record": "the payload is no JSON object",
    FieldRefused = "field_refused": "a name or a time is missing or of the wrong form",
    AlreadyScheduled = "already_scheduled": "the clock was scheduled before",
    NothingToComplete = "nothing_to_complete": "no such clock was scheduled",
    AlreadyCompleted = "already_completed": "the clock or the deferred completed before",
    NothingToConsume = "nothing_to_consume": "no such completion was recorded",
    AlreadyConsumed = "already_consumed": "the completion was consumed before",
}

/// What an entry did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It changed the state.
    Applied,
    /// It changed nothing.
    Ignored(Reason),
}

/// Why an entry could not be taken at all.
#[derive(Debug)]
pub enum Refusal {
    /// Its payload is no JSON text.
    NotJson(SyntaxError),
    /// The state would become too large.
    TooLarge(Error),
}

impl From<SyntaxError> for Refusal {
    fn from(error: SyntaxError) -> Self {
        Refusal::NotJson(error)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::TooLarge(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotJson(error) => Error::syntax(Code::PayloadNotJson, &error),
            Refusal::TooLarge(error) => error,
        }
    }
}

const NOT_A_RECORD: Outcome = Outcome::Ignored(Reason::NotARecord);
const FIELD_REFUSED: Outcome = Outcome::Ignored(Reason::FieldRefused);

impl Fold {
    /// Folds one entry: its payload's JSON text, which must be UTF-8. Folds in the order given and checks no order.
    #[inline]
    pub fn apply(&mut self, event: EventType, payload: &[u8]) -> Result<Outcome, Refusal> {
        match event {
            EventType::ClockScheduled => self.clock_scheduled(payload),
            EventType::ClockCompleted => self.clock_completed(payload),
            EventType::DeferredCompleted => self.deferred_completed(payload),
            EventType::DeferredConsumed => self.deferred_consumed(payload),
        }
    }

    fn clock_scheduled(&mut self, payload: &[u8]) -> Result<Outcome, Refusal> {
        const WANTED: [&[u8]; 5] = [b"flowName", b"executionId", b"clockName", b"deferredName", b"dueAtMs"];
        let Some(Found { named, members: [_, _, clock, deferred, due] }) = self.find(payload, &WANTED)? else {
            return Ok(NOT_A_RECORD);
        };
        let (Some(named), Some(clock), Some(deferred), Some(due_at_ms)) = (named, name(clock), name(deferred), time(due))
        else {
            return Ok(FIELD_REFUSED);
        };
        let owner = self.keep_owner(payload, named)?;
        let row = NewClock { deferred_name: &deferred, due_at_ms, completed_at: Stamp::NONE };
        Ok(if self.add_clock_of(owner, &clock, row, false)? {
            Outcome::Applied
        } else {
            Outcome::Ignored(Reason::AlreadyScheduled)
        })
    }

    fn clock_completed(&mut self, payload: &[u8]) -> Result<Outcome, Refusal> {
        const WANTED: [&[u8]; 4] = [b"flowName", b"executionId", b"clockName", b"completedAtMs"];
        let Some(Found { named, members: [_, _, clock, completed] }) = self.find(payload, &WANTED)? else {
            return Ok(NOT_A_RECORD);
        };
        let (Some(named), Some(clock), Some(completed_at_ms)) = (named, name(clock), time(completed)) else {
            return Ok(FIELD_REFUSED);
        };
        let clock = self.find_owner(payload, &named).and_then(|owner| self.clock_of(owner, &clock));
        Ok(match clock {
            None => Outcome::Ignored(Reason::NothingToComplete),
            Some(clock) if !clock.completed_at.is_none() => Outcome::Ignored(Reason::AlreadyCompleted),
            Some(clock) => {
                clock.completed_at = Stamp::at(completed_at_ms);
                Outcome::Applied
            }
        })
    }

    fn deferred_completed(&mut self, payload: &[u8]) -> Result<Outcome, Refusal> {
        const WANTED: [&[u8]; 6] =
            [b"flowName", b"executionId", b"deferredName", b"completedAtMs", b"exitDigest", b"metadataDigest"];
        let Some(Found { named, members: [_, _, deferred, completed, exit, metadata] }) = self.find(payload, &WANTED)? else {
            return Ok(NOT_A_RECORD);
        };
        let (Some(named), Some(deferred)) = (named, name(deferred)) else { return Ok(FIELD_REFUSED) };
        // A bad time leaves a completion without a stamp; a bad exit digest takes the metadata's along, not the other way round.
        let (exit, exit_gap, metadata) = match digest(exit) {
            Some(exit) => (Recorded::Digest(exit), DigestGap::None, recorded(metadata)),
            None if matches!(exit, None | Some(Raw::Null)) => (Recorded::Absent, DigestGap::Absent, Recorded::Absent),
            None => (Recorded::Absent, DigestGap::Malformed, Recorded::Absent),
        };
        let row = NewDeferred {
            completed_at: time(completed).into(),
            consumed_at: Stamp::NONE,
            exit,
            exit_gap,
            metadata,
        };
        let owner = self.keep_owner(payload, named)?;
        Ok(if self.add_deferred_of(owner, &deferred, row, false)? {
            Outcome::Applied
        } else {
            Outcome::Ignored(Reason::AlreadyCompleted)
        })
    }

    fn deferred_consumed(&mut self, payload: &[u8]) -> Result<Outcome, Refusal> {
        const WANTED: [&[u8]; 4] = [b"flowName", b"executionId", b"deferredName", b"consumedAtMs"];
        let Some(Found { named, members: [_, _, deferred, consumed] }) = self.find(payload, &WANTED)? else {
            return Ok(NOT_A_RECORD);
        };
        let (Some(named), Some(deferred), Some(consumed_at_ms)) = (named, name(deferred), time(consumed)) else {
            return Ok(FIELD_REFUSED);
        };
        let deferred = self.find_owner(payload, &named).and_then(|owner| self.deferred_of(owner, &deferred));
        Ok(match deferred {
            None => Outcome::Ignored(Reason::NothingToConsume),
            Some(deferred) if !deferred.consumed_at.is_none() => Outcome::Ignored(Reason::AlreadyConsumed),
            Some(deferred) => {
                deferred.consumed_at = Stamp::at(consumed_at_ms);
                Outcome::Applied
            }
        })
    }

    /// Judges a payload and finds the `wanted` members, of which the first two are flow and execution; `None` if it is no object.
    #[inline(always)]
    fn find<'a, const N: usize>(
        &self,
        payload: &'a [u8],
        wanted: &[&[u8]; N],
    ) -> Result<Option<Found<'a, N>>, SyntaxError> {
        if let Some((owner, length)) = self.opening().of(payload) {
            let members = members_behind(payload, length, 2, wanted)?;
            // A member that comes again counts in place of the one before.
            if let [None, None, ..] = members.as_slice() {
                return Ok(Some(Found { named: Some(Named::Known(owner)), members }));
            }
        }
        Ok(members(payload, wanted)?.map(|members| {
            let named = match members.as_slice() {
                [flow, execution, ..] => name(*flow).zip(name(*execution)),
                _ => None,
            };
            Found { named: named.map(|(flow, execution)| Named::Spelled(flow, execution)), members }
        }))
    }

    /// The flow and execution of an entry, interned.
    #[inline(always)]
    fn keep_owner(&mut self, payload: &[u8], named: Named<'_>) -> Result<Owner, Error> {
        match named {
            Named::Known(owner) => Ok(owner),
            Named::Spelled(flow, execution) => {
                let owner = self.owner(&flow, &execution)?;
                self.opening_mut().remember(payload, &flow, &execution, owner);
                Ok(owner)
            }
        }
    }

    /// The flow and execution of an entry, if any row or entry before named both.
    #[inline(always)]
    fn find_owner(&mut self, payload: &[u8], named: &Named<'_>) -> Option<Owner> {
        match named {
            Named::Known(owner) => Some(*owner),
            Named::Spelled(flow, execution) => {
                let owner = self.known_owner(flow, execution)?;
                self.opening_mut().remember(payload, flow, execution, owner);
                Some(owner)
            }
        }
    }

}

/// What a payload has of what was wanted.
struct Found<'a, const N: usize> {
    /// Flow and execution, when both are names.
    named: Option<Named<'a>>,
    /// Every member wanted; the first two only where they had to be read.
    members: [Option<Raw<'a>>; N],
}

/// The flow and execution of an entry: known from the entry before, or borrowed from the payload unless escapes spell them.
enum Named<'a> {
    Known(Owner),
    Spelled(Cow<'a, [u8]>, Cow<'a, [u8]>),
}

/// A name: any text that is not empty. No trimming, no normalisation.
#[inline(always)]
pub(super) fn name(value: Option<Raw<'_>>) -> Option<Cow<'_, [u8]>> {
    let text = value?.as_text()?;
    (!text.is_empty()).then(|| wtf8(text))
}

#[inline(always)]
fn wtf8(text: RawText<'_>) -> Cow<'_, [u8]> {
    match text.plain() {
        Some(plain) => Cow::Borrowed(plain),
        None => Cow::Owned(text.to_wtf8()),
    }
}

/// A time: a number whose nearest double is whole and from 0 to 2^53-1.
#[inline(always)]
pub(super) fn time(value: Option<Raw<'_>>) -> Option<u64> {
    value?.as_safe_integer()
}

/// A digest: a text of exactly 64 characters `0-9a-f`.
#[inline(always)]
pub(super) fn digest(value: Option<Raw<'_>>) -> Option<[u8; 32]> {
    from_hex(&wtf8(value?.as_text()?))
}

/// What an entry records of metadata: null says that there is none, and a bad digest is as good as nothing.
#[inline(always)]
fn recorded(metadata: Option<Raw<'_>>) -> Recorded {
    match metadata {
        Some(Raw::Null) => Recorded::Null,
        other => digest(other).map_or(Recorded::Absent, Recorded::Digest),
    }
}
