//! Commit: a decision becomes facts before anything is sent (DC-1, DC-8, RF-7, RF-13).

use bigfleet_model::{
    Action, Decision, Fleet, FleetMachine, Host, Machine, MachineFacts, State, StepRefused,
};

/// Records ended intents and restamps, all of them, and as many actions as the executor takes, from
/// the head of the list. Returns the actions taken.
pub(crate) fn commit(fleet: &mut Fleet, decision: &Decision, executor: usize) -> Vec<Action> {
    let now = fleet.now;
    for id in &decision.ended_intents {
        step(fleet, id.as_str(), Machine::release_intent);
        if let Some(found) = fleet.machines.get_mut(id)
            && found.machine.state() == State::Idle
        {
            found.idle_since = Some(now);
        }
    }
    for to in &decision.restamps {
        step(fleet, to.machine.as_str(), |machine| machine.restamp(to));
    }
    let admitted: Vec<Action> = decision.actions.iter().take(executor).cloned().collect();
    for action in &admitted {
        let id = action.machine.as_str();
        step(fleet, id, |machine| machine.commit(action));
    }
    admitted
}

/// The next state of a machine on its way; one that rests stays.
pub(crate) fn mature(fleet: &mut Fleet, id: &str) {
    let state = fleet.machines[id].machine.state();
    if !state.is_stable() && state != State::Failed {
        let host = || Host {
            provider: "p".to_owned(),
            reference: format!("h-{id}"),
        };
        step(fleet, id, |machine| machine.arrive(host));
    }
}

/// A machine on its way breaks.
pub(crate) fn fail(fleet: &mut Fleet, id: &str) {
    step(fleet, id, |machine| machine.fail("the provider gave up"));
}

/// What a machine was meant for is lost, if it was meant for anybody.
pub(crate) fn forget(fleet: &mut Fleet, id: &str) {
    if fleet.machines[id].machine.intent().is_some() {
        step(fleet, id, Machine::release_intent);
    }
}

fn step(fleet: &mut Fleet, id: &str, step: impl FnOnce(&Machine) -> Result<Machine, StepRefused>) {
    let now = fleet.now;
    let found: &mut FleetMachine = fleet.machines.get_mut(id).expect("a machine of the fleet");
    let machine = step(&found.machine).unwrap_or_else(|refused| panic!("{refused}"));
    found.replace(machine, now);
}

/// Changes the facts of a machine, to set a scene.
pub(crate) fn change(fleet: &mut Fleet, id: &str, change: impl FnOnce(&mut MachineFacts)) {
    let now = fleet.now;
    let found: &mut FleetMachine = fleet.machines.get_mut(id).expect("a machine of the fleet");
    let mut facts = found.machine.clone().into_facts();
    change(&mut facts);
    let machine = Machine::new(facts).expect("the machine still passes the grid");
    found.replace(machine, now);
}
