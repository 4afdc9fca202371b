//! The closed-loop scenarios: what is decided happens, and what happened is decided on.
//!
//! Each once stood for an incident: demand that destroys itself, surplus that is none. The fleet is seeded as served; each scenario perturbs it, and
//! must come to rest at the numbers it names.

pub(super) mod gangs;

use super::Scenario;
use crate::{
    build::{Pool, pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{ACQUIRE, Count, Gate, MOVES},
    plan::{Change, ClusterPlan, MachinePlan, Plan, ShardPlan, Stages, Work},
    size::Size,
    world::World,
};
use bigfleet_model::{ActionKind, CapacityType, Holds, State};
use std::time::Duration;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "steady-state",
        "two clusters, each with two machines too many and one too few: corrected once, then no more actions",
        steady_state,
    ),
    Scenario::small(
        "bare-pods",
        "clusters with machines to spare: reclaiming them must not destroy the Pods on them",
        bare_pods,
    ),
    Scenario::small(
        "supply-exhaustion",
        "more demand than machines: the shortfall stays the same and nothing churns",
        supply_exhaustion,
    ),
    Scenario::small(
        "bound-counts",
        "Pods that fit on no single machine although the total is covered: no action is taken",
        bound_counts,
    ),
    Scenario::small(
        "bound-counts-shrinkage",
        "half of the filler Pods go: eighteen machines are reclaimed at once, and nothing else happens",
        shrinkage,
    ),
    Scenario::small(
        "cost-routing",
        "workloads that mind interruption get on-demand machines, the others the cheapest",
        cost_routing,
    ),
    Scenario::small(
        "idle-release",
        "machines that were bought and are not needed any more are given back, once",
        idle_release,
    ),
    Scenario::small(
        "release-after-shrink",
        "a burst takes owned machines, then bought ones; afterwards only the bought ones are given back",
        release_after_shrink,
    ),
    Scenario::small(
        "steady-state-rails",
        "steady-state with the safety rails on: it ends in the same state",
        |dice| with_rails(steady_state(dice)),
    ),
    Scenario::small(
        "supply-exhaustion-rails",
        "supply-exhaustion with the safety rails on: it ends in the same state",
        |dice| with_rails(supply_exhaustion(dice)),
    ),
    Scenario::small(
        "release-after-shrink-rails",
        "release-after-shrink with the safety rails on: it ends in the same state",
        |dice| with_rails(release_after_shrink(dice)),
    ),
];

/// Rails slow a fleet down, and change nothing about where it comes to rest: the gates stay what they are.
fn with_rails(mut plan: Plan) -> Plan {
    plan.shard.rails = true;
    plan
}

const TINY: Size = Size {
    cpu_milli: 200,
    memory_mib: 256,
    gpus: 0,
};
const SERVICE: Size = Size::plain(2, 8);
const GPU: Size = Size::gpu(64, 256, 8);

/// The base: 200 tiny Pods, 50 services, three rack gangs of four, per cluster.
fn works(gangs: bool) -> Vec<Work> {
    let mut works = vec![
        work(TINY, 200)
            .priority(100)
            .penalties(32.0, 64.0)
            .kinds(&["tiny"])
            .build(),
        work(SERVICE, 50).kinds(&["service"]).build(),
    ];
    if gangs {
        works.extend((0..3).map(|number| gang(number, 4)));
    }
    works
}

fn gang(number: usize, pods: u32) -> Work {
    let made = work(GPU, pods).priority(5000).penalties(8192.0, 65536.0);
    let made = made.kinds(&["a3"]);
    made.rack_gang(&format!("gang-{number}")).build()
}

fn clusters(count: usize, works: &[Work]) -> Vec<ClusterPlan> {
    let cluster = |number| ClusterPlan::new(&format!("c{number}"), works.to_vec());
    (0..count).map(cluster).collect()
}

/// Latencies that spread completions over many cycles.
fn stages(dice: &mut Dice) -> Stages {
    let create = dice.pick(&[
        Latency::NONE,
        Latency::Fixed(30_000),
        Latency::LongTail(60_000),
    ]);
    let configure = dice.pick(&[
        Latency::Between(300, 600),
        Latency::Between(4_500, 9_800),
        Latency::LongTail(30_000),
    ]);
    Stages {
        create,
        configure,
        repair: Latency::NONE,
        ..Stages::CLOUD
    }
}

fn built(pools: &[Pool]) -> Vec<MachinePlan> {
    pools.iter().flat_map(Pool::build).collect()
}

fn plan(dice: &mut Dice, clusters: Vec<ClusterPlan>, pools: &[Pool]) -> Plan {
    Plan {
        machines: built(pools),
        clusters,
        stages: stages(dice),
        calm: Moment(minutes(15)),
        rest_within: minutes(60),
        ..Plan::default()
    }
}

/// Hosts of a workload that serve a cluster from the start.
fn hosts(what: &str, size: Size, count: u32, cluster: usize, work: usize) -> Pool {
    let name = format!("{what}-c{cluster}");
    pool(&name, size, count).kind(what).serving(cluster, work)
}

fn base_pools(tiny: u32, service: u32, gangs: bool) -> Vec<Pool> {
    let mut pools = Vec::new();
    for cluster in 0..2 {
        pools.push(hosts("tiny", TINY.times(10), tiny, cluster, 0));
        pools.push(hosts("service", SERVICE.times(10), service, cluster, 1));
        if gangs {
            for number in 0..3 {
                let name = format!("a3-c{cluster}-g{number}");
                let rack = (cluster * 3 + number) * 4;
                let made = pool(&name, GPU, 4)
                    .kind("a3")
                    .racks(1, 40, 4)
                    .starting_at(rack);
                pools.push(made.serving(cluster, 2 + number));
            }
        }
    }
    for (kind, size, idle, spec) in [
        ("tiny", TINY.times(10), 3, 2),
        ("service", SERVICE.times(10), 2, 2),
        ("a3", GPU, 4, 4),
    ] {
        let place = |made: Pool, from| made.kind(kind).racks(1, 40, 4).starting_at(from);
        pools.push(place(pool(&format!("idle-{kind}"), size, idle).owned(), 80));
        pools.push(place(pool(&format!("spec-{kind}"), size, spec), 100));
    }
    pools
}

/// From here on nothing may change, where something stays short.
const WINDOW: Moment = Moment(minutes(13));

/// A shortfall that stands still, and nothing done about it.
fn standing() -> Vec<Gate> {
    vec![
        Gate::Short(Count::at_least(1)),
        Gate::ShortStands(WINDOW),
        Gate::Actions(MOVES, WINDOW, Moment::NEVER, Count::NONE),
    ]
}

fn all_bound(clusters: usize) -> Vec<Gate> {
    let mut gates = vec![Gate::Short(Count::NONE)];
    gates.extend((0..clusters).map(|cluster| Gate::Pending(cluster, Count::NONE)));
    gates
}

fn steady_state(dice: &mut Dice) -> Plan {
    let mut gates = all_bound(2);
    gates.push(Gate::InState(State::Configured, Count::exactly(74)));
    gates.push(Gate::ever(&[ActionKind::Reclaim], Count::exactly(4)));
    Plan {
        gates,
        ..plan(dice, clusters(2, &works(true)), &base_pools(22, 4, true))
    }
}

fn bare_pods(dice: &mut Dice) -> Plan {
    let mut gates = all_bound(2);
    gates.extend((0..2).map(|cluster| Gate::Live(cluster, Count::exactly(250))));
    Plan {
        gates,
        ..plan(dice, clusters(2, &works(false)), &base_pools(23, 5, false))
    }
}

fn supply_exhaustion(dice: &mut Dice) -> Plan {
    let when = Moment(seconds(dice.between(30, 200)));
    let grow = |cluster| Change::ScaleAll {
        cluster,
        per_mille: 3000,
    };
    Plan {
        timeline: vec![(when, grow(0)), (when, grow(1))],
        gates: vec![
            Gate::Short(Count::at_least(2)),
            Gate::ShortStands(WINDOW),
            Gate::Actions(MOVES, WINDOW, Moment::NEVER, Count::NONE),
            Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        ],
        ..plan(dice, clusters(2, &works(false)), &base_pools(20, 5, false))
    }
}

fn fillers() -> (Vec<Work>, Vec<Pool>) {
    let works = vec![
        work(Size::plain(1, 1), 180).build(),
        work(Size::plain(4, 2), 5).build(),
    ];
    let mut pools: Vec<Pool> = (0..2)
        .map(|cluster| hosts("m", Size::plain(10, 10), 20, cluster, 0))
        .collect();
    pools.push(pool("bait", Size::plain(10, 10), 12).owned());
    (works, pools)
}

fn bound_counts(dice: &mut Dice) -> Plan {
    let (works, pools) = fillers();
    Plan {
        gates: vec![
            Gate::NeverShort,
            Gate::Pending(0, Count::exactly(5)),
            Gate::Pending(1, Count::exactly(5)),
            Gate::Bound(0, Count::exactly(180)),
            Gate::Bound(1, Count::exactly(180)),
            Gate::Evicted(0, Count::NONE),
            Gate::Evicted(1, Count::NONE),
            Gate::ever(MOVES, Count::NONE),
        ],
        ..plan(dice, clusters(2, &works), &pools)
    }
}

fn shrinkage(dice: &mut Dice) -> Plan {
    let (works, pools) = fillers();
    let when = Moment(seconds(310));
    let shrink = |cluster| Change::Scale {
        cluster,
        work: 0,
        pods: 90,
    };
    Plan {
        timeline: vec![(when, shrink(0)), (when, shrink(1))],
        gates: vec![
            Gate::NeverShort,
            // The filler, and such of the others as sat down where filler was before its nodes went.
            Gate::Bound(0, Count(90, 95)),
            Gate::Bound(1, Count(90, 95)),
            Gate::ever(ACQUIRE, Count::NONE),
            Gate::ever(&[ActionKind::Reclaim], Count::exactly(18)),
            Gate::Actions(
                &[ActionKind::Reclaim],
                when,
                when.after(seconds(30)),
                Count::exactly(18),
            ),
            Gate::InState(State::Configured, Count::exactly(22)),
        ],
        ..plan(dice, clusters(2, &works), &pools)
    }
}

fn cost_routing(dice: &mut Dice) -> Plan {
    let each = Size::plain(4, 8);
    let minding = |name: &str, interruption: f64| {
        let made = work(each, 4).priority(100).penalties(interruption, 0.0);
        ClusterPlan::new(name, vec![made.build()])
    };
    let pools = [
        pool("dear", each, 6).tier(CapacityType::OnDemand, 1.0, 0.05),
        pool("cheap", each, 6).tier(CapacityType::OnDemand, 0.3, 0.30),
    ];
    let mut gates = all_bound(2);
    gates.push(Gate::Judge(routed));
    Plan {
        gates,
        ..plan(
            dice,
            vec![minding("tolerant", 0.0), minding("sensitive", 8.0)],
            &pools,
        )
    }
}

/// Every machine serves whom it is meant for.
fn routed(world: &World) -> Result<(), String> {
    let wrong = world.cloud.machines().find(|one| {
        let cheap = 0.1 < one.offer.interruption_probability;
        !one.cluster.is_empty() && cheap != (one.cluster == "tolerant")
    });
    match wrong {
        Some(wrong) => Err(format!("{} serves {}", wrong.id, wrong.cluster)),
        None => Ok(()),
    }
}

fn short_holds() -> ShardPlan {
    ShardPlan {
        holds: Holds {
            on_demand: Some(Duration::from_secs(120)),
            spot: Some(Duration::from_secs(60)),
        },
        ..ShardPlan::default()
    }
}

fn idle_release(dice: &mut Dice) -> Plan {
    let mut pools = base_pools(20, 5, false);
    pools.push(pool("surplus", TINY.times(10), 5).kind("tiny").idle());
    let mut gates = all_bound(2);
    gates.push(Gate::ever(ACQUIRE, Count::NONE));
    let deletes = &[ActionKind::Delete];
    gates.push(Gate::ever(deletes, Count::exactly(5)));
    Plan {
        gates,
        shard: short_holds(),
        ..plan(dice, clusters(2, &works(false)), &pools)
    }
}

fn release_after_shrink(dice: &mut Dice) -> Plan {
    let each = Size::plain(4, 8);
    let pools = [pool("own", each, 3).owned(), pool("elastic", each, 6)];
    let burst = |pods| Change::Scale {
        cluster: 0,
        work: 0,
        pods,
    };
    let timeline = vec![
        (Moment(seconds(30)), burst(7)),
        (Moment(seconds(dice.between(300, 420))), burst(0)),
    ];
    let cluster = ClusterPlan::new("a", vec![work(each, 0).build()]);
    Plan {
        timeline,
        shard: short_holds(),
        calm: Moment(minutes(25)),
        gates: vec![
            Gate::InState(State::Idle, Count::exactly(3)),
            Gate::InState(State::Speculative, Count::exactly(6)),
            Gate::Creates(Count::exactly(4)),
        ],
        ..plan(dice, vec![cluster], &pools)
    }
}
