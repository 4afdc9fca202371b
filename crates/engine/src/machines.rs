//! Machines coming, changing and going: each fact moves a record between the lists it belongs to.
//!
//! A fact that changes nothing marks nothing, so a List that repeats itself leaves a cycle quiet.

use crate::{
    NONE,
    book::{Book, MachineIx, Record, SlotIx},
    pool::{PoolKind, Stock},
    tables::ShapeIx,
};
use bigfleet_model::{
    CapacityType, ClusterId, Machine, MachineId, NeedKey, Price, Probability, Shape, State, Terms,
    Time,
};
use std::sync::Arc;

/// A shape the engine knows, at a price, until its generation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownShape(pub(crate) ShapeIx, pub(crate) u32);

/// A machine whose shape the engine knows: what millions of records come in as, without a
/// [`bigfleet_model::Machine`] each. The caller vouches for what that type would have checked.
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
    /// On what terms.
    pub terms: Terms,
    /// The price it is kept at (RF-2).
    pub keep_price: Price,
    /// Since when it is idle.
    pub idle_since: Option<Time>,
    /// Its node did not become ready.
    pub not_ready: bool,
    /// It cannot be acquired now.
    pub unavailable: bool,
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
        }
    }
}

impl Book {
    pub(crate) fn put_machine(
        &mut self,
        machine: &Machine,
        idle_since: Option<Time>,
        not_ready: bool,
        unavailable: bool,
    ) {
        let shape = self.shape(machine.shape(), machine.price(), machine.interruption());
        let attribution = machine.attribution();
        self.put_fact(&MachineFact {
            id: machine.id().as_str(),
            state: machine.state(),
            shape: KnownShape(shape, self.generation),
            cluster: machine.cluster(),
            attribution: attribution.as_ref(),
            terms: machine.terms(),
            keep_price: machine.keep_price(),
            idle_since,
            not_ready,
            unavailable,
        });
    }

    pub(crate) fn put_fact(&mut self, facts: &MachineFact<'_>) {
        let KnownShape(shape, generation) = facts.shape;
        assert_eq!(
            generation, self.generation,
            "{} has a shape of this generation",
            facts.id
        );
        let slot = facts.attribution.map_or(NONE, |need| self.find_slot(need));
        let cluster = match facts.cluster {
            Some(cluster) if facts.state.is_bound() => self.cluster(cluster.as_str()),
            _ => NONE,
        };
        let number = match (facts.state, facts.attribution) {
            (State::Idle, None) => facts.idle_since.map_or(f64::NAN, Time::seconds),
            _ => facts.keep_price.dollars_per_hour(),
        };
        let record = Record {
            number,
            shape,
            slot,
            cluster,
            terms: self.tables.term(facts.terms),
            state: Some(facts.state),
            not_ready: facts.not_ready,
            unavailable: facts.unavailable,
            ..Record::ABSENT
        };
        let machine = self.ids.intern(facts.id);
        if self.records.len() < self.ids.bound() {
            self.records.resize(self.ids.bound(), Record::ABSENT);
        }
        let is_new_slot = slot == NONE && facts.attribution.is_some();
        let identity = (!is_new_slot && slot != NONE).then(|| self.slots[slot].identity());
        if !is_new_slot && self.records[machine as usize].states_the_same_as(&record) {
            return;
        }
        self.detach(machine);
        // Only now: leaving its slot may have been the end of it.
        let slot = match identity {
            Some(identity) if self.slot_numbers.get(&identity) == Some(&slot) => slot,
            _ => facts.attribution.map_or(NONE, |need| self.slot_of(need)),
        };
        self.records[machine as usize] = Record { slot, ..record };
        self.attach(machine);
    }

    pub(crate) fn remove_machine(&mut self, id: &MachineId) {
        if let Some(machine) = self.ids.find(id.as_str()) {
            self.detach(machine);
            self.ids.remove(machine);
        }
    }

    fn attach(&mut self, machine: MachineIx) {
        let record = self.records[machine as usize];
        let Some(state) = record.state else { return };
        self.changed = true;
        let stock = &mut self.stocks[record.shape as usize];
        stock.count[state as usize] += 1;
        if state == State::Configured {
            self.records[machine as usize].place_in_shape = stock.configured.len() as u32;
            stock.configured.push(machine);
        }
        if record.is_unpromised() {
            stock.unpromised += 1;
            self.supply_moved = true;
        }
        if record.cluster != NONE {
            let cluster = &mut self.clusters[record.cluster as usize];
            self.records[machine as usize].place_in_cluster = cluster.bound.len() as u32;
            cluster.bound.push(machine);
            self.add_loose(record.cluster, 1);
        }
        if record.slot != NONE {
            match self.slots[record.slot].whole {
                NONE => {}
                whole => self.release(whole),
            }
            let order = |held: &MachineIx| self.keep_order(*held, machine).is_lt();
            let place = self.slots[record.slot].machines.partition_point(order);
            self.slots[record.slot].machines.insert(place, machine);
            if state.may_hold_intent() {
                self.intents.insert(machine);
            }
            self.slot_changed(record.slot);
        }
        self.pool(machine);
        self.mark_strays(machine);
    }

    fn detach(&mut self, machine: MachineIx) {
        let record = self.records[machine as usize];
        let Some(state) = record.state else { return };
        self.changed = true;
        match self.claimant(machine) {
            NONE => {}
            // What it claims whole it claims anew, of what is there then.
            claimant if self.is_whole(claimant) => {
                self.mark_need(claimant);
                self.release(claimant);
            }
            claimant => {
                self.mark_need(claimant);
                self.unclaim(claimant, machine);
            }
        }
        self.mark_strays(machine);
        self.unpool(machine);
        let stock = &mut self.stocks[record.shape as usize];
        stock.count[state as usize] -= 1;
        if state == State::Configured {
            stock.configured.swap_remove(record.place_in_shape as usize);
            if let Some(moved) = stock.configured.get(record.place_in_shape as usize) {
                self.records[*moved as usize].place_in_shape = record.place_in_shape;
            }
        }
        if record.is_unpromised() {
            stock.unpromised -= 1;
            self.supply_moved = true;
        }
        if record.cluster != NONE {
            self.remove_loose(record.cluster, 1);
            let bound = &mut self.clusters[record.cluster as usize].bound;
            bound.swap_remove(record.place_in_cluster as usize);
            if let Some(moved) = bound.get(record.place_in_cluster as usize) {
                self.records[*moved as usize].place_in_cluster = record.place_in_cluster;
            }
        }
        if record.slot != NONE {
            let order = |held: &MachineIx| self.keep_order(*held, machine).is_lt();
            let place = self.slots[record.slot].machines.partition_point(order);
            let removed = self.slots[record.slot].machines.remove(place);
            assert_eq!(removed, machine, "{} is in its slot", self.ids.get(machine));
            self.intents.remove(&machine);
            self.slot_changed(record.slot);
        }
        self.records[machine as usize] = Record::ABSENT;
    }

    /// A machine entered or left a slot.
    fn slot_changed(&mut self, slot: SlotIx) {
        self.mark_slot(slot);
        self.rehome(slot);
        match self.slots[slot].heir {
            NONE => {}
            heir => self.rehome(heir),
        }
        self.review_slot(slot);
    }

    /// Puts a machine into its pool, if it is free to take.
    pub(crate) fn pool(&mut self, machine: MachineIx) {
        if let Some(kind) = self.pool_of(machine) {
            let shape = self.record(machine).shape;
            self.stocks[shape as usize].pool_mut(kind).insert(machine);
            if let Some((tier, since)) = self.idle_place(machine) {
                self.idle.entry(tier).or_default().insert((since, machine));
            }
        }
    }

    /// Takes a machine out of its pool, if it is in one.
    pub(crate) fn unpool(&mut self, machine: MachineIx) {
        if let Some(kind) = self.pool_of(machine) {
            let shape = self.record(machine).shape;
            self.stocks[shape as usize]
                .pool_mut(kind)
                .remove(machine, &self.ids);
            if let Some((tier, since)) = self.idle_place(machine) {
                let idle = self.idle.entry(tier).or_default();
                idle.remove(&(since, machine));
            }
        }
    }

    /// Where a machine of a tier that is given back waits for its hold to run out.
    fn idle_place(&self, machine: MachineIx) -> Option<(CapacityType, Time)> {
        let record = self.record(machine);
        let tier = self.tables.shapes[record.shape as usize]
            .shape
            .capacity_type;
        let is_returned = matches!(tier, CapacityType::OnDemand | CapacityType::Spot);
        let is_free = record.state == Some(State::Idle) && record.slot == NONE;
        let since = Time::from_seconds(record.number)?;
        (is_returned && is_free).then_some((tier, since))
    }

    /// The pool a machine is in: nobody's by intent, or by one that has ended; and available,
    /// unless it is draining anyway (RF-5, RF-10, RF-17).
    pub(crate) fn pool_of(&self, machine: MachineIx) -> Option<PoolKind> {
        let record = self.record(machine);
        let kind = record.state.and_then(PoolKind::of)?;
        let unpromised = record.slot == NONE || self.slots[record.slot].ended;
        let available = !record.unavailable || kind == PoolKind::Draining;
        (unpromised && available).then_some(kind)
    }

    /// Classes of the cluster count a bound machine as a witness unless it serves another row.
    fn mark_strays(&mut self, machine: MachineIx) {
        let cluster = self.record(machine).cluster;
        let attribution = self.attribution(machine);
        let is_stray = attribution == NONE || !self.slots[attribution].is_current();
        if cluster != NONE && is_stray {
            self.mark_classes_of(cluster);
        }
    }

    pub(crate) fn add_loose(&mut self, cluster: u32, machines: u32) {
        let entry = &mut self.clusters[cluster as usize];
        let before = entry.loose;
        entry.loose += machines;
        if before == 0 && 0 < machines {
            self.loose_clusters.insert(cluster);
        }
    }

    pub(crate) fn remove_loose(&mut self, cluster: u32, machines: u32) {
        let entry = &mut self.clusters[cluster as usize];
        entry.loose -= machines;
        if entry.loose == 0 && 0 < machines {
            self.loose_clusters.remove(&cluster);
        }
    }

    /// The number of a shape, with a stock to go with it.
    pub(crate) fn shape(
        &mut self,
        shape: &Arc<Shape>,
        price: Price,
        interruption: Probability,
    ) -> ShapeIx {
        let number = self.tables.shape(shape, price, interruption);
        self.stocks
            .resize_with(self.tables.shapes.len(), Stock::default);
        number
    }
}

impl Record {
    /// Whether free supply for a class of gangs: no intent on record, and available (RF-12).
    fn is_unpromised(&self) -> bool {
        let free = matches!(
            self.state,
            Some(State::Idle | State::Creating | State::Speculative)
        );
        free && self.slot == NONE && !self.unavailable
    }

    fn states_the_same_as(&self, other: &Self) -> bool {
        self.number.to_bits() == other.number.to_bits()
            && self.shape == other.shape
            && self.slot == other.slot
            && self.cluster == other.cluster
            && self.terms == other.terms
            && self.state == other.state
            && self.not_ready == other.not_ready
            && self.unavailable == other.unavailable
    }
}
