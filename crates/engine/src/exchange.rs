//! Exchange: of two equals, one that serves and one that would be reclaimed, the better one stays (RF-18).
//!
//! ```text
//! claims of the cluster, by size ── the dearest, then what disturbs least, on top ──▶ first that may go
//!                                                                             └─ it goes, the loose one takes its place
//! ```
//!
//! What was looked at in vain is not looked at again for a loose machine of the same shape and terms (D-8).

use crate::{
    Mistake,
    excess::Excess,
    fleet_tables::{FleetTables, Record},
    index::{AmountsIndex, ClusterIndex, MachineIndex, NeedIndex, ShapeIndex},
    shape_set::ShapeSet,
};
use bigfleet_model::{Disruption, Dollars, Price, State};
use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

/// A loose machine that takes the place of a claimed one.
struct Swap {
    need: NeedIndex,
    leaves: MachineIndex,
    comes: MachineIndex,
}

/// A claim that may be exchanged.
struct Exchangeable<'t> {
    tables: &'t FleetTables,
    price: Price,
    disturbs: Reverse<Disruption>,
    machine: MachineIndex,
    need: NeedIndex,
}

impl Ord for Exchangeable<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |claim: &Self| (claim.price, claim.disturbs);
        let by_id = || self.tables.ids.compare(self.machine, other.machine);
        key(self).cmp(&key(other)).then_with(by_id)
    }
}

impl PartialOrd for Exchangeable<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Exchangeable<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Exchangeable<'_> {}

/// What decides whether a loose machine finds one to change places with.
type LooseKind = (ShapeIndex, Price, Reverse<Dollars>, Disruption);

impl FleetTables {
    /// Swaps machines that would be reclaimed for equal ones that serve and are dearer, or disturb less, so that
    /// these go (RF-18). Returns the Needs whose claims changed.
    pub(crate) fn exchange(&mut self, excess: &Excess, short: &[NeedIndex]) -> Vec<NeedIndex> {
        let mut by_cluster: BTreeMap<ClusterIndex, Vec<NeedIndex>> = BTreeMap::new();
        for need in short.iter().filter(|_| !excess.loose.is_empty()) {
            let cluster = self.need(*need).cluster;
            by_cluster.entry(cluster).or_default().push(*need);
        }
        let mut touched = Vec::new();
        for (cluster, loose) in &excess.loose {
            let going = |machine: &MachineIndex| {
                let Record { unfit, leaving, .. } = *self.record(*machine);
                !excess.is_held(*machine) && !unfit && leaving.is_none()
            };
            let going: Vec<MachineIndex> = loose.iter().copied().filter(going).collect();
            if going.is_empty() {
                continue;
            }
            let short = by_cluster.get(cluster).map_or(&[][..], |short| short);
            let (swaps, looks) = self.swaps(*cluster, &going, short);
            self.work.machines += looks;
            for swap in swaps {
                self.unclaim(swap.need, swap.leaves);
                self.claim(swap.need, swap.comes);
                touched.push(swap.need);
            }
        }
        touched
    }

    /// What changes places in one cluster, in this order, and how many claims were looked at.
    fn swaps(
        &self,
        cluster: ClusterIndex,
        going: &[MachineIndex],
        short: &[NeedIndex],
    ) -> (Vec<Swap>, u64) {
        let sizes = going.iter().map(|machine| self.size_of(*machine));
        let (mut equals, mut looks) = self.equals(cluster, sizes.collect(), short);
        let mut swaps = Vec::new();
        let mut in_vain: BTreeSet<LooseKind> = BTreeSet::new();
        for machine in going {
            let Some(equals) = equals.get_mut(&self.size_of(*machine)) else {
                continue;
            };
            let (price, penalty) = self.keep_key(*machine);
            let kind = (
                self.record(*machine).shape,
                price,
                penalty,
                self.disturbs(*machine),
            );
            if in_vain.contains(&kind) {
                continue;
            }
            let mut passed_over = Vec::new();
            let mut found = None;
            while found.is_none()
                && let Some(claim) = equals.pop_if_at_least(price)
            {
                looks += 1;
                if self.may_change_places(&claim, *machine) {
                    found = Some(claim);
                } else {
                    passed_over.push(claim);
                }
            }
            equals.0.extend(passed_over);
            let Some(claim) = found else {
                in_vain.insert(kind);
                continue;
            };
            let Exchangeable {
                need,
                machine: leaves,
                ..
            } = claim;
            equals.0.push(self.exchangeable(need, *machine));
            if 0 < self.disruptions_known {
                // Another of the same price may disturb more than the one that has come.
                in_vain.clear();
            }
            swaps.push(Swap {
                need,
                leaves,
                comes: *machine,
            });
        }
        (swaps, looks)
    }

    fn size_of(&self, machine: MachineIndex) -> AmountsIndex {
        self.catalog.shapes[self.record(machine).shape].size
    }

    fn exchangeable(&self, need: NeedIndex, machine: MachineIndex) -> Exchangeable<'_> {
        Exchangeable {
            tables: self,
            price: self.keep_price(machine),
            disturbs: Reverse(self.disturbs(machine)),
            machine,
            need,
        }
    }

    /// The claims of a cluster that serve, of these sizes, and of no use to any Need that is short; and how many
    /// were looked at.
    fn equals(
        &self,
        cluster: ClusterIndex,
        sizes: BTreeSet<AmountsIndex>,
        short: &[NeedIndex],
    ) -> (BTreeMap<AmountsIndex, Equals<'_>>, u64) {
        let mut wanted = ShapeSet::default();
        for need in short {
            self.catalog
                .add_serving(self.need(*need).usage, &mut wanted);
        }
        let mut equals: BTreeMap<AmountsIndex, Vec<Exchangeable<'_>>> = BTreeMap::new();
        let mut looks = short.len() as u64;
        for need in self
            .live_needs(cluster)
            .filter(|need| self.may_exchange(*need))
        {
            looks += 1 + self.claims(need).len() as u64;
            for held in self.claims(need) {
                let record = self.record(*held);
                let size = self.catalog.shapes[record.shape].size;
                if record.state == Some(State::Configured)
                    && !record.preempted
                    && sizes.contains(&size)
                    && !wanted.contains(record.shape)
                {
                    let claim = self.exchangeable(need, *held);
                    equals.entry(size).or_default().push(claim);
                }
            }
        }
        let equals = equals.into_iter();
        let equals = equals
            .map(|(size, claims)| (size, Equals(claims.into())))
            .collect();
        (equals, looks)
    }

    /// Whether a claim of equal size goes so that a loose machine stays.
    fn may_change_places(&self, claim: &Exchangeable<'_>, machine: MachineIndex) -> bool {
        let Exchangeable {
            need,
            machine: held,
            ..
        } = *claim;
        self.serves(need, self.record(machine).shape)
            && (self.is_dearer(need, held, machine) || self.disturbs_less(need, held, machine))
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
}

/// Claims of one size, the dearest on top.
struct Equals<'t>(BinaryHeap<Exchangeable<'t>>);

impl<'t> Equals<'t> {
    /// The dearest, unless it is cheaper than this.
    fn pop_if_at_least(&mut self, price: Price) -> Option<Exchangeable<'t>> {
        let is_worth_it = self.0.peek().is_some_and(|claim| price <= claim.price);
        is_worth_it.then(|| self.0.pop()).flatten()
    }
}
