//! Marks: what an admin said of a machine (SH-20).

use bigfleet_model::{Leaving, Time};
use std::sync::Arc;

/// An admin's word that a machine is to leave. It survives restarts, drains and Idle, until it is lifted or
/// the machine is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainMark {
    /// Who asked; one text for all machines of a call.
    pub by: Arc<str>,
    /// When the call came.
    pub at: Time,
    /// What the admin gave as the reason; shown wherever the mark is.
    pub reason: Arc<str>,
    /// When to stop waiting for a replacement; `None` is never.
    pub deadline: Option<Time>,
    /// The deadline has passed. Kept, so that it is said once and a clock that is set back changes nothing.
    pub passed: bool,
}

impl DrainMark {
    /// A mark set now. A deadline that is not ahead is none to wait for, and passes now.
    pub fn new(by: &str, reason: &str, now: Time, deadline: Option<Time>) -> Self {
        Self {
            by: by.into(),
            at: now,
            reason: reason.into(),
            deadline: deadline.map(|deadline| deadline.max(now)),
            passed: deadline.is_some_and(|deadline| deadline <= now),
        }
    }

    /// `soon`, and `now` once the deadline has passed.
    pub(crate) fn word(&self) -> Leaving {
        if self.passed {
            Leaving::Now
        } else {
            Leaving::Soon
        }
    }

    /// The deadline, while it is ahead.
    pub(super) fn pending(&self) -> Option<Time> {
        self.deadline.filter(|_| !self.passed)
    }

    /// Whether its deadline passes now.
    pub(super) fn pass(&mut self, now: Time) -> bool {
        let passes = self.pending().is_some_and(|deadline| deadline <= now);
        self.passed |= passes;
        passes
    }
}
