//! Demand: what a roll-up replaces, how long a row has been waiting, whose turn is first (model.md §8).

use crate::support::{FULL, World, at, cluster, rows};
use bigfleet_model::{Need, Time};
use bigfleet_shard_core::{Event, ShardConfig};

fn world(clusters: &[&str]) -> World {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "");
    for name in clusters {
        world.connect(name, FULL);
    }
    world
}

/// The demand in force, in the order readers get it.
fn needs(world: &mut World) -> Vec<Need> {
    world.core.want_verdicts();
    world.tell(Event::CycleDue);
    let decided = world.core.decided().unwrap();
    let needs = decided.needs.iter();
    needs.map(|view| (*view.verdict.need).clone()).collect()
}

/// EX-NT1.
#[test]
fn ex_nt1_readers_get_one_order_and_a_roll_up_replaces_all() {
    let mut world = world(&["a", "b", "z"]);
    world.run(2.0);
    world.roll_up("z", "cpu=1 prio=100");
    world.run(3.0);
    world.roll_up("b", "cpu=1 prio=100");
    world.roll_up("a", "cpu=1 prio=100");
    world.run(4.0);
    world.roll_up("a", "cpu=1 prio=900\n cpu=1 prio=100");
    let order = |world: &mut World| -> Vec<(i32, String)> {
        let short = |need: &Need| (need.row.profile.priority(), need.cluster.to_string());
        needs(world).iter().map(short).collect()
    };
    let expected = [(900, "a"), (100, "z"), (100, "a"), (100, "b")];
    assert_eq!(order(&mut world), expected.map(|(p, c)| (p, c.to_owned())));
    world.roll_up("a", "");
    let expected = [(100, "z"), (100, "b")];
    assert_eq!(order(&mut world), expected.map(|(p, c)| (p, c.to_owned())));
}

/// EX-NT3.
#[test]
fn ex_nt3_arrival_stays_while_the_row_does() {
    let arrival = |world: &mut World| -> Vec<Option<Time>> {
        needs(world).iter().map(|need| need.arrival).collect()
    };
    let mut world = world(&["a"]);
    world.run(10.0);
    let first = at(world.now);
    for amount in ["cpu=1", "cpu=1", "cpu=7"] {
        world.roll_up("a", amount);
        assert_eq!(arrival(&mut world), [Some(first)]);
        world.run(10.0);
    }
    world.roll_up("a", "");
    assert_eq!(arrival(&mut world), []);
    world.run(10.0);
    let back = at(world.now);
    world.roll_up("a", "cpu=1");
    assert_eq!(arrival(&mut world), [Some(back)]);
}

/// NT-3: whoever hands in rows that are parts of one.
#[test]
fn rows_sent_in_parts_are_one_need() {
    let mut world = world(&["a"]);
    world.run(1.0);
    let (session, _) = world.sessions[&cluster("a")];
    let parts = ["cpu=1 prio=1", "cpu=1 prio=2", "cpu=2500m prio=1"];
    world.tell(Event::RolledUp {
        session,
        cluster: cluster("a"),
        rollup_id: String::new(),
        rows: Ok(parts.iter().flat_map(|part| rows("a", part)).collect()),
    });
    let amounts: Vec<_> = needs(&mut world)
        .iter()
        .map(|need| (need.row.profile.priority(), need.row.aggregate.get("cpu")))
        .collect();
    assert_eq!(amounts, [(2, 1000), (1, 3500)]);
}

/// NT-3: nor is a row that was one before it came in parts.
#[test]
fn a_row_that_comes_in_parts_after_it_came_whole_is_their_sum() {
    let mut world = world(&["a"]);
    world.run(1.0);
    world.roll_up("a", "cpu=1 prio=1");
    let (session, _) = world.sessions[&cluster("a")];
    let parts = ["cpu=1 prio=1", "cpu=2500m prio=1"];
    world.tell(Event::RolledUp {
        session,
        cluster: cluster("a"),
        rollup_id: String::new(),
        rows: Ok(parts.iter().flat_map(|part| rows("a", part)).collect()),
    });
    let amounts = needs(&mut world)
        .iter()
        .map(|need| need.row.aggregate.get("cpu"))
        .collect::<Vec<_>>();
    assert_eq!(amounts, [3500]);
}
