//! Replacing: the engine's rules for machines that leave, each in the smallest fleet in which leaving it out is seen.
//!
//! The tests of the engine show the wrong decision (RF-21); here is what becomes of it: somebody waits, something
//! is bought for nothing, or a machine leaves that still serves.

use super::{
    Scenario,
    guards::{NODE, plan, scale},
};
use crate::{
    build::{pool, work},
    clock::{Moment, minutes, seconds},
    dice::{Dice, Latency},
    gate::{Count, Gate},
    plan::{Change, ClusterPlan, Pick, Plan},
    size::Size,
};
use bigfleet_model::ActionKind;

pub(super) const ALL: &[Scenario] = &[
    Scenario::small(
        "drain-by-halves",
        "only a half of what is drained could be had in its place: nothing is bought, and it serves on",
        drain_by_halves,
    ),
    Scenario::small(
        "drain-beside-a-wait",
        "what is drained has its replacement while another row waits for long: it leaves, and is not taken for that row",
        drain_beside_a_wait,
    ),
    Scenario::small(
        "drain-of-an-incomplete-gang",
        "a gang that waits for a member has a machine drained: nothing is bought for it",
        drain_of_an_incomplete_gang,
    ),
    Scenario::small(
        "drain-under-folded-gangs",
        "two gangs share a machine that is drained, and nothing could take its place: both are served on",
        drain_under_folded_gangs,
    ),
    Scenario::small(
        "drain-in-a-full-zone",
        "what is drained is replaced in its own zone, though that has more than its share",
        drain_in_a_full_zone,
    ),
    Scenario::small(
        "drain-of-a-zone",
        "all that serves in a zone is drained: what is to be had elsewhere takes its place",
        drain_of_a_zone,
    ),
    Scenario::small(
        "drain-takes-its-turn",
        "a machine comes free that a waiting row could use: what is drained for a more important one is replaced first",
        drain_takes_its_turn,
    ),
    Scenario::small(
        "drained-on-its-way",
        "a machine is drained while it is bought: it is given to nobody, and another is bought",
        drained_on_its_way,
    ),
];

const HALF: Size = Size::plain(4, 16);

fn drain(id: &str) -> Change {
    Change::Drain {
        pick: Pick::Named(id.to_owned()),
        within: None,
    }
}

/// A minute or two after the start.
fn soon(dice: &mut Dice) -> u64 {
    seconds(dice.between(60, 120))
}

fn drain_by_halves(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(HALF, 2).build()])]);
    made.machines = pool("own", NODE, 1).serving(0, 0).build();
    made.machines.extend(pool("spec", HALF, 1).build());
    made.timeline = vec![(Moment(soon(dice)), drain("own-0000"))];
    made.gates = vec![
        Gate::Creates(Count::NONE),
        Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        Gate::Serving(0, Count::exactly(1)),
        Gate::NeverShort,
    ];
    made
}

fn drain_beside_a_wait(dice: &mut Dice) -> Plan {
    let waits = work(NODE, 0).priority(900).kinds(&["m"]).build();
    let mut made = plan(vec![ClusterPlan::new(
        "a",
        vec![work(NODE, 1).build(), waits],
    )]);
    made.machines = pool("own", NODE, 1).serving(0, 0).build();
    made.machines.extend(pool("spare", NODE, 1).owned().build());
    made.machines.extend(pool("spec", NODE, 1).build());
    made.stages.create = Latency::Between(minutes(6), minutes(7));
    let when = soon(dice);
    let grows = Change::Scale {
        cluster: 0,
        work: 1,
        pods: 1,
    };
    made.timeline = vec![
        (Moment(when), drain("own-0000")),
        (Moment(when + seconds(2)), grows),
    ];
    let (from, until) = (Moment::START, Moment(when + minutes(4)));
    made.gates = vec![
        Gate::Actions(&[ActionKind::Reclaim], from, until, Count::exactly(1)),
        Gate::Creates(Count::exactly(1)),
        Gate::Serving(0, Count::exactly(2)),
    ];
    made
}

fn drain_of_an_incomplete_gang(dice: &mut Dice) -> Plan {
    let gang = work(NODE, 4).rack_gang("train").build();
    let mut made = plan(vec![ClusterPlan::new("a", vec![gang])]);
    made.machines = pool("own", NODE, 2).serving(0, 0).build();
    made.machines.extend(pool("spec", NODE, 1).build());
    made.timeline = vec![(Moment(soon(dice)), drain("own-0000"))];
    made.gates = vec![
        Gate::Creates(Count::NONE),
        Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        Gate::Serving(0, Count::exactly(2)),
    ];
    made
}

fn drain_under_folded_gangs(dice: &mut Dice) -> Plan {
    let gangs = ["one", "two"].map(|name| work(HALF, 1).rack_gang(name).build());
    let mut made = plan(vec![ClusterPlan::new("a", gangs.to_vec())]);
    // Nobody wrote down whose it is, so the first decision folds both on it.
    made.machines = pool("own", NODE, 1).serving(0, 0).unstamped().build();
    made.timeline = vec![(Moment(soon(dice)), drain("own-0000"))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Reclaim], Count::NONE),
        Gate::Serving(0, Count::exactly(1)),
        Gate::NeverShort,
    ];
    made
}

fn drain_in_a_full_zone(dice: &mut Dice) -> Plan {
    let spread = work(NODE, 4).spread(1).build();
    let mut made = plan(vec![ClusterPlan::new("a", vec![spread])]);
    made.machines = pool("own", NODE, 3).serving(0, 0).build();
    let other = pool("other", NODE, 1).serving(0, 0).racks(2, 1, 1);
    made.machines.extend(other.starting_at(1).build());
    made.machines.extend(pool("spare", NODE, 1).owned().build());
    made.timeline = vec![(Moment(soon(dice)), drain("own-0000"))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(1)),
        Gate::Serving(0, Count::exactly(4)),
        Gate::NeverShort,
    ];
    made
}

fn drain_of_a_zone(dice: &mut Dice) -> Plan {
    let spread = work(NODE, 2).spread(1).build();
    let mut made = plan(vec![ClusterPlan::new("a", vec![spread])]);
    made.machines = pool("own", NODE, 2).serving(0, 0).racks(2, 1, 1).build();
    let spare = pool("spare", NODE, 1).owned().racks(2, 1, 1);
    made.machines.extend(spare.starting_at(1).build());
    made.timeline = vec![(Moment(soon(dice)), drain("own-0000"))];
    made.gates = vec![
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(1)),
        Gate::Serving(0, Count::exactly(2)),
        Gate::NeverShort,
    ];
    made
}

fn drain_takes_its_turn(dice: &mut Dice) -> Plan {
    let waits = work(NODE, 0).priority(50).build();
    let mut made = plan(vec![
        ClusterPlan::new("a", vec![work(NODE, 1).build()]),
        ClusterPlan::new("b", vec![waits]),
    ]);
    made.machines = pool("own", NODE, 1).serving(0, 0).build();
    made.machines.extend(pool("spare", NODE, 1).owned().build());
    let when = soon(dice);
    let pick = Pick::Named("spare-0000".to_owned());
    made.timeline = vec![
        (Moment(seconds(30)), drain("spare-0000")),
        (Moment(when), drain("own-0000")),
        (Moment(when + seconds(20)), scale(1, 1)),
        (Moment(when + minutes(2)), Change::Undrain { pick }),
    ];
    made.gates = vec![
        Gate::Serving(0, Count::exactly(1)),
        Gate::Serving(1, Count::NONE),
        Gate::ever(&[ActionKind::Reclaim], Count::exactly(1)),
    ];
    made
}

fn drained_on_its_way(dice: &mut Dice) -> Plan {
    let mut made = plan(vec![ClusterPlan::new("a", vec![work(NODE, 1).build()])]);
    made.machines = pool("own", NODE, 1).serving(0, 0).build();
    made.machines.extend(pool("spec", NODE, 2).build());
    made.stages.create = Latency::Between(minutes(3), minutes(4));
    let when = soon(dice);
    made.timeline = vec![
        (Moment(when), scale(0, 2)),
        (Moment(when + seconds(60)), drain("spec-0000")),
    ];
    made.gates = vec![
        Gate::Creates(Count::exactly(2)),
        Gate::Serving(0, Count::exactly(2)),
    ];
    made
}
