//! Commit: a decision becomes facts before anything is sent (DC-1, DC-8, RF-7, RF-13).

use bigfleet_model::{
    Action, Assignment, Decision, Fleet, FleetMachine, Host, Intent, Machine, MachineFacts,
    Restamp, State, Time,
};

/// Records ended intents and restamps, all of them, and as many actions as the executor takes, from
/// the head of the list. Returns the actions taken.
pub(crate) fn commit(fleet: &mut Fleet, decision: &Decision, executor: usize) -> Vec<Action> {
    let now = fleet.now;
    for id in &decision.ended_intents {
        change(fleet, id.as_str(), |facts| facts.intent = None);
        if let Some(found) = fleet.machines.get_mut(id)
            && found.machine.state() == State::Idle
        {
            found.idle_since = Some(now);
        }
    }
    for to in &decision.restamps {
        restamp(fleet, to);
    }
    let admitted: Vec<Action> = decision.actions.iter().take(executor).cloned().collect();
    for action in &admitted {
        apply(fleet, action);
    }
    admitted
}

/// All assignment fields, or the intent; the keep price stays.
fn restamp(fleet: &mut Fleet, to: &Restamp) {
    change(fleet, to.machine.as_str(), |facts| {
        let state = State::from_number(facts.state.0).expect("a state");
        if state.is_bound() {
            facts.assignment = Assignment {
                terms: to.terms,
                fingerprint: to.need.fingerprint.clone(),
                group: to.need.group.clone(),
                keep_price: facts.assignment.keep_price,
            };
        } else {
            let before = facts.intent.take();
            let live = bigfleet_model::Price::new(facts.price_per_hour);
            facts.intent = Some(Intent {
                need: to.need.clone(),
                terms: to.terms,
                keep_price: before.map_or(live, |intent| intent.keep_price),
            });
        }
    });
}

fn apply(fleet: &mut Fleet, action: &Action) {
    let id = action.machine.as_str();
    let from = fleet.machines[id].machine.state();
    let to = action.kind.transitional();
    assert!(
        from.may_become(to, bigfleet_model::Via::Step),
        "{action:?} on a machine that is {from}"
    );
    change(fleet, id, |facts| action.commit(facts));
}

/// The next state of a machine on its way; an intent survives Creating→Idle and Draining→Idle.
pub(crate) fn mature(fleet: &mut Fleet, id: &str) {
    change(fleet, id, |facts| {
        let state = State::from_number(facts.state.0).expect("a state");
        let host = Host {
            provider: "p".to_owned(),
            reference: format!("h-{}", facts.id),
        };
        let to = match state {
            State::Creating => {
                facts.host = host;
                State::Idle
            }
            State::Draining => {
                facts.cluster.clear();
                State::Idle
            }
            State::Configuring => State::Configured,
            State::Deleting => {
                facts.host = Host::default();
                State::Speculative
            }
            stays @ (State::Speculative | State::Idle | State::Configured | State::Failed) => stays,
        };
        facts.state = to.into();
    });
}

/// A machine on its way breaks.
pub(crate) fn fail(fleet: &mut Fleet, id: &str) {
    change(fleet, id, |facts| {
        facts.state = State::Failed.into();
        facts.last_error = "the provider gave up".to_owned();
        facts.intent = None;
    });
}

/// Changes the facts of a machine and keeps its idle clock (M-4).
pub(crate) fn change(fleet: &mut Fleet, id: &str, change: impl FnOnce(&mut MachineFacts)) {
    let now: Time = fleet.now;
    let found: &mut FleetMachine = fleet.machines.get_mut(id).expect("a machine of the fleet");
    let before = found.machine.state();
    let mut facts = found.machine.clone().into_facts();
    change(&mut facts);
    found.machine = Machine::new(facts).expect("the machine still passes the grid");
    // The mark is about the node; a machine that joins or leaves a cluster has none.
    found.not_ready &= before.is_bound() && found.machine.state().is_bound();
    match (before, found.machine.state()) {
        (State::Idle, State::Idle) => {}
        (_, State::Idle) => found.idle_since = Some(now),
        _ => found.idle_since = None,
    }
}
