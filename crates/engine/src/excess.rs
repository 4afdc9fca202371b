//! Phase 3: what no Need claims goes, but never because of what has not arrived (RF-11, RF-18, R-1).
//!
//! ```text
//! loose Configured machine ──┬─ a Need waits for machines on their way ──▶ held
//!                            ├─ a dearer equal serves a plain Need ──▶ they change places
//!                            └─ otherwise ──▶ Reclaim
//! ```

use crate::{
    NONE,
    book::{Book, ClusterIx, Fold, MachineIx, NeedIx},
};
use bigfleet_model::{State, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What lies loose, and which of it stays for now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Machines that stay, each with the highest priority among the Needs it stays for.
    priorities: BTreeMap<MachineIx, i32>,
    /// Loose machines of clusters that may be reclaimed from, in keep order.
    loose: Vec<(ClusterIx, Vec<MachineIx>)>,
}

impl Held {
    pub(crate) fn priority(&self, machine: MachineIx) -> Option<i32> {
        self.priorities.get(&machine).copied()
    }

    pub(crate) fn machines(&self) -> impl Iterator<Item = MachineIx> {
        self.priorities.keys().copied()
    }
}

impl Book {
    /// Which loose machines of ready clusters are held (RF-11), given what this cycle has preempted.
    pub(crate) fn hold(&mut self, preempted: &[MachineIx]) -> Held {
        let robbed: BTreeSet<NeedIx> = preempted.iter().map(|at| self.claimant(*at)).collect();
        let mut held = Held::default();
        for cluster in self.loose_clusters.clone() {
            if !self.may_reclaim(cluster) {
                continue;
            }
            self.work.machines += self.clusters[cluster as usize].bound.len() as u64;
            let loose = self.loose(cluster);
            if loose.is_empty() {
                continue;
            }
            let waiting = self.waiting(cluster, &robbed);
            for machine in &loose {
                let for_need = |need: &NeedIx| self.is_held_for(*machine, *need);
                let needs = waiting.iter().copied().filter(for_need);
                let needs = needs.chain(self.holds_the_unfit(*machine));
                if let Some(priority) = needs.map(|need| self.priority(need)).max() {
                    held.priorities.insert(*machine, priority);
                }
            }
            held.loose.push((cluster, loose));
        }
        held
    }

    pub(crate) fn may_reclaim(&self, cluster: ClusterIx) -> bool {
        let cluster = &self.clusters[cluster as usize];
        cluster.known && cluster.ready
    }

    /// Configured machines of a cluster that nobody claims and nobody preempts, in keep order.
    fn loose(&self, cluster: ClusterIx) -> Vec<MachineIx> {
        let is_loose = |machine: &MachineIx| {
            let record = self.record(*machine);
            record.state == Some(State::Configured) && !record.preempted
        };
        let mut machines: Vec<MachineIx> = self.unclaimed(cluster).filter(is_loose).collect();
        machines.sort_by(|one, other| self.keep_order(*one, *other));
        machines
    }

    /// Bound machines of a cluster that nobody claims; how many there are is known.
    pub(crate) fn unclaimed(&self, cluster: ClusterIx) -> impl Iterator<Item = MachineIx> {
        let entry = &self.clusters[cluster as usize];
        // Those that came last are the likeliest.
        let bound = entry.bound.iter().rev().copied();
        bound
            .filter(|machine| self.claimant(*machine) == NONE)
            .take(entry.loose as usize)
    }

    /// The Needs of a cluster that may be live: members of a class that folds whole are only looked
    /// at if they have a home.
    pub(crate) fn standing(&self, cluster: ClusterIx) -> impl Iterator<Item = NeedIx> {
        let entry = &self.clusters[cluster as usize];
        let of_class = |class: &u32| {
            let class = &self.classes[*class];
            let (homed, members) = match class.fold {
                Fold::All => (class.homed.as_slice(), [].as_slice()),
                Fold::First(_) => ([].as_slice(), class.members.as_slice()),
            };
            let gangs = homed
                .iter()
                .copied()
                .chain(members.iter().map(|member| member.gang));
            gangs.chain([class.folded])
        };
        entry
            .plain
            .iter()
            .copied()
            .chain(entry.classes.iter().flat_map(of_class))
    }

    /// This cycle's Needs of a cluster.
    pub(crate) fn live_needs(&self, cluster: ClusterIx) -> impl Iterator<Item = NeedIx> {
        self.standing(cluster)
            .filter(|need| self.need(*need).is_live())
    }

    /// Needs that count on machines which do not serve yet, or no longer; `robbed` are those whose
    /// machines were preempted, so that nobody looks through all claims for one.
    fn waiting(&self, cluster: ClusterIx, robbed: &BTreeSet<NeedIx>) -> Vec<NeedIx> {
        let waits = |need: &NeedIx| {
            let holding = self.holding(*need);
            let counts_on_others =
                0 < holding.arriving || !holding.victims.is_empty() || robbed.contains(need);
            counts_on_others && !self.is_covered_by(*need, |record| !record.preempted)
        };
        self.live_needs(cluster).filter(waits).collect()
    }

    /// Whether the Configured claims of a Need that pass the test cover it alone.
    fn is_covered_by(&self, need: NeedIx, counts: impl Fn(&crate::book::Record) -> bool) -> bool {
        let entry = self.need(need);
        let serving = |machine: &&MachineIx| {
            let record = self.record(**machine);
            record.state == Some(State::Configured) && counts(record)
        };
        entry.wanted.iter().all(|(dimension, wanted)| {
            let amount = |machine: &MachineIx| {
                let shape = self.record(*machine).shape;
                i128::from(self.tables.shapes[shape as usize].amount(*dimension))
            };
            *wanted <= self.claims(need).iter().filter(serving).map(amount).sum()
        })
    }

    fn is_held_for(&self, machine: MachineIx, need: NeedIx) -> bool {
        let shape = self.record(machine).shape;
        self.serves(need, shape) && self.is_of_use(need, shape)
    }

    /// The Needs an unfit machine is attributed to that have nothing better yet.
    fn holds_the_unfit(&self, machine: MachineIx) -> Vec<NeedIx> {
        let slot = self.attribution(machine);
        if slot == NONE || !self.record(machine).is_unfit() {
            return Vec::new();
        }
        let slot = &self.slots[slot];
        let folded = slot.classes.iter().map(|class| self.classes[*class].folded);
        let needs = slot.rows.iter().copied().chain(folded);
        let wants =
            |need: &NeedIx| self.need(*need).is_live() && !self.is_covered_by(*need, |_| true);
        needs.filter(wants).collect()
    }

    /// Lets a dearer equal go instead of a machine that would be reclaimed (RF-18). Returns the
    /// Needs whose claims changed.
    pub(crate) fn exchange(&mut self, held: &Held, short: &[NeedIx]) -> Vec<NeedIx> {
        let mut touched = Vec::new();
        for (cluster, loose) in &held.loose {
            let of_cluster = |at: &NeedIx| self.need(*at).cluster == *cluster;
            let short: Vec<NeedIx> = short.iter().copied().filter(of_cluster).collect();
            for machine in loose {
                if held.priority(*machine).is_none() && !self.record(*machine).not_ready {
                    touched.extend(self.exchange_one(*machine, *cluster, &short));
                }
            }
        }
        touched
    }

    fn exchange_one(
        &mut self,
        machine: MachineIx,
        cluster: ClusterIx,
        short: &[NeedIx],
    ) -> Option<NeedIx> {
        let record = *self.record(machine);
        let amounts = self.tables.shapes[record.shape as usize].same_amounts_as;
        let is_dearer_equal = |held: &MachineIx| {
            let other = self.record(*held);
            other.state == Some(State::Configured)
                && !other.preempted
                && self.tables.shapes[other.shape as usize].same_amounts_as == amounts
                && record.number < other.number
                && !short.iter().any(|need| self.serves(*need, other.shape))
        };
        let dearest = self
            .live_needs(cluster)
            .filter(|need| {
                let profile = &self.tables.profiles[self.need(*need).profile as usize];
                profile.same_key == NONE
                    && profile.spreads.is_empty()
                    && self.serves(*need, record.shape)
            })
            .flat_map(|need| self.claims(need).iter().map(move |held| (need, *held)))
            .filter(|(_, held)| is_dearer_equal(held))
            .max_by(|(_, one), (_, other)| {
                let price = |at: &MachineIx| self.record(*at).number;
                price(one)
                    .total_cmp(&price(other))
                    .then_with(|| self.ids.compare(*one, *other))
            });
        let (need, dearest) = dearest?;
        self.unclaim(need, dearest);
        self.claim(need, machine);
        Some(need)
    }

    /// Machines to reclaim, by cluster and in keep order (R-1).
    pub(crate) fn reclaims(&self, held: &Held) -> Vec<MachineIx> {
        let mut clusters: Vec<_> = held.loose.iter().collect();
        clusters.sort_by(|one, other| self.cluster_names.compare(one.0, other.0));
        let loose = clusters.into_iter().flat_map(|(_, loose)| loose).copied();
        loose
            .filter(|machine| held.priority(*machine).is_none())
            .collect()
    }

    /// Idle machines whose hold has run out, by id (R-4), and when the next one's does.
    pub(crate) fn releases(&self, now: Time) -> (Vec<MachineIx>, f64) {
        let (mut machines, mut next) = (Vec::new(), f64::INFINITY);
        for (tier, idle) in &self.idle {
            let Some(hold) = self.holds.of(*tier) else {
                continue;
            };
            let unclaimed = |at: &&(Time, MachineIx)| self.record(at.1).claimant == NONE;
            for (since, machine) in idle.iter().filter(unclaimed) {
                if !self.holds.expired(*tier, *since, now) {
                    // Whoever became idle later goes later.
                    next = next.min(since.seconds() + hold.as_secs_f64());
                    break;
                }
                machines.push(*machine);
            }
        }
        machines.sort_by(|one, other| self.ids.compare(*one, *other));
        (machines, next)
    }
}
