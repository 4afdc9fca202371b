//! Inventory: the machines a shard knows, and when each became idle (model.md §9, M-4).
//!
//! Every write keeps the rules: an id is inserted once, a state changes along a legal edge, and the
//! idle clock starts when a machine enters Idle and stops when it leaves. A refused write changes
//! nothing.
//!
//! ```text
//! id ── places ──▶ slot: machine, idle clock        by id, in order ── tree ──▶ slot
//! ```
//!
//! A machine is looked up far more often than the fleet is walked, so the tree only orders.

use crate::{HashKey, Machine, MachineId, State, Time, Via, places::Places};
use std::{collections::BTreeMap, fmt, ops::Bound};

/// Why a write was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteRefused {
    /// The id is known already.
    Exists(MachineId),
    /// The id is not known.
    NotFound(MachineId),
    /// There is no such edge.
    Transition {
        /// Which machine.
        id: MachineId,
        /// Where it is.
        from: State,
        /// Where it was to go.
        to: State,
        /// On whose word.
        via: Via,
    },
}

impl fmt::Display for WriteRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(id) => write!(f, "machine {id} exists already (INV-1)"),
            Self::NotFound(id) => write!(f, "machine {id} is not known (INV-1)"),
            Self::Transition {
                id,
                from,
                to,
                via: Via::Rollback,
            } => {
                write!(f, "machine {id}: {from} does not roll back to {to} (DC-7)")
            }
            Self::Transition {
                id,
                from,
                to,
                via: Via::Step | Via::Adoption,
            } => {
                write!(f, "machine {id}: {from} does not become {to} (ST-1)")
            }
        }
    }
}

impl std::error::Error for WriteRefused {}

/// The machines, by id.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    slots: Vec<Option<KnownMachine>>,
    free: Vec<u32>,
    places: Places,
    in_order: BTreeMap<MachineId, u32>,
}

#[derive(Clone, Debug)]
struct KnownMachine {
    machine: Machine,
    /// When it came into its state, or its idle clock was started anew.
    since: Time,
    /// What it was marked with last.
    mark: u64,
}

impl Inventory {
    /// No machines yet; their ids are found with this key.
    pub fn keyed(key: HashKey) -> Self {
        Self {
            places: Places::new(key),
            ..Self::default()
        }
    }

    fn slot(&self, number: u32) -> Option<&KnownMachine> {
        self.slots.get(number as usize)?.as_ref()
    }

    fn place(&self, id: &MachineId) -> Option<u32> {
        let is = |place| self.slot(place).is_some_and(|held| held.machine.id() == id);
        self.places.find(id.as_str(), is)
    }

    /// Makes room for so many machines at once: to grow bit by bit takes twice the memory on the way.
    pub fn reserve(&mut self, machines: usize) {
        self.slots.reserve_exact(machines);
    }

    /// Adds a machine seen for the first time.
    pub fn insert(&mut self, machine: Machine, now: Time) -> Result<(), WriteRefused> {
        if self.place(machine.id()).is_some() {
            return Err(WriteRefused::Exists(machine.id().clone()));
        }
        let id = machine.id().clone();
        let held = Some(KnownMachine {
            machine,
            since: now,
            mark: 0,
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = held;
                place
            }
            None => {
                self.slots.push(held);
                (self.slots.len() - 1) as u32
            }
        };
        self.places.insert(id.as_str(), place);
        self.in_order.insert(id, place);
        Ok(())
    }

    /// Replaces a known machine; returns what it was. A write that keeps the state needs no edge (ST-3).
    pub fn apply(
        &mut self,
        machine: Machine,
        via: Via,
        now: Time,
    ) -> Result<Machine, WriteRefused> {
        let place = self.place(machine.id());
        let held = place.and_then(|place| self.slots[place as usize].as_mut());
        let Some(held) = held else {
            return Err(WriteRefused::NotFound(machine.id().clone()));
        };
        let (from, to) = (held.machine.state(), machine.state());
        if from != to && !from.may_become(to, via) {
            return Err(WriteRefused::Transition {
                id: machine.id().clone(),
                from,
                to,
                via,
            });
        }
        if from != to {
            held.since = now;
        }
        Ok(std::mem::replace(&mut held.machine, machine))
    }

    /// Starts the clock of a machine's state anew.
    pub fn restart_clock(&mut self, id: &MachineId, now: Time) {
        if let Some(held) = self.held_mut(id) {
            held.since = now;
        }
    }

    /// Marks a machine with a number that means something to the caller. A mark is not a write: it
    /// changes nothing of the machine, and lasts until the next.
    pub fn mark(&mut self, id: &MachineId, mark: u64) {
        if let Some(held) = self.held_mut(id) {
            held.mark = mark;
        }
    }

    /// What a machine was marked with; 0 if never.
    pub fn marked(&self, id: &MachineId) -> Option<u64> {
        Some(self.slot(self.place(id)?)?.mark)
    }

    /// All machines that were last marked with something else, by id.
    pub fn not_marked(&self, mark: u64) -> impl Iterator<Item = &Machine> {
        let held = self.in_order.values().filter_map(|place| self.slot(*place));
        let others = held.filter(move |held| held.mark != mark);
        others.map(|held| &held.machine)
    }

    fn held_mut(&mut self, id: &MachineId) -> Option<&mut KnownMachine> {
        let place = self.place(id)?;
        self.slots[place as usize].as_mut()
    }

    /// Forgets a machine; returns what was known of it.
    pub fn remove(&mut self, id: &MachineId) -> Option<Machine> {
        let place = self.place(id)?;
        self.places.remove(id.as_str(), place);
        self.in_order.remove(id);
        self.free.push(place);
        self.slots[place as usize].take().map(|held| held.machine)
    }

    /// One machine.
    pub fn get(&self, id: &MachineId) -> Option<&Machine> {
        self.slot(self.place(id)?).map(|held| &held.machine)
    }

    /// Since when a machine is idle, if it is.
    pub fn idle_since(&self, id: &MachineId) -> Option<Time> {
        let held = self.slot(self.place(id)?)?;
        (held.machine.state() == State::Idle).then_some(held.since)
    }

    /// Since when a machine is seen in its state.
    pub fn state_since(&self, id: &MachineId) -> Option<Time> {
        Some(self.slot(self.place(id)?)?.since)
    }

    /// How many machines.
    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// Machines after an id, or all, by id: where a page begins.
    pub fn after(&self, id: Option<&MachineId>) -> impl Iterator<Item = &Machine> {
        let start = id.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self
            .in_order
            .range::<MachineId, _>((start, Bound::Unbounded));
        rest.filter_map(|(_, place)| Some(&self.slot(*place)?.machine))
    }

    /// All machines, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Machine> {
        let slots = self.in_order.values();
        slots.filter_map(|place| Some(&self.slot(*place)?.machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assignment, Dollars, Host, MachineFacts, Terms};

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

    fn machine(id: &str, state: State, price: f64, penalty: f64) -> Machine {
        let reclamation = Dollars::new(penalty).unwrap();
        let assignment = Assignment {
            terms: Terms {
                reclamation,
                ..Terms::default()
            },
            ..Assignment::default()
        };
        Machine::new(MachineFacts {
            host: Host {
                provider: "p".to_owned(),
                reference: "h".to_owned(),
            },
            cluster: "a".to_owned(),
            price_per_hour: price,
            assignment,
            ..MachineFacts::new(id, state)
        })
        .unwrap()
    }

    fn id(text: &str) -> MachineId {
        MachineId::new(text).unwrap()
    }

    /// EX-INV1, RF-2.
    #[test]
    fn ex_inv1_keep_order_is_cheapest_then_dearest_to_lose_then_id() {
        let machines = [
            machine("m4", State::Configured, 1.0, 0.0),
            machine("m1", State::Configured, 1.0, 0.0),
            machine("m2", State::Configured, 1.0, 8.0),
            machine("m3", State::Configured, 0.5, 0.0),
        ];
        let mut order: Vec<_> = machines.iter().collect();
        order.sort_by_key(|machine| machine.keep_key());
        let names: Vec<_> = order.iter().map(|machine| machine.id().as_str()).collect();
        assert_eq!(names, ["m3", "m2", "m1", "m4"]);
    }

    /// EX-INV2, and EX-ST: `Configuring→Idle` sets the idle clock.
    #[test]
    fn ex_inv2_the_idle_clock_starts_on_entering_idle() {
        let mut inventory = Inventory::default();
        let step = |inventory: &mut Inventory, state, now| {
            inventory
                .apply(machine("m1", state, 1.0, 0.0), Via::Step, at(now))
                .unwrap();
        };
        inventory
            .insert(machine("m1", State::Idle, 1.0, 0.0), at(0.0))
            .unwrap();
        step(&mut inventory, State::Idle, 5.0);
        assert_eq!(inventory.idle_since(&id("m1")), Some(at(0.0)));
        step(&mut inventory, State::Configuring, 6.0);
        assert_eq!(inventory.idle_since(&id("m1")), None);
        step(&mut inventory, State::Idle, 7.0);
        assert_eq!(inventory.idle_since(&id("m1")), Some(at(7.0)));
    }

    #[test]
    fn a_mark_stays_with_its_machine_until_the_next() {
        let mut inventory = Inventory::default();
        for name in ["m1", "m2", "m3"] {
            let idle = machine(name, State::Idle, 1.0, 0.0);
            inventory.insert(idle, at(0.0)).unwrap();
        }
        inventory.mark(&id("m1"), 7);
        inventory.mark(&id("m2"), 7);
        inventory.mark(&id("m2"), 8);
        inventory.mark(&id("unknown"), 7);
        let configuring = machine("m1", State::Configuring, 1.0, 0.0);
        inventory.apply(configuring, Via::Step, at(1.0)).unwrap();
        let marks = ["m1", "m2", "m3", "unknown"].map(|name| inventory.marked(&id(name)));
        assert_eq!(marks, [Some(7), Some(8), Some(0), None]);
        let others = inventory.not_marked(7).map(|machine| machine.id().as_str());
        assert_eq!(others.collect::<Vec<_>>(), ["m2", "m3"]);
    }

    #[test]
    fn machines_are_listed_by_id_and_a_slot_is_used_again() {
        let mut inventory = Inventory::default();
        inventory.reserve(64);
        assert!(64 <= inventory.slots.capacity());
        for name in ["m3", "m1", "m2"] {
            let idle = machine(name, State::Idle, 1.0, 0.0);
            inventory.insert(idle, at(1.0)).unwrap();
        }
        assert_eq!((inventory.len(), inventory.is_empty()), (3, false));
        let names = |machines: &mut dyn Iterator<Item = &Machine>| {
            let names = machines.map(|machine| machine.id().to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&mut inventory.iter()), ["m1", "m2", "m3"]);
        assert_eq!(names(&mut inventory.after(None)), ["m1", "m2", "m3"]);
        assert_eq!(names(&mut inventory.after(Some(&id("m1")))), ["m2", "m3"]);
        assert_eq!(names(&mut inventory.after(Some(&id("m3")))), [""; 0]);
        inventory.remove(&id("m1")).unwrap();
        assert_eq!(inventory.remove(&id("m1")), None);
        let other = machine("m0", State::Configured, 1.0, 0.0);
        inventory.insert(other.clone(), at(2.0)).unwrap();
        assert_eq!(inventory.slots.len(), 3, "in the place of m1");
        assert_eq!(names(&mut inventory.iter()), ["m0", "m2", "m3"]);
        assert_eq!(inventory.get(&id("m0")), Some(&other));
        assert_eq!(inventory.get(&id("m1")), None);
    }

    #[test]
    fn the_clock_of_a_state_can_be_started_anew() {
        let mut inventory = Inventory::default();
        inventory
            .insert(machine("m1", State::Configured, 1.0, 0.0), at(1.0))
            .unwrap();
        let since = |inventory: &Inventory| inventory.state_since(&id("m1"));
        assert_eq!(since(&inventory), Some(at(1.0)));
        assert_eq!(inventory.idle_since(&id("m1")), None, "not idle");
        inventory.restart_clock(&id("m1"), at(2.0));
        inventory.restart_clock(&id("unknown"), at(3.0));
        assert_eq!(since(&inventory), Some(at(2.0)));
        assert_eq!(inventory.state_since(&id("unknown")), None);
        let dearer = machine("m1", State::Configured, 9.0, 0.0);
        let before = inventory.apply(dearer, Via::Step, at(4.0)).unwrap();
        assert_eq!(before.price().dollars_per_hour(), 1.0, "what it was");
        assert_eq!(since(&inventory), Some(at(2.0)), "the same state");
    }

    /// EX-INV3, and EX-ST: an illegal step is refused.
    #[test]
    fn ex_inv3_refused_writes_change_nothing() {
        let mut inventory = Inventory::default();
        let idle = machine("m1", State::Idle, 1.0, 0.0);
        inventory.insert(idle.clone(), at(0.0)).unwrap();
        let again = inventory.insert(machine("m1", State::Idle, 9.0, 0.0), at(1.0));
        assert_eq!(again, Err(WriteRefused::Exists(id("m1"))));
        let unknown = inventory.apply(machine("m2", State::Idle, 1.0, 0.0), Via::Step, at(1.0));
        assert_eq!(unknown, Err(WriteRefused::NotFound(id("m2"))));
        let jump = inventory.apply(
            machine("m1", State::Configured, 1.0, 0.0),
            Via::Step,
            at(1.0),
        );
        assert_eq!(
            jump.unwrap_err().to_string(),
            "machine m1: Idle does not become Configured (ST-1)"
        );
        assert_eq!(inventory.get(&id("m1")), Some(&idle));
        assert_eq!(inventory.remove(&id("m1")), Some(idle));
        assert!(inventory.is_empty());
    }
}
