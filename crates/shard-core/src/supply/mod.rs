//! Supply: the machines, what the provider last said of them, and what they are committed to.
//!
//! ```text
//! provider ─ List, Get ─▶ Provider: believed? ─▶ Ownership: ours? ─▶ Ledger ─▶ Engine
//! operators ─ node reports ─▶ Nodes ──────────────────────────────────┘
//! ```
//!
//! **Invariant:** inventory, indexes, gauges and engine agree, because the ledger has one way to write; and
//! a machine that is gone is gone from all of it.

mod belonging;
mod changes;
mod deciding;
mod indexes;
mod ledger;
mod mistakes;
mod node_reports;
mod nodes;
mod ownership;
mod provider;
mod reading;
mod stock;

pub use indexes::GaugeKey;

pub(crate) use deciding::Decided;
pub(crate) use ledger::{Beside, EngineRows, Ledger};
pub(crate) use ownership::{ASSIGNED_SHARD, Owner};
pub(crate) use provider::{Absence, Listing};
pub(crate) use stock::Stock;

use crate::{effect::OperationId, rails::Pool, record::Kept, settings::ShardConfig};
use bigfleet_model::{
    ClusterId, FleetMachine, Leaving, Machine, MachineId, Time, Via, WriteRefused,
};
use nodes::Nodes;
use ownership::Ownership;
use provider::Provider;

/// The machines.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    ledger: Ledger,
    provider: Provider,
    ownership: Ownership,
    nodes: Nodes,
    /// Machines the last decision would have reclaimed but for what replaces them (RF-11), by id.
    kept_for_replacement: Vec<MachineId>,
}

impl Supply {
    pub(crate) fn new(config: &ShardConfig) -> Self {
        Self {
            ledger: Ledger::new(config),
            provider: Provider::new(config.full_lists),
            ownership: Ownership::new(&config.shard, &config.own_domains),
            nodes: Nodes::default(),
            kept_for_replacement: Vec::new(),
        }
    }

    /// The machines as they are believed to be, to look at.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn get(&self, id: &MachineId) -> Option<&Machine> {
        self.ledger.get(id)
    }

    pub(crate) fn beside(&self, id: &MachineId) -> Beside {
        self.ledger.beside(id)
    }

    /// Machines bound to a cluster, by id.
    pub(crate) fn bound_to(&self, cluster: &ClusterId) -> impl Iterator<Item = &MachineId> {
        self.ledger.bound_to(cluster)
    }

    /// The clusters a machine concerns: the one it is bound to and the one it is meant for.
    pub(crate) fn clusters_of(&self, id: &MachineId) -> impl Iterator<Item = &ClusterId> {
        let known = self.ledger.get(id);
        let bound = known.and_then(Machine::cluster);
        let meant = known.and_then(Machine::intent);
        let meant = meant.map(|intent| &intent.need.cluster);
        bound.into_iter().chain(meant)
    }

    /// What a machine costs, in dollars per hour.
    pub(crate) fn price_of(&self, id: &MachineId) -> Option<f64> {
        let known = self.ledger.get(id)?;
        Some(known.price().dollars_per_hour())
    }

    /// A machine with everything the engine is told of it.
    pub(crate) fn told(&self, id: &MachineId) -> Option<FleetMachine> {
        self.ledger.told(id)
    }

    /// The pool a machine belongs to.
    pub(crate) fn pool_of(&self, id: &MachineId) -> Option<Pool> {
        let known = self.ledger.get(id)?;
        Some(Pool::of(known.shape()))
    }
}

/// Writing machines.
impl Supply {
    /// Adds a machine seen for the first time.
    pub(crate) fn insert(&mut self, machine: Machine, now: Time) -> Result<(), WriteRefused> {
        self.ledger.insert(machine, now)
    }

    /// Replaces a known machine; returns what it was.
    pub(crate) fn apply(
        &mut self,
        machine: Machine,
        via: Via,
        now: Time,
    ) -> Result<Machine, WriteRefused> {
        self.ledger.apply(machine, via, now)
    }

    /// The provider no longer has a machine; returns what it was, and what was remembered of it.
    pub(crate) fn remove(&mut self, id: &MachineId) -> (Option<Machine>, Option<Box<Kept>>) {
        let remembered = self.provider.forget(id);
        (self.ledger.remove(id), remembered)
    }

    /// Has a machine share the one copy of its shape.
    pub(crate) fn share_shape(&mut self, machine: &mut Machine) {
        self.ledger.share_shape(machine);
    }

    /// Starts the idle clock of an Idle machine anew (RF-13).
    pub(crate) fn restart_idle_clock(&mut self, id: &MachineId, now: Time) {
        self.ledger.restart_idle_clock(id, now);
    }

    /// The operation a bound machine was bound by.
    pub(crate) fn bound_by(&self, id: &MachineId) -> Option<OperationId> {
        self.ledger.bound_by(id)
    }

    pub(crate) fn note_bound_by(&mut self, id: &MachineId, operation: OperationId) {
        self.ledger.note_bound_by(id, operation);
    }

    /// Its provider cannot delete a machine.
    pub(crate) fn note_undeletable(&mut self, id: &MachineId) {
        if !self.ledger.beside(id).undeletable && self.ledger.get(id).is_some() {
            self.ledger.note(id, |beside| beside.undeletable = true);
        }
    }

    /// A machine's node is not ready, or is again; says whether that is new.
    pub(crate) fn set_not_ready(&mut self, id: &MachineId, not_ready: bool) -> bool {
        let is_new = self.ledger.beside(id).not_ready != not_ready;
        if is_new {
            self.ledger.note(id, |beside| beside.not_ready = not_ready);
        }
        is_new
    }

    /// Whether a machine's drain can still be taken back (SH-18).
    pub(crate) fn set_reversible(&mut self, id: &MachineId, reversible: bool) {
        if self.ledger.beside(id).reversible != reversible {
            self.ledger
                .note(id, |beside| beside.reversible = reversible);
        }
    }

    /// How a machine is to leave (SH-20); says whether that is new. Nothing for one that is not known.
    pub(crate) fn set_leaving(&mut self, id: &MachineId, leaving: Option<Leaving>) -> bool {
        let is_known = self.ledger.get(id).is_some();
        let is_new = is_known && self.ledger.beside(id).leaving != leaving;
        if is_new {
            self.ledger.note(id, |beside| beside.leaving = leaving);
        }
        is_new
    }

    /// What the provider shows of a machine is not confirmed: it is no supply until it is.
    pub(crate) fn set_unconfirmed(&mut self, id: &MachineId, unconfirmed: bool) {
        self.ledger
            .note(id, |beside| beside.unconfirmed = unconfirmed);
    }

    /// Closes or opens a pool to acquisition (RF-17); says whether that changes anything.
    pub(crate) fn set_closed(&mut self, pool: &Pool, closed: bool) -> bool {
        self.ledger.set_closed(pool, closed)
    }
}
