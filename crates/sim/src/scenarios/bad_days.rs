//! Bad days: a second process, a provider or a network that does not do what it says, and the bound on the harm.
//!
//! Each is quiet as it is. With its defect switched on (`bigfleet sim mutants`) it is the place where
//! somebody objects.

use super::{
    Scenario,
    guards::{NODE, plan, scale},
};
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{ACQUIRE, Count, Gate},
    plan::{Change, ClusterPlan, Left, Plan, ShardPlan, Strike},
};
use bigfleet_model::{ActionKind, Holds, State};
use std::time::Duration;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "twins",
        "two processes of one shard at once: only the newer one acts",
        twins,
    ),
    Scenario::small(
        "wrong-disk",
        "a process is started on an empty disk, with an epoch that was used before: it does not act",
        wrong_disk,
    ),
    Scenario::small(
        "stock-out",
        "nothing can be bought for a while: every slot is usable again afterwards",
        stock_out,
    ),
    Scenario::small(
        "bad-cluster",
        "whatever is configured for one cluster fails: it uses up a few machines, and its neighbour is served",
        bad_cluster,
    ),
    Scenario::small(
        "bad-cluster-crash-loop",
        "bad-cluster, and the shard dies again and again: it uses up no more for that",
        bad_cluster_crash_loop,
    ),
    Scenario::small(
        "deletes-fail",
        "the provider deletes nothing for an hour: its hosts stay supply, and none is bought beside them",
        deletes_fail,
    ),
    Scenario::small(
        "partition",
        "every node of a cluster stops being Ready for half an hour: it is not bought a second time",
        partition,
    ),
    Scenario::small(
        "one-missing",
        "List after List lacks a machine or two, each time another: none is taken for gone",
        one_missing,
    ),
    Scenario::small(
        "half-a-list",
        "Lists lack half of the machines twice in a row: no machine is taken for gone",
        half_a_list,
    ),
];

/// The first process has work under way when the second begins, and goes on with it. What the second takes
/// from a cluster that shrinks becomes idle before the eyes of both, and each would release it after the hold.
fn twins(dice: &mut Dice) -> Plan {
    let cluster = |name: &str| ClusterPlan::new(name, vec![work(NODE, 8).build()]);
    let mut made = plan(vec![cluster("a"), cluster("b")]);
    made.machines = pool("spec", NODE, 30).build();
    made.stages.create = Latency::LongTail(20_000);
    made.stages.network = Latency::Stragglers((1, 100), 300, (5_000, 40_000));
    made.weather.answer_lost = 100;
    made.shard.holds.on_demand = Some(Duration::from_secs(20));
    for number in 0..3 {
        let when = seconds(number * 240 + 90) + dice.between(0, seconds(30));
        let millis = dice.pick(&[minutes(2), minutes(3)]);
        made.timeline.push((Moment(when), Change::Twin { millis }));
        let shrinks = dice.below(2);
        let pods = dice.between(1, 4) as u32;
        made.timeline
            .push((Moment(when + seconds(5)), scale(shrinks, pods)));
        made.timeline
            .push((Moment(when + millis), scale(shrinks, pods + 6)));
    }
    made.gates = vec![Gate::Short(Count::NONE)];
    made
}

/// What the right process bound says which epochs were used; demand grows while the wrong one runs.
fn wrong_disk(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 4).build()])]);
    made.machines = pool("own", NODE, 12).owned().build();
    made.shard = ShardPlan {
        epochs: dice.between(1, 50),
        ..ShardPlan::default()
    };
    let when = minutes(5) + dice.between(0, seconds(30));
    let millis = seconds(dice.between(40, 200));
    made.timeline = vec![
        (Moment(when), Change::WrongDisk { millis }),
        (Moment(when + seconds(1)), scale(0, 8)),
    ];
    made.gates = vec![
        Gate::ever(ACQUIRE, Count::exactly(8)),
        Gate::Serving(0, Count::exactly(8)),
        Gate::Short(Count::NONE),
    ];
    made
}

fn stock_out(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 6).build()])]);
    made.machines = pool("spec", NODE, 6).build();
    made.stages.create = Latency::Between(1_000, 10_000);
    made.stages.repair = Latency::Between(60_000, 120_000);
    let empty = Change::StockOut {
        kind: String::new(),
        millis: seconds(dice.between(60, 400)),
    };
    made.timeline = vec![(Moment::START, empty)];
    made.gates = vec![
        Gate::Serving(0, Count::exactly(6)),
        Gate::Short(Count::NONE),
    ];
    made
}

/// The neighbour grows while the other one fails, and would get nothing if the pool were used up.
fn bad_cluster(dice: &mut Dice) -> Plan {
    let cluster = |name: &str, pods| ClusterPlan::new(name, vec![work(NODE, pods).build()]);
    let mut made = plan(vec![cluster("bad", BAD_PODS as u32), cluster("good", 10)]);
    made.machines = pool("own", NODE, 60).owned().build();
    made.machines.extend(pool("spec", NODE, 60).build());
    // Over before what it may use up is used up: otherwise it would wait for somebody to repair them.
    let fails = Change::ConfiguresFail {
        cluster: 0,
        millis: seconds(dice.between(60, 200)),
    };
    made.timeline = vec![
        (Moment::START, fails),
        (Moment(seconds(dice.between(60, 120))), scale(1, 40)),
    ];
    made.gates = vec![
        Gate::InState(State::Failed, Count(1, 2 * BAD_PODS)),
        Gate::Serving(0, Count::exactly(BAD_PODS)),
        Gate::Serving(1, Count::exactly(40)),
        Gate::Short(Count::NONE),
    ];
    made
}

/// What the cluster wants whose machines fail.
const BAD_PODS: u64 = 6;

fn bad_cluster_crash_loop(dice: &mut Dice) -> Plan {
    let mut made = bad_cluster(dice);
    for _ in 0..dice.between(5, 12) {
        let crash = Change::Crash {
            strike: dice.pick(&Strike::ALL),
            disk: dice.pick(&[Left::Whole, Left::Torn]),
            millis: dice.pick(&[0, seconds(2)]),
        };
        let when = Moment(dice.between(2_000, seconds(200)));
        made.timeline.push((when, crash));
    }
    made
}

/// What the cluster let go cannot be given back, so it is there when the cluster grows again.
fn deletes_fail(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 6).build()])]);
    made.machines = pool("spec", NODE, 12).build();
    made.shard.holds = Holds {
        on_demand: Some(Duration::from_secs(60)),
        spot: Some(Duration::from_secs(60)),
    };
    let millis = minutes(60);
    made.timeline = vec![
        (Moment::START, Change::DeletesFail { millis }),
        (Moment(minutes(8)), scale(0, 2)),
        // The second try was given up as well, at 31 minutes, and the third is not due before 51.
        (Moment(seconds(dice.between(2_100, 2_700))), scale(0, 6)),
    ];
    made.calm = Moment(minutes(50));
    made.gates = vec![
        Gate::Creates(Count::exactly(6)),
        Gate::Serving(0, Count::exactly(6)),
        Gate::Short(Count::NONE),
    ];
    made
}

fn partition(dice: &mut Dice) -> Plan {
    let pods = dice.between(5, 20);
    let mut cluster = ClusterPlan::new("a", vec![work(NODE, pods as u32).build()]);
    cluster.node_reports = true;
    let mut made = plan(vec![cluster]);
    made.machines = pool("own", NODE, pods as u32).serving(0, 0).build();
    made.machines.extend(pool("spec", NODE, 40).build());
    let cut = Change::Partition {
        cluster: 0,
        millis: minutes(30),
    };
    made.timeline = vec![(Moment(seconds(dice.between(60, 300))), cut)];
    made.calm = Moment(minutes(50));
    made.gates = vec![
        Gate::ever(ACQUIRE, Count::NONE),
        Gate::Serving(0, Count::exactly(pods)),
    ];
    made
}

fn one_missing(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 20).build()])]);
    made.machines = pool("own", NODE, 20).serving(0, 0).build();
    made.machines.extend(pool("spec", NODE, 30).build());
    made.shard.incremental = false;
    let lack = Change::TruncatedLists {
        lists: 30,
        per_mille: dice.between(15, 30),
    };
    made.timeline = vec![(Moment(seconds(30)), lack)];
    let any = &[
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Reclaim,
        ActionKind::Preempt,
    ];
    made.gates = vec![
        Gate::ever(any, Count::NONE),
        Gate::Serving(0, Count::exactly(20)),
    ];
    made
}

fn half_a_list(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 30).build()])]);
    made.machines = pool("own", NODE, 30).serving(0, 0).build();
    made.machines.extend(pool("spec", NODE, 30).build());
    made.shard = ShardPlan {
        incremental: false,
        ..ShardPlan::default()
    };
    let lies = Change::TruncatedLists {
        lists: 2,
        per_mille: 500,
    };
    made.timeline = vec![(Moment(seconds(dice.between(60, 300))), lies)];
    let kinds = &[
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Reclaim,
    ];
    made.gates = vec![
        Gate::ever(kinds, Count::NONE),
        Gate::Serving(0, Count::exactly(30)),
    ];
    made
}
