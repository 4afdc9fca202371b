//! Only the leader follows, dials and writes (OP-11).

use crate::support::{World, config, request};
use bigfleet_operator_core::{Effect, Event, Kind};
use std::time::Duration;

/// EX-OP12: a leader that was stopped for 20 s finds its lease old before it dials.
#[test]
fn ex_op12_a_leader_that_was_stopped_does_not_dial() {
    let mut world = World::new(config());
    world.is_shard_up = false;
    world.lead();
    assert_eq!(world.dialled, 1);
    world.now = world.now + Duration::from_secs(20);
    let mut effects = Vec::new();
    world.core.handle(world.now, Event::Woken, &mut effects);
    assert!(!world.core.is_leading());
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Dial(_) | Effect::Write(..)))
    );
    assert!(effects.contains(&Effect::Unfollow));
}

#[test]
fn who_loses_the_lead_hangs_up_and_stops_evicting() {
    let mut world = World::started(config());
    world.serve(1, &["p1"]);
    world.add_request(request("a", "1"));
    world.reclaim("i1", "m1", true, 600);
    let mut effects = Vec::new();
    world
        .core
        .handle(world.now, Event::Leads(None), &mut effects);
    assert!(matches!(
        effects.as_slice(),
        [Effect::ForgetPods(_), Effect::HangUp(_), Effect::Unfollow]
    ));
    effects.clear();
    world.core.handle(
        world.now + Duration::from_secs(300),
        Event::Woken,
        &mut effects,
    );
    assert_eq!(effects, []);
    assert!(world.nodes["n1"].drain.is_some(), "the record stays");
    let follow = Kind::ALL.map(Effect::Follow);
    let later = world.now + Duration::from_secs(301);
    world
        .core
        .handle(later, Event::Leads(Some(later)), &mut effects);
    assert_eq!(effects[..4], follow);
}
