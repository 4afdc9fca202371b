//! Demand coming, changing and going: rows, the classes of gangs they fall in, and the slots that
//! machines and rows meet in.

use crate::{
    NONE,
    book::{Book, Class, ClassIx, ClusterIx, Fold, NeedEntry, NeedIx, Slot, SlotIx, Supply},
};
use bigfleet_model::{Cluster, ClusterId, Need, NeedKey, Time};
use std::collections::BTreeSet;

impl Book {
    /// The number of a cluster, known or merely named.
    pub(crate) fn cluster(&mut self, id: &str) -> ClusterIx {
        let number = self.cluster_names.intern(id);
        if self.clusters.len() < self.cluster_names.bound() {
            self.clusters.resize_with(self.cluster_names.bound(), Default::default);
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

    pub(crate) fn set_ready(&mut self, id: &ClusterId) {
        let number = self.cluster(id.as_str());
        self.set_flags(number, true, true, true);
    }

    fn set_flags(&mut self, cluster: ClusterIx, known: bool, ready: bool, acquire: bool) {
        let entry = &mut self.clusters[cluster as usize];
        if (entry.known, entry.ready, entry.acquire) == (known, ready, acquire) {
            return;
        }
        (entry.known, entry.ready, entry.acquire) = (known, ready, acquire);
        self.changed = true;
        // Intents end or stand by these flags, and rows acquire or do not.
        let slots: Vec<SlotIx> = self.intents.iter().map(|at| self.record(*at).slot).collect();
        self.dirty_slots.extend(slots);
        let rows: Vec<NeedIx> = self.rows(&self.clusters[cluster as usize]).collect();
        for row in rows {
            self.mark_need(row);
        }
        for class in self.clusters[cluster as usize].classes.clone() {
            self.mark_need(self.classes[class as usize].folded);
        }
    }

    /// Puts one row in the place of the one equal in profile and group.
    pub(crate) fn put_row(&mut self, need: &Need) -> NeedIx {
        let cluster = self.cluster(need.cluster.as_str());
        let (profile, usage) = self.tables.of_need(need);
        let slot = self.slot_of(&need.key());
        let rows = &self.slots[slot as usize].rows;
        let found = rows.iter().copied().find(|row| self.need(*row).profile == profile);
        let wanted = self.tables.wanted(&need.row.aggregate);
        if let Some(row) = found {
            let entry = &mut self.needs[row as usize];
            let same_wants = entry.wanted == wanted;
            let same = same_wants
                && entry.usage == usage
                && entry.arrival == need.arrival
                && entry.parked == need.parked;
            if same {
                return row;
            }
            let place_moved = !same_wants || entry.arrival != need.arrival;
            if place_moved && self.need(row).class != NONE {
                self.release(row);
                self.leave_class(row);
            }
            let entry = &mut self.needs[row as usize];
            (entry.usage, entry.wanted) = (usage, wanted);
            (entry.arrival, entry.parked) = (need.arrival, need.parked);
            if place_moved {
                self.join_class(row);
            }
            self.changed = true;
            self.mark_need(row);
            return row;
        }
        let row = self.new_need(NeedEntry {
            arrival: need.arrival,
            parked: need.parked,
            live: true,
            ..NeedEntry::new(cluster, slot, profile, usage, wanted)
        });
        if self.tables.profiles[profile as usize].folded == NONE {
            self.clusters[cluster as usize].plain.push(row);
        }
        self.slots[slot as usize].rows.push(row);
        self.join_class(row);
        self.currency_changed(slot);
        row
    }

    /// Takes out the row equal in profile and group, if there is one.
    pub(crate) fn withdraw_row(&mut self, need: &Need) {
        let slot = self.find_slot(&need.key());
        if slot == NONE {
            return;
        }
        let profile = self.tables.profile(&need.row.profile);
        let rows = &self.slots[slot as usize].rows;
        let found = rows.iter().copied().find(|row| self.need(*row).profile == profile);
        if let Some(row) = found {
            self.remove_row(row);
        }
    }

    fn remove_row(&mut self, row: NeedIx) {
        self.release(row);
        self.leave_class(row);
        let NeedEntry { cluster, slot, .. } = self.needs[row as usize];
        self.clusters[cluster as usize].plain.retain(|held| *held != row);
        self.slots[slot as usize].rows.retain(|held| *held != row);
        self.free_need(row);
        self.currency_changed(slot);
    }

    fn new_need(&mut self, entry: NeedEntry) -> NeedIx {
        self.changed = true;
        let number = match self.free_needs.pop() {
            Some(number) => {
                // Its last holder may still be on the list of dirty ones.
                let dirty = self.needs[number as usize].dirty;
                self.needs[number as usize] = NeedEntry { dirty, ..entry };
                number
            }
            None => {
                self.needs.push(entry);
                (self.needs.len() - 1) as NeedIx
            }
        };
        self.mark_need(number);
        number
    }

    fn free_need(&mut self, need: NeedIx) {
        self.changed = true;
        let entry = &mut self.needs[need as usize];
        (entry.in_use, entry.live) = (false, false);
        entry.claims = Vec::new();
        entry.wanted = Box::default();
        self.free_needs.push(need);
    }

    /// The number of a slot that is there, or [`NONE`].
    pub(crate) fn find_slot(&self, key: &NeedKey) -> SlotIx {
        let cluster = self.cluster_names.find(key.cluster.as_str());
        let fingerprint = self.fingerprints.find(key.fingerprint.as_str());
        let group = self.groups.find(key.group.as_str());
        let identity = cluster.zip(fingerprint).zip(group);
        let slot = identity.and_then(|((cluster, fingerprint), group)| {
            self.slot_numbers.get(&(cluster, fingerprint, group))
        });
        slot.copied().unwrap_or(NONE)
    }

    /// The number of a slot, making it where there is none.
    pub(crate) fn slot_of(&mut self, key: &NeedKey) -> SlotIx {
        let cluster = self.cluster(key.cluster.as_str());
        let fingerprint = self.fingerprint(&key.fingerprint);
        let group = self.groups.intern(key.group.as_str());
        self.group_uses.resize(self.groups.bound(), 0);
        let identity = (cluster, fingerprint, group);
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
        };
        let number = match self.free_slots.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as SlotIx
            }
        };
        self.group_uses[group as usize] += 1;
        self.slot_numbers.insert(identity, number);
        self.dirty_slots.push(number);
        number
    }

    fn fingerprint(&mut self, fingerprint: &bigfleet_model::Fingerprint) -> u32 {
        let number = self.fingerprints.intern(fingerprint.as_str());
        if self.constraints.len() < self.fingerprints.bound() {
            let constraints = fingerprint.constraints();
            self.constraints.push(constraints.map_or(NONE, |text| self.constraint_texts.intern(text)));
        }
        number
    }

    /// A slot came to name a row, or ceased to.
    fn currency_changed(&mut self, slot: SlotIx) {
        let Slot { cluster, ref machines, .. } = self.slots[slot as usize];
        if !machines.is_empty() {
            self.mark_classes_of(cluster);
        }
        self.mark_slot(slot);
        self.review_slot(slot);
    }

    /// Sees whether a slot's machines are orphans, and forgets a slot nobody names.
    pub(crate) fn review_slot(&mut self, slot: SlotIx) {
        let entry = &self.slots[slot as usize];
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
            let Slot { fingerprint, group, .. } = self.slots[slot as usize];
            self.slot_numbers.remove(&(cluster, fingerprint, group));
            self.group_uses[group as usize] -= 1;
            if self.group_uses[group as usize] == 0 {
                self.groups.remove(group);
            }
            self.free_slots.push(slot);
        }
    }

    /// Puts a gang among its equals (RF-12).
    fn join_class(&mut self, row: NeedIx) {
        let NeedEntry { cluster, profile, ref wanted, .. } = self.needs[row as usize];
        let folded_profile = self.tables.profiles[profile as usize].folded;
        if folded_profile == NONE {
            return;
        }
        let aggregate = self.tables.amounts(wanted.iter().copied());
        let identity = (cluster, profile, aggregate);
        let class = match self.class_numbers.get(&identity) {
            Some(class) => *class,
            None => self.new_class(row, identity),
        };
        self.needs[row as usize].class = class;
        let order = |held: &NeedIx| self.need_order(*held, row).is_lt();
        let place = self.classes[class as usize].members.partition_point(order);
        let homed = 0 < self.attributed_count(self.need(row).slot);
        self.needs[row as usize].homed = homed;
        let entry = &mut self.classes[class as usize];
        entry.members.insert(place, row);
        entry.regroup = true;
        if homed {
            entry.homed.push(row);
        }
        self.mark_class(class);
    }

    /// Sees whether the gangs of a slot have machines attributed to them.
    pub(crate) fn rehome(&mut self, slot: SlotIx) {
        let homed = 0 < self.attributed_count(slot);
        for at in 0..self.slots[slot as usize].rows.len() {
            let row = self.slots[slot as usize].rows[at];
            let NeedEntry { class, homed: before, .. } = self.needs[row as usize];
            if class == NONE || before == homed {
                continue;
            }
            self.needs[row as usize].homed = homed;
            let entry = &mut self.classes[class as usize];
            entry.regroup = true;
            if homed {
                entry.homed.push(row);
            } else {
                entry.homed.retain(|held| *held != row);
                self.release(row);
            }
            self.mark_class(class);
        }
    }

    fn new_class(
        &mut self,
        row: NeedIx,
        identity: (ClusterIx, u32, bigfleet_model::Amounts),
    ) -> ClassIx {
        let (cluster, profile, aggregate) = identity.clone();
        let folded_profile = self.tables.profiles[profile as usize].folded;
        let key = NeedKey {
            cluster: self.cluster_id(cluster),
            fingerprint: self.tables.profiles[folded_profile as usize].profile.fingerprint().clone(),
            group: bigfleet_model::Group::new(&format!("fold:{}", aggregate.key())),
        };
        let slot = self.slot_of(&key);
        let usage = self.tables.usage(folded_profile, &aggregate);
        let supply = self.supply(profile, &aggregate);
        let number = self.free_classes.pop().unwrap_or(self.classes.len() as ClassIx);
        let wanted = self.needs[row as usize].wanted.clone();
        let folded = self.new_need(NeedEntry {
            class: number,
            ..NeedEntry::new(cluster, slot, folded_profile, usage, wanted)
        });
        let class = Class {
            cluster,
            supply,
            members: Vec::new(),
            homed: Vec::new(),
            fold: Fold::All,
            regroup: true,
            folded,
            slot,
            dirty: false,
        };
        if number as usize == self.classes.len() {
            self.classes.push(class);
        } else {
            let dirty = self.classes[number as usize].dirty;
            self.classes[number as usize] = Class { dirty, ..class };
        }
        self.class_numbers.insert(identity, number);
        self.clusters[cluster as usize].classes.push(number);
        self.slots[slot as usize].classes.push(number);
        self.supplies[supply as usize].classes.insert(number);
        self.currency_changed(slot);
        number
    }

    /// Takes a gang out of its class, and the class out if it was the last.
    fn leave_class(&mut self, row: NeedIx) {
        let class = std::mem::replace(&mut self.needs[row as usize].class, NONE);
        if class == NONE {
            return;
        }
        let entry = &mut self.classes[class as usize];
        entry.members.retain(|held| *held != row);
        entry.homed.retain(|held| *held != row);
        entry.regroup = true;
        self.mark_class(class);
        if !self.classes[class as usize].members.is_empty() {
            return;
        }
        let Class { cluster, supply, folded, slot, .. } = self.classes[class as usize];
        self.release(folded);
        let NeedEntry { profile, ref wanted, .. } = self.needs[row as usize];
        let aggregate = self.tables.amounts(wanted.iter().copied());
        self.class_numbers.remove(&(cluster, profile, aggregate));
        self.clusters[cluster as usize].classes.retain(|held| *held != class);
        self.slots[slot as usize].classes.retain(|held| *held != class);
        self.supplies[supply as usize].classes.remove(&class);
        self.free_need(folded);
        self.free_classes.push(class);
        self.currency_changed(slot);
        self.drop_supply(supply);
    }

    fn supply(&mut self, profile: u32, aggregate: &bigfleet_model::Amounts) -> u32 {
        let identity = (profile, aggregate.clone());
        if let Some(number) = self.supply_numbers.get(&identity) {
            return *number;
        }
        let usage = self.tables.usage(profile, aggregate);
        let wanted = self.tables.wanted(aggregate);
        let (classes, holds, most) = (BTreeSet::new(), 0, 0);
        let supply = Supply { identity: identity.clone(), usage, wanted, classes, holds, most };
        let number = self.supplies.len() as u32;
        self.supplies.push(supply);
        self.supply_numbers.insert(identity, number);
        number
    }

    /// Forgets a supply no class asks for, giving its number to the last one.
    fn drop_supply(&mut self, number: u32) {
        if !self.supplies[number as usize].classes.is_empty() {
            return;
        }
        let dropped = self.supplies.swap_remove(number as usize);
        self.supply_numbers.remove(&dropped.identity);
        if let Some(moved) = self.supplies.get(number as usize) {
            self.supply_numbers.insert(moved.identity.clone(), number);
            for class in moved.classes.clone() {
                self.classes[class as usize].supply = number;
            }
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
            arrival: Time::ZERO,
            left: wanted.iter().map(|(_, milli)| *milli).collect(),
            wanted,
            parked: false,
            live: false,
            homed: false,
            dirty: false,
            in_use: true,
            claims: Vec::new(),
            arriving: 0,
            domain: NONE,
            satisfiable: false,
            bootstraps: 0,
            provisions: 0,
            victims: Vec::new(),
        }
    }
}
