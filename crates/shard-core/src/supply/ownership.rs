//! Ownership: which of the machines a provider shows are this shard's (SH-13).
//!
//! Two shards on one provider must not adopt each other's machines. A bound machine says whose it is;
//! an unbound one is ours by the owned set or by a domain. With neither configured everything is ours,
//! until another shard's mark is seen.

use crate::{event::Sighting, record::Record, uplink::Domain};
use bigfleet_model::{ClusterId, Machine, MachineId, State};
use std::collections::BTreeSet;

/// Metadata that names the shard a machine is bound by.
pub(crate) const ASSIGNED_SHARD: &str = "bigfleet.lucy.sh/assigned-shard";

/// Whose a machine is that was never seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This shard's.
    Us,
    /// Not this shard's.
    SomebodyElse,
    /// It carries another shard's mark, and is the first that was seen to.
    FirstForeign,
}

/// What this shard owns.
#[derive(Clone, Debug, Default)]
pub(super) struct Ownership {
    shard: String,
    /// Labels (key, value) of machines that are ours; empty for no such limit.
    own_domains: Vec<(String, String)>,
    owned: BTreeSet<MachineId>,
    /// Clusters an earlier process has served.
    served: BTreeSet<ClusterId>,
    /// Another shard's mark was seen on a machine.
    is_foreign_seen: bool,
    /// Failed machines an admin has forgotten: not taken in again while they are Failed.
    retired: BTreeSet<MachineId>,
}

impl Ownership {
    pub(super) fn new(shard: &str, own_domains: &[(String, String)]) -> Self {
        Self {
            shard: shard.to_owned(),
            own_domains: own_domains.to_vec(),
            ..Self::default()
        }
    }

    /// Whether a machine carries another shard's mark.
    pub(super) fn is_foreign(&self, sighting: &Sighting) -> bool {
        mark(sighting).is_some_and(|shard| shard != self.shard)
    }

    /// SH-13. `assigned` are the domains assigned from above, if any ever were; `is_ready` says whether a
    /// cluster has been heard.
    pub(super) fn owner(
        &mut self,
        sighting: &Sighting,
        assigned: Option<&BTreeSet<Domain>>,
        is_ready: impl Fn(&ClusterId) -> bool,
    ) -> Owner {
        if let Some(shard) = mark(sighting) {
            if shard == self.shard {
                return Owner::Us;
            }
            return if std::mem::replace(&mut self.is_foreign_seen, true) {
                Owner::SomebodyElse
            } else {
                Owner::FirstForeign
            };
        }
        if self.is_ours_unmarked(&sighting.machine, assigned, is_ready) {
            Owner::Us
        } else {
            Owner::SomebodyElse
        }
    }

    fn is_ours_unmarked(
        &self,
        machine: &Machine,
        assigned: Option<&BTreeSet<Domain>>,
        is_ready: impl Fn(&ClusterId) -> bool,
    ) -> bool {
        if let Some(cluster) = machine.cluster() {
            return self.served.contains(cluster) || is_ready(cluster) || !self.is_foreign_seen;
        }
        if self.own_domains.is_empty() && self.owned.is_empty() && assigned.is_none() {
            return !self.is_foreign_seen;
        }
        let is_inside = |key: &str, value: &str| machine.shape().attribute(key) == Some(value);
        let mut own = self.own_domains.iter();
        let mut assigned = assigned.into_iter().flatten();
        self.owned.contains(machine.id())
            || own.any(|(key, value)| is_inside(key, value))
            || assigned.any(|domain| is_inside(&domain.key, &domain.value))
    }

    /// A machine came into the owned set, or left it.
    pub(super) fn set_owned(&mut self, machine: MachineId, is_owned: bool) {
        if is_owned {
            self.owned.insert(machine);
        } else {
            self.owned.remove(&machine);
        }
    }

    /// An admin forgets a machine, or it is something else again; says whether that changed anything.
    pub(super) fn set_retired(&mut self, machine: &MachineId, is_retired: bool) -> bool {
        if is_retired {
            self.retired.insert(machine.clone())
        } else {
            self.retired.remove(machine)
        }
    }

    /// Whether a machine was retired and is as it was then. One that is something else again is new, and
    /// no longer retired: the second value says that it was.
    pub(super) fn judge_retired(&mut self, machine: &Machine) -> (bool, bool) {
        if machine.state() == State::Failed {
            return (self.retired.contains(machine.id()), false);
        }
        (false, self.set_retired(machine.id(), false))
    }

    /// An earlier process has served this cluster.
    pub(super) fn note_served(&mut self, cluster: ClusterId) {
        self.served.insert(cluster);
    }

    /// An earlier process has seen another shard's mark.
    pub(super) fn note_foreign(&mut self) {
        self.is_foreign_seen = true;
    }

    /// What of this outlives the process: the mark that was seen and the owned set.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let foreign = self.is_foreign_seen.then_some(Record::ForeignSeen);
        let owned = self.owned.iter().map(|machine| Record::Owned {
            machine: machine.clone(),
            owned: true,
        });
        foreign.into_iter().chain(owned)
    }

    /// The records of retired machines.
    pub(super) fn retired_records(&self) -> impl Iterator<Item = Record> {
        self.retired.iter().map(|machine| Record::Retired {
            machine: machine.clone(),
            retired: true,
        })
    }
}

/// The shard a machine says it is bound by.
fn mark(sighting: &Sighting) -> Option<&str> {
    let shard = sighting.echoed.get(ASSIGNED_SHARD)?;
    Some(shard).filter(|shard| !shard.is_empty())
}
