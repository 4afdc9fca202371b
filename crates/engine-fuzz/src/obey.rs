//! Obey: what is decided is committed and, later, done.
//!
//! Edits alone keep a fleet in states that nobody's decisions lead to. A history that now and then
//! does as it was told also visits the others: promises kept, drains that end, gangs complete.

use bigfleet_model::{Decision, Fleet, Host, Machine, MachineId, State, StepRefused};

/// Commits what changes without an action, and the first so many actions (DC-1, RF-7, RF-13).
pub(crate) fn commit(fleet: &mut Fleet, decision: &Decision, actions: usize) {
    for id in &decision.ended_intents {
        step(fleet, id, Machine::release_intent);
        if let Some(found) = fleet.machines.get_mut(id)
            && found.machine.state() == State::Idle
        {
            found.idle_since = Some(fleet.now);
        }
    }
    for to in &decision.restamps {
        step(fleet, &to.machine, |machine| machine.restamp(to));
    }
    for action in decision.actions.iter().take(actions) {
        step(fleet, &action.machine, |machine| machine.commit(action));
    }
}

/// Everything that is on its way arrives.
pub(crate) fn arrive(fleet: &mut Fleet) {
    let on_the_way = |state: State| !state.is_stable() && state != State::Failed;
    let machines = fleet.machines.values().map(|found| &found.machine);
    let moving: Vec<MachineId> = machines
        .filter(|machine| on_the_way(machine.state()))
        .map(|machine| machine.id().clone())
        .collect();
    for id in moving {
        let host = || Host {
            provider: "p".to_owned(),
            reference: format!("h-{id}"),
        };
        step(fleet, &id, |machine| machine.arrive(host));
    }
}

/// Has a machine take a step. One that cannot stays as it is: only equality is judged here, and an
/// engine that is wrong on purpose decides things that cannot be done.
fn step(
    fleet: &mut Fleet,
    id: &MachineId,
    step: impl FnOnce(&Machine) -> Result<Machine, StepRefused>,
) {
    if let Some(found) = fleet.machines.get_mut(id)
        && let Ok(machine) = step(&found.machine)
    {
        found.replace(machine, fleet.now);
    }
}
