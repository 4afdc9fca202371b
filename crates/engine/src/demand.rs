//! Demand coming, changing and going: rows, and the slots that machines and rows meet in.

use crate::{
    NONE,
    book::{Book, ClusterIx, NeedEntry, NeedIx, Slot, SlotIx},
    names,
};
use bigfleet_model::{Cluster, ClusterId, Group, Need, NeedKey};
use std::collections::BTreeSet;

impl Book {
    /// The number of a cluster, known or merely named.
    pub(crate) fn cluster(&mut self, id: &str) -> ClusterIx {
        let number = self.cluster_names.intern(id);
        if self.clusters.len() < self.cluster_names.bound() {
            self.clusters
                .resize_with(self.cluster_names.bound(), Default::default);
        }
        number
    }

    /// Replaces a cluster's flags and its whole demand (NT-2).
    pub(crate) fn put_cluster(&mut self, id: &ClusterId, cluster: &Cluster) {
        let number = self.cluster(id.as_str());
        self.set_flags(number, true, cluster.ready, cluster.acquire);
        let mut gone: BTreeSet<NeedIx> = self.rows(&self.clusters[number as usize]).collect();
        for need in cluster.needs() {
            gone.remove(&self.put_row(need));
        }
        for row in gone {
            self.remove_row(row);
        }
    }

    pub(crate) fn remove_cluster(&mut self, id: &ClusterId) {
        let number = self.cluster(id.as_str());
        self.set_flags(number, false, false, true);
        let rows: Vec<NeedIx> = self.rows(&self.clusters[number as usize]).collect();
        for row in rows {
            self.remove_row(row);
        }
    }

    /// Notes that a cluster has reported, and its flags; its demand stays.
    pub(crate) fn report(&mut self, id: &ClusterId, ready: bool, acquire: bool) {
        let number = self.cluster(id.as_str());
        self.set_flags(number, true, ready, acquire);
    }

    fn set_flags(&mut self, cluster: ClusterIx, known: bool, ready: bool, acquire: bool) {
        let entry = &mut self.clusters[cluster as usize];
        if (entry.known, entry.ready, entry.acquire) == (known, ready, acquire) {
            return;
        }
        (entry.known, entry.ready, entry.acquire) = (known, ready, acquire);
        self.changed = true;
        // Intents end or stand by these flags, and rows acquire or do not.
        let slots: Vec<SlotIx> = self
            .intents
            .iter()
            .map(|at| self.record(*at).slot)
            .collect();
        self.dirty_slots.extend(slots);
        let rows: Vec<NeedIx> = self.rows(&self.clusters[cluster as usize]).collect();
        for row in rows {
            self.mark_need(row);
        }
        for class in self.clusters[cluster as usize].classes.clone() {
            self.mark_need(self.classes[class].folded);
        }
    }

    /// Puts one row in the place of the one equal in profile and group.
    pub(crate) fn put_row(&mut self, need: &Need) -> NeedIx {
        let cluster = self.cluster(need.cluster.as_str());
        let (profile, usage) = self.tables.of_need(need);
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
        let wanted = self.tables.wanted(&need.row.aggregate);
        let row = self.new_need(NeedEntry {
            arrival: need.arrival,
            parked: need.parked,
            group_mark: names::mark(need.row.group.as_str()),
            ..NeedEntry::new(cluster, slot, profile, usage, wanted)
        });
        if self.tables.profiles[profile as usize].folded == NONE {
            self.clusters[cluster as usize].plain.push(row);
            self.set_live(row, true);
        }
        self.slots[slot].rows.push(row);
        self.join_class(row, &need.row.aggregate);
        self.currency_changed(slot);
        row
    }

    /// Takes over what a row asks for now.
    pub(crate) fn update_row(&mut self, row: NeedIx, need: &Need) {
        let entry = self.need(row);
        let profile = &self.tables.profiles[entry.profile as usize].profile;
        let is_it = entry.in_use && entry.group_mark == names::mark(need.row.group.as_str());
        assert!(
            is_it && need.row.profile == *profile,
            "{} is the row put here",
            need.key()
        );
        let usage = match self.tables.uses[entry.usage as usize].min_unit == need.row.min_unit {
            true => entry.usage,
            false => self.tables.usage(entry.profile, &need.row.min_unit),
        };
        let wanted = self.tables.wanted(&need.row.aggregate);
        let entry = &mut self.needs[row];
        let same_wants = entry.wanted == wanted;
        let same = same_wants
            && entry.usage == usage
            && entry.arrival == need.arrival
            && entry.parked == need.parked;
        if same {
            return;
        }
        let place_moved = !same_wants || entry.arrival != need.arrival;
        if place_moved && self.need(row).class != NONE {
            self.release(row);
            self.leave_class(row);
        }
        self.set_wanted(row, wanted);
        let entry = &mut self.needs[row];
        (entry.arrival, entry.parked) = (need.arrival, need.parked);
        if std::mem::replace(&mut entry.usage, usage) != usage {
            self.mark_need(row);
        }
        if place_moved {
            self.join_class(row, &need.row.aggregate);
        }
        self.changed = true;
    }

    /// Takes out the row equal in profile and group, if there is one.
    pub(crate) fn withdraw_row(&mut self, need: &Need) {
        let slot = self.find_slot(&need.key());
        if slot == NONE {
            return;
        }
        let profile = self.tables.profile(&need.row.profile);
        let rows = &self.slots[slot].rows;
        let found = rows
            .iter()
            .copied()
            .find(|row| self.need(*row).profile == profile);
        if let Some(row) = found {
            self.remove_row(row);
        }
    }

    fn remove_row(&mut self, row: NeedIx) {
        self.release(row);
        self.leave_class(row);
        let NeedEntry { cluster, slot, .. } = self.needs[row];
        self.clusters[cluster as usize]
            .plain
            .retain(|held| *held != row);
        self.slots[slot].rows.retain(|held| *held != row);
        self.free_need(row);
        self.currency_changed(slot);
    }

    pub(crate) fn new_need(&mut self, entry: NeedEntry) -> NeedIx {
        self.changed = true;
        // The last holder of the number may still be on the list of dirty ones.
        let number = self.needs.insert_with(|before| NeedEntry {
            dirty: before.is_some_and(|before| before.dirty),
            own_dirty: true,
            ..entry
        });
        self.mark_need(number);
        number
    }

    pub(crate) fn free_need(&mut self, need: NeedIx) {
        self.changed = true;
        self.drop_holding(need);
        let entry = &mut self.needs[need];
        entry.in_use = false;
        entry.wanted = Default::default();
        self.needs.remove(need);
    }

    /// The number of a slot that is there, or [`NONE`].
    pub(crate) fn find_slot(&self, key: &NeedKey) -> SlotIx {
        let cluster = self.cluster_names.find(key.cluster.as_str());
        let fingerprint = self.fingerprints.find(key.fingerprint.as_str());
        let group = self.groups.find(key.group.as_str());
        let identity = cluster.zip(fingerprint).zip(group);
        let slot = identity.and_then(|((cluster, fingerprint), group)| {
            self.slot_numbers.get(&(cluster, group, fingerprint))
        });
        slot.copied().unwrap_or(NONE)
    }

    /// The number of a slot, making it where there is none.
    pub(crate) fn slot_of(&mut self, key: &NeedKey) -> SlotIx {
        let cluster = self.cluster(key.cluster.as_str());
        let fingerprint = self.fingerprint(&key.fingerprint);
        let group = self.group(&key.group);
        self.slot_at(cluster, group, fingerprint)
    }

    /// As [`Self::slot_of`], by number.
    pub(crate) fn slot_at(&mut self, cluster: ClusterIx, group: u32, fingerprint: u32) -> SlotIx {
        let identity = (cluster, group, fingerprint);
        if let Some(slot) = self.slot_numbers.get(&identity) {
            return *slot;
        }
        let slot = Slot {
            cluster,
            fingerprint,
            group,
            machines: Vec::new(),
            rows: Vec::new(),
            classes: Vec::new(),
            heir: NONE,
            bequests: Vec::new(),
            ended: false,
            whole: NONE,
        };
        let number = self.slots.insert_with(|_| slot);
        self.group_uses[group as usize] += 1;
        self.slot_numbers.insert(identity, number);
        self.dirty_slots.push(number);
        number
    }

    /// The number of a group, for whoever counts it among its uses.
    pub(crate) fn group(&mut self, group: &Group) -> u32 {
        let number = self.groups.intern(group.as_str());
        self.group_uses.resize(self.groups.bound(), 0);
        number
    }

    /// Takes a use of a group back, and the group out if it was the last.
    pub(crate) fn leave_group(&mut self, group: u32) {
        self.group_uses[group as usize] -= 1;
        if self.group_uses[group as usize] == 0 {
            self.groups.remove(group);
        }
    }

    pub(crate) fn fingerprint(&mut self, fingerprint: &bigfleet_model::Fingerprint) -> u32 {
        let number = self.fingerprints.intern(fingerprint.as_str());
        if self.constraints.len() < self.fingerprints.bound() {
            let constraints = fingerprint.constraints();
            self.constraints
                .push(constraints.map_or(NONE, |text| self.constraint_texts.intern(text)));
        }
        number
    }

    /// A slot came to name a row, or ceased to.
    pub(crate) fn currency_changed(&mut self, slot: SlotIx) {
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

    /// Sees whether a slot's machines are orphans, and forgets a slot nobody names.
    pub(crate) fn review_slot(&mut self, slot: SlotIx) {
        let entry = &self.slots[slot];
        let cluster = entry.cluster;
        let place = (cluster, slot);
        let is_orphan = !entry.machines.is_empty() && !entry.is_current();
        let is_unused = entry.machines.is_empty() && !entry.is_current();
        if !self.clusters[cluster as usize].heirs_dirty {
            self.clusters[cluster as usize].heirs_dirty = true;
            self.dirty_clusters.push(cluster);
        }
        if is_orphan {
            self.orphans.insert(place);
        } else if self.orphans.remove(&place) {
            self.set_heir(slot, NONE);
        }
        if is_unused {
            // Those it inherited from look for another heir, before its number is given away.
            for bequest in self.slots[slot].bequests.clone() {
                self.set_heir(bequest, NONE);
            }
            let Slot {
                fingerprint, group, ..
            } = self.slots[slot];
            self.slot_numbers.remove(&(cluster, group, fingerprint));
            self.leave_group(group);
            self.slots.remove(slot);
        }
    }
}

impl NeedEntry {
    pub(crate) fn new(
        cluster: ClusterIx,
        slot: SlotIx,
        profile: u32,
        usage: u32,
        wanted: crate::tables::Wanted,
    ) -> Self {
        Self {
            cluster,
            slot,
            profile,
            usage,
            class: NONE,
            group_mark: 0,
            arrival: None,
            wanted,
            parked: false,
            holding: NONE,
            homed: false,
            dirty: false,
            own_dirty: true,
            in_use: true,
        }
    }
}
