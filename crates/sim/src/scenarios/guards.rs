//! Guards: one story per old mistake, told so that the mistake would show.
//!
//! Each is quiet as it is. With its defect switched on (`bigfleet sim mutants`) it is the place where
//! somebody objects.

use super::Scenario;
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{ACQUIRE, Count, Gate, MOVES},
    plan::{Change, ClusterPlan, Left, Load, Plan, ShardPlan, Stages, Strike},
    size::Size,
    world::World,
};
use bigfleet_model::{ActionKind, State};

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "kept-promises",
        "a machine bought for one Need goes to it, although another Need of higher priority waits",
        kept_promises,
    ),
    Scenario::small(
        "promises-over-a-crash",
        "kept-promises, and the shard dies in between: its disk says which Need the machine was bought for",
        promises_over_a_crash,
    ),
    Scenario::small(
        "own-rack",
        "a plain Need grows beside a gang whose machines it could use: it leaves them alone",
        own_rack,
    ),
    Scenario::small(
        "first-come",
        "the Need that has waited longest gets the next free machine, however often clusters roll up",
        first_come,
    ),
    Scenario::small(
        "long-drain",
        "one machine is preempted for one Need, though its drain takes many cycles",
        long_drain,
    ),
    Scenario::small(
        "bigger-and-cheaper",
        "a larger machine takes over from smaller ones, which serve until it does",
        bigger_and_cheaper,
    ),
    Scenario::small(
        "withdrawal-rails",
        "a whole cluster withdraws: the reclaim cap gives its machines back a few at a time",
        withdrawal_rails,
    ),
    Scenario::small(
        "reclaim-in-a-crash-loop",
        "the shard dies every few seconds while a cluster shrinks: the reclaim cap holds all the same",
        reclaim_in_a_crash_loop,
    ),
    Scenario::small(
        "empty-roll-ups",
        "an operator wrongly reports an empty cluster twice: the roll-up guard believes neither, and nothing is drained",
        empty_roll_ups,
    ),
    Scenario::small(
        "hasty-roll-ups",
        "an operator reports an empty cluster many times within seconds: none is believed, and nothing is drained",
        hasty_roll_ups,
    ),
    Scenario::small(
        "unit-mistake",
        "a row of the highest priority asks for a million times too much: nobody loses a machine to it",
        unit_mistake,
    ),
    Scenario::small(
        "crash-while-buying",
        "the shard dies again and again while it buys: nothing is bought twice",
        crash_while_buying,
    ),
    Scenario::small(
        "disk-lost",
        "the shard dies and its disk is gone: the provider's metadata says which gang has which machine",
        disk_lost,
    ),
    Scenario::small(
        "no-node",
        "machines that never become nodes: others replace them, and every Pod runs",
        no_node,
    ),
];

pub(super) const NODE: Size = Size::plain(8, 32);

pub(super) fn plan(clusters: Vec<ClusterPlan>) -> Plan {
    Plan {
        clusters,
        stages: Stages {
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm: Moment(minutes(15)),
        rest_within: minutes(60),
        ..Plan::default()
    }
}

pub(super) fn scale(cluster: usize, pods: u32) -> Change {
    Change::Scale {
        cluster,
        work: 0,
        pods,
    }
}

fn kept_promises(dice: &mut Dice) -> Plan {
    let low = ClusterPlan::new("low", vec![work(NODE, 4).priority(100).build()]);
    let high = ClusterPlan::new("high", vec![work(NODE, 0).priority(100_000).build()]);
    let mut made = plan(vec![low, high]);
    made.machines = pool("spec", NODE, 4).build();
    made.stages.create = Latency::Between(60_000, 90_000);
    // All there is to buy has been bought for the other one, and is on its way.
    let when = Moment(seconds(dice.between(20, 45)));
    made.timeline = vec![(when, scale(1, 4))];
    made.gates = vec![
        Gate::Judge(bootstrapped_for_whom_it_was_bought),
        Gate::Creates(Count::exactly(4)),
        Gate::Serving(1, Count::exactly(4)),
    ];
    made
}

fn promises_over_a_crash(dice: &mut Dice) -> Plan {
    let mut made = kept_promises(dice);
    let crash = Change::Crash {
        strike: Strike::Now,
        disk: Left::Whole,
        millis: dice.pick(&[0, seconds(2)]),
    };
    made.timeline
        .push((Moment(seconds(dice.between(46, 55))), crash));
    made.gates.push(Gate::Judge(each_was_taken_from_the_first));
    made
}

/// The provider drained every machine once: it served whom it was bought for before it went to the other.
fn each_was_taken_from_the_first(world: &World) -> Result<(), String> {
    match world.log.drains {
        4 => Ok(()),
        drains => Err(format!("{drains} drains, not 4")),
    }
}

/// A machine belongs to the Need it was committed to until that Need lets it go.
fn bootstrapped_for_whom_it_was_bought(world: &World) -> Result<(), String> {
    for (at, bought) in world.log.actions.iter().enumerate() {
        if bought.kind != ActionKind::Provision {
            continue;
        }
        let mut later = world.log.actions[at..].iter();
        let next =
            later.find(|one| one.machine == bought.machine && one.kind == ActionKind::Bootstrap);
        if let Some(next) = next.filter(|next| next.cluster != bought.cluster) {
            let (machine, was, is) = (&next.machine, &bought.cluster, &next.cluster);
            return Err(format!(
                "{machine} was bought for {was:?} and given to {is:?}"
            ));
        }
    }
    Ok(())
}

fn own_rack(dice: &mut Dice) -> Plan {
    let works = vec![
        work(NODE, 3).priority(5000).build(),
        work(NODE, 4).priority(100).rack_gang("g").build(),
    ];
    let mut made = plan(vec![ClusterPlan::new("a", works)]);
    let mut machines = pool("a-gang", NODE, 4).racks(1, 9, 4).serving(0, 1).build();
    let at = |name: &str, count, place| pool(name, NODE, count).racks(1, 9, 4).starting_at(place);
    machines.extend(at("p-own", 3, 4).serving(0, 0).build());
    machines.extend(at("q-spare", 4, 8).owned().build());
    machines.extend(at("r-idle", 2, 12).owned().build());
    made.machines = machines;
    let when = Moment(seconds(dice.between(60, 300)));
    made.timeline = vec![(when, scale(0, 4))];
    let drains = &[ActionKind::Reclaim, ActionKind::Preempt];
    made.gates = vec![
        Gate::ever(ACQUIRE, Count::exactly(1)),
        Gate::ever(drains, Count::NONE),
        Gate::Short(Count::NONE),
    ];
    made
}

/// Both want more than there is. A machine of a third cluster becomes free every few minutes.
fn first_come(dice: &mut Dice) -> Plan {
    let names = ["early", "later", "giver"];
    let cluster = |name: &&str| {
        let pods = if *name == "giver" { 8 } else { 0 };
        ClusterPlan::new(name, vec![work(NODE, pods).build()])
    };
    let mut made = plan(names.iter().map(cluster).collect());
    made.machines = pool("own", NODE, 8).serving(2, 0).build();
    // Early asks first, by minutes; so what is given goes to it until it has all it wants.
    made.timeline = vec![
        (Moment(seconds(20)), scale(0, 4)),
        (Moment(seconds(120)), scale(1, 4)),
    ];
    for given in 1..=4 {
        let when = Moment(seconds(180 * u64::from(given) + dice.between(0, 30)));
        made.timeline.push((when, scale(2, 8 - given)));
    }
    made.calm = Moment(minutes(20));
    made.gates = vec![
        Gate::Serving(0, Count::exactly(4)),
        Gate::Serving(1, Count::NONE),
        Gate::Short(Count::exactly(1)),
    ];
    made
}

fn long_drain(dice: &mut Dice) -> Plan {
    let low = ClusterPlan::new("low", vec![work(NODE, 10).priority(100).build()]);
    let high = ClusterPlan::new("high", vec![work(NODE, 0).priority(1000).build()]);
    let mut made = plan(vec![low, high]);
    made.machines = pool("own", NODE, 10).serving(0, 0).build();
    made.stages.evict = Latency::Between(150_000, 300_000);
    let when = Moment(seconds(dice.between(30, 120)));
    made.timeline = vec![(when, scale(1, 1))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Preempt], Count::exactly(1)),
        Gate::Serving(1, Count::exactly(1)),
        Gate::Serving(0, Count::exactly(9)),
    ];
    made
}

fn bigger_and_cheaper(dice: &mut Dice) -> Plan {
    let half = Size::plain(4, 16);
    let works = vec![work(half, 2).build()];
    let mut made = plan(vec![ClusterPlan::new("a", works)]);
    // Dear and small; one of them breaks, and the next machine at hand is cheap and large.
    let small = pool("small", half, 2).serving(0, 0);
    let small = small.tier(bigfleet_model::CapacityType::OnDemand, 3.0, 0.05);
    made.machines = small.build();
    made.machines.extend(pool("large", NODE, 1).owned().build());
    made.stages.configure = Latency::Between(60_000, 200_000);
    let when = Moment(seconds(dice.between(60, 120)));
    let (cluster, count) = (Some(0), 1);
    made.timeline = vec![(when, Change::Break { cluster, count })];
    made.gates = vec![
        Gate::Serving(0, Count::exactly(1)),
        Gate::Short(Count::NONE),
        Gate::Pending(0, Count::NONE),
    ];
    made
}

fn withdrawal_rails(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 40).build()])]);
    made.machines = pool("own", NODE, 40).serving(0, 0).build();
    made.shard = ShardPlan {
        rails: true,
        ..ShardPlan::default()
    };
    let when = Moment(seconds(dice.between(30, 120)));
    made.timeline = vec![(when, scale(0, 0))];
    made.calm = Moment(minutes(20));
    made.gates = vec![Gate::InState(State::Idle, Count::exactly(40))];
    made
}

/// Every life is long enough to hear the cluster and to reclaim, and shorter than the interval of the cap.
fn reclaim_in_a_crash_loop(dice: &mut Dice) -> Plan {
    let mut cluster = ClusterPlan::new("a", vec![work(NODE, 100).build()]);
    cluster.roll_up_every = 500;
    let mut made = plan(vec![cluster]);
    made.machines = pool("own", NODE, 100).serving(0, 0).build();
    made.shard = ShardPlan {
        rails: true,
        cycle_seconds: 20,
        ..ShardPlan::default()
    };
    made.timeline = vec![(Moment(seconds(30)), scale(0, 60))];
    let mut when = seconds(30);
    for _ in 0..20 {
        when += dice.between(seconds(9), seconds(16));
        let crash = Change::Crash {
            strike: dice.pick(&[Strike::Now, Strike::Writing, Strike::Calling]),
            disk: dice.pick(&[Left::Whole, Left::Torn]),
            millis: 0,
        };
        made.timeline.push((Moment(when), crash));
    }
    made.calm = Moment(when + seconds(30));
    made.gates = vec![
        Gate::Serving(0, Count::exactly(60)),
        Gate::InState(State::Idle, Count::exactly(40)),
    ];
    made
}

fn empty_roll_ups(dice: &mut Dice) -> Plan {
    let works = (0..12).map(|rank| work(NODE, 3).priority(100 + rank).build());
    let mut made = plan(vec![ClusterPlan::new("a", works.collect())]);
    let served = |rank: usize| pool(&format!("own{rank:02}"), NODE, 3).serving(0, rank);
    made.machines = (0..12).flat_map(|rank| served(rank).build()).collect();
    made.shard = ShardPlan {
        rails: true,
        ..ShardPlan::default()
    };
    let empty = Change::EmptyRollUps {
        cluster: 0,
        count: dice.between(1, 2) as u32,
    };
    made.timeline = vec![(Moment(seconds(dice.between(60, 120))), empty)];
    made.gates = vec![
        Gate::ever(MOVES, Count::NONE),
        Gate::Serving(0, Count::exactly(36)),
    ];
    made
}

/// Few rows and many machines; empty for less than the twenty seconds a withdrawal has to last.
fn hasty_roll_ups(dice: &mut Dice) -> Plan {
    let mut made = empty_roll_ups(dice);
    let cluster = &mut made.clusters[0];
    cluster.works.truncate(dice.between(2, 12) as usize);
    cluster.roll_up_every = dice.between(100, 500);
    let works = cluster.works.len();
    made.machines = (0..works)
        .flat_map(|rank| {
            pool(&format!("own{rank:02}"), NODE, 15)
                .serving(0, rank)
                .build()
        })
        .collect();
    for work in &mut cluster.works {
        if let Load::Pods { count, .. } = &mut work.load {
            *count = 15;
        }
    }
    for (_, change) in &mut made.timeline {
        if let Change::EmptyRollUps { count, .. } = change {
            *count = dice.between(3, 35) as u32;
        }
    }
    made.gates.pop();
    let serving = Count::exactly(works as u64 * 15);
    made.gates.push(Gate::Serving(0, serving));
    made
}

/// Wrong for a report or two, and then mended.
fn unit_mistake(dice: &mut Dice) -> Plan {
    let mut typo = work(NODE, 0).priority(1_000_000).build();
    typo.load = Load::Row {
        aggregate: NODE.amounts(),
        unit: NODE.amounts(),
    };
    let mut wrong = ClusterPlan::new("wrong", vec![typo]);
    wrong.roll_up_every = 6_000;
    let victim = ClusterPlan::new("victim", vec![work(NODE, 30).priority(100).build()]);
    let mut made = plan(vec![wrong, victim]);
    made.machines = pool("top", NODE, 1).serving(0, 0).build();
    made.machines
        .extend(pool("own", NODE, 30).serving(1, 0).build());
    made.shard = ShardPlan {
        rails: true,
        ..ShardPlan::default()
    };
    let ask = |per_mille| Change::ScaleRow {
        cluster: 0,
        work: 0,
        per_mille,
    };
    let when = seconds(dice.between(60, 120));
    let mended = when + dice.between(seconds(7), seconds(17));
    made.timeline = vec![
        (Moment(when), ask(4_000_000_000)),
        (Moment(mended), ask(1000)),
    ];
    let taken = &[ActionKind::Preempt, ActionKind::Reclaim];
    made.gates = vec![
        Gate::ever(taken, Count::NONE),
        Gate::Serving(1, Count::exactly(30)),
        Gate::Short(Count::NONE),
    ];
    made
}

fn crash_while_buying(dice: &mut Dice) -> Plan {
    let pods = dice.between(4, 16);
    let works = vec![work(NODE, pods as u32).build()];
    let mut made = plan(vec![ClusterPlan::new("a", works)]);
    made.machines = pool("spec", NODE, 60).build();
    made.stages.create = Latency::LongTail(40_000);
    for _ in 0..dice.between(1, 5) {
        let crash = Change::Crash {
            strike: dice.pick(&Strike::ALL),
            disk: dice.pick(&[Left::Whole, Left::Torn, Left::Torn]),
            millis: dice.pick(&[0, seconds(2), seconds(30)]),
        };
        made.timeline
            .push((Moment(dice.between(2_000, seconds(240))), crash));
    }
    made.gates = vec![
        Gate::Creates(Count::exactly(pods)),
        Gate::Serving(0, Count::exactly(pods)),
        Gate::Short(Count::NONE),
    ];
    made
}

/// The larger gang grew out of its rack while the other one shrank: each would do better in the other's place,
/// and neither may take it.
fn disk_lost(dice: &mut Dice) -> Plan {
    let gang = |name: &str, pods| work(NODE, pods).rack_gang(name).build();
    let cluster = ClusterPlan::new("a", vec![gang("g0", 3), gang("g1", 0)]);
    let mut made = plan(vec![cluster]);
    let rack = |name: &str, count, at| pool(name, NODE, count).racks(1, 40, 10).starting_at(at);
    made.machines = rack("near", 2, 0).owned().build();
    made.machines.extend(rack("far", 3, 10).owned().build());
    let pods = |work, pods| Change::Scale {
        cluster: 0,
        work,
        pods,
    };
    let crash = Change::Crash {
        strike: dice.pick(&[Strike::Now, Strike::Listing]),
        disk: Left::Nothing,
        millis: dice.pick(&[0, seconds(30)]),
    };
    let crashed = Moment(minutes(20) + dice.between(0, seconds(20)));
    made.timeline = vec![
        (Moment(minutes(4)), pods(1, 2)),
        (Moment(minutes(8)), pods(0, 2)),
        (Moment(minutes(12)), pods(1, 3)),
        (crashed, crash),
    ];
    made.calm = Moment(minutes(30));
    let moved = &[
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Reclaim,
    ];
    made.gates = vec![
        Gate::ever(ACQUIRE, Count::exactly(5)),
        Gate::Actions(moved, crashed, Moment::NEVER, Count::NONE),
        Gate::Short(Count::exactly(1)),
    ];
    made
}

fn no_node(dice: &mut Dice) -> Plan {
    let mut cluster = ClusterPlan::new("a", vec![work(NODE, 6).build()]);
    cluster.node_reports = true;
    let mut made = plan(vec![cluster]);
    made.machines = pool("spec", NODE, 60).build();
    made.weather.node_lost = dice.between(200, 500);
    made.calm = Moment(minutes(15));
    made.gates = vec![Gate::Pending(0, Count::NONE), Gate::Short(Count::NONE)];
    made
}
