//! The laws of §10.3: what the simulator must reproduce before its silence means anything.

use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    defect::Defect,
    dice::Latency,
    plan::{ClusterPlan, Plan, Stages, Weather},
    run::{Report, run_plan},
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
        blind_to: vec![Rule::NothingTooMuch],
        ..Plan::default()
    }
}

fn bought(create: Latency, seed: u64, defect: Option<Defect>) -> u64 {
    run_plan("law", one_machine(create), seed, defect, false).creates
}

/// Acquisitions = ceil(latency / cycle) + 1 with the credit off. A Create that ends between two cycles
/// may be seen by the List before the second; one that ends on a cycle may be seen one List later.
#[test]
fn without_the_credit_every_cycle_of_a_create_buys_another() {
    for seed in 1..=10 {
        for latency in [30, 60, 120, 300] {
            let bought = bought(Latency::Fixed(seconds(latency)), seed, UNCREDITED);
            let law = latency.div_ceil(10) + 1;
            let told = format!("latency {latency} s, seed {seed}: {bought}, not {law}");
            assert!((law..=law + 1).contains(&bought), "{told} or one more");
        }
        for latency in [5, 15, 25] {
            let bought = bought(Latency::Fixed(seconds(latency)), seed, UNCREDITED);
            let law = latency / 10 + 1;
            assert!(
                (law..=law + 1).contains(&bought),
                "latency {latency} s: {bought}"
            );
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

/// Forty machines that break every twenty seconds, for half an hour.
fn churn(create_seconds: u64, defect: Option<Defect>) -> (u64, u64) {
    let totals = (1..=4).map(|seed| {
        let mut plan = one_machine(Latency::Fixed(seconds(create_seconds)));
        plan.clusters[0] = ClusterPlan::new("a", vec![work(NODE, 40).build()]);
        plan.machines = pool("own", NODE, 40).serving(0, 0).build();
        plan.machines.extend(pool("spec", NODE, 600).build());
        plan.weather = Weather {
            break_every: seconds(20),
            ..Weather::default()
        };
        plan.calm = Moment(minutes(30));
        let Report {
            creates, actions, ..
        } = run_plan("law", plan, seed, defect, false);
        (creates, actions[3])
    });
    totals.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Under churn the excess grows faster than the latency with the credit off, and not at all with it.
#[test]
fn excess_grows_with_the_latency_only_without_the_credit() {
    let credited = [0, 30, 60].map(|latency| churn(latency, None).0);
    let uncredited = [0, 30, 60].map(|latency| churn(latency, UNCREDITED).0);
    let (least, most) = (credited.iter().min(), credited.iter().max());
    let flat = most
        .zip(least)
        .is_some_and(|(most, least)| most * 10 <= least * 11);
    assert!(flat, "{credited:?} within a tenth");
    let excess = |at: usize| uncredited[at].saturating_sub(credited[at]);
    assert!(
        excess(0) * 2 < excess(1) && excess(1) < excess(2),
        "{uncredited:?} against {credited:?}"
    );
}

/// Without own-first a machine on its way does not count for whom it was bought: at static demand more
/// is bought than is missing, and given back.
#[test]
fn without_own_first_more_is_bought_than_is_missing() {
    let defect = Defect::named("no-own-first");
    assert!(defect.is_some());
    let scenario = crate::Scenario::named("at-1-static").unwrap();
    let bought = |defect| {
        let runs = (1..=5).map(|seed| crate::run(&scenario, seed, defect, false));
        runs.map(|report| report.creates).sum::<u64>()
    };
    let (calm, restless) = (bought(None), bought(defect));
    assert!(
        calm + calm / 2 < restless,
        "{calm} Creates as it is, {restless} without"
    );
}
