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
    /// A cluster without a session that may hold nothing any more.
    Forgotten(ClusterId),
    /// A node that should be ready by now.
    Node(MachineId),
    /// A machine whose confirming read failed.
    Confirm(MachineId),
    /// Deadlines of drains, and notices that come near.
    Leaving,
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

    /// The reminder of a cycle: it counts if one is due by now. It is spent, so one that has to be put off
    /// is asked for anew.
    pub(crate) fn reminded_of_cycle(&mut self, now: Time) {
        self.is_wanted |= self.next.take_if(|next| *next <= now).is_some();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn schedule() -> Schedule {
        Schedule::new(Duration::from_secs(10))
    }

    #[test]
    fn reminders_come_in_their_order_and_once() {
        let mut schedule = schedule();
        schedule.set(at(20), Timer::List);
        schedule.set(at(10), Timer::Flush);
        assert_eq!(schedule.due(at(9)), None);
        assert_eq!(schedule.due(at(10)), Some(Timer::Flush));
        assert_eq!(schedule.due(at(10)), None);
        assert_eq!(schedule.due(at(30)), Some(Timer::List));
    }

    /// SH-1: a cycle that takes longer than half of the interval puts the next one off, and loses none.
    #[test]
    fn after_a_long_cycle_the_next_is_put_off_and_comes() {
        let mut schedule = schedule();
        schedule.begin_cycle(at(0));
        schedule.cycle_took(Duration::from_secs(8));
        assert_eq!(schedule.due(at(10_000)), Some(Timer::Cycle));
        schedule.reminded_of_cycle(at(10_000));
        assert!(!schedule.is_cycle_due(at(10_000)), "events come first");
        assert_eq!(schedule.next_wake(at(10_000)), Some(at(16_000)));
        assert_eq!(schedule.due(at(16_000)), Some(Timer::Cycle));
        schedule.reminded_of_cycle(at(16_000));
        assert!(schedule.is_cycle_due(at(16_000)));
    }

    /// A moment is asked for once, and again after waking: a clock may be early.
    #[test]
    fn the_next_moment_is_asked_for_when_it_changes_or_was_early() {
        let mut schedule = schedule();
        schedule.set(at(50), Timer::List);
        assert_eq!(schedule.next_wake(at(0)), Some(at(50)));
        assert_eq!(schedule.next_wake(at(1)), None);
        schedule.woken();
        assert_eq!(schedule.next_wake(at(49)), Some(at(50)));
        schedule.set(at(40), Timer::Flush);
        assert_eq!(schedule.next_wake(at(2)), Some(at(40)));
    }

    /// SH-1.
    #[test]
    fn a_cycle_waits_for_a_tenth_of_a_second_or_twice_as_long_as_the_last_took() {
        for (took, spacing) in [(0, 100), (50, 100), (51, 102), (3000, 6000)] {
            let mut schedule = schedule();
            assert!(!schedule.is_cycle_due(at(0)), "nobody wants one");
            schedule.want_cycle();
            assert!(schedule.is_cycle_due(at(0)), "the first waits for nothing");
            schedule.begin_cycle(at(0));
            schedule.cycle_done();
            schedule.cycle_took(Duration::from_millis(took));
            schedule.want_cycle();
            assert!(!schedule.is_cycle_due(at(spacing - 1)));
            assert_eq!(schedule.due(at(spacing - 1)), None);
            assert_eq!(schedule.due(at(spacing)), Some(Timer::Cycle));
            assert!(
                !schedule.is_cycle_due(at(spacing)),
                "not before it is reminded"
            );
            schedule.reminded_of_cycle(at(spacing));
            assert!(schedule.is_cycle_due(at(spacing)));
            assert_eq!(schedule.cycle(), 1);
        }
    }

    /// An early reminder of a cycle that was put off is not one.
    #[test]
    fn a_reminder_counts_only_if_a_cycle_is_due() {
        let mut schedule = schedule();
        schedule.begin_cycle(at(0));
        schedule.reminded_of_cycle(at(9_999));
        assert!(!schedule.is_cycle_due(at(9_999)));
        schedule.reminded_of_cycle(at(10_000));
        assert!(schedule.is_cycle_due(at(10_000)));
    }

    /// What comes up after an event's cycle gets one of its own, not before now.
    #[test]
    fn what_comes_up_late_is_decided_as_soon_as_may_be() {
        for (now, expected) in [(0, 100), (100, 100), (250, 250)] {
            let mut schedule = schedule();
            schedule.begin_cycle(at(0));
            schedule.want_cycle();
            assert_eq!(schedule.next_wake(at(now)), Some(at(expected)));
        }
    }
}
