//! Views: what a shard shows of itself. Reading changes nothing.

use crate::{
    ShardCore,
    counters::Counters,
    histogram::Latencies,
    ledger::GaugeKey,
    shortfall::{ReportedShortfall, Shortfall, Withheld},
};
use bigfleet_model::{Bucket, ClusterId, Machine, MachineId, Time};
use std::{collections::BTreeMap, time::Duration};

/// Gauges of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// The cycle counter.
    pub cycle: u64,
    /// Operations committed and not ended.
    pub in_flight: usize,
    /// Of those, waiting to leave.
    pub waiting: usize,
    /// Calls on the wire.
    pub on_wire: usize,
    /// Connected operators.
    pub sessions: usize,
    /// Whether everything is paused.
    pub paused: bool,
    /// Distinct fingerprints that are short, by priority class: other, batch, service, critical.
    pub shortfalls_by_class: [u32; 4],
    /// The same by age: 1–9, 10–59, 60–299, 300+ cycles.
    pub shortfalls_by_age: [u32; 4],
}

/// How far the provider has been seen since the start (SH-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaits {
    /// Complete Lists so far.
    pub lists: u32,
    /// Machines an earlier process was committed to.
    pub remembered: usize,
    /// Of those, not in any List yet.
    pub unseen: usize,
}

impl ShardCore {
    /// Whether the shard works: it has seen its provider, and has not been fenced.
    pub fn is_ready(&self) -> bool {
        self.truth.trusted && !self.fenced
    }

    /// What is still to be seen before anything is decided (SH-10); `None` once it was.
    pub fn awaits(&self) -> Option<Awaits> {
        let truth = &self.truth;
        (!truth.trusted).then_some(Awaits {
            lists: truth.lists,
            remembered: truth.remembered_at_start,
            unseen: truth.remembered.len(),
        })
    }

    /// The cycle counter.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Its epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Numbers that only grow.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How long things took.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Gauges of now.
    pub fn gauges(&self) -> Gauges {
        let split = self.shortfalls.split();
        Gauges {
            cycle: self.cycle,
            in_flight: self.operations.len(),
            waiting: self.waiting(),
            on_wire: self.on_wire.len(),
            sessions: self.sessions.len(),
            paused: self.all_closed(),
            shortfalls_by_class: split.by_class,
            shortfalls_by_age: split.by_age,
        }
    }

    /// Machines by state, capacity type and bucket; a series once set stays, at zero.
    pub fn inventory_gauge(&self) -> &BTreeMap<GaugeKey, u32> {
        &self.ledger.gauge
    }

    /// Rows of demand by bucket.
    pub fn demand_gauge(&self) -> &BTreeMap<Bucket, u32> {
        &self.demand.gauge
    }

    /// One machine.
    pub fn machine(&self, id: &MachineId) -> Option<&Machine> {
        self.ledger.get(id)
    }

    /// Every machine, by id.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.ledger.iter()
    }

    /// Since when a machine is idle.
    pub fn idle_since(&self, id: &MachineId) -> Option<Time> {
        self.ledger.idle_since(id)
    }

    /// Whether a machine's node is known not to have become ready.
    pub fn is_not_ready(&self, id: &MachineId) -> bool {
        self.ledger.beside(id).not_ready
    }

    /// Whether something is being done to a machine.
    pub fn is_pending(&self, id: &MachineId) -> bool {
        self.operations.contains_key(id)
    }

    /// When the last cycle ran; `None` before the first.
    pub fn last_cycle(&self) -> Option<Time> {
        self.last_cycle
    }

    /// How long the last cycle took, as far as whoever drives the core says so.
    pub fn last_cycle_took(&self) -> Duration {
        Duration::try_from_secs_f64(self.cycle_seconds).unwrap_or_default()
    }

    /// Whether this process has accepted a roll-up from a cluster.
    pub fn is_cluster_ready(&self, cluster: &ClusterId) -> bool {
        self.demand.is_ready(cluster)
    }

    /// Why nothing is acquired for a cluster, if so.
    pub fn withheld(&self, cluster: &ClusterId) -> Option<Withheld> {
        self.demand.clusters.get(cluster)?.withheld
    }

    /// What is short, Need by Need.
    pub fn shortfalls(&self) -> impl Iterator<Item = &Shortfall> {
        self.shortfalls.iter()
    }

    /// What is short, as reported upward.
    pub fn reported_shortfalls(&self) -> Vec<ReportedShortfall> {
        self.shortfalls.report()
    }
}
