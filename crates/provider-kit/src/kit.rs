//! The kit: the contract as a value. Events in, effects out; no clock, no I/O.
//!
//! ```text
//! Mutate ─────────────────────────▶ admit ────────▶ Answer, Start
//! Settled, TimedOut, CleanUp ─────▶ settle ───────▶ Failed, Discarded, Start
//! Described, Quoted ──────────────▶ reconcile ────▶ Skipped, Failed
//! Broke, Leaves, Vanished ────────▶ here ─────────▶ Failed
//! ```
//!
//! Every effect is valid only once the pending changes of [`Kit::tables`] are stored: whoever drives
//! the kit stores them first, then commits, then carries the effects out. If storing fails it rolls
//! back, and nothing has happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{MachineId, State};

use crate::call::Transition;
use crate::event::{Effect, Event, Quote, Task, Work};
use crate::machine::{Failure, Instance, Machine};
use crate::options::Options;
use crate::seed::{self, SeedRefused};
use crate::tables::{Change, Tables};

/// A provider's whole state and the rules that move it.
#[derive(Debug)]
pub struct Kit {
    pub(crate) options: Options,
    pub(crate) tables: Tables,
    /// Machines the last describe did not confirm; the second miss counts.
    missed: BTreeMap<MachineId, ()>,
    /// Clean-ups under way, by machine. Not stored: after a restart they begin anew.
    pub(crate) cleaning: BTreeMap<MachineId, Arc<str>>,
    /// Those of them that began since the last commit.
    pub(crate) begun: Vec<MachineId>,
}

impl Kit {
    /// Takes over what a store held.
    pub fn new(tables: Tables, options: Options) -> Self {
        Self {
            options,
            tables,
            missed: BTreeMap::new(),
            cleaning: BTreeMap::new(),
            begun: Vec::new(),
        }
    }

    /// Everything known.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The pending changes are stored.
    pub fn commit(&mut self) {
        self.begun.clear();
        self.tables.commit();
    }

    /// The pending changes could not be stored.
    pub fn rollback(&mut self) {
        for id in self.begun.drain(..) {
            self.cleaning.remove(&id);
        }
        self.tables.rollback();
    }

    /// First boot: every entry becomes a machine, or nothing does.
    pub fn seed(&mut self, instances: &[Instance]) -> Result<(), SeedRefused> {
        for instance in instances {
            let machine = seed::check(instance, self.options.require_zone)?;
            if self.tables.machines().contains_key(&machine.id) {
                let problem = "the id occurs twice".to_owned();
                return Err(SeedRefused {
                    id: instance.id.clone(),
                    problem,
                });
            }
            self.put(machine);
        }
        Ok(())
    }

    /// Puts a machine in as it is: for a fake that begins in the middle of a story.
    pub fn adopt(&mut self, machine: Machine) {
        self.put(machine);
    }

    /// Later boots: the work the last process left behind and a backend can take up again, with the
    /// operation ids it already has.
    pub fn resume(&self) -> Vec<Work> {
        let entries = self.tables.machines().values();
        let work = entries.filter_map(|entry| {
            let kind = Transition::under_way(entry.machine.state)?;
            let grace = Duration::from_secs(entry.grace_seconds());
            let timeouts = self.options.timeouts;
            let (task, timeout) = match kind {
                Transition::Create => (Task::Create, timeouts.create),
                Transition::Drain => (Task::Drain { grace }, timeouts.drain.saturating_add(grace)),
                Transition::Delete => (Task::Delete, timeouts.delete),
                // Its user data holds secrets and is on no disk.
                Transition::Configure => return None,
            };
            Some(Work {
                machine: Arc::clone(&entry.machine),
                operation: Arc::clone(entry.operation(kind)?),
                task,
                timeout,
            })
        });
        work.filter(|_| self.options.resumes).collect()
    }

    /// Later boots: nobody will work on the other transitions the last process left behind. They are
    /// Failed, except a Configure that may be asked for again: that machine is Idle, and whoever wanted it
    /// configured sends the user data anew. Answers with how many are Failed.
    pub fn recover(&mut self) -> usize {
        let resumed: Vec<MachineId> = self
            .resume()
            .iter()
            .map(|work| work.machine.id.clone())
            .collect();
        let entries = self.tables.machines().values();
        let stuck = entries.filter_map(|entry| {
            let kind = Transition::under_way(entry.machine.state)?;
            // In id order, as the machines are.
            let abandoned = resumed.binary_search(&entry.machine.id).is_err();
            let operation = entry.operation(kind).cloned();
            abandoned.then(|| (kind, operation, Machine::clone(&entry.machine)))
        });
        let again = |kind: Transition| kind == Transition::Configure && self.options.reconfigures;
        let (again, stuck): (Vec<_>, Vec<_>) = stuck.partition(|(kind, ..)| again(*kind));
        for (_, _, mut machine) in again {
            machine.state = State::Idle;
            machine.unbind();
            self.put(machine);
        }
        for (kind, operation, machine) in &stuck {
            let operation = operation.as_deref().unwrap_or("unknown");
            let text = format!(
                "{kind} was interrupted by a restart of the provider (operation {operation})"
            );
            self.fail(machine.clone(), &Failure::retryable(text));
        }
        stuck.len()
    }

    /// Takes in one event.
    pub fn handle(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Mutate { call, mutation } => {
                let answer = self.mutate(mutation, effects);
                effects.push(Effect::Answer { call, answer });
            }
            Event::Settled {
                machine,
                operation,
                outcome,
            } => {
                self.settle(&machine, &operation, outcome, effects);
            }
            Event::TimedOut {
                machine,
                operation,
                refused,
            } => self.time_out(&machine, &operation, refused, effects),
            Event::CleanUp { machine } => self.clean_up(&machine, effects),
            Event::Quoted { quotes } => self.reprice(&quotes, effects),
            Event::Described { instances, as_of } => self.reconcile(&instances, as_of, effects),
            Event::Broke { machine, failure } => {
                let found = self.tables.machines().get(&machine);
                let found = found.filter(|entry| entry.machine.state != State::Failed);
                if let Some(machine) = found.map(|entry| Machine::clone(&entry.machine)) {
                    effects.push(Effect::Failed(self.fail(machine, &failure)));
                }
            }
            Event::Leaves { machine, at } => {
                let entry = self.tables.machines().get(&machine);
                let told = entry.and_then(|entry| crate::reconcile::leaves(&entry.machine, at));
                drop(told.map(|machine| self.put(machine)));
            }
            Event::Vanished { machine } => self.remove(machine),
        }
    }

    fn reconcile(&mut self, instances: &[Instance], as_of: u64, effects: &mut Vec<Effect>) {
        let mut described = BTreeMap::new();
        for instance in instances {
            match seed::check(instance, self.options.require_zone) {
                Ok(machine) if described.contains_key(&machine.id) => {
                    let problem = "the id occurs twice".to_owned();
                    let id = instance.id.clone();
                    effects.push(Effect::Skipped(SeedRefused { id, problem }));
                }
                Ok(machine) => drop(described.insert(machine.id.clone(), machine)),
                Err(refused) => effects.push(Effect::Skipped(refused)),
            }
        }
        let inventory = crate::reconcile::compare(&self.tables, &described, as_of, &self.missed);
        self.missed = inventory.missed;
        for machine in inventory.changed {
            self.put(machine);
        }
        for (machine, failure) in inventory.lost {
            effects.push(Effect::Failed(self.fail(machine, &failure)));
        }
        for machine in inventory.gone {
            self.remove(machine);
        }
    }

    fn reprice(&mut self, quotes: &[Quote], effects: &mut Vec<Effect>) {
        let (changed, refused) = crate::reconcile::priced(&self.tables, quotes);
        effects.extend(refused.into_iter().map(Effect::Skipped));
        for machine in changed {
            self.put(machine);
        }
    }

    pub(crate) fn put(&mut self, machine: Machine) -> Arc<Machine> {
        let machine = Arc::new(machine);
        let revision = self.tables.next_revision();
        self.tables.write(Change::Machine {
            machine: Arc::clone(&machine),
            revision,
        });
        machine
    }

    pub(crate) fn fail(&mut self, mut machine: Machine, failure: &Failure) -> Arc<Machine> {
        machine.fail(failure);
        self.put(machine)
    }

    fn remove(&mut self, id: MachineId) {
        if self.tables.machines().contains_key(&id) {
            let revision = self.tables.next_revision();
            self.tables.write(Change::Removed { id, revision });
        }
    }
}

#[cfg(test)]
mod tests;
