//! Ownership: which of the machines a provider shows are this shard's (SH-13).
//!
//! Two shards on one provider must not adopt each other's machines. A bound machine says whose it is;
//! an unbound one is ours by the owned set or by a domain. With neither configured everything is ours,
//! until another shard's mark is seen.

use crate::{
    ShardCore,
    effect::{Alert, Effect},
    event::Sighting,
    gate::ASSIGNED_SHARD,
    record::Record,
};
use bigfleet_model::{MachineId, Time};
use std::collections::BTreeSet;

impl ShardCore {
    /// Whether a machine carries another shard's mark.
    pub(crate) fn is_foreign(&self, sighting: &Sighting) -> bool {
        let shard = sighting.echoed.get(ASSIGNED_SHARD);
        shard.is_some_and(|shard| !shard.is_empty() && *shard != self.config.shard)
    }

    /// SH-13.
    pub(crate) fn is_ours(&mut self, sighting: &Sighting, effects: &mut Vec<Effect>) -> bool {
        let machine = &sighting.machine;
        let shard = sighting.echoed.get(ASSIGNED_SHARD);
        if let Some(shard) = shard.filter(|shard| !shard.is_empty()) {
            if *shard == self.config.shard {
                return true;
            }
            if !self.truth.foreign_seen {
                self.truth.foreign_seen = true;
                self.remember_record(Record::ForeignSeen);
                effects.push(Effect::Alert(Alert::ForeignShard {
                    machine: machine.id().clone(),
                }));
            }
            return false;
        }
        if let Some(cluster) = machine.cluster() {
            return self.truth.served.contains(cluster)
                || self.demand.is_ready(cluster)
                || !self.truth.foreign_seen;
        }
        let domains = &self.config.own_domains;
        let inside = |(key, value): &(String, String)| {
            machine.shape().attribute(key) == Some(value.as_str())
        };
        let assigned = self.upward.domains.as_ref();
        if domains.is_empty() && self.truth.owned.is_empty() && assigned.is_none() {
            return !self.truth.foreign_seen;
        }
        let assigned = assigned
            .into_iter()
            .flatten()
            .any(|domain| machine.shape().attribute(&domain.key) == Some(domain.value.as_str()));
        self.truth.owned.contains(machine.id()) || domains.iter().any(inside) || assigned
    }

    pub(crate) fn own(
        &mut self,
        _now: Time,
        add: BTreeSet<MachineId>,
        remove: BTreeSet<MachineId>,
    ) {
        for machine in add {
            self.truth.owned.insert(machine.clone());
            self.remember_record(Record::Owned {
                machine,
                owned: true,
            });
        }
        for machine in remove {
            self.truth.owned.remove(&machine);
            self.remember_record(Record::Owned {
                machine,
                owned: false,
            });
        }
    }
}
