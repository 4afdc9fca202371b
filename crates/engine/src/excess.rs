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
    index::{ClassIndex, ClusterIndex, MachineIndex, NeedIndex},
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
    loose: Vec<(ClusterIndex, Vec<MachineIndex>)>,
}

impl Excess {
    /// The highest priority among the Needs a machine is held for.
    pub(crate) fn hold_priority(&self, machine: MachineIndex) -> Option<i32> {
        self.hold_priorities.get(&machine).copied()
    }

    fn is_held(&self, machine: MachineIndex) -> bool {
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
            let waiting = self.waiting(cluster, &robbed);
            for machine in &loose {
                let leaving = self.record(*machine).leaving;
                if leaving == Some(Leaving::Now) {
                    continue;
                }
                let for_need = |need: &NeedIndex| {
                    let is_its_own = || self.belongs_to(*machine) == Some(self.need(*need).slot);
                    (leaving.is_none() || is_its_own()) && self.is_held_for(*machine, *need)
                };
                let needs = waiting.iter().copied().filter(for_need);
                let needs = needs.chain(self.holders_of_its_own(*machine));
                if let Some(priority) = needs.map(|need| self.priority(need)).max() {
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

    fn is_held_for(&self, machine: MachineIndex, need: NeedIndex) -> bool {
        let shape = self.record(machine).shape;
        self.serves(need, shape) && self.is_of_use(need, shape)
    }

    /// The Needs a machine is attributed to that have no replacement for it yet, though they do not claim it:
    /// it is unfit, they have outgrown it, or they went where they need victims and found none.
    fn holders_of_its_own(&self, machine: MachineIndex) -> Vec<NeedIndex> {
        let Some(slot) = self.belongs_to(machine) else {
            return Vec::new();
        };
        let record = self.record(machine);
        let slot = &self.slots[slot];
        let folded = slot.classes.iter().map(|class| self.classes[*class].folded);
        let needs = slot.rows.iter().copied().chain(folded);
        let holds_outgrown = self.mistake != Some(Mistake::OutgrownNotHeld);
        let is_stuck = |need: NeedIndex| {
            let holding = self.holding(need);
            record.is_unfit()
                || (!self.serves(need, record.shape) && holds_outgrown)
                || (holding.by_victims && holding.victims.is_empty())
        };
        let holds = |need: &NeedIndex| {
            self.need(*need).is_live() && is_stuck(*need) && !self.is_covered_by(*need, |_| true)
        };
        needs.filter(holds).collect()
    }

    /// Swaps a machine that would be reclaimed for an equal one that serves and is dearer, or disturbs less, so
    /// that this goes (RF-18). Returns the Needs whose claims changed.
    pub(crate) fn exchange(&mut self, excess: &Excess, short: &[NeedIndex]) -> Vec<NeedIndex> {
        let mut touched = Vec::new();
        for (cluster, loose) in &excess.loose {
            let of_cluster = |at: &NeedIndex| self.need(*at).cluster == *cluster;
            let short: Vec<NeedIndex> = short.iter().copied().filter(of_cluster).collect();
            for machine in loose {
                let Record { unfit, leaving, .. } = *self.record(*machine);
                if !excess.is_held(*machine) && !unfit && leaving.is_none() {
                    touched.extend(self.exchange_one(*machine, *cluster, &short));
                }
            }
        }
        touched
    }

    fn exchange_one(
        &mut self,
        machine: MachineIndex,
        cluster: ClusterIndex,
        short: &[NeedIndex],
    ) -> Option<NeedIndex> {
        let record = *self.record(machine);
        let size = self.catalog.shapes[record.shape].size;
        let goes = |need: NeedIndex, held: MachineIndex| {
            let other = self.record(held);
            other.state == Some(State::Configured)
                && !other.preempted
                && self.catalog.shapes[other.shape].size == size
                && (self.is_dearer(need, held, machine) || self.disturbs_less(need, held, machine))
                && !short.iter().any(|need| self.serves(*need, other.shape))
        };
        let equals = self
            .live_needs(cluster)
            .filter(|need| self.may_exchange(*need) && self.serves(*need, record.shape))
            .flat_map(|need| self.claims(need).iter().map(move |held| (need, *held)))
            .filter(|(need, held)| goes(*need, *held));
        let dearest = equals.max_by(|(_, one), (_, other)| {
            let price = |at: &MachineIndex| self.keep_price(*at);
            price(one)
                .cmp(&price(other))
                .then_with(|| self.disturbs(*other).cmp(&self.disturbs(*one)))
                .then_with(|| self.ids.compare(*one, *other))
        });
        let (need, dearest) = dearest?;
        self.unclaim(need, dearest);
        self.claim(need, machine);
        Some(need)
    }

    /// Whether a Need takes any of its equals for another. Where nobody tells what draining would disturb, only
    /// the price counts, and that only where all places are alike.
    fn may_exchange(&self, need: NeedIndex) -> bool {
        0 < self.disruptions_known || !(self.is_gang(need) || self.is_spread(need))
    }

    fn is_dearer(&self, need: NeedIndex, held: MachineIndex, machine: MachineIndex) -> bool {
        !self.is_gang(need)
            && !self.is_spread(need)
            && self.keep_price(machine) < self.keep_price(held)
    }

    /// Whether a claimed machine is as dear as another, no dearer to lose, disturbs less, and lies where that
    /// one does.
    fn disturbs_less(&self, need: NeedIndex, held: MachineIndex, machine: MachineIndex) -> bool {
        let penalty = |at: MachineIndex| {
            let terms = &self.catalog.terms[self.record(at).terms].terms;
            terms.reclamation
        };
        let (leaves, stays) = match self.mistake {
            Some(Mistake::BusiestFirst) => (machine, held),
            _ => (held, machine),
        };
        let ignores = |mistake| self.mistake == Some(mistake);
        self.disturbs(leaves) < self.disturbs(stays)
            && self.keep_price(machine) == self.keep_price(held)
            && (penalty(held) <= penalty(machine) || ignores(Mistake::PenaltyIgnored))
            && (self.lie_together(need, held, machine) || ignores(Mistake::DomainIgnored))
    }

    /// Whether two machines lie in the same domain of a gang, or in the same ones of a spread Need.
    fn lie_together(&self, need: NeedIndex, one: MachineIndex, other: MachineIndex) -> bool {
        let (one, other) = (self.record(one).shape, self.record(other).shape);
        if self.is_gang(need) {
            self.domain_of(need, one) == self.domain_of(need, other)
        } else {
            self.by_values(need, one, other).is_eq()
        }
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
