//! Indexes: by what machines are found, and how many there are of each kind.
//!
//! ```text
//! what a machine was, what it is ─▶ keys of either ─▶ out of where it was, into where it is
//! ```

use super::stock::Stock;
use crate::rails::Pool;
use bigfleet_model::{Bucket, CapacityType, ClusterId, Machine, MachineId, Shape, State};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A series of the inventory gauge.
pub type GaugeKey = (State, CapacityType, Bucket);

/// The indexes of a ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    /// By the cluster each is bound to, in any state.
    bound: BTreeMap<ClusterId, BTreeSet<MachineId>>,
    /// By the cluster each is meant for.
    promised: BTreeMap<ClusterId, BTreeSet<MachineId>>,
    configured: BTreeMap<ClusterId, u32>,
    speculative: BTreeMap<Pool, BTreeSet<MachineId>>,
    /// Those that are Failed: a store that somebody has to empty.
    failed: BTreeSet<MachineId>,
    stock: Stock,
    gauge: BTreeMap<GaugeKey, u32>,
}

impl Indexes {
    pub(super) fn stock(&self) -> &Stock {
        &self.stock
    }

    /// Has a machine share the one copy of its shape.
    pub(super) fn share_shape(&mut self, machine: &mut Machine) {
        self.stock.share_with(machine);
    }

    pub(super) fn gauge(&self) -> &BTreeMap<GaugeKey, u32> {
        &self.gauge
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &MachineId> {
        self.failed.iter()
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.bound.keys()
    }

    pub(super) fn bound_to(&self, cluster: &ClusterId) -> impl Iterator<Item = &MachineId> {
        self.bound.get(cluster).into_iter().flatten()
    }

    pub(super) fn promised_to(&self, cluster: &ClusterId) -> impl Iterator<Item = &MachineId> {
        self.promised.get(cluster).into_iter().flatten()
    }

    pub(super) fn configured(&self, cluster: &ClusterId) -> u32 {
        self.configured.get(cluster).copied().unwrap_or(0)
    }

    pub(super) fn speculative(&self, pool: &Pool) -> impl Iterator<Item = &MachineId> {
        self.speculative.get(pool).into_iter().flatten()
    }

    /// Brings the indexes and gauges from what a machine was to what it is; either may be nothing. What
    /// stays the same is not touched.
    pub(super) fn replace(&mut self, id: &MachineId, was: Option<&Machine>, is: Option<&Machine>) {
        let (from, to) = (IndexKeys::of(was), IndexKeys::of(is));
        if from.bound != to.bound {
            member(&mut self.bound, from.bound, to.bound, id);
        }
        if from.configured() != to.configured() {
            count(&mut self.configured, from.configured(), to.configured());
        }
        if from.promised != to.promised {
            member(&mut self.promised, from.promised, to.promised, id);
        }
        if from.speculative() != to.speculative() {
            let pool = |shape: Option<&Arc<Shape>>| shape.map(|shape| Pool::of(shape));
            let (from, to) = (pool(from.speculative()), pool(to.speculative()));
            member(&mut self.speculative, from.as_ref(), to.as_ref(), id);
        }
        if from.state != to.state {
            self.failed.remove(id);
            if to.state == Some(State::Failed) {
                self.failed.insert(id.clone());
            }
        }
        if from.gauge != to.gauge {
            count(&mut self.gauge, from.gauge.as_ref(), to.gauge.as_ref());
        }
        self.stock.replace(was, is);
    }
}

/// The keys a machine is found by in the indexes.
#[derive(Default)]
struct IndexKeys<'a> {
    state: Option<State>,
    shape: Option<&'a Arc<Shape>>,
    bound: Option<&'a ClusterId>,
    promised: Option<&'a ClusterId>,
    gauge: Option<GaugeKey>,
}

impl<'a> IndexKeys<'a> {
    fn of(machine: Option<&'a Machine>) -> Self {
        let Some(machine) = machine else {
            return Self::default();
        };
        let bucket = match machine.cluster() {
            Some(_) => Bucket::of(machine.assignment().terms.interruption.dollars()),
            None => Bucket::UNSPECIFIED,
        };
        let shape = machine.shape();
        Self {
            state: Some(machine.state()),
            shape: Some(shape),
            bound: machine.cluster(),
            promised: machine.intent().map(|intent| &intent.need.cluster),
            gauge: Some((machine.state(), shape.capacity_type, bucket)),
        }
    }

    fn configured(&self) -> Option<&'a ClusterId> {
        self.bound.filter(|_| self.state == Some(State::Configured))
    }

    fn speculative(&self) -> Option<&'a Arc<Shape>> {
        self.shape
            .filter(|_| self.state == Some(State::Speculative))
    }
}

/// Takes a machine from where it was and puts it where it is.
fn member<K: Ord + Clone>(
    index: &mut BTreeMap<K, BTreeSet<MachineId>>,
    from: Option<&K>,
    to: Option<&K>,
    id: &MachineId,
) {
    if let Some((key, ids)) = from.and_then(|key| Some((key, index.get_mut(key)?))) {
        ids.remove(id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
    if let Some(key) = to {
        index.entry(key.clone()).or_default().insert(id.clone());
    }
}

/// Counts one less where a machine was and one more where it is. What reaches zero stays.
fn count<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, from: Option<&K>, to: Option<&K>) {
    if let Some(count) = from.and_then(|key| counts.get_mut(key)) {
        *count = count.saturating_sub(1);
    }
    if let Some(key) = to {
        *counts.entry(key.clone()).or_default() += 1;
    }
}
