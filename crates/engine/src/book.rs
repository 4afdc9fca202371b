//! Book: the fleet as dense records, kept up to date as facts change.
//!
//! ```text
//! machine ──attributed──▶ slot (cluster, fingerprint, group) ◀──named by── row, folded form
//!    │                      │ its machines in keep order           │
//!    └─ shape ─ pools       └─ heir, where it names no row         └─ need: claims, what is left
//! ```
//!
//! A [`Record`] is what a cycle touches of a machine: 40 bytes, so 2.4 million are 96 MB. Everything
//! that needs a text, a map or a sort is in a table beside it, once per distinct thing.

use crate::{
    NONE,
    compact::Sizes,
    explain::Trace,
    holding::Holding,
    names::Names,
    pool::Stock,
    slab::Slab,
    tables::{ProfileIx, ShapeIx, Tables, UseIx, Wanted},
};
use bigfleet_model::{Amounts, CapacityType, Holds, State, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Number of a machine: that of its id.
pub(crate) type MachineIx = u32;
/// Number of a cluster: that of its id.
pub(crate) type ClusterIx = u32;
/// Number of a slot.
pub(crate) type SlotIx = u32;
/// Number of a Need: a row as received, or the folded row of a class.
pub(crate) type NeedIx = u32;
/// Number of a class of gangs.
pub(crate) type ClassIx = u32;

/// The hot record of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// For a free Idle machine the moment it became idle (NaN if unknown), else its keep price.
    pub(crate) number: f64,
    pub(crate) shape: ShapeIx,
    /// What it is attributed to, as recorded, or [`NONE`].
    pub(crate) slot: SlotIx,
    /// The cluster it is bound to while Configuring or Configured, or [`NONE`].
    pub(crate) cluster: ClusterIx,
    pub(crate) terms: u32,
    /// The Need that claims it, or [`NONE`].
    pub(crate) claimant: NeedIx,
    /// Its place among the cluster's bound machines.
    pub(crate) place_in_cluster: u32,
    /// Its place among the shape's Configured machines.
    pub(crate) place_in_shape: u32,
    pub(crate) state: Option<State>,
    pub(crate) not_ready: bool,
    pub(crate) unavailable: bool,
    pub(crate) preempted: bool,
}

impl Record {
    pub(crate) const ABSENT: Self = Self {
        number: f64::NAN,
        shape: NONE,
        slot: NONE,
        cluster: NONE,
        terms: NONE,
        claimant: NONE,
        place_in_cluster: NONE,
        place_in_shape: NONE,
        state: None,
        not_ready: false,
        unavailable: false,
        preempted: false,
    };

    /// Whether it is known not to have become ready; means something only while bound.
    pub(crate) fn is_unfit(&self) -> bool {
        self.not_ready && self.state.is_some_and(State::is_bound)
    }
}

/// A (cluster, fingerprint text, group) that a machine or a row names.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) cluster: ClusterIx,
    pub(crate) fingerprint: u32,
    pub(crate) group: u32,
    /// Attributed to it as recorded, in keep order.
    pub(crate) machines: Vec<MachineIx>,
    /// Rows with this text. One, unless texts of different profiles collide.
    pub(crate) rows: Vec<NeedIx>,
    /// Classes whose folded row has this text.
    pub(crate) classes: Vec<ClassIx>,
    /// Where its machines passed on to (RF-1), or [`NONE`].
    pub(crate) heir: SlotIx,
    /// Slots that passed their machines on to this one.
    pub(crate) bequests: Vec<SlotIx>,
    /// Its intents have ended before the pass (RF-1), so its machines are in the pools.
    pub(crate) ended: bool,
    /// The Need that claims all of its machines, or [`NONE`].
    pub(crate) whole: NeedIx,
}

impl Slot {
    /// What it is found by.
    pub(crate) fn identity(&self) -> (ClusterIx, u32, u32) {
        (self.cluster, self.group, self.fingerprint)
    }

    /// Whether it names a row of the current demand, as received or in folded form.
    pub(crate) fn is_current(&self) -> bool {
        !self.rows.is_empty() || !self.classes.is_empty()
    }
}

/// A row of the demand.
#[derive(Clone, Debug)]
pub(crate) struct NeedEntry {
    pub(crate) cluster: ClusterIx,
    pub(crate) slot: SlotIx,
    pub(crate) profile: ProfileIx,
    pub(crate) usage: UseIx,
    /// The class of a gang, or the class this is the folded row of; else [`NONE`].
    pub(crate) class: ClassIx,
    /// A digest of its group's text, to know the row by without going there.
    pub(crate) group_mark: u32,
    pub(crate) arrival: Option<Time>,
    pub(crate) wanted: Wanted,
    pub(crate) parked: bool,
    /// What became of it; [`NONE`] unless it is live: not folded away, and if a folded row, with
    /// members.
    pub(crate) holding: u32,
    /// A gang with machines attributed to it.
    pub(crate) homed: bool,
    pub(crate) dirty: bool,
    /// Dirty by more than the amounts it wants: its own machines must be looked at again.
    pub(crate) own_dirty: bool,
    pub(crate) in_use: bool,
}

impl NeedEntry {
    pub(crate) fn is_live(&self) -> bool {
        self.holding != NONE
    }
}

/// A gang of a class, with what puts it in order among its equals beside its group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) gang: NeedIx,
    pub(crate) arrival: Option<Time>,
}

/// How far a class folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Every member without a home.
    All,
    /// The first so many of them.
    First(u64),
}

/// Gangs of one cluster equal in profile and aggregate (RF-12).
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) cluster: ClusterIx,
    pub(crate) supply: u32,
    pub(crate) members: Vec<Member>,
    /// No member states an earlier arrival.
    pub(crate) earliest: Option<Time>,
    /// Of those, with machines attributed to them: they stay gangs.
    pub(crate) homed: Vec<NeedIx>,
    pub(crate) fold: Fold,
    /// Members came, went or found a home since they last folded.
    pub(crate) regroup: bool,
    /// Those that came or whose home changed.
    pub(crate) fresh: Vec<NeedIx>,
    /// How many fold, and the earliest arrival stated among them.
    pub(crate) folding: (u64, Option<Time>),
    /// The row they fold to; shared with classes whose profile folds to the same one (F-2).
    pub(crate) folded: NeedIx,
    pub(crate) slot: SlotIx,
    pub(crate) dirty: bool,
}

/// How many members the free machines of the shard hold, for all classes of a profile and aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    pub(crate) identity: (ProfileIx, Amounts),
    /// Serves machines that hold a whole member of the gang as it is, Same and all.
    pub(crate) usage: UseIx,
    pub(crate) wanted: Wanted,
    pub(crate) classes: BTreeSet<ClassIx>,
    /// The numbers of the folded row's fingerprint and group, the same in every cluster.
    pub(crate) folded: (u32, u32),
    /// Counted no further than `most`.
    pub(crate) holds: u64,
    /// The most members of any class that could fold.
    pub(crate) most: u64,
}

/// A cluster that was named by a roll-up, a machine or an intent.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterEntry {
    pub(crate) ready: bool,
    pub(crate) acquire: bool,
    /// It is in the fleet, not just named.
    pub(crate) known: bool,
    /// Rows that are not gangs.
    pub(crate) plain: Vec<NeedIx>,
    /// Classes, whose members are the gangs.
    pub(crate) classes: Vec<ClassIx>,
    /// Configuring and Configured machines.
    pub(crate) bound: Vec<MachineIx>,
    /// Of those, claimed by nobody.
    pub(crate) loose: u32,
    /// Who inherits from whom may have changed (RF-1).
    pub(crate) heirs_dirty: bool,
}

/// Everything, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) tables: Tables,
    pub(crate) ids: Names,
    pub(crate) records: Vec<Record>,
    pub(crate) stocks: Vec<Stock>,
    pub(crate) cluster_names: Names,
    pub(crate) clusters: Vec<ClusterEntry>,
    pub(crate) fingerprints: Names,
    /// For each fingerprint, the first with the same text from `|reqs=` on; [`NONE`] without one.
    pub(crate) constraints: Vec<u32>,
    pub(crate) constraint_texts: Names,
    pub(crate) groups: Names,
    pub(crate) group_uses: Vec<u32>,
    pub(crate) slots: Slab<Slot>,
    /// By cluster, group and fingerprint.
    pub(crate) slot_numbers: BTreeMap<(ClusterIx, u32, u32), SlotIx>,
    pub(crate) needs: Slab<NeedEntry>,
    pub(crate) holdings: Slab<Holding>,
    pub(crate) classes: Slab<Class>,
    /// By cluster and supply.
    pub(crate) class_numbers: BTreeMap<(ClusterIx, u32), ClassIx>,
    pub(crate) supplies: Slab<Supply>,
    /// By profile, then aggregate.
    pub(crate) supply_numbers: Vec<BTreeMap<Amounts, u32>>,
    pub(crate) holds: Holds,

    /// Free Idle machines of tiers that are given back, by tier and since when they are idle.
    pub(crate) idle: BTreeMap<CapacityType, BTreeSet<(Time, MachineIx)>>,
    /// Machines with an intent on record.
    pub(crate) intents: BTreeSet<MachineIx>,
    /// Slots that have machines but name no current row, by cluster.
    pub(crate) orphans: BTreeSet<(ClusterIx, SlotIx)>,
    /// Clusters with loose machines.
    pub(crate) loose_clusters: BTreeSet<ClusterIx>,
    /// Claimed machines recorded under another slot than their claimant's (RF-7).
    pub(crate) mismatched: BTreeSet<MachineIx>,

    /// What changed since the last cycle.
    pub(crate) dirty_needs: Vec<NeedIx>,
    pub(crate) dirty_classes: Vec<ClassIx>,
    pub(crate) dirty_clusters: Vec<ClusterIx>,
    /// Slots whose standing (live, ready, acquiring) may have changed.
    pub(crate) dirty_slots: Vec<SlotIx>,
    pub(crate) supply_moved: bool,
    pub(crate) changed: bool,
    pub(crate) work: Work,

    /// How often the book was written anew, and how large its tables were then.
    pub(crate) generation: u32,
    pub(crate) written: Sizes,
    /// See [`crate::Engine::make`].
    pub(crate) mistake: Option<crate::Mistake>,
    /// What the next cycle writes down for whoever asks why.
    pub(crate) trace: Option<Box<Trace>>,
}

/// What a cycle touched: the measure of its cost that does not depend on the machine it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Needs whose own machines were walked.
    pub needs: u64,
    /// Machines looked at as candidates.
    pub machines: u64,
    /// Classes of gangs folded anew.
    pub classes: u64,
}

/// How much the engine holds of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Machines.
    pub machines: usize,
    /// Distinct shapes, prices included.
    pub shapes: usize,
    /// Distinct profiles, folded forms included.
    pub profiles: usize,
    /// Rows as received.
    pub rows: usize,
    /// Rows of the last cycle, after folding.
    pub rows_after_fold: usize,
    /// Bytes of a hot record (M-5).
    pub record_bytes: usize,
}

impl Book {
    pub(crate) fn counts(&self) -> Counts {
        let live = |need: &NeedIx| self.need(*need).in_use && self.need(*need).is_live();
        Counts {
            machines: self
                .records
                .iter()
                .filter(|record| record.state.is_some())
                .count(),
            shapes: self.tables.shapes.len(),
            profiles: self.tables.profiles.len(),
            rows: self
                .clusters
                .iter()
                .map(|cluster| self.rows(cluster).count())
                .sum(),
            rows_after_fold: self.needs.numbers().filter(live).count(),
            record_bytes: size_of::<Record>(),
        }
    }

    /// The rows of a cluster as received.
    pub(crate) fn rows<'a>(&'a self, cluster: &'a ClusterEntry) -> impl Iterator<Item = NeedIx> {
        let classes = cluster.classes.iter().map(|class| &self.classes[*class]);
        let gangs = classes.flat_map(|class| class.members.iter().map(|member| member.gang));
        cluster.plain.iter().copied().chain(gangs)
    }

    pub(crate) fn record(&self, machine: MachineIx) -> &Record {
        &self.records[machine as usize]
    }

    pub(crate) fn need(&self, need: NeedIx) -> &NeedEntry {
        &self.needs[need]
    }

    pub(crate) fn priority(&self, need: NeedIx) -> i32 {
        self.tables.profiles[self.need(need).profile as usize]
            .profile
            .priority()
    }

    /// The slot a machine counts for: the heir's, where its own names no row (RF-1).
    pub(crate) fn attribution(&self, machine: MachineIx) -> SlotIx {
        match self.record(machine).slot {
            NONE => NONE,
            slot => match self.slots[slot].heir {
                NONE => slot,
                heir => heir,
            },
        }
    }

    /// All machines attributed to a slot, its bequests included, in keep order.
    pub(crate) fn attributed(&self, slot: SlotIx) -> Vec<MachineIx> {
        let entry = &self.slots[slot];
        let mut machines: Vec<MachineIx> = if entry.heir == NONE {
            entry.machines.clone()
        } else {
            Vec::new()
        };
        for bequest in &entry.bequests {
            machines.extend(&self.slots[*bequest].machines);
        }
        if !entry.bequests.is_empty() {
            machines.sort_by(|one, other| self.keep_order(*one, *other));
        }
        machines
    }

    pub(crate) fn attributed_count(&self, slot: SlotIx) -> usize {
        let entry = &self.slots[slot];
        let own = if entry.heir == NONE {
            entry.machines.len()
        } else {
            0
        };
        let bequeathed = entry
            .bequests
            .iter()
            .map(|from| self.slots[*from].machines.len());
        own + bequeathed.sum::<usize>()
    }

    /// Keep order (RF-2).
    pub(crate) fn keep_order(&self, one: MachineIx, other: MachineIx) -> std::cmp::Ordering {
        let key = |machine: MachineIx| {
            let record = self.record(machine);
            crate::tables::keep_key(record.number, &self.tables.terms[record.terms as usize])
        };
        key(one)
            .cmp(&key(other))
            .then_with(|| self.ids.compare(one, other))
    }

    /// Whether a Need can use a machine of this shape (RM-3).
    pub(crate) fn serves(&self, need: NeedIx, shape: ShapeIx) -> bool {
        self.tables.uses[self.need(need).usage as usize].serves(shape)
    }

    /// Whether a machine of this shape has something of what a Need still wants (RF-3).
    pub(crate) fn contributes(&self, need: NeedIx, shape: ShapeIx) -> bool {
        let shape = &self.tables.shapes[shape as usize];
        let wanted = self.need(need).wanted.iter();
        let mut each = wanted.zip(&*self.holding(need).left);
        each.any(|((dimension, _), left)| 0 < *left && 0 < shape.amount(*dimension))
    }

    /// Whether a machine of this shape has something of what a Need wants at all (RF-3).
    pub(crate) fn is_of_use(&self, need: NeedIx, shape: ShapeIx) -> bool {
        let shape = &self.tables.shapes[shape as usize];
        self.need(need)
            .wanted
            .iter()
            .any(|(dimension, _)| 0 < shape.amount(*dimension))
    }

    /// The total order of Needs (O-1).
    pub(crate) fn need_order(&self, one: NeedIx, other: NeedIx) -> std::cmp::Ordering {
        let (a, b) = (self.need(one), self.need(other));
        let head = |need: &NeedEntry| {
            let profile = &self.tables.profiles[need.profile as usize].profile;
            let precedence = (
                profile.priority(),
                profile.interruption(),
                profile.reclamation(),
            );
            (std::cmp::Reverse(precedence), need.arrival)
        };
        let text = |need: &NeedEntry| {
            let min_unit = self.tables.uses[need.usage as usize].min_unit.key();
            (
                min_unit,
                self.tables.amounts(need.wanted.iter().copied()).key(),
            )
        };
        let (slot_a, slot_b) = (&self.slots[a.slot], &self.slots[b.slot]);
        head(a)
            .cmp(&head(b))
            .then_with(|| self.cluster_names.compare(a.cluster, b.cluster))
            .then_with(|| {
                self.fingerprints
                    .compare(slot_a.fingerprint, slot_b.fingerprint)
            })
            .then_with(|| self.groups.compare(slot_a.group, slot_b.group))
            .then_with(|| text(a).cmp(&text(b)))
    }

    /// A Need's own machines, or what it makes of them, changed.
    pub(crate) fn mark_need(&mut self, need: NeedIx) {
        self.needs[need].own_dirty = true;
        self.mark_again(need);
    }

    /// A Need is to be looked at again; its own machines are as they were.
    pub(crate) fn mark_again(&mut self, need: NeedIx) {
        let entry = &mut self.needs[need];
        if !entry.dirty && entry.in_use {
            entry.dirty = true;
            self.dirty_needs.push(need);
        }
    }

    /// Takes over what a row wants. Where only amounts differ, the same claims often still do.
    pub(crate) fn set_wanted(&mut self, need: NeedIx, wanted: Wanted) {
        let entry = &mut self.needs[need];
        let is_alike = entry.wanted.len() == wanted.len()
            && entry.wanted.iter().zip(&*wanted).all(|(a, b)| a.0 == b.0);
        if let Some(holding) = self.holdings.get_mut(entry.holding) {
            let each = wanted.iter().zip(&*entry.wanted);
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
        // Rows whose texts collide share their own, so what one takes the other has not.
        let is_known = self.need(need).is_live() && !self.need(need).own_dirty;
        let is_shared = match is_known {
            true => self.is_shared(need),
            false => 1 < self.slots[slot].rows.len() + self.slots[slot].classes.len(),
        };
        if is_shared {
            self.mark_slot(slot);
        }
    }

    pub(crate) fn mark_class(&mut self, class: ClassIx) {
        let entry = &mut self.classes[class];
        if !entry.dirty {
            entry.dirty = true;
            self.dirty_classes.push(class);
        }
    }

    /// The machines attributed to a slot changed: its rows and its folded rows look again.
    pub(crate) fn mark_slot(&mut self, slot: SlotIx) {
        self.dirty_slots.push(slot);
        for at in 0..self.slots[slot].rows.len() {
            self.mark_need(self.slots[slot].rows[at]);
        }
        for at in 0..self.slots[slot].classes.len() {
            let class = self.slots[slot].classes[at];
            self.mark_class(class);
            self.mark_need(self.classes[class].folded);
        }
        match self.slots[slot].heir {
            NONE => {}
            heir => self.mark_slot(heir),
        }
    }

    /// A bound machine that is attributed to no row may hold members of any class of its cluster.
    pub(crate) fn mark_classes_of(&mut self, cluster: ClusterIx) {
        for at in 0..self.clusters[cluster as usize].classes.len() {
            self.mark_class(self.clusters[cluster as usize].classes[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-5.
    #[test]
    fn the_hot_record_stays_within_55_bytes() {
        assert!(size_of::<Record>() <= 55, "{} bytes", size_of::<Record>());
    }

    /// Half a million rows come in with the largest fleet, so what lies beside each of them counts.
    #[test]
    fn a_row_stays_within_three_cache_lines() {
        let bytes = size_of::<NeedEntry>();
        assert!(bytes <= 192, "{bytes} bytes");
    }
}
