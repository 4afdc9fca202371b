//! Pace: when a roll-up is due (OP-18, OP-26).
//!
//! ```text
//! first change ── 1 s, not sliding ──▶ due        every interval ± 10 % ──▶ due        never within 1 s of the last
//! ```

use crate::jitter::Jitter;
use bigfleet_model::{Row, Time};
use std::time::Duration;

const DEBOUNCE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Pace {
    interval: Duration,
    /// When the first change since the last roll-up was seen.
    changed: Option<Time>,
    last: Option<Time>,
    /// The next one that comes without a change.
    tick: Option<Time>,
    /// Rows that were refused, and until when equal ones wait.
    rejected: Option<(Vec<Row>, Time)>,
}

impl Pace {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            changed: None,
            last: None,
            tick: None,
            rejected: None,
        }
    }

    /// A session may send its first one now.
    pub(crate) fn begin(&mut self, now: Time) {
        self.tick = Some(now);
        self.rejected = None;
    }

    /// What was waited for is there: look at once.
    pub(crate) fn begin_now(&mut self, now: Time) {
        self.tick = self.tick.map(|_| now);
    }

    pub(crate) fn end(&mut self) {
        self.tick = None;
    }

    pub(crate) fn changed(&mut self, now: Time) {
        self.changed.get_or_insert(now);
    }

    /// When the next one is due; `None` while no session wants one.
    pub(crate) fn next(&self) -> Option<Time> {
        let tick = self.tick?;
        let changed = self.changed.map(|at| at + DEBOUNCE);
        let spaced = self
            .last
            .map_or(tick.min(Time::ZERO), |last| last + DEBOUNCE);
        Some(
            changed
                .map_or(tick, |changed| changed.min(tick))
                .max(spaced),
        )
    }

    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next().is_some_and(|next| next <= now)
    }

    /// OP-26: rows that were refused a moment ago are not sent again before an interval has passed.
    pub(crate) fn is_refused(&self, now: Time, rows: &[Row]) -> bool {
        self.rejected
            .as_ref()
            .is_some_and(|(refused, until)| now < *until && refused.as_slice() == rows)
    }

    /// One is sent, or was found to be one that is not.
    pub(crate) fn done(&mut self, now: Time, jitter: &mut Jitter) {
        self.changed = None;
        self.last = Some(now);
        self.tick = Some(now + jitter.about(self.interval));
    }

    /// Nothing could be sent: look again after this long.
    pub(crate) fn postpone(&mut self, now: Time, span: Duration) {
        self.changed = None;
        self.tick = Some(now + span);
    }

    pub(crate) fn rejected(&mut self, now: Time, rows: Vec<Row>) {
        self.rejected = Some((rows, now + self.interval));
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// OP-18.
    #[test]
    fn a_change_is_sent_a_second_later_and_never_within_a_second_of_the_last() {
        let mut jitter = Jitter::new(1);
        let mut pace = Pace::new(Duration::from_secs(10));
        pace.changed(at(0));
        assert_eq!(pace.next(), None, "nobody listens");
        pace.begin(at(5_000));
        assert!(pace.is_due(at(5_000)), "the first waits for nothing");
        pace.done(at(5_000), &mut jitter);
        pace.changed(at(5_100));
        pace.changed(at(5_900));
        assert_eq!(pace.next(), Some(at(6_100)), "not sliding");
        pace.done(at(6_100), &mut jitter);
        let tick = pace.next().unwrap();
        assert!((at(15_100)..=at(17_100)).contains(&tick));
        pace.changed(at(2_000));
        assert_eq!(pace.next(), Some(at(7_100)));
    }

    /// OP-26.
    #[test]
    fn rows_that_were_refused_wait_an_interval_and_others_do_not() {
        let mut pace = Pace::new(Duration::from_secs(10));
        pace.rejected(at(0), vec![]);
        assert!(pace.is_refused(at(9_999), &[]));
        assert!(!pace.is_refused(at(10_000), &[]));
        pace.begin(at(1));
        assert!(
            !pace.is_refused(at(2), &[]),
            "another shard may think otherwise"
        );
    }
}
