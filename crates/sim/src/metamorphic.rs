//! Metamorphic checks: what a fleet is called, who is named first and how fast the clock goes must
//! not change what it costs to serve it.
//!
//! ```text
//! plan(seed) ─┬───────────────────────────▶ run ─▶ actions ─┐
//!             └─▶ renamed, reversed, slower ─▶ run ─▶ actions ─┴─▶ the same, within a bound
//! ```
//!
//! Ties end at an id, so another name is another choice: single runs differ. Where a scenario's own gates
//! fix the count it is the same to the last action; where demand moves the totals of many seeds agree.

use crate::{
    clock::Moment,
    dice::{Dice, Latency},
    plan::{Change, Plan, Stages, Start},
    run::{Report, run_plan},
    scenarios::Scenario,
};
use bigfleet_provider_kit::Offer;
use std::sync::Arc;

/// Totals of fifty seeds agree within this many in a hundred, where nothing fixes them: half of it is which
/// machines a moving demand finds free, half that graces and holds keep their length on a slower clock.
const BOUND: u64 = 15;

fn totals(name: &str, seeds: u64, altered: impl Fn(&mut Plan)) -> Vec<[u64; 6]> {
    let scenario = Scenario::named(name).unwrap();
    let run = |seed| {
        let mut plan = scenario.plan(&mut Dice::stream(seed, 0));
        altered(&mut plan);
        let Report {
            broken, actions, ..
        } = run_plan(scenario.name, plan, seed, None, false);
        assert!(broken.is_none(), "{name} {seed}: {}", broken.unwrap());
        actions
    };
    (1..=seeds).map(run).collect()
}

/// The same to the last action where gates fix it, and in sum where demand moves. How unmarked machines are
/// first dealt out to gangs is a matter of names; that it ends is not.
fn agrees(altered: impl Fn(&mut Plan) + Copy) {
    for name in [
        "at-1-static",
        "at-2-one-loss",
        "runway",
        "gang-dwell",
        "incumbency",
        "shed-regrow",
    ] {
        let (was, is) = (totals(name, 10, |_| {}), totals(name, 10, altered));
        assert_eq!(was, is, "{name}");
    }
    let sum = |all: Vec<[u64; 6]>| all.iter().flatten().sum::<u64>();
    let (was, is) = (
        sum(totals("random", 50, |_| {})),
        sum(totals("random", 50, altered)),
    );
    assert!(
        was.abs_diff(is) * 100 <= was * BOUND,
        "random: {was} actions, then {is}"
    );
    totals("gang-sweep", 24, altered);
}

/// Machines, zones and racks under names that sort the other way round.
fn renamed(plan: &mut Plan) {
    let turned = |text: &str| -> String {
        let turn = |letter: u8| match letter {
            b'0'..=b'9' => b'9' - (letter - b'0'),
            b'a'..=b'z' => b'z' - (letter - b'a'),
            other => other,
        };
        text.bytes()
            .map(|letter| char::from(turn(letter)))
            .collect()
    };
    for machine in &mut plan.machines {
        machine.id = turned(&machine.id);
        let mut offer = Offer::clone(&machine.offer);
        offer.zone = turned(&offer.zone);
        offer
            .labels
            .values_mut()
            .for_each(|value| *value = turned(value));
        machine.offer = Arc::new(offer);
    }
}

/// Clusters in the other order, with what names them by position.
fn reversed(plan: &mut Plan) {
    let last = plan.clusters.len().saturating_sub(1);
    plan.clusters.reverse();
    for machine in &mut plan.machines {
        if let Start::Serving { cluster, .. } = &mut machine.start {
            *cluster = last - *cluster;
        }
    }
    for (_, change) in &mut plan.timeline {
        match change {
            Change::Scale { cluster, .. }
            | Change::ScaleAll { cluster, .. }
            | Change::ScaleRow { cluster, .. }
            | Change::Priority { cluster, .. }
            | Change::Whole { cluster, .. }
            | Change::Resize { cluster, .. }
            | Change::OperatorAway { cluster, .. }
            | Change::BlockDrains { cluster, .. }
            | Change::EmptyRollUps { cluster, .. }
            | Change::BlobErrors { cluster, .. }
            | Change::ConfiguresFail { cluster, .. }
            | Change::InCluster { cluster, .. }
            | Change::Partition { cluster, .. } => *cluster = last - *cluster,
            Change::Break { cluster, .. } | Change::Vanish { cluster, .. } => {
                *cluster = cluster.map(|cluster| last - cluster);
            }
            Change::SpotWave(_)
            | Change::Reprice
            | Change::StockOut { .. }
            | Change::FailNext { .. }
            | Change::Crash { .. }
            | Change::Twin { .. }
            | Change::WrongDisk { .. }
            | Change::ProviderAway { .. }
            | Change::TruncatedLists { .. }
            | Change::DeletesFail { .. }
            | Change::Pause { .. }
            | Change::Drain { .. }
            | Change::Undrain { .. }
            | Change::Announce { .. }
            | Change::Withdraw => {}
        }
    }
}

const SLOWER: u64 = 2;

fn stretched(latency: Latency) -> Latency {
    let times = |(least, most)| (least * SLOWER, most * SLOWER);
    match latency {
        Latency::Fixed(millis) => Latency::Fixed(millis * SLOWER),
        Latency::Between(least, most) => Latency::Between(least * SLOWER, most * SLOWER),
        Latency::LongTail(median) => Latency::LongTail(median * SLOWER),
        Latency::Stragglers(usual, chance, slow) => {
            Latency::Stragglers(times(usual), chance, times(slow))
        }
    }
}

/// Everything takes twice as long: stages, cycles, roll-ups, the timeline.
fn slower(plan: &mut Plan) {
    let Stages {
        create,
        configure,
        drain,
        delete,
        join,
        evict,
        blob,
        network,
        stream,
        list,
        disk,
        cycle,
        repair,
    } = &mut plan.stages;
    for stage in [
        create, configure, drain, delete, join, evict, blob, network, stream, list, disk, cycle,
        repair,
    ] {
        *stage = stretched(*stage);
    }
    let later = |moment: &mut Moment| moment.0 *= SLOWER;
    plan.timeline.iter_mut().for_each(|(when, _)| later(when));
    plan.clusters
        .iter_mut()
        .for_each(|cluster| cluster.roll_up_every *= SLOWER);
    plan.shard.cycle_seconds *= SLOWER;
    plan.weather.break_every *= SLOWER;
    plan.rest_within *= SLOWER;
    later(&mut plan.calm);
    // What a scenario demands of moments is about the clock it was written for.
    plan.gates.clear();
}

#[test]
fn names_do_not_matter() {
    agrees(renamed);
}

#[test]
fn the_order_of_clusters_does_not_matter() {
    agrees(reversed);
}

#[test]
fn the_speed_of_the_clock_does_not_matter() {
    agrees(slower);
}

/// An alteration that changed nothing would agree with everything.
#[test]
fn alterations_alter() {
    let scenario = Scenario::named("random").unwrap();
    let digest = |altered: fn(&mut Plan)| {
        let mut plan = scenario.plan(&mut Dice::stream(3, 0));
        altered(&mut plan);
        run_plan("random", plan, 3, None, false).digest
    };
    let as_it_is = digest(|_| {});
    for altered in [renamed as fn(&mut Plan), reversed, slower] {
        assert_ne!(digest(altered), as_it_is);
    }
}
