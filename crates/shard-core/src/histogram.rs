//! Histograms: how long things took, as counts per bucket.

use crate::audit::Outcome;
use bigfleet_engine::Part;
use bigfleet_model::ActionKind;
use std::{collections::BTreeMap, time::Duration};

/// A span in seconds, as metrics and logs show it.
pub(crate) fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}

/// Exponential buckets from a first bound on, each twice the one before, and one beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    first: f64,
    /// How many fell into each bucket; the last is beyond every bound.
    pub counts: Vec<u64>,
    /// What they add up to, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// None observed; so many buckets, the first up to this many seconds.
    pub fn new(first: f64, buckets: usize) -> Self {
        Self {
            first,
            counts: vec![0; buckets + 1],
            sum: 0.0,
        }
    }

    /// For whole actions: up to an hour and a half.
    pub(crate) fn of_actions() -> Self {
        Self::new(0.01, 20)
    }

    /// Something took this long.
    pub fn observe(&mut self, seconds: f64) {
        let bounds = self.bounds();
        let at = bounds.iter().position(|bound| seconds <= *bound);
        let beyond = self.counts.len() - 1;
        self.counts[at.unwrap_or(beyond)] += 1;
        self.sum += seconds;
    }

    /// The upper bounds, in seconds.
    pub fn bounds(&self) -> Vec<f64> {
        let powers = 0..self.counts.len() as i32 - 1;
        powers.map(|power| self.first * 2_f64.powi(power)).collect()
    }

    /// How many were observed.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// A part of a cycle (CY-3). A core says when one begins; how long it takes is for whoever has a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Taking in a List, all of its pages: beside the cycle, since Lists have their own interval (SH-1).
    Reconcile,
    /// Taking in what changed since the last decision: heirs, folding, intents that ended.
    Snapread,
    /// Own first, then the rest.
    Phase1,
    /// Preemption, and exchanges in its wake.
    Phase2,
    /// Reclaim, release, verdicts.
    Phase3,
    /// Hints.
    Emit,
    /// Shortfalls, rails, committing and handing out.
    Execute,
}

impl Phase {
    /// All of them, in the order of a cycle.
    pub const ALL: [Self; 7] = [
        Self::Reconcile,
        Self::Snapread,
        Self::Phase1,
        Self::Phase2,
        Self::Phase3,
        Self::Emit,
        Self::Execute,
    ];

    pub(crate) fn of(part: Part) -> Self {
        match part {
            Part::Serve => Self::Phase1,
            Part::Preempt => Self::Phase2,
            Part::LetGo => Self::Phase3,
        }
    }

    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Reconcile => "reconcile",
            Self::Snapread => "snapread",
            Self::Phase1 => "phase1",
            Self::Phase2 => "phase2",
            Self::Phase3 => "phase3",
            Self::Emit => "emit",
            Self::Execute => "execute",
        }
    }
}

/// How long a shard's work takes (shard.md §8).
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// One cycle, by the clock of whoever drives the core.
    pub cycle: Histogram,
    /// Its parts, in the order of [`Phase::ALL`].
    pub phases: [Histogram; 7],
    /// Committed to Configured.
    pub configure: Histogram,
    /// Blob asked for to blob answered.
    pub bootstrap: Histogram,
    /// Committed to Idle.
    pub drain: Histogram,
    /// First seen in a roll-up to the first machine Configured for it.
    pub provisioning: Histogram,
    /// Committed to its end, however it ended.
    pub actions: BTreeMap<(ActionKind, Outcome), Histogram>,
}

impl Latencies {
    /// The clock of whoever drives the core has measured a cycle and its phases, in seconds (CY-3).
    pub(crate) fn cycle_took(&mut self, seconds: f64, phases: Vec<(Phase, f64)>) {
        self.cycle.observe(seconds);
        for (phase, seconds) in phases {
            let at = Phase::ALL.iter().position(|one| *one == phase);
            if let Some(histogram) = at.and_then(|at| self.phases.get_mut(at)) {
                histogram.observe(seconds);
            }
        }
    }

    /// An operation has come to its end.
    pub(crate) fn ended(&mut self, kind: ActionKind, outcome: Outcome, took: Duration) {
        let histogram = self.actions.entry((kind, outcome));
        histogram
            .or_insert_with(Histogram::of_actions)
            .observe(seconds(took));
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            // The reference has fewer; whoever reads those finds them among these.
            cycle: Histogram::new(0.001, 17),
            phases: std::array::from_fn(|_| Histogram::new(0.001, 17)),
            configure: Histogram::new(0.01, 16),
            bootstrap: Histogram::new(0.01, 16),
            drain: Histogram::new(0.01, 20),
            provisioning: Histogram::new(0.01, 20),
            actions: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_double_and_the_last_bucket_is_beyond() {
        let mut histogram = Histogram::new(0.01, 16);
        assert!((histogram.bounds()[15] - 327.68).abs() < 1e-9);
        for seconds in [0.005, 0.01, 0.02, 1000.0] {
            histogram.observe(seconds);
        }
        assert_eq!(
            (
                histogram.counts[0],
                histogram.counts[1],
                histogram.counts[16]
            ),
            (2, 1, 1)
        );
        assert_eq!(histogram.count(), 4);
    }

    /// A cycle of a minute and a drain of a whole grace are still told from ones that never end.
    #[test]
    fn what_takes_as_long_as_it_may_falls_into_a_bucket() {
        let mut times = Latencies::default();
        times.cycle.observe(60.0);
        times.drain.observe(600.0);
        for histogram in [times.cycle, times.drain] {
            assert_eq!(histogram.counts.last(), Some(&0), "beyond every bound");
        }
    }
}
