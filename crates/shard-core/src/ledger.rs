//! Ledger: what the shard believes of every machine, and the engine that decides on it.
//!
//! ```text
//! write ─▶ Inventory (edges, grid, idle clock) ─▶ indexes and gauges ─▶ Engine (what changed)
//! ```
//!
//! One way to write, so inventory, indexes and engine cannot disagree, and a cycle costs what changed.

use crate::{breaker::Pool, defect::Defect, stock::Stock};
use bigfleet_engine::Engine;
use bigfleet_model::{
    Bucket, CapacityType, ClusterId, Fingerprint, FleetMachine, Group, Inventory, Machine,
    MachineFacts, MachineId, State, Time, Via, WriteRefused,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A series of the inventory gauge.
pub type GaugeKey = (State, CapacityType, Bucket);

/// What is known of a machine beside its record; most machines have nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Beside {
    /// Its node did not become ready.
    pub(crate) not_ready: bool,
    /// Its provider shows something that is not confirmed.
    pub(crate) unconfirmed: bool,
    /// Its provider cannot delete it.
    pub(crate) undeletable: bool,
    /// The last change made here, by the count of reads begun before it: what a read that began
    /// earlier shows is older than what we know.
    pub(crate) changed: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    machines: Inventory,
    pub(crate) engine: Engine,
    /// An old mistake switched on.
    pub(crate) defect: Option<Defect>,
    /// Whether the engine was told anything since a cycle last looked.
    pub(crate) touched: bool,
    /// Reads of the provider begun so far.
    reads: u64,
    beside: BTreeMap<MachineId, Beside>,
    /// By the cluster each is bound to, in any state.
    bound: BTreeMap<ClusterId, BTreeSet<MachineId>>,
    /// By the cluster each is meant for.
    promised: BTreeMap<ClusterId, BTreeSet<MachineId>>,
    configured: BTreeMap<ClusterId, u32>,
    speculative: BTreeMap<Pool, BTreeSet<MachineId>>,
    closed: BTreeSet<Pool>,
    pub(crate) stock: Stock,
    pub(crate) gauge: BTreeMap<GaugeKey, u32>,
    /// The last machines that changed, oldest first, for copies made in steps.
    pub(crate) changes: Changes,
}

impl Ledger {
    pub(crate) fn get(&self, id: &MachineId) -> Option<&Machine> {
        self.machines.get(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.machines.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter()
    }

    pub(crate) fn after(&self, id: Option<&MachineId>) -> impl Iterator<Item = &Machine> {
        self.machines.after(id)
    }

    pub(crate) fn idle_since(&self, id: &MachineId) -> Option<Time> {
        self.machines.idle_since(id)
    }

    pub(crate) fn beside(&self, id: &MachineId) -> Beside {
        self.beside.get(id).copied().unwrap_or_default()
    }

    /// Clusters that machines are bound to.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.bound.keys()
    }

    /// Machines bound to a cluster, by id.
    pub(crate) fn bound_to(&self, cluster: &ClusterId) -> impl Iterator<Item = &MachineId> {
        self.bound.get(cluster).into_iter().flatten()
    }

    /// Machines meant for a cluster, by id.
    pub(crate) fn promised_to(&self, cluster: &ClusterId) -> Vec<MachineId> {
        let ids = self.promised.get(cluster);
        ids.into_iter().flatten().cloned().collect()
    }

    pub(crate) fn configured(&self, cluster: &ClusterId) -> u32 {
        self.configured.get(cluster).copied().unwrap_or(0)
    }

    /// Adds a machine seen for the first time.
    pub(crate) fn insert(&mut self, machine: Machine, now: Time) -> Result<(), WriteRefused> {
        let id = machine.id().clone();
        self.machines.insert(machine, now)?;
        self.index(&id, true);
        self.tell_engine(&id);
        Ok(())
    }

    /// Replaces a known machine. A change of state or cluster is one made here at `now`.
    pub(crate) fn apply(
        &mut self,
        machine: Machine,
        via: Via,
        now: Time,
    ) -> Result<(), WriteRefused> {
        let id = machine.id().clone();
        let Some(before) = self.machines.get(&id) else {
            return Err(WriteRefused::NotFound(id));
        };
        let moved = before.state() != machine.state() || before.cluster() != machine.cluster();
        let was_bound = before.state().is_bound();
        self.index(&id, false);
        let written = self.machines.apply(machine, via, now);
        self.index(&id, true);
        written?;
        if moved {
            let is_bound = self
                .get(&id)
                .is_some_and(|machine| machine.state().is_bound());
            let reads = self.reads;
            self.note(&id, |beside| {
                beside.changed = Some(reads);
                beside.not_ready &= was_bound && is_bound;
            });
        }
        self.tell_engine(&id);
        Ok(())
    }

    /// Starts the idle clock of an Idle machine anew (RF-13).
    pub(crate) fn restart_idle_clock(&mut self, id: &MachineId, now: Time) {
        if let Some(machine) = self.machines.remove(id) {
            let again = self.machines.insert(machine, now);
            debug_assert!(again.is_ok(), "it was just taken out");
            self.tell_engine(id);
        }
    }

    pub(crate) fn remove(&mut self, id: &MachineId) -> Option<Machine> {
        self.machines.get(id)?;
        self.index(id, false);
        self.beside.remove(id);
        self.engine.remove_machine(id);
        self.touched = true;
        self.changes.note(id);
        self.machines.remove(id)
    }

    /// Changes what is known beside the record.
    pub(crate) fn note(&mut self, id: &MachineId, change: impl FnOnce(&mut Beside)) {
        let mut beside = self.beside(id);
        change(&mut beside);
        if beside == Beside::default() {
            self.beside.remove(id);
        } else {
            self.beside.insert(id.clone(), beside);
        }
        self.tell_engine(id);
    }

    /// A read of the provider begins; returns its place among reads and changes. Moments would not
    /// do: many things happen at the same one.
    pub(crate) fn begin_read(&mut self) -> u64 {
        let began = self.reads;
        self.reads += 1;
        began
    }

    /// Whether a read that began then may show less than what was done here since.
    pub(crate) fn is_stale(&self, id: &MachineId, began: u64) -> bool {
        self.beside(id)
            .changed
            .is_some_and(|changed| began < changed)
    }

    /// Forgets local changes older than a List that has been taken in.
    pub(crate) fn settle_before(&mut self, began: u64) {
        self.beside.retain(|_, beside| {
            beside.changed = beside.changed.filter(|changed| began < *changed);
            *beside != Beside::default()
        });
    }

    /// Closes or opens a pool to acquisition (RF-17).
    pub(crate) fn set_closed(&mut self, pool: &Pool, closed: bool) {
        let changed = match closed {
            true => self.closed.insert(pool.clone()),
            false => self.closed.remove(pool),
        };
        let ids = self.speculative.get(pool).filter(|_| changed).cloned();
        for id in ids.into_iter().flatten() {
            self.tell_engine(&id);
        }
    }

    /// Changes the facts of a machine, through the grid. A change that breaks it is a defect here,
    /// never in the provider's data, so it is refused and says so.
    pub(crate) fn revise(
        &self,
        id: &MachineId,
        change: impl FnOnce(&mut MachineFacts),
    ) -> Option<Machine> {
        let mut facts = self.get(id)?.clone().into_facts();
        change(&mut facts);
        Machine::new(facts).ok()
    }

    fn tell_engine(&mut self, id: &MachineId) {
        let Some(told) = self.told(id) else {
            return;
        };
        self.touched = true;
        self.changes.note(id);
        match self.defect {
            None => self.engine.put_machine(&told),
            Some(defect) => self.tell_engine_wrongly(told, defect),
        }
    }

    /// A machine with everything the engine is told of it.
    pub(crate) fn told(&self, id: &MachineId) -> Option<FleetMachine> {
        let machine = self.machines.get(id)?;
        let beside = self.beside(id);
        Some(FleetMachine {
            machine: machine.clone(),
            idle_since: self.machines.idle_since(id),
            not_ready: beside.not_ready,
            unavailable: beside.unconfirmed || self.is_closed(machine),
        })
    }

    /// Whether a machine's pool is closed to acquisition (RF-17).
    pub(crate) fn is_closed(&self, machine: &Machine) -> bool {
        machine.state() == State::Speculative
            && !self.closed.is_empty()
            && self.closed.contains(&Pool::of(machine.shape()))
    }

    /// The mistakes that consist in what the engine believes of a machine.
    fn tell_engine_wrongly(&mut self, mut told: FleetMachine, defect: Defect) {
        let promised = told.machine.intent().is_some();
        let mut facts = told.machine.clone().into_facts();
        match (defect, told.machine.state()) {
            (Defect::CreatingNotCredited, State::Creating) => {
                facts.intent = None;
                told.unavailable = true;
            }
            (Defect::CreditByClusterOnly, state) if state.is_bound() => {
                facts.assignment.fingerprint = Fingerprint::default();
                facts.assignment.group = Group::default();
            }
            (Defect::NoMakeBeforeBreak, State::Configuring) => {
                facts.state = State::Configured.into();
            }
            (Defect::DrainingNotPromised, State::Draining) if promised => {
                self.engine.remove_machine(told.machine.id());
                return;
            }
            _ => {}
        }
        told.machine = Machine::new(facts).unwrap_or(told.machine);
        self.engine.put_machine(&told);
    }

    /// Puts a machine into the indexes and gauges, or takes it out.
    fn index(&mut self, id: &MachineId, enter: bool) {
        let Some(machine) = self.machines.get(id) else {
            return;
        };
        let (state, shape) = (machine.state(), machine.shape());
        if let Some(cluster) = machine.cluster() {
            member(&mut self.bound, cluster, id, enter);
            if state == State::Configured {
                count(&mut self.configured, cluster.clone(), enter);
            }
        }
        if let Some(intent) = machine.intent() {
            member(&mut self.promised, &intent.need.cluster, id, enter);
        }
        if state == State::Speculative {
            member(&mut self.speculative, &Pool::of(shape), id, enter);
        }
        self.stock.count(machine, enter);
        let bucket = match machine.cluster() {
            Some(_) => Bucket::of(machine.assignment().terms.interruption.dollars()),
            None => Bucket::UNSPECIFIED,
        };
        count(&mut self.gauge, (state, shape.capacity_type, bucket), enter);
    }
}

/// Which machines changed lately. Bounded: whoever has fallen further behind begins anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    latest: VecDeque<MachineId>,
    /// How many there were before those.
    forgotten: u64,
}

/// Changes that are remembered.
const MOST_CHANGES: usize = 16_384;

impl Changes {
    fn note(&mut self, id: &MachineId) {
        if self.latest.len() == MOST_CHANGES {
            self.latest.pop_front();
            self.forgotten += 1;
        }
        self.latest.push_back(id.clone());
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> u64 {
        self.forgotten + self.latest.len() as u64
    }

    /// Those since a count, oldest first; `None` if some are forgotten.
    pub(crate) fn since(&self, count: u64) -> Option<impl Iterator<Item = &MachineId>> {
        let skip = count.checked_sub(self.forgotten)?;
        Some(self.latest.iter().skip(usize::try_from(skip).ok()?))
    }
}

fn member<K: Ord + Clone>(
    index: &mut BTreeMap<K, BTreeSet<MachineId>>,
    key: &K,
    id: &MachineId,
    enter: bool,
) {
    if enter {
        index.entry(key.clone()).or_default().insert(id.clone());
    } else if let Some(ids) = index.get_mut(key) {
        ids.remove(id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}

fn count<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, enter: bool) {
    let count = counts.entry(key).or_default();
    *count = match enter {
        true => *count + 1,
        false => count.saturating_sub(1),
    };
}
