//! Acknowledgements follow the shard's own (OP-27, OP-28).

use crate::support::{World, answer, at, config, request};
use bigfleet_operator_core::{Disposition, Frame, OperatorConfig, Write};

fn last_id(world: &World) -> String {
    let id = |(_, frame): &(_, Frame)| match frame {
        Frame::RollUp { id, .. } => Some(id.clone()),
        _ => None,
    };
    world.frames.iter().rev().find_map(id).unwrap()
}

fn is_acknowledged(world: &World, name: &str) -> bool {
    let facts = world
        .requests
        .values()
        .find(|facts| facts.key.name == name)
        .unwrap();
    facts
        .status
        .as_ref()
        .is_some_and(|status| status.acknowledged_at.is_some())
}

/// EX-OP3: held is not accepted, and one that was made again is not the one that was accepted.
#[test]
fn ex_op3_only_an_accepted_roll_up_acknowledges() {
    let mut world = World::started(config());
    world.answer = None;
    world.add_request(request("c1", "1"));
    world.run_for(2);
    let seventh = last_id(&world);
    world.hear(answer(&seventh, Disposition::Held));
    assert!(!is_acknowledged(&world, "c1"));
    world.run_for(12);
    let eighth = last_id(&world);
    assert_ne!(seventh, eighth);
    world.holds_writes = true;
    world.hear(answer(&eighth, Disposition::Accepted));
    assert!(matches!(
        world.held_writes.as_slice(),
        [(_, Write::Acknowledge { .. })]
    ));
    let mut again = request("c1", "1");
    again.uid = "another".to_owned();
    world.add_request(again);
    world.apply_held();
    assert!(
        !is_acknowledged(&world, "c1"),
        "the test in the patch failed"
    );
    world.answer = Some(Disposition::Accepted);
    world.run_for(15);
    assert!(is_acknowledged(&world, "c1"), "its own roll-up does it");
}

#[test]
fn a_request_that_changed_since_is_not_what_was_accepted() {
    let mut world = World::started(config());
    world.answer = None;
    world.add_request(request("c1", "1"));
    world.run_for(3);
    let sent = last_id(&world);
    let mut changed = request("c1", "2");
    changed.generation = 2;
    world.add_request(changed);
    world.hear(answer(&sent, Disposition::Accepted));
    assert!(!is_acknowledged(&world, "c1"));
}

#[test]
fn a_shard_that_never_answers_is_taken_at_its_silence() {
    let mut world = World::new(config());
    world.features.clear();
    world.answer = None;
    world.lead();
    world.add_request(request("c1", "1"));
    world.run_for(40);
    assert!(!is_acknowledged(&world, "c1"));
    world.run_for(60);
    assert!(is_acknowledged(&world, "c1"));
    assert_eq!(world.dialled, 1);
}

#[test]
fn roll_ups_do_not_wait_for_acknowledgements() {
    let mut world = World::started(config());
    (0..200).for_each(|n| world.add_request(request(&format!("p{n}"), "1")));
    world.holds_writes = true;
    world.run_for(60);
    assert_eq!(world.held_writes.len(), 16, "so many at once");
    assert!(5 <= world.roll_ups().len());
    assert!(world.core.writes_waiting() <= 16);
}

/// The moment a request was made can be read differently twice; the place it had in the order is given up then.
#[test]
fn a_request_that_changed_its_place_in_the_order_holds_up_nobody() {
    let one_at_a_time = OperatorConfig {
        ack_concurrency: 1,
        ..config()
    };
    let mut world = World::started(one_at_a_time);
    world.holds_writes = true;
    world.answer = None;
    let made_at = |name: &str, seconds: u64| {
        let mut request = request(name, "1");
        request.created = at(seconds);
        request
    };
    (0..3).for_each(|n| world.add_request(made_at(&format!("c{n}"), n)));
    world.run_for(2);
    let sent = last_id(&world);
    world.hear(answer(&sent, Disposition::Accepted));
    assert_eq!(world.held_writes.len(), 1, "c0 is being written");

    world.add_request(made_at("c1", 9));
    let mut told_by_another = made_at("c1", 9);
    let status = told_by_another.status.as_mut().unwrap();
    status.acknowledged_at = Some(at(2));
    world.add_request(told_by_another);
    world.holds_writes = false;
    world.apply_held();
    assert!(is_acknowledged(&world, "c2"));
}
