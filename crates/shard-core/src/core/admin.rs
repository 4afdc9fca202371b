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

use super::ShardCore;
use crate::{audit::Outcome, effect::Effect, record::Record};
use bigfleet_model::{ClusterId, Machine, MachineId, State, Time, counted};
use std::collections::BTreeSet;

impl ShardCore {
    /// Whether nothing stands against releasing a cluster: `None` if it may be, else why not.
    pub fn may_release(&self, cluster: &ClusterId, machines: usize) -> Option<String> {
        let bound = self.supply.bound_to(cluster).count();
        if self.sessions.is_connected(cluster) {
            return Some(format!(
                "cluster {cluster} has an operator connected (AD-1)"
            ));
        }
        (bound != machines).then(|| {
            let bound = counted(bound, "machine", "machines");
            format!("cluster {cluster} has {bound}, not {machines} (AD-1)")
        })
    }

    pub(super) fn release_cluster(&mut self, now: Time, cluster: &ClusterId, machines: usize) {
        if self.may_release(cluster, machines).is_some() {
            return;
        }
        self.rails.set_released(cluster, true);
        self.remember_record(Record::Released {
            cluster: cluster.clone(),
            released: true,
        });
        self.drop_demand(now, cluster);
    }

    /// The cluster wants nothing and has said so, by the word of a person.
    pub(super) fn drop_demand(&mut self, now: Time, cluster: &ClusterId) {
        // Nothing cannot be too much to sum.
        let nothing = self.demand.propose(cluster, Vec::new()).unwrap_or_default();
        let mut engine = self.supply.rows();
        let replaced = self.demand.accept(cluster, nothing, now, &mut engine);
        self.remember_arrivals(cluster, replaced);
        self.review_cluster(now, cluster);
        self.schedule.want_cycle();
    }

    /// Whether nothing stands against retiring a machine: `None` if it may be, else why not.
    pub fn may_retire(&self, machine: &MachineId) -> Option<String> {
        match self.supply.get(machine).map(Machine::state) {
            None => Some(format!("machine {machine} is not known")),
            Some(State::Failed) => None,
            Some(state) => Some(format!("machine {machine} is {state}, not Failed")),
        }
    }

    pub(super) fn retire(&mut self, now: Time, machine: &MachineId, effects: &mut Vec<Effect>) {
        if self.may_retire(machine).is_some() {
            return;
        }
        let mut record = self.audit(machine.clone(), Outcome::Retired);
        let known = self.supply.get(machine);
        record.cluster = known.and_then(Machine::cluster).cloned();
        effects.push(Effect::Audit(record));
        self.gone(now, machine, effects);
        self.supply.set_retired(machine, true);
        self.remember_record(Record::Retired {
            machine: machine.clone(),
            retired: true,
        });
    }

    /// Machines came into the owned set, and left it.
    pub(super) fn own(&mut self, add: BTreeSet<MachineId>, remove: BTreeSet<MachineId>) {
        let add = add.into_iter().map(|machine| (machine, true));
        let remove = remove.into_iter().map(|machine| (machine, false));
        for (machine, owned) in add.chain(remove) {
            self.supply.set_owned(machine.clone(), owned);
            self.remember_record(Record::Owned { machine, owned });
        }
    }
}
