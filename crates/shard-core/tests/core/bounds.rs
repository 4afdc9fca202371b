//! Bounds and conditions that guard a machine, each from both sides: what is just enough, and what is just
//! not (SH-9..SH-13, DC-7).

use crate::support::{FULL, Refusal, World, cluster, id, world};
use bigfleet_model::{Machine, MachineFacts, State};
use bigfleet_shard_core::{Alert, Effect, Features, Outcome, Record, ShardConfig};

/// A new process on the same disk, in front of the same provider.
fn restarted(world: &World) -> World {
    let config = ShardConfig::undamped("s", "p");
    let epoch = world.core.epoch() + 1;
    let (provider, disk) = (world.provider.clone(), world.disk.records().to_vec());
    World::around(config, provider, epoch, disk, world.now)
}

fn hide(world: &mut World, machines: impl Iterator<Item = u32>) {
    world.provider.hidden = machines.map(|n| id(&format!("m{n}"))).collect();
}

/// SH-12: a machine is bound to the cluster we asked for, but by another operation, of an earlier process or
/// of another shard: that is not our binding.
#[test]
fn a_binding_by_another_operation_is_a_conflict() {
    for (intent, expected) in [
        ("0000000900000001", Outcome::Conflict),
        ("not one of ours", Outcome::Conflict),
        ("0000000100000001", Outcome::Success),
    ] {
        let mut world = world("m1 Idle cpu=4 $1");
        world.connect("a", FULL);
        world.run(1.0);
        let there = world.there("m1");
        there.set(|facts| facts.cluster = "a".to_owned());
        there.become_state(State::Configured);
        let key = "bigfleet.lucy.sh/assigned-intent".to_owned();
        there.metadata.insert(key, intent.to_owned());
        world.roll_up("a", "cpu=4");
        world.run(2.0);
        assert_eq!(world.outcomes()[0], ("m1".to_owned(), expected), "{intent}");
        let conflicts = u64::from(expected == Outcome::Conflict);
        assert_eq!(world.core.counters().conflicts, conflicts, "{intent}");
    }
}

/// SH-10: of 250 machines two may vanish at once, and a third one waits for three Lists to agree.
#[test]
fn a_hundredth_of_the_machines_may_vanish_at_once() {
    let mut world = world("m1..m250 Idle cpu=4 $1");
    world.run(1.0);
    hide(&mut world, 1..=3);
    world.run(10.0);
    assert_eq!(world.core.machines().count(), 250);
    assert_eq!(world.core.rails().removals_held, 3);
    let held = |world: &World| {
        let alerts = world
            .every
            .iter()
            .filter(|effect| matches!(effect, Effect::Alert(Alert::RemovalHeld { missing: 3 })));
        alerts.count()
    };
    assert_eq!(held(&world), 1);
    hide(&mut world, 1..=2);
    world.run(10.0);
    assert_eq!(world.core.machines().count(), 248);
    assert_eq!(world.core.rails().removals_held, 0);
    hide(&mut world, 1..=5);
    world.run(10.0);
    assert_eq!(world.core.machines().count(), 248, "three more, once");
    world.run(10.0);
    assert_eq!(world.core.machines().count(), 248, "twice");
    world.run(10.0);
    assert_eq!(world.core.machines().count(), 245, "three Lists agree");
}

/// SH-10: a process decides once it has seen nine tenths of what is remembered.
#[test]
fn a_tenth_of_what_is_remembered_may_be_unseen() {
    let mut world = world("m1..m20 Configured a cpu=4 $1");
    world.ask("a", "cpu=80", 10.0);
    for (missing, is_ready) in [(0, true), (2, true), (3, false), (10, false)] {
        let mut again = restarted(&world);
        hide(&mut again, 1..=missing);
        again.run(5.0);
        assert_eq!(
            again.core.is_ready(),
            is_ready,
            "{missing} of 20 are missing"
        );
        let unseen = again.core.awaits().map_or(0, |awaits| awaits.unseen);
        assert_eq!(unseen, if is_ready { 0 } else { missing as usize });
    }
}

/// DC-7: a call that never left is taken back, but not if the operator was told to drain: it has begun.
#[test]
fn an_instructed_drain_is_not_taken_back() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world
        .provider
        .refuse
        .insert(id("m1"), vec![Refusal::NeverSent]);
    let features = Features {
        drain_report: false,
        ..FULL
    };
    world.connect("a", features);
    world.run(1.0);
    world.roll_up("a", "cpu=4");
    world.run(5.0);
    world.roll_up("a", "");
    world.run(0.5);
    assert_eq!(world.calls(), ["Drain m1"], "told, and called at once");
    assert_eq!(world.outcomes(), [], "it has begun");
    assert_eq!(world.state("m1"), State::Draining);
    world.run(5.0);
    assert_eq!(world.calls(), ["Drain m1", "Drain m1"]);
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::Success)]);
}

/// RC-4: a record that is refused says at least that its machine is there, also of one that only an earlier
/// process has seen.
#[test]
fn a_remembered_machine_whose_record_is_refused_is_not_gone() {
    let mut world = world("m1 Configured a cpu=4 $1\n m2 Configured a cpu=4 $1");
    world.ask("a", "cpu=8", 10.0);
    let before = world.core.machine(&id("m1")).unwrap().attribution();
    assert!(before.is_some());
    let refused = Machine::new(MachineFacts {
        price_per_hour: -1.0,
        ..MachineFacts::new("m1", State::Speculative)
    });
    let mut again = restarted(&world);
    again.provider.hidden.insert(id("m1"));
    again.provider.unbelievable = vec![("m1".to_owned(), refused.unwrap_err())];
    again.connect("a", FULL);
    again.run(60.0);
    assert!(again.core.machine(&id("m1")).is_none(), "not believed");
    let is_kept = again.core.records().iter().any(|record| {
        matches!(record, Record::Machine { machine, kept: Some(_) } if *machine == id("m1"))
    });
    assert!(is_kept, "but there");
    again.provider.hidden.clear();
    again.provider.unbelievable.clear();
    again.run(15.0);
    let after = again.core.machine(&id("m1")).unwrap();
    assert_eq!(after.attribution(), before, "and committed as it was");
    assert_eq!(after.cluster(), Some(&cluster("a")));
}
