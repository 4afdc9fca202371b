//! How often a shard decides, and what makes it decide again (SH-1, SH-2).

use crate::support::{FULL, World, at};
use bigfleet_shard_core::{Event, Phase, ShardConfig};

/// More machines than may be under way at once, at a provider that takes its time.
fn busy() -> World {
    let mut world = World::new(
        ShardConfig::undamped("s", "p"),
        "m0001..m4500 Idle cpu=4 $1",
    );
    world.provider.latency = 1000.0;
    world.ask("a", &format!("cpu={}", 4500 * 4), 2.0);
    assert_eq!(world.core.gauges().in_flight, 4096, "as many as may be");
    world
}

/// There is no room until an operation ends, so deciding again would only find that out again.
#[test]
fn operations_that_leave_no_room_do_not_wake_cycles() {
    let mut world = busy();
    let before = world.core.cycle();
    world.run(8.0);
    assert!(
        world.core.cycle() <= before + 2,
        "{} cycles in 8 s for an interval of 10 s",
        world.core.cycle() - before
    );
}

/// What is left over is decided on once there is room, though nobody asked again.
#[test]
fn what_found_no_room_is_served_when_there_is() {
    let mut world = busy();
    world.run(3000.0);
    assert_eq!(world.provider.serving()["a"], 4500);
}

/// However long deciding takes, half of the time is left for what happens meanwhile.
#[test]
fn a_cycle_that_took_long_is_not_followed_at_once() {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1..m9 Idle cpu=4 $1");
    world.ask("a", "cpu=4", 0.2);
    let before = world.core.cycle();
    world.tell(Event::CycleTook {
        seconds: 2.0,
        phases: Vec::new(),
    });
    world.roll_up("a", "cpu=8");
    world.run(3.0);
    assert_eq!(world.core.cycle(), before, "within twice what it took");
    world.run(1.5);
    assert!(before < world.core.cycle());
}

/// The phases of a cycle that is due now, in the order in which they begin.
fn phases(world: &World) -> Vec<Phase> {
    let (mut core, mut begun) = (world.core.clone(), Vec::new());
    let mut begins = |phase| begun.push(phase);
    let now = at(world.now);
    core.handle_in_phases(now, Event::CycleDue, &mut Vec::new(), &mut begins);
    begun
}

/// Whoever has a clock can tell what a cycle spends its time on (CY-3).
#[test]
fn a_cycle_says_when_each_of_its_phases_begins() {
    use Phase::{Emit, Execute, Phase1, Phase2, Phase3, Snapread};
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1 Idle cpu=4 $1");
    let unseen = [Snapread, Execute];
    assert_eq!(phases(&world), unseen, "the provider has not been seen");
    world.connect("a", FULL);
    world.run(1.0);
    let quiet = [Snapread, Execute, Emit, Execute];
    assert_eq!(phases(&world), quiet, "nothing changed since the last one");
    world.roll_up("a", "cpu=4");
    let busy = [Snapread, Phase1, Phase2, Phase3, Execute, Emit, Execute];
    assert_eq!(phases(&world), busy);
}

/// An event that brings no cycle on begins no phase.
#[test]
fn between_cycles_no_phase_begins() {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1 Idle cpu=4 $1");
    world.run(1.0);
    let mut begun = Vec::new();
    let mut begins = |phase| begun.push(phase);
    let now = at(world.now);
    let (core, mut effects) = (&mut world.core, Vec::new());
    core.handle_in_phases(now, Event::CoordinatorTerm(7), &mut effects, &mut begins);
    assert_eq!(begun, []);
}
