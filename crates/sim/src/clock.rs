//! The clock and the queue: what happens next, decided by time and then by the seed.
//!
//! ```text
//! at(moment) ─▶ heap ordered by (moment, drawn tie-break, order of arrival) ─▶ next()
//! ```
//!
//! Two things due at the same millisecond come in an order the seed draws, so that no order of
//! events is favoured; and the same seed draws the same order everywhere.

use bigfleet_model::Time;
use bigfleet_seeded::Prng;
use std::{cmp::Ordering, collections::BinaryHeap, fmt};

/// A moment of the simulation, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub(crate) u64);

/// So many seconds, in milliseconds.
pub(crate) const fn seconds(count: u64) -> u64 {
    count * 1000
}

/// So many minutes, in milliseconds.
pub(crate) const fn minutes(count: u64) -> u64 {
    count * 60_000
}

const NANOS_PER_MILLI: i64 = 1_000_000;

impl Moment {
    /// The beginning.
    pub(crate) const START: Self = Self(0);
    /// After the end.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// So many milliseconds later.
    pub(crate) fn after(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds since an earlier moment; zero if it was later.
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// As the core counts time.
    pub(crate) fn time(self) -> Time {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        Time::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// The first whole millisecond that is not before a moment of the core.
    pub(crate) fn not_before(time: Time) -> Self {
        let nanos = time.nanos().max(0);
        let begun = i64::from(nanos % NANOS_PER_MILLI != 0);
        Self((nanos / NANOS_PER_MILLI + begun) as u64)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

struct Due<T> {
    key: (Moment, u64, u64),
    what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    // The heap gives the greatest first; the soonest is to come first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// What is to happen, soonest first.
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Due<T>>,
    order: u64,
    ties: Prng,
}

impl<T> Queue<T> {
    pub(crate) fn new(ties: Prng) -> Self {
        Self {
            heap: BinaryHeap::new(),
            order: 0,
            ties,
        }
    }

    /// Puts something at a moment, among its equals wherever the seed has it.
    pub(crate) fn at(&mut self, moment: Moment, what: T) {
        let tie = self.ties.next_u64();
        self.push(moment, tie, what);
    }

    /// Puts something at a moment, behind nothing that was put in order before it.
    pub(crate) fn in_order(&mut self, moment: Moment, what: T) {
        self.push(moment, 0, what);
    }

    fn push(&mut self, moment: Moment, tie: u64, what: T) {
        self.order += 1;
        let key = (moment, tie, self.order);
        self.heap.push(Due { key, what });
    }

    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.heap.peek().map(|due| due.key.0)
    }

    pub(crate) fn pop(&mut self) -> Option<(Moment, T)> {
        self.heap.pop().map(|due| (due.key.0, due.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_comes_first_and_ties_come_as_the_seed_has_them() {
        let drawn = |seed| {
            let mut queue = Queue::new(Prng::new(seed));
            (0..8).for_each(|n| queue.at(Moment(5), n));
            queue.at(Moment(1), 100);
            queue.in_order(Moment(5), 200);
            queue.in_order(Moment(5), 201);
            std::iter::from_fn(move || queue.pop().map(|(_, n)| n)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1)[..3], [100, 200, 201]);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn a_moment_of_the_core_is_never_met_too_early() {
        let at = |nanos| Moment::not_before(Time::from_nanos(nanos));
        assert_eq!(at(-5), Moment::START);
        assert_eq!(at(0), Moment::START);
        assert_eq!(at(1), Moment(1));
        assert_eq!(at(1_000_000), Moment(1));
        assert_eq!(at(1_000_001), Moment(2));
        assert_eq!(Moment(1783).time(), Time::from_nanos(1_783_000_000));
        assert_eq!(Moment::not_before(Moment(1783).time()), Moment(1783));
    }
}
