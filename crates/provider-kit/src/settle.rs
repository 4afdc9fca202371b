//! Settling: what becomes of work that ends, ends too late, or does not end at all.
//!
//! ```text
//! Settled ──┬─ the operation under way ──▶ its target, or Failed
//!           ├─ the clean-up under way ───▶ Speculative or Idle, or Failed as before
//!           └─ neither ──▶ Discarded; a host that nobody knows is given back
//! TimedOut ─┬─ the operation under way ──▶ Failed
//!           └─ the clean-up under way ───▶ Failed as before
//! ```
//!
//! Only the operation that a machine is in the middle of can move it, so a late or repeated end
//! changes no record. A clean-up leaves the record Failed until it is over: a caller that looks sees
//! the same error all the time, and then a slot that can be used. A slot whose Create found nothing in
//! stock has nothing to clean up: it is a slot again without any work.

use std::sync::Arc;

use bigfleet_model::{CapacityType, MachineId, State};

use crate::call::Transition;
use crate::event::{Created, Effect, Outcome, Task, Work};
use crate::kit::Kit;
use crate::machine::{Failure, FailureClass, Machine};
use crate::seed;

impl Kit {
    /// The machine, if this operation is the one it is in the middle of.
    fn under_way(&self, machine: &MachineId, operation: &str) -> Option<(Transition, Machine)> {
        let entry = self.tables.machines().get(machine)?;
        let kind = Transition::under_way(entry.machine.state)?;
        let current = entry
            .operation(kind)
            .is_some_and(|current| **current == *operation);
        current.then(|| (kind, Machine::clone(&entry.machine)))
    }

    pub(crate) fn settle(
        &mut self,
        id: &MachineId,
        operation: &Arc<str>,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        if self.is_cleaning(id, operation) {
            return self.cleaned(id, outcome.is_ok(), effects);
        }
        let Some((kind, mut machine)) = self.under_way(id, operation) else {
            let left = self.left_behind(id, outcome);
            let operation = Arc::clone(operation);
            return effects.push(Effect::Discarded { operation, left });
        };
        let done = outcome.and_then(|created| land(&mut machine, kind, created));
        match done {
            Ok(()) => drop(self.put(machine)),
            Err(failure) => effects.push(Effect::Failed(self.fail(machine, &failure))),
        }
    }

    pub(crate) fn time_out(
        &mut self,
        id: &MachineId,
        operation: &Arc<str>,
        refused: Option<Failure>,
        effects: &mut Vec<Effect>,
    ) {
        if self.is_cleaning(id, operation) {
            return self.cleaned(id, false, effects);
        }
        if let Some((kind, machine)) = self.under_way(id, operation) {
            let last = refused.map_or(String::new(), |why| format!("; last refusal: {why}"));
            let failure = Failure::retryable(format!(
                "{kind} timed out: not finished within its timeout (operation {operation}){last}"
            ));
            effects.push(Effect::Failed(self.fail(machine, &failure)));
        }
    }

    /// Starts to clean up a Failed machine, unless that is already going on.
    pub(crate) fn clean_up(&mut self, id: &MachineId, effects: &mut Vec<Effect>) {
        let entry = self.tables.machines().get(id);
        let failed = entry.filter(|entry| entry.machine.state == State::Failed);
        let Some(entry) = failed.filter(|_| !self.cleaning.contains_key(id)) else {
            return;
        };
        if entry.machine.failure == FailureClass::NoStock {
            return self.restock(Machine::clone(&entry.machine));
        }
        let (prefix, store) = (&self.options.prefix, self.tables.incarnation());
        // No operation of the contract: a caller that repeats its Delete must not be given this id.
        let operation: Arc<str> = format!("{prefix}-{store:016x}-r{}", entry.revision).into();
        effects.push(Effect::Start(Work {
            machine: Arc::clone(&entry.machine),
            operation: Arc::clone(&operation),
            task: Task::CleanUp,
            timeout: self.options.timeouts.delete,
        }));
        self.cleaning.insert(id.clone(), operation);
        self.begun.push(id.clone());
    }

    /// Nothing was made, so nothing is left of it.
    fn restock(&mut self, mut machine: Machine) {
        machine.last_error.clear();
        machine.failure = FailureClass::Unspecified;
        machine.state = State::Speculative;
        self.put(machine);
    }

    fn is_cleaning(&self, id: &MachineId, operation: &str) -> bool {
        let current = self.cleaning.get(id);
        current.is_some_and(|current| **current == *operation)
    }

    fn cleaned(&mut self, id: &MachineId, done: bool, effects: &mut Vec<Effect>) {
        self.cleaning.remove(id);
        let entry = self.tables.machines().get(id);
        let Some(entry) = entry.filter(|entry| entry.machine.state == State::Failed) else {
            return;
        };
        let mut machine = Machine::clone(&entry.machine);
        let released = self.releases(&machine);
        if !done || !released && machine.host.is_none() {
            return effects.push(Effect::Failed(Arc::clone(&entry.machine)));
        }
        machine.unbind();
        machine.last_error.clear();
        machine.failure = FailureClass::Unspecified;
        machine.state = State::Idle;
        if released {
            machine.vacate();
        }
        self.put(machine);
    }

    /// Whether the host of this machine is given back once it is no longer needed.
    fn releases(&self, machine: &Machine) -> bool {
        self.options.deletes && machine.offer.capacity_type != CapacityType::BareMetal
    }

    /// A host that a Create made after it had been given up. Nobody would ever find it.
    fn left_behind(&self, id: &MachineId, outcome: Outcome) -> Option<Arc<Machine>> {
        let host = outcome.ok()??.host;
        let known = &self.tables.machines().get(id)?.machine;
        let nobodys = seed::usable(&host).is_ok() && known.host.as_ref() != Some(&host);
        (nobodys && self.releases(known)).then(|| {
            let mut machine = Machine::clone(known);
            machine.state = State::Deleting;
            machine.host = Some(host);
            machine.unbind();
            Arc::new(machine)
        })
    }
}

/// Moves a machine to the target of its transition, or says why it cannot go there.
fn land(machine: &mut Machine, kind: Transition, created: Option<Created>) -> Result<(), Failure> {
    match kind {
        Transition::Create => {
            let created = created.ok_or_else(|| Failure::new("create yielded no host"))?;
            seed::usable(&created.host)
                .map_err(|why| Failure::new(format!("create yielded no usable host: {why}")))?;
            machine.host = Some(created.host);
            if created.resources.is_some() || created.allocatable.is_some() {
                let mut offer = (*machine.offer).clone();
                offer.resources = created.resources.unwrap_or(offer.resources);
                offer.allocatable = created.allocatable.unwrap_or(offer.allocatable);
                machine.offer = Arc::new(offer);
                machine.refined = true;
            }
        }
        Transition::Configure => {}
        Transition::Drain => machine.unbind(),
        Transition::Delete => machine.vacate(),
    }
    machine.state = kind.target();
    Ok(())
}
