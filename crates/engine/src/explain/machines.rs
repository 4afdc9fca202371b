//! Machines: what became of each from one Need's point of view, in groups of machines that are alike.
//!
//! Read from the tables after the cycle. Whether a machine is of use is judged once per shape, so a
//! fleet of millions takes seconds to explain and a page to read.

use crate::{
    explain::{
        fate::{ClaimSource, Fate},
        trace::Trace,
    },
    fleet_tables::FleetTables,
    index::{MachineIndex, NeedIndex, ShapeIndex},
    table::Table,
};
use bigfleet_model::{Amounts, ClusterId, Leaving, MachineId, NeedKey, Shape, State};
use std::collections::{BTreeMap, BTreeSet};

/// What machines look like to people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineKind {
    /// The provider's name for the size; may be empty.
    pub instance_type: String,
    /// Where it stands; may be empty.
    pub zone: String,
    /// What it offers.
    pub offers: Amounts,
}

/// Machines of one kind and state with one fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// What became of them.
    pub fate: Fate,
    /// Their state.
    pub state: State,
    /// Their kind.
    pub kind: MachineKind,
    /// How many there are.
    pub count: usize,
    /// The first of them, by id.
    pub machines: Vec<MachineId>,
}

impl Alike {
    /// How many machines of a group are named.
    pub const MOST_NAMED: usize = 5;
    /// How many groups are listed.
    pub const MOST: usize = 50;
    /// How many of each of the five sorts (claimed, left, taken, away, unfit) at the least.
    const FAIR_SHARE: usize = Self::MOST / 5;
}

/// How much is not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Groups.
    pub groups: usize,
    /// Machines in them.
    pub machines: usize,
}

/// What the fates are read from besides the tables.
pub(super) struct ExplainedCycle<'a> {
    pub(super) need: NeedIndex,
    pub(super) trace: &'a Trace,
    pub(super) held: BTreeSet<MachineIndex>,
    /// Whom each preempted machine makes way for.
    pub(super) preempted: BTreeMap<MachineIndex, NeedIndex>,
    /// Machines whose drain is taken back.
    pub(super) restored: &'a BTreeSet<MachineIndex>,
    pub(super) buys_nothing: bool,
}

impl FleetTables {
    /// Groups all machines; what the Need has comes first, and within a sort the largest groups.
    pub(super) fn explain_machines(&self, view: &ExplainedCycle<'_>) -> (Vec<Alike>, LeftOut) {
        let shapes = self.catalog.shapes.indexes();
        let unfit: Table<ShapeIndex, Option<Fate>> =
            shapes.map(|shape| self.unfit(view.need, shape)).collect();
        let mut unusable: BTreeMap<(ShapeIndex, State), Vec<MachineIndex>> = BTreeMap::new();
        let mut usable: BTreeMap<(Fate, ShapeIndex, State), Vec<MachineIndex>> = BTreeMap::new();
        for machine in self.records.indexes() {
            let record = self.record(machine);
            let Some(state) = record.state else { continue };
            let is_unfit =
                unfit[record.shape].is_some() && self.claimant(machine) != Some(view.need);
            let group = if is_unfit {
                unusable.entry((record.shape, state)).or_default()
            } else {
                let fate = self.fate(view, machine, state);
                usable.entry((fate, record.shape, state)).or_default()
            };
            group.push(machine);
        }
        let unusable = unusable
            .into_iter()
            .filter_map(|((shape, state), machines)| {
                let why = unfit[shape].clone()?;
                Some(((why, shape, state), machines))
            });
        // Shapes that differ in price or labels alone look the same to people.
        let mut groups: BTreeMap<(Fate, State, MachineKind), Vec<MachineIndex>> = BTreeMap::new();
        for ((fate, shape, state), machines) in usable.into_iter().chain(unusable) {
            let kind = kind(&self.catalog.shapes[shape].shape);
            groups
                .entry((fate, state, kind))
                .or_default()
                .extend(machines);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|((fate, _, _), machines)| {
            (fate.rank(), std::cmp::Reverse(machines.len()))
        });
        let same_sort = |one: &Grouped, other: &Grouped| one.0.0.rank() == other.0.0.rank();
        let sorts: Vec<&[Grouped]> = groups.chunk_by(same_sort).collect();
        // Each sort has its share of the lines; what one does not use goes to the first that needs more.
        let share = |sort: &[Grouped]| sort.len().min(Alike::FAIR_SHARE);
        let mut spare = Alike::MOST - sorts.iter().map(|sort| share(sort)).sum::<usize>();
        let (mut listed, mut left_out) = (Vec::new(), LeftOut::default());
        for sort in sorts {
            let more = (sort.len() - share(sort)).min(spare);
            spare -= more;
            let (shown, rest) = sort.split_at(share(sort) + more);
            listed.extend(shown.iter().map(|group| self.alike(group)));
            left_out.groups += rest.len();
            left_out.machines += rest
                .iter()
                .map(|(_, machines)| machines.len())
                .sum::<usize>();
        }
        (listed, left_out)
    }

    fn alike(&self, ((fate, state, kind), machines): &Grouped) -> Alike {
        let mut sorted = machines.clone();
        sorted.sort_by(|one, other| self.ids.compare(*one, *other));
        let named = sorted.iter().take(Alike::MOST_NAMED);
        Alike {
            fate: fate.clone(),
            state: *state,
            kind: kind.clone(),
            count: machines.len(),
            machines: named.map(|machine| self.machine_id(*machine)).collect(),
        }
    }

    /// What became of a machine of a shape that is of use, or claimed.
    fn fate(&self, view: &ExplainedCycle<'_>, machine: MachineIndex, state: State) -> Fate {
        let (need, record) = (view.need, self.record(machine));
        let claimant = self.claimant(machine);
        if claimant == Some(need) {
            return Fate::Claimed(self.how(view, machine, state));
        }
        match view.preempted.get(&machine) {
            Some(taker) if *taker == need => return Fate::Preempted,
            Some(taker) => return Fate::PreemptedFor(self.key_of(*taker)),
            None => {}
        }
        if let Some(claimant) = claimant {
            return Fate::ClaimedBy(self.key_of(claimant));
        }
        let is_own = self.is_own(need, machine);
        if let Some(slot) = record.slot
            && let Some(attribution) = self.attribution(machine)
            && state.may_hold_intent()
            && !is_own
            && !self.slots[slot].ended
        {
            return Fate::PromisedTo(self.slot_key(attribution));
        }
        let is_ours = record.cluster == Some(self.need(need).cluster);
        match state {
            State::Configured | State::Configuring if is_ours && record.is_unfit() => {
                match record.leaving {
                    Some(Leaving::Now) => Fate::Leaves(Leaving::Now),
                    Some(Leaving::Soon) | None => Fate::NotReady,
                }
            }
            State::Configured | State::Configuring if is_ours => {
                self.why_left(view, machine, is_own)
            }
            State::Configured => Fate::Serving(self.bound_to(machine)),
            State::Configuring => Fate::OnItsWayTo(self.bound_to(machine)),
            State::Idle | State::Creating | State::Speculative => {
                self.why_left(view, machine, is_own)
            }
            State::Draining if is_own => self.why_left(view, machine, true),
            State::Draining => Fate::Draining,
            State::Deleting => Fate::Deleting,
            State::Failed => Fate::Failed,
        }
    }

    fn how(&self, view: &ExplainedCycle<'_>, machine: MachineIndex, state: State) -> ClaimSource {
        match state {
            _ if self.record(machine).leaves_soon() => {
                ClaimSource::Leaving(self.why_not_replaced(view.need, machine))
            }
            _ if self.is_own(view.need, machine) => ClaimSource::Own,
            _ if view.restored.contains(&machine) => ClaimSource::Restored,
            State::Configured | State::Configuring => ClaimSource::Bound,
            State::Idle => ClaimSource::Idle,
            State::Creating => ClaimSource::Creating,
            State::Speculative => ClaimSource::Speculative,
            State::Draining | State::Deleting | State::Failed => ClaimSource::Draining,
        }
    }

    /// Which requirement or which dimension rules a shape out (RM-3, RF-3).
    fn unfit(&self, need: NeedIndex, shape: ShapeIndex) -> Option<Fate> {
        let entry = self.need(need);
        if self.serves(need, shape) {
            let has_use = self.is_of_use(need, shape) || entry.wanted.is_empty();
            return (!has_use).then_some(Fate::OffersNothing);
        }
        let shape = &self.catalog.shapes[shape].shape;
        let profile = &self.catalog.profiles[entry.profile].profile;
        for requirement in profile.requirements() {
            let value = shape.attribute(requirement.key());
            if !requirement.accepts(value) {
                return Some(Fate::Requirement(
                    requirement.clone(),
                    value.map(str::to_owned),
                ));
            }
        }
        let min_unit = &self.catalog.uses[entry.usage].min_unit;
        let lacking = min_unit.iter().find_map(|(dimension, unit)| {
            let has = shape.effective().get(dimension.as_str());
            let dimension = dimension.clone();
            (has < unit).then_some(Fate::BelowMinUnit {
                dimension,
                has,
                unit,
            })
        });
        Some(lacking.unwrap_or(Fate::OffersNothing))
    }

    /// Why a machine that nobody else has was left.
    fn why_left(&self, view: &ExplainedCycle<'_>, machine: MachineIndex, is_own: bool) -> Fate {
        let (need, record) = (view.need, self.record(machine));
        let (entry, holding) = (self.need(need), self.holding(need));
        let profile = &self.catalog.profiles[entry.profile];
        let is_bound = record.cluster.is_some();
        let is_free = !is_bound && !is_own;
        if view.held.contains(&machine) {
            return Fate::Held;
        }
        if let Some(word) = record.leaving {
            return Fate::Leaves(word);
        }
        if is_free && record.unfit {
            return Fate::Unavailable;
        }
        if let Some(key) = profile.profile.same_key() {
            let domain = self.domain_of(need, record.shape);
            if domain.is_none() {
                return Fate::NoDomain(key.to_owned());
            }
            // A gang without a domain found nothing that it takes in any.
            if holding.domain.is_some() && domain != holding.domain {
                return Fate::OutsideDomain;
            }
        }
        if view.trace.pruned.contains(&machine) {
            return Fate::Pruned;
        }
        if holding.is_covered() {
            return Fate::NotReached;
        }
        if is_free && self.is_parked(need) {
            let may_acquire = self.clusters[entry.cluster].acquire;
            return if may_acquire {
                Fate::Parked
            } else {
                Fate::MayNotAcquire
            };
        }
        if view.buys_nothing && record.state == Some(State::Speculative) {
            return Fate::NotBoughtInPart;
        }
        if !self.has_some(need, record.shape, &holding.left) {
            return Fate::OffersNothingMissing;
        }
        match (self.is_spread(need) && !profile.is_gang(), is_own) {
            (true, false) => self.why_not_spread(need, record.shape),
            _ => Fate::FreedLater,
        }
    }

    fn why_not_spread(&self, need: NeedIndex, shape: ShapeIndex) -> Fate {
        let profile = &self.catalog.profiles[self.need(need).profile].profile;
        let shape = &self.catalog.shapes[shape].shape;
        let has_none = |key: &&str| shape.attribute(key).is_none_or(str::is_empty);
        let absent = profile
            .hard_spreads()
            .map(|spread| spread.topology_key())
            .find(has_none);
        absent.map_or(Fate::Spread, |key| Fate::NoDomain(key.to_owned()))
    }

    fn bound_to(&self, machine: MachineIndex) -> ClusterId {
        match self.record(machine).cluster {
            Some(cluster) => self.cluster_id(cluster),
            None => unreachable!("{} is bound to a cluster", self.ids.get(machine)),
        }
    }

    pub(crate) fn key_of(&self, need: NeedIndex) -> NeedKey {
        self.slot_key(self.need(need).slot)
    }
}

type Grouped = ((Fate, State, MachineKind), Vec<MachineIndex>);

fn kind(shape: &Shape) -> MachineKind {
    MachineKind {
        instance_type: shape.instance_type.clone(),
        zone: shape.zone.clone(),
        offers: shape.effective().clone(),
    }
}
