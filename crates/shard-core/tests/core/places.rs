//! An operation is in exactly one place: whatever else happens to its machine meanwhile, it does not leave
//! before its commit is on disk, and what it waited for before does not reach it any more.
//!
//! [`World::tell`] checks the rule after every event of every test.

use crate::support::{World, id, world};
use bigfleet_model::State;
use bigfleet_shard_core::{Effect, Frame, Outcome};

/// The next List shows a machine broken, and whoever then asks for it by name finds it as it was.
fn doubt(world: &mut World, machine: &str) {
    let was = world.provider.machines[&id(machine)].clone();
    world.there(machine).become_state(State::Failed);
    let lists = |world: &World| {
        let effects = world.every.iter();
        effects
            .filter(|one| matches!(one, Effect::List { .. }))
            .count()
    };
    let before = lists(world);
    while lists(world) == before {
        world.run(0.01);
    }
    world.provider.machines.insert(id(machine), was);
    world.run(0.2);
}

fn instructions(world: &World) -> usize {
    let is_reclaim = |effect: &&Effect| {
        matches!(
            effect,
            Effect::Send {
                frame: Frame::Reclaim { .. },
                ..
            }
        )
    };
    world.every.iter().filter(is_reclaim).count()
}

/// SH-5: a Get that shows that nothing has begun is no reason to begin.
#[test]
fn a_get_does_not_make_a_commit_leave_before_it_is_on_disk() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.ask("a", "cpu=4", 7.0);
    world.disk_delay = Some(9.0);
    world.roll_up("a", "");
    world.run(0.5);
    assert_eq!(world.state("m1"), State::Draining);
    let committed = world.now;
    doubt(&mut world, "m1");
    world.run(committed + 8.0 - world.now);
    assert_eq!(instructions(&world), 0, "its commit is not on disk");
    world.run(2.0);
    assert_eq!(instructions(&world), 1);
}

/// A request for a blob that nobody waits for any more does not end the operation that asked again.
#[test]
fn a_request_that_was_given_up_does_not_time_out() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.blobs = false;
    world.ask("a", "cpu=4", 0.5);
    let asked = |world: &World| {
        let is_request = |effect: &&Effect| {
            matches!(
                effect,
                Effect::Send {
                    frame: Frame::BootstrapRequest { .. },
                    ..
                }
            )
        };
        world.every.iter().filter(is_request).count()
    };
    assert_eq!(asked(&world), 1);
    doubt(&mut world, "m1");
    world.run(2.0);
    assert_eq!(asked(&world), 2, "after a moment, anew");
    world.run(35.0 - world.now);
    assert_eq!(
        world.outcomes(),
        [],
        "the first request is thirty seconds old"
    );
    world.run(10.0);
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::Timeout)]);
}
