//! The fixed point: AT-1..AT-4 of the engine, the runways, and the bounds on oscillation.
//!
//! At static demand, for every latency and every order of completion: what is bought is what is
//! missing, once; a loss buys one; nothing that serves is touched.

use super::Scenario;
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{ACQUIRE, Count, Gate},
    plan::{Change, ClusterPlan, Plan, ShardPlan, Stages, Weather},
    size::Size,
    world::World,
};
use bigfleet_model::{ActionKind, State};
use bigfleet_provider_kit::Transition;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "at-1-static",
        "a fleet from nothing: every machine is bought once, whatever the latency and the order of completion",
        at_1,
    ),
    Scenario::small("at-2-one-loss", "one machine is lost: one is bought", at_2),
    Scenario::small(
        "at-3-backlog",
        "one worker, a hundred actions, prices that move: the backlog buys nothing twice",
        at_3,
    ),
    Scenario::small(
        "at-4-failed-create",
        "one Create fails: one replacement is bought",
        at_4,
    ),
    Scenario::small(
        "runway",
        "a rack gang of seven loses one: exactly one Provision for every Create latency",
        runway,
    ),
    Scenario::small(
        "runway-churn",
        "the gang loses a machine every few cycles: each is replaced once, and none is reclaimed",
        runway_churn,
    ),
    Scenario::small(
        "runway-burst",
        "the gang loses four of its seven machines at once: none is reclaimed",
        runway_burst,
    ),
    Scenario::small(
        "loss-rate",
        "machines that serve no gang keep breaking: one is bought for each that is lost",
        loss_rate,
    ),
    Scenario::small(
        "shed-regrow",
        "demand halves and doubles twice: each shrink costs the same number of actions, then quiet",
        shed_regrow,
    ),
    Scenario::small(
        "machine-rotation",
        "a gang's machines become ready one by one beside equally good ones: it keeps the ones it has",
        machine_rotation,
    ),
];

const NODE: Size = Size::plain(8, 32);

/// Any latency from nothing to fifty cycles.
fn any_latency(dice: &mut Dice) -> Latency {
    dice.pick(&[
        Latency::NONE,
        Latency::Fixed(1_600),
        Latency::Fixed(30_000),
        Latency::Between(0, 500_000),
        Latency::LongTail(60_000),
        Latency::Stragglers((1_000, 20_000), 100, (200_000, 500_000)),
    ])
}

fn stages(dice: &mut Dice) -> Stages {
    Stages {
        create: any_latency(dice),
        configure: any_latency(dice),
        repair: Latency::NONE,
        ..Stages::CLOUD
    }
}

fn plan(dice: &mut Dice, pods: u32, slots: u32) -> Plan {
    Plan {
        machines: pool("spec", NODE, slots).build(),
        clusters: vec![ClusterPlan::new("a", vec![work(NODE, pods).build()])],
        stages: stages(dice),
        calm: Moment(minutes(30)),
        rest_within: minutes(60),
        ..Plan::default()
    }
}

/// Nothing was acquired, drained or preempted beyond this many purchases.
fn bought_once(purchases: u64) -> Vec<Gate> {
    let drains = &[ActionKind::Reclaim, ActionKind::Preempt];
    vec![
        Gate::Creates(Count::exactly(purchases)),
        Gate::ever(&[ActionKind::Provision], Count::exactly(purchases)),
        Gate::ever(drains, Count::NONE),
        Gate::Short(Count::NONE),
        Gate::Pending(0, Count::NONE),
    ]
}

fn at_1(dice: &mut Dice) -> Plan {
    let pods = dice.between(3, 25) as u32;
    let gang = dice.between(2, 6) as u32;
    let mut made = plan(dice, pods, 60);
    // Of another kind, so that no plain Pod sits down where the gang was to sit.
    made.machines
        .extend(pool("rack", NODE, 60).kind("r").racks(1, 6, 10).build());
    made.clusters[0].works = vec![
        work(NODE, pods).kinds(&["m"]).build(),
        work(NODE, gang)
            .kinds(&["r"])
            .rack_gang("g")
            .priority(5000)
            .build(),
    ];
    made.gates = bought_once(u64::from(pods + gang));
    made
}

fn at_2(dice: &mut Dice) -> Plan {
    let pods = dice.between(3, 12) as u32;
    let mut made = plan(dice, pods, 40);
    made.machines
        .extend(pool("own", NODE, pods).serving(0, 0).build());
    made.timeline = vec![loss(dice, 1)];
    made.gates = bought_once(1);
    made
}

fn loss(dice: &mut Dice, count: u32) -> (Moment, Change) {
    let when = Moment(seconds(dice.between(300, 330)));
    let cluster = Some(0);
    let change = if dice.per_mille(500) {
        Change::Break { cluster, count }
    } else {
        Change::Vanish { cluster, count }
    };
    (when, change)
}

fn at_3(dice: &mut Dice) -> Plan {
    let mut made = plan(dice, 100, 140);
    made.stages.network = Latency::Between(200, 1_500);
    made.shard = ShardPlan {
        workers: 1,
        ..ShardPlan::default()
    };
    // What would be decided now is not what was decided then.
    let moves = (1..=20).map(|number| (Moment(seconds(number * 15)), Change::Reprice));
    made.timeline = moves.collect();
    made.gates = bought_once(100);
    made
}

fn at_4(dice: &mut Dice) -> Plan {
    let pods = dice.between(3, 12);
    let mut made = plan(dice, pods as u32, 60);
    let fails = Change::FailNext {
        kind: Transition::Create,
        machine: None,
        count: 1,
    };
    made.timeline = vec![(Moment::START, fails)];
    made.gates = bought_once(pods + 1);
    made.gates
        .push(Gate::InState(State::Failed, Count::exactly(1)));
    made
}

/// One rack gang of seven that is served, with room for two hundred more in the rack.
fn gang_of_seven(dice: &mut Dice) -> Plan {
    let mut made = plan(dice, 0, 0);
    made.clusters[0].works = vec![work(NODE, 7).rack_gang("g").build()];
    made.machines = pool("own", NODE, 7).serving(0, 0).build();
    made.machines.extend(pool("spec", NODE, 200).build());
    made.stages.create = Latency::Fixed(seconds(dice.pick(&[0, 10, 20, 30, 50, 120])));
    made
}

fn runway(dice: &mut Dice) -> Plan {
    let mut made = gang_of_seven(dice);
    made.timeline = vec![loss(dice, 1)];
    made.gates = bought_once(1);
    let all = Count::exactly(2);
    made.gates.push(Gate::ever(ACQUIRE, all));
    made
}

fn runway_burst(dice: &mut Dice) -> Plan {
    let mut made = gang_of_seven(dice);
    made.timeline = vec![loss(dice, 4)];
    made.gates = bought_once(4);
    made
}

fn runway_churn(dice: &mut Dice) -> Plan {
    let mut made = gang_of_seven(dice);
    let every = dice.between(10, 30);
    let losses = (30..=90).map(|number| {
        let when = Moment(seconds(number * every));
        let (cluster, count) = (Some(0), 1);
        (when, Change::Break { cluster, count })
    });
    made.timeline = losses.collect();
    made.calm = Moment(seconds(100 * every));
    made.gates = vec![Gate::Judge(one_for_one), Gate::Short(Count::NONE)];
    made
}

fn loss_rate(dice: &mut Dice) -> Plan {
    let mut made = plan(dice, 40, 400);
    made.machines
        .extend(pool("own", NODE, 40).serving(0, 0).build());
    made.weather = Weather {
        break_every: seconds(dice.pick(&[20, 60])),
        ..Weather::default()
    };
    made.gates = vec![Gate::Judge(one_for_one), Gate::Short(Count::NONE)];
    made
}

/// Provisions per loss in [1, 1.05], reclaims per loss at most 0.05.
fn one_for_one(world: &World) -> Result<(), String> {
    let losses = world.watch.losses;
    let count = |kind| world.log.count(kind, Moment::START, Moment::NEVER);
    let (bought, drained) = (count(ActionKind::Provision), count(ActionKind::Reclaim));
    let twentieth = losses / 20;
    if losses <= bought && bought <= losses + twentieth && drained <= twentieth {
        Ok(())
    } else {
        Err(format!(
            "{losses} losses, {bought} provisions, {drained} reclaims"
        ))
    }
}

/// The moments demand moves at: down, up, down, up.
const STEPS: [u64; 4] = [seconds(600), seconds(1200), seconds(1800), seconds(2400)];

fn shed_regrow(dice: &mut Dice) -> Plan {
    let mut made = plan(dice, 40, 0);
    made.machines = pool("own", NODE, 40).serving(0, 0).build();
    made.stages.configure = Latency::LongTail(20_000);
    let levels = [500, 1000, 500, 1000];
    let steps = STEPS.iter().zip(levels).map(|(when, per_mille)| {
        let cluster = 0;
        (Moment(*when), Change::ScaleAll { cluster, per_mille })
    });
    made.timeline = steps.collect();
    made.calm = Moment(seconds(3000));
    made.gates = vec![
        Gate::Judge(each_shed_alike),
        Gate::Serving(0, Count::exactly(40)),
        Gate::Short(Count::NONE),
    ];
    made
}

/// Every shed reclaims the same, at once, and nothing is reclaimed between.
fn each_shed_alike(world: &World) -> Result<(), String> {
    let reclaims = |from: u64, until: u64| {
        world
            .log
            .count(ActionKind::Reclaim, Moment(from), Moment(until))
    };
    let sheds = [
        reclaims(STEPS[0], STEPS[0] + seconds(60)),
        reclaims(STEPS[2], STEPS[2] + seconds(60)),
    ];
    let all = reclaims(0, u64::MAX);
    if sheds == [20, 20] && all == 40 {
        Ok(())
    } else {
        Err(format!("sheds of {sheds:?} machines, {all} in all"))
    }
}

fn machine_rotation(dice: &mut Dice) -> Plan {
    let mut made = plan(dice, 0, 0);
    let gang = |name: &str| work(NODE, 5).rack_gang(name).build();
    made.clusters[0].works = vec![gang("g0"), gang("g1")];
    made.clusters
        .push(ClusterPlan::new("b", vec![gang("g0"), gang("g1")]));
    // Everything Idle at one price, two racks as good as each other: only who came first differs.
    made.machines = pool("own", NODE, 40).racks(1, 2, 20).owned().build();
    made.stages.configure = Latency::Stragglers((5_000, 60_000), 200, (60_000, 200_000));
    made.gates = vec![
        Gate::ever(ACQUIRE, Count::exactly(20)),
        Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        Gate::Short(Count::NONE),
    ];
    made
}
