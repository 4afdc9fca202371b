//! Rail 1: how many machines may be reclaimed from a cluster, per cycle and by the clock (SR-2).
//!
//! The engine's answer is never altered. What is over the cap is not committed and derives again.
//! Cycles may be woken more often than their interval; the bucket keeps that from draining faster.

use crate::settings::Rails;
use bigfleet_model::{Action, ActionKind, ClusterId, Time};
use std::{collections::BTreeMap, time::Duration};

/// What may still be reclaimed.
#[derive(Clone, Debug)]
pub(crate) struct ReclaimCap {
    /// The cap, in millionths of a cluster's Configured machines; zero is none.
    per_million: u32,
    /// How long a bucket takes to fill.
    interval: Duration,
    buckets: BTreeMap<ClusterId, Bucket>,
    /// How many reclaims it held back in the last cycle.
    capped: u64,
}

/// The reclaims a cluster has left.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// In reclaims times nanoseconds of the interval: whole numbers, so that nothing is rounded away.
    level: u128,
    at: Time,
}

const MILLION: u32 = 1_000_000;

impl Rails {
    /// A fraction as a cap. However small, it is one: only zero or less is none (SR-2).
    pub fn cap(fraction: f64) -> u32 {
        let millionths = (fraction.min(1.0) * f64::from(MILLION)).round() as u32;
        if 0.0 < fraction { millionths.max(1) } else { 0 }
    }
}

/// Reclaims allowed of so many Configured machines: at least one, so that a cluster of five still
/// drains.
fn allowed(configured: u32, per_million: u32) -> u32 {
    let share = u64::from(configured) * u64::from(per_million) / u64::from(MILLION);
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

impl ReclaimCap {
    pub(crate) fn new(per_million: u32, interval: Duration) -> Self {
        Self {
            per_million,
            interval: interval.max(Duration::from_nanos(1)),
            buckets: BTreeMap::new(),
            capped: 0,
        }
    }

    /// How many reclaims it held back in the last cycle.
    pub(crate) fn capped(&self) -> u64 {
        self.capped
    }

    /// Splits off the head of each cluster's reclaims; what is over the cap is dropped, and the clusters
    /// it would have been reclaimed from are returned, once for each.
    pub(crate) fn cap(
        &mut self,
        actions: &mut Vec<Action>,
        configured: impl Fn(&ClusterId) -> u32,
        now: Time,
    ) -> Vec<ClusterId> {
        let mut capped = Vec::new();
        if 0 < self.per_million {
            let mut left: BTreeMap<ClusterId, u32> = BTreeMap::new();
            actions.retain(|action| {
                let (ActionKind::Reclaim, Some(cluster)) = (action.kind, &action.cluster) else {
                    return true;
                };
                let left = left
                    .entry(cluster.clone())
                    .or_insert_with(|| self.grant(cluster, configured(cluster), now));
                if *left == 0 {
                    capped.push(cluster.clone());
                    return false;
                }
                *left -= 1;
                true
            });
        }
        self.capped = capped.len() as u64;
        capped
    }

    /// How many reclaims this cycle may commit for a cluster.
    fn grant(&mut self, cluster: &ClusterId, configured: u32, now: Time) -> u32 {
        let interval = self.interval.as_nanos();
        let allowed = allowed(configured, self.per_million);
        let full = u128::from(allowed) * interval;
        let bucket = self.buckets.entry(cluster.clone()).or_insert(Bucket {
            level: full,
            at: now,
        });
        let passed = now.duration_since(bucket.at).as_nanos();
        bucket.level = (bucket.level + passed * u128::from(allowed)).min(full);
        bucket.at = now;
        u32::try_from(bucket.level / interval).unwrap_or(allowed)
    }

    /// A reclaim was committed.
    pub(crate) fn spend(&mut self, cluster: &ClusterId) {
        let reclaim = self.interval.as_nanos();
        if let Some(bucket) = self.buckets.get_mut(cluster) {
            bucket.level = bucket.level.saturating_sub(reclaim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    /// EX-SR1.
    #[test]
    fn ex_sr1_a_twentieth_but_at_least_one() {
        let caps = [40, 5, 19, 20, 100].map(|configured| allowed(configured, 50_000));
        assert_eq!(caps, [2, 1, 1, 1, 5]);
    }

    /// SR-2: the smallest cap still is one, and what is asked for is not rounded away.
    #[test]
    fn only_zero_is_no_cap() {
        let caps = [0.05, 0.0004, 1e-9, 1.0, 0.0, -0.5, f64::NAN].map(Rails::cap);
        assert_eq!(caps, [50_000, 400, 1, 1_000_000, 0, 0, 0]);
        assert_eq!(allowed(100_000, Rails::cap(0.0335)), 3350);
        assert_eq!(allowed(100_000, Rails::cap(1e-9)), 1);
    }

    #[test]
    fn woken_cycles_do_not_drain_faster() {
        let a = ClusterId::new("a").unwrap();
        let mut cap = ReclaimCap::new(50_000, Duration::from_secs(10));
        let granted: Vec<u32> = [0.0, 1.0, 4.999, 5.0, 10.0, 20.0]
            .map(|now| {
                let granted = cap.grant(&a, 40, at(now));
                (0..granted).for_each(|_| cap.spend(&a));
                granted
            })
            .into();
        assert_eq!(granted, [2, 0, 0, 1, 1, 2]);
    }

    proptest! {
        /// EX-SR6: never more than the sum of what each cycle allows, nor than the clock allows.
        #[test]
        fn ex_sr6_never_more_than_the_sum(
            cycles in prop::collection::vec((0_u32..200, 0.1_f64..30.0), 1..40),
        ) {
            let a = ClusterId::new("a").unwrap();
            let mut cap = ReclaimCap::new(50_000, Duration::from_secs(10));
            let (mut now, mut sum, mut executed) = (0.0, 0, 0);
            for (configured, step) in cycles {
                now += step;
                let granted = cap.grant(&a, configured, at(now));
                (0..granted).for_each(|_| cap.spend(&a));
                executed += granted;
                sum += allowed(configured, 50_000);
                prop_assert!(executed <= sum);
            }
        }
    }
}
