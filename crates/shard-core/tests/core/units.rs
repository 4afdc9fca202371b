//! What clusters tell beside sums: rows of whole units, and what draining a machine would disturb (SH-19).

use crate::support::{FULL, World, cluster, id, world};
use bigfleet_model::{Disruption, State};
use bigfleet_shard_core::{Event, LateAnswer, NodeFact, Rails, SessionId, ShardConfig};

fn node(machine: &str, disruption: Option<u32>) -> NodeFact {
    NodeFact {
        machine: Some(id(machine)),
        provider_id: String::new(),
        node_name: machine.to_owned(),
        ready: true,
        disruption: disruption.map(Disruption::at_most),
    }
}

fn tell(world: &mut World, session: SessionId, complete: bool, nodes: Vec<NodeFact>) {
    world.tell(Event::NodesReported {
        session,
        complete,
        nodes,
    });
}

fn level(world: &World, machine: &str) -> Option<u8> {
    world.core.disruption(&id(machine)).map(Disruption::level)
}

/// Two machines that serve.
fn serving() -> (World, SessionId) {
    let mut world = world("m1..m3 Idle cpu=4 $1");
    let session = world.ask("a", "cpu=8 min:cpu=4", 5.0);
    (world, session)
}

/// SH-19: it is kept, and starts nothing.
#[test]
fn disruption_is_kept_and_wakes_nobody() {
    let (mut world, session) = serving();
    tell(
        &mut world,
        session,
        true,
        vec![node("m1", Some(0)), node("m2", Some(99))],
    );
    assert_eq!(
        (level(&world, "m1"), level(&world, "m2")),
        (Some(0), Some(15))
    );
    let cycle = world.core.cycle();
    for told in 0..15 {
        tell(&mut world, session, false, vec![node("m1", Some(told))]);
        world.run(0.2);
    }
    assert_eq!(world.core.cycle(), cycle, "no cycle but the regular ones");
    assert_eq!(level(&world, "m2"), Some(15), "nobody said otherwise");
    tell(&mut world, session, false, vec![node("m1", None)]);
    assert_eq!(level(&world, "m1"), None);
    tell(&mut world, session, true, vec![node("m1", Some(3))]);
    assert_eq!((level(&world, "m1"), level(&world, "m2")), (Some(3), None));
}

/// SH-19: until a new session has told it, it is unknown.
#[test]
fn another_session_begins_anew() {
    let (mut world, session) = serving();
    tell(
        &mut world,
        session,
        true,
        vec![node("m1", Some(4)), node("m2", Some(5))],
    );
    world.disconnect("a");
    assert_eq!(level(&world, "m1"), Some(4));
    world.connect("a", FULL);
    assert_eq!((level(&world, "m1"), level(&world, "m2")), (None, None));
}

/// A report about another cluster's machine, or nobody's, is dropped and counted.
#[test]
fn nobody_tells_of_machines_of_others() {
    let (mut world, session) = serving();
    tell(
        &mut world,
        session,
        true,
        vec![node("m1", Some(4)), node("m2", Some(5))],
    );
    let other = world.connect("b", FULL);
    tell(
        &mut world,
        other,
        false,
        vec![
            node("m1", Some(9)),
            node("m3", Some(9)),
            node("none", Some(9)),
        ],
    );
    assert_eq!((level(&world, "m1"), level(&world, "m3")), (Some(4), None));
    assert_eq!(world.core.counters().late_answers[&LateAnswer::Node], 3);
}

/// RF-2: of two equals the emptier one leaves; where nobody tells, the id decides.
#[test]
fn the_emptiest_leaves() {
    for (m1, m2, leaves) in [
        (Some(0), Some(3), "m1"),
        (Some(3), Some(0), "m2"),
        (None, Some(0), "m2"),
        (None, None, "m2"),
        (None, Some(1), "m2"),
        (Some(0), None, "m1"),
    ] {
        let (mut world, session) = serving();
        world.drains = false;
        tell(
            &mut world,
            session,
            true,
            vec![node("m1", m1), node("m2", m2)],
        );
        world.run(30.0);
        assert_eq!(
            (world.state("m1"), world.state("m2")),
            (State::Configured, State::Configured)
        );
        world.roll_up("a", "cpu=4 min:cpu=4");
        world.run(1.0);
        assert_eq!(world.state(leaves), State::Draining, "{m1:?} {m2:?}");
    }
}

/// A cap keeps the emptiest first.
#[test]
fn rail_1_lets_the_emptiest_go_first() {
    let config = ShardConfig {
        rails: Rails {
            reclaim_cap_per_million: 50_000,
            roll_up_guard: false,
        },
        ..ShardConfig::undamped("s", "p")
    };
    let mut world = World::new(config, "m10..m49 Idle cpu=4 $1");
    let session = world.ask("a", "cpu=160 min:cpu=4", 5.0);
    world.drains = false;
    let busy = |number: u32| if number == 17 || number == 33 { 0 } else { 5 };
    let nodes = (10..=49).map(|number| node(&format!("m{number}"), Some(busy(number))));
    tell(&mut world, session, true, nodes.collect());
    world.roll_up("a", "cpu=80 min:cpu=4");
    world.run(1.0);
    let draining = world
        .core
        .machines()
        .filter(|one| one.state() == State::Draining);
    let draining: Vec<&str> = draining.map(|one| one.id().as_str()).collect();
    assert_eq!(draining, ["m17", "m33"]);
}

/// EX-RF18 through a shard: ten units of three need ten machines of four, and eight are enough for the sum.
#[test]
fn whole_units_are_counted_whole() {
    let mut world = world("s01..s12 Speculative cpu=4 $1");
    world.ask("a", "cpu=30 min:cpu=3", 20.0);
    assert_eq!(world.provider.serving()["a"], 8);
    world.roll_up("a", "cpu=30 min:cpu=3 whole");
    world.run(20.0);
    assert_eq!(world.provider.serving()["a"], 10);
    assert_eq!(world.core.shortfalls().count(), 0);
}

/// SH-19: a row that toggles is no wipe: rail 2 believes it at once, and rail 1 gives back what is too much.
#[test]
fn a_row_that_toggles_is_no_wipe() {
    let mut world = World::new(
        ShardConfig::production("s", "p"),
        "s01..s12 Speculative cpu=4 $1",
    );
    world.ask("a", "cpu=30 min:cpu=3 whole", 60.0);
    assert_eq!(world.provider.serving()["a"], 10);
    world.roll_up("a", "cpu=30 min:cpu=3");
    let held = &world.core.counters().rollups_held;
    assert_eq!(held.get(&cluster("a")).copied().unwrap_or(0), 0);
    world.run(120.0);
    assert_eq!(world.provider.serving()["a"], 8);
}
