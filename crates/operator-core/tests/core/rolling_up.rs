//! Roll-ups: what the rows say, and what holds them back.

use crate::support::{World, at, config, request};
use bigfleet_operator_core::{
    Alert, Disposition, Event, Held, Kind, Object, ObjectKey, OperatorConfig, PeerTerm,
};
use proptest::prelude::*;

fn held(world: &World, why: Held) -> bool {
    world.core.counters().held.contains_key(&why)
}

/// EX-OP4: one large Pod does not make small machines useless.
#[test]
fn ex_op4_unlike_units_are_rows_of_their_own() {
    let mut world = World::started(config());
    for number in 0..40 {
        world.add_request(request(&format!("p{number}"), "1"));
    }
    world.run_for(3);
    assert_eq!(
        world.last_roll_up(),
        [": {\"cpu\": \"40\"} of {\"cpu\": \"1\"}"]
    );
    world.add_request(request("large", "32"));
    world.run_for(3);
    let expected = [
        ": {\"cpu\": \"40\"} of {\"cpu\": \"1\"}",
        "unit:4: {\"cpu\": \"32\"} of {\"cpu\": \"32\"}",
    ];
    assert_eq!(world.last_roll_up(), expected);
}

#[test]
fn an_old_shard_or_a_flag_gets_one_row() {
    let one = [": {\"cpu\": \"33\"} of {\"cpu\": \"32\"}"];
    let mut old = World::new(config());
    old.features.clear();
    let by_flag = World::new(OperatorConfig {
        unit_classes: false,
        ..config()
    });
    for mut world in [old, by_flag] {
        world.lead();
        world.add_request(request("small", "1"));
        world.add_request(request("large", "32"));
        world.run_for(12);
        assert_eq!(world.last_roll_up(), one);
    }
}

#[test]
fn gangs_are_never_split_and_host_gangs_are_one_unit() {
    let together = |name: &str, cpu: &str, key: &str| {
        let mut facts = request(name, cpu);
        facts.spec.co_location = Some(PeerTerm {
            topology_key: key.to_owned(),
            selector: None,
        });
        facts
    };
    let mut world = World::started(config());
    world.add_request(together("a", "1", "zone"));
    world.add_request(together("b", "1", "zone"));
    world.add_request(together("c", "1", "kubernetes.io/hostname"));
    world.add_request(together("d", "9", "kubernetes.io/hostname"));
    world.run_for(3);
    let expected = [
        "kubernetes.io/hostname\0\0ns: {\"cpu\": \"10\"} of {\"cpu\": \"10\"}",
        "zone\0\0ns: {\"cpu\": \"2\"} of {\"cpu\": \"1\"} whole",
    ];
    assert_eq!(world.last_roll_up(), expected);
    world.add_request(together("e", "8", "zone"));
    world.run_for(3);
    assert_eq!(
        world.last_roll_up()[1],
        "zone\0\0ns: {\"cpu\": \"10\"} of {\"cpu\": \"8\"}"
    );
}

/// EX-OP1 on the whole value: a list that ends early never becomes a roll-up.
#[test]
fn ex_op1_a_partial_list_is_never_sent() {
    let mut world = World::started(config());
    for name in ["a", "b", "c"] {
        world.add_request(request(name, "1"));
    }
    world.run_for(3);
    world.tell(Event::Began(Kind::Request));
    world.tell(Event::Seen(Object::Request(Box::new(request("a", "1"))), 1));
    world.tell(Event::Broken(Kind::Request));
    world.run_for(15);
    assert_eq!(
        world.last_roll_up(),
        [": {\"cpu\": \"3\"} of {\"cpu\": \"1\"}"]
    );
    world.tell(Event::Began(Kind::Request));
    for name in ["a", "b"] {
        world.tell(Event::Seen(
            Object::Request(Box::new(request(name, "1"))),
            1,
        ));
    }
    world.tell(Event::Whole(Kind::Request, 1));
    world.run_for(3);
    assert_eq!(
        world.last_roll_up(),
        [": {\"cpu\": \"2\"} of {\"cpu\": \"1\"}"]
    );
}

/// EX-OP2 on the whole value: a store that went back is listed anew within five minutes.
#[test]
fn ex_op2_a_restored_store_is_listed_anew() {
    let mut world = World::started(config());
    world.add_request(request("a", "1"));
    world.run_for(3);
    // The store was restored: "a" is not in it, and no event says so.
    world.requests.clear();
    world.tell(Event::Fresh(Kind::Request, 1_000_000));
    world.run_for(301);
    assert_eq!(world.core.requests(), 0);
}

/// EX-OP5: requests that are lost are not withdrawn, and when they are back the demand is the same.
#[test]
fn ex_op5_a_wiped_store_is_held() {
    let mut world = World::started(config());
    let names: Vec<String> = (0..1000).map(|number| format!("p{number:03}")).collect();
    names
        .iter()
        .for_each(|name| world.add_request(request(name, "1")));
    world.run_for(3);
    let before = world.last_roll_up();
    world.forget_said();
    world.is_crd_there = false;
    names.iter().for_each(|name| world.remove_request(name));
    world.run_for(120);
    assert_eq!(world.roll_ups().len(), 0);
    assert!(held(&world, Held::Withdrawal));
    assert_eq!(world.alerts, [Alert::WithdrawalHeld]);
    world.is_crd_there = true;
    names
        .iter()
        .for_each(|name| world.add_request(request(name, "1")));
    world.run_for(15);
    assert_eq!(world.last_roll_up(), before);
}

#[test]
fn owners_that_are_gone_are_a_withdrawal() {
    let mut world = World::started(config());
    for number in 0..20 {
        world.add_request(request(&format!("p{number}"), "1"));
    }
    world.run_for(3);
    for number in 0..15 {
        world.owners.remove(&format!("pod-p{number}"));
        world.remove_request(&format!("p{number}"));
    }
    world.run_for(12);
    assert_eq!(
        world.last_roll_up(),
        [": {\"cpu\": \"5\"} of {\"cpu\": \"1\"}"]
    );
    assert_eq!(world.alerts, []);
}

/// EX-OP8 on the whole value: a shard that knows none of many machines hears nothing for ten minutes.
#[test]
fn ex_op8_a_strange_shard_hears_nothing_for_a_while() {
    let mut world = World::started(config());
    (0..30).for_each(|number| world.serve(number, &[]));
    world.add_request(request("a", "1"));
    world.run_for(5);
    world.machines.clear();
    world.lose_session();
    world.forget_said();
    world.run_for(500);
    assert_eq!((world.roll_ups().len(), world.upcoming.len()), (0, 30));
    assert!(world.alerts.contains(&Alert::StrangeShard));
    world.run_for(150);
    assert!(!world.roll_ups().is_empty());
    assert_eq!(world.upcoming.len(), 0);
    assert_eq!(world.nodes.len(), 30);

    let mut world = World::started(config());
    (0..40).for_each(|number| world.serve(number, &[]));
    world.run_for(5);
    world.machines.remove("m7");
    world.resync_count = Some(40);
    world.lose_session();
    world.run_for(60);
    assert_eq!(world.upcoming.len(), 40, "39 were named, and 40 counted");
    world.resync_count = None;
    world.lose_session();
    world.run_for(60);
    assert_eq!(world.upcoming.len(), 39);
    let now = world.now;
    world.change_node("n7", |node| {
        (node.is_ready, node.ready_since) = (false, now)
    });
    world.run_for(890);
    assert!(world.nodes.contains_key("n7"));
    world.run_for(20);
    assert!(!world.nodes.contains_key("n7"));
}

/// OP-26.
#[test]
fn a_rejected_roll_up_waits_and_a_changed_one_does_not() {
    let mut world = World::started(config());
    world.add_request(request("a", "1"));
    world.answer = Some(Disposition::Rejected);
    world.run_for(4);
    let so_far = world.roll_ups().len();
    world.run_for(5);
    assert_eq!(world.roll_ups().len(), so_far);
    assert!(
        world
            .alerts
            .iter()
            .any(|alert| matches!(alert, Alert::RollUpRejected(_)))
    );
    world.add_request(request("b", "1"));
    world.run_for(2);
    assert_eq!(world.roll_ups().len(), so_far + 1);
}

/// OP-4, OP-6.
#[test]
fn nothing_is_said_from_a_cache_that_is_stale_or_has_a_hole() {
    let mut world = World::started(config());
    world.add_request(request("a", "1"));
    world.run_for(3);
    let so_far = world.roll_ups().len();
    let key = ObjectKey::namespaced("ns", "odd");
    let (kind, why) = (Kind::Request, "spec.priority is a text".to_owned());
    world.tell(Event::Unreadable { kind, key, why });
    world.add_request(request("b", "1"));
    world.run_for(5);
    assert_eq!(world.roll_ups().len(), so_far, "one interval");
    world.run_for(10);
    assert_eq!(world.roll_ups().len(), so_far + 1);
    assert!(world.notes.iter().any(|note| note.reason == "Unreadable"));
}

/// OP-14, on the whole value.
#[test]
fn a_shard_that_falls_silent_is_dialled_anew() {
    let mut world = World::started(config());
    world.run_for(15);
    assert_eq!(world.dialled, 1);
    world.answer = None;
    world.run_for(60);
    assert!(1 < world.dialled);
}

proptest! {
    /// OP-17: the same requests, however they came, are the same rows in the same order.
    #[test]
    fn equal_demand_is_equal_bytes(
        cpus in prop::collection::vec(1..40_u32, 1..12),
        priorities in prop::collection::vec(0..3, 12),
        order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let make = |number: usize| {
            let mut facts = request(&format!("p{number:02}"), &cpus[number].to_string());
            facts.spec.priority = priorities[number];
            facts
        };
        let rows = |numbers: &[usize], strays: bool| {
            let mut world = World::started(config());
            if strays {
                world.add_request(request("stray", "3"));
            }
            for number in numbers {
                world.add_request(make(*number));
            }
            world.owners.clear();
            world.remove_request("stray");
            world.run_until(at(25));
            world.roll_ups().pop()
        };
        let forwards: Vec<usize> = (0..cpus.len()).collect();
        let shuffled: Vec<usize> = order.into_iter().filter(|n| *n < cpus.len()).collect();
        prop_assert_eq!(rows(&forwards, false), rows(&shuffled, true));
    }

    /// OP-24: whatever comes and goes, half of what was accepted is never withdrawn while its owners are there.
    #[test]
    fn a_guard_never_withdraws_while_owners_exist(
        keep in 0..10_usize,
        extra in 0..3_usize,
        seconds in 1..600_u64,
    ) {
        let mut world = World::started(config());
        (0..20).for_each(|n| world.add_request(request(&format!("p{n:02}"), "1")));
        world.run_for(5);
        world.forget_said();
        (keep..20).for_each(|n| world.remove_request(&format!("p{n:02}")));
        let most = (10 - keep).min(extra);
        (0..most).for_each(|n| world.add_request(request(&format!("new{n}"), "1")));
        world.run_for(seconds);
        prop_assert_eq!(world.roll_ups().len(), 0);
    }
}
