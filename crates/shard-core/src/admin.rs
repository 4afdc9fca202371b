//! Admin: what a person tells a shard to do about what cannot mend itself (AD-1, AD-2).
//!
//! ```text
//! ReleaseCluster ─▶ demand ends, the cluster counts as heard ─▶ reclaimed as the rails allow
//! RetireMachine ──▶ a Failed machine is forgotten, and not taken in again while it is Failed
//! ```
//!
//! A cluster whose operator never comes holds its machines for ever, and rightly so: nobody has said
//! that it wants nothing. A person may say it in its place, with the number of machines that hangs on
//! it, so that a mistaken name releases nothing. The word stands across restarts, until the cluster
//! itself speaks again.

use crate::{ShardCore, audit::AuditRecord, audit::Outcome, effect::Effect, record::Record};
use bigfleet_model::{ClusterId, Machine, MachineId, State, Time};

impl ShardCore {
    /// Whether nothing stands against releasing a cluster: `None` if it may be, else why not.
    pub fn may_release(&self, cluster: &ClusterId, machines: usize) -> Option<String> {
        let bound = self.ledger.bound_to(cluster).count();
        if self.sessions.of(cluster).is_some() {
            return Some(format!(
                "cluster {cluster} has an operator connected (AD-1)"
            ));
        }
        (bound != machines)
            .then(|| format!("cluster {cluster} has {bound} machines, not {machines} (AD-1)"))
    }

    pub(crate) fn release_cluster(&mut self, now: Time, cluster: &ClusterId, machines: usize) {
        if self.may_release(cluster, machines).is_some() {
            return;
        }
        self.released.insert(cluster.clone());
        self.remember_record(Record::Released {
            cluster: cluster.clone(),
            released: true,
        });
        self.drop_demand(now, cluster);
    }

    /// The cluster wants nothing and has said so, by the word of a person.
    pub(crate) fn drop_demand(&mut self, now: Time, cluster: &ClusterId) {
        // Nothing cannot be too much to sum.
        let nothing = self.demand.propose(cluster, Vec::new()).unwrap_or_default();
        let replaced = self.demand.accept(cluster, nothing, now, &mut self.ledger);
        self.remember_arrivals(cluster, replaced);
        self.review_cluster(now, cluster);
        self.wants_cycle = true;
    }

    /// Whether nothing stands against retiring a machine: `None` if it may be, else why not.
    pub fn may_retire(&self, machine: &MachineId) -> Option<String> {
        match self.ledger.get(machine).map(Machine::state) {
            None => Some(format!("machine {machine} is not known")),
            Some(State::Failed) => None,
            Some(state) => Some(format!("machine {machine} is {state}, not Failed")),
        }
    }

    pub(crate) fn retire(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        if self.may_retire(machine).is_some() {
            return;
        }
        let known = self.ledger.get(machine);
        let cluster = known.and_then(|known| known.cluster()).cloned();
        effects.push(Effect::Audit(AuditRecord {
            time: now,
            cycle: self.cycle,
            decided_cycle: self.cycle,
            kind: None,
            operation: None,
            machine: machine.clone(),
            cluster,
            need: None,
            priority: None,
            reason: None,
            grace_seconds: 0,
            outcome: Outcome::Retired,
            error: String::new(),
            provider_operation: String::new(),
            took_seconds: None,
            price: self.price_of(machine),
            epoch: self.epoch,
            event: self.heard,
        }));
        self.gone(now, machine, effects);
        self.truth.retired.insert(machine.clone());
        self.remember_record(Record::Retired {
            machine: machine.clone(),
            retired: true,
        });
    }

    /// Whether a machine was retired and is as it was then. One that is something else again is new.
    pub(crate) fn is_retired(&mut self, machine: &Machine) -> bool {
        if machine.state() == State::Failed {
            return self.truth.retired.contains(machine.id());
        }
        if self.truth.retired.remove(machine.id()) {
            self.remember_record(Record::Retired {
                machine: machine.id().clone(),
                retired: false,
            });
        }
        false
    }
}
