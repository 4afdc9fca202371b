//! UpcomingNodes that never leak (OP-9, OP-41).

use crate::support::{World, config, frame};
use bigfleet_operator_core::{Event, Heard, MachineState, Object, Write, WriteOutcome};

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

/// A machine that failed and was made good is a slot again: nothing of it stays, and it may be bought anew.
#[test]
fn a_machine_that_is_a_slot_again_has_left() {
    for state in [MachineState::Failed, MachineState::Configured] {
        let mut world = World::started(config());
        world.serve(1, &[]);
        world.machine_is("m1", state);
        world.run_for(3);
        world.machine_is("m1", MachineState::Speculative);
        let now = world.now;
        world.change_node("n1", |node| {
            (node.is_ready, node.ready_since) = (false, now)
        });
        world.run_for(120);
        assert_eq!(
            (world.upcoming.len(), world.nodes.len()),
            (0, 0),
            "{state:?}"
        );
        world.machine_is("m1", MachineState::Creating);
        world.run_for(3);
        assert_eq!(world.upcoming.len(), 1);
    }
}

/// A watch lags: what it says of an object that is being deleted is older than the deletion.
#[test]
fn a_watch_that_lags_brings_no_object_back() {
    let mut world = World::started(config());
    world.machine_is("m1", MachineState::Configured);
    world.run_for(3);
    let mut late = world.upcoming["un-m1"].clone();
    late.content.readiness = None;
    world.holds_writes = true;
    world.machine_is("m1", MachineState::Idle);
    world.tell(Event::Seen(Object::Upcoming(Box::new(late)), 1));
    world.apply_held();
    world.run_for(60);
    assert!(world.upcoming.is_empty());
    world.machine_is("m1", MachineState::Configuring);
    world.run_for(3);
    assert_eq!(world.upcoming.len(), 1, "it may come again");
}
