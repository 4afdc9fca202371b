//! Phase 3: machines that no Need claims are reclaimed, but not before their replacement serves (RF-11,
//! RF-18, R-1).
//!
//! ```text
//! loose Configured machine ──┬─ a Need waits for machines on their way ──▶ held
//!                            ├─ it leaves soon and its Need does ──▶ held
//!                            ├─ an equal serves that is dearer or disturbs less ──▶ they change places
//!                            └─ otherwise ──▶ Reclaim
//! ```

use crate::{
    Mistake,
    fleet_tables::{FleetTables, Fold, Record},
    index::{ClassIndex, ClusterIndex, Index, MachineIndex, NeedIndex, ShapeIndex, SlotIndex},
    shape_set::ShapeSet,
};
use bigfleet_model::{Leaving, State};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Machines that no Need claims, and which of them are held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excess {
    /// Held machines, each with the highest priority among the Needs it is held for.
    hold_priorities: BTreeMap<MachineIndex, i32>,
    /// Loose machines of clusters that may be reclaimed from, in keep order.
    pub(crate) loose: Vec<(ClusterIndex, Vec<MachineIndex>)>,
}

/// What is found out once about the Needs that machines are attributed to.
#[derive(Default)]
struct OwnHolders {
    /// The highest priority that holds machines of a slot and shape, fit or unfit.
    priorities: BTreeMap<(SlotIndex, ShapeIndex, bool), Option<i32>>,
    /// Whether a Need is covered by Configured machines.
    served: BTreeMap<NeedIndex, bool>,
}

impl Excess {
    /// The highest priority among the Needs a machine is held for.
    pub(crate) fn hold_priority(&self, machine: MachineIndex) -> Option<i32> {
        self.hold_priorities.get(&machine).copied()
    }

    pub(crate) fn is_held(&self, machine: MachineIndex) -> bool {
        self.hold_priorities.contains_key(&machine)
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = MachineIndex> {
        self.hold_priorities.keys().copied()
    }
}

impl FleetTables {
    /// The loose machines of ready clusters, and which of them are held (RF-11), given what this cycle
    /// has preempted.
    pub(crate) fn find_excess(&mut self, preempted: &[MachineIndex]) -> Excess {
        let robbed = preempted.iter().filter_map(|at| self.claimant(*at));
        let robbed: BTreeSet<NeedIndex> = robbed.collect();
        let mut excess = Excess::default();
        for cluster in self.loose_clusters.clone() {
            let loose = if self.may_reclaim(cluster) {
                self.work.machines += self.clusters[cluster].bound.len() as u64;
                self.loose(cluster)
            } else {
                self.leaving_now(cluster)
            };
            if loose.is_empty() {
                continue;
            }
            let shapes = loose.iter().map(|machine| self.record(*machine).shape);
            let waiting = self.waiting(cluster, &robbed);
            let by_slot = waiting.iter().map(|need| (self.need(*need).slot, *need));
            let by_slot: BTreeSet<(SlotIndex, NeedIndex)> = by_slot.collect();
            let (held_shapes, looks) = self.held_shapes(shapes, waiting);
            self.work.machines += looks;
            let mut own_holders = OwnHolders::default();
            for machine in &loose {
                let Record { shape, leaving, .. } = *self.record(*machine);
                let held_for = match leaving {
                    None => held_shapes.get(&shape).copied(),
                    Some(Leaving::Soon) if self.mistake == Some(Mistake::LeavingHeldForAnybody) => {
                        held_shapes.get(&shape).copied()
                    }
                    Some(Leaving::Soon) => self.held_for_its_own(*machine, &by_slot),
                    Some(Leaving::Now) => continue,
                };
                let priority = held_for.max(self.own_hold_priority(*machine, &mut own_holders));
                if let Some(priority) = priority {
                    excess.hold_priorities.insert(*machine, priority);
                }
            }
            excess.loose.push((cluster, loose));
        }
        excess
    }

    pub(crate) fn may_reclaim(&self, cluster: ClusterIndex) -> bool {
        let cluster = &self.clusters[cluster];
        cluster.known && cluster.ready
    }

    /// Configured machines that leave now, of a cluster that has not reported: they go all the same (RF-21).
    fn leaving_now(&self, cluster: ClusterIndex) -> Vec<MachineIndex> {
        let leaves = |machine: &MachineIndex| {
            let record = self.record(*machine);
            record.cluster == Some(cluster) && record.state == Some(State::Configured)
        };
        let mut machines: Vec<MachineIndex> = self.leave_now.iter().copied().collect();
        machines.retain(leaves);
        machines.sort_by(|one, other| self.keep_order(*one, *other));
        machines
    }

    /// Configured machines of a cluster that nobody claims and nobody preempts, in keep order.
    fn loose(&self, cluster: ClusterIndex) -> Vec<MachineIndex> {
        let is_loose = |machine: &MachineIndex| {
            let record = self.record(*machine);
            record.state == Some(State::Configured) && !record.preempted
        };
        let mut machines: Vec<MachineIndex> = self.unclaimed(cluster).filter(is_loose).collect();
        machines.sort_by(|one, other| self.keep_order(*one, *other));
        machines
    }

    /// Bound machines of a cluster that nobody claims. Stops at the last: their number is known.
    pub(crate) fn unclaimed(&self, cluster: ClusterIndex) -> impl Iterator<Item = MachineIndex> {
        let entry = &self.clusters[cluster];
        // Machines that came last are the most likely to be unclaimed.
        let bound = entry.bound.iter().rev().copied();
        bound
            .filter(|machine| self.claimant(*machine).is_none())
            .take(entry.loose as usize)
    }

    /// The Needs of a cluster that may be live: members of a class that folds whole are only looked
    /// at if they have a home.
    pub(crate) fn standing(&self, cluster: ClusterIndex) -> impl Iterator<Item = NeedIndex> {
        let entry = &self.clusters[cluster];
        let of_class = |class: &ClassIndex| {
            let class = &self.classes[*class];
            let (homed, members) = match class.fold {
                Fold::All => (class.homed.as_slice(), [].as_slice()),
                Fold::First(_) => ([].as_slice(), class.members.as_slice()),
            };
            let gangs = homed.iter().copied().chain(members.iter().copied());
            gangs.chain([class.folded])
        };
        entry
            .plain
            .iter()
            .copied()
            .chain(entry.classes.iter().flat_map(of_class))
    }

    /// This cycle's Needs of a cluster.
    pub(crate) fn live_needs(&self, cluster: ClusterIndex) -> impl Iterator<Item = NeedIndex> {
        self.standing(cluster)
            .filter(|need| self.need(*need).is_live())
    }

    /// Needs that count on machines which do not serve yet, or no longer. `robbed` are the Needs with
    /// preempted machines, which saves looking through all claims for them.
    fn waiting(&self, cluster: ClusterIndex, robbed: &BTreeSet<NeedIndex>) -> Vec<NeedIndex> {
        let waits = |need: &NeedIndex| {
            let holding = self.holding(*need);
            let counts_on_others =
                0 < holding.arriving || !holding.victims.is_empty() || robbed.contains(need);
            counts_on_others && !self.is_covered_by(*need, |record| !record.preempted)
        };
        self.live_needs(cluster).filter(waits).collect()
    }

    /// Whether a Need is covered by its Configured machines that pass the test.
    fn is_covered_by(&self, need: NeedIndex, counts: impl Fn(&Record) -> bool) -> bool {
        let entry = self.need(need);
        let serving = |machine: &&MachineIndex| {
            let record = self.record(**machine);
            record.state == Some(State::Configured) && counts(record)
        };
        entry.wanted.iter().all(|(dimension, wanted)| {
            let amount = |machine: &MachineIndex| {
                let shape = self.record(*machine).shape;
                i128::from(self.credit(need, shape).amount(dimension))
            };
            wanted <= self.claims(need).iter().filter(serving).map(amount).sum()
        })
    }

    /// The shapes whose machines are held for Needs that wait, each with the highest priority among those. A Need
    /// looks at those shapes alone that it can use and no Need of higher priority holds. Says how many were looked at.
    fn held_shapes(
        &self,
        shapes: impl Iterator<Item = ShapeIndex>,
        mut waiting: Vec<NeedIndex>,
    ) -> (BTreeMap<ShapeIndex, i32>, u64) {
        waiting.sort_by_key(|need| Reverse(self.priority(*need)));
        let mut open: ShapeSet = shapes.collect();
        let (mut held, mut looks) = (BTreeMap::new(), 0);
        for need in waiting {
            let usable = self.catalog.serving(self.need(need).usage, &open);
            let usable: Vec<ShapeIndex> = usable.collect();
            looks += 1 + usable.len() as u64;
            for shape in usable {
                if self.is_of_use(need, shape) {
                    held.insert(shape, self.priority(need));
                    open.remove(shape);
                }
            }
        }
        (held, looks)
    }

    /// The highest priority among the Needs that wait, of those a machine that leaves soon belongs to (RF-21).
    fn held_for_its_own(
        &self,
        machine: MachineIndex,
        waiting: &BTreeSet<(SlotIndex, NeedIndex)>,
    ) -> Option<i32> {
        let (slot, shape) = (self.belongs_to(machine)?, self.record(machine).shape);
        let of_slot = waiting.range((slot, NeedIndex::FIRST)..=(slot, NeedIndex::LAST));
        let holds = |need: &NeedIndex| self.serves(*need, shape) && self.is_of_use(*need, shape);
        let needs = of_slot.map(|(_, need)| *need).filter(holds);
        needs.map(|need| self.priority(need)).max()
    }

    /// The highest priority among the Needs a machine is attributed to that have no replacement for it yet, though
    /// they do not claim it: it is unfit, they have outgrown it, or they went where they need victims and found
    /// none.
    fn own_hold_priority(&self, machine: MachineIndex, known: &mut OwnHolders) -> Option<i32> {
        let slot = self.belongs_to(machine)?;
        let record = self.record(machine);
        let alike = (slot, record.shape, record.is_unfit());
        if let Some(priority) = known.priorities.get(&alike) {
            return *priority;
        }
        let folded = self.slots[slot].classes.iter();
        let folded = folded.map(|class| self.classes[*class].folded);
        let needs = self.slots[slot].rows.iter().copied().chain(folded);
        let holds_outgrown = self.mistake != Some(Mistake::OutgrownNotHeld);
        let is_stuck = |need: NeedIndex| {
            let holding = self.holding(need);
            record.is_unfit()
                || (!self.serves(need, record.shape) && holds_outgrown)
                || (holding.by_victims && holding.victims.is_empty())
        };
        let mut is_served = |need: NeedIndex| {
            let served = known.served.entry(need);
            *served.or_insert_with(|| self.is_covered_by(need, |_| true))
        };
        let holds =
            |need: &NeedIndex| self.need(*need).is_live() && is_stuck(*need) && !is_served(*need);
        let priority = needs.filter(holds).map(|need| self.priority(need)).max();
        known.priorities.insert(alike, priority);
        priority
    }

    /// Machines to reclaim, by cluster and in keep order, but what disturbs less before the id (R-1); before all
    /// others what leaves now, then what leaves soon (RF-21).
    pub(crate) fn reclaims(&self, excess: &Excess) -> Vec<MachineIndex> {
        let mut clusters: Vec<_> = excess.loose.iter().collect();
        clusters.sort_by(|one, other| self.cluster_names.compare(one.0, other.0));
        let mut reclaims = Vec::new();
        for (_, loose) in clusters {
            let from = reclaims.len();
            let going = loose.iter().copied();
            reclaims.extend(going.filter(|machine| !excess.is_held(*machine)));
            // They are in keep order, and those that disturb the same stay in it.
            reclaims[from..]
                .sort_by_key(|machine| (self.keep_key(*machine), self.disturbs(*machine)));
        }
        reclaims.sort_by_key(|machine| Reverse(self.record(*machine).leaving));
        reclaims
    }
}
