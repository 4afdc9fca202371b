//! The language against a decision made by hand.

use crate::{Fixture, check, outcome};
use bigfleet_model::{
    Action, ActionKind, Amounts, Claim, Decision, Fleet, MatchingSupply, Reason, Terms,
    UnmetReason, Verdict,
};
use std::sync::Arc;

const BEFORE: &str = "need a group=g1 cpu=8 rack=Same prio=5
                      i1 Idle cpu=4 rack=r1
                      m1 Configured a cpu=4 rack=r1 own=g1
                      b1 Configured b cpu=4 rack=r2";

/// Bootstraps i1 for the gang, is 1500 milli-cpu and 2 gpu short, and preempts b1.
fn made_by_hand(fleet: &Fleet) -> Decision {
    let need = &fleet.clusters["a"].needs()[0];
    let id = |text: &str| fleet.machines[text].machine.id().clone();
    let action = |kind, machine: &str, cluster: &str, reason| Action {
        kind,
        machine: id(machine),
        cluster: Some(bigfleet_model::ClusterId::new(cluster).unwrap()),
        purpose: Some((need.key(), Terms::default())),
        grace_seconds: 10,
        preemptor_priority: 5,
        reason,
    };
    let claim = |machine: &str| Claim {
        machine: id(machine),
        need: need.key(),
    };
    let residual = Fixture::read("need a cpu=1500m gpu=2")
        .need("a")
        .row
        .aggregate
        .clone();
    Decision {
        actions: vec![
            action(ActionKind::Bootstrap, "i1", "a", Reason::Promised),
            action(ActionKind::Preempt, "b1", "b", Reason::Inversion),
        ],
        claims: vec![claim("i1"), claim("m1")],
        held: vec![id("b1")],
        needs: vec![Verdict {
            need: Arc::new(need.clone()),
            satisfied: false,
            residual,
            claimed: 2,
            bootstrap: 0,
            provision: 0,
            same_domain: "r1".to_owned(),
            same_satisfiable: false,
            parked: false,
            victims_found: 1,
            capacity_freed: Amounts::NONE,
            unmet_reason: UnmetReason::TopologyUnsatisfiable,
            matching_supply: MatchingSupply::default(),
            same_candidates: vec![],
        }],
        ..Decision::default()
    }
}

fn check_by_hand(after: &str) {
    check(made_by_hand, BEFORE, after);
}

const ACTIONS: &str = "Bootstrap i1 for a (promised)
                       Preempt b1 from b grace 10 for a";

#[test]
fn actions_alone() {
    check_by_hand(ACTIONS);
    let lines = outcome(&made_by_hand(&Fixture::read(BEFORE).fleet));
    assert_eq!(
        lines,
        "Bootstrap i1 for a (promised)\nPreempt b1 from b grace 10 for a"
    );
}

#[test]
fn actions_and_facts() {
    check_by_hand(&format!(
        "{ACTIONS}
         claims: i1 m1
         claims a/g1: i1 m1      # the same, by its Need
         held: b1
         ended:
         restamps:
         short a/g1: gpu=2000m cpu=1.5 TOPOLOGY_UNSATISFIABLE
         short a: gpu=2 cpu=1500m
         domain a/g1: r1 unsatisfiable
         absent a/fold:g1"
    ));
}

#[test]
#[should_panic(expected = "+ Preempt b1 from b grace 10 for a")]
fn an_action_not_expected_fails() {
    check_by_hand("Bootstrap i1 for a (promised)");
}

#[test]
#[should_panic(expected = "- Delete i1")]
fn an_action_not_decided_fails() {
    check_by_hand(&format!("{ACTIONS}\nDelete i1"));
}

#[test]
#[should_panic(expected = "the decision is not the expected one")]
fn the_order_of_actions_matters() {
    check_by_hand("Preempt b1 from b grace 10 for a\nBootstrap i1 for a (promised)");
}

#[test]
#[should_panic(expected = "+ claims a/g1: i1 m1")]
fn a_wrong_claim_fails() {
    check_by_hand(&format!("{ACTIONS}\nclaims a/g1: m1"));
}

#[test]
#[should_panic(expected = "+ short a: cpu=1500m gpu=2")]
fn a_wrong_verdict_fails() {
    check_by_hand(&format!("{ACTIONS}\nsatisfied a"));
}

#[test]
#[should_panic(expected = "+ held: b1")]
fn a_wrong_list_fails() {
    check_by_hand(&format!("{ACTIONS}\nheld:"));
}

#[test]
#[should_panic(expected = "+ domain a/g1: r1 unsatisfiable")]
fn a_wrong_domain_fails() {
    check_by_hand(&format!("{ACTIONS}\ndomain a/g1: r1"));
}

#[test]
#[should_panic(expected = "no need is called a/g9")]
fn a_fact_about_nobody_fails() {
    check_by_hand(&format!("{ACTIONS}\nsatisfied a/g9"));
}
