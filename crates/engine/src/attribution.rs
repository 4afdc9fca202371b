//! Attribution: which row inherits the machines of a row that is gone, and which intents end (RF-1).

use crate::{
    fleet_tables::{FleetTables, Slot},
    index::{
        ClusterIndex, ConstraintsIndex, FingerprintIndex, GroupIndex, Index, MachineIndex,
        NeedIndex, SlotIndex,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// The slots that may inherit.
type Heirs = BTreeMap<ConstraintsIndex, Option<SlotIndex>>;

impl FleetTables {
    /// Finds an heir for the machines of every orphaned slot of the clusters that changed.
    pub(crate) fn pass_on(&mut self) {
        self.work.marked += self.dirty_clusters.len() as u64;
        for cluster in std::mem::take(&mut self.dirty_clusters) {
            self.clusters[cluster].heirs_dirty = false;
            let range = (cluster, SlotIndex::FIRST)..=(cluster, SlotIndex::LAST);
            let orphans: Vec<SlotIndex> =
                self.orphans.range(range).map(|(_, slot)| *slot).collect();
            let mut heirs: BTreeMap<GroupIndex, Heirs> = BTreeMap::new();
            for orphan in orphans {
                let Slot {
                    group, fingerprint, ..
                } = self.slots[orphan];
                let heirs = heirs.entry(group);
                let heirs = heirs.or_insert_with(|| self.heirs_in(cluster, group));
                let constraints = self.constraints[fingerprint];
                let heir = constraints.and_then(|constraints| *heirs.get(&constraints)?);
                self.set_heir(orphan, heir);
            }
        }
    }

    /// By constraints, the one current row of a group that no machine is recorded for; none where there are
    /// several. Worked out once for all orphans of the group.
    fn heirs_in(&self, cluster: ClusterIndex, group: GroupIndex) -> Heirs {
        let first = (cluster, group, FingerprintIndex::FIRST);
        let of_group = self
            .slot_indexes
            .range(first..=(cluster, group, FingerprintIndex::LAST));
        let mut heirs = Heirs::new();
        for slot in of_group.map(|(_, slot)| *slot) {
            let entry = &self.slots[slot];
            if entry.is_current()
                && entry.machines.is_empty()
                && let Some(constraints) = self.constraints[entry.fingerprint]
            {
                let found = heirs.entry(constraints);
                found.and_modify(|only| *only = None).or_insert(Some(slot));
            }
        }
        heirs
    }

    pub(crate) fn set_heir(&mut self, slot: SlotIndex, heir: Option<SlotIndex>) {
        let before = std::mem::replace(&mut self.slots[slot].heir, heir);
        if before == heir {
            return;
        }
        // The Need that claims them as its own may have lost them to another.
        for machine in self.slots[slot].machines.clone() {
            if let Some(claimant) = self.claimant(machine) {
                self.mark_need(claimant);
                self.unclaim(claimant, machine);
            }
        }
        if let Some(before) = before {
            self.slots[before].bequests.retain(|from| *from != slot);
            self.mark_slot(before);
            self.rehome(before);
        }
        if let Some(heir) = heir {
            self.slots[heir].bequests.push(slot);
            self.rehome(heir);
        }
        self.mark_slot(slot);
        self.rehome(slot);
        self.mark_classes_of(self.slots[slot].cluster);
    }

    /// Whether the Need a slot stands for is among this cycle's.
    pub(crate) fn is_live(&self, slot: SlotIndex) -> bool {
        let slot = &self.slots[self.slots[slot].heir.unwrap_or(slot)];
        let live = |need: NeedIndex| self.need(need).is_live();
        slot.rows.iter().any(|row| live(*row))
            || slot
                .classes
                .iter()
                .any(|class| live(self.classes[*class].folded))
    }

    /// Ends the intents of Needs that are gone, so that the machines become free to take, and restores the
    /// intents of Needs that are back.
    pub(crate) fn end_intents(&mut self) {
        let mut slots: BTreeSet<SlotIndex> = BTreeSet::new();
        self.work.marked += self.dirty_slots.len() as u64;
        for slot in std::mem::take(&mut self.dirty_slots) {
            self.slots[slot].dirty = false;
            slots.extend(&self.slots[slot].bequests);
            slots.insert(slot);
        }
        for slot in slots {
            let cluster = &self.clusters[self.slots[slot].cluster];
            let may_end = cluster.known && cluster.ready && cluster.acquire;
            let ended = may_end && !self.is_live(slot);
            if self.slots[slot].ended == ended {
                continue;
            }
            let machines = self.slots[slot].machines.clone();
            let promised: Vec<MachineIndex> = machines
                .into_iter()
                .filter(|at| self.intents.contains(at))
                .collect();
            for machine in &promised {
                // Its Need is decided about again in this cycle, because its slot changed.
                if let Some(claimant) = self.claimant(*machine) {
                    self.unclaim(claimant, *machine);
                }
                self.unpool(*machine);
            }
            self.slots[slot].ended = ended;
            for machine in &promised {
                self.pool(*machine);
            }
        }
    }
}
