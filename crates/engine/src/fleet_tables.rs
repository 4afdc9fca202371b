//! Fleet tables: everything the engine knows of a fleet, kept up to date as facts change.
//!
//! ```text
//! machine ──attributed──▶ slot (cluster, fingerprint, group) ◀──named by── row, folded form
//!    │                      │ its machines in keep order           │
//!    └─ shape ─ pools       └─ heir, where it names no row         └─ need: claims, what is left
//! ```
//!
//! A [`Record`] is what a cycle touches of a machine: 32 bytes, so 2.4 million are 77 MB. Everything
//! that needs a text, a map or a sort is in a table beside it, once per distinct thing.

mod order;
mod record;
mod rows;
mod slot;

pub(crate) use record::{Record, WayBack};
pub(crate) use rows::{Class, Fold, Folding, NeedEntry, Supply};
pub(crate) use slot::{Slot, SlotIdentity};

use crate::{
    Mistake,
    catalog::{Catalog, ProfileEntry},
    compact::Sizes,
    explain::Trace,
    holding::Holding,
    idle::IdleMachines,
    index::{
        ClassIndex, ClusterIndex, ConstraintsIndex, FingerprintIndex, GroupIndex, HoldingIndex,
        MachineIndex, NeedIndex, ProfileIndex, ShapeIndex, SlotIndex, SupplyIndex,
    },
    names::Names,
    pool::Stock,
    requested_amounts::RequestedAmounts,
    serving_lines::ServingLines,
    slab::Slab,
    table::{LongTable, Table},
    units::Credit,
};
use bigfleet_model::{Disruption, HashKey, Holds};
use std::collections::{BTreeMap, BTreeSet};

/// A cluster that was named by a roll-up, a machine or an intent.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterEntry {
    pub(crate) ready: bool,
    pub(crate) acquire: bool,
    /// It has reported; otherwise machines name it, but no roll-up did.
    pub(crate) known: bool,
    /// Rows that are not gangs.
    pub(crate) plain: Vec<NeedIndex>,
    /// Classes, whose members are the gangs.
    pub(crate) classes: Vec<ClassIndex>,
    /// Configuring and Configured machines.
    pub(crate) bound: Vec<MachineIndex>,
    /// How many of those nobody claims.
    pub(crate) loose: u32,
    /// Machines whose drain can be taken back, unless they are meant for somebody.
    pub(crate) reversible: Vec<MachineIndex>,
    /// Who inherits from whom may have changed (RF-1).
    pub(crate) heirs_dirty: bool,
    /// All its classes are marked.
    pub(crate) classes_dirty: bool,
}

/// Everything the engine knows of a fleet.
#[derive(Clone, Debug, Default)]
pub(crate) struct FleetTables {
    pub(crate) catalog: Catalog,
    pub(crate) ids: Names<MachineIndex>,
    pub(crate) records: LongTable<MachineIndex, Record>,
    /// What draining each would disturb, where that is known. Read where something leaves, and only there.
    pub(crate) disruptions: LongTable<MachineIndex, Option<Disruption>>,
    /// How many of those are known.
    pub(crate) disruptions_known: usize,
    pub(crate) stocks: Table<ShapeIndex, Stock>,
    pub(crate) cluster_names: Names<ClusterIndex>,
    pub(crate) clusters: Table<ClusterIndex, ClusterEntry>,
    pub(crate) fingerprints: Names<FingerprintIndex>,
    /// What each fingerprint's text says from `|reqs=` on, if it has that part.
    pub(crate) constraints: Table<FingerprintIndex, Option<ConstraintsIndex>>,
    pub(crate) constraint_texts: Names<ConstraintsIndex>,
    pub(crate) groups: Names<GroupIndex>,
    pub(crate) group_uses: Table<GroupIndex, u32>,
    pub(crate) slots: Slab<SlotIndex, Slot>,
    pub(crate) slot_indexes: BTreeMap<SlotIdentity, SlotIndex>,
    pub(crate) needs: Slab<NeedIndex, NeedEntry>,
    pub(crate) holdings: Slab<HoldingIndex, Holding>,
    pub(crate) classes: Slab<ClassIndex, Class>,
    pub(crate) class_indexes: BTreeMap<(ClusterIndex, SupplyIndex), ClassIndex>,
    pub(crate) supplies: Slab<SupplyIndex, Supply>,
    /// By profile, then aggregate. Only searched, so the order of aggregates reaches nothing.
    pub(crate) supply_indexes: Table<ProfileIndex, BTreeMap<RequestedAmounts, SupplyIndex>>,
    pub(crate) holds: Holds,

    pub(crate) idle: IdleMachines,
    /// Machines with an intent on record.
    pub(crate) intents: BTreeSet<MachineIndex>,
    /// Machines whose drain can be taken back, meant for somebody or not.
    pub(crate) ways_back: BTreeMap<MachineIndex, WayBack>,
    /// How many bound machines leave soon (RF-21).
    pub(crate) leave_soon: usize,
    /// Bound machines that leave now.
    pub(crate) leave_now: BTreeSet<MachineIndex>,
    /// Machines that are to leave with an intent on record, which has ended.
    pub(crate) let_off: BTreeSet<MachineIndex>,
    /// Machines that leave soon and were given back for others in this cycle, by the Need that did.
    pub(crate) replaced: BTreeMap<MachineIndex, NeedIndex>,
    /// Slots that have machines but name no current row, by cluster.
    pub(crate) orphans: BTreeSet<(ClusterIndex, SlotIndex)>,
    /// Clusters with loose machines.
    pub(crate) loose_clusters: BTreeSet<ClusterIndex>,
    /// Claimed machines recorded under another slot than their claimant's (RF-7).
    pub(crate) mismatched: BTreeSet<MachineIndex>,

    /// What changed since the last cycle.
    pub(crate) dirty_needs: Vec<NeedIndex>,
    /// Needs that the last cycle left with something to come or to find.
    pub(crate) lacking: BTreeSet<NeedIndex>,
    pub(crate) dirty_classes: Vec<ClassIndex>,
    pub(crate) dirty_clusters: Vec<ClusterIndex>,
    /// Slots whose standing (live, ready, acquiring) may have changed.
    pub(crate) dirty_slots: Vec<SlotIndex>,
    pub(crate) supply_moved: bool,
    pub(crate) changed: bool,
    /// What draining some machine would disturb is not what it was.
    pub(crate) disruption_moved: bool,
    pub(crate) work: Work,
    /// What short Needs look through, while pass B runs.
    pub(crate) serving: ServingLines,

    /// How often the tables were rebuilt, and how large they were then.
    pub(crate) generation: u32,
    pub(crate) written: Sizes,
    /// See [`crate::Engine::make`].
    pub(crate) mistake: Option<Mistake>,
    /// What the next cycle writes down to explain one Need.
    pub(crate) trace: Option<Box<Trace>>,
}

/// How much a cycle touched: what it costs, measured independently of the machine it runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Needs whose own machines were walked.
    pub needs: u64,
    /// Machines looked at as candidates.
    pub machines: u64,
    /// Classes of gangs folded anew.
    pub classes: u64,
    /// Needs, classes, slots and clusters looked at because something about them may have changed.
    pub marked: u64,
}

/// How much the engine holds.
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

impl FleetTables {
    /// Empty tables whose names are found with this key (D-6).
    pub(crate) fn new(key: HashKey) -> Self {
        Self {
            catalog: Catalog::new(key),
            ids: Names::new(key),
            cluster_names: Names::new(key),
            fingerprints: Names::new(key),
            constraint_texts: Names::new(key),
            groups: Names::new(key),
            ..Self::default()
        }
    }

    /// How many places are looked at to find every name once.
    pub(crate) fn places_searched(&self) -> usize {
        self.ids.places_searched()
            + self.cluster_names.places_searched()
            + self.fingerprints.places_searched()
            + self.constraint_texts.places_searched()
            + self.groups.places_searched()
            + self.catalog.places_searched()
    }

    pub(crate) fn counts(&self) -> Counts {
        let live = |need: &NeedIndex| self.need(*need).is_live();
        Counts {
            machines: self
                .records
                .iter()
                .filter(|record| record.state.is_some())
                .count(),
            shapes: self.catalog.shapes.len(),
            profiles: self.catalog.profiles.len(),
            rows: self
                .clusters
                .iter()
                .map(|cluster| self.rows(cluster).count())
                .sum(),
            rows_after_fold: self.needs.indexes().filter(live).count(),
            record_bytes: size_of::<Record>(),
        }
    }

    /// The rows of a cluster as received.
    pub(crate) fn rows<'a>(&'a self, cluster: &'a ClusterEntry) -> impl Iterator<Item = NeedIndex> {
        let classes = cluster.classes.iter().map(|class| &self.classes[*class]);
        let gangs = classes.flat_map(|class| class.members.iter().copied());
        cluster.plain.iter().copied().chain(gangs)
    }

    pub(crate) fn record(&self, machine: MachineIndex) -> &Record {
        &self.records[machine]
    }

    pub(crate) fn need(&self, need: NeedIndex) -> &NeedEntry {
        &self.needs[need]
    }

    pub(crate) fn priority(&self, need: NeedIndex) -> i32 {
        self.profile(need).profile.priority()
    }

    pub(crate) fn profile(&self, need: NeedIndex) -> &ProfileEntry {
        &self.catalog.profiles[self.need(need).profile]
    }

    /// Whether all machines of a Need have to stand in one domain.
    pub(crate) fn is_gang(&self, need: NeedIndex) -> bool {
        self.profile(need).is_gang()
    }

    /// The slot a machine counts for: the heir's, where its own names no row (RF-1).
    pub(crate) fn attribution(&self, machine: MachineIndex) -> Option<SlotIndex> {
        let slot = self.record(machine).slot?;
        Some(self.slots[slot].heir.unwrap_or(slot))
    }

    /// All machines attributed to a slot, its bequests included, in keep order.
    pub(crate) fn attributed(&self, slot: SlotIndex) -> Vec<MachineIndex> {
        let entry = &self.slots[slot];
        let mut machines: Vec<MachineIndex> = if entry.heir.is_none() {
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

    pub(crate) fn attributed_count(&self, slot: SlotIndex) -> usize {
        let entry = &self.slots[slot];
        let own = if entry.heir.is_none() {
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

    /// What draining a Configured machine would disturb (RF-2).
    pub(crate) fn disturbs(&self, machine: MachineIndex) -> Disruption {
        self.disruptions[machine].unwrap_or(Disruption::UNKNOWN)
    }

    /// What a machine of this shape counts with for a Need (RF-19).
    pub(crate) fn credit(&self, need: NeedIndex, shape: ShapeIndex) -> Credit<'_> {
        let NeedEntry { usage, whole, .. } = *self.need(need);
        self.catalog.credit(usage, whole, shape)
    }

    /// Switches an old mistake on.
    pub(crate) fn make(&mut self, mistake: Mistake) {
        self.mistake = Some(mistake);
        self.catalog.make(mistake);
    }

    /// Whether a Need can use a machine of this shape (RM-3).
    pub(crate) fn serves(&self, need: NeedIndex, shape: ShapeIndex) -> bool {
        self.catalog.uses[self.need(need).usage].serves(shape)
    }

    /// Whether a machine of this shape has something of what a Need still wants (RF-3).
    pub(crate) fn contributes(&self, need: NeedIndex, shape: ShapeIndex) -> bool {
        let credit = self.credit(need, shape);
        let wanted = self.need(need).wanted.iter();
        let mut each = wanted.zip(&*self.holding(need).left);
        each.any(|((dimension, _), left)| 0 < *left && 0 < credit.amount(dimension))
    }

    /// Whether a machine of this shape has something of what a Need wants at all (RF-3).
    pub(crate) fn is_of_use(&self, need: NeedIndex, shape: ShapeIndex) -> bool {
        let credit = self.credit(need, shape);
        self.need(need)
            .wanted
            .iter()
            .any(|(dimension, _)| 0 < credit.amount(dimension))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One table without it would be enough for a stranger (D-6).
    #[test]
    fn every_table_of_names_has_the_key() {
        let key = HashKey::new([1, 2, 3]);
        let tables = FleetTables::new(key);
        let FleetTables {
            ids,
            cluster_names,
            fingerprints,
            constraint_texts,
            groups,
            ..
        } = &tables;
        let digests = [
            ids.digest("name"),
            cluster_names.digest("name"),
            fingerprints.digest("name"),
            constraint_texts.digest("name"),
            groups.digest("name"),
        ];
        assert_eq!(digests, [key.hash(b"name") as u32; 5]);
        assert_eq!(tables.catalog.key(), key);
    }

    /// Half a million rows come in with the largest fleet, so what lies beside each of them counts.
    #[test]
    fn a_row_and_its_slot_stay_within_three_cache_lines() {
        let (row, slot) = (size_of::<NeedEntry>(), size_of::<Slot>());
        assert!(row + slot <= 192, "{row} and {slot} bytes");
    }
}
