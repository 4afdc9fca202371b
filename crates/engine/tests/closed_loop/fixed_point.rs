//! The statements of engine.md §20 on starts made from seeds.

use crate::{
    DECIDE,
    driver::{Latency, Loop, Tally},
    starts::{Sizes, edited, free_pool, halved, settled},
};
use bigfleet_model::{ActionKind, Fleet};
use bigfleet_testkit::generate::Generator;

/// Runs until quiet and checks what holds for every run: it becomes quiet, and no machine is drained
/// from the same Need twice.
fn run(fleet: &Fleet, latency: Latency, seed: u64) -> Loop {
    let mut run = Loop::new(DECIDE, fleet.clone(), latency, seed);
    let quiet = run.settle(1000);
    let story = run.story.join("\n");
    assert!(quiet, "seed {seed}, {latency:?}: never quiet\n{story}");
    let twice = run.left.iter().find(|(_, times)| 1 < **times);
    assert_eq!(twice, None, "seed {seed}, {latency:?}\n{story}");
    run
}

/// AT-1: a free pool costs the same at every latency, and what was acquired first stays.
#[test]
fn every_latency_acquires_the_same() {
    for sizes in [Sizes::One, Sizes::Mixed] {
        for seed in 0..100 {
            let fleet = free_pool(seed, sizes);
            let at_once = run(&fleet, Latency::Zero, seed);
            for latency in Latency::SLOW {
                let slow = run(&fleet, latency, seed);
                assert_eq!(
                    slow.tally,
                    at_once.tally,
                    "seed {seed}, {sizes:?}, {latency:?}\n{}\n---\n{}",
                    at_once.story.join("\n"),
                    slow.story.join("\n")
                );
            }
        }
    }
}

/// Where machines have one size and price, nothing is ever given up for something better.
#[test]
fn one_size_and_price_reclaims_nothing() {
    for seed in 0..200 {
        let fleet = free_pool(seed, Sizes::One);
        for latency in [Latency::Zero, Latency::SLOW[2], Latency::SLOW[4]] {
            let Tally {
                reclaimed,
                preempted,
                ..
            } = run(&fleet, latency, seed).tally;
            assert_eq!((reclaimed, preempted), (0, 0), "seed {seed}, {latency:?}");
        }
    }
}

/// D-5: at covered static demand, all Configured, nothing happens.
#[test]
fn what_is_settled_stays() {
    for seed in 0..200 {
        let fleet = settled(free_pool(seed, Sizes::Mixed));
        let tally = run(&fleet, Latency::SLOW[0], seed).tally;
        assert_eq!(tally, Tally::default(), "seed {seed}");
    }
}

/// Demand halved, then restored: each time no more than without latency.
#[test]
fn halving_and_restoring_costs_no_more_than_at_once() {
    let mut compared = 0;
    for seed in 0..60 {
        for sizes in [Sizes::One, Sizes::Mixed] {
            let full = settled(free_pool(seed, sizes));
            let shrunk = halved(full.clone());
            compared += compare(&shrunk, seed);
            let mut restored = settled(shrunk);
            restored.clusters = full.clusters;
            compared += compare(&restored, seed);
        }
    }
    assert!(120 < compared, "only {compared} starts were compared");
}

/// Whether the start could be compared. A gang that waits while machines are let go is left out:
/// machines on their way out are in no domain (RF-6), so it sees them only when they have gone.
fn compare(start: &Fleet, seed: u64) -> u32 {
    let first = DECIDE(start);
    let lets_go = first
        .actions
        .iter()
        .any(|action| action.kind == ActionKind::Reclaim);
    let gang_waits = first
        .needs
        .iter()
        .any(|verdict| !verdict.satisfied && verdict.need.row.profile.same_key().is_some());
    if lets_go && gang_waits {
        return 0;
    }
    let at_once = run(start, Latency::Zero, seed);
    for latency in Latency::SLOW {
        assert_no_more(&run(start, latency, seed), &at_once, seed, latency);
    }
    1
}

fn assert_no_more(slow: &Loop, at_once: &Loop, seed: u64, latency: Latency) {
    let (few, many) = (at_once.tally, slow.tally);
    assert!(
        many.acquired <= few.acquired
            && many.reclaimed <= few.reclaimed
            && many.preempted <= few.preempted,
        "seed {seed}, {latency:?}: {many:?}, but at once {few:?}\n{}\n---\n{}",
        at_once.story.join("\n"),
        slow.story.join("\n")
    );
}

/// Demand edited under a settled fleet: rows come, go, grow, shrink and change priority at once.
#[test]
fn edited_demand_becomes_quiet() {
    for seed in 0..80 {
        for sizes in [Sizes::One, Sizes::Mixed] {
            let fleet = edited(settled(free_pool(seed, sizes)), seed, 3);
            for latency in [Latency::Zero].into_iter().chain(Latency::SLOW) {
                run(&fleet, latency, seed);
            }
        }
    }
}

/// From any start whatever, marks, silent clusters and half-done work included.
#[test]
fn anything_becomes_quiet() {
    for seed in 0..150 {
        let fleet = Generator::new(seed).fleet();
        for latency in [Latency::Zero, Latency::SLOW[1], Latency::SLOW[4]] {
            run(&fleet, latency, seed);
        }
    }
}
