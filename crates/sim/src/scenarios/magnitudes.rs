//! How bad the old mistakes were: a defect that is merely noticed might be another one. Each is let
//! run on, with the rules that would stop it looking away, until it has done what it did in the field.

use super::Scenario;
use crate::{
    clock::{Moment, minutes, seconds},
    defect::Defect,
    dice::{Dice, Latency},
    plan::{MachinePlan, Plan, Stages, Start},
    trace::Trace,
    watch::Rule,
    world::World,
};
use bigfleet_model::{ActionKind, State};
use std::collections::BTreeSet;

fn world(name: &str, seed: u64, defect: Option<Defect>, altered: impl Fn(&mut Plan)) -> World {
    let scenario = Scenario::named(name).unwrap();
    let mut plan = scenario.plan(&mut Dice::stream(seed, 0));
    plan.blind_to = vec![
        Rule::MakeBeforeBreak,
        Rule::NoRoundTrip,
        Rule::NothingTooMuch,
        Rule::ServedInTime,
    ];
    altered(&mut plan);
    World::new(plan, seed, defect, Trace::new(false))
}

fn live(world: &World) -> u32 {
    world.clusters.iter().map(|one| one.pods.live()).sum()
}

/// Cycles, told apart by the ten seconds they fall into, in which something was reclaimed.
fn cycles_that_reclaim(world: &World) -> usize {
    let reclaims = world.log.actions.iter();
    let reclaims = reclaims.filter(|one| one.kind == ActionKind::Reclaim);
    let cycles: BTreeSet<u64> = reclaims.map(|one| one.at.0 / seconds(10)).collect();
    cycles.len()
}

/// A machine too many is reclaimed, its Pods are gone for good, so the next one is too many.
#[test]
fn bare_pods_destroy_the_demand_that_holds_the_machines() {
    for seed in 1..=5 {
        let mut world = world("bare-pods", seed, Defect::named("bare-pods"), |_| {});
        let before = live(&world);
        assert!(
            world.run_until(Moment(minutes(14))),
            "{:?}",
            world.watch.broken
        );
        let (destroyed, reclaims) = (
            before - live(&world),
            world
                .log
                .count(ActionKind::Reclaim, Moment::START, Moment::NEVER),
        );
        let cycles = cycles_that_reclaim(&world);
        let told = format!("seed {seed}: {destroyed} Pods, {reclaims} reclaims, {cycles} cycles");
        assert!(120 <= destroyed && 12 < reclaims && 5 <= cycles, "{told}");
    }
}

/// As in a fleet where whatever is decided has happened by the next cycle.
fn at_once(plan: &mut Plan) {
    plan.stages = Stages {
        create: Latency::NONE,
        configure: Latency::NONE,
        drain: Latency::NONE,
        join: Latency::NONE,
        evict: Latency::NONE,
        ..plan.stages
    };
}

/// What is served looks like surplus: the fleet is reclaimed and bootstrapped for ever.
#[test]
fn roll_ups_of_what_is_unmet_turn_the_fleet_over() {
    for seed in 1..=5 {
        let mut world = world("steady-state", seed, Defect::named("unmet-only"), at_once);
        assert!(
            world.run_until(Moment(minutes(20))),
            "{:?}",
            world.watch.broken
        );
        let window = |kind| {
            world
                .log
                .count(kind, Moment(minutes(10)), Moment(minutes(20)))
        };
        let reclaims = window(ActionKind::Reclaim);
        let acquired = window(ActionKind::Bootstrap) + window(ActionKind::Provision);
        let told = format!("seed {seed}: {reclaims} reclaims, {acquired} acquisitions");
        assert!(100 <= reclaims && 100 <= acquired, "{told}");
    }
}

/// The gangs of `gang-dwell` with nothing that serves them, and machines that take so many cycles to configure.
fn from_nothing(seed: u64, dwell: u64) -> World {
    world("gang-dwell", seed, None, |plan| {
        let free = |machine: &MachinePlan| !matches!(machine.start, Start::Serving { .. });
        plan.machines.retain(free);
        plan.stages.create = Latency::NONE;
        plan.stages.configure = Latency::Fixed(seconds(10 * dwell));
    })
}

fn serving(world: &World) -> usize {
    world.cloud.count(State::Configured)
}

/// `gang-dwell` is quiet because nothing is missing, not because its latencies do nothing.
#[test]
fn the_dwell_of_gang_dwell_engages() {
    for seed in 1..=5 {
        for dwell in [0, 2] {
            let mut world = from_nothing(seed, dwell);
            while world.log.actions.is_empty() {
                let next = world.now.after(seconds(1));
                assert!(world.run_until(next), "{:?}", world.watch.broken);
            }
            // What was decided first has been created, bootstrapped and begun, and one cycle has gone by.
            assert!(world.run_until(world.now.after(seconds(15))));
            let early = serving(&world);
            let told = format!("dwell {dwell}, seed {seed}: {early} serve");
            assert_eq!(early == 0, dwell == 2, "{told}");
            assert!(world.run_until(Moment(minutes(15))));
            assert_eq!(serving(&world), 24, "{told} at first");
        }
    }
}
