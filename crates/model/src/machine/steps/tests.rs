//! Steps: every state, every step; what changes, what stays and what is refused.

use super::*;
use crate::{Dollars, Fingerprint, Group, MachineFacts, Price, Reason};

fn host(reference: &str) -> Host {
    Host {
        provider: "p".to_owned(),
        reference: reference.to_owned(),
    }
}

fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).unwrap()
}

fn need(name: &str) -> NeedKey {
    NeedKey {
        cluster: cluster(name),
        fingerprint: Fingerprint::new("f"),
        group: Group::new("g"),
    }
}

fn terms(priority: i32) -> Terms {
    Terms {
        priority,
        interruption: Dollars::new(2.0).unwrap(),
        reclamation: Dollars::new(3.0).unwrap(),
    }
}

fn price(dollars: f64) -> Option<Price> {
    Price::new(dollars)
}

/// A machine of cluster `a` where its state has a cluster, at 4 dollars, committed at 1.
fn machine(state: State) -> Machine {
    let bare = matches!(state, State::Speculative | State::Creating);
    let facts = MachineFacts {
        host: if bare { Host::default() } else { host("h1") },
        cluster: if bare { "" } else { "a" }.to_owned(),
        price_per_hour: 4.0,
        last_error: if state == State::Failed { "boom" } else { "" }.to_owned(),
        assignment: Assignment {
            keep_price: price(1.0),
            ..assignment(&need("a"), terms(5))
        },
        ..MachineFacts::new("m1", state)
    };
    Machine::new(facts).unwrap()
}

fn intent(name: &str, keep_price: Option<Price>) -> Intent {
    Intent {
        need: need(name),
        terms: terms(6),
        keep_price,
    }
}

/// The same, meant for a Need of cluster `b` at 2 dollars.
fn promised(state: State) -> Machine {
    let machine = machine(state);
    let assignment = machine.assignment().clone();
    machine
        .committed(assignment, Some(intent("b", price(2.0))))
        .unwrap()
}

fn action(kind: ActionKind) -> Action {
    let purpose = match kind {
        ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Preempt => {
            Some((need("c"), terms(7)))
        }
        ActionKind::Restore => Some((need("a"), terms(7))),
        ActionKind::Reclaim | ActionKind::Delete => None,
    };
    Action {
        kind,
        machine: MachineId::new("m1").unwrap(),
        cluster: None,
        purpose,
        grace_seconds: 0,
        preemptor_priority: 0,
        reason: Reason::Idle,
    }
}

/// The actions whose machines are on their way for a while.
fn with_a_way() -> impl Iterator<Item = ActionKind> {
    let kinds = ActionKind::ALL.into_iter();
    kinds.filter(|kind| *kind != ActionKind::Restore)
}

fn restamp(name: &str) -> Restamp {
    Restamp {
        machine: MachineId::new("m1").unwrap(),
        need: need(name),
        terms: terms(8),
    }
}

fn problem(step: Result<Machine, StepRefused>) -> StepProblem {
    step.unwrap_err().problem
}

/// What a step leaves would pass the grid again, as it is.
fn check(step: Result<Machine, StepRefused>) -> Machine {
    let machine = step.unwrap();
    assert_eq!(
        Machine::new(machine.clone().into_facts()).as_ref(),
        Ok(&machine)
    );
    machine
}

/// DC-1: from its source state and no other, to the state on the way, along an edge.
#[test]
fn an_action_is_committed_from_its_source_only() {
    for kind in ActionKind::ALL {
        for state in State::ALL {
            let committed = machine(state).commit(&action(kind));
            if state != kind.source() {
                assert_eq!(problem(committed), StepProblem::NotAtSource(kind));
                continue;
            }
            let via = match kind {
                ActionKind::Restore => Via::Rollback,
                _ => Via::Step,
            };
            assert!(state.may_become(kind.transitional(), via));
            assert_eq!(check(committed).state(), kind.transitional());
        }
    }
}

/// DC-2.
#[test]
fn a_bootstrap_binds_and_a_promise_keeps_its_price() {
    let live = check(machine(State::Idle).commit(&action(ActionKind::Bootstrap)));
    assert_eq!(live.cluster(), Some(&cluster("c")));
    assert_eq!(live.attribution(), Some(need("c")));
    assert_eq!(live.assignment().terms, terms(7));
    assert_eq!(live.assignment().keep_price, price(4.0));
    let kept = check(promised(State::Idle).commit(&action(ActionKind::Bootstrap)));
    assert_eq!(
        (kept.intent(), kept.assignment().keep_price),
        (None, price(2.0))
    );
    let unpriced = machine(State::Idle).committed(Assignment::default(), Some(intent("b", None)));
    let unpriced = check(unpriced.unwrap().commit(&action(ActionKind::Bootstrap)));
    assert_eq!(unpriced.assignment().keep_price, price(4.0));
}

#[test]
fn what_is_created_or_preempted_is_meant_for_its_need_at_the_live_price() {
    for kind in [ActionKind::Provision, ActionKind::Preempt] {
        let machine = machine(kind.source());
        let committed = check(machine.commit(&action(kind)));
        let meant = committed.intent().unwrap();
        assert_eq!((&meant.need, meant.terms), (&need("c"), terms(7)));
        assert_eq!(meant.keep_price, price(4.0));
        assert_eq!(
            (committed.cluster(), committed.assignment()),
            (machine.cluster(), machine.assignment())
        );
    }
}

#[test]
fn a_reclaim_keeps_the_assignment_and_a_delete_forgets_the_promise() {
    let serving = machine(State::Configured);
    let drained = check(serving.commit(&action(ActionKind::Reclaim)));
    assert_eq!(drained.assignment(), serving.assignment());
    assert_eq!(
        (drained.cluster(), drained.intent()),
        (serving.cluster(), None)
    );
    let deleted = check(promised(State::Idle).commit(&action(ActionKind::Delete)));
    assert_eq!(deleted.intent(), None);
}

/// RF-20: it serves its own cluster at once, for the claimant, at its own price; and there is no way back.
#[test]
fn a_drain_is_taken_back_within_its_cluster() {
    let draining = machine(State::Draining);
    let restored = check(draining.commit(&action(ActionKind::Restore)));
    assert_eq!(restored.state(), State::Configured);
    assert_eq!(restored.attribution(), Some(need("a")));
    assert_eq!(restored.assignment().terms, terms(7));
    assert_eq!(restored.assignment().keep_price, price(1.0));
    for state in State::ALL {
        let back = machine(state).roll_back(ActionKind::Restore);
        let refused = StepProblem::NotOnItsWay(ActionKind::Restore);
        assert_eq!(problem(back), refused);
    }
    let abroad = Action {
        purpose: Some((need("b"), terms(7))),
        ..action(ActionKind::Restore)
    };
    let refused = StepProblem::OtherCluster(cluster("b"));
    assert_eq!(problem(draining.commit(&abroad)), refused);
    let promised = promised(State::Draining).commit(&action(ActionKind::Restore));
    assert_eq!(problem(promised), StepProblem::Promised);
}

#[test]
fn an_action_for_no_need_or_another_machine_is_not_committed() {
    for kind in [
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Preempt,
        ActionKind::Restore,
    ] {
        let aimless = Action {
            purpose: None,
            ..action(kind)
        };
        let refused = machine(kind.source()).commit(&aimless);
        assert_eq!(problem(refused), StepProblem::NoNeed(kind));
    }
    let other = MachineId::new("m2").unwrap();
    let astray = Action {
        machine: other.clone(),
        ..action(ActionKind::Delete)
    };
    let refused = machine(State::Idle).commit(&astray);
    assert_eq!(problem(refused), StepProblem::OtherMachine(other));
}

/// Each way ends where its action leads; the other states are no way.
#[test]
fn a_machine_on_its_way_arrives_at_the_target() {
    for kind in with_a_way() {
        let arrived = check(machine(kind.transitional()).arrive(|| host("new")));
        assert_eq!(arrived.state(), kind.target());
    }
    for state in [
        State::Speculative,
        State::Idle,
        State::Configured,
        State::Failed,
    ] {
        let arrived = machine(state).arrive(|| host("new"));
        assert_eq!(problem(arrived), StepProblem::Resting);
    }
}

#[test]
fn arriving_gives_and_takes_host_and_cluster() {
    let created = check(promised(State::Creating).arrive(|| host("new")));
    assert_eq!(created.host(), Some(&host("new")));
    assert_eq!(created.intent(), Some(&intent("b", price(2.0))));
    let drained = check(promised(State::Draining).arrive(Host::default));
    assert_eq!(
        (drained.host(), drained.cluster()),
        (Some(&host("h1")), None)
    );
    assert_eq!(drained.intent(), Some(&intent("b", price(2.0))));
    let bound = check(machine(State::Configuring).arrive(Host::default));
    assert_eq!(bound.assignment(), machine(State::Configuring).assignment());
    let deleted = check(machine(State::Deleting).arrive(Host::default));
    assert_eq!(deleted.host(), None);
}

#[test]
fn nothing_arrives_against_the_grid() {
    let nowhere = machine(State::Creating).arrive(Host::default);
    let breach = Breach::NoHost(State::Idle);
    assert_eq!(problem(nowhere), StepProblem::Grid(breach));
    let facts = MachineFacts {
        host: host("h1"),
        ..MachineFacts::new("m1", State::Configuring)
    };
    let nobodys = Machine::new(facts).unwrap().arrive(Host::default);
    let breach = Breach::NoCluster(State::Configured);
    assert_eq!(problem(nobodys), StepProblem::Grid(breach));
}

/// DC-7, and ST-1 for Bootstrap, whose way back is a step.
#[test]
fn a_commit_is_rolled_back_from_its_own_way_only() {
    for kind in with_a_way() {
        for state in State::ALL {
            let back = machine(state).roll_back(kind);
            if state != kind.transitional() {
                assert_eq!(problem(back), StepProblem::NotOnItsWay(kind));
                continue;
            }
            let via = match kind {
                ActionKind::Bootstrap => Via::Step,
                _ => Via::Rollback,
            };
            assert!(state.may_become(kind.source(), via), "{kind:?}");
            assert_eq!(check(back).state(), kind.source());
        }
    }
}

/// What is committed and rolled back is what it was, but meant for nobody.
#[test]
fn a_rollback_undoes_the_commit() {
    for kind in with_a_way() {
        let before = machine(kind.source());
        let committed = before.commit(&action(kind)).unwrap();
        assert_eq!(check(committed.roll_back(kind)), before, "{kind:?}");
    }
    let promised = promised(State::Idle);
    let committed = promised.commit(&action(ActionKind::Bootstrap)).unwrap();
    let back = check(committed.roll_back(ActionKind::Bootstrap));
    assert_eq!(Ok(back), promised.release_intent());
}

/// RF-7: all of the assignment or of the intent; the keep price stays.
#[test]
fn a_restamp_changes_for_whom_and_not_at_what_price() {
    for state in [State::Configuring, State::Configured] {
        let stamped = check(machine(state).restamp(&restamp("a")));
        assert_eq!(stamped.assignment().terms, terms(8));
        assert_eq!(stamped.assignment().keep_price, price(1.0));
        assert_eq!(stamped.attribution(), Some(need("a")));
        let refused = machine(state).restamp(&restamp("b"));
        assert_eq!(problem(refused), StepProblem::OtherCluster(cluster("b")));
    }
    for state in [State::Creating, State::Idle, State::Draining] {
        let fresh = check(machine(state).restamp(&restamp("c")));
        let meant = fresh.intent().unwrap();
        assert_eq!((&meant.need, meant.terms), (&need("c"), terms(8)));
        assert_eq!(meant.keep_price, price(4.0), "live");
        assert_eq!(fresh.assignment(), machine(state).assignment());
        let again = check(promised(state).restamp(&restamp("c")));
        assert_eq!(again.intent().unwrap().keep_price, price(2.0), "kept");
    }
    for state in [State::Speculative, State::Deleting, State::Failed] {
        let refused = machine(state).restamp(&restamp("a"));
        assert_eq!(problem(refused), StepProblem::HoldsNoCommitment);
    }
    let astray = Restamp {
        machine: MachineId::new("m2").unwrap(),
        ..restamp("a")
    };
    assert!(matches!(
        problem(machine(State::Idle).restamp(&astray)),
        StepProblem::OtherMachine(_)
    ));
}

/// DC-5.
#[test]
fn a_released_intent_leaves_everything_else() {
    for state in [State::Creating, State::Idle, State::Draining] {
        assert_eq!(check(promised(state).release_intent()), machine(state));
        let refused = machine(state).release_intent();
        assert_eq!(problem(refused), StepProblem::NoIntent);
    }
}

/// ST-2.
#[test]
fn only_what_is_on_its_way_fails_and_says_why() {
    for state in State::ALL {
        let failed = machine(state).fail("lost");
        if state.is_stable() || state == State::Failed {
            assert_eq!(problem(failed), StepProblem::Resting, "{state}");
            continue;
        }
        let failed = check(failed);
        assert_eq!(
            (failed.state(), failed.last_error()),
            (State::Failed, "lost")
        );
        let mute = machine(state).fail("");
        assert_eq!(problem(mute), StepProblem::Grid(Breach::NoError));
    }
    let failed = check(promised(State::Creating).fail("lost"));
    assert_eq!(failed.intent(), None);
}

/// What its provider shows of a machine: another price and host, no commitment.
fn seen(state: State, at: &str) -> Machine {
    let facts = machine(state).into_facts();
    let bound = !facts.cluster.is_empty();
    Machine::new(MachineFacts {
        price_per_hour: 9.0,
        cluster: if bound { at } else { "" }.to_owned(),
        assignment: Assignment::default(),
        ..facts
    })
    .unwrap()
}

/// RC-6.
#[test]
fn the_provider_says_what_it_is_and_we_say_for_whom() {
    let known = machine(State::Configuring);
    let followed = check(known.follow(&seen(State::Configured, "a"), Via::Step, None));
    assert_eq!(followed.price(), price(9.0).unwrap());
    assert_eq!(followed.assignment(), known.assignment());
    let drained = promised(State::Draining);
    let idle = check(drained.follow(&seen(State::Idle, ""), Via::Step, None));
    assert_eq!(idle.intent(), drained.intent());
    assert_eq!(idle.assignment(), &Assignment::default());
    let bound = seen(State::Configured, "b");
    let bound = promised(State::Idle).follow(&bound, Via::Adoption, Some(Assignment::default()));
    assert_eq!(check(bound).intent(), None, "Configured holds none");
}

#[test]
fn a_binding_that_is_not_ours_brings_its_own_assignment() {
    let known = machine(State::Configured);
    let theirs = assignment(&need("b"), terms(9));
    for at in ["a", "b"] {
        let seen = seen(State::Configured, at);
        let rebound = check(known.follow(&seen, Via::Step, Some(theirs.clone())));
        assert_eq!(rebound.cluster(), Some(&cluster(at)));
        assert_eq!(rebound.assignment(), &theirs);
    }
    let refused = known.follow(&seen(State::Configured, "b"), Via::Step, None);
    assert_eq!(problem(refused), StepProblem::OtherCluster(cluster("b")));
}

#[test]
fn a_provider_is_followed_along_edges_only() {
    for from in State::ALL {
        for to in State::ALL {
            for via in [Via::Step, Via::Rollback, Via::Adoption] {
                let followed =
                    machine(from).follow(&seen(to, "a"), via, Some(Assignment::default()));
                if from == to || from.may_become(to, via) {
                    assert_eq!(check(followed).state(), to);
                } else {
                    assert_eq!(problem(followed), StepProblem::NoEdge(to, via));
                }
            }
        }
    }
    let other = Machine::new(MachineFacts::new("m2", State::Speculative)).unwrap();
    let refused = machine(State::Speculative).follow(&other, Via::Step, None);
    assert!(matches!(problem(refused), StepProblem::OtherMachine(_)));
}

/// SH-6: wherever on its walk the provider shows it, the machine is on its way again as remembered.
#[test]
fn a_remembered_way_is_taken_up_again() {
    for kind in ActionKind::ALL {
        let committed = machine(kind.source()).commit(&action(kind)).unwrap();
        for state in [kind.source(), kind.transitional(), kind.target()] {
            let resumed = seen(state, "a").resume(
                kind,
                committed.cluster().cloned(),
                committed.assignment().clone(),
                committed.intent().cloned(),
            );
            if (kind, state) == (ActionKind::Delete, State::Speculative) {
                let breach = resumed.unwrap_err().breach;
                assert_eq!(breach, Breach::NoHost(State::Deleting));
                continue;
            }
            let resumed = check(Ok(resumed.unwrap()));
            assert_eq!(resumed.price(), price(9.0).unwrap(), "as the provider says");
            assert_eq!(resumed.state(), committed.state());
            assert_eq!(resumed.host(), committed.host());
            assert_eq!(resumed.cluster(), committed.cluster());
            assert_eq!(resumed.assignment(), committed.assignment());
            assert_eq!(resumed.intent(), committed.intent());
        }
    }
    let meant = Some(intent("b", None));
    let refused =
        seen(State::Idle, "").resume(ActionKind::Delete, None, Assignment::default(), meant);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "machine \"m1\": state Deleting cannot have an intent (model.md §1)"
    );
}

#[test]
fn a_refusal_says_what_is_in_the_way() {
    let said = |step: Result<Machine, StepRefused>| step.unwrap_err().to_string();
    assert_eq!(
        said(machine(State::Idle).commit(&action(ActionKind::Reclaim))),
        "machine m1 is Idle: Reclaim starts from Configured (DC-1)"
    );
    assert_eq!(
        said(machine(State::Idle).roll_back(ActionKind::Provision)),
        "machine m1 is Idle: Provision is rolled back from Creating (DC-7)"
    );
    assert_eq!(
        said(machine(State::Configured).roll_back(ActionKind::Restore)),
        "machine m1 is Configured: Restore is done when it is committed (RF-20)"
    );
    assert_eq!(
        said(promised(State::Draining).commit(&action(ActionKind::Restore))),
        "machine m1 is Draining: it is promised to a Need (RF-20)"
    );
    assert_eq!(
        said(machine(State::Idle).follow(&seen(State::Failed, "a"), Via::Step, None)),
        "machine m1 is Idle: it does not become Failed (ST-1)"
    );
    assert_eq!(
        said(machine(State::Idle).follow(&seen(State::Failed, "a"), Via::Rollback, None)),
        "machine m1 is Idle: it does not roll back to Failed (DC-7)"
    );
    assert_eq!(
        said(machine(State::Configured).restamp(&restamp("b"))),
        "machine m1 is Configured: it is not cluster b's (RF-7)"
    );
    assert_eq!(
        said(machine(State::Creating).arrive(Host::default)),
        "machine m1 is Creating: state Idle needs a host (ST-5)"
    );
    assert_eq!(
        said(machine(State::Idle).arrive(Host::default)),
        "machine m1 is Idle: it is on its way nowhere (ST-1)"
    );
}
