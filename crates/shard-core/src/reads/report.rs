//! The report upward: a shard's machines and demand in a few numbers (shard.md §10).

use super::Reads;
use crate::{
    demand::ReportedShortfall,
    holdings::{Held, TransferRecord},
    rails::Pool,
    uplink::InstructionAck,
};
use bigfleet_model::{Amounts, ClusterId, Dimension, Fingerprint, Shape, State};
use std::collections::BTreeMap;

/// Pools a summary names.
const MOST_POOLS: usize = 64;

/// Machines alike in type and zone.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityPool {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Idle ones that nothing is planned for (CO-42).
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
    /// Drawn with its data directory; zero if it has none.
    pub directory: u64,
    /// The highest term it has heard.
    pub term_seen: u64,
    /// Its machines and demand.
    pub summary: Summary,
    /// What is short, merged by fingerprint, at most 100 (SF-2).
    pub shortfalls: Vec<ReportedShortfall>,
    /// Answers to earlier instructions, oldest first.
    pub acks: Vec<InstructionAck>,
    /// What it may act on; `None` if nothing is on its disk.
    pub held: Option<Held>,
    /// Transfers that are open, by id.
    pub transfers: Vec<(String, TransferRecord)>,
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
            directory: self.holdings.directory().unwrap_or(0),
            term_seen: self.uplink.term(),
            summary: self.summary(),
            shortfalls: self.reported_shortfalls(),
            acks: self.uplink.acks().cloned().collect(),
            held: self.holdings.held(),
            transfers: self
                .holdings
                .transfers()
                .map(|(id, transfer)| (id.clone(), transfer.clone()))
                .collect(),
            clusters: self
                .sessions
                .connected()
                .map(|(id, _)| id.clone())
                .collect(),
            acts: !self.rails.is_closed(),
        }
    }

    /// What is short, as it is reported.
    pub(crate) fn reported_shortfalls(&self) -> Vec<ReportedShortfall> {
        let ledger = self.supply.ledger();
        let free = ledger.stock().iter().filter(|(_, shape, held)| {
            let may_be_bought = || !ledger.is_pool_closed(&Pool::of(shape));
            !held.idle.is_empty() || (!held.speculative.is_empty() && may_be_bought())
        });
        let free: Vec<&Shape> = free.map(|(_, shape, _)| &**shape).collect();
        // Thousands may be short, of a few profiles, and each profile is matched once.
        let mut matching: BTreeMap<Fingerprint, Vec<&Shape>> = BTreeMap::new();
        self.demand.reported_shortfalls(|short| {
            let row = &short.need.row;
            let profile = row.profile.fingerprint();
            if !matching.contains_key(profile) {
                let of_profile = free.iter().filter(|shape| shape.matches(&row.profile));
                matching.insert(profile.clone(), of_profile.copied().collect());
            }
            matching[profile].iter().any(|shape| {
                let mut missing = short.deficit.iter().filter(|(_, amount)| 0 < *amount);
                let has_some = missing.any(|(name, _)| 0 < shape.effective().get(name.as_str()));
                has_some && shape.effective().covers(&row.min_unit)
            })
        })
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
            // Whoever plans by it must not count what is promised: another shard would get it.
            pool.idle += held.idle.values().sum::<u32>();
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
