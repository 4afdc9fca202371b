//! Machines that leave: racks, zones and everything one by one, notices true, late, wrong and for half a fleet.
//!
//! Each is quiet as it is. With its defect switched on (`bigfleet sim mutants`) it is the place where
//! somebody objects.

use super::{
    Scenario,
    guards::{NODE, plan, scale},
};
use crate::{
    build::{RACK, pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{Count, Gate},
    plan::{Change, ClusterPlan, Left, Pick, Plan, ShardPlan, Strike},
};
use bigfleet_model::{ActionKind, State};

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "drain-a-rack",
        "a rack is drained: as many machines are taken in its place, each serves before one leaves, nobody is preempted",
        drain_a_rack,
    ),
    Scenario::small(
        "drain-a-gang",
        "a gang's rack is drained: it is served in another one before the first of its machines leaves",
        drain_a_gang,
    ),
    Scenario::small(
        "drain-in-a-crash-loop",
        "drain-a-rack, and the shard dies again and again: no mark is lost, and nothing is bought twice",
        drain_in_a_crash_loop,
    ),
    Scenario::small(
        "drain-now-under-rails",
        "a rack is drained at once: the reclaim cap does not hold it back",
        drain_now_under_rails,
    ),
    Scenario::small(
        "drain-now-without-operator",
        "a machine is drained at once though its cluster's operator is away",
        drain_now_without_operator,
    ),
    Scenario::small(
        "drained-and-noticed",
        "what is drained with patience is announced to be taken away: it does not wait",
        drained_and_noticed,
    ),
    Scenario::small(
        "drain-one-by-one",
        "every machine is drained and brought back, one after the other",
        drain_one_by_one,
    ),
    Scenario::small(
        "drain-on-and-off",
        "a rack is drained and kept after all, again and again, while demand moves",
        drain_on_and_off,
    ),
    Scenario::small(
        "drain-without-spare",
        "nothing can take the place of what is drained: it serves until its deadline, and leaves then",
        drain_without_spare,
    ),
    Scenario::small(
        "drain-blocked",
        "disruption budgets block a drain: it is tried again, and ends at its deadline",
        drain_blocked,
    ),
    Scenario::small(
        "drained-and-idle",
        "what is drained stays Idle, for the mechanic, while demand grows past what there is",
        drained_and_idle,
    ),
    Scenario::small(
        "spot-notices",
        "spot machines are given two minutes: each is drained and replaced before it is taken away",
        spot_notices,
    ),
    Scenario::small(
        "wrong-notices",
        "the provider announces to take away everything and does not mean it: no cluster is emptied",
        wrong_notices,
    ),
    Scenario::small(
        "drains-in-bad-weather",
        "drains, notices and ramps while machines break, calls fail and the shard dies",
        drains_in_bad_weather,
    ),
];

fn rack(number: usize) -> Pick {
    Pick::Labelled(RACK, format!("zone-a-rack-{number}"))
}

fn drained(pick: Pick, within: Option<u64>) -> Change {
    Change::Drain { pick, within }
}

/// Two racks of ten that serve, and a third that could.
fn three_racks() -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 20).build()])]);
    made.machines = pool("own", NODE, 20).serving(0, 0).racks(1, 3, 10).build();
    let spare = pool("spec", NODE, 14).racks(1, 3, 20).starting_at(40);
    made.machines.extend(spare.build());
    made.stages.create = Latency::Between(20_000, 90_000);
    made
}

fn drain_a_rack(dice: &mut Dice) -> Plan {
    let mut made = three_racks();
    let when = Moment(seconds(dice.between(60, 120)));
    made.timeline = vec![(when, drained(rack(0), None))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Preempt], Count::NONE),
        Gate::Creates(Count::exactly(10)),
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(10)),
        Gate::Serving(0, Count::exactly(20)),
        Gate::NeverShort,
    ];
    made
}

fn drain_a_gang(dice: &mut Dice) -> Plan {
    let gang = work(NODE, 8).rack_gang("train").build();
    let mut made = plan(vec![ClusterPlan::new("a", vec![gang])]);
    made.machines = pool("own", NODE, 8).serving(0, 0).racks(1, 3, 8).build();
    let spare = pool("spec", NODE, 8).racks(1, 3, 8).starting_at(8);
    made.machines.extend(spare.build());
    made.stages.create = Latency::Between(20_000, 90_000);
    let when = Moment(seconds(dice.between(60, 120)));
    made.timeline = vec![(when, drained(rack(0), None))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Preempt], Count::NONE),
        Gate::Creates(Count::exactly(8)),
        Gate::Serving(0, Count::exactly(8)),
        Gate::NeverShort,
    ];
    made
}

fn drain_in_a_crash_loop(dice: &mut Dice) -> Plan {
    let mut made = drain_a_rack(dice);
    for number in 0..12 {
        let when = Moment(seconds(125 + number * 45) + dice.between(0, seconds(20)));
        let crash = Change::Crash {
            strike: dice.pick(&Strike::ALL),
            disk: dice.pick(&[Left::Whole, Left::Torn]),
            millis: dice.between(500, seconds(5)),
        };
        made.timeline.push((when, crash));
    }
    made.calm = Moment(minutes(20));
    // While the shard is away nobody is told what it is short of, and what was decided but never on disk is
    // decided again.
    made.gates.retain(|gate| {
        !matches!(
            gate,
            Gate::NeverShort | Gate::Actions([ActionKind::Reclaim], ..)
        )
    });
    let drained = Gate::ever(&[ActionKind::Reclaim], Count::at_least(10));
    made.gates.push(drained);
    made
}

fn drain_now_under_rails(dice: &mut Dice) -> Plan {
    let mut made = three_racks();
    made.shard = ShardPlan {
        rails: true,
        ..ShardPlan::default()
    };
    let when = seconds(dice.between(60, 120));
    made.timeline = vec![(Moment(when), drained(rack(0), Some(0)))];
    made.gates = vec![
        Gate::Actions(
            &[ActionKind::Reclaim],
            Moment::START,
            Moment(when + seconds(30)),
            Count::exactly(10),
        ),
        Gate::Serving(0, Count::exactly(20)),
    ];
    made
}

fn drain_now_without_operator(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 4).build()])]);
    made.machines = pool("own", NODE, 4).serving(0, 0).build();
    made.machines.extend(pool("spare", NODE, 2).owned().build());
    let when = seconds(dice.between(60, 90));
    let away = Change::OperatorAway {
        cluster: 0,
        millis: minutes(10),
    };
    let one = Pick::Named("own-0000".to_owned());
    made.timeline = vec![
        (Moment(when), away),
        (Moment(when + seconds(20)), drained(one, Some(0))),
    ];
    made.gates = vec![
        Gate::Actions(
            &[ActionKind::Reclaim],
            Moment::START,
            Moment(when + minutes(2)),
            Count::exactly(1),
        ),
        Gate::Serving(0, Count::exactly(4)),
    ];
    made
}

fn drained_and_noticed(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 4).build()])]);
    made.machines = pool("own", NODE, 4).serving(0, 0).build();
    let when = seconds(dice.between(60, 90));
    let one = || Pick::Named("own-0000".to_owned());
    let announced = Change::Announce {
        pick: one(),
        lead: minutes(5),
        meant: false,
    };
    made.timeline = vec![
        (Moment(when), drained(one(), None)),
        (Moment(when + minutes(2)), announced),
    ];
    made.gates = vec![
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(1)),
        Gate::Serving(0, Count::exactly(3)),
    ];
    made
}

fn drain_one_by_one(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 6).build()])]);
    made.machines = pool("own", NODE, 6).serving(0, 0).build();
    made.machines.extend(pool("spare", NODE, 1).owned().build());
    let mut when = seconds(60);
    let ids: Vec<String> = made.machines.iter().map(|one| one.id.clone()).collect();
    for id in ids {
        when += dice.between(0, seconds(20));
        made.timeline
            .push((Moment(when), drained(Pick::Named(id.clone()), None)));
        when += minutes(6);
        let pick = Pick::Named(id);
        made.timeline.push((Moment(when), Change::Undrain { pick }));
    }
    made.calm = Moment(when + minutes(5));
    made.gates = vec![
        Gate::ever(&[ActionKind::Preempt], Count::NONE),
        Gate::Serving(0, Count::exactly(6)),
        Gate::NeverShort,
    ];
    made
}

fn drain_on_and_off(dice: &mut Dice) -> Plan {
    let mut made = three_racks();
    made.calm = Moment(minutes(30));
    let mut when = seconds(60);
    for _ in 0..6 {
        let number = dice.below(2);
        made.timeline
            .push((Moment(when), drained(rack(number), None)));
        when += dice.between(seconds(5), minutes(3));
        made.timeline
            .push((Moment(when), scale(0, 12 + dice.below(9) as u32)));
        let pick = rack(number);
        made.timeline.push((Moment(when), Change::Undrain { pick }));
        when += dice.between(seconds(5), minutes(2));
    }
    made.gates = vec![
        Gate::ever(&[ActionKind::Preempt], Count::NONE),
        Gate::Short(Count::NONE),
    ];
    made
}

fn drain_without_spare(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 6).build()])]);
    made.machines = pool("own", NODE, 6).serving(0, 0).build();
    let when = seconds(dice.between(60, 90));
    let two = drained(Pick::Named("own-0001".to_owned()), None);
    let deadline = minutes(6);
    made.timeline = vec![
        (Moment(when), two),
        (
            Moment(when),
            drained(Pick::Named("own-0002".to_owned()), Some(deadline)),
        ),
    ];
    made.calm = Moment(minutes(20));
    made.gates = vec![
        Gate::Actions(
            &[ActionKind::Reclaim],
            Moment::START,
            Moment(when + deadline),
            Count::NONE,
        ),
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(1)),
        Gate::Serving(0, Count::exactly(5)),
    ];
    made
}

fn drain_blocked(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 4).build()])]);
    made.machines = pool("own", NODE, 4).serving(0, 0).build();
    made.machines.extend(pool("spare", NODE, 2).owned().build());
    let when = seconds(dice.between(60, 90));
    let blocked = Change::BlockDrains {
        cluster: 0,
        millis: minutes(200),
    };
    made.timeline = vec![
        (Moment(seconds(30)), blocked),
        (
            Moment(when),
            drained(Pick::Named("own-0000".to_owned()), Some(minutes(90))),
        ),
    ];
    made.calm = Moment(minutes(190));
    made.rest_within = minutes(180);
    made.gates = vec![
        Gate::Serving(0, Count::exactly(4)),
        Gate::Short(Count::NONE),
    ];
    made
}

fn drained_and_idle(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 2).build()])]);
    made.machines = pool("own", NODE, 2).serving(0, 0).build();
    made.machines.extend(pool("idle", NODE, 4).idle().build());
    let when = seconds(dice.between(30, 60));
    made.timeline = vec![
        (
            Moment(when),
            drained(Pick::Named("idle-0001".to_owned()), None),
        ),
        (
            Moment(when),
            drained(Pick::Named("idle-0002".to_owned()), None),
        ),
        (Moment(when + minutes(1)), scale(0, 8)),
        (Moment(when + minutes(6)), scale(0, 2)),
    ];
    made.shard.holds.on_demand = Some(std::time::Duration::from_secs(120));
    made.gates = vec![Gate::InState(State::Idle, Count::exactly(2))];
    made
}

fn spot_notices(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 12).build()])]);
    made.machines = pool("spot", NODE, 12).spot().idle().build();
    made.machines.extend(pool("spec", NODE, 12).build());
    made.stages.create = Latency::Between(5_000, 30_000);
    made.shard = ShardPlan {
        rails: true,
        ..ShardPlan::default()
    };
    for number in 0..3 {
        let when = minutes(3 + 3 * number) + dice.between(0, seconds(60));
        let pick = Pick::Serving {
            count: dice.between(1, 3) as u32,
        };
        let lead = seconds(120);
        let announced = Change::Announce {
            pick,
            lead,
            meant: true,
        };
        made.timeline.push((Moment(when), announced));
    }
    made.gates = vec![
        Gate::Serving(0, Count::exactly(12)),
        Gate::Short(Count::NONE),
    ];
    made
}

fn wrong_notices(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 12).build()])]);
    made.machines = pool("own", NODE, 12).serving(0, 0).build();
    let when = seconds(dice.between(60, 120));
    let announced = Change::Announce {
        pick: Pick::All,
        lead: seconds(dice.between(1, 600)),
        meant: false,
    };
    made.timeline = vec![
        (Moment(when), announced),
        (Moment(when + minutes(6)), Change::Withdraw),
    ];
    made.gates = vec![
        // Half of them, and not half of the rest.
        Gate::ever(&[ActionKind::Reclaim], Count(0, 6)),
        Gate::Serving(0, Count::exactly(12)),
    ];
    made
}

fn drains_in_bad_weather(dice: &mut Dice) -> Plan {
    let clusters = ["a", "b"].map(|name| {
        let low = work(NODE, 6).priority(100).build();
        ClusterPlan::new(name, vec![low, work(NODE, 4).priority(1000).build()])
    });
    let mut made = plan(clusters.to_vec());
    made.machines = pool("spec", NODE, 40).racks(1, 5, 8).build();
    made.machines
        .extend(pool("own", NODE, 8).owned().racks(1, 5, 2).build());
    made.stages.create = Latency::LongTail(20_000);
    made.weather.answer_lost = 30;
    made.weather.break_every = minutes(6);
    made.calm = Moment(minutes(30));
    let mut when = minutes(2);
    while when < minutes(26) {
        let number = dice.below(5);
        let change = match dice.below(8) {
            0 | 1 => drained(rack(number), None),
            2 => drained(rack(number), Some(dice.between(0, minutes(3)))),
            3 => Change::Undrain { pick: Pick::All },
            4 => Change::Announce {
                pick: Pick::Serving { count: 2 },
                lead: dice.between(0, seconds(900)),
                meant: dice.below(2) == 0,
            },
            5 => Change::Withdraw,
            6 => Change::Crash {
                strike: dice.pick(&Strike::ALL),
                disk: Left::Whole,
                millis: dice.between(500, seconds(5)),
            },
            _ => scale(dice.below(2), dice.between(2, 10) as u32),
        };
        made.timeline.push((Moment(when), change));
        when += dice.between(seconds(10), seconds(120));
    }
    let last = minutes(28);
    made.timeline.push((Moment(last), Change::Withdraw));
    made
}
