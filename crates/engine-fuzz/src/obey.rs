//! Obey: what is decided is committed and, later, done.
//!
//! Edits alone keep a fleet in states that nobody's decisions lead to. A history that now and then
//! does as it was told also visits the others: promises kept, drains that end, gangs complete.

use bigfleet_model::{
    Assignment, Decision, Fleet, Host, Intent, Machine, MachineFacts, MachineId, Price, Restamp,
    State,
};

/// Commits what changes without an action, and the first so many actions (DC-1, RF-7, RF-13).
pub(crate) fn commit(fleet: &mut Fleet, decision: &Decision, actions: usize) {
    for id in &decision.ended_intents {
        change(fleet, id, |facts| facts.intent = None);
        if let Some(found) = fleet.machines.get_mut(id)
            && found.machine.state() == State::Idle
        {
            found.idle_since = Some(fleet.now);
        }
    }
    for to in &decision.restamps {
        change(fleet, &to.machine, |facts| restamp(facts, to));
    }
    for action in decision.actions.iter().take(actions) {
        change(fleet, &action.machine, |facts| action.commit(facts));
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
        change(fleet, &id, arrived);
    }
}

fn restamp(facts: &mut MachineFacts, to: &Restamp) {
    if state(facts).is_some_and(State::is_bound) {
        facts.assignment = Assignment {
            terms: to.terms,
            fingerprint: to.need.fingerprint.clone(),
            group: to.need.group.clone(),
            keep_price: facts.assignment.keep_price,
        };
        return;
    }
    let live = Price::new(facts.price_per_hour);
    let keep_price = facts.intent.take().map_or(live, |intent| intent.keep_price);
    facts.intent = Some(Intent {
        need: to.need.clone(),
        terms: to.terms,
        keep_price,
    });
}

fn arrived(facts: &mut MachineFacts) {
    let host = Host {
        provider: "p".to_owned(),
        reference: format!("h-{}", facts.id),
    };
    let to = match state(facts) {
        Some(State::Creating) => {
            facts.host = host;
            State::Idle
        }
        Some(State::Draining) => State::Idle,
        Some(State::Configuring) => State::Configured,
        Some(State::Deleting) => {
            facts.host = Host::default();
            State::Speculative
        }
        Some(stays) => stays,
        None => return,
    };
    facts.state = to.into();
}

fn state(facts: &MachineFacts) -> Option<State> {
    State::from_number(facts.state.0)
}

/// Changes the facts of a machine and keeps its idle clock (M-4).
fn change(fleet: &mut Fleet, id: &MachineId, change: impl FnOnce(&mut MachineFacts)) {
    let Some(found) = fleet.machines.get_mut(id) else {
        return;
    };
    let before = found.machine.state();
    let mut facts = found.machine.clone().into_facts();
    change(&mut facts);
    let Ok(machine) = Machine::new(facts) else {
        return;
    };
    found.machine = machine;
    let after = found.machine.state();
    found.not_ready &= before.is_bound() && after.is_bound();
    match (before, after) {
        (State::Idle, State::Idle) => {}
        (_, State::Idle) => found.idle_since = Some(fleet.now),
        _ => found.idle_since = None,
    }
}
