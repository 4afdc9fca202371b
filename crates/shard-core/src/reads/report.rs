//! The report upward: a shard's machines and demand in a few numbers (shard.md §10).

use super::Reads;
use crate::{
    demand::ReportedShortfall,
    uplink::{Domain, InstructionAck},
};
use bigfleet_model::{Amounts, ClusterId, Dimension, State};
use std::collections::{BTreeMap, BTreeSet};

/// Pools a summary names.
const MOST_POOLS: usize = 64;

/// Machines alike in type and zone.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityPool {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Idle ones.
    pub idle: u32,
    /// Speculative ones.
    pub speculative: u32,
    /// Configured ones.
    pub configured: u32,
    /// What one machine offers; the least, where they differ.
    pub allocatable: Amounts,
}

/// A shard's machines and demand in a few numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// All machines.
    pub machines: u32,
    /// Idle and Speculative ones.
    pub free: u32,
    /// By instance type.
    pub by_instance_type: BTreeMap<String, u32>,
    /// By zone.
    pub by_zone: BTreeMap<String, u32>,
    /// Demand as a part of what bound machines offer, by dimension (shard.md §8): above one where demand is
    /// not served. Dimensions no bound machine offers are left out.
    pub utilisation: BTreeMap<Dimension, f64>,
    /// The pools with most to give, largest first.
    pub pools: Vec<CapacityPool>,
}

/// What a shard says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The shard.
    pub shard: String,
    /// Its epoch.
    pub epoch: u64,
    /// The highest term it has heard.
    pub term_seen: u64,
    /// Its machines and demand.
    pub summary: Summary,
    /// What is short, merged by fingerprint, at most 100 (SF-2).
    pub shortfalls: Vec<ReportedShortfall>,
    /// Answers to earlier instructions, oldest first.
    pub acks: Vec<InstructionAck>,
    /// The domains it holds; `None` if none was ever assigned: then it owns everything.
    pub domains: Option<BTreeSet<Domain>>,
    /// The clusters whose operators are connected (CO-3).
    pub clusters: Vec<ClusterId>,
    /// It may act: neither paused, nor fenced, nor in dry-run.
    pub acts: bool,
}

impl Reads<'_> {
    /// What to report now. Reading it changes nothing; the acks in it stay until
    /// [`crate::Event::Reported`].
    pub(crate) fn report(&self) -> Report {
        Report {
            shard: self.config.shard.clone(),
            epoch: self.epoch,
            term_seen: self.uplink.term(),
            summary: self.summary(),
            shortfalls: self.demand.reported_shortfalls(),
            acks: self.uplink.acks().cloned().collect(),
            domains: self.uplink.domains().cloned(),
            clusters: self
                .sessions
                .connected()
                .map(|(id, _)| id.clone())
                .collect(),
            acts: !self.rails.is_closed(),
        }
    }

    /// Machines and demand in a few numbers: counted by shape and by cluster, never by machine.
    pub(crate) fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        let mut pools: BTreeMap<(&str, &str), CapacityPool> = BTreeMap::new();
        let mut offered: BTreeMap<&Dimension, f64> = BTreeMap::new();
        for (_, shape, held) in self.supply.ledger().stock().iter() {
            let count = |state| held.in_state(state);
            let (idle, speculative) = (count(State::Idle), count(State::Speculative));
            let bound = count(State::Configured) + count(State::Configuring);
            summary.machines += held.total();
            summary.free += idle + speculative;
            for (counts, name) in [
                (&mut summary.by_instance_type, &shape.instance_type),
                (&mut summary.by_zone, &shape.zone),
            ] {
                *counts.entry(name.clone()).or_default() += held.total();
            }
            for (dimension, amount) in shape.effective().iter() {
                *offered.entry(dimension).or_default() += amount as f64 * f64::from(bound);
            }
            let key = (shape.instance_type.as_str(), shape.zone.as_str());
            let pool = pools.entry(key).or_insert_with(|| CapacityPool {
                instance_type: shape.instance_type.clone(),
                zone: shape.zone.clone(),
                idle: 0,
                speculative: 0,
                configured: 0,
                allocatable: shape.effective().clone(),
            });
            pool.idle += idle;
            pool.speculative += speculative;
            pool.configured += count(State::Configured);
            if pool.allocatable.covers(shape.effective()) {
                pool.allocatable.clone_from(shape.effective());
            }
        }
        summary.pools = pools.into_values().collect();
        // Stable: equals stay in the order of their names.
        summary
            .pools
            .sort_by_key(|pool| std::cmp::Reverse(pool.idle + pool.speculative));
        summary.pools.truncate(MOST_POOLS);
        summary.utilisation = offered
            .into_iter()
            .filter(|(_, offered)| 0.0 < *offered)
            .map(|(dimension, offered)| (dimension.clone(), self.demanded(dimension) / offered))
            .collect();
        summary
    }

    /// What all clusters that have reported ask for of one dimension.
    fn demanded(&self, dimension: &Dimension) -> f64 {
        self.baselines()
            .map(|baseline| baseline.totals.get(dimension.as_str()) as f64)
            .sum()
    }
}
