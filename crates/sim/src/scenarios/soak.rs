//! The soak: ten thousand cycles of demand that comes, moves and goes.

use super::Scenario;
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{Count, Gate},
    plan::{Change, ClusterPlan, Plan, Stages, Work},
    size::Size,
    world::World,
};
use bigfleet_model::State;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "soak-short",
        "a fifteenth of soak: 200 machines, six clusters, 700 cycles",
        |dice| soak(dice, 700, 6, 15),
    ),
    Scenario::large(
        "soak",
        "3,000 machines, 30 clusters, 10,000 cycles: demand is replaced and withdrawn all the time",
        |dice| soak(dice, 10_000, 30, 1),
    ),
];

const GPU: Size = Size::gpu(8, 32, 1);

fn soak(dice: &mut Dice, cycles: u64, clusters: usize, part: u32) -> Plan {
    let plans = (0..clusters).map(|number| {
        // Ten priorities stand by in each cluster; at most one of them is wanted at a time.
        let works: Vec<Work> = (0..10)
            .map(|rank| {
                let priority = (rank * 100_000 + number as i32 * 37) % 1_000_000;
                work(GPU, 0)
                    .priority(priority)
                    .penalties(8192.0, 1.0)
                    .build()
            })
            .collect();
        ClusterPlan::new(&format!("c{number:02}"), works)
    });
    let mut timeline = Vec::new();
    for step in 0..cycles / 5 {
        let when = Moment(seconds(step * 50 + 20) + dice.between(0, seconds(40)));
        let cluster = dice.below(clusters);
        let all = Change::ScaleAll {
            cluster,
            per_mille: 0,
        };
        timeline.push((when, all));
        if step % 7 != 0 {
            let (work, pods) = (dice.below(10), dice.between(1, 50) as u32);
            let wants = Change::Scale {
                cluster,
                work,
                pods,
            };
            timeline.push((when.after(1), wants));
        }
    }
    let machines = [
        pool("idle", GPU, 1000 / part).kind("g").owned(),
        pool("spec", GPU, 2000 / part).kind("g"),
    ];
    Plan {
        machines: machines.iter().flat_map(|pool| pool.build()).collect(),
        clusters: plans.collect(),
        timeline,
        stages: Stages {
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm: Moment(seconds(cycles * 10)),
        rest_within: minutes(60),
        gates: vec![
            Gate::InState(State::Failed, Count::NONE),
            Gate::Judge(the_ledger_has_all),
            Gate::Judge(as_many_serve_as_are_wanted),
        ],
        ..Plan::default()
    }
}

/// No machine is lost from the ledger, nor counted twice.
fn the_ledger_has_all(world: &World) -> Result<(), String> {
    let core = world.process().map(|process| &process.core);
    let known = core.map_or(0, |core| core.machines().count());
    if known == world.plan.machines.len() {
        Ok(())
    } else {
        Err(format!(
            "the ledger has {known} machines of {}",
            world.plan.machines.len()
        ))
    }
}

/// A Pod fills a machine: all that are wanted serve, or all there are.
fn as_many_serve_as_are_wanted(world: &World) -> Result<(), String> {
    let wanted: u32 = world.clusters.iter().map(|one| one.pods.live()).sum();
    let serve = world.cloud.count(State::Configured);
    if serve == world.cloud.len().min(wanted as usize) && wanted != 0 {
        Ok(())
    } else {
        Err(format!("{serve} machines serve, {wanted} are wanted"))
    }
}
