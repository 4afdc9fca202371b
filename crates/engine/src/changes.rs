//! Changes: what the next cycle has to look at, because a fact about it changed.
//!
//! Each mark puts a thing on a list once, however often it changes. A cycle takes the lists and leaves
//! everything else as it was decided before.

use crate::{
    fleet_tables::FleetTables,
    index::{ClassIndex, ClusterIndex, NeedIndex, SlotIndex, UseIndex},
    requested_amounts::RequestedAmounts,
};

impl FleetTables {
    /// Marks a Need whose own machines changed, or which of them it can use.
    pub(crate) fn mark_need(&mut self, need: NeedIndex) {
        self.needs[need].own_dirty = true;
        self.mark_again(need);
    }

    /// Marks a Need whose own machines are as they were, but which may need more or fewer.
    pub(crate) fn mark_again(&mut self, need: NeedIndex) {
        let entry = &mut self.needs[need];
        if !entry.dirty {
            entry.dirty = true;
            self.dirty_needs.push(need);
        }
    }

    /// Replaces what a row wants. If only amounts differ, the claims it has are often still right.
    pub(crate) fn set_wanted(&mut self, need: NeedIndex, wanted: RequestedAmounts) {
        let entry = &mut self.needs[need];
        let is_alike = entry.wanted.len() == wanted.len()
            && entry
                .wanted
                .iter()
                .zip(wanted.iter())
                .all(|(a, b)| a.0 == b.0);
        if let Some(holding) = entry.holding {
            let holding = &mut self.holdings[holding];
            let each = wanted.iter().zip(entry.wanted.iter());
            for (left, (now, before)) in holding.left.iter_mut().zip(each) {
                *left += now.1 - before.1;
            }
        }
        entry.wanted = wanted;
        let slot = entry.slot;
        self.mark_again(need);
        if !is_alike {
            self.mark_need(need);
        }
        // Rows whose texts collide share their own machines: what one takes, the other lacks.
        let is_known = self.need(need).is_live() && !self.need(need).own_dirty;
        let is_shared = if is_known {
            self.is_shared(need)
        } else {
            1 < self.slots[slot].rows.len() + self.slots[slot].classes.len()
        };
        if is_shared {
            self.mark_slot(slot);
        }
    }

    /// Replaces what a row can use and whether it asks for whole units of it. If machines then count otherwise,
    /// its claims are released.
    pub(crate) fn set_usage(&mut self, need: NeedIndex, usage: UseIndex, whole: bool) {
        let entry = self.need(need);
        if (entry.usage, entry.whole) == (usage, whole) {
            return;
        }
        if entry.whole || whole {
            self.release(need);
        }
        let entry = &mut self.needs[need];
        (entry.usage, entry.whole) = (usage, whole);
        self.mark_need(need);
    }

    pub(crate) fn mark_class(&mut self, class: ClassIndex) {
        let entry = &mut self.classes[class];
        if !entry.dirty {
            entry.dirty = true;
            self.dirty_classes.push(class);
        }
    }

    /// Marks the rows and folded rows of a slot whose machines changed.
    pub(crate) fn mark_slot(&mut self, slot: SlotIndex) {
        self.mark_standing(slot);
        for at in 0..self.slots[slot].rows.len() {
            self.mark_need(self.slots[slot].rows[at]);
        }
        for at in 0..self.slots[slot].classes.len() {
            let class = self.slots[slot].classes[at];
            self.mark_class(class);
            self.mark_need(self.classes[class].folded);
        }
        if let Some(heir) = self.slots[slot].heir {
            self.mark_slot(heir);
        }
    }

    /// Marks a cluster in which another slot may now inherit machines (RF-1).
    pub(crate) fn mark_heirs(&mut self, cluster: ClusterIndex) {
        if !std::mem::replace(&mut self.clusters[cluster].heirs_dirty, true) {
            self.dirty_clusters.push(cluster);
        }
    }

    /// Marks every slot with intents, because they may have ended or may stand again.
    pub(crate) fn mark_intents(&mut self) {
        let slots = self.intents.iter().filter_map(|at| self.records[*at].slot);
        for slot in slots.collect::<Vec<_>>() {
            self.mark_standing(slot);
        }
    }

    /// Marks a slot whose Need may have come or gone, so that its intents are looked at.
    pub(crate) fn mark_standing(&mut self, slot: SlotIndex) {
        if !std::mem::replace(&mut self.slots[slot].dirty, true) {
            self.dirty_slots.push(slot);
        }
    }

    /// Marks the classes of a cluster: a bound machine that serves no row may hold members of any of them.
    pub(crate) fn mark_classes_of(&mut self, cluster: ClusterIndex) {
        if std::mem::replace(&mut self.clusters[cluster].classes_dirty, true) {
            return;
        }
        for at in 0..self.clusters[cluster].classes.len() {
            self.mark_class(self.clusters[cluster].classes[at]);
        }
    }
}
