//! UpcomingNodes that never leak (OP-9, OP-41).

use crate::support::{World, config, frame};
use bigfleet_operator_core::{Event, Heard, MachineState, Write, WriteOutcome};

/// A conflict on an object of our own is no answer to whether it should be there.
#[test]
fn a_deletion_that_meets_a_conflict_is_tried_again() {
    let mut world = World::started(config());
    world.hear(Heard::NodeState(Box::new(frame(
        "m1",
        MachineState::Configuring,
    ))));
    world.run_for(1);
    assert!(world.upcoming.contains_key("un-m1"));
    world.holds_writes = true;
    let left = bigfleet_operator_core::NodeState {
        is_removed: true,
        ..frame("m1", MachineState::Idle)
    };
    world.hear(Heard::NodeState(Box::new(left)));
    for _ in 0..3 {
        let (id, write) = world.held_writes.pop().expect("it is tried again");
        assert!(matches!(write, Write::DeleteUpcoming { .. }), "{write:?}");
        world.tell(Event::Wrote(id, WriteOutcome::Conflict));
        assert!(world.held_writes.is_empty(), "after a pause");
        world.run_for(5);
    }
    world.holds_writes = false;
    world.apply_held();
    world.run_for(5);
    assert!(world.upcoming.is_empty());
}
