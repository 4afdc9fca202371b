//! Told: what clusters tell beside sums (workloads.md §7).
//!
//! Which rows ask for whole units is said where rows are written; here is what draining a machine would disturb.
//! One machine in five is not spoken of, as with an operator that has just begun.

use crate::{SeededMachine, Tier, Workload};
use bigfleet_model::Disruption;
use bigfleet_seeded::Stream;

/// What an operator tells of draining a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldDisruption {
    /// A serving machine.
    pub machine: SeededMachine,
    /// What draining it would disturb; `None` if nothing is known any more.
    pub level: Option<Disruption>,
}

/// Streams of machines, far from those of tiers and clusters.
const FIRST_MACHINE: u64 = 1 << 48;
/// Most clusters have fewer machines than this; two machines that share a stream do no harm.
const CLUSTER_WIDTH: u64 = 1 << 24;

impl Workload {
    /// Whether its clusters tell more than sums.
    pub fn tells(&self) -> bool {
        self.tables.tells_units()
    }

    /// What draining a machine would disturb at first, as its operator tells it (RF-2).
    pub fn disruption(&self, machine: &SeededMachine) -> Option<Disruption> {
        let serves = machine
            .serves
            .filter(|_| machine.tier == Tier::Configured)?;
        let number = u64::from(serves.cluster) * CLUSTER_WIDTH + u64::from(machine.number);
        let mut random = Stream::new(self.seed(), FIRST_MACHINE + number);
        self.tells().then(|| draw_disruption(&mut random)).flatten()
    }
}

/// Every level alike, and every fifth time none.
pub(crate) fn draw_disruption(random: &mut Stream) -> Option<Disruption> {
    Disruption::new(random.below(20).into())
}
