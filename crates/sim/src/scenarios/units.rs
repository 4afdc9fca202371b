//! Demand as clusters have it: whole units, nodes that are busier than others, dips.
//!
//! ```text
//! demand dips ─▶ drains begin ─▶ it is back within the settling time ─▶ taken back, nobody is evicted
//!                                └─ later ─▶ gone, and acquired anew
//! ```
//!
//! Operators tell what draining a node would disturb truly, late, wrongly or not at all; that decides which of
//! equals leaves, and nothing else.

use super::{Scenario, guards};
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::Dice,
    gate::{ACQUIRE, Count, Gate},
    plan::{Change, ClusterPlan, Left, Load, Plan, Strike, Telling, Work},
    size::Size,
    world::World,
};
use bigfleet_model::{ActionKind, State};

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "dip",
        "demand dips for less than a minute: every drain is taken back, and nobody is evicted",
        dip,
    ),
    Scenario::small(
        "dip-and-gone",
        "demand dips for minutes: what is drained by then is acquired anew",
        dip_and_gone,
    ),
    Scenario::small(
        "dip-and-crash",
        "demand dips for less than a minute, and the shard dies meanwhile: every Pod runs in the end",
        dip_and_crash,
    ),
    Scenario::small(
        "dip-paused",
        "demand dips, everything is paused, and it is back: drains are taken back all the same",
        dip_paused,
    ),
    Scenario::small(
        "leftovers-first",
        "demand is back as another ends: its machines are taken over, and the drains go on",
        leftovers_first,
    ),
    Scenario::small(
        "preempted-for-a-moment",
        "a machine is preempted for a Need that is gone a moment later: nobody takes it back",
        preempted_for_a_moment,
    ),
    Scenario::small(
        "emptiest-first",
        "a cluster shrinks and grows; of equal machines the one leaves that disturbs least, as far as told",
        emptiest_first,
    ),
    Scenario::small(
        "two-sizes",
        "machines of two sizes that are all needed, however busy they are: nothing leaves",
        two_sizes,
    ),
    Scenario::small(
        "dear-to-lose",
        "of two machines the one stays that is dear to lose, though the other one is busier",
        dear_to_lose,
    ),
    Scenario::small(
        "gang-at-home",
        "a machine of another rack is left over and busier than the gang's own: the gang stays together",
        gang_at_home,
    ),
    Scenario::small(
        "whole-units",
        "Pods that do not divide machines: a row of whole units gets a place for each of them",
        whole_units,
    ),
    Scenario::small(
        "whole-in-two-dimensions",
        "Pods of which a machine holds by its memory fewer than by its cpu",
        whole_in_two_dimensions,
    ),
    Scenario::small(
        "units-of-two-sizes",
        "two workloads that are one row, with units of two sizes: counted by their sum",
        units_of_two_sizes,
    ),
    Scenario::small(
        "part-of-a-unit",
        "a gang that asks for a part of a unit gets a machine that holds the whole of it",
        part_of_a_unit,
    ),
    Scenario::small(
        "whole-now-and-then",
        "rows that ask for whole units, then do not, then do, with the safety rails on",
        whole_now_and_then,
    ),
    Scenario::small(
        "outgrown",
        "Pods outgrow their machines, which stay until larger ones serve",
        outgrown,
    ),
    Scenario::small(
        "units-and-dips",
        "whole rows and others, of every telling, with dips of every length, in bad weather",
        units_and_dips,
    ),
];

const NODE: Size = guards::NODE;
const HALF: Size = Size::plain(4, 16);
/// How long an operator leaves the Pods of a node alone once it is cordoned and nobody waits for it.
const SETTLE: u64 = seconds(60);

/// A cluster with two rows whose Pods share ten nodes, five of which are each row's, and what may be had besides.
fn two_rows() -> Plan {
    // Another profile, so that neither is the other with its priority edited (RF-1).
    let second = work(HALF, 10).priority(900).kinds(&["m"]).build();
    let rows = vec![work(HALF, 10).build(), second];
    let mut cluster = ClusterPlan::new("a", rows);
    cluster.settle = SETTLE;
    cluster.node_reports = true;
    let mut made = guards::plan(vec![cluster]);
    made.machines = pool("first", NODE, 5).serving(0, 0).build();
    made.machines
        .extend(pool("second", NODE, 5).serving(0, 1).build());
    made.machines.extend(pool("idle", NODE, 4).owned().build());
    made
}

/// The second row is gone from one moment to another.
fn dips(from: u64, millis: u64) -> [(Moment, Change); 2] {
    let scale = |pods| Change::Scale {
        cluster: 0,
        work: 1,
        pods,
    };
    [(Moment(from), scale(0)), (Moment(from + millis), scale(10))]
}

fn dip(dice: &mut Dice) -> Plan {
    let mut made = two_rows();
    made.clusters[0].tells = dice.pick(&[
        Telling::Nothing,
        Telling::Truly,
        Telling::Late,
        Telling::Wrongly,
    ]);
    // Another cluster grows meanwhile: what is to be had is not what the first one may want back.
    made.clusters
        .push(ClusterPlan::new("b", vec![work(NODE, 0).build()]));
    let from = dice.between(seconds(40), seconds(60));
    made.timeline = dips(from, dice.between(seconds(14), seconds(40))).into();
    made.timeline
        .push((Moment(from + seconds(12)), guards::scale(1, 2)));
    made.gates = vec![
        Gate::Evicted(0, Count::NONE),
        Gate::ever(&[ActionKind::Restore], Count::exactly(5)),
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(5)),
        Gate::ever(ACQUIRE, Count::exactly(2)),
        Gate::Serving(0, Count::exactly(10)),
        Gate::Serving(1, Count::exactly(2)),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn dip_and_gone(dice: &mut Dice) -> Plan {
    let mut made = two_rows();
    made.clusters[0].tells = dice.pick(&[Telling::Nothing, Telling::Truly, Telling::Wrongly]);
    let from = dice.between(seconds(40), seconds(60));
    made.timeline = dips(from, dice.between(minutes(4), minutes(8))).into();
    made.gates = vec![
        Gate::ever(&[ActionKind::Restore], Count::NONE),
        Gate::ever(ACQUIRE, Count::exactly(5)),
        Gate::Serving(0, Count::exactly(10)),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn dip_and_crash(dice: &mut Dice) -> Plan {
    let mut made = two_rows();
    let from = dice.between(seconds(40), seconds(60));
    made.timeline = dips(from, dice.between(seconds(14), seconds(40))).into();
    let crash = Change::Crash {
        strike: dice.pick(&[Strike::Now, Strike::Writing]),
        disk: dice.pick(&[Left::Whole, Left::Torn]),
        millis: dice.pick(&[0, seconds(3), seconds(30)]),
    };
    let when = from + dice.between(seconds(5), seconds(60));
    made.timeline.push((Moment(when), crash));
    made.gates = vec![
        Gate::Serving(0, Count::exactly(10)),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn dip_paused(dice: &mut Dice) -> Plan {
    let mut made = two_rows();
    let from = dice.between(seconds(40), seconds(60));
    made.timeline = dips(from, seconds(30)).into();
    let pause = Change::Pause {
        millis: minutes(dice.between(2, 5)),
    };
    made.timeline.push((Moment(from + seconds(25)), pause));
    made.gates = vec![
        Gate::Evicted(0, Count::NONE),
        Gate::ever(&[ActionKind::Restore], Count::exactly(5)),
        Gate::ever(ACQUIRE, Count::NONE),
    ];
    made
}

fn leftovers_first(dice: &mut Dice) -> Plan {
    let mut made = two_rows();
    let from = dice.between(seconds(40), seconds(60));
    let [gone, back] = dips(from, dice.between(seconds(20), seconds(40)));
    // One roll-up tells both: the second row is back, and the first is gone.
    let ends = (back.0, guards::scale(0, 0));
    made.timeline = vec![gone, back, ends];
    made.gates = vec![
        Gate::ever(&[ActionKind::Restore], Count::NONE),
        Gate::ever(ACQUIRE, Count::NONE),
        Gate::Serving(0, Count::exactly(5)),
    ];
    made
}

fn preempted_for_a_moment(dice: &mut Dice) -> Plan {
    let low = work(NODE, 4).priority(10).build();
    let mut first = ClusterPlan::new("a", vec![low]);
    first.settle = SETTLE;
    let high = work(NODE, 0).priority(1_000_000).build();
    let mut made = guards::plan(vec![first, ClusterPlan::new("b", vec![high])]);
    made.machines = pool("m", NODE, 4).serving(0, 0).build();
    made.stages.evict = crate::dice::Latency::Between(seconds(20), seconds(60));
    let from = dice.between(seconds(40), seconds(60));
    made.timeline = vec![
        (Moment(from), guards::scale(1, 2)),
        (Moment(from + seconds(14)), guards::scale(1, 0)),
    ];
    made.gates = vec![
        Gate::ever(&[ActionKind::Restore], Count::NONE),
        Gate::Serving(0, Count::exactly(4)),
    ];
    made
}

fn emptiest_first(dice: &mut Dice) -> Plan {
    let rows = vec![
        work(Size::plain(2, 8), 40).build(),
        work(Size::plain(2, 8), 16).priority(900).build(),
    ];
    let mut cluster = ClusterPlan::new("a", rows);
    cluster.node_reports = true;
    cluster.settle = dice.pick(&[0, SETTLE]);
    cluster.tells = dice.pick(&[Telling::Truly, Telling::Late, Telling::Wrongly]);
    let mut made = guards::plan(vec![cluster]);
    made.machines = pool("m", NODE, 14).serving(0, 0).build();
    made.machines.extend(pool("s", NODE, 8).build());
    for _ in 0..dice.between(3, 6) {
        let when = dice.between(seconds(40), minutes(12));
        let change = Change::Scale {
            cluster: 0,
            work: dice.below(2),
            pods: dice.between(4, 40) as u32,
        };
        made.timeline.push((Moment(when), change));
    }
    made.shard.rails = dice.per_mille(300);
    made
}

fn two_sizes(dice: &mut Dice) -> Plan {
    let mut cluster = ClusterPlan::new("a", vec![work(HALF, 5).build()]);
    cluster.node_reports = true;
    cluster.tells = dice.pick(&[Telling::Truly, Telling::Wrongly]);
    let mut made = guards::plan(vec![cluster]);
    // In this order all of them are needed: 4, 8, 4 and then 8 cpu for 20.
    for (name, size) in [("m1", HALF), ("m2", NODE), ("m3", HALF), ("m4", NODE)] {
        made.machines
            .extend(pool(name, size, 1).serving(0, 0).build());
    }
    // Now and then its row is edited, so that somebody looks.
    for priority in [1001, 1002, 1003, 1004] {
        let change = Change::Priority {
            cluster: 0,
            work: 0,
            priority,
        };
        let when = dice.between(seconds(60), minutes(12));
        made.timeline.push((Moment(when), change));
    }
    made.gates = vec![
        Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        Gate::Serving(0, Count::exactly(4)),
    ];
    made
}

/// A row of its own machine beside another that ends.
fn beside(own: Work, ends: Work, tells: Telling) -> ClusterPlan {
    let mut cluster = ClusterPlan::new("a", vec![own, ends]);
    cluster.node_reports = true;
    cluster.tells = tells;
    cluster
}

fn dear_to_lose(dice: &mut Dice) -> Plan {
    let dear = work(NODE, 1).penalties(0.0, 8192.0).build();
    let cheap = work(NODE, 1).priority(2000).penalties(0.0, 0.0).build();
    let mut made = guards::plan(vec![beside(dear, cheap, Telling::Wrongly)]);
    made.machines = pool("dear", NODE, 1).serving(0, 0).build();
    made.machines
        .extend(pool("cheap", NODE, 1).serving(0, 1).build());
    let when = dice.between(seconds(40), minutes(3));
    let change = Change::Scale {
        cluster: 0,
        work: 1,
        pods: 0,
    };
    made.timeline = vec![(Moment(when), change)];
    made.gates = vec![
        Gate::Serving(0, Count::exactly(1)),
        Gate::Judge(|world| serves(world, "dear")),
    ];
    made
}

fn gang_at_home(dice: &mut Dice) -> Plan {
    let gang = work(NODE, 3).rack_gang("g").build();
    let plain = work(NODE, 2).priority(2000).build();
    let mut made = guards::plan(vec![beside(gang, plain, Telling::Wrongly)]);
    let rack = |name: &str, first| pool(name, NODE, 3).racks(1, 2, 3).starting_at(first);
    made.machines = rack("gang", 0).serving(0, 0).build();
    made.machines.extend(rack("plain", 3).serving(0, 1).build());
    made.machines.truncate(5);
    let when = dice.between(seconds(40), minutes(3));
    let change = Change::Scale {
        cluster: 0,
        work: 1,
        pods: 0,
    };
    made.timeline = vec![(Moment(when), change)];
    made.gates = vec![
        Gate::Serving(0, Count::exactly(3)),
        Gate::Judge(|world| serves(world, "gang")),
        // Not even for a moment.
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(2)),
        Gate::ever(&[ActionKind::Restore], Count::NONE),
    ];
    made
}

/// Only machines whose names begin so serve in the end.
fn serves(world: &World, prefix: &str) -> Result<(), String> {
    let serving = world.cloud.machines();
    let mut serving = serving.filter(|one| one.state == State::Configured);
    match serving.find(|one| !one.id.as_str().starts_with(prefix)) {
        Some(other) => Err(format!("{} serves in the end", other.id)),
        None => Ok(()),
    }
}

fn whole_units(dice: &mut Dice) -> Plan {
    let cluster = ClusterPlan::new("a", vec![work(Size::plain(3, 4), 10).whole().build()]);
    let mut made = guards::plan(vec![cluster]);
    made.machines = pool("s", Size::plain(4, 16), 12).build();
    let when = dice.between(minutes(3), minutes(10));
    made.timeline = vec![(Moment(when), guards::scale(0, 11))];
    made.gates = vec![
        Gate::Creates(Count::exactly(11)),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn whole_in_two_dimensions(_: &mut Dice) -> Plan {
    let cluster = ClusterPlan::new("a", vec![work(Size::plain(3, 4), 3).whole().build()]);
    let mut made = guards::plan(vec![cluster]);
    made.machines = pool("s", Size::plain(8, 6), 5).build();
    made.gates = vec![
        Gate::Creates(Count::exactly(3)),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn units_of_two_sizes(dice: &mut Dice) -> Plan {
    let pods = |cpu, count| work(Size::plain(cpu, 4), count);
    // Either may be the larger part.
    let (threes, twos) = dice.pick(&[(5, 8), (8, 3)]);
    let rows = vec![
        pods(3, threes).whole().build(),
        pods(2, twos).whole().build(),
    ];
    let mut made = guards::plan(vec![ClusterPlan::new("a", rows)]);
    made.machines = pool("s", Size::plain(4, 64), 14).build();
    let sum = 3 * threes + 2 * twos;
    made.gates = vec![Gate::Creates(Count::exactly(u64::from(sum.div_ceil(4))))];
    made
}

fn part_of_a_unit(_: &mut Dice) -> Plan {
    let mut gang = work(Size::plain(3, 3), 0).rack_gang("g").whole().build();
    gang.load = Load::Row {
        aggregate: Size::plain(10, 10).amounts(),
        unit: Size::plain(3, 3).amounts(),
    };
    let mut made = guards::plan(vec![ClusterPlan::new("a", vec![gang])]);
    made.machines = pool("enough", Size::plain(12, 64), 1).build();
    made.machines
        .extend(pool("small", Size::plain(11, 64), 1).owned().build());
    made.gates = vec![
        Gate::Serving(0, Count::exactly(1)),
        Gate::Judge(|world| serves(world, "enough")),
    ];
    made
}

fn whole_now_and_then(dice: &mut Dice) -> Plan {
    let rows = vec![
        work(Size::plain(3, 4), 20).whole().build(),
        work(Size::plain(5, 4), 6).priority(900).build(),
    ];
    let mut cluster = ClusterPlan::new("a", rows);
    cluster.settle = dice.pick(&[0, SETTLE]);
    let mut made = guards::plan(vec![cluster]);
    made.machines = pool("s", NODE, 40).build();
    made.shard.rails = true;
    for _ in 0..dice.between(4, 8) {
        let change = Change::Whole {
            cluster: 0,
            work: dice.below(2),
            whole: dice.per_mille(500),
        };
        let when = dice.between(minutes(2), minutes(14));
        made.timeline.push((Moment(when), change));
    }
    made
}

fn outgrown(dice: &mut Dice) -> Plan {
    let cluster = ClusterPlan::new("a", vec![work(HALF, 10).build()]);
    let mut made = guards::plan(vec![cluster]);
    made.machines = pool("small", HALF, 10).serving(0, 0).build();
    made.machines
        .extend(pool("large", Size::plain(32, 128), 12).build());
    let change = Change::Resize {
        cluster: 0,
        work: 0,
        each: Size::plain(32, 128),
    };
    let when = dice.between(seconds(40), minutes(5));
    made.timeline = vec![(Moment(when), change)];
    made.gates = vec![
        Gate::Serving(0, Count::exactly(10)),
        Gate::Judge(|world| serves(world, "large")),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn units_and_dips(dice: &mut Dice) -> Plan {
    let sizes = [(1, 2), (2, 8), (3, 4), (5, 8), (8, 32)];
    let cluster = |dice: &mut Dice, name: &str| {
        let mut rows = Vec::new();
        for number in 0..dice.between(1, 3) {
            let (cpu, memory) = dice.pick(&sizes);
            let pods = work(Size::plain(cpu, memory), dice.between(4, 24) as u32);
            let pods = pods.priority(dice.pick(&[10, 1000, 100_000]) + number as i32);
            let pods = match dice.below(6) {
                0 => pods.rack_gang(&format!("g{number}")),
                1 => pods.spread(1),
                _ => pods,
            };
            let pods = if dice.per_mille(500) {
                pods.whole()
            } else {
                pods
            };
            rows.push(pods.build());
        }
        ClusterPlan {
            node_reports: dice.per_mille(700),
            drain_reports: dice.per_mille(900),
            settle: dice.pick(&[0, SETTLE]),
            tells: dice.pick(&[
                Telling::Nothing,
                Telling::Truly,
                Telling::Late,
                Telling::Wrongly,
            ]),
            ..ClusterPlan::new(name, rows)
        }
    };
    let clusters = vec![cluster(dice, "a"), cluster(dice, "b")];
    let mut made = guards::plan(clusters);
    let shapes = [NODE, Size::plain(4, 16), Size::plain(16, 64)];
    for (number, size) in shapes.into_iter().enumerate() {
        let made_of = pool(&format!("m{number}"), size, dice.between(6, 16) as u32);
        let made_of = made_of.racks(2, 2, 4);
        let made_of = match dice.below(3) {
            0 => made_of.owned(),
            1 => made_of.idle(),
            _ => made_of,
        };
        made.machines.extend(made_of.build());
    }
    made.calm = Moment(minutes(25));
    for _ in 0..dice.between(3, 7) {
        let at = dice.below(2);
        let row = dice.below(made.clusters[at].works.len());
        let Load::Pods { count, .. } = made.clusters[at].works[row].load else {
            continue;
        };
        let scale = |pods| Change::Scale {
            cluster: at,
            work: row,
            pods,
        };
        let when = dice.between(minutes(2), minutes(20));
        let less = dice.between(0, u64::from(count)) as u32;
        made.timeline.push((Moment(when), scale(less)));
        let back = when + dice.pick(&[seconds(15), seconds(35), seconds(80), minutes(3)]);
        made.timeline.push((Moment(back), scale(count)));
        if dice.per_mille(400) {
            let change = Change::Whole {
                cluster: at,
                work: row,
                whole: dice.per_mille(500),
            };
            let when = dice.between(minutes(2), minutes(20));
            made.timeline.push((Moment(when), change));
        }
    }
    made
}
