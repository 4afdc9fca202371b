//! The fixed point, through the whole core: latency and order of completion move no decision
//! (engine AT-1..AT-4).

use crate::support::{FULL, Refusal, World, id};
use bigfleet_model::{ActionKind, State};
use bigfleet_shard_core::{Code, ShardConfig};

const FLEET: &str = "i1..i3 Idle cpu=4 $1
     s01..s20 Speculative cpu=4 $2 rack=r1
     t01..t20 Speculative cpu=4 $2 rack=r2";

fn settled(jitter: u64, latency: f64) -> World {
    let mut world = World::new(ShardConfig::undamped("s", "p"), FLEET);
    world.provider.latency = latency;
    world.provider.jitter = jitter;
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=32 prio=100\n cpu=16 prio=1000 group=g1 rack=Same");
    world.roll_up("b", "cpu=12 prio=10");
    world.run(1500.0);
    world
}

fn count(world: &World, kind: ActionKind) -> u64 {
    world
        .core
        .counters()
        .actions
        .get(&kind)
        .copied()
        .unwrap_or(0)
}

/// AT-1.
#[test]
fn latency_and_order_buy_and_drain_nothing() {
    let calm = settled(0, 0.0);
    let kinds = [ActionKind::Provision, ActionKind::Bootstrap];
    let bought = kinds.map(|kind| count(&calm, kind));
    for seed in 1..30 {
        let world = settled(seed, 400.0);
        assert_eq!(kinds.map(|kind| count(&world, kind)), bought, "seed {seed}");
        assert_eq!(count(&world, ActionKind::Reclaim), 0, "seed {seed}");
        assert_eq!(count(&world, ActionKind::Preempt), 0, "seed {seed}");
        assert_eq!(
            world.provider.serving(),
            calm.provider.serving(),
            "seed {seed}"
        );
        assert_eq!(world.core.shortfalls().count(), 0);
    }
}

/// AT-2.
#[test]
fn one_loss_buys_one_machine() {
    let mut world = settled(3, 100.0);
    let before = world.provider.creates();
    world.there("i1").become_state(State::Failed);
    world.run(1000.0);
    assert_eq!(world.provider.creates(), before + 1);
    assert_eq!(count(&world, ActionKind::Reclaim), 0);
}

/// AT-4.
#[test]
fn one_failed_create_is_replaced_once() {
    let mut world = World::new(
        ShardConfig::undamped("s", "p"),
        "s1..s9 Speculative cpu=4 $1",
    );
    world.provider.latency = 30.0;
    let lost = vec![
        Refusal::Lost(Code::Unavailable),
        Refusal::Code(Code::Unknown),
    ];
    world.provider.refuse.insert(id("s2"), lost);
    world.ask("a", "cpu=12", 10.0);
    let there = world.there("s1");
    there.become_state(State::Failed);
    there.due = None;
    world.run(400.0);
    assert_eq!(world.provider.creates(), 4);
    assert_eq!(world.provider.serving()["a"], 3);
}

/// engine.md §15 and §16: a gang nobody can hold parks, stays visible, and takes up again.
#[test]
fn a_gang_that_cannot_be_held_parks_and_stays_visible() {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "r1 Idle cpu=4 $1 rack=r1");
    world.ask("a", "cpu=64 min:cpu=64 group=g1 rack=Same", 200.0);
    let short: Vec<u32> = world.core.shortfalls().map(|one| one.age).collect();
    assert_eq!(short.len(), 1);
    assert!(15 < short[0], "{short:?}");
    assert_eq!(world.core.gauges().shortfalls_by_age[2], 1);
    assert_eq!(world.core.reported_shortfalls()[0].age, short[0]);
}
