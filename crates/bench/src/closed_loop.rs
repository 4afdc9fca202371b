//! Closed loop: what is decided happens, one cycle later.
//!
//! The engine's actions are committed to its ledger before the next cycle (DC-1) and are done a cycle
//! after that, so that a steady cycle meets what a shard would meet: machines on their way, intents,
//! drains.

use bigfleet_engine::{Engine, KnownShape, MachineFact};
use bigfleet_model::{Action, ActionKind, ClusterId, NeedKey, Price, State, Terms, Time};
use bigfleet_workloads::{SeededMachine, Workload};
use std::collections::BTreeMap;

/// A machine as it is to be put into the engine.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    id: String,
    state: State,
    shape: KnownShape,
    commitment: Option<(NeedKey, Terms)>,
    /// The cluster that may take back its drain.
    drains_from: Option<ClusterId>,
    idle_since: Option<Time>,
}

impl Moved {
    pub(crate) fn put(&self, engine: &mut Engine) {
        let mut fact = MachineFact::new(&self.id, self.state, self.shape);
        fact.idle_since = self.idle_since;
        if let Some((need, terms)) = &self.commitment {
            fact.cluster = Some(&need.cluster).filter(|_| self.state.is_bound());
            fact.attribution = Some(need);
            fact.terms = *terms;
            fact.keep_price = Price::ZERO;
        }
        if let Some(cluster) = &self.drains_from {
            fact.cluster = Some(cluster);
            fact.reversible = Some((Terms::default(), Price::ZERO)); // orders it among others like it, no more
        }
        engine.put_fact(&fact);
    }
}

/// The machines on their way.
#[derive(Default)]
pub(crate) struct ClosedLoop {
    shapes: Vec<Option<KnownShape>>,
    /// Whether a reclaim can be taken back until it is done.
    takes_back: bool,
    on_their_way: BTreeMap<String, Moved>,
}

impl ClosedLoop {
    /// Loads a workload into an engine, record by record.
    pub(crate) fn load(&mut self, workload: &Workload, engine: &mut Engine) {
        self.takes_back = workload.tells();
        let mut id = String::new();
        // Machines of one row come one after another, and share what they are committed to.
        let mut last: Option<((u32, u32, bool), NeedKey, Terms)> = None;
        for machine in workload.machines() {
            id.clear();
            machine.write_id(&mut id);
            let shape = self.shape(workload, &machine, engine);
            let mut fact = MachineFact::new(&id, machine.tier.state(), shape);
            fact.keep_price = machine.tier.price();
            fact.disruption = workload.disruption(&machine);
            if let Some(serves) = machine.serves {
                let row = (serves.cluster, serves.row, serves.folded);
                if last.as_ref().is_none_or(|(held, ..)| *held != row) {
                    let commitment = workload.commitment(&machine);
                    last = commitment.map(|held| (row, held.key(), held.terms()));
                }
                if let Some((_, key, terms)) = &last {
                    fact.cluster = Some(&key.cluster);
                    fact.attribution = Some(key);
                    fact.terms = *terms;
                }
            }
            engine.put_fact(&fact);
        }
    }

    fn shape(
        &mut self,
        workload: &Workload,
        machine: &SeededMachine,
        engine: &mut Engine,
    ) -> KnownShape {
        let place = machine.shape() * 4 + machine.tier as usize;
        if self.shapes.len() <= place {
            self.shapes.resize(place + 1, None);
        }
        let (shape, tier) = (&workload.shapes()[machine.shape()], machine.tier);
        *self.shapes[place]
            .get_or_insert_with(|| engine.know_shape(shape, tier.price(), tier.interruption()))
    }

    /// What the ledger learns before the next cycle: the last cycle's arrivals, then what this one
    /// decided, committed before anything is done about it (DC-1).
    pub(crate) fn happen(&mut self, engine: &Engine, now: Time) -> Vec<Moved> {
        let mut changes: Vec<Moved> = std::mem::take(&mut self.on_their_way)
            .into_values()
            .map(|moved| moved.arrived(now))
            .collect();
        for ended in engine.ended_intents() {
            if let Some(moved) = changes.iter_mut().find(|moved| moved.id == ended.as_str()) {
                moved.commitment = None;
            }
        }
        for restamp in engine.restamps() {
            let id = restamp.machine.as_str();
            if let Some(moved) = changes.iter_mut().find(|moved| moved.id == id) {
                moved.commitment = Some((restamp.need, restamp.terms));
            }
        }
        for action in engine.actions() {
            if action.kind == ActionKind::Restore {
                changes.retain(|moved| moved.id != action.machine.as_str()); // it does not arrive
            }
            changes.extend(self.committed(engine, action));
        }
        for moved in changes.iter().filter(|moved| !moved.state.is_stable()) {
            self.on_their_way.insert(moved.id.clone(), moved.clone());
        }
        changes
    }

    /// A machine that broke.
    pub(crate) fn lost(&mut self, engine: &Engine, machine: &SeededMachine) -> Option<Moved> {
        let id = machine.to_string();
        let shape = engine.shape_of(&id)?;
        self.on_their_way.remove(&id);
        Some(Moved {
            id,
            state: State::Failed,
            shape,
            commitment: None,
            drains_from: None,
            idle_since: None,
        })
    }

    fn committed(&self, engine: &Engine, action: Action) -> Option<Moved> {
        let state = match action.kind {
            ActionKind::Bootstrap => State::Configuring,
            ActionKind::Provision => State::Creating,
            ActionKind::Preempt | ActionKind::Reclaim => State::Draining,
            ActionKind::Delete => State::Deleting,
            ActionKind::Restore => State::Configured,
        };
        let id = action.machine.to_string();
        let shape = engine.shape_of(&id)?;
        let may_return = self.takes_back && action.kind == ActionKind::Reclaim;
        Some(Moved {
            id,
            state,
            shape,
            commitment: action.purpose,
            drains_from: action.cluster.filter(|_| may_return),
            idle_since: None,
        })
    }
}

impl Moved {
    fn arrived(mut self, now: Time) -> Self {
        self.state = match self.state {
            State::Creating | State::Draining => State::Idle,
            State::Configuring => State::Configured,
            State::Deleting => State::Speculative,
            stable => stable,
        };
        self.drains_from = None;
        self.idle_since = (self.state == State::Idle).then_some(now);
        self
    }
}
