//! Schedule: when to decide, and what else is to be looked at when.
//!
//! ```text
//! something happened ─▶ wanted ─▶ spaced? ─▶ cycle ─▶ the next one an interval later
//! ```
//!
//! A timer is a reminder, not a promise: whoever it reminds looks whether there still is anything to
//! do, so a timer is never taken back.
//!
//! **Invariant:** once a cycle has begun, another is always due: an interval later, or sooner.

use crate::{
    effect::{OperationId, RequestId},
    rails::Pool,
    settings::CYCLE_SPACING,
};
use bigfleet_model::{ClusterId, MachineId, Time};
use std::{collections::BTreeSet, time::Duration};

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

/// Reminders, soonest first, and the pace of cycles.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    interval: Duration,
    timers: BTreeSet<(Time, Timer)>,
    /// The moment somebody was last asked to wake us at.
    woken_at: Option<Time>,
    /// Cycles so far.
    cycle: u64,
    is_wanted: bool,
    next: Option<Time>,
    last: Option<Time>,
    /// How long the last one took, as far as whoever drives the core says so.
    took: Duration,
}

impl Schedule {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            timers: BTreeSet::new(),
            woken_at: None,
            cycle: 0,
            is_wanted: false,
            next: None,
            last: None,
            took: Duration::ZERO,
        }
    }

    pub(crate) fn set(&mut self, at: Time, timer: Timer) {
        self.timers.insert((at, timer));
    }

    /// Takes the first reminder that is due.
    pub(crate) fn due(&mut self, now: Time) -> Option<Timer> {
        let first = self.timers.first().filter(|(at, _)| *at <= now)?.clone();
        self.timers.remove(&first);
        Some(first.1)
    }

    /// Whoever was asked has woken us. A clock may be early by its resolution: then the same moment is
    /// asked for again.
    pub(crate) fn woken(&mut self) {
        self.woken_at = None;
    }

    /// The moment to be woken at, if another than the one asked for before. What came up after this
    /// event's cycle gets a cycle of its own, as soon as may be.
    pub(crate) fn next_wake(&mut self, now: Time) -> Option<Time> {
        if std::mem::take(&mut self.is_wanted) {
            self.cycle_by(self.earliest().map_or(now, |earliest| earliest.max(now)));
        }
        let next = self.timers.first().map(|(at, _)| *at);
        let is_new = next != self.woken_at;
        self.woken_at = next;
        next.filter(|_| is_new)
    }

    /// How often to decide, and how often to List.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Cycles so far.
    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// When the last cycle began; `None` before the first.
    pub(crate) fn last_cycle(&self) -> Option<Time> {
        self.last
    }

    /// How long it took.
    pub(crate) fn last_cycle_took(&self) -> Duration {
        self.took
    }

    pub(crate) fn cycle_took(&mut self, took: Duration) {
        self.took = took;
    }

    /// Something happened that a decision may turn on.
    pub(crate) fn want_cycle(&mut self) {
        self.is_wanted = true;
    }

    /// The reminder of a cycle: it counts if one is due by now.
    pub(crate) fn reminded_of_cycle(&mut self, now: Time) {
        self.is_wanted |= self.next.is_some_and(|next| next <= now);
    }

    /// SH-1: between two cycles at least 100 ms, and twice what the last one took: events have half of
    /// the time, however long it takes to decide.
    fn earliest(&self) -> Option<Time> {
        let spacing = CYCLE_SPACING.max(self.took.saturating_mul(2));
        self.last.map(|last| last + spacing)
    }

    /// Whether to decide now. One that is wanted within the spacing is put off to its end, where all of
    /// those are one.
    pub(crate) fn is_cycle_due(&mut self, now: Time) -> bool {
        if !self.is_wanted {
            return false;
        }
        match self.earliest().filter(|earliest| now < *earliest) {
            Some(earliest) => {
                self.cycle_by(earliest);
                self.is_wanted = false;
                false
            }
            None => true,
        }
    }

    /// Everything a cycle could be wanted for is decided on.
    pub(crate) fn cycle_done(&mut self) {
        self.is_wanted = false;
    }

    /// The next cycle is at this moment or before: wake-ups coalesce, and the interval counts from
    /// the last cycle, whatever woke it.
    pub(crate) fn cycle_by(&mut self, at: Time) {
        if self.next.is_none_or(|next| at < next) {
            self.next = Some(at);
            self.set(at, Timer::Cycle);
        }
    }

    /// A cycle begins: the next one is due an interval later.
    pub(crate) fn begin_cycle(&mut self, now: Time) {
        self.cycle += 1;
        self.last = Some(now);
        self.next = None;
        self.cycle_by(now + self.interval);
    }
}
