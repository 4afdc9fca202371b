//! Random fleets, random faults: what nobody would think of.
//!
//! ```text
//! seed ─▶ shapes, tiers, racks ─▶ clusters, plain and gangs ─▶ demand that moves ─▶ faults
//! ```

use super::Scenario;
use crate::{
    build::{Pool, pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    plan::{Change, ClusterPlan, Left, Plan, ShardPlan, Stages, Strike, Weather, Work},
    size::Size,
};
use bigfleet_provider_kit::Transition;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "random",
        "a random fleet with moving demand, and no faults",
        |dice| fleet(dice, Trouble::None, false),
    ),
    Scenario::small(
        "random-weather",
        "a random fleet with lost and late messages and calls that fail",
        |dice| fleet(dice, Trouble::Weather, false),
    ),
    Scenario::small(
        "random-faults",
        "a random fleet with crashes, losses, wrong Lists, stock-outs and pauses",
        |dice| fleet(dice, Trouble::Faults, false),
    ),
    Scenario::small(
        "random-faults-rails",
        "random-faults with the safety rails on",
        |dice| fleet(dice, Trouble::Faults, true),
    ),
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    None,
    Weather,
    Faults,
}

/// Sizes of machines, by instance type.
const SHAPES: [(&str, Size); 4] = [
    ("m", Size::plain(8, 32)),
    ("l", Size::plain(16, 64)),
    ("xl", Size::plain(64, 256)),
    ("gpu", Size::gpu(64, 256, 8)),
];

fn fleet(dice: &mut Dice, trouble: Trouble, rails: bool) -> Plan {
    let clusters = dice.between(1, 4) as usize;
    let clusters: Vec<ClusterPlan> = (0..clusters).map(|number| cluster(dice, number)).collect();
    let machines = pools(dice).iter().flat_map(Pool::build).collect();
    let calm = Moment(minutes(dice.between(10, 30)));
    let mut timeline = Vec::new();
    for _ in 0..dice.between(2, 10) {
        timeline.push((sometime(dice, calm), demand(dice, &clusters)));
    }
    if trouble == Trouble::Faults {
        for _ in 0..dice.between(2, 8) {
            timeline.push((sometime(dice, calm), fault(dice, clusters.len())));
        }
    }
    Plan {
        machines,
        clusters,
        timeline,
        weather: match trouble {
            Trouble::None => Weather::default(),
            Trouble::Weather | Trouble::Faults => Weather {
                break_every: dice.pick(&[0, minutes(2), minutes(10)]),
                ..Weather::ROUGH
            },
        },
        stages: stages(dice),
        shard: ShardPlan {
            rails,
            incremental: dice.per_mille(700),
            workers: dice.pick(&[1, 4, 32]),
            actions_per_cycle: dice.pick(&[0, 0, 0, 3, 12]),
            ..ShardPlan::default()
        },
        calm,
        rest_within: minutes(60),
        ..Plan::default()
    }
}

fn sometime(dice: &mut Dice, calm: Moment) -> Moment {
    Moment(dice.between(seconds(20), calm.0 - seconds(20)))
}

fn stages(dice: &mut Dice) -> Stages {
    let create = dice.pick(&[
        Latency::NONE,
        Latency::Fixed(1_600),
        Latency::Fixed(30_000),
        Latency::LongTail(60_000),
        Latency::Stragglers((20_000, 60_000), 10, (300_000, 600_000)),
    ]);
    let configure = dice.pick(&[
        Latency::NONE,
        Latency::Between(300, 600),
        Stages::CLOUD.configure,
        Latency::LongTail(45_000),
    ]);
    Stages {
        create,
        configure,
        cycle: dice.pick(&[Latency::Between(1, 50), Latency::Between(500, 3_000)]),
        repair: Latency::Between(120_000, 600_000),
        ..Stages::CLOUD
    }
}

fn pools(dice: &mut Dice) -> Vec<Pool> {
    let mut pools = Vec::new();
    for number in 0..dice.between(2, 5) {
        let (kind, size) = dice.pick(&SHAPES);
        let (zones, racks) = (dice.between(1, 3) as usize, dice.between(1, 4) as usize);
        let block = dice.pick(&[1, 2, 4, 8]);
        let made = pool(&format!("{kind}{number}"), size, dice.between(2, 24) as u32);
        let made = made.kind(kind).racks(zones, racks, block);
        pools.push(match dice.below(5) {
            0 => made.owned(),
            1 => made.idle(),
            2 => made.spot(),
            _ => made,
        });
    }
    pools
}

fn cluster(dice: &mut Dice, number: usize) -> ClusterPlan {
    let count = dice.between(1, 4) as usize;
    let works: Vec<Work> = (0..count).map(|at| workload(dice, number, at)).collect();
    let name = ["ant", "bee", "cat", "dog"][number % 4];
    ClusterPlan {
        drain_reports: dice.per_mille(800),
        node_reports: dice.per_mille(300),
        ..ClusterPlan::new(name, works)
    }
}

fn workload(dice: &mut Dice, cluster: usize, at: usize) -> Work {
    let each = dice.pick(&[
        Size::plain(1, 2),
        Size::plain(2, 8),
        Size::plain(4, 8),
        Size::plain(8, 32),
        Size::gpu(8, 32, 1),
        Size::gpu(64, 256, 8),
    ]);
    let most = if 0 < each.gpus { 12 } else { 40 };
    let made = work(each, dice.between(0, most) as u32);
    let made = made.priority(dice.pick(&[10, 100, 1000, 100_000, 1_000_000]));
    let dollars = [0.0, 8.0, 1024.0, 8192.0];
    let made = made.penalties(dice.pick(&dollars), dice.pick(&dollars));
    let made = match dice.below(4) {
        0 => made.kinds(&["m", "l", "xl", "gpu"]),
        1 => made.kinds(&["l", "xl"]),
        _ => made,
    };
    let group = format!("g{cluster}-{at}");
    let made = match dice.below(8) {
        0 | 1 => made.rack_gang(&group),
        2 => made.zone_gang(&group),
        3 => made.spread(dice.between(1, 2) as i32),
        _ => made,
    };
    made.build()
}

fn demand(dice: &mut Dice, clusters: &[ClusterPlan]) -> Change {
    let cluster = dice.below(clusters.len());
    let work = dice.below(clusters[cluster].works.len());
    match dice.below(10) {
        0 => Change::ScaleAll {
            cluster,
            per_mille: 0,
        },
        1 | 2 => Change::ScaleAll {
            cluster,
            per_mille: dice.pick(&[250, 500, 1000, 1500]),
        },
        3 => Change::Priority {
            cluster,
            work,
            priority: dice.pick(&[10, 100, 1000, 1_000_000]),
        },
        _ => Change::Scale {
            cluster,
            work,
            pods: dice.between(0, 30) as u32,
        },
    }
}

fn fault(dice: &mut Dice, clusters: usize) -> Change {
    let cluster = dice.below(clusters);
    let millis = dice.pick(&[seconds(5), seconds(40), minutes(3), minutes(12)]);
    match dice.below(16) {
        0..=2 => Change::Crash {
            strike: dice.pick(&Strike::ALL),
            disk: dice.pick(&[
                Left::Whole,
                Left::Whole,
                Left::Torn,
                Left::Torn,
                Left::Nothing,
            ]),
            millis: dice.pick(&[0, seconds(3), seconds(60)]),
        },
        3 => Change::Twin {
            millis: dice.pick(&[seconds(5), minutes(2)]),
        },
        4 => Change::OperatorAway { cluster, millis },
        5 => Change::ProviderAway {
            millis,
            restart: dice.per_mille(500),
        },
        6 => Change::TruncatedLists {
            lists: dice.between(1, 2) as u32,
            per_mille: dice.pick(&[100, 500, 1000]),
        },
        7 => Change::StockOut {
            kind: dice.pick(&["", "m", "gpu"]).to_owned(),
            millis,
        },
        8 => Change::Break {
            cluster: None,
            count: dice.between(1, 4) as u32,
        },
        9 => Change::Vanish {
            cluster: None,
            count: dice.between(1, 4) as u32,
        },
        10 => Change::SpotWave(dice.pick(&[200, 800])),
        11 => Change::BlockDrains { cluster, millis },
        12 => Change::BlobErrors { cluster, millis },
        13 => Change::Pause { millis },
        14 => Change::EmptyRollUps {
            cluster,
            count: dice.between(1, 4) as u32,
        },
        _ => match dice.below(2) {
            0 => Change::Reprice,
            _ => Change::FailNext {
                kind: dice.pick(&Transition::ALL),
                machine: None,
                count: dice.between(1, 3) as u32,
            },
        },
    }
}
