//! Demand: rows that come, change and go, and the slots that connect rows with machines.

use crate::{
    fleet_tables::{FleetTables, NeedEntry, Slot},
    index::{
        ClusterIndex, FingerprintIndex, GroupIndex, NeedIndex, ProfileIndex, SlotIndex, UseIndex,
    },
    requested_amounts::RequestedAmounts,
    slim_list::SlimList,
};
use bigfleet_model::{Cluster, ClusterId, Fingerprint, Group, Need, NeedKey};
use std::collections::BTreeSet;

impl FleetTables {
    /// The index of a cluster, whether it has reported or is only named by a machine.
    pub(crate) fn cluster(&mut self, id: &str) -> ClusterIndex {
        let cluster = self.cluster_names.intern(id);
        self.clusters.grow_to(self.cluster_names.count());
        cluster
    }

    /// Replaces a cluster's flags and its whole demand (NT-2).
    pub(crate) fn put_cluster(&mut self, id: &ClusterId, cluster: &Cluster) {
        let index = self.cluster(id.as_str());
        self.set_flags(index, true, cluster.ready, cluster.acquire);
        let mut gone: BTreeSet<NeedIndex> = self.rows(&self.clusters[index]).collect();
        for need in cluster.needs() {
            gone.remove(&self.put_row(need));
        }
        for row in gone {
            self.remove_row(row);
        }
    }

    pub(crate) fn remove_cluster(&mut self, id: &ClusterId) {
        let index = self.cluster(id.as_str());
        self.set_flags(index, false, false, true);
        let rows: Vec<NeedIndex> = self.rows(&self.clusters[index]).collect();
        for row in rows {
            self.remove_row(row);
        }
    }

    /// Marks a cluster as reported and sets its flags; its demand stays.
    pub(crate) fn report(&mut self, id: &ClusterId, ready: bool, acquire: bool) {
        let index = self.cluster(id.as_str());
        self.set_flags(index, true, ready, acquire);
    }

    fn set_flags(&mut self, cluster: ClusterIndex, known: bool, ready: bool, acquire: bool) {
        let entry = &mut self.clusters[cluster];
        if (entry.known, entry.ready, entry.acquire) == (known, ready, acquire) {
            return;
        }
        (entry.known, entry.ready, entry.acquire) = (known, ready, acquire);
        self.changed = true;
        // These flags decide whether intents end and whether rows acquire.
        self.mark_intents();
        let rows: Vec<NeedIndex> = self.rows(&self.clusters[cluster]).collect();
        for row in rows {
            self.mark_need(row);
        }
        for class in self.clusters[cluster].classes.clone() {
            self.mark_need(self.classes[class].folded);
        }
    }

    /// Adds a row, or replaces the one with the same profile and group.
    pub(crate) fn put_row(&mut self, need: &Need) -> NeedIndex {
        let cluster = self.cluster(need.cluster.as_str());
        let (profile, usage) = self.catalog.of_need(need);
        let slot = self.slot_of(&need.key());
        let rows = &self.slots[slot].rows;
        let found = rows
            .iter()
            .copied()
            .find(|row| self.need(*row).profile == profile);
        if let Some(row) = found {
            self.update_row(row, need);
            return row;
        }
        let wanted = self.catalog.dimensions.requested(&need.row.aggregate);
        let whole = need.row.whole_units && self.catalog.count_units(usage);
        let row = self.new_need(NeedEntry {
            whole,
            arrival: need.arrival,
            parked: need.parked,
            group_digest: self.groups.digest(need.row.group.as_str()),
            ..NeedEntry::new(cluster, slot, profile, usage, wanted)
        });
        if !self.is_gang(row) {
            let plain = &mut self.clusters[cluster].plain;
            self.needs[row].place_in_cluster = plain.len() as u32;
            plain.push(row);
            self.set_live(row, true);
        }
        self.slots[slot].rows.push(row);
        self.join_class(row, &need.row.aggregate);
        self.currency_changed(slot);
        row
    }

    /// Replaces what a row asks for.
    pub(crate) fn update_row(&mut self, row: NeedIndex, need: &Need) {
        let entry = self.need(row);
        let profile = &self.catalog.profiles[entry.profile].profile;
        let is_it =
            entry.in_use && entry.group_digest == self.groups.digest(need.row.group.as_str());
        assert!(
            is_it && need.row.profile == *profile,
            "{} is the row put here",
            need.key()
        );
        let usage = if self.catalog.uses[entry.usage].min_unit == need.row.min_unit {
            entry.usage
        } else {
            self.catalog.usage(entry.profile, &need.row.min_unit)
        };
        let whole = need.row.whole_units && self.catalog.count_units(usage);
        let wanted = self
            .catalog
            .dimensions
            .requested_like(&self.needs[row].wanted, &need.row.aggregate);
        let entry = &mut self.needs[row];
        let same_wants = entry.wanted == wanted;
        let same_form = entry.whole == whole;
        let same = same_wants
            && same_form
            && entry.usage == usage
            && entry.arrival == need.arrival
            && entry.parked == need.parked;
        if same {
            return;
        }
        let place_moved = !same_wants || !same_form || entry.arrival != need.arrival;
        if place_moved && self.need(row).class.is_some() {
            self.release(row);
            self.leave_class(row);
        }
        self.set_usage(row, usage, whole);
        self.set_wanted(row, wanted);
        let entry = &mut self.needs[row];
        (entry.arrival, entry.parked) = (need.arrival, need.parked);
        if place_moved {
            self.join_class(row, &need.row.aggregate);
        }
        self.changed = true;
    }

    /// Removes the row with the same profile and group, if there is one.
    pub(crate) fn withdraw_row(&mut self, need: &Need) {
        let Some(slot) = self.find_slot(&need.key()) else {
            return;
        };
        let profile = self.catalog.profile(&need.row.profile);
        let rows = &self.slots[slot].rows;
        let found = rows
            .iter()
            .copied()
            .find(|row| self.need(*row).profile == profile);
        if let Some(row) = found {
            self.remove_row(row);
        }
    }

    fn remove_row(&mut self, row: NeedIndex) {
        self.release(row);
        self.leave_class(row);
        let NeedEntry { cluster, slot, .. } = self.needs[row];
        if !self.is_gang(row) {
            let (plain, place) = (
                &mut self.clusters[cluster].plain,
                self.needs[row].place_in_cluster,
            );
            plain.swap_remove(place as usize);
            if let Some(moved) = plain.get(place as usize) {
                self.needs[*moved].place_in_cluster = place;
            }
        }
        self.slots[slot].rows.retain(|held| *held != row);
        self.free_need(row);
        self.currency_changed(slot);
    }

    pub(crate) fn new_need(&mut self, entry: NeedEntry) -> NeedIndex {
        self.changed = true;
        // The Need that had this index before may still be on the list of dirty ones.
        let index = self.needs.insert_with(|before| NeedEntry {
            dirty: before.is_some_and(|before| before.dirty),
            own_dirty: true,
            ..entry
        });
        self.mark_need(index);
        index
    }

    pub(crate) fn free_need(&mut self, need: NeedIndex) {
        self.changed = true;
        self.drop_holding(need);
        let entry = &mut self.needs[need];
        entry.in_use = false;
        entry.wanted = Default::default();
        self.needs.remove(need);
    }

    /// The index of a slot that is there.
    pub(crate) fn find_slot(&self, key: &NeedKey) -> Option<SlotIndex> {
        let cluster = self.cluster_names.find(key.cluster.as_str())?;
        let fingerprint = self.fingerprints.find(key.fingerprint.as_str())?;
        let group = self.groups.find(key.group.as_str())?;
        let slot = self.slot_indexes.get(&(cluster, group, fingerprint));
        slot.copied()
    }

    /// The index of a slot, which is made if there is none.
    pub(crate) fn slot_of(&mut self, key: &NeedKey) -> SlotIndex {
        let cluster = self.cluster(key.cluster.as_str());
        let fingerprint = self.fingerprint(&key.fingerprint);
        let group = self.group(&key.group);
        self.slot_at(cluster, group, fingerprint)
    }

    /// As [`Self::slot_of`], by the indexes of its texts.
    pub(crate) fn slot_at(
        &mut self,
        cluster: ClusterIndex,
        group: GroupIndex,
        fingerprint: FingerprintIndex,
    ) -> SlotIndex {
        let identity = (cluster, group, fingerprint);
        if let Some(slot) = self.slot_indexes.get(&identity) {
            return *slot;
        }
        let slot = Slot {
            cluster,
            fingerprint,
            group,
            machines: Vec::new(),
            rows: SlimList::default(),
            classes: SlimList::default(),
            heir: None,
            bequests: SlimList::default(),
            ended: false,
            claimed_whole_by: None,
            dirty: false,
        };
        // The slot that had this index before may still be on the list of dirty ones.
        let index = self.slots.insert_with(|before| Slot {
            dirty: before.is_some_and(|before| before.dirty),
            ..slot
        });
        self.group_uses[group] += 1;
        self.slot_indexes.insert(identity, index);
        self.mark_standing(index);
        index
    }

    /// The index of a group. The caller counts its use.
    pub(crate) fn group(&mut self, group: &Group) -> GroupIndex {
        let index = self.groups.intern(group.as_str());
        self.group_uses.grow_to(self.groups.count());
        index
    }

    /// Removes a use of a group, and the group if it was the last.
    pub(crate) fn leave_group(&mut self, group: GroupIndex) {
        self.group_uses[group] -= 1;
        if self.group_uses[group] == 0 {
            self.groups.remove(group);
        }
    }

    pub(crate) fn fingerprint(&mut self, fingerprint: &Fingerprint) -> FingerprintIndex {
        let index = self.fingerprints.intern(fingerprint.as_str());
        if self.constraints.len() < self.fingerprints.count() {
            let text = fingerprint.constraints();
            self.constraints
                .push(text.map(|text| self.constraint_texts.intern(text)));
        }
        index
    }

    /// Marks what depends on whether a slot names a row, after that changed.
    pub(crate) fn currency_changed(&mut self, slot: SlotIndex) {
        let Slot {
            cluster,
            ref machines,
            ..
        } = self.slots[slot];
        if !machines.is_empty() {
            self.mark_classes_of(cluster);
        }
        self.mark_slot(slot);
        self.review_slot(slot);
    }

    /// Notes whether a slot's machines are orphans, and removes a slot that nothing names.
    pub(crate) fn review_slot(&mut self, slot: SlotIndex) {
        let entry = &self.slots[slot];
        let cluster = entry.cluster;
        let place = (cluster, slot);
        let is_unused = !entry.is_named();
        let is_orphan = !is_unused && !entry.is_current();
        self.mark_heirs(cluster);
        if is_orphan {
            self.orphans.insert(place);
        } else if self.orphans.remove(&place) {
            self.set_heir(slot, None);
        }
        if is_unused {
            // Slots it inherited from must look for another heir before its index is used again.
            for bequest in &self.slots[slot].bequests.clone() {
                self.set_heir(*bequest, None);
            }
            let Slot {
                fingerprint, group, ..
            } = self.slots[slot];
            self.slot_indexes.remove(&(cluster, group, fingerprint));
            self.leave_group(group);
            self.slots.remove(slot);
        }
    }
}

impl NeedEntry {
    pub(crate) fn new(
        cluster: ClusterIndex,
        slot: SlotIndex,
        profile: ProfileIndex,
        usage: UseIndex,
        wanted: RequestedAmounts,
    ) -> Self {
        Self {
            cluster,
            slot,
            profile,
            usage,
            whole: false,
            class: None,
            place_in_cluster: 0,
            group_digest: 0,
            arrival: None,
            wanted,
            parked: false,
            holding: None,
            homed: false,
            dirty: false,
            own_dirty: true,
            in_use: true,
        }
    }
}
