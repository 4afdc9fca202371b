//! Timers: what is to be looked at again, and when.
//!
//! A timer is a reminder, not a promise: whoever it reminds looks whether there still is anything to
//! do, so a timer is never taken back.

use crate::{
    breaker::Pool,
    effect::{OperationId, RequestId},
};
use bigfleet_model::{ClusterId, MachineId, Time};
use std::collections::BTreeSet;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Decide.
    Cycle,
    /// Read the provider.
    List,
    /// Write what is not on disk.
    Flush,
    /// Pauses that run out.
    Pause,
    /// A call to send again, or a Get to ask again.
    Retry(OperationId),
    /// A blob that did not come.
    Blob(RequestId),
    /// A drain whose grace is over.
    Drain(OperationId),
    /// A pool that may be tried again.
    Pool(Pool),
    /// A cluster that may be served again.
    Cluster(ClusterId),
    /// Intents of a cluster that never reported.
    Unreported(ClusterId),
    /// Intents of a cluster whose session is gone.
    Abandoned(ClusterId),
    /// A node that should be ready by now.
    Node(MachineId),
    /// A machine whose confirming read failed.
    Confirm(MachineId),
}

/// The reminders, soonest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Time, Timer)>);

impl Timers {
    pub(crate) fn set(&mut self, at: Time, timer: Timer) {
        self.0.insert((at, timer));
    }

    /// Takes the first that is due.
    pub(crate) fn due(&mut self, now: Time) -> Option<Timer> {
        let first = self.0.first().filter(|(at, _)| *at <= now)?.clone();
        self.0.remove(&first);
        Some(first.1)
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }
}

/// The moment so many seconds after another.
pub(crate) fn after(now: Time, seconds: f64) -> Time {
    Time::from_seconds(now.seconds() + seconds).unwrap_or(now)
}
