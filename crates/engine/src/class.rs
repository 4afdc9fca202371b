//! Classes: gangs of a cluster that are equal in profile and aggregate fold together (RF-12).
//!
//! ```text
//! gang ── joins ──▶ class ── the row its members fold to ──▶ folded row
//!                     └─ supply: what free machines hold of such members, for all clusters at once
//! ```

use crate::{
    NONE,
    book::{Book, Class, ClassIx, ClusterIx, Fold, Member, NeedEntry, NeedIx, SlotIx, Supply},
    tables::ProfileIx,
};
use bigfleet_model::{Amounts, Group, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl Book {
    /// Puts a gang among its equals (RF-12).
    pub(crate) fn join_class(&mut self, row: NeedIx, aggregate: &Amounts) {
        let NeedEntry {
            cluster,
            profile,
            arrival,
            slot,
            ..
        } = self.needs[row];
        if self.tables.profiles[profile as usize].folded == NONE {
            return;
        }
        let supply = self.supply(profile, aggregate);
        let class = match self.class_numbers.get(&(cluster, supply)) {
            Some(class) => *class,
            None => self.new_class(cluster, profile, supply, aggregate),
        };
        let homed = 0 < self.attributed_count(slot);
        let entry = &mut self.needs[row];
        (entry.class, entry.homed) = (class, homed);
        let entry = &mut self.classes[class];
        entry.members.push(Member { gang: row, arrival });
        entry.earliest = Time::earliest(entry.earliest, arrival);
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
        for at in 0..self.slots[slot].rows.len() {
            let row = self.slots[slot].rows[at];
            let NeedEntry {
                class,
                homed: before,
                ..
            } = self.needs[row];
            if class == NONE || before == homed {
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
        cluster: ClusterIx,
        profile: ProfileIx,
        supply: u32,
        aggregate: &Amounts,
    ) -> ClassIx {
        let folded_profile = self.tables.profiles[profile as usize].folded;
        let (fingerprint, group) = self.supplies[supply].folded;
        let slot = self.slot_at(cluster, group, fingerprint);
        let usage = self.tables.usage(folded_profile, aggregate);
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
            folding: (0, None),
            folded,
            slot,
            dirty: false,
        };
        // The last holder of the number may still be on the list of dirty ones.
        let number = self.classes.insert_with(|before| Class {
            dirty: before.is_some_and(|before| before.dirty),
            ..class
        });
        self.class_numbers.insert((cluster, supply), number);
        self.clusters[cluster as usize].classes.push(number);
        self.slots[slot].classes.push(number);
        self.supplies[supply].classes.insert(number);
        self.currency_changed(slot);
        number
    }

    /// Takes a gang out of its class, and the class out if it was the last.
    pub(crate) fn leave_class(&mut self, row: NeedIx) {
        let class = std::mem::replace(&mut self.needs[row].class, NONE);
        if class == NONE {
            return;
        }
        let entry = &mut self.classes[class];
        // Their order is made when it matters.
        if let Some(place) = entry.members.iter().position(|member| member.gang == row) {
            entry.members.swap_remove(place);
        }
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
        self.class_numbers.remove(&(cluster, supply));
        self.clusters[cluster as usize]
            .classes
            .retain(|held| *held != class);
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

    fn supply(&mut self, profile: ProfileIx, aggregate: &Amounts) -> u32 {
        self.supply_numbers
            .resize_with(self.tables.profiles.len(), BTreeMap::new);
        if let Some(number) = self.supply_numbers[profile as usize].get(aggregate) {
            return *number;
        }
        let folded = self.tables.profiles[profile as usize].folded;
        let folded = Arc::clone(&self.tables.profiles[folded as usize].profile);
        let fingerprint = self.fingerprint(folded.fingerprint());
        let group = self.group(&Group::new(&format!("fold:{}", aggregate.key())));
        self.group_uses[group as usize] += 1;
        let usage = self.tables.usage(profile, aggregate);
        let wanted = self.tables.wanted(aggregate);
        let (classes, holds, most) = (BTreeSet::new(), 0, 0);
        let supply = Supply {
            identity: (profile, aggregate.clone()),
            folded: (fingerprint, group),
            usage,
            wanted,
            classes,
            holds,
            most,
        };
        let number = self.supplies.insert_with(|_| supply);
        self.supply_numbers[profile as usize].insert(aggregate.clone(), number);
        number
    }

    /// Forgets a supply no class asks for.
    fn drop_supply(&mut self, number: u32) {
        let supply = &mut self.supplies[number];
        if supply.classes.is_empty() {
            (supply.most, supply.holds) = (0, 0);
            let ((profile, aggregate), (_, group)) = (&supply.identity, supply.folded);
            self.supply_numbers[*profile as usize].remove(aggregate);
            self.supplies.remove(number);
            self.leave_group(group);
        }
    }
}
