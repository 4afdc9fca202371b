//! The closed loop: decide, commit, let machines mature, again; one cycle every ten seconds.
//!
//! ```text
//! fleet ── decide ──▶ decision ── commit ──▶ fleet ── what is due matures or fails ──▶ fleet
//! ```
//!
//! Generic over the decision function, so that every engine can be driven the same way.

use crate::commit::{commit, fail, forget, mature};
use bigfleet_model::{
    Action, ActionKind, Decision, Fleet, Holds, MachineId, NeedKey, Reason, State,
};
use bigfleet_seeded::Prng;
use std::{collections::BTreeMap, time::Duration};

/// What is driven.
pub(crate) type Decide = fn(&Fleet) -> Decision;

/// How many cycles an operation takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Latency {
    /// Done before the next cycle.
    Zero,
    /// Always this long. Random latencies hide loops that these show.
    Steady { create: u32, bind: u32, drain: u32 },
    /// Each machine has a pace of its own and keeps it.
    PerMachine { most: u32 },
    /// Any number up to this, drawn anew each time.
    Random { most: u32 },
}

impl Latency {
    /// What every start is tried with, beside [`Latency::Zero`].
    pub(crate) const SLOW: [Self; 7] = [
        Self::steady(1, 1, 1),
        Self::steady(3, 1, 2),
        Self::steady(1, 5, 3),
        Self::steady(2, 2, 7),
        Self::PerMachine { most: 4 },
        Self::Random { most: 6 },
        Self::Random { most: 50 },
    ];

    const fn steady(create: u32, bind: u32, drain: u32) -> Self {
        Self::Steady {
            create,
            bind,
            drain,
        }
    }
}

/// What one run has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Machines newly taken: Bootstraps that were not promised, and Provisions.
    pub(crate) acquired: usize,
    pub(crate) reclaimed: usize,
    pub(crate) preempted: usize,
}

/// A fleet and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) fleet: Fleet,
    pub(crate) tally: Tally,
    /// How many actions a cycle may commit (DC-8).
    pub(crate) executor: usize,
    /// Every so many creates, one fails; 0 for none.
    pub(crate) failing: usize,
    /// The defect this loop guards against: what a machine was meant for is lost on its arrival.
    pub(crate) forgetful: bool,
    pub(crate) cycle: u32,
    /// For how many cycles nothing was done.
    quiet_for: u32,
    /// How often a machine that served a Need was drained from it.
    pub(crate) left: BTreeMap<(MachineId, NeedKey), u32>,
    /// One line per cycle that did something, for whoever looks for the reason of a failure.
    pub(crate) story: Vec<String>,
    decide: Decide,
    latency: Latency,
    prng: Prng,
    due: BTreeMap<MachineId, u32>,
    creates: usize,
}

impl Loop {
    pub(crate) fn new(decide: Decide, fleet: Fleet, latency: Latency, seed: u64) -> Self {
        let mut new = Self {
            fleet,
            tally: Tally::default(),
            executor: usize::MAX,
            failing: 0,
            forgetful: false,
            cycle: 0,
            quiet_for: 0,
            left: BTreeMap::new(),
            story: Vec::new(),
            decide,
            latency,
            prng: Prng::new(seed),
            due: BTreeMap::new(),
            creates: 0,
        };
        new.schedule();
        new
    }

    /// One cycle. Returns what was decided.
    pub(crate) fn step(&mut self) -> Decision {
        let decision = (self.decide)(&self.fleet);
        let before = self.fleet.clone();
        let admitted = commit(&mut self.fleet, &decision, self.executor);
        self.note_left(&before, &admitted);
        for action in &admitted {
            match (action.kind, action.reason) {
                (ActionKind::Bootstrap, Reason::Promised) => {}
                (ActionKind::Bootstrap | ActionKind::Provision, _) => self.tally.acquired += 1,
                (ActionKind::Reclaim, _) => self.tally.reclaimed += 1,
                (ActionKind::Preempt, _) => self.tally.preempted += 1,
                (ActionKind::Delete | ActionKind::Restore, _) => {}
            }
        }
        self.quiet_for = if is_quiet(&decision) {
            self.quiet_for + 1
        } else {
            0
        };
        self.tell(&decision, admitted.len());
        self.schedule();
        self.cycle += 1;
        self.fleet.now = self.fleet.now + Duration::from_secs(10);
        self.arrive();
        decision
    }

    /// Runs until nothing is on its way, nothing is done, and no hold can run out any more. Whether
    /// that came about within this many cycles.
    pub(crate) fn settle(&mut self, most: u32) -> bool {
        let longest_hold = if self.fleet.holds == Holds::NEVER {
            0
        } else {
            61
        };
        (0..most).any(|_| {
            let on_the_way = self.on_the_way();
            self.step();
            !on_the_way && self.quiet_for > longest_hold
        })
    }

    /// Whether some machine is on its way.
    pub(crate) fn on_the_way(&self) -> bool {
        let mut machines = self.fleet.machines.values();
        machines.any(|found| is_passing(found.machine.state()))
    }

    fn tell(&mut self, decision: &Decision, admitted: usize) {
        if is_quiet(decision) {
            return;
        }
        let actions = bigfleet_testkit::outcome(decision).replace('\n', "; ");
        let (ended, restamps) = (&decision.ended_intents, &decision.restamps);
        let restamps: Vec<String> = restamps
            .iter()
            .map(|to| format!("{} to {}", to.machine, to.need))
            .collect();
        self.story.push(format!(
            "cycle {}: {actions} ({admitted} taken), ended {ended:?}, restamped {restamps:?}, held {:?}",
            self.cycle, decision.held
        ));
    }

    /// A machine leaves a Need when it serves it and is drained.
    fn note_left(&mut self, before: &Fleet, actions: &[Action]) {
        for action in actions {
            if matches!(action.kind, ActionKind::Preempt | ActionKind::Reclaim)
                && let Some(need) = before.machines[&action.machine].machine.attribution()
            {
                let left = self.left.entry((action.machine.clone(), need));
                *left.or_default() += 1;
            }
        }
    }

    /// Everything newly on its way gets its time of arrival.
    fn schedule(&mut self) {
        for (id, found) in &self.fleet.machines {
            let state = found.machine.state();
            if is_passing(state) && !self.due.contains_key(id) {
                let takes = match self.latency {
                    Latency::Zero => 0,
                    Latency::Steady {
                        create,
                        bind,
                        drain,
                    } => match state {
                        State::Creating => create,
                        State::Configuring => bind,
                        _ => drain,
                    },
                    Latency::PerMachine { most } => pace(id, most),
                    Latency::Random { most } => self.prng.between(0, most as usize) as u32,
                };
                self.due.insert(id.clone(), self.cycle + takes);
            }
        }
    }

    /// What is due matures, or fails if it is the create's turn to.
    fn arrive(&mut self) {
        let due: Vec<MachineId> = self
            .due
            .iter()
            .filter(|(_, cycle)| **cycle < self.cycle)
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            self.due.remove(&id);
            let Some(found) = self.fleet.machines.get(&id) else {
                continue;
            };
            let creating = found.machine.state() == State::Creating;
            self.creates += usize::from(creating);
            if creating && self.failing != 0 && self.creates.is_multiple_of(self.failing) {
                fail(&mut self.fleet, id.as_str());
            } else {
                mature(&mut self.fleet, id.as_str());
            }
            if self.forgetful {
                forget(&mut self.fleet, id.as_str());
            }
        }
    }
}

/// Nothing is done and nothing changes hands. What is held may stay held.
pub(crate) fn is_quiet(decision: &Decision) -> bool {
    decision.actions.is_empty() && decision.ended_intents.is_empty() && decision.restamps.is_empty()
}

fn is_passing(state: State) -> bool {
    match state {
        State::Creating | State::Configuring | State::Draining | State::Deleting => true,
        State::Speculative | State::Idle | State::Configured | State::Failed => false,
    }
}

fn pace(id: &MachineId, most: u32) -> u32 {
    let sum: u32 = id.as_str().bytes().map(u32::from).sum();
    sum.wrapping_mul(2_654_435_761) % (most + 1)
}
