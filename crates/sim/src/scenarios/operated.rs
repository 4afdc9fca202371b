//! Operated: clusters with the real operator and the real pod controller, Pods one by one, and what can go wrong there.
//!
//! Each ends with every Pod that some machine could host running, no Node or UpcomingNode left of a machine that left, no
//! Node cordoned that nobody drains, and an hour in which nobody writes anything.

use super::Scenario;
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    cluster_side::{
        settings::{
            ApiWeather, ClusterChange, KubernetesPlan, OperatorStrike, Placement, PodRules,
        },
        streams::StreamWeather,
    },
    dice::{Dice, Latency},
    gate::{Count, Gate},
    plan::{Change, ClusterPlan, Left, MachinePlan, Plan, Stages, Strike, Work},
    size::Size,
    watch::Rule,
};
use bigfleet_model::ActionKind;
use std::sync::Arc;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "cluster-ramp",
        "a real operator: Pods come and most of them go again; nodes are drained one by one and given back",
        cluster_ramp,
    ),
    Scenario::small(
        "ten-threes",
        "ten Pods of 3 cpu on machines of 4: sums ask for eight machines, and in the end ten serve",
        ten_threes,
    ),
    Scenario::small(
        "spares-refused",
        "ten-threes, and the API server is busy: no spare is asked for before it is on record",
        spares_refused,
    ),
    Scenario::small(
        "cluster-rollover",
        "a deployment is rolled over, one Pod after another, while a budget keeps most of them",
        cluster_rollover,
    ),
    Scenario::small(
        "cluster-dip",
        "Pods go and are back before drains have settled: nobody is evicted",
        cluster_dip,
    ),
    Scenario::small(
        "dip-unheard",
        "cluster-dip, and the session breaks as the drains are taken back: the machines serve again all the same",
        dip_unheard,
    ),
    Scenario::small(
        "dip-and-killed",
        "cluster-dip, and the operator dies in between: another process takes back what the first had cordoned",
        dip_and_killed,
    ),
    Scenario::small(
        "left-unheard",
        "machines vanish while the operator cannot reach the shard: nothing of them is left",
        left_unheard,
    ),
    Scenario::small(
        "operator-killed",
        "the operator dies again and again, at any moment and at those that matter",
        operator_killed,
    ),
    Scenario::small(
        "killed-and-alone",
        "the operator dies while it evicts, and its successor cannot reach the shard: it evicts nobody",
        killed_and_alone,
    ),
    Scenario::small(
        "two-operators",
        "two processes of an operator, of which one stands still, dies, and is cut off: one acts at a time",
        two_operators,
    ),
    Scenario::small(
        "watch-faults",
        "watches break, are gone, lag, and lists end too soon: demand is that of a whole list",
        watch_faults,
    ),
    Scenario::small(
        "api-refusals",
        "the API server refuses, throttles, fails, forgets to answer, and is away for a minute",
        api_refusals,
    ),
    Scenario::small(
        "shard-restarts",
        "the shard dies at any moment beside a real operator, and once without its disk",
        shard_restarts,
    ),
    Scenario::small(
        "bad-cloud",
        "machines break, vanish, fail on their way and never become nodes beside a real operator",
        bad_cloud,
    ),
    Scenario::small(
        "requests-wiped",
        "the store loses every request, though the Pods are there: no machine is given back",
        requests_wiped,
    ),
    Scenario::small(
        "cluster-cut-off",
        "every node of a cluster falls silent for some minutes: none is told as lost",
        cluster_cut_off,
    ),
    Scenario::small(
        "persons-cordon",
        "a person cordons nodes before the operator does, and they stay so",
        persons_cordon,
    ),
    Scenario::small(
        "precious-pods",
        "every node has a Pod that must not be disturbed: what can wait waits until they are gone",
        precious_pods,
    ),
    Scenario::small(
        "hopeless-pods",
        "a Pod that no node helps: what is tried for it is given back",
        hopeless_pods,
    ),
    Scenario::small(
        "pods-apart",
        "small Pods of which no node may have two: each gets a node",
        pods_apart,
    ),
    Scenario::small(
        "short-cluster",
        "too few machines: who waits is told so, and who runs is not",
        short_cluster,
    ),
    Scenario::small(
        "cluster-weather",
        "a cluster drawn at random, and everything above at once",
        cluster_weather,
    ),
];

const NODE: Size = Size::plain(4, 16);
const ONE: Size = Size::plain(1, 2);

/// What goes wrong with calls in bad weather.
const BAD_API: ApiWeather = ApiWeather {
    conflict: 60,
    throttled: 60,
    failed: 60,
    answer_lost: 60,
};

const BAD_STREAMS: StreamWeather = StreamWeather {
    breaks_every: seconds(60),
    gone: 300,
    list_cut: 300,
};

fn operated(works: Vec<Work>, kubernetes: KubernetesPlan) -> ClusterPlan {
    ClusterPlan {
        kubernetes: Some(kubernetes),
        ..ClusterPlan::new("a", works)
    }
}

/// The provider says what Pods can use of its machines: a shard that counts more than Nodes have takes Pods for served
/// that have no room.
fn plan(cluster: ClusterPlan, machines: u32) -> Plan {
    let usable = cluster.kubernetes.as_ref().map_or(1000, |one| one.usable);
    Plan {
        machines: with_allocatable(pool("spec", NODE, machines).build(), usable),
        clusters: vec![cluster],
        stages: Stages {
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        calm: Moment(minutes(40)),
        rest_within: minutes(8 * 60),
        ..Plan::default()
    }
}

fn at(minute: u64, change: Change) -> (Moment, Change) {
    (Moment(minutes(minute)), change)
}

fn at_second(second: u64, change: Change) -> (Moment, Change) {
    (Moment(seconds(second)), change)
}

fn scale(pods: u32) -> Change {
    Change::Scale {
        cluster: 0,
        work: 0,
        pods,
    }
}

fn in_cluster(what: ClusterChange) -> Change {
    Change::InCluster { cluster: 0, what }
}

fn kill(strike: OperatorStrike, millis: u64) -> Change {
    in_cluster(ClusterChange::KillOperator { strike, millis })
}

fn budget(at_least: u32) -> Vec<PodRules> {
    vec![PodRules {
        at_least,
        ..PodRules::default()
    }]
}

/// Twenty-four Pods of one cpu from minute 5 on, six from minute 20 on.
fn ramp(kubernetes: KubernetesPlan) -> Plan {
    let works = vec![work(ONE, 4).build()];
    let mut made = plan(operated(works, kubernetes), 20);
    made.timeline = vec![at(5, scale(24)), at(20, scale(6))];
    made
}

fn cluster_ramp(dice: &mut Dice) -> Plan {
    ramp(KubernetesPlan {
        placement: dice.pick(&[Placement::FirstFit, Placement::LeastAllocated]),
        nodes_are_labelled: dice.per_mille(500),
        ..KubernetesPlan::default()
    })
}

/// Machines of which the provider says what Pods can use of them.
fn with_allocatable(machines: Vec<MachinePlan>, usable: i64) -> Vec<MachinePlan> {
    let offer = |machine: &MachinePlan| {
        let mut offer = machine.offer.as_ref().clone();
        offer.allocatable = NODE.part(usable).texts();
        Arc::new(offer)
    };
    let shared = machines.first().map(offer);
    let said = |mut machine: MachinePlan| {
        machine.offer = shared.clone().unwrap_or(machine.offer);
        machine
    };
    machines.into_iter().map(said).collect()
}

fn threes(kubernetes: KubernetesPlan) -> Plan {
    let works = vec![work(Size::plain(3, 2), 10).build()];
    let mut made = plan(operated(works, kubernetes), 16);
    made.gates = vec![Gate::Serving(0, Count::exactly(10))];
    made
}

fn ten_threes(dice: &mut Dice) -> Plan {
    threes(KubernetesPlan {
        placement: dice.pick(&[Placement::FirstFit, Placement::LeastAllocated]),
        ..KubernetesPlan::default()
    })
}

fn spares_refused(_: &mut Dice) -> Plan {
    let mut made = threes(KubernetesPlan {
        api: ApiWeather {
            throttled: 400,
            ..BAD_API
        },
        ..KubernetesPlan::default()
    });
    made.gates.clear();
    made
}

fn cluster_rollover(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        pods: budget(4),
        placement: dice.pick(&[Placement::FirstFit, Placement::LeastAllocated]),
        ..KubernetesPlan::default()
    });
    made.timeline
        .push(at(12, in_cluster(ClusterChange::Rollover { work: 0 })));
    made.timeline
        .push(at(22, in_cluster(ClusterChange::Rollover { work: 0 })));
    made
}

/// Most Pods go at minute 20, and are back half a minute later.
fn dip(kubernetes: KubernetesPlan) -> Plan {
    let mut made = ramp(kubernetes);
    made.timeline.push(at_second(20 * 60 + 35, scale(24)));
    made
}

fn cluster_dip(_: &mut Dice) -> Plan {
    let mut made = dip(KubernetesPlan::default());
    made.gates = vec![Gate::Evicted(0, Count::NONE)];
    made
}

fn dip_unheard(dice: &mut Dice) -> Plan {
    let mut made = dip(KubernetesPlan::default());
    let second = dice.between(20 * 60 + 37, 20 * 60 + 50);
    let what = ClusterChange::ShardUnreachable {
        millis: seconds(dice.between(8, 20)),
    };
    made.timeline.push(at_second(second, in_cluster(what)));
    made
}

fn dip_and_killed(dice: &mut Dice) -> Plan {
    let mut made = dip(KubernetesPlan::default());
    let second = dice.between(20 * 60 + 15, 20 * 60 + 50);
    let back = seconds(dice.between(1, 30));
    made.timeline
        .push(at_second(second, kill(OperatorStrike::Now, back)));
    made
}

fn left_unheard(_: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan::default());
    let away = ClusterChange::ShardUnreachable { millis: minutes(5) };
    made.timeline = vec![
        at(5, scale(24)),
        at(20, in_cluster(away)),
        at_second(
            21 * 60,
            Change::Vanish {
                cluster: Some(0),
                count: 2,
            },
        ),
    ];
    made
}

fn operator_killed(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        pods: budget(4),
        ..KubernetesPlan::default()
    });
    made.timeline.push(at(26, scale(20)));
    made.timeline.push(at(32, scale(5)));
    for _ in 0..8 {
        let strike = dice.pick(&OperatorStrike::ALL);
        let when = Moment(dice.between(minutes(4), minutes(38)));
        let back = dice.between(500, 40_000);
        made.timeline.push((when, kill(strike, back)));
    }
    made
}

fn killed_and_alone(_: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        pods: budget(5),
        ..KubernetesPlan::default()
    });
    let away = ClusterChange::ShardUnreachable { millis: minutes(6) };
    made.timeline
        .push(at_second(19 * 60, kill(OperatorStrike::Evicting, 3_000)));
    made.timeline
        .push(at_second(21 * 60 + 10, in_cluster(away)));
    made
}

fn two_operators(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        operators: 2,
        pods: budget(3),
        ..KubernetesPlan::default()
    });
    made.timeline.push(at(27, scale(16)));
    made.timeline.push(at(33, scale(4)));
    for _ in 0..4 {
        let when = Moment(dice.between(minutes(4), minutes(38)));
        let millis = seconds(dice.between(5, 40));
        let stop = ClusterChange::StopOperator { millis };
        made.timeline.push((when, in_cluster(stop)));
        let when = Moment(dice.between(minutes(4), minutes(38)));
        let strike = dice.pick(&OperatorStrike::ALL);
        made.timeline.push((when, kill(strike, seconds(30))));
        let half_open = dice.per_mille(500);
        let breaks = ClusterChange::SessionBreaks { half_open };
        let when = Moment(dice.between(minutes(4), minutes(38)));
        made.timeline.push((when, in_cluster(breaks)));
    }
    made
}

fn watch_faults(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        streams: BAD_STREAMS,
        ..KubernetesPlan::default()
    });
    made.timeline.push(at(27, scale(16)));
    for _ in 0..3 {
        let when = Moment(dice.between(minutes(4), minutes(36)));
        made.timeline
            .push((when, in_cluster(ClusterChange::WatchesGone)));
        let when = Moment(dice.between(minutes(4), minutes(36)));
        let millis = seconds(dice.between(20, 200));
        let stale = ClusterChange::StaleWatches { millis };
        made.timeline.push((when, in_cluster(stale)));
    }
    made
}

fn api_refusals(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        api: BAD_API,
        pods: budget(4),
        ..KubernetesPlan::default()
    });
    made.timeline.push(at(27, scale(16)));
    let when = Moment(dice.between(minutes(4), minutes(36)));
    let away = ClusterChange::ApiAway {
        millis: seconds(60),
    };
    made.timeline.push((when, in_cluster(away)));
    made
}

fn shard_restarts(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan::default());
    made.timeline.push(at(27, scale(16)));
    for number in 0..5 {
        let when = Moment(dice.between(minutes(4), minutes(36)));
        let disk = match number {
            0 => Left::Nothing,
            _ => dice.pick(&[Left::Whole, Left::Torn]),
        };
        let crash = Change::Crash {
            strike: dice.pick(&Strike::ALL),
            disk,
            millis: seconds(dice.between(1, 60)),
        };
        made.timeline.push((when, crash));
    }
    made
}

fn bad_cloud(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan {
        nodes_are_labelled: dice.per_mille(500),
        ..KubernetesPlan::default()
    });
    made.stages.repair = Stages::CLOUD.repair;
    made.weather.stage_failed = 80;
    made.weather.node_lost = 60;
    made.weather.answer_lost = 40;
    for _ in 0..2 {
        let (cluster, count) = (Some(0), 1);
        let when = Moment(dice.between(minutes(6), minutes(34)));
        made.timeline.push((when, Change::Break { cluster, count }));
        let when = Moment(dice.between(minutes(6), minutes(34)));
        made.timeline
            .push((when, Change::Vanish { cluster, count }));
        let when = Moment(dice.between(minutes(6), minutes(34)));
        let away = Change::ProviderAway {
            millis: seconds(40),
            restart: dice.per_mille(500),
        };
        made.timeline.push((when, away));
    }
    made
}

fn requests_wiped(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan::default());
    let wiped = ClusterChange::WipeRequests {
        millis: seconds(dice.between(30, 200)),
    };
    made.timeline = vec![at(5, scale(24)), at(20, in_cluster(wiped))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        Gate::Evicted(0, Count::NONE),
    ];
    made
}

fn cluster_cut_off(dice: &mut Dice) -> Plan {
    let mut made = ramp(KubernetesPlan::default());
    let millis = seconds(dice.between(60, 400));
    made.timeline = vec![
        at(5, scale(24)),
        at(20, Change::Partition { cluster: 0, millis }),
    ];
    made.gates = vec![Gate::Evicted(0, Count::NONE)];
    made
}

fn persons_cordon(_: &mut Dice) -> Plan {
    let mut made = dip(KubernetesPlan::default());
    let cordons = ClusterChange::PersonCordons { count: 3 };
    made.timeline.push(at(15, in_cluster(cordons)));
    made.timeline
        .push(at(36, in_cluster(ClusterChange::PersonUncordons)));
    made
}

fn precious_pods(_: &mut Dice) -> Plan {
    let precious = PodRules {
        are_precious: true,
        ..PodRules::default()
    };
    let half = Size {
        cpu_milli: 1_500,
        memory_mib: 1_024,
        gpus: 0,
    };
    let works = vec![work(ONE, 11).priority(900).build(), work(half, 6).build()];
    let kubernetes = KubernetesPlan {
        pods: vec![PodRules::default(), precious],
        ..KubernetesPlan::default()
    };
    let mut made = plan(operated(works, kubernetes), 14);
    made.timeline = vec![
        at(15, scale(0)),
        at(
            34,
            Change::Scale {
                cluster: 0,
                work: 1,
                pods: 0,
            },
        ),
    ];
    made
}

fn hopeless_pods(_: &mut Dice) -> Plan {
    let works = vec![work(ONE, 2).build(), work(ONE, 1).priority(900).build()];
    let hopeless = PodRules {
        are_hopeless: true,
        ..PodRules::default()
    };
    let kubernetes = KubernetesPlan {
        pods: vec![PodRules::default(), hopeless],
        ..KubernetesPlan::default()
    };
    let mut made = plan(operated(works, kubernetes), 12);
    let (from, until) = (Moment::START, Moment(minutes(15)));
    let soon = Gate::Actions(&[ActionKind::Reclaim], from, until, Count::at_least(1));
    made.gates = vec![Gate::Serving(0, Count(1, 2)), soon];
    made
}

fn pods_apart(_: &mut Dice) -> Plan {
    let works = vec![work(Size::plain(1, 1), 6).build()];
    let apart = PodRules {
        are_apart: true,
        ..PodRules::default()
    };
    let kubernetes = KubernetesPlan {
        pods: vec![apart],
        ..KubernetesPlan::default()
    };
    let mut made = plan(operated(works, kubernetes), 12);
    made.gates = vec![Gate::Serving(0, Count::exactly(6))];
    made
}

fn short_cluster(_: &mut Dice) -> Plan {
    let works = vec![work(Size::plain(3, 2), 4).build()];
    let mut made = plan(operated(works, KubernetesPlan::default()), 4);
    made.timeline = vec![at(10, scale(8))];
    made
}

fn cluster_weather(dice: &mut Dice) -> Plan {
    let each = dice.pick(&[ONE, Size::plain(2, 4), Size::plain(3, 6)]);
    let works = vec![
        work(each, dice.between(2, 10) as u32).build(),
        work(ONE, dice.between(0, 8) as u32).priority(2000).build(),
    ];
    let rules = PodRules {
        at_least: dice.between(0, 2) as u32,
        ..PodRules::default()
    };
    let kubernetes = KubernetesPlan {
        operators: dice.between(1, 2) as u32,
        placement: dice.pick(&[Placement::FirstFit, Placement::LeastAllocated]),
        streams: BAD_STREAMS,
        api: BAD_API,
        pods: vec![rules],
        nodes_are_labelled: dice.per_mille(500),
        ..KubernetesPlan::default()
    };
    let mut made = plan(operated(works, kubernetes), 24);
    made.weather.stage_failed = 20;
    // A process that dies or loses its lease no longer knows whose Nodes it waited for to fall silent.
    made.blind_to = vec![Rule::NoNodeLeaks];
    for _ in 0..12 {
        let when = Moment(dice.between(minutes(3), minutes(38)));
        let change = random_change(dice);
        made.timeline.push((when, change));
    }
    made
}

fn random_change(dice: &mut Dice) -> Change {
    let millis = seconds(dice.between(5, 90));
    match dice.below(13) {
        0 | 1 => scale(dice.between(0, 12) as u32),
        2 => Change::Scale {
            cluster: 0,
            work: 1,
            pods: dice.between(0, 10) as u32,
        },
        3 => kill(dice.pick(&OperatorStrike::ALL), millis),
        4 => in_cluster(ClusterChange::StopOperator { millis }),
        5 => in_cluster(ClusterChange::KillController { millis }),
        6 => in_cluster(ClusterChange::StaleWatches { millis }),
        7 => in_cluster(ClusterChange::WatchesGone),
        8 => in_cluster(ClusterChange::ApiAway { millis }),
        9 => in_cluster(ClusterChange::ShardUnreachable { millis }),
        10 => Change::Crash {
            strike: dice.pick(&Strike::ALL),
            disk: dice.pick(&[Left::Whole, Left::Torn]),
            millis,
        },
        11 => Change::Vanish {
            cluster: Some(0),
            count: 1,
        },
        _ => in_cluster(ClusterChange::Rollover { work: 0 }),
    }
}
