//! Ledger: what the shard believes of every machine, and the engine that decides on it.
//!
//! ```text
//! write ─▶ Inventory (edges, grid, idle clock) ─▶ indexes and gauges ─▶ Engine (what changed)
//! ```
//!
//! One way to write, so inventory, indexes and engine cannot disagree, and a cycle costs what changed.

use super::{
    changes::Changes,
    indexes::{GaugeKey, Indexes},
    mistakes::wrongly_told,
    stock::Stock,
};
use crate::{
    defect::Defect,
    effect::{ListId, OperationId},
    rails::Pool,
    settings::ShardConfig,
};
use bigfleet_engine::Engine;
use bigfleet_model::{
    Cluster, ClusterId, Disruption, FleetMachine, Inventory, Leaving, Machine, MachineId, Need,
    State, Time, Via, WriteRefused,
};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a machine beside its record; most machines have nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Beside {
    /// Its node did not become ready.
    pub(crate) not_ready: bool,
    /// Its provider shows something that is not confirmed.
    pub(crate) unconfirmed: bool,
    /// Its provider cannot delete it.
    pub(crate) undeletable: bool,
    /// What draining it would disturb, as its cluster's operator told; kept while it is that cluster's.
    pub(crate) disruption: Option<Disruption>,
    /// Its drain can still be taken back (SH-18).
    pub(crate) reversible: bool,
    /// How it is to leave, if it is (SH-20).
    pub(crate) leaving: Option<Leaving>,
    /// The last change made here, by the count of reads begun before it: what a read that began
    /// earlier shows is older than what we know.
    pub(crate) changed: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    machines: Inventory,
    engine: Engine,
    /// An old mistake switched on.
    defect: Option<Defect>,
    /// Whether the engine was told anything since a cycle last looked.
    is_touched: bool,
    /// Reads of the provider begun so far.
    reads: u64,
    beside: BTreeMap<MachineId, Beside>,
    /// The operation each bound machine was bound by, as far as its provider echoes it or we know.
    bound_by: BTreeMap<MachineId, OperationId>,
    closed: BTreeSet<Pool>,
    indexes: Indexes,
    /// The last machines that changed, oldest first, for copies made in steps.
    changes: Changes,
}

/// The engine's side of a ledger that demand is told to.
pub(crate) struct EngineRows<'l> {
    engine: &'l mut Engine,
    is_touched: &'l mut bool,
}

impl EngineRows<'_> {
    pub(crate) fn put(&mut self, need: &Need) {
        self.engine.put_row(need);
        *self.is_touched = true;
    }

    pub(crate) fn remove(&mut self, need: &Need) {
        self.engine.remove_row(need);
        *self.is_touched = true;
    }

    pub(crate) fn put_cluster(&mut self, cluster: &ClusterId, value: &Cluster) {
        self.engine.put_cluster(cluster, value);
        *self.is_touched = true;
    }
}

impl Ledger {
    pub(super) fn new(config: &ShardConfig) -> Self {
        let mut ledger = Self {
            machines: Inventory::keyed(config.hash_key),
            engine: Engine::keyed(config.hash_key),
            defect: config.defect,
            ..Self::default()
        };
        ledger.engine.set_holds(config.holds);
        if let Some(mistake) = config.defect.and_then(Defect::of_the_engine) {
            ledger.engine.make(mistake);
        }
        ledger
    }

    /// Where demand is told to the engine.
    pub(super) fn rows(&mut self) -> EngineRows<'_> {
        EngineRows {
            engine: &mut self.engine,
            is_touched: &mut self.is_touched,
        }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Whether the engine was told anything since this was last asked.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    pub(crate) fn stock(&self) -> &Stock {
        self.indexes.stock()
    }

    /// Machines by state, capacity type and bucket; a series once set stays, at zero.
    pub(crate) fn gauge(&self) -> &BTreeMap<GaugeKey, u32> {
        self.indexes.gauge()
    }

    /// Which machines changed lately.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    pub(crate) fn get(&self, id: &MachineId) -> Option<&Machine> {
        self.machines.get(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.machines.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter()
    }

    pub(crate) fn after(&self, id: Option<&MachineId>) -> impl Iterator<Item = &Machine> {
        self.machines.after(id)
    }

    pub(crate) fn idle_since(&self, id: &MachineId) -> Option<Time> {
        self.machines.idle_since(id)
    }

    pub(crate) fn state_since(&self, id: &MachineId) -> Option<Time> {
        self.machines.state_since(id)
    }

    /// Since when the machine is Failed that has been for longest, as far as it was seen.
    pub(crate) fn failed_since(&self) -> Option<Time> {
        let failed = self.indexes.failed();
        failed.filter_map(|id| self.machines.state_since(id)).min()
    }

    pub(crate) fn beside(&self, id: &MachineId) -> Beside {
        self.beside.get(id).copied().unwrap_or_default()
    }

    /// Clusters that machines are bound to.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.indexes.clusters()
    }

    /// Machines bound to a cluster, by id.
    pub(crate) fn bound_to(&self, cluster: &ClusterId) -> impl Iterator<Item = &MachineId> {
        self.indexes.bound_to(cluster)
    }

    /// Machines meant for a cluster, by id.
    pub(crate) fn promised_to(&self, cluster: &ClusterId) -> Vec<MachineId> {
        self.indexes.promised_to(cluster).cloned().collect()
    }

    pub(crate) fn configured(&self, cluster: &ClusterId) -> u32 {
        self.indexes.configured(cluster)
    }

    /// Makes room for so many machines, which are to come.
    pub(super) fn reserve(&mut self, machines: usize) {
        self.machines.reserve(machines);
    }

    /// Adds a machine seen for the first time.
    pub(super) fn insert(&mut self, mut machine: Machine, now: Time) -> Result<(), WriteRefused> {
        self.indexes.share_shape(&mut machine);
        let id = machine.id().clone();
        self.machines.insert(machine, now)?;
        self.indexes.replace(&id, None, self.machines.get(&id));
        self.tell_engine(&id);
        Ok(())
    }

    /// Replaces a known machine; returns what it was. A change of state or cluster is one made here at
    /// `now`.
    pub(super) fn apply(
        &mut self,
        machine: Machine,
        via: Via,
        now: Time,
    ) -> Result<Machine, WriteRefused> {
        let id = machine.id().clone();
        let (state, is_bound) = (machine.state(), machine.state().is_bound());
        let cluster = machine.cluster().cloned();
        let former = self.machines.apply(machine, via, now)?;
        let is = self.machines.get(&id);
        self.indexes.replace(&id, Some(&former), is);
        if former.cluster() != cluster.as_ref() {
            self.bound_by.remove(&id);
        }
        if former.state() != state || former.cluster() != cluster.as_ref() {
            let (reads, was_bound) = (self.reads, former.state().is_bound());
            let has_moved = former.cluster() != cluster.as_ref();
            self.set_beside(&id, |beside| {
                beside.changed = Some(reads);
                beside.reversible = false; // of another drain, if it drains at all
                beside.disruption = beside.disruption.filter(|_| !has_moved);
                beside.not_ready &= was_bound && is_bound;
            });
        }
        self.tell_engine(&id);
        Ok(former)
    }

    /// Starts the idle clock of an Idle machine anew (RF-13).
    pub(super) fn restart_idle_clock(&mut self, id: &MachineId, now: Time) {
        self.machines.restart_clock(id, now);
        self.tell_engine(id);
    }

    pub(super) fn remove(&mut self, id: &MachineId) -> Option<Machine> {
        let former = self.machines.remove(id)?;
        self.indexes.replace(id, Some(&former), None);
        self.beside.remove(id);
        self.bound_by.remove(id);
        self.engine.remove_machine(id);
        self.is_touched = true;
        self.changes.note(id);
        Some(former)
    }

    /// The operation a bound machine was bound by.
    pub(crate) fn bound_by(&self, id: &MachineId) -> Option<OperationId> {
        self.bound_by.get(id).copied()
    }

    /// A bound machine was bound by this operation.
    pub(super) fn note_bound_by(&mut self, id: &MachineId, operation: OperationId) {
        if self.get(id).is_some_and(|known| known.cluster().is_some()) {
            self.bound_by.insert(id.clone(), operation);
        }
    }

    /// Changes what is known beside the record.
    pub(super) fn note(&mut self, id: &MachineId, change: impl FnOnce(&mut Beside)) {
        self.set_beside(id, change);
        self.tell_engine(id);
    }

    /// Notes what draining a machine would disturb. It is read where something leaves and nowhere else, so
    /// nothing counts as changed by it (SH-19).
    pub(super) fn note_disruption(&mut self, id: &MachineId, told: Option<Disruption>) {
        if self.beside(id).disruption != told {
            self.set_beside(id, |beside| beside.disruption = told);
            self.changes.note(id);
            self.engine.set_disruption(id, told);
        }
    }

    fn set_beside(&mut self, id: &MachineId, change: impl FnOnce(&mut Beside)) {
        let mut beside = self.beside(id);
        change(&mut beside);
        if beside == Beside::default() {
            self.beside.remove(id);
        } else {
            self.beside.insert(id.clone(), beside);
        }
    }

    /// A read of the provider begins; returns its place among reads and changes. Moments would not
    /// do: many things happen at the same one.
    pub(super) fn begin_read(&mut self) -> u64 {
        let began = self.reads;
        self.reads += 1;
        began
    }

    /// Notes that a List shows a machine.
    pub(super) fn shown(&mut self, id: &MachineId, list: ListId) {
        self.machines.mark(id, list.0);
    }

    /// Whether a List has shown a machine, and no later one.
    pub(crate) fn is_shown(&self, id: &MachineId, list: ListId) -> bool {
        self.machines.marked(id) == Some(list.0)
    }

    /// Machines a List has not shown, by id.
    pub(crate) fn not_shown(&self, list: ListId) -> impl Iterator<Item = &MachineId> {
        self.machines.not_marked(list.0).map(Machine::id)
    }

    /// Whether a read that began then may show less than what was done here since.
    pub(crate) fn is_stale(&self, id: &MachineId, began: u64) -> bool {
        self.beside(id)
            .changed
            .is_some_and(|changed| began < changed)
    }

    /// Forgets local changes older than a List that has been taken in.
    pub(super) fn settle_before(&mut self, began: u64) {
        self.beside.retain(|_, beside| {
            beside.changed = beside.changed.filter(|changed| began < *changed);
            *beside != Beside::default()
        });
    }

    /// Closes or opens a pool to acquisition (RF-17); says whether that changes anything.
    pub(super) fn set_closed(&mut self, pool: &Pool, closed: bool) -> bool {
        let changed = if closed {
            self.closed.insert(pool.clone())
        } else {
            self.closed.remove(pool)
        };
        if changed {
            let ids: Vec<MachineId> = self.indexes.speculative(pool).cloned().collect();
            ids.iter().for_each(|id| self.tell_engine(id));
        }
        changed
    }

    /// Has a machine share the one copy of its shape.
    pub(super) fn share_shape(&mut self, machine: &mut Machine) {
        self.indexes.share_shape(machine);
    }

    fn tell_engine(&mut self, id: &MachineId) {
        let Some(machine) = self.machines.get(id) else {
            return;
        };
        self.is_touched = true;
        self.changes.note(id);
        if let Some(defect) = self.defect {
            match self.told(id).and_then(|told| wrongly_told(told, defect)) {
                Some(told) => self.engine.put_machine(&told),
                None => self.engine.remove_machine(id),
            }
            return;
        }
        let beside = self.beside(id);
        let beside = bigfleet_engine::Beside {
            idle_since: self.machines.idle_since(id),
            not_ready: beside.not_ready,
            unavailable: beside.unconfirmed || self.is_closed(machine),
            disruption: beside.disruption,
            reversible: beside.reversible,
            leaving: beside.leaving,
        };
        self.engine.put_record(machine, beside);
    }

    /// A machine with everything the engine is told of it.
    pub(crate) fn told(&self, id: &MachineId) -> Option<FleetMachine> {
        let machine = self.machines.get(id)?;
        let beside = self.beside(id);
        Some(FleetMachine {
            machine: machine.clone(),
            idle_since: self.machines.idle_since(id),
            not_ready: beside.not_ready,
            unavailable: beside.unconfirmed || self.is_closed(machine),
            disruption: beside.disruption,
            reversible: beside.reversible,
            leaving: beside.leaving,
        })
    }

    /// Whether a pool is closed to acquisition (RF-17).
    pub(crate) fn is_pool_closed(&self, pool: &Pool) -> bool {
        self.closed.contains(pool)
    }

    /// Whether a machine's pool is closed to acquisition (RF-17).
    pub(crate) fn is_closed(&self, machine: &Machine) -> bool {
        machine.state() == State::Speculative
            && !self.closed.is_empty()
            && self.closed.contains(&Pool::of(machine.shape()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::HashKey;

    /// What an operator can make up to be slow to find, with a key it knows and with one that was drawn (D-6).
    #[test]
    fn names_are_found_with_the_key_of_the_process() {
        let known = ShardConfig::production("s", "p");
        let crafted = |name: &String| known.hash_key.hash(name.as_bytes()).is_multiple_of(1024);
        let names: Vec<String> = (0..)
            .map(|number| format!("cluster-{number}"))
            .filter(crafted)
            .take(500)
            .collect();
        let searched = |config: &ShardConfig| {
            let mut ledger = Ledger::new(config);
            for name in &names {
                let id = ClusterId::new(name).unwrap();
                ledger.rows().put_cluster(&id, &Cluster::default());
            }
            ledger.engine().places_searched()
        };
        let drawn = ShardConfig {
            hash_key: HashKey::new([b"a", b"b", b"c"].map(|text| known.hash_key.hash(text))),
            ..known.clone()
        };
        assert!(searched(&drawn) < 2 * names.len());
        assert!(100 * names.len() < searched(&known), "nobody would notice");
    }
}
