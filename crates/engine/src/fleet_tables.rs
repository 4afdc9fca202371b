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

use crate::{
    Mistake,
    catalog::{Catalog, ProfileEntry},
    compact::Sizes,
    explain::Trace,
    holding::Holding,
    idle::IdleMachines,
    index::{
        ClassIndex, ClusterIndex, ConstraintsIndex, FingerprintIndex, GroupIndex, HoldingIndex,
        Index, MachineIndex, NeedIndex, ProfileIndex, ShapeIndex, SlotIndex, SupplyIndex,
        TermsIndex, UseIndex,
    },
    names::Names,
    pool::Stock,
    requested_amounts::RequestedAmounts,
    serving_lines::ServingLines,
    slab::Slab,
    slim_list::SlimList,
    table::{LongTable, Table},
    units::Credit,
};
use bigfleet_model::{Disruption, Dollars, HashKey, Holds, Leaving, Price, State, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The hot record of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) shape: ShapeIndex,
    /// What it is attributed to, as recorded.
    pub(crate) slot: Option<SlotIndex>,
    /// The cluster it is bound to while Configuring or Configured.
    pub(crate) cluster: Option<ClusterIndex>,
    pub(crate) terms: TermsIndex,
    /// The Need that claims it by name; see [`FleetTables::claimant`].
    pub(crate) claimant: Option<NeedIndex>,
    /// Its place among the cluster's bound machines.
    pub(crate) place_in_cluster: u32,
    /// Its place among the shape's Configured machines.
    pub(crate) place_in_shape: u32,
    /// None if there is no such machine.
    pub(crate) state: Option<State>,
    /// It cannot be counted on. While bound, its node is not ready or it leaves now; while it is not, it cannot
    /// be had, or is to leave (RF-1, RF-17, RF-21).
    pub(crate) unfit: bool,
    /// How it is to leave (RF-21).
    pub(crate) leaving: Option<Leaving>,
    pub(crate) preempted: bool,
}

impl Record {
    /// In the place of a machine that is gone. Only its state may be read.
    pub(crate) const ABSENT: Self = Self {
        shape: ShapeIndex::FIRST,
        slot: None,
        cluster: None,
        terms: TermsIndex::FIRST,
        claimant: None,
        place_in_cluster: 0,
        place_in_shape: 0,
        state: None,
        unfit: false,
        leaving: None,
        preempted: false,
    };

    /// Whether it is bound and cannot be counted on.
    pub(crate) fn is_unfit(&self) -> bool {
        self.unfit && self.cluster.is_some()
    }

    /// Whether it is bound, and serves until another does in its place (RF-21).
    pub(crate) fn leaves_soon(&self) -> bool {
        self.leaving == Some(Leaving::Soon) && self.cluster.is_some()
    }
}

/// How a machine whose drain can still be taken back was bound (RF-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayBack {
    pub(crate) cluster: ClusterIndex,
    pub(crate) terms: TermsIndex,
}

/// What a slot is found by; those of a cluster and group are neighbours.
pub(crate) type SlotIdentity = (ClusterIndex, GroupIndex, FingerprintIndex);

/// A (cluster, fingerprint text, group) that a machine or a row names.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) cluster: ClusterIndex,
    pub(crate) fingerprint: FingerprintIndex,
    pub(crate) group: GroupIndex,
    /// Attributed to it as recorded, in keep order.
    pub(crate) machines: Vec<MachineIndex>,
    /// Rows with this text. One, unless texts of different profiles collide.
    pub(crate) rows: SlimList<NeedIndex>,
    /// Classes whose folded row has this text.
    pub(crate) classes: SlimList<ClassIndex>,
    /// The slot its machines passed on to (RF-1).
    pub(crate) heir: Option<SlotIndex>,
    /// Slots that passed their machines on to this one.
    pub(crate) bequests: SlimList<SlotIndex>,
    /// Its intents have ended (RF-1), so machines promised to it are free to take.
    pub(crate) ended: bool,
    /// The Need that claims all of its machines.
    pub(crate) claimed_whole_by: Option<NeedIndex>,
    /// It is among the slots whose standing may have changed.
    pub(crate) dirty: bool,
}

impl Slot {
    /// Whether it names a row of the current demand, as received or in folded form.
    pub(crate) fn is_current(&self) -> bool {
        !self.rows.is_empty() || !self.classes.is_empty()
    }

    /// Whether a machine or a row names it. A slot that nothing names is removed.
    pub(crate) fn is_named(&self) -> bool {
        !self.machines.is_empty() || self.is_current()
    }
}

/// A row of the demand.
#[derive(Clone, Debug)]
pub(crate) struct NeedEntry {
    pub(crate) cluster: ClusterIndex,
    pub(crate) slot: SlotIndex,
    pub(crate) profile: ProfileIndex,
    pub(crate) usage: UseIndex,
    /// The class a gang is a member of.
    pub(crate) class: Option<ClassIndex>,
    /// Its place among the cluster's rows that are not gangs, if it is one.
    pub(crate) place_in_cluster: u32,
    /// A digest of its group's text, to check a handle without looking the group up.
    pub(crate) group_digest: u32,
    pub(crate) arrival: Option<Time>,
    pub(crate) wanted: RequestedAmounts,
    pub(crate) parked: bool,
    /// It asks for whole units of its use (RF-19).
    pub(crate) whole: bool,
    /// What became of it, if it is live: not folded away, and if a folded row, with members.
    pub(crate) holding: Option<HoldingIndex>,
    /// A gang with machines attributed to it.
    pub(crate) homed: bool,
    pub(crate) dirty: bool,
    /// Its own machines changed, not only the amounts it wants.
    pub(crate) own_dirty: bool,
    pub(crate) in_use: bool,
}

impl NeedEntry {
    pub(crate) fn is_live(&self) -> bool {
        self.holding.is_some()
    }
}

/// How far a class folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Every member without a home.
    All,
    /// The first so many of them.
    First(u64),
}

/// Those members of a class that fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folding {
    pub(crate) members: u64,
    /// The earliest arrival stated among them.
    pub(crate) arrival: Option<Time>,
    /// All of them ask for whole units.
    pub(crate) whole: bool,
}

/// Gangs of one cluster equal in profile and aggregate (RF-12).
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) cluster: ClusterIndex,
    pub(crate) supply: SupplyIndex,
    pub(crate) members: Vec<NeedIndex>,
    /// No member states an earlier arrival.
    pub(crate) earliest: Option<Time>,
    /// Members with machines attributed to them: they stay gangs.
    pub(crate) homed: Vec<NeedIndex>,
    pub(crate) fold: Fold,
    /// Members came, went or got machines since the class was last folded.
    pub(crate) regroup: bool,
    /// The members that came, or got or lost machines, since then.
    pub(crate) fresh: Vec<NeedIndex>,
    /// Members that do not ask for whole units.
    pub(crate) in_parts: usize,
    pub(crate) folding: Folding,
    /// The row they fold to; shared with classes whose profile folds to the same one (F-2).
    pub(crate) folded: NeedIndex,
    pub(crate) slot: SlotIndex,
    pub(crate) dirty: bool,
}

/// How many members the free machines of the shard hold, for all classes of a profile and aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    pub(crate) profile: ProfileIndex,
    /// The gang's own profile, with a whole member as the smallest unit.
    pub(crate) usage: UseIndex,
    pub(crate) wanted: RequestedAmounts,
    pub(crate) classes: BTreeSet<ClassIndex>,
    /// The folded row's fingerprint and group, the same in every cluster.
    pub(crate) folded: (FingerprintIndex, GroupIndex),
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

    /// Keep order (RF-2).
    pub(crate) fn keep_order(&self, one: MachineIndex, other: MachineIndex) -> std::cmp::Ordering {
        self.keep_key(one)
            .cmp(&self.keep_key(other))
            .then_with(|| self.by_mistake(one, other))
            .then_with(|| self.ids.compare(one, other))
    }

    /// What keep order does not know: [`Mistake::DisruptionInKeepOrder`].
    fn by_mistake(&self, one: MachineIndex, other: MachineIndex) -> std::cmp::Ordering {
        match self.mistake {
            Some(Mistake::DisruptionInKeepOrder) => self.disturbs(other).cmp(&self.disturbs(one)),
            _ => std::cmp::Ordering::Equal,
        }
    }

    /// Keep order but for the id: price, then what is dearest to lose (RF-2).
    pub(crate) fn keep_key(&self, machine: MachineIndex) -> (Price, Reverse<Dollars>) {
        self.terms_key(self.record(machine).terms)
    }

    pub(crate) fn terms_key(&self, terms: TermsIndex) -> (Price, Reverse<Dollars>) {
        let committed = &self.catalog.terms[terms];
        (committed.keep_price, Reverse(committed.terms.reclamation))
    }

    /// The price a machine was committed at (RF-2).
    pub(crate) fn keep_price(&self, machine: MachineIndex) -> Price {
        self.catalog.terms[self.record(machine).terms].keep_price
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

    /// The total order of Needs (O-1).
    pub(crate) fn need_order(&self, one: NeedIndex, other: NeedIndex) -> std::cmp::Ordering {
        let (a, b) = (self.need(one), self.need(other));
        let head = |need: &NeedEntry| {
            let profile = &self.catalog.profiles[need.profile].profile;
            let precedence = (
                profile.priority(),
                profile.interruption(),
                profile.reclamation(),
            );
            (Reverse(precedence), need.arrival)
        };
        let text = |need: &NeedEntry| {
            let min_unit = self.catalog.uses[need.usage].min_unit.key();
            (min_unit, self.catalog.amounts(need.wanted.iter()).key())
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

    /// M-5 asks for at most 55 bytes.
    #[test]
    fn the_hot_record_is_half_a_cache_line() {
        assert_eq!(size_of::<Record>(), 32);
    }

    /// Half a million rows come in with the largest fleet, so what lies beside each of them counts.
    #[test]
    fn a_row_and_its_slot_stay_within_three_cache_lines() {
        let (row, slot) = (size_of::<NeedEntry>(), size_of::<Slot>());
        assert!(row + slot <= 192, "{row} and {slot} bytes");
    }
}
