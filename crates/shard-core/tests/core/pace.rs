//! How often a shard decides, and what makes it decide again (SH-1, SH-2).

use crate::support::{FULL, Refusal, World, at, cluster, crowded, id};
use bigfleet_shard_core::{BlobAnswer, Code, Effect, Event, Frame, Phase, RequestId, ShardConfig};
use std::collections::BTreeSet;

/// More machines than may be under way at once, at a provider that takes its time.
fn busy() -> World {
    let mut world = World::new(
        ShardConfig::undamped("s", "p"),
        "m0001..m4500 Idle cpu=4 $1",
    );
    world.provider.latency = 1000.0;
    world.provider.list_after = 2.0; // so long that there is none but those of the interval
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

/// SE-9: blobs of a megabyte for more machines than there is room for: not all are asked for at once, and all
/// machines are served.
#[test]
fn blobs_that_wait_are_bounded() {
    let mut world = crowded(9, "m01..m40 Idle cpu=4 $1", 1.0);
    world.blobs = false;
    world.roll_up("a", "cpu=160");
    let session = world.sessions[&cluster("a")].0;
    let mut answered = BTreeSet::new();
    for _ in 0..600 {
        world.run(0.1);
        let asked = world
            .frames(session)
            .into_iter()
            .filter_map(|frame| match frame {
                Frame::BootstrapRequest { request, .. } => Some(*request),
                _ => None,
            });
        let asked: BTreeSet<RequestId> = asked.collect();
        for request in asked.difference(&answered) {
            world.tell(Event::BlobAnswered {
                session,
                request: *request,
                answer: BlobAnswer::Blob {
                    user_data: vec![0; 1 << 20],
                    ttl_seconds: 0,
                },
            });
        }
        answered = asked;
    }
    assert_eq!(world.provider.serving().get("a"), Some(&40));
    // All at once, when nothing was held; then those that did not fit, some of them twice.
    assert!((41..=100).contains(&answered.len()), "{}", answered.len());
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

/// When Lists began, and whether they asked for changes only.
fn lists(world: &World) -> Vec<(f64, bool)> {
    let lists = world
        .effects
        .iter()
        .filter_map(|(at, effect)| match effect {
            Effect::List { cursor, .. } => Some((*at, !cursor.is_empty())),
            _ => None,
        });
    lists.collect()
}

/// A machine that takes 25 s to configure, at a provider that only acknowledges, from 1 s on.
fn slow_machine(others: &str) -> World {
    let machines = format!("m1 Idle cpu=4 $1\n{others}");
    let mut world = World::new(ShardConfig::undamped("s", "p"), &machines);
    world.provider.latency = 25.0;
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=4");
    world
}

/// What only a List shows is Listed for: at most once a second and a tenth of the time, and no more once
/// it was seen (SH-1).
#[test]
fn lists_come_sooner_while_an_operation_waits_to_be_seen() {
    for (takes, sooner) in [(0.05, 20), (0.3, 6)] {
        let mut world = slow_machine("");
        world.provider.list_after = takes;
        world.run(59.0);
        assert_eq!(world.provider.serving()["a"], 1);
        let begun: Vec<f64> = lists(&world).into_iter().map(|(at, _)| at).collect();
        let of_interval = |at: f64| (at % 10.0) < 1e-6;
        let apart = |pair: &[f64]| pair[1] - pair[0] + 1e-6;
        assert!(begun.windows(2).all(|pair| 1.0 <= apart(pair)), "{begun:?}");
        // The first was over before they took so long.
        for pair in begun[1..].windows(2) {
            assert!(
                of_interval(pair[1]) || 10.0 * takes <= apart(pair),
                "{begun:?}"
            );
        }
        let waiting = begun.iter().filter(|at| **at < 26.5 && !of_interval(**at));
        assert!(sooner <= waiting.count(), "{begun:?}");
        let quiet: Vec<f64> = begun.iter().copied().filter(|at| 29.5 < *at).collect();
        assert!(quiet.iter().all(|at| of_interval(*at)), "{begun:?}");
        assert_eq!(quiet.len(), 4, "those of the interval go on: {begun:?}");
    }
}

/// They ask a provider that has a cursor for changes, and leave the Lists of the interval as they are.
#[test]
fn lists_that_come_sooner_ask_for_changes() {
    let mut world = slow_machine("");
    world.provider.cursor = b"7".to_vec();
    world.run(19.5);
    let sooner = lists(&world).into_iter().filter(|(at, _)| 10.5 < *at);
    let sooner: Vec<bool> = sooner.map(|(_, changes)| changes).collect();
    assert!(
        5 < sooner.len() && sooner.iter().all(|changes| *changes),
        "{sooner:?}"
    );
}

/// Three Lists that agree are three intervals, not three seconds: a provider that shows less for a while
/// loses nothing (SH-10).
#[test]
fn lists_that_come_sooner_have_no_machine_believed_gone() {
    let mut world = slow_machine("x1..x9 Idle cpu=1 $1");
    world.run(1.0);
    let hidden = (1..=9).map(|number| crate::support::id(&format!("x{number}")));
    world.provider.hidden = hidden.collect();
    world.run(18.0);
    assert!(10 < lists(&world).len(), "{:?}", lists(&world));
    assert_eq!(world.core.counters().removed, 0);
    world.provider.hidden.clear();
    world.run(30.0);
    assert_eq!(world.core.counters().removed, 0);
}

/// A provider that fails is not asked more often than before.
#[test]
fn a_list_that_failed_is_made_again_with_the_interval() {
    let mut world = slow_machine("");
    world.run(2.0);
    world.provider.list_fails = true;
    let before = lists(&world).len();
    world.run(20.0);
    assert!(lists(&world).len() <= before + 4, "{:?}", lists(&world));
}

/// SH-41: what waits for a provider that could not be reached leaves when a List shows that it is back, not
/// after the rest of a long backoff.
#[test]
fn a_provider_that_comes_back_is_used_at_once() {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1 Idle cpu=4 $1");
    world.connect("a", FULL);
    world.run(1.0);
    world.provider.list_fails = true;
    let away = vec![Refusal::Code(Code::Unavailable); 100];
    world.provider.refuse.insert(id("m1"), away);
    world.roll_up("a", "cpu=4");
    // 2 s, 4 s, … 60 s: until the next attempt is a whole minute away.
    let attempts = |world: &World| world.calls().len();
    while attempts(&world) < 8 {
        world.run(1.0);
        assert!(world.now < 600.0, "{:?}", world.calls());
    }
    world.provider.list_fails = false;
    world.provider.refuse.clear();
    world.run(11.0);
    assert_eq!(attempts(&world), 9, "one interval, and not one minute");
    assert_eq!(world.provider.serving()["a"], 1);
}
