//! The failing arm: with a defect in the engine, the fuzzer finds it and makes it small.
#![allow(
    clippy::unwrap_used,
    reason = "test code: what cannot be fails the test"
)]

use bigfleet_engine::Engine;
use bigfleet_engine_fuzz::{
    Feed, History, Mismatch, Mode, Production, Subject, Way, at_the_end, minimise,
};
use bigfleet_model::{Decision, Fleet};
use std::sync::Arc;

/// The first wrong answer, as found and as minimised.
fn caught(subject: &dyn Subject) -> (Mismatch, Mismatch) {
    for seed in 0..60 {
        let history = History {
            seed,
            steps: 60,
            mode: Mode::Few,
        };
        if let Err(mismatch) = history.run(subject) {
            let small = minimise(subject, &mismatch);
            return (*mismatch, small);
        }
    }
    panic!("the fuzzer no longer finds the defect that was put in");
}

/// What is left is wrong with the defect and right without it.
fn check_small(subject: &dyn Subject, small: &Mismatch, stops: usize, machines: usize) {
    let text = small.fleets();
    assert!(small.trail.len() <= stops, "{text}");
    for stop in &small.trail {
        let rows: usize = stop
            .fleet
            .clusters
            .values()
            .map(|cluster| cluster.needs().len())
            .sum();
        assert!(stop.fleet.machines.len() <= machines && rows <= 2, "{text}");
    }
    assert!(
        !at_the_end(subject, small.way, &small.trail).is_empty(),
        "{text}"
    );
    assert_eq!(
        at_the_end(&Production, small.way, &small.trail),
        [],
        "{text}"
    );
}

/// Forgets that a machine is held.
struct DropsAHeldMachine;

impl Subject for DropsAHeldMachine {
    fn answer(&self, _: Way, _: &Fleet, mut decision: Decision) -> Decision {
        decision.held.pop();
        decision
    }
}

#[test]
fn a_held_machine_that_is_dropped_is_missed() {
    let (found, small) = caught(&DropsAHeldMachine);
    assert_eq!(found.way, Way::Full);
    check_small(&DropsAHeldMachine, &small, 1, 2);
    assert!(small.to_string().contains("held[0]"), "{small}");
}

/// Confuses who claims which of two machines, and only when it decides step by step.
struct SwapsClaims;

impl Subject for SwapsClaims {
    fn answer(&self, way: Way, _: &Fleet, mut decision: Decision) -> Decision {
        if let (Way::Incremental(_), [first, second, ..]) = (way, &mut decision.claims[..]) {
            std::mem::swap(&mut first.need, &mut second.need);
        }
        decision
    }
}

#[test]
fn claims_that_are_swapped_are_noticed() {
    let (found, small) = caught(&SwapsClaims);
    assert!(matches!(found.way, Way::Incremental(_)), "{found}");
    check_small(&SwapsClaims, &small, 1, 2);
}

/// Does not hear that a machine was relabelled.
struct MissesLabels;

impl Subject for MissesLabels {
    fn follow(&self, engine: &mut Engine, feed: Feed, before: &Fleet, after: &Fleet) {
        let mut heard = after.clone();
        for (id, machine) in &before.machines {
            if let Some(now) = heard.machines.get_mut(id) {
                let mut facts = now.machine.clone().into_facts();
                facts.shape = Arc::clone(machine.machine.shape());
                now.machine = bigfleet_model::Machine::new(facts).unwrap();
            }
        }
        Production.follow(engine, feed, before, &heard);
    }
}

#[test]
fn a_change_that_is_not_heard_of_takes_two_fleets_to_show() {
    let (found, small) = caught(&MissesLabels);
    assert!(matches!(found.way, Way::Incremental(_)), "{found}");
    assert!(2 < found.trail.len());
    check_small(&MissesLabels, &small, 2, 2);
    assert_eq!(small.trail.len(), 2);
}

/// Gives up where two machines are to be reclaimed.
struct GivesUp;

impl Subject for GivesUp {
    fn answer(&self, way: Way, _: &Fleet, decision: Decision) -> Decision {
        let reclaims = decision
            .actions
            .iter()
            .filter(|action| action.kind.word() == "Reclaim");
        assert!(way != Way::Full || reclaims.count() < 2, "two at once");
        decision
    }
}

#[test]
fn an_assertion_that_fails_is_a_wrong_answer() {
    let (_, small) = caught(&GivesUp);
    check_small(&GivesUp, &small, 1, 2);
    assert!(
        small.to_string().contains("it panicked: two at once"),
        "{small}"
    );
}
