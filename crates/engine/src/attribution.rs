//! Attribution: to whom machines pass whose row is gone, and which intents have ended (RF-1).

use crate::{
    NONE,
    book::{Book, SlotIx},
};
use std::collections::BTreeSet;

impl Book {
    /// Passes the machines of orphaned slots on, where exactly one row stands to inherit.
    pub(crate) fn pass_on(&mut self) {
        for cluster in std::mem::take(&mut self.dirty_clusters) {
            self.clusters[cluster as usize].heirs_dirty = false;
            let range = (cluster, 0)..=(cluster, SlotIx::MAX);
            let orphans: Vec<SlotIx> = self.orphans.range(range).map(|(_, slot)| *slot).collect();
            if orphans.is_empty() {
                continue;
            }
            for orphan in orphans {
                let heir = self.heir_of(orphan);
                self.set_heir(orphan, heir);
            }
        }
    }

    /// The one current row of the same group and constraints that no machine is recorded for.
    fn heir_of(&self, orphan: SlotIx) -> SlotIx {
        let asked = &self.slots[orphan];
        let constraints = self.constraints[asked.fingerprint as usize];
        if constraints == NONE {
            return NONE;
        }
        let (cluster, group) = (asked.cluster, asked.group);
        let of_group = self
            .slot_numbers
            .range((cluster, group, 0)..=(cluster, group, u32::MAX));
        let mut heirs = of_group.map(|(_, slot)| *slot).filter(|slot| {
            let slot = &self.slots[*slot];
            slot.is_current()
                && slot.machines.is_empty()
                && self.constraints[slot.fingerprint as usize] == constraints
        });
        match (heirs.next(), heirs.next()) {
            (Some(only), None) => only,
            _ => NONE,
        }
    }

    pub(crate) fn set_heir(&mut self, slot: SlotIx, heir: SlotIx) {
        let before = std::mem::replace(&mut self.slots[slot].heir, heir);
        if before == heir {
            return;
        }
        // Whoever counts on its machines as own may have lost them to another.
        for machine in self.slots[slot].machines.clone() {
            let claimant = self.claimant(machine);
            if claimant != NONE {
                self.mark_need(claimant);
                self.unclaim(claimant, machine);
            }
        }
        if before != NONE {
            self.slots[before].bequests.retain(|from| *from != slot);
            self.mark_slot(before);
            self.rehome(before);
        }
        if heir != NONE {
            self.slots[heir].bequests.push(slot);
            self.rehome(heir);
        }
        self.mark_slot(slot);
        self.rehome(slot);
        self.mark_classes_of(self.slots[slot].cluster);
    }

    /// Whether the Need a slot stands for is among this cycle's.
    pub(crate) fn is_live(&self, slot: SlotIx) -> bool {
        let slot = match self.slots[slot].heir {
            NONE => &self.slots[slot],
            heir => &self.slots[heir],
        };
        let live = |need: u32| self.need(need).is_live();
        slot.rows.iter().any(|row| live(*row))
            || slot
                .classes
                .iter()
                .any(|class| live(self.classes[*class].folded))
    }

    /// Ends the intents whose Need is gone, and lets those stand again whose Need is back: their
    /// machines enter and leave the pools.
    pub(crate) fn end_intents(&mut self) {
        let mut slots: BTreeSet<SlotIx> = BTreeSet::new();
        for slot in std::mem::take(&mut self.dirty_slots) {
            slots.extend(&self.slots[slot].bequests);
            slots.insert(slot);
        }
        for slot in slots {
            let cluster = &self.clusters[self.slots[slot].cluster as usize];
            let may_end = cluster.known && cluster.ready && cluster.acquire;
            let ended = may_end && !self.is_live(slot);
            if self.slots[slot].ended == ended {
                continue;
            }
            let machines = self.slots[slot].machines.clone();
            let promised: Vec<u32> = machines
                .into_iter()
                .filter(|at| self.intents.contains(at))
                .collect();
            for machine in &promised {
                // Whoever counted on it looks again in this cycle, since its slot changed.
                match self.claimant(*machine) {
                    NONE => {}
                    claimant => self.unclaim(claimant, *machine),
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
