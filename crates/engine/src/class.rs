//! Classes: gangs of a cluster that are equal in profile and aggregate fold together (RF-12).
//!
//! ```text
//! gang ── joins ──▶ class ── the row its members fold to ──▶ folded row
//!                     └─ supply: what free machines hold of such members, for all clusters at once
//! ```

use crate::{
    fleet_tables::{Class, FleetTables, Fold, Folding, NeedEntry, Supply},
    index::{ClassIndex, ClusterIndex, NeedIndex, ProfileIndex, SlotIndex, SupplyIndex},
};
use bigfleet_model::{Amounts, Group, Time};
use std::{collections::BTreeSet, sync::Arc};

impl FleetTables {
    /// Adds a gang to the class of its equals (RF-12). A row that is not a gang stays as it is.
    pub(crate) fn join_class(&mut self, row: NeedIndex, aggregate: &Amounts) {
        let NeedEntry {
            cluster,
            profile,
            arrival,
            slot,
            whole,
            ..
        } = self.needs[row];
        let Some(folded) = self.catalog.profiles[profile].folded else {
            return;
        };
        let supply = self.supply(row, folded, aggregate);
        let class = match self.class_indexes.get(&(cluster, supply)) {
            Some(class) => *class,
            None => self.new_class(cluster, folded, supply, aggregate),
        };
        let homed = 0 < self.attributed_count(slot);
        let entry = &mut self.needs[row];
        (entry.class, entry.homed) = (Some(class), homed);
        let entry = &mut self.classes[class];
        entry.members.push(row);
        entry.in_parts += usize::from(!whole);
        entry.earliest = Time::earliest(entry.earliest, arrival);
        entry.fresh.push(row);
        entry.regroup = true;
        if homed {
            entry.homed.push(row);
        }
        self.mark_class(class);
    }

    /// Notes whether the gangs of a slot have machines attributed to them now.
    pub(crate) fn rehome(&mut self, slot: SlotIndex) {
        let homed = 0 < self.attributed_count(slot);
        for at in 0..self.slots[slot].rows.len() {
            let row = self.slots[slot].rows[at];
            let Some(class) = self.needs[row].class else {
                continue;
            };
            if self.needs[row].homed == homed {
                continue;
            }
            self.needs[row].homed = homed;
            let entry = &mut self.classes[class];
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
        cluster: ClusterIndex,
        folded_profile: ProfileIndex,
        supply: SupplyIndex,
        aggregate: &Amounts,
    ) -> ClassIndex {
        let (fingerprint, group) = self.supplies[supply].folded;
        let slot = self.slot_at(cluster, group, fingerprint);
        let usage = self.catalog.usage(folded_profile, aggregate);
        let wanted = self.supplies[supply].wanted.clone();
        let mut equals = self.slots[slot]
            .classes
            .iter()
            .map(|class| self.classes[*class].folded);
        let shared = equals.find(|folded| self.need(*folded).profile == folded_profile);
        let entry = NeedEntry::new(cluster, slot, folded_profile, usage, wanted);
        let folded = shared.unwrap_or_else(|| self.new_need(entry));
        let class = Class {
            cluster,
            supply,
            members: Vec::new(),
            earliest: None,
            homed: Vec::new(),
            fold: Fold::All,
            regroup: true,
            fresh: Vec::new(),
            in_parts: 0,
            folding: Folding::default(),
            folded,
            slot,
            dirty: false,
        };
        // The class that had this index before may still be on the list of dirty ones.
        let index = self.classes.insert_with(|before| Class {
            dirty: before.is_some_and(|before| before.dirty),
            ..class
        });
        self.class_indexes.insert((cluster, supply), index);
        self.clusters[cluster].classes.push(index);
        self.slots[slot].classes.push(index);
        self.supplies[supply].classes.insert(index);
        self.currency_changed(slot);
        index
    }

    /// Removes a gang from its class, and the class if that was its last member.
    pub(crate) fn leave_class(&mut self, row: NeedIndex) {
        let Some(class) = self.needs[row].class.take() else {
            return;
        };
        let in_parts = !self.needs[row].whole;
        let entry = &mut self.classes[class];
        // Members are sorted when their order matters.
        if let Some(place) = entry.members.iter().position(|member| *member == row) {
            entry.members.swap_remove(place);
        }
        entry.in_parts -= usize::from(in_parts);
        entry.homed.retain(|held| *held != row);
        entry.regroup = true;
        self.mark_class(class);
        if !self.classes[class].members.is_empty() {
            return;
        }
        let Class {
            cluster,
            supply,
            folded,
            slot,
            ..
        } = self.classes[class];
        self.release(folded);
        self.class_indexes.remove(&(cluster, supply));
        self.clusters[cluster].classes.retain(|held| *held != class);
        self.slots[slot].classes.retain(|held| *held != class);
        self.supplies[supply].classes.remove(&class);
        let mut others = self.slots[slot].classes.iter();
        if others.any(|other| self.classes[*other].folded == folded) {
            self.set_folded_row(slot, folded);
        } else {
            self.free_need(folded);
        }
        self.classes.remove(class);
        self.currency_changed(slot);
        self.drop_supply(supply);
    }

    fn supply(
        &mut self,
        gang: NeedIndex,
        folded: ProfileIndex,
        aggregate: &Amounts,
    ) -> SupplyIndex {
        let NeedEntry {
            profile,
            ref wanted,
            ..
        } = self.needs[gang];
        self.supply_indexes.grow_to(self.catalog.profiles.len());
        if let Some(index) = self.supply_indexes[profile].get(wanted) {
            return *index;
        }
        let wanted = wanted.clone();
        let folded = Arc::clone(&self.catalog.profiles[folded].profile);
        let fingerprint = self.fingerprint(folded.fingerprint());
        let group = self.group(&Group::new(&format!("fold:{}", aggregate.key())));
        self.group_uses[group] += 1;
        let usage = self.catalog.usage(profile, aggregate);
        let (classes, holds, most) = (BTreeSet::new(), 0, 0);
        let supply = Supply {
            profile,
            folded: (fingerprint, group),
            usage,
            wanted: wanted.clone(),
            classes,
            holds,
            most,
        };
        let index = self.supplies.insert_with(|_| supply);
        self.supply_indexes[profile].insert(wanted, index);
        index
    }

    /// Removes a supply that no class asks for.
    fn drop_supply(&mut self, index: SupplyIndex) {
        let supply = &mut self.supplies[index];
        if supply.classes.is_empty() {
            (supply.most, supply.holds) = (0, 0);
            let (_, group) = supply.folded;
            self.supply_indexes[supply.profile].remove(&supply.wanted);
            self.supplies.remove(index);
            self.leave_group(group);
        }
    }
}
