//! Backoff and breakers: who is left alone for a while, and how long (SH-11).
//!
//! ```text
//! failure ─▶ back off 10 s, 20 s, 40 s … 10 min        success ─▶ forgotten
//!    third in a row ─▶ the breaker is open: the whole pool is left alone
//! ```
//!
//! A stock-out must not burn one slot after another until the pool is gone.

use bigfleet_model::{Shape, Time};
use std::{collections::BTreeMap, time::Duration};

/// Failures in a row that open a pool's breaker.
const BREAKER_OPENS: u32 = 3;

/// Machines that run out together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
}

impl Pool {
    pub(crate) fn of(shape: &Shape) -> Self {
        Self {
            instance_type: shape.instance_type.clone(),
            zone: shape.zone.clone(),
        }
    }
}

/// Doubling pauses per key, between a first and a longest.
#[derive(Clone, Debug)]
pub(crate) struct Backoffs<K> {
    first: Duration,
    longest: Duration,
    waits: BTreeMap<K, Wait>,
}

#[derive(Clone, Debug)]
struct Wait {
    failures: u32,
    until: Time,
    /// What the last failure was; for people.
    why: String,
}

impl<K: Ord + Clone> Backoffs<K> {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            waits: BTreeMap::new(),
        }
    }

    /// Notes a failure; returns until when to wait. Failures while waiting already count once.
    pub(crate) fn fail(&mut self, key: &K, now: Time, why: String) -> Time {
        let failures = match self.waits.get_mut(key) {
            Some(wait) if now < wait.until => {
                wait.why = why;
                return wait.until;
            }
            Some(wait) => wait.failures + 1,
            None => 1,
        };
        let doubled = self.first.saturating_mul(1 << (failures - 1).min(20));
        let until = now + doubled.min(self.longest);
        let wait = Wait {
            failures,
            until,
            why,
        };
        self.waits.insert(key.clone(), wait);
        until
    }

    /// How often it failed in a row, and until when it waits.
    pub(crate) fn get(&self, key: &K) -> Option<(u32, Time)> {
        let wait = self.waits.get(key)?;
        Some((wait.failures, wait.until))
    }

    /// What an earlier process knew of it.
    pub(crate) fn recall(&mut self, key: K, (failures, until): (u32, Time)) {
        let why = String::new();
        let wait = Wait {
            failures,
            until,
            why,
        };
        self.waits.insert(key, wait);
    }

    pub(crate) fn waits(&self, key: &K, now: Time) -> bool {
        self.waits.get(key).is_some_and(|wait| now < wait.until)
    }

    pub(crate) fn failures(&self, key: &K) -> u32 {
        self.waits.get(key).map_or(0, |wait| wait.failures)
    }

    pub(crate) fn succeed(&mut self, key: &K) -> bool {
        self.waits.remove(key).is_some()
    }

    /// Everybody with a failure behind: how many in a row, until when they wait, and the last of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, u32, Time, &str)> {
        let waits = self.waits.iter();
        waits.map(|(key, wait)| (key, wait.failures, wait.until, wait.why.as_str()))
    }
}

/// The pools that are left alone.
#[derive(Clone, Debug)]
pub(crate) struct Breakers {
    pools: Backoffs<Pool>,
}

impl Breakers {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            pools: Backoffs::new(first, longest),
        }
    }

    /// Notes a failed Create; returns until when the pool waits, and whether its breaker opened.
    pub(crate) fn fail(&mut self, pool: &Pool, now: Time, why: String) -> (Time, bool) {
        let before = self.pools.failures(pool);
        let until = self.pools.fail(pool, now, why);
        let opened = before + 1 == BREAKER_OPENS && before < self.pools.failures(pool);
        (until, opened)
    }

    pub(crate) fn waits(&self, pool: &Pool, now: Time) -> bool {
        self.pools.waits(pool, now)
    }

    /// Pools with a failure behind: how many in a row, until when they wait, and the last of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Pool, u32, Time, &str)> {
        self.pools.iter()
    }

    pub(crate) fn succeed(&mut self, pool: &Pool) -> bool {
        self.pools.succeed(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_are_forgotten_on_success() {
        let mut backoffs = Backoffs::new(Duration::from_secs(10), Duration::from_secs(35));
        let fail = |backoffs: &mut Backoffs<_>, now| backoffs.fail(&"k", at(now), now.to_string());
        assert_eq!(fail(&mut backoffs, 0.0), at(10.0));
        assert_eq!(fail(&mut backoffs, 3.0), at(10.0), "still waiting");
        assert_eq!(fail(&mut backoffs, 10.0), at(30.0));
        assert_eq!(fail(&mut backoffs, 30.0), at(65.0));
        assert!(backoffs.waits(&"k", at(64.0)) && !backoffs.waits(&"k", at(65.0)));
        assert_eq!(backoffs.iter().next(), Some((&"k", 3, at(65.0), "30")));
        assert!(backoffs.succeed(&"k"));
        assert_eq!(backoffs.failures(&"k"), 0);
    }

    #[test]
    fn the_third_failure_in_a_row_opens_the_breaker_once() {
        let mut breakers = Breakers::new(Duration::from_secs(10), Duration::from_secs(600));
        let pool = Pool {
            instance_type: "m5".to_owned(),
            zone: "a".to_owned(),
        };
        let opened: Vec<bool> = [0.0, 10.0, 30.0, 70.0]
            .map(|now| breakers.fail(&pool, at(now), String::new()).1)
            .into();
        assert_eq!(opened, [false, false, true, false]);
    }
}
