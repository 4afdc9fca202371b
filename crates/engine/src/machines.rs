//! Machines that come, change and go. Each fact moves a record between the lists it belongs to.
//!
//! A fact that changes nothing marks nothing, so a List that repeats itself leaves a cycle quiet.

use crate::{
    Mistake,
    fleet_tables::{FleetTables, Record, WayBack},
    index::{ClusterIndex, MachineIndex, ShapeIndex, SlotIndex},
    pool::PoolKind,
};
use bigfleet_model::{
    ClusterId, Disruption, Leaving, Machine, MachineId, NeedKey, Price, Probability, Shape, State,
    Terms, Time,
};
use std::sync::Arc;

/// The handle of a shape at a price. It ends when the engine's generation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownShape {
    pub(crate) shape: ShapeIndex,
    pub(crate) generation: u32,
}

/// What the shard knows of a machine beside its record, as in [`bigfleet_model::FleetMachine`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// When it became idle, if that is known.
    pub idle_since: Option<Time>,
    /// Its node did not become ready.
    pub not_ready: bool,
    /// It cannot be acquired now.
    pub unavailable: bool,
    /// What draining it would disturb, if that is known (RF-2).
    pub disruption: Option<Disruption>,
    /// Its drain can still be taken back (RF-20).
    pub reversible: bool,
    /// How it is to leave, if it is marked (RF-21).
    pub leaving: Option<Leaving>,
}

/// A machine whose shape the engine knows. Millions of records come in like this, without building a
/// [`bigfleet_model::Machine`] each; the caller vouches for what that type would have checked.
#[derive(Clone, Debug)]
pub struct MachineFact<'a> {
    /// Its id; not empty.
    pub id: &'a str,
    /// Its state.
    pub state: State,
    /// What it is like, and what it costs.
    pub shape: KnownShape,
    /// The cluster it is bound to.
    pub cluster: Option<&'a ClusterId>,
    /// The Need it is committed to, as recorded (RF-1).
    pub attribution: Option<&'a NeedKey>,
    /// The terms of that commitment.
    pub terms: Terms,
    /// The price it is kept at (RF-2).
    pub keep_price: Price,
    /// When it became idle, if that is known.
    pub idle_since: Option<Time>,
    /// Its node did not become ready.
    pub not_ready: bool,
    /// It cannot be acquired now.
    pub unavailable: bool,
    /// What draining it would disturb, if that is known (RF-2).
    pub disruption: Option<Disruption>,
    /// If its drain can still be taken back: the terms and the price it was bound at (RF-20).
    pub reversible: Option<(Terms, Price)>,
    /// How it is to leave, if it is marked (RF-21).
    pub leaving: Option<Leaving>,
}

impl<'a> MachineFact<'a> {
    /// A machine nobody is committed to.
    pub fn new(id: &'a str, state: State, shape: KnownShape) -> Self {
        Self {
            id,
            state,
            shape,
            cluster: None,
            attribution: None,
            terms: Terms::default(),
            keep_price: Price::ZERO,
            idle_since: None,
            not_ready: false,
            unavailable: false,
            disruption: None,
            reversible: None,
            leaving: None,
        }
    }

    /// The Need it is committed to. That of an unbound machine that leaves has ended before everything else
    /// (RF-21).
    pub(crate) fn standing_attribution(&self) -> Option<&'a NeedKey> {
        let stands = self.state.is_bound() || self.leaving.is_none();
        self.attribution.filter(|_| stands)
    }

    fn is_unfit(&self) -> bool {
        if self.state.is_bound() {
            self.not_ready || self.leaving == Some(Leaving::Now)
        } else {
            self.unavailable || self.leaving.is_some()
        }
    }
}

impl FleetTables {
    pub(crate) fn put_machine(&mut self, machine: &Machine, beside: Beside) {
        let shape = self.shape(machine.shape(), machine.price(), machine.interruption());
        let attribution = machine.attribution();
        let assigned = machine.assignment();
        let bound_at = assigned.keep_price.unwrap_or(machine.price());
        self.put_fact(&MachineFact {
            id: machine.id().as_str(),
            state: machine.state(),
            shape: KnownShape {
                shape,
                generation: self.generation,
            },
            cluster: machine.cluster(),
            attribution: attribution.as_ref(),
            terms: machine.terms(),
            keep_price: machine.keep_price(),
            idle_since: beside.idle_since,
            not_ready: beside.not_ready,
            unavailable: beside.unavailable,
            disruption: beside.disruption,
            reversible: beside.reversible.then_some((assigned.terms, bound_at)),
            leaving: beside.leaving,
        });
    }

    pub(crate) fn put_fact(&mut self, facts: &MachineFact<'_>) {
        let KnownShape { shape, generation } = facts.shape;
        assert_eq!(
            generation, self.generation,
            "{} has a shape of this generation",
            facts.id
        );
        let attribution = match self.mistake {
            Some(Mistake::LeavingIntentStands) => facts.attribution,
            _ => facts.standing_attribution(),
        };
        let is_let_off = attribution != facts.attribution;
        let slot = attribution.and_then(|need| self.find_slot(need));
        let cluster = facts.cluster.filter(|_| facts.state.is_bound());
        let cluster = cluster.map(|cluster| match (slot, attribution) {
            // Nearly always the same, which saves looking for its name again.
            (Some(slot), Some(need)) if need.cluster == *cluster => self.slots[slot].cluster,
            _ => self.cluster(cluster.as_str()),
        });
        let record = Record {
            shape,
            slot,
            cluster,
            terms: self.catalog.terms(facts.terms, facts.keep_price),
            state: Some(facts.state),
            unfit: facts.is_unfit(),
            leaving: facts.leaving,
            ..Record::ABSENT
        };
        let machine = self.ids.intern(facts.id);
        if self.records.len() < self.ids.count() {
            self.records.push(Record::ABSENT);
            self.disruptions.push(None);
        }
        self.disrupt(machine, facts.disruption);
        let way_back = self.way_back(facts);
        let idle_clock = self.idle_clock(facts);
        let is_new_slot = slot.is_none() && attribution.is_some();
        if !is_new_slot
            && self.records[machine].states_the_same_as(&record)
            && self.idle.get(machine) == idle_clock
            && self.ways_back.get(&machine) == way_back.as_ref()
            && self.let_off.contains(&machine) == is_let_off
        {
            return;
        }
        self.detach(machine);
        // Only now: the machine may have been the last that named the slot.
        let slot = match slot {
            Some(slot) if self.slots[slot].is_named() => Some(slot),
            _ => attribution.map(|need| self.slot_of(need)),
        };
        self.records[machine] = Record { slot, ..record };
        self.attach(machine);
        if let Some(way_back) = way_back {
            self.ways_back.insert(machine, way_back);
            self.clusters[way_back.cluster].reversible.push(machine);
        }
        if let Some((tier, since)) = idle_clock {
            self.idle.insert(machine, tier, since);
        }
        if is_let_off {
            self.let_off.insert(machine);
        }
    }

    /// How a machine was bound whose drain can still be taken back; not that of one that leaves.
    fn way_back(&mut self, facts: &MachineFact<'_>) -> Option<WayBack> {
        let (terms, keep_price) = facts.reversible.filter(|_| facts.leaving.is_none())?;
        let cluster = facts.cluster.filter(|_| facts.state == State::Draining)?;
        Some(WayBack {
            cluster: self.cluster(cluster.as_str()),
            terms: self.catalog.terms(terms, keep_price),
        })
    }

    pub(crate) fn set_disruption(&mut self, id: &MachineId, told: Option<Disruption>) {
        if let Some(machine) = self.ids.find(id.as_str()) {
            self.disrupt(machine, told);
        }
    }

    fn disrupt(&mut self, machine: MachineIndex, told: Option<Disruption>) {
        let before = std::mem::replace(&mut self.disruptions[machine], told);
        if before != told {
            self.disruption_moved = true;
            self.disruptions_known += usize::from(told.is_some());
            self.disruptions_known -= usize::from(before.is_some());
        }
    }

    pub(crate) fn remove_machine(&mut self, id: &MachineId) {
        if let Some(machine) = self.ids.find(id.as_str()) {
            self.disrupt(machine, None);
            self.detach(machine);
            self.ids.remove(machine);
        }
    }

    fn attach(&mut self, machine: MachineIndex) {
        let record = self.records[machine];
        let Some(state) = record.state else { return };
        self.changed = true;
        let stock = &mut self.stocks[record.shape];
        stock.count[state as usize] += 1;
        if state == State::Configured {
            self.records[machine].place_in_shape = stock.configured.len() as u32;
            stock.configured.push(machine);
        }
        if record.is_unpromised() {
            stock.unpromised += 1;
            self.supply_moved = true;
        }
        if let Some(cluster) = record.cluster {
            let bound = &mut self.clusters[cluster].bound;
            self.records[machine].place_in_cluster = bound.len() as u32;
            bound.push(machine);
            self.add_loose(cluster, 1);
            if record.leaving == Some(Leaving::Now) {
                self.leave_now.insert(machine);
            }
            self.leave_soon += usize::from(record.leaves_soon());
        }
        if let Some(slot) = record.slot {
            if let Some(whole) = self.slots[slot].claimed_whole_by {
                self.release(whole);
            }
            let order = |held: &MachineIndex| self.keep_order(*held, machine).is_lt();
            let place = self.slots[slot].machines.partition_point(order);
            self.slots[slot].machines.insert(place, machine);
            if state.may_hold_intent() {
                self.intents.insert(machine);
            }
            self.slot_changed(slot);
        }
        self.pool(machine);
        self.mark_strays(machine);
    }

    fn detach(&mut self, machine: MachineIndex) {
        let record = self.records[machine];
        let Some(state) = record.state else { return };
        self.changed = true;
        if let Some(claimant) = self.claimant(machine) {
            self.mark_need(claimant);
            if self.is_whole(claimant) {
                // It will claim all machines of the slot again, without this one.
                self.release(claimant);
            } else {
                self.unclaim(claimant, machine);
            }
        }
        self.mark_strays(machine);
        self.unpool(machine);
        if let Some(way_back) = self.ways_back.remove(&machine) {
            let reversible = &mut self.clusters[way_back.cluster].reversible;
            reversible.retain(|held| *held != machine);
        }
        if state == State::Idle {
            self.idle.remove(machine);
        }
        if record.leaving.is_some() {
            self.leave_now.remove(&machine);
            self.let_off.remove(&machine);
            self.leave_soon -= usize::from(record.leaves_soon());
        }
        let stock = &mut self.stocks[record.shape];
        stock.count[state as usize] -= 1;
        if state == State::Configured {
            stock.configured.swap_remove(record.place_in_shape as usize);
            if let Some(moved) = stock.configured.get(record.place_in_shape as usize) {
                self.records[*moved].place_in_shape = record.place_in_shape;
            }
        }
        if record.is_unpromised() {
            stock.unpromised -= 1;
            self.supply_moved = true;
        }
        if let Some(cluster) = record.cluster {
            self.remove_loose(cluster, 1);
            let bound = &mut self.clusters[cluster].bound;
            bound.swap_remove(record.place_in_cluster as usize);
            if let Some(moved) = bound.get(record.place_in_cluster as usize) {
                self.records[*moved].place_in_cluster = record.place_in_cluster;
            }
        }
        if let Some(slot) = record.slot {
            let order = |held: &MachineIndex| self.keep_order(*held, machine).is_lt();
            let place = self.slots[slot].machines.partition_point(order);
            let removed = self.slots[slot].machines.remove(place);
            assert_eq!(removed, machine, "{} is in its slot", self.ids.get(machine));
            self.intents.remove(&machine);
            self.slot_changed(slot);
        }
        self.records[machine] = Record::ABSENT;
    }

    /// Marks what depends on the machines of a slot, after one came or went.
    fn slot_changed(&mut self, slot: SlotIndex) {
        self.mark_slot(slot);
        self.rehome(slot);
        if let Some(heir) = self.slots[slot].heir {
            self.rehome(heir);
        }
        self.review_slot(slot);
    }

    /// Puts a machine into its pool, if it is free to take.
    pub(crate) fn pool(&mut self, machine: MachineIndex) {
        if let Some(kind) = self.pool_of(machine) {
            let shape = self.record(machine).shape;
            self.stocks[shape].pool_mut(kind).insert(machine);
        }
    }

    /// Takes a machine out of its pool, if it is in one.
    pub(crate) fn unpool(&mut self, machine: MachineIndex) {
        if let Some(kind) = self.pool_of(machine) {
            let shape = self.record(machine).shape;
            self.stocks[shape].pool_mut(kind).remove(machine, &self.ids);
        }
    }

    /// The pool a machine is in. It has no intent, or one that ended; it does not leave; and it is available, or
    /// draining (RF-5, RF-10, RF-17, RF-21).
    pub(crate) fn pool_of(&self, machine: MachineIndex) -> Option<PoolKind> {
        let record = self.record(machine);
        let kind = record.state.and_then(PoolKind::of)?;
        let unpromised = record.slot.is_none_or(|slot| self.slots[slot].ended);
        let is_drain = kind == PoolKind::Draining && record.leaving.is_none();
        let available = !record.unfit || is_drain;
        (unpromised && available).then_some(kind)
    }

    /// Marks the classes that count a bound machine as a witness: it serves no row.
    fn mark_strays(&mut self, machine: MachineIndex) {
        let serves_a_row = |slot: SlotIndex| self.slots[slot].is_current();
        let is_stray = !self.attribution(machine).is_some_and(serves_a_row);
        if let Some(cluster) = self.record(machine).cluster
            && is_stray
        {
            self.mark_classes_of(cluster);
        }
    }

    pub(crate) fn add_loose(&mut self, cluster: ClusterIndex, machines: u32) {
        let entry = &mut self.clusters[cluster];
        if entry.loose == 0 {
            self.loose_clusters.insert(cluster);
        }
        entry.loose += machines;
    }

    pub(crate) fn remove_loose(&mut self, cluster: ClusterIndex, machines: u32) {
        let entry = &mut self.clusters[cluster];
        entry.loose -= machines;
        if entry.loose == 0 {
            self.loose_clusters.remove(&cluster);
        }
    }

    /// The index of a shape, with a stock to go with it.
    pub(crate) fn shape(
        &mut self,
        shape: &Arc<Shape>,
        price: Price,
        interruption: Probability,
    ) -> ShapeIndex {
        let index = self.catalog.shape(shape, price, interruption);
        self.stocks.grow_to(self.catalog.shapes.len());
        index
    }
}

impl Record {
    /// Whether it is free supply for classes of gangs: no intent on record, and available (RF-12).
    fn is_unpromised(&self) -> bool {
        let free = matches!(
            self.state,
            Some(State::Idle | State::Creating | State::Speculative)
        );
        free && self.slot.is_none() && !self.unfit
    }

    fn states_the_same_as(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.slot == other.slot
            && self.cluster == other.cluster
            && self.terms == other.terms
            && self.state == other.state
            && self.unfit == other.unfit
            && self.leaving == other.leaving
    }
}
