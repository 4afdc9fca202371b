//! The closed-loop scenarios that are about gangs alone.
//!
//! Gangs once chased each other round the racks, waited for what was never there, or gave up what they had for
//! something as good. Here each must come to rest, and where something stays short, nothing may be done about it.

use super::{GPU, WINDOW, all_bound, clusters, gang, plan, standing};
use crate::{
    build::{Pool, pool, work},
    clock::seconds,
    dice::{Dice, Latency},
    gate::{ACQUIRE, Count, Gate, MOVES},
    plan::{Plan, Stages, Work},
    scenarios::Scenario,
    size::Size,
};
use bigfleet_model::ActionKind;

pub(in crate::scenarios) const ALL: &[Scenario] = &[
    Scenario::small(
        "gang-scatter",
        "gangs of four whose machines stand one or two to a rack",
        gang_scatter,
    ),
    Scenario::small(
        "unsatisfiable-gang",
        "a gang of eight in racks of four: it keeps four machines and waits",
        unsatisfiable_gang,
    ),
    Scenario::small(
        "sub-machine-gangs",
        "twelve small gangs on six machines: all bound, nothing short",
        sub_machine_gangs,
    ),
    Scenario::small(
        "oversized-gangs",
        "gangs of twelve over blocks of four: no churn, a constant shortfall",
        oversized_gangs,
    ),
    Scenario::small(
        "gang-contention",
        "gangs of twelve of six clusters over identical blocks: whoever has a block keeps it",
        gang_contention,
    ),
    Scenario::small(
        "gang-dwell",
        "gangs that are served while every step takes several cycles: no action is taken",
        gang_dwell,
    ),
    Scenario::small(
        "incumbency",
        "gangs with too many machines: the surplus is reclaimed once, and nothing is acquired",
        incumbency,
    ),
    Scenario::small(
        "incumbency-shared-racks",
        "incumbency with two gangs in each rack, and every step two or three cycles late",
        incumbency_shared,
    ),
];

fn gang_scatter(dice: &mut Dice) -> Plan {
    let mut pools = Vec::new();
    for cluster in 0..2 {
        let name = format!("a3-c{cluster}");
        let made = pool(&name, GPU, 12).kind("a3").racks(3, 4, 1);
        pools.push(made.serving(cluster, 0).unstamped());
    }
    pools.push(pool("idle-a3", GPU, 4).kind("a3").racks(3, 4, 1).owned());
    pools.push(pool("spec-a3", GPU, 4).kind("a3").racks(3, 4, 1));
    let gangs: Vec<Work> = (0..3).map(|number| gang(number, 4)).collect();
    Plan {
        gates: standing(),
        ..plan(dice, clusters(2, &gangs), &pools)
    }
}

fn unsatisfiable_gang(dice: &mut Dice) -> Plan {
    let gangs = [gang(0, 4), gang(1, 4), gang(2, 8)];
    let mut pools = Vec::new();
    for cluster in 0..2 {
        for number in 0..3 {
            let name = format!("a3-c{cluster}-g{number}");
            let made = pool(&name, GPU, 4).kind("a3").racks(1, 40, 4);
            let made = made.starting_at((cluster * 3 + number) * 4);
            pools.push(made.serving(cluster, number));
        }
    }
    pools.push(
        pool("spec-a3", GPU, 8)
            .kind("a3")
            .racks(1, 40, 4)
            .starting_at(80),
    );
    Plan {
        gates: vec![
            Gate::Short(Count::exactly(2)),
            Gate::ShortStands(WINDOW),
            // Of the gang of eight four are bound, and everybody else.
            Gate::Pending(0, Count::exactly(4)),
            Gate::Pending(1, Count::exactly(4)),
            Gate::Bound(0, Count::exactly(12)),
            Gate::Bound(1, Count::exactly(12)),
            Gate::ever(MOVES, Count::NONE),
        ],
        ..plan(dice, clusters(2, &gangs), &pools)
    }
}

fn sub_machine_gangs(dice: &mut Dice) -> Plan {
    let each = Size::plain(2, 16);
    let small = |number: usize| {
        let made = work(each, 4).kinds(&["r"]);
        made.rack_gang(&format!("cache-{number}")).build()
    };
    let gangs: Vec<Work> = (0..12).map(small).collect();
    let mut pools = Vec::new();
    for cluster in 0..2 {
        let name = format!("r-c{cluster}");
        let made = pool(&name, each.times(10), 6).kind("r").racks(1, 10, 2);
        let made = made.starting_at(cluster * 6);
        pools.push(made.serving(cluster, 0).unstamped());
    }
    pools.push(
        pool("spec-r", each.times(10), 4)
            .kind("r")
            .racks(1, 10, 2)
            .starting_at(12),
    );
    Plan {
        gates: all_bound(2),
        ..plan(dice, clusters(2, &gangs), &pools)
    }
}

/// Clusters with three gangs of twelve each, and as many machines to be had as are idle.
fn three_gangs_each(dice: &mut Dice, count: usize, machines: u32, racks: usize) -> Plan {
    let gangs: Vec<Work> = (0..3).map(|number| gang(number, 12)).collect();
    let hosts = |name| pool(name, GPU, machines).kind("a3").racks(3, racks, 4);
    let pools = [
        hosts("idle-a3").owned(),
        hosts("spec-a3").starting_at(machines as usize),
    ];
    plan(dice, clusters(count, &gangs), &pools)
}

fn oversized_gangs(dice: &mut Dice) -> Plan {
    Plan {
        gates: standing(),
        ..three_gangs_each(dice, 2, 40, 12)
    }
}

fn gang_contention(dice: &mut Dice) -> Plan {
    Plan {
        gates: [
            standing(),
            vec![Gate::ever(
                &[ActionKind::Reclaim, ActionKind::Preempt],
                Count::NONE,
            )],
        ]
        .concat(),
        ..three_gangs_each(dice, 6, 48, 40)
    }
}

/// Gangs of three, each in its own block of a shared kind.
fn served_gangs(gangs: usize, per_gang: u32) -> (Vec<Work>, Vec<Pool>) {
    let works: Vec<Work> = (0..gangs).map(|number| gang(number, 3)).collect();
    let mut pools = Vec::new();
    for cluster in 0..2 {
        for number in 0..gangs {
            let name = format!("a3-c{cluster}-g{number}");
            let block = per_gang as usize;
            let made = pool(&name, GPU, per_gang).kind("a3").racks(1, 60, block);
            let made = made.starting_at((cluster * gangs + number) * block);
            pools.push(made.serving(cluster, number));
        }
    }
    (works, pools)
}

fn gang_dwell(dice: &mut Dice) -> Plan {
    let (gangs, mut pools) = served_gangs(4, 3);
    pools.push(pool("idle-a3", GPU, 18).kind("a3").racks(1, 60, 3).owned());
    pools.push(
        pool("spec-a3", GPU, 36)
            .kind("a3")
            .racks(1, 60, 3)
            .starting_at(18),
    );
    let mut gates = all_bound(2);
    let kinds = &[
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Reclaim,
    ];
    gates.push(Gate::ever(kinds, Count::NONE));
    Plan {
        gates,
        ..plan(dice, clusters(2, &gangs), &pools)
    }
}

fn incumbency(dice: &mut Dice) -> Plan {
    over_covered(dice, 4)
}

/// Racks of eight, so that two gangs share each, and machines that take two or three cycles to configure.
fn incumbency_shared(dice: &mut Dice) -> Plan {
    let cycles = dice.between(2, 3);
    Plan {
        stages: Stages {
            configure: Latency::Fixed(seconds(10 * cycles)),
            repair: Latency::NONE,
            ..Stages::CLOUD
        },
        ..over_covered(dice, 8)
    }
}

/// Gangs of three that have four machines each, in racks of so many.
fn over_covered(dice: &mut Dice, rack: usize) -> Plan {
    let (gangs, pools) = served_gangs(6, 4);
    let shared = |made: Pool| made.in_racks_of(rack);
    let mut pools: Vec<Pool> = pools.into_iter().map(shared).collect();
    pools.push(pool("spec-a3", GPU, 36).kind("a3").racks(1, 60, 3));
    let mut gates = all_bound(2);
    gates.push(Gate::ever(ACQUIRE, Count::NONE));
    let reclaims = &[ActionKind::Reclaim];
    gates.push(Gate::ever(reclaims, Count::exactly(12)));
    Plan {
        gates,
        ..plan(dice, clusters(2, &gangs), &pools)
    }
}
