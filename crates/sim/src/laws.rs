//! The laws (docs/simulation.md): what the simulator must reproduce before its silence means anything.
//!
//! With a defect every rule looks away, so that the run goes on to its end and can be counted; without
//! one every rule watches, and none may break.

use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    defect::Defect,
    dice::{Dice, Latency},
    plan::{ClusterPlan, Plan, Stages, Weather},
    run::{Report, run_plan},
    scenarios::Scenario,
    size::Size,
    watch::Rule,
};
use bigfleet_shard_core as shard;

const NODE: Size = Size::plain(8, 32);
const UNCREDITED: Option<Defect> = Some(Defect::Shard(shard::Defect::CreatingNotCredited));

/// A cluster that wants one machine, and a Create that takes so long. Nothing else wakes a cycle.
fn one_machine(create: Latency) -> Plan {
    let mut cluster = ClusterPlan::new("a", vec![work(NODE, 1).build()]);
    cluster.roll_up_every = minutes(600);
    Plan {
        machines: pool("spec", NODE, 100).build(),
        clusters: vec![cluster],
        stages: Stages {
            create,
            configure: Latency::Between(300, 600),
            network: Latency::Fixed(1),
            list: Latency::Fixed(1),
            disk: Latency::Fixed(1),
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm: Moment(minutes(20)),
        rest_within: minutes(120),
        ..Plan::default()
    }
}

/// How a law's plan ends.
fn ends(mut plan: Plan, seed: u64, defect: Option<Defect>) -> Report {
    if defect.is_some() {
        plan.blind_to = Rule::ALL_BUT_PANIC.to_vec();
    }
    let report = run_plan("law", plan, seed, defect, false);
    assert!(report.broken.is_none(), "seed {seed}: {:?}", report.broken);
    report
}

fn bought(create: Latency, seed: u64, defect: Option<Defect>) -> u64 {
    ends(one_machine(create), seed, defect).creates
}

/// Acquisitions = ceil(latency / cycle) with the credit off: one per cycle until the first arrives. Of latencies in
/// the middle of a cycle that is exact: what waits to be seen is looked for within seconds (SH-1). One that arrives
/// as a cycle begins may be seen after it, and then there is one more.
#[test]
fn without_the_credit_every_cycle_of_a_create_buys_another() {
    for seed in 1..=10 {
        for cycles in [1, 2, 3, 6, 12] {
            let law = |latency: u64| latency.div_ceil(seconds(10));
            let whole = seconds(10) * cycles;
            for latency in [whole - seconds(6), whole - seconds(5)] {
                let bought = bought(Latency::Fixed(latency), seed, UNCREDITED);
                assert_eq!(bought, law(latency), "latency {latency} ms, seed {seed}");
            }
            for latency in [whole - 50, whole] {
                let bought = bought(Latency::Fixed(latency), seed, UNCREDITED);
                let late = law(latency) + 1;
                assert!(
                    (law(latency)..=late).contains(&bought),
                    "{latency} ms, seed {seed}"
                );
            }
        }
    }
}

/// Exactly one with it on, for any distribution.
#[test]
fn with_the_credit_one_machine_is_bought_whatever_its_latency() {
    let latencies = [
        Latency::NONE,
        Latency::Fixed(seconds(300)),
        Latency::Between(0, seconds(600)),
        Latency::LongTail(seconds(60)),
        Latency::Stragglers((1000, 2000), 500, (seconds(200), seconds(400))),
    ];
    for seed in 1..=20 {
        for latency in latencies {
            assert_eq!(bought(latency, seed, None), 1, "{latency:?}, seed {seed}");
        }
    }
}

/// Forty machines that break every twenty seconds, for half an hour: how many are bought that serve nobody, or
/// given back.
fn in_vain(create_seconds: u64, defect: Option<Defect>) -> u64 {
    let totals = (1..=4).map(|seed| {
        let mut plan = one_machine(Latency::Fixed(seconds(create_seconds)));
        plan.clusters[0] = ClusterPlan::new("a", vec![work(NODE, 40).build()]);
        plan.machines = pool("own", NODE, 40).serving(0, 0).build();
        plan.machines.extend(pool("spec", NODE, 1200).build());
        plan.weather = Weather {
            break_every: seconds(20),
            ..Weather::default()
        };
        plan.calm = Moment(minutes(30));
        let report = ends(plan, seed, defect);
        let [bootstraps, _, _, reclaims, _, _] = report.actions;
        report.creates.saturating_sub(bootstraps) + reclaims
    });
    totals.sum()
}

/// Under churn what is bought and given back in vain grows faster than the latency with the credit off, and with
/// it there is none.
#[test]
fn excess_grows_with_the_latency_only_without_the_credit() {
    assert_eq!([0, 30, 60].map(|latency| in_vain(latency, None)), [0, 0, 0]);
    let [none, half, whole] = [0, 30, 60].map(|latency| in_vain(latency, UNCREDITED));
    assert!(
        none * 2 < half && half * 2 < whole,
        "{none}, {half}, {whole}"
    );
}

/// Without own-first a Need that grows takes over machines that are another's, which buys others: machines rotate
/// at static demand, and no gang turns to another rack.
#[test]
fn without_own_first_machines_rotate_and_no_rack_does() {
    let scenario = Scenario::named("own-rack").unwrap();
    let sum = |defect: Option<Defect>| {
        let runs = (1..=5).map(|seed| {
            let plan = scenario.plan(&mut Dice::stream(seed, 0));
            let report = ends(plan, seed, defect);
            [report.actions[3], report.flips]
        });
        runs.fold([0; 2], |sum, one| [0, 1].map(|at| sum[at] + one[at]))
    };
    let defect = Defect::named("no-own-first");
    assert!(defect.is_some());
    assert_eq!(sum(None), [0, 0]);
    let [reclaims, flips] = sum(defect);
    assert!(
        0 < reclaims && flips == 0,
        "{reclaims} reclaims, {flips} flips"
    );
}
