//! Belonging: what an earlier process was committed to, and which machines are this shard's.

use super::{Owner, Supply};
use crate::{
    event::Sighting,
    record::{Kept, Record},
};
use bigfleet_model::{ClusterId, Machine, MachineId, Time};
use std::collections::BTreeMap;

impl Supply {
    pub(crate) fn recall(&mut self, machine: MachineId, kept: Option<Box<Kept>>) {
        self.provider.recall(machine, kept);
    }

    /// Everything was recalled: there will be so many machines at least.
    pub(crate) fn recalled(&mut self) {
        let machines = self.provider.recalled();
        self.ledger.reserve(machines);
    }

    /// How many machines an earlier process was committed to.
    pub(crate) fn remembered_at_start(&self) -> usize {
        self.provider.remembered_at_start()
    }

    /// Machines that were not seen since the start, with what is remembered of them.
    pub(crate) fn remembered(&self) -> &BTreeMap<MachineId, Box<Kept>> {
        self.provider.remembered()
    }

    pub(crate) fn take_remembered(&mut self, id: &MachineId) -> Option<Box<Kept>> {
        self.provider.take_remembered(id)
    }

    /// Stops or resumes the deadlines of remembered operations; returns those that changed.
    pub(crate) fn hold_remembered(
        &mut self,
        is_closed: impl Fn(&Kept) -> bool,
        now: Time,
    ) -> Vec<MachineId> {
        self.provider.hold_remembered(is_closed, now)
    }

    /// Whether a machine carries this shard's mark.
    pub(crate) fn is_marked(&self, sighting: &Sighting) -> bool {
        self.ownership.is_marked(sighting)
    }

    /// Whether a machine carries another shard's mark.
    pub(crate) fn is_foreign(&self, sighting: &Sighting) -> bool {
        self.ownership.is_foreign(sighting)
    }

    /// Whether a machine is the one that seems to be another shard's.
    pub(crate) fn is_suspect(&self, id: &MachineId) -> bool {
        self.ownership.is_suspect(id)
    }

    /// What a Get says of that one; says whether another shard's mark is seen for the first time.
    pub(crate) fn judge_suspect(&mut self, is_foreign: bool) -> bool {
        self.ownership.judge_suspect(is_foreign)
    }

    /// A full List is over: what it did not show is suspected no more.
    pub(crate) fn forget_suspect_not_shown(&mut self) {
        self.ownership.forget_suspect_not_shown();
    }

    /// The shard a machine says it is bound by.
    pub(crate) fn mark<'s>(&self, sighting: &'s Sighting) -> Option<&'s str> {
        self.ownership.mark(sighting)
    }

    /// Whose a machine is that was never seen before (SH-13).
    pub(crate) fn owner(
        &mut self,
        sighting: &Sighting,
        is_ready: impl Fn(&ClusterId) -> bool,
    ) -> Owner {
        self.ownership.owner(sighting, is_ready)
    }

    /// Whether an earlier process has served a cluster.
    pub(crate) fn is_served(&self, cluster: &ClusterId) -> bool {
        self.ownership.is_served(cluster)
    }

    /// Whether a machine is in the owned set.
    pub(crate) fn is_owned(&self, machine: &MachineId) -> bool {
        self.ownership.is_owned(machine)
    }

    /// Whether this shard did not have every unbound machine of its provider so far.
    pub(crate) fn is_limited(&self) -> bool {
        self.ownership.is_limited()
    }

    pub(crate) fn set_owned(&mut self, machine: MachineId, is_owned: bool) {
        self.ownership.set_owned(machine, is_owned);
    }

    /// An admin forgets a machine, or it is something else again.
    pub(crate) fn set_retired(&mut self, machine: &MachineId, is_retired: bool) {
        self.ownership.set_retired(machine, is_retired);
    }

    /// Whether a machine was retired and is as it was then; and whether it is retired no longer.
    pub(crate) fn judge_retired(&mut self, machine: &Machine) -> (bool, bool) {
        self.ownership.judge_retired(machine)
    }

    /// A cluster that holds nothing is forgotten.
    pub(crate) fn forget_cluster(&mut self, cluster: &ClusterId) {
        self.ownership.forget_served(cluster);
        self.nodes.forget_cluster(cluster);
    }

    pub(crate) fn note_served(&mut self, cluster: ClusterId) {
        self.ownership.note_served(cluster);
    }

    pub(crate) fn note_foreign(&mut self) {
        self.ownership.note_foreign();
    }

    /// The records of what is owned.
    pub(crate) fn ownership_records(&self) -> impl Iterator<Item = Record> {
        self.ownership.records()
    }

    /// The records of retired machines.
    pub(crate) fn retired_records(&self) -> impl Iterator<Item = Record> {
        self.ownership.retired_records()
    }
}
