//! Demand coming, changing and going: rows, the classes of gangs they fall in, and the slots that
//! machines and rows meet in.

use crate::{
    NONE,
    book::{
        Book, Class, ClassIx, ClusterIx, Fold, Member, NeedEntry, NeedIx, Slot, SlotIx, Supply,
    },
    tables::ProfileIx,
};
use bigfleet_model::{Amounts, Cluster, ClusterId, Group, Need, NeedKey, Time};
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
            self.mark_need(self.classes[class as usize].folded);
        }
    }

    /// Puts one row in the place of the one equal in profile and group.
    pub(crate) fn put_row(&mut self, need: &Need) -> NeedIx {
        let cluster = self.cluster(need.cluster.as_str());
        let (profile, usage) = self.tables.of_need(need);
        let slot = self.slot_of(&need.key());
        let rows = &self.slots[slot as usize].rows;
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
            live: true,
            ..NeedEntry::new(cluster, slot, profile, usage, wanted)
        });
        if self.tables.profiles[profile as usize].folded == NONE {
            self.clusters[cluster as usize].plain.push(row);
        }
        self.slots[slot as usize].rows.push(row);
        self.join_class(row, &need.row.aggregate);
        self.currency_changed(slot);
        row
    }

    /// Takes over what a row asks for now.
    pub(crate) fn update_row(&mut self, row: NeedIx, need: &Need) {
        let entry = self.need(row);
        let profile = &self.tables.profiles[entry.profile as usize].profile;
        let group = self.groups.get(self.slots[entry.slot as usize].group);
        let is_it = entry.in_use && need.row.group.as_str() == group;
        assert!(
            is_it && need.row.profile == *profile,
            "{} is the row put here",
            need.key()
        );
        let usage = self.tables.usage(entry.profile, &need.row.min_unit);
        let wanted = self.tables.wanted(&need.row.aggregate);
        let entry = &mut self.needs[row as usize];
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
        let entry = &mut self.needs[row as usize];
        (entry.usage, entry.wanted) = (usage, wanted);
        (entry.arrival, entry.parked) = (need.arrival, need.parked);
        if place_moved {
            self.join_class(row, &need.row.aggregate);
        }
        self.changed = true;
        self.mark_need(row);
    }

    /// Takes out the row equal in profile and group, if there is one.
    pub(crate) fn withdraw_row(&mut self, need: &Need) {
        let slot = self.find_slot(&need.key());
        if slot == NONE {
            return;
        }
        let profile = self.tables.profile(&need.row.profile);
        let rows = &self.slots[slot as usize].rows;
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
        let NeedEntry { cluster, slot, .. } = self.needs[row as usize];
        self.clusters[cluster as usize]
            .plain
            .retain(|held| *held != row);
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
            self.slot_numbers.get(&(cluster, group, fingerprint))
        });
        slot.copied().unwrap_or(NONE)
    }

    /// The number of a slot, making it where there is none.
    pub(crate) fn slot_of(&mut self, key: &NeedKey) -> SlotIx {
        let cluster = self.cluster(key.cluster.as_str());
        let fingerprint = self.fingerprint(&key.fingerprint);
        let group = self.groups.intern(key.group.as_str());
        self.group_uses.resize(self.groups.bound(), 0);
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
            self.constraints
                .push(constraints.map_or(NONE, |text| self.constraint_texts.intern(text)));
        }
        number
    }

    /// A slot came to name a row, or ceased to.
    fn currency_changed(&mut self, slot: SlotIx) {
        let Slot {
            cluster,
            ref machines,
            ..
        } = self.slots[slot as usize];
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
            // Those it inherited from look for another heir, before its number is given away.
            for bequest in self.slots[slot as usize].bequests.clone() {
                self.set_heir(bequest, NONE);
            }
            let Slot {
                fingerprint, group, ..
            } = self.slots[slot as usize];
            self.slot_numbers.remove(&(cluster, group, fingerprint));
            self.group_uses[group as usize] -= 1;
            if self.group_uses[group as usize] == 0 {
                self.groups.remove(group);
            }
            self.free_slots.push(slot);
        }
    }

    /// Puts a gang among its equals (RF-12).
    fn join_class(&mut self, row: NeedIx, aggregate: &Amounts) {
        let NeedEntry {
            cluster,
            profile,
            arrival,
            slot,
            ..
        } = self.needs[row as usize];
        if self.tables.profiles[profile as usize].folded == NONE {
            return;
        }
        let supply = self.supply(profile, aggregate);
        let class = match self.class_numbers.get(&(cluster, supply)) {
            Some(class) => *class,
            None => self.new_class(cluster, profile, supply, aggregate),
        };
        let homed = 0 < self.attributed_count(slot);
        let entry = &mut self.needs[row as usize];
        (entry.class, entry.homed) = (class, homed);
        let entry = &mut self.classes[class as usize];
        entry.members.push(Member { gang: row, arrival });
        entry.fresh.push(row);
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
            let NeedEntry {
                class,
                homed: before,
                ..
            } = self.needs[row as usize];
            if class == NONE || before == homed {
                continue;
            }
            self.needs[row as usize].homed = homed;
            let entry = &mut self.classes[class as usize];
            entry.fresh.push(row);
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
        cluster: ClusterIx,
        profile: ProfileIx,
        supply: u32,
        aggregate: &Amounts,
    ) -> ClassIx {
        let folded_profile = self.tables.profiles[profile as usize].folded;
        let key = NeedKey {
            cluster: self.cluster_id(cluster),
            fingerprint: self.tables.profiles[folded_profile as usize]
                .profile
                .fingerprint()
                .clone(),
            group: Group::new(&format!("fold:{}", aggregate.key())),
        };
        let slot = self.slot_of(&key);
        let usage = self.tables.usage(folded_profile, aggregate);
        let number = self
            .free_classes
            .pop()
            .unwrap_or(self.classes.len() as ClassIx);
        let wanted = self.supplies[supply as usize].wanted.clone();
        let mut equals = self.slots[slot as usize]
            .classes
            .iter()
            .map(|class| self.classes[*class as usize].folded);
        let shared = equals.find(|folded| self.need(*folded).profile == folded_profile);
        let entry = NeedEntry::new(cluster, slot, folded_profile, usage, wanted);
        let folded = shared.unwrap_or_else(|| self.new_need(entry));
        let class = Class {
            cluster,
            supply,
            members: Vec::new(),
            homed: Vec::new(),
            fold: Fold::All,
            regroup: true,
            fresh: Vec::new(),
            folding: (0, Time::ZERO),
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
        self.class_numbers.insert((cluster, supply), number);
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
        entry.members.retain(|member| member.gang != row);
        entry.homed.retain(|held| *held != row);
        entry.regroup = true;
        self.mark_class(class);
        if !self.classes[class as usize].members.is_empty() {
            return;
        }
        let Class {
            cluster,
            supply,
            folded,
            slot,
            ..
        } = self.classes[class as usize];
        self.release(folded);
        self.class_numbers.remove(&(cluster, supply));
        self.clusters[cluster as usize]
            .classes
            .retain(|held| *held != class);
        self.slots[slot as usize]
            .classes
            .retain(|held| *held != class);
        self.supplies[supply as usize].classes.remove(&class);
        let mut others = self.slots[slot as usize].classes.iter();
        if others.any(|other| self.classes[*other as usize].folded == folded) {
            self.set_folded_row(slot, folded);
        } else {
            self.free_need(folded);
        }
        self.free_classes.push(class);
        self.currency_changed(slot);
        self.drop_supply(supply);
    }

    fn supply(&mut self, profile: ProfileIx, aggregate: &Amounts) -> u32 {
        let identity = (profile, aggregate.clone());
        if let Some(number) = self.supply_numbers.get(&identity) {
            return *number;
        }
        let usage = self.tables.usage(profile, aggregate);
        let wanted = self.tables.wanted(aggregate);
        let (classes, holds, most) = (BTreeSet::new(), 0, 0);
        let supply = Supply {
            identity: identity.clone(),
            usage,
            wanted,
            classes,
            holds,
            most,
        };
        let number = match self.free_supplies.pop() {
            Some(number) => {
                self.supplies[number as usize] = supply;
                number
            }
            None => {
                self.supplies.push(supply);
                (self.supplies.len() - 1) as u32
            }
        };
        self.supply_numbers.insert(identity, number);
        number
    }

    /// Forgets a supply no class asks for.
    fn drop_supply(&mut self, number: u32) {
        let supply = &mut self.supplies[number as usize];
        if supply.classes.is_empty() {
            (supply.most, supply.holds) = (0, 0);
            self.supply_numbers.remove(&supply.identity);
            self.free_supplies.push(number);
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
