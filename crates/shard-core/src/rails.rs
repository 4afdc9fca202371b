//! Rail 1: how many machines may be reclaimed from a cluster, per cycle and by the clock (SR-2).
//!
//! The engine's answer is never altered. What is over the cap is not committed and derives again.
//! Cycles may be woken more often than their interval; the bucket keeps that from draining faster.

use crate::settings::Rails;
use bigfleet_model::{ClusterId, Time};
use std::collections::BTreeMap;

/// What may still be reclaimed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReclaimCap {
    tokens: BTreeMap<ClusterId, Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Time,
}

const MILLION: u32 = 1_000_000;

impl Rails {
    /// A fraction as a cap. However small, it is one: only zero or less is none (SR-2).
    pub fn cap(fraction: f64) -> u32 {
        let millionths = (fraction.min(1.0) * f64::from(MILLION)).round() as u32;
        match 0.0 < fraction {
            true => millionths.max(1),
            false => 0,
        }
    }
}

/// Reclaims allowed of so many Configured machines: at least one, so that a cluster of five still
/// drains.
pub(crate) fn allowed(configured: u32, per_million: u32) -> u32 {
    let share = u64::from(configured) * u64::from(per_million) / u64::from(MILLION);
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

impl ReclaimCap {
    /// How many reclaims this cycle may commit for a cluster.
    pub(crate) fn grant(
        &mut self,
        cluster: &ClusterId,
        configured: u32,
        per_million: u32,
        now: Time,
        interval: f64,
    ) -> u32 {
        let allowed = allowed(configured, per_million);
        let most = f64::from(allowed);
        let bucket = self.tokens.entry(cluster.clone()).or_insert(Bucket {
            tokens: most,
            at: now,
        });
        let passed = now.since(bucket.at).max(0.0);
        bucket.tokens = (bucket.tokens + passed / interval * most).min(most);
        bucket.at = now;
        // A rounding error of a division must not cost a whole token.
        (bucket.tokens + 1e-6).floor() as u32
    }

    /// So many were committed.
    pub(crate) fn spend(&mut self, cluster: &ClusterId, reclaims: u32) {
        if let Some(bucket) = self.tokens.get_mut(cluster) {
            bucket.tokens -= f64::from(reclaims);
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
        let mut cap = ReclaimCap::default();
        let granted: Vec<u32> = [0.0, 1.0, 2.0, 10.0, 20.0]
            .map(|now| {
                let granted = cap.grant(&a, 40, 50_000, at(now), 10.0);
                cap.spend(&a, granted);
                granted
            })
            .into();
        assert_eq!(granted, [2, 0, 0, 2, 2]);
    }

    proptest! {
        /// EX-SR6: never more than the sum of what each cycle allows, nor than the clock allows.
        #[test]
        fn ex_sr6_never_more_than_the_sum(
            cycles in prop::collection::vec((0_u32..200, 0.1_f64..30.0), 1..40),
        ) {
            let a = ClusterId::new("a").unwrap();
            let mut cap = ReclaimCap::default();
            let (mut now, mut sum, mut executed) = (0.0, 0, 0);
            for (configured, step) in cycles {
                now += step;
                let granted = cap.grant(&a, configured, 50_000, at(now), 10.0);
                cap.spend(&a, granted);
                executed += granted;
                sum += allowed(configured, 50_000);
                prop_assert!(executed <= sum);
            }
        }
    }
}
