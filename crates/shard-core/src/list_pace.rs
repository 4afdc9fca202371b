//! The pace of Lists: one per interval, and sooner while operations wait to be seen (SH-1).
//!
//! ```text
//! interval   L─────────────────────────L─────────────────────────L      nobody waits
//! waiting    L──l──l──l──l──l──l──l──l─L──l──l                          at most one a second,
//!            L████─────────────────────L████────────────                and a tenth of the time
//! ```
//!
//! A provider that only acknowledges shows the end of an operation in a List and nowhere else, so nothing
//! is done faster than it is Listed. A List sooner than the interval takes in what it shows and nothing
//! more: it is not one of the Lists that have to agree on what is gone, which are an interval apart.
//!
//! **Invariant:** the Lists of the interval are the same as if there were no others.

use bigfleet_model::Time;
use std::time::Duration;

/// From the beginning of one List to that of the next, at least.
const SPACING: Duration = Duration::from_secs(1);
/// A List is followed by so many times what it took without one.
const REST: u32 = 9;
/// For so long a List may show nothing before its provider counts as lost.
const SILENCE: Duration = Duration::from_secs(20);

/// Why a List is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// The interval is over.
    Regular,
    /// Operations wait to be seen.
    Early,
}

/// When to List.
#[derive(Clone, Debug)]
pub(crate) struct ListPace {
    interval: Duration,
    /// The next List of the interval.
    regular: Option<Time>,
    /// When the last List began.
    began: Option<Time>,
    /// The List under way.
    under_way: Option<ListKind>,
    /// From when on one may be made before the interval is over; `None` while a List is under way, and
    /// after one that failed.
    early: Option<Time>,
    /// The earliest reminder that is set.
    reminder: Option<Time>,
    /// Since when no List came to its end, if the last one did not.
    failing: Option<Time>,
    /// When the List under way last showed something.
    heard: Option<Time>,
}

impl ListPace {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            regular: None,
            began: None,
            under_way: None,
            early: None,
            reminder: None,
            failing: None,
            heard: None,
        }
    }

    /// A reminder: which List is to be made now, if any.
    pub(crate) fn due(&mut self, now: Time, is_awaited: bool) -> Option<ListKind> {
        self.reminder.take_if(|reminder| *reminder <= now);
        if self.regular().is_none_or(|regular| regular <= now) {
            self.regular = Some(now + self.interval);
            return Some(ListKind::Regular);
        }
        let is_early = is_awaited && self.early().is_some_and(|early| early <= now);
        is_early.then_some(ListKind::Early)
    }

    /// A List has begun.
    pub(crate) fn began(&mut self, now: Time, kind: ListKind) {
        (self.began, self.under_way, self.early) = (Some(now), Some(kind), None);
        self.heard = Some(now);
    }

    /// A page of the List under way has come.
    pub(crate) fn heard(&mut self, now: Time) {
        self.heard = Some(now);
    }

    /// Since when the provider cannot be reached (SV-5): the last List did not come to its end, or the one
    /// under way shows nothing for a while.
    pub(crate) fn lost_since(&self, now: Time) -> Option<Time> {
        let heard = self.heard.filter(|_| self.under_way.is_some());
        let is_silent = |heard: &Time| *heard + SILENCE <= now;
        self.failing.or(heard.filter(is_silent))
    }

    /// The List has ended. One that failed is made again with the interval. Says whether the provider is
    /// back: this one came to its end, and the one before did not.
    pub(crate) fn ended(&mut self, now: Time, is_complete: bool) -> bool {
        self.under_way = None;
        let had_failed = self.failing.is_some();
        let failing = self.failing.or(self.began).or(Some(now));
        self.failing = failing.filter(|_| !is_complete);
        let Some(began) = self.began.filter(|_| is_complete) else {
            return false;
        };
        let rest = now.duration_since(began).saturating_mul(REST);
        self.early = Some((began + SPACING).max(now + rest));
        had_failed
    }

    /// When the next List of the interval is to be made: it waits for an early one that is under way, but
    /// not for ever.
    fn regular(&self) -> Option<Time> {
        let early = self.under_way == Some(ListKind::Early);
        let given_up = self
            .began
            .filter(|_| early)
            .map(|began| began + self.interval);
        self.regular
            .map(|regular| given_up.map_or(regular, |given_up| given_up.max(regular)))
    }

    /// When an early List may be made: not so late that one of the interval would follow within the
    /// second.
    fn early(&self) -> Option<Time> {
        let regular = self.regular()?;
        self.early.filter(|early| *early + SPACING <= regular)
    }

    /// When to be reminded, unless a reminder is set that comes first.
    pub(crate) fn next_reminder(&mut self, is_awaited: bool) -> Option<Time> {
        let early = self.early().filter(|_| is_awaited);
        let next = early.or(self.regular())?;
        if self.reminder.is_some_and(|reminder| reminder <= next) {
            return None;
        }
        self.reminder = Some(next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(0) + Duration::from_millis(millis)
    }

    /// Moments at which Lists begin within a minute, if each takes so long and somebody always waits.
    fn lists(interval_seconds: u64, takes_millis: u64, is_awaited: bool) -> Vec<(u64, ListKind)> {
        let mut pace = ListPace::new(Duration::from_secs(interval_seconds));
        let (mut lists, mut ends, mut reminders) = (Vec::new(), None, vec![0]);
        for millis in 0..60_000 {
            if ends == Some(millis) {
                ends = None;
                pace.ended(at(millis), true);
            }
            let reminded = reminders.contains(&millis);
            if reminded
                && let Some(kind) = pace.due(at(millis), is_awaited)
                && ends.is_none()
            {
                pace.began(at(millis), kind);
                lists.push((millis, kind));
                ends = Some(millis + takes_millis);
            }
            if let Some(next) = pace.next_reminder(is_awaited) {
                reminders.push(next.nanos() as u64 / 1_000_000);
            }
        }
        lists
    }

    #[test]
    fn nobody_lists_sooner_than_the_interval_for_nobody() {
        use ListKind::Regular;
        let quiet = lists(20, 300, false);
        assert_eq!(quiet, [(0, Regular), (20_000, Regular), (40_000, Regular)]);
    }

    #[test]
    fn lists_that_are_awaited_come_once_a_second_and_take_a_tenth_of_the_time() {
        // How long a List takes, in milliseconds, and how many are made beside those of the interval.
        for (takes, early) in [(1, 54), (100, 54), (300, 18), (1_000, 0), (5_000, 0)] {
            let awaited = lists(10, takes, true);
            let regular: Vec<u64> = awaited
                .iter()
                .filter(|(_, kind)| *kind == ListKind::Regular)
                .map(|(at, _)| *at)
                .collect();
            assert_eq!(regular, [0, 10_000, 20_000, 30_000, 40_000, 50_000]);
            for pair in awaited.windows(2) {
                let ((one, _), (next, kind)) = (pair[0], pair[1]);
                let rest = match kind {
                    ListKind::Regular => 0,
                    ListKind::Early => 10 * takes,
                };
                assert!(one + rest.max(1_000) <= next, "{takes}: {awaited:?}");
            }
            assert_eq!(awaited.len() - regular.len(), early, "{takes}: {awaited:?}");
        }
    }

    #[test]
    fn a_list_of_the_interval_waits_for_an_early_one_that_is_under_way() {
        let mut pace = ListPace::new(Duration::from_secs(10));
        pace.due(at(0), true);
        pace.began(at(0), ListKind::Regular);
        pace.ended(at(10), true);
        assert_eq!(pace.due(at(8_000), true), Some(ListKind::Early));
        pace.began(at(8_000), ListKind::Early);
        assert_eq!(pace.due(at(10_000), true), None);
        assert_eq!(
            pace.next_reminder(true),
            Some(at(18_000)),
            "it is lost by then"
        );
        pace.ended(at(12_000), true);
        assert_eq!(pace.next_reminder(true), Some(at(10_000)), "at once");
        assert_eq!(pace.due(at(12_000), true), Some(ListKind::Regular));
    }

    #[test]
    fn a_list_that_failed_is_not_made_again_before_the_interval_is_over() {
        let mut pace = ListPace::new(Duration::from_secs(10));
        assert_eq!(pace.due(at(0), true), Some(ListKind::Regular));
        pace.began(at(0), ListKind::Regular);
        pace.ended(at(20), false);
        assert_eq!(pace.next_reminder(true), Some(at(10_000)));
        assert_eq!(pace.due(at(5_000), true), None);
    }
}
