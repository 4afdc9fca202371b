//! The cloud as a value: the kit and the substrate under a virtual clock.
//!
//! ```text
//! mutate(now) ─▶ Kit ─▶ Start ─▶ Substrate::plan ─▶ due(now + after) ─▶ advance(later) ─▶ Settled
//!                         ▲                            │ turned away
//!                         └──────── a pause ◀──────────┘
//! ```
//!
//! Time is whatever the caller says it is. Two clouds given the same calls at the same moments give
//! the same answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{Host, MachineId, State};
use bigfleet_provider_kit::{
    Ack, Effect, Event, Failure, FailureClass, Instance, Kind, Kit, Machine, Mutation, Options,
    Outcome, Page, Query, Refusal, SeedRefused, Tables, Task, TextMap, Work,
};

use crate::knobs::Knobs;
use crate::lies::Lies;
use crate::random::Random;
use crate::substrate::{End, Substrate};

/// Why a call got no acknowledgement.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallFailed {
    /// The contract says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// [`FakeCloud::fail_next`] said so.
    #[error("{0}")]
    Injected(String),
}

#[derive(Clone, Debug)]
enum Due {
    Ends {
        work: Work,
        kind: Kind,
        attempts: u32,
        outcome: Outcome,
    },
    Again {
        work: Work,
        attempts: u32,
    },
    TimesOut {
        machine: MachineId,
        operation: Arc<str>,
    },
    CleanUp(MachineId),
    GivenBack(Arc<Machine>),
    Prices {
        every: Duration,
    },
}

/// A provider without a process.
#[derive(Debug)]
pub struct FakeCloud {
    kit: Kit,
    options: Options,
    substrate: Substrate,
    lies: Lies,
    staged: crate::knobs::ByKind<bool>,
    due: BTreeMap<(Duration, u64), Due>,
    next_due: u64,
    next_call: u64,
    rotation: usize,
    /// The latest moment anyone spoke of.
    now: Duration,
    ticked: Duration,
    refused: BTreeMap<MachineId, Failure>,
    fail_next: BTreeMap<(String, Kind), String>,
    random: Random,
}

impl FakeCloud {
    /// A cloud with these slots at time zero.
    pub fn new(slots: Vec<Instance>, knobs: Knobs, options: Options) -> Result<Self, SeedRefused> {
        let mut kit = Kit::new(Tables::new(knobs.seed), options.clone());
        kit.seed(&slots)?;
        kit.commit();
        Ok(Self {
            kit,
            options,
            lies: Lies::new(&knobs),
            staged: knobs.staged,
            random: Random::new(knobs.seed ^ 0x5eed),
            substrate: Substrate::new("fake", slots, knobs, true),
            due: BTreeMap::new(),
            next_due: 0,
            next_call: 0,
            rotation: 0,
            now: Duration::ZERO,
            ticked: Duration::ZERO,
            refused: BTreeMap::new(),
            fail_next: BTreeMap::new(),
        })
    }

    /// One of the four mutations. What takes no time is done before this returns.
    pub fn mutate(&mut self, now: Duration, mutation: Mutation) -> Result<Ack, CallFailed> {
        let key = (mutation.machine.clone(), mutation.ask.kind());
        if let Some(text) = self.fail_next.remove(&key) {
            return Err(CallFailed::Injected(text));
        }
        let call = self.next_call;
        self.next_call += 1;
        self.now = self.now.max(now);
        let answer = self.handle(Event::Mutate { call, mutation });
        self.run_due(now);
        // Every Mutate is answered; a missing answer would be a defect of the kit.
        let mut ack = answer.unwrap_or(Err(Refusal::Defect))?;
        ack.machine = self.kit.tables().get(ack.machine.id.as_str())?;
        Ok(ack)
    }

    /// One machine as it is now.
    pub fn get(&self, id: &str) -> Result<Arc<Machine>, Refusal> {
        self.kit.tables().get(id)
    }

    /// Machines as asked, or as the knobs would have them.
    pub fn list(&mut self, mut query: Query) -> Result<Page, Refusal> {
        self.rotation += 1;
        query.rotation = self.rotation;
        let page = self.kit.tables().list(&query)?;
        Ok(self.lies.list(&query, page))
    }

    /// When something will next happen by itself.
    pub fn next_due(&self) -> Option<Duration> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// Lets time pass up to `now`: completions and timeouts in their order, then chance.
    pub fn advance(&mut self, now: Duration) {
        self.run_due(now);
        let elapsed = now.saturating_sub(self.ticked);
        self.ticked = self.ticked.max(now);
        let machines = self.kit.tables().machines().values();
        let machines: Vec<_> = machines.map(|entry| Arc::clone(&entry.machine)).collect();
        for event in self.substrate.tick(elapsed, machines.iter()) {
            self.handle(event);
        }
    }

    /// Takes an inventory, as a provider does every few minutes.
    pub fn reconcile(&mut self) {
        let (instances, as_of) = (self.substrate.describe(), self.kit.tables().head());
        self.handle(Event::Described { instances, as_of });
    }

    /// Asks for prices, as a provider does every half hour.
    pub fn refresh_prices(&mut self) {
        let quotes = self.substrate.prices();
        self.handle(Event::Quoted { quotes });
    }

    /// From now on asks for prices this often.
    pub fn refresh_prices_every(&mut self, every: Duration) {
        self.schedule(self.now + every, Due::Prices { every });
    }

    /// What the substrate itself would say there is.
    pub fn describe(&self) -> Vec<Instance> {
        self.substrate.describe()
    }

    /// Completes what is staged on one machine. True if something was.
    pub fn complete_staged(&mut self, now: Duration, id: &MachineId) -> bool {
        let entry = self.kit.tables().machines().get(id);
        let Some(machine) = entry.map(|entry| Arc::clone(&entry.machine)) else {
            return false;
        };
        let Some(kind) = Kind::under_way(machine.state) else {
            return false;
        };
        let operation = entry.and_then(|entry| entry.operation(kind).cloned());
        let Some(operation) = operation else {
            return false;
        };
        let plan = self.substrate.plan(kind, &machine, Duration::ZERO);
        let outcome = match plan.end {
            End::Returns(outcome) | End::IgnoresCancel(outcome) => outcome,
            End::Blocks => return false,
            End::Panics => Err(Failure::new("the backend panicked")),
        };
        let work = Work {
            machine,
            operation,
            // Only its end is of interest: it has begun long ago.
            task: Task::Delete,
            timeout: Duration::ZERO,
        };
        let attempts = 1;
        let ends = Due::Ends {
            work,
            kind,
            attempts,
            outcome,
        };
        self.schedule(now, ends);
        self.run_due(now);
        true
    }

    /// Completes everything that is staged; answers with how many there were.
    pub fn complete_all_staged(&mut self, now: Duration) -> usize {
        let entries = self.kit.tables().machines().iter();
        let under_way = entries.filter(|(_, entry)| Kind::under_way(entry.machine.state).is_some());
        let ids: Vec<MachineId> = under_way.map(|(id, _)| id.clone()).collect();
        ids.iter()
            .filter(|id| self.complete_staged(now, id))
            .count()
    }

    /// The next call of this kind for this machine fails.
    pub fn fail_next(&mut self, id: &str, kind: Kind, text: &str) {
        self.fail_next
            .insert((id.to_owned(), kind), text.to_owned());
    }

    /// Breaks a machine, wherever it is in its life.
    pub fn fail_machine(&mut self, id: &MachineId, reason: &str) {
        let (machine, failure) = (id.clone(), Failure::permanent(reason));
        self.handle(Event::Broke { machine, failure });
    }

    /// The machine is gone, record and all.
    pub fn remove_machine(&mut self, id: &MachineId) {
        self.substrate.remove(id.as_str());
        self.handle(Event::Vanished {
            machine: id.clone(),
        });
    }

    /// Adds a slot, or an idle host if it has one.
    pub fn add(&mut self, instance: Instance) -> Result<(), SeedRefused> {
        self.kit.seed(std::slice::from_ref(&instance))?;
        self.kit.commit();
        self.substrate.add(instance);
        Ok(())
    }

    /// Adds a machine that already serves a cluster.
    pub fn add_configured(
        &mut self,
        instance: Instance,
        cluster: &str,
        metadata: TextMap,
    ) -> Result<(), SeedRefused> {
        let (id, provider) = (instance.id.clone(), "fake".to_owned());
        let host = instance.host.clone().unwrap_or(Host {
            provider,
            reference: id.clone(),
        });
        self.add(Instance {
            host: Some(host),
            ..instance
        })?;
        if let Ok(machine) = self.kit.tables().get(&id) {
            let mut machine = Machine::clone(&machine);
            machine.state = State::Configured;
            machine.cluster = cluster.to_owned();
            machine.metadata = Arc::new(metadata);
            self.kit.adopt(machine);
            self.kit.commit();
        }
        Ok(())
    }

    /// Declares what a machine really offers; seen at the next inventory.
    pub fn set_allocatable(&mut self, id: &MachineId, amounts: TextMap) {
        self.substrate.set_allocatable(id, amounts);
    }

    /// The knobs, to turn.
    pub fn knobs_mut(&mut self) -> &mut Knobs {
        self.substrate.knobs_mut()
    }

    /// How many machines are in this state.
    pub fn count(&self, state: State) -> usize {
        self.kit.tables().count(state)
    }

    /// Some serving machine.
    pub fn random_configured(&mut self) -> Option<MachineId> {
        let at = self.random.below(self.count(State::Configured));
        self.in_state(State::Configured).nth(at)
    }

    /// Removes this share of the empty slots, lowest ids first; answers with how many.
    pub fn shed_speculative(&mut self, share: f64) -> usize {
        let count = (self.count(State::Speculative) as f64 * share.clamp(0.0, 1.0)) as usize;
        let ids: Vec<MachineId> = self.in_state(State::Speculative).take(count).collect();
        ids.iter().for_each(|id| self.remove_machine(id));
        ids.len()
    }

    fn in_state(&self, state: State) -> impl Iterator<Item = MachineId> + '_ {
        let entries = self.kit.tables().machines().iter();
        entries
            .filter(move |(_, entry)| entry.machine.state == state)
            .map(|(id, _)| id.clone())
    }

    /// Tells the kit something and does what it wants done; the answer, if something was asked.
    fn handle(&mut self, event: Event) -> Option<Result<Ack, Refusal>> {
        let mut effects = Vec::new();
        self.kit.handle(event, &mut effects);
        self.kit.commit();
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Answer { answer: given, .. } => answer = Some(given),
                Effect::Start(work) => self.begin(work),
                Effect::Discarded { left, .. } => {
                    if let Some(machine) = left {
                        let plan = self.substrate.plan(Kind::Delete, &machine, Duration::ZERO);
                        self.schedule(self.now + plan.after, Due::GivenBack(machine));
                    }
                }
                Effect::Failed(machine) => {
                    self.refused.remove(&machine.id);
                    if let Some(after) = self.options.cool_down(&machine) {
                        self.schedule(self.now + after, Due::CleanUp(machine.id.clone()));
                    }
                }
                Effect::Skipped(_) => {}
            }
        }
        answer
    }

    fn begin(&mut self, work: Work) {
        let times_out = Due::TimesOut {
            machine: work.machine.id.clone(),
            operation: Arc::clone(&work.operation),
        };
        self.schedule(self.now + work.timeout, times_out);
        self.attempt(work, 1);
    }

    fn attempt(&mut self, work: Work, attempts: u32) {
        let (kind, grace) = match work.task {
            Task::Create => (Kind::Create, Duration::ZERO),
            Task::Configure { .. } => (Kind::Configure, Duration::ZERO),
            Task::Drain { grace } => (Kind::Drain, grace),
            Task::Delete => (Kind::Delete, Duration::ZERO),
            Task::CleanUp if self.options.deletes => (Kind::Delete, Duration::ZERO),
            Task::CleanUp => (Kind::Drain, Duration::ZERO),
        };
        if self.staged.of(kind) && work.task != Task::CleanUp {
            return;
        }
        let plan = self.substrate.plan(kind, &work.machine, grace);
        let (after, outcome) = match plan.end {
            End::Returns(outcome) => (plan.after, outcome),
            End::IgnoresCancel(outcome) => (work.timeout + Duration::from_secs(1), outcome),
            End::Panics => (plan.after, Err(Failure::new("the backend panicked"))),
            End::Blocks => return,
        };
        let ends = Due::Ends {
            work,
            kind,
            attempts,
            outcome,
        };
        self.schedule(self.now + after, ends);
    }

    /// Whether a machine is still in the middle of this work.
    fn is_under_way(&self, work: &Work) -> bool {
        let entry = self.kit.tables().machines().get(&work.machine.id);
        entry.is_some_and(|entry| {
            let kind = Kind::under_way(work.machine.state);
            let current = kind.and_then(|kind| entry.operation(kind));
            entry.machine.state == work.machine.state
                && current.is_none_or(|current| *current == work.operation)
        })
    }

    fn schedule(&mut self, at: Duration, due: Due) {
        self.due.insert((at, self.next_due), due);
        self.next_due += 1;
    }

    fn run_due(&mut self, now: Duration) {
        while let Some(first) = self.due.first_entry()
            && first.key().0 <= now
        {
            self.now = self.now.max(first.key().0);
            match first.remove() {
                Due::TimesOut { machine, operation } => {
                    let refused = self.refused.remove(&machine);
                    self.handle(Event::TimedOut {
                        machine,
                        operation,
                        refused,
                    });
                }
                Due::Ends {
                    work,
                    kind,
                    attempts,
                    outcome,
                } => self.end(work, kind, attempts, outcome),
                Due::Again { work, attempts } => {
                    if self.is_under_way(&work) {
                        self.attempt(work, attempts);
                    }
                }
                Due::CleanUp(machine) => drop(self.handle(Event::CleanUp { machine })),
                Due::GivenBack(machine) => self.substrate.succeeded(Kind::Delete, &machine),
                Due::Prices { every } => {
                    self.refresh_prices();
                    self.schedule(self.now + every, Due::Prices { every });
                }
            }
        }
        self.now = self.now.max(now);
    }

    fn end(&mut self, work: Work, kind: Kind, attempts: u32, outcome: Outcome) {
        let id = work.machine.id.clone();
        match &outcome {
            Err(failure) if failure.class == FailureClass::Passing => {
                self.refused.insert(id, failure.clone());
                let pause = self.options.retry.pause(&work.operation, attempts);
                let attempts = attempts + 1;
                return self.schedule(self.now + pause, Due::Again { work, attempts });
            }
            Err(_) => {}
            Ok(_) => self.substrate.succeeded(kind, &work.machine),
        }
        self.refused.remove(&id);
        self.handle(Event::Settled {
            machine: id,
            operation: work.operation,
            outcome,
        });
    }
}

#[cfg(test)]
mod tests;
