//! What the provider shows, and when it is believed (shard.md §3, SH-9..SH-13).

use crate::support::{FULL, World, cluster, id, world};
use bigfleet_model::{ActionKind, Machine, MachineFacts, State};
use bigfleet_shard_core::{Defect, Effect, Event, Outcome, Record, ShardConfig, Stage};

/// EX-RC1.
#[test]
fn ex_rc1_configuring_becomes_configured_and_keeps_its_commitment() {
    let mut world = world("m1 Configuring a cpu=4 $1 own-raw=F,g");
    let session = world.connect("a", FULL);
    world.run(1.0);
    world.clear();
    world.there("m1").become_state(State::Configured);
    world.run(10.0);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!(machine.state(), State::Configured);
    assert_eq!(machine.attribution().unwrap().fingerprint.as_str(), "F");
    assert_eq!(machine.attribution().unwrap().group.as_str(), "g");
    assert_eq!(world.nodes(session), ["m1 Configured"]);
}

/// EX-RC2.
#[test]
fn ex_rc2_draining_becomes_idle_and_the_old_cluster_hears_of_it() {
    let mut world = world("m1 Draining a cpu=4 $1 stamp=1000 own-raw=F,");
    let session = world.connect("a", FULL);
    world.run(1.0);
    world.clear();
    world.there("m1").become_state(State::Idle);
    world.run(10.0);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!((machine.state(), machine.cluster()), (State::Idle, None));
    assert_eq!(machine.terms().priority, 0);
    assert!(world.core.idle_since(&id("m1")).is_some());
    assert_eq!(world.nodes(session), ["m1 Idle"]);
}

/// EX-RC3 and EX-RC3b: what a List shows is older than what was done since it began, whether the
/// call is still on its way or was acknowledged.
#[test]
fn ex_rc3_a_list_that_began_before_our_change_is_ignored() {
    for answer_after in [1.0, 0.1] {
        let mut world = world("m1 Idle cpu=4 $1");
        world.provider.latency = 100.0;
        world.provider.answer_after = answer_after;
        world.connect("a", FULL);
        world.run(9.0);
        world.provider.list_after = 0.5;
        world.run(1.0); // a List begins at 10 and shows m1 Idle
        world.roll_up("a", "cpu=4");
        world.run(0.8);
        assert_eq!(world.calls(), ["Configure m1"]);
        assert_eq!(world.state("m1"), State::Configuring);
        assert_eq!(world.core.counters().adoptions, 0);
        let gets = world
            .effects
            .iter()
            .any(|(_, one)| matches!(one, Effect::Get { .. }));
        assert!(!gets, "not even doubted");
    }
}

/// With a cursor, a List passes over such a machine for good: the next one begins after it. So the machine
/// is read by itself, or whatever became of it meanwhile would stay unknown until the next full List.
#[test]
fn what_a_list_with_a_cursor_was_too_old_for_is_read_by_itself() {
    let mut world = world("m1 Idle cpu=4 $1\nm2 Idle cpu=1 $1");
    world.provider.latency = 100.0;
    world.provider.cursor = b"7".to_vec();
    world.connect("a", FULL);
    world.run(9.0);
    world.provider.list_after = 0.5;
    world.run(1.0);
    world.roll_up("a", "cpu=4");
    world.run(0.8);
    let gets = world.effects.iter().filter_map(|(_, one)| match one {
        Effect::Get { machine, .. } => Some(machine.as_str()),
        _ => None,
    });
    assert_eq!(gets.collect::<Vec<_>>(), ["m1"]);
    assert_eq!(world.state("m1"), State::Configuring);
    assert_eq!(world.core.counters().adoptions, 0);
}

/// An answer may take longer than what it answers: then a List shows the end before the answer tells of
/// the beginning. With a cursor no later List would show it.
#[test]
fn an_end_that_was_shown_before_the_call_was_answered_is_read_by_itself() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.provider.latency = 2.0;
    world.provider.answer_after = 25.0;
    world.provider.cursor = b"7".to_vec();
    world.connect("a", FULL);
    world.roll_up("a", "cpu=4");
    world.run(15.0);
    assert_eq!(world.calls(), ["Configure m1"]);
    world.provider.lists_lie = true;
    world.provider.hidden.insert(id("m1"));
    world.run(5.0);
    assert_eq!(world.state("m1"), State::Configuring, "its call is out");
    world.run(7.0);
    assert_eq!(world.state("m1"), State::Configured);
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::Success)]);
}

/// EX-RC4.
#[test]
fn ex_rc4_a_record_that_breaks_the_grid_is_refused_and_not_removed() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.connect("a", FULL);
    world.run(1.0);
    let refused = Machine::new(MachineFacts {
        price_per_hour: -1.0,
        ..MachineFacts::new("m1", State::Speculative)
    });
    world.provider.hidden.insert(id("m1"));
    world.provider.unbelievable = vec![("m1".to_owned(), refused.unwrap_err())];
    world.run(60.0);
    assert_eq!(world.state("m1"), State::Configured);
    assert_eq!(world.core.counters().machines_rejected["price"], 6);
}

/// EX-RC5: what describes a machine follows; what it is kept at does not.
#[test]
fn ex_rc5_a_price_is_refreshed_and_the_keep_price_is_not() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.ask("a", "cpu=4", 5.0);
    let there = world.there("m1");
    there.set(|facts| facts.price_per_hour = 9.0);
    world.run(20.0);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!(machine.price().dollars_per_hour(), 9.0);
    assert_eq!(machine.keep_price().dollars_per_hour(), 1.0);
}

/// EX-RC6 and EX-RS3.
#[test]
fn ex_rc6_a_restart_reads_the_commitment_from_the_metadata() {
    let mut world = world("m1 Configured a cpu=4 $1 stamp=1000 own-raw=F,");
    world.run(1.0);
    let machine = world.core.machine(&id("m1")).unwrap();
    assert_eq!(machine.terms().priority, 1000);
    assert_eq!(world.core.machines().count(), 1);
}

/// SH-9, ST-7: a jump is adopted after a confirming Get; audited, counted, notified.
#[test]
fn a_lost_machine_is_adopted_after_a_get_and_replaced_once() {
    let mut world = world("m1 Configured a cpu=4 $1\n s1..s3 Speculative cpu=4 $1");
    let session = world.ask("a", "cpu=4", 5.0);
    world.clear();
    world.there("m1").become_state(State::Failed);
    world.run(60.0);
    assert_eq!(world.state("m1"), State::Failed);
    assert_eq!(world.core.counters().adoptions, 1);
    assert!(
        world
            .outcomes()
            .contains(&("m1".to_owned(), Outcome::Adopted))
    );
    assert_eq!(world.nodes(session)[0], "m1 Failed");
    assert_eq!(world.calls(), ["Create s1", "Configure s1"]);
    let gets = world
        .effects
        .iter()
        .filter(|(_, one)| matches!(one, Effect::Get { .. }));
    assert_eq!(gets.count(), 1);
}

/// NS-4: a machine that turns out to be another cluster's is news to both.
#[test]
fn who_loses_a_machine_to_another_cluster_is_told() {
    let mut world = world("m1 Configured a cpu=4 $1");
    let (a, b) = (world.connect("a", FULL), world.connect("b", FULL));
    world.run(1.0);
    world.clear();
    let there = world.there("m1");
    there.set(|facts| facts.cluster = "b".to_owned());
    world.run(60.0);
    assert_eq!(world.nodes(a), ["m1 Idle"]);
    assert_eq!(world.nodes(b), ["m1 Configured"]);
}

/// SH-9: out of Failed, on the provider's word.
#[test]
fn a_machine_that_recovered_leaves_failed() {
    let mut world = world("m1 Speculative cpu=4 $1");
    world.there("m1").become_state(State::Failed);
    world.run(5.0);
    assert_eq!(world.state("m1"), State::Failed);
    world.there("m1").become_state(State::Idle);
    world.run(15.0);
    assert_eq!(world.state("m1"), State::Idle);
}

/// SH-9: source seen after an ack is believed only when a later Get says so, then sent again.
#[test]
fn a_provider_that_forgot_is_called_again() {
    let mut world = world("s1..s2 Speculative cpu=4 $1");
    world.provider.latency = 1000.0;
    world.ask("a", "cpu=4", 5.0);
    let there = world.there("s1");
    there.become_state(State::Speculative);
    there.due = None;
    world.run(30.0);
    assert_eq!(world.calls(), ["Create s1", "Create s1"]);
    assert_eq!(world.state("s2"), State::Speculative);
}

/// SH-10: one goes at once; many only when three Lists agree.
#[test]
fn a_truncated_list_removes_nobody() {
    let mut world = world("m1..m20 Configured a cpu=4 $1\n s1 Speculative cpu=4 $1");
    let session = world.ask("a", "cpu=80", 5.0);
    world.provider.hidden = (1..=15).map(|n| id(&format!("m{n}"))).collect();
    world.run(20.0);
    assert_eq!(world.core.machines().count(), 21);
    world.provider.hidden.clear();
    world.run(10.0);
    world.provider.hidden.insert(id("m7"));
    world.run(10.0);
    assert!(world.core.machine(&id("m7")).is_none());
    let removed = world.frames(session).into_iter().any(|frame| {
        matches!(frame, bigfleet_shard_core::Frame::Node(node) if node.removed && node.machine == id("m7"))
    });
    assert!(removed, "its cluster is told");
    world.provider.hidden = (1..=15).map(|n| id(&format!("m{n}"))).collect();
    world.run(40.0);
    assert_eq!(world.core.machines().count(), 6, "three Lists agree");
}

/// SH-10: a tombstone removes at once.
#[test]
fn a_tombstone_removes_at_once() {
    let mut world = world("m1..m9 Idle cpu=4 $1");
    world.run(1.0);
    world.provider.tombstones = (1..=5).map(|n| id(&format!("m{n}"))).collect();
    for gone in world.provider.tombstones.clone() {
        world.provider.machines.remove(&gone);
    }
    world.run(10.0);
    assert_eq!(world.core.machines().count(), 4);
}

/// SH-13: another shard's machines are not ours, and from then on no unbound one is.
#[test]
fn machines_of_another_shard_are_left_alone() {
    let mut world = world("m1 Configured a cpu=4 $1\n m2 Configured b cpu=4 $1");
    let there = world.there("m2");
    let shard = "bigfleet.lucy.sh/assigned-shard".to_owned();
    there.metadata.insert(shard, "other".to_owned());
    world.run(1.0);
    assert!(world.core.machine(&id("m1")).is_some());
    assert!(world.core.machine(&id("m2")).is_none());
    let idle = World::new(ShardConfig::undamped("s", "p"), "n1 Idle cpu=4 $1");
    let fresh = idle.provider.machines[&id("n1")].clone();
    world.provider.machines.insert(id("n1"), fresh);
    world.run(20.0);
    assert!(world.core.machine(&id("n1")).is_none());
    let alerts = world
        .effects
        .iter()
        .filter(|(_, one)| matches!(one, Effect::Alert(_)));
    assert_eq!(alerts.count(), 1, "once it was confirmed");
    assert!(1 < world.core.counters().foreign);
}

/// SH-13: what is inside an own domain, or in the owned set, is ours; what is not is not.
#[test]
fn an_own_domain_bounds_what_is_adopted() {
    let mut config = ShardConfig::undamped("s", "p");
    config.own_domains = vec![("rack".to_owned(), "r1".to_owned())];
    let machines = "m1 Idle cpu=4 $1 rack=r1\n m2 Idle cpu=4 $1 rack=r2\n m3 Idle cpu=4 $1 rack=r3";
    let mut world = World::new(config, machines);
    world.tell(Event::Owned {
        add: [id("m3")].into(),
        remove: [].into(),
    });
    world.run(1.0);
    let ids: Vec<_> = world
        .core
        .machines()
        .map(|one| one.id().to_string())
        .collect();
    assert_eq!(ids, ["m1", "m3"]);
}

/// CY-5: without a complete List nothing is decided, and nothing is called short.
#[test]
fn nothing_is_decided_before_the_provider_was_seen() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.provider.list_fails = true;
    world.connect("a", FULL);
    world.roll_up("a", "cpu=4");
    world.run(100.0);
    assert!(!world.core.is_ready());
    assert_eq!(world.core.shortfalls().count(), 0);
    assert!(world.core.is_cluster_ready(&cluster("a")));
    world.provider.list_fails = false;
    world.run(20.0);
    assert_eq!(world.state("m1"), State::Configured);
}

/// RC-3: with a cursor, one List in sixty asks for everything.
#[test]
fn one_list_in_sixty_asks_for_everything() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.run(1.0);
    world.provider.cursor = b"7".to_vec();
    world.clear();
    world.run(1205.0);
    let full = world
        .effects
        .iter()
        .filter(|(_, one)| matches!(one, Effect::List { cursor, .. } if cursor.is_empty()));
    let all = world.effects.iter();
    let all = all.filter(|(_, one)| matches!(one, Effect::List { .. }));
    assert_eq!((full.count(), all.count()), (2, 120));
}

/// A provider whose List takes longer than the interval is read to the end, and decided on.
#[test]
fn a_list_slower_than_the_interval_comes_to_its_end() {
    let mut world = world("s1 Speculative cpu=4 $1");
    world.provider.list_after = 35.0;
    world.connect("a", FULL);
    world.roll_up("a", "cpu=4");
    world.run(120.0);
    let lists = world.effects.iter();
    let lists = lists.filter(|(_, effect)| matches!(effect, Effect::List { .. }));
    assert!((3..=4).contains(&lists.count()), "one at a time");
    assert_eq!(world.calls(), ["Create s1", "Configure s1"]);
}

/// SH-10: one missing machine per List, each time another, had twenty healthy ones drained. Each drain is
/// taken back when the next is missed (SH-18), so what shows is that it began.
#[test]
fn a_missing_machine_is_asked_for_before_it_is_believed_gone() {
    let seen = [None, Some(Defect::MissingNotAskedFor)].map(|defect| {
        let config = ShardConfig {
            defect,
            ..ShardConfig::undamped("s", "p")
        };
        let machines = "m01..m20 Configured a cpu=4 $1\n s01..s40 Speculative cpu=4 $1";
        let mut world = World::new(config, machines);
        world.provider.lists_lie = true;
        world.connect("a", FULL);
        world.run(1.0);
        world.roll_up("a", "cpu=80");
        world.run(20.0);
        for number in 1..=20 {
            let machine = id(&format!("m{number}"));
            world.provider.hidden = [machine].into();
            world.run(10.0);
        }
        world.run(60.0);
        let counters = world.core.counters();
        let reclaims = counters.actions.get(&ActionKind::Reclaim).copied();
        (world.calls().len(), counters.removed, reclaims.unwrap_or(0))
    });
    assert_eq!(seen[0], (0, 0, 0));
    assert!(15 <= seen[1].1 && 15 <= seen[1].2, "{seen:?}");
}

/// SH-13: one List that shows one machine with another shard's mark changes nothing for good.
#[test]
fn a_foreign_mark_is_believed_when_it_was_seen_twice_and_confirmed() {
    for lists in [1, 2] {
        let mut world = World::new(ShardConfig::undamped("s", "p"), "m1 Idle cpu=4 $1");
        let mark = "bigfleet.lucy.sh/assigned-shard".to_owned();
        world.run(1.0);
        let more = "x1 Configured b cpu=4 $1";
        let more = World::new(ShardConfig::undamped("s", "p"), more).provider;
        world.provider.machines.extend(more.machines);
        let there = world.provider.machines.get_mut(&id("x1")).unwrap();
        there.metadata.insert(mark, "t".to_owned());
        world.run(10.0 * f64::from(lists));
        if lists == 1 {
            world.provider.machines.remove(&id("x1"));
        }
        world.run(20.0);
        let is_kept = world.disk.records().contains(&Record::ForeignSeen);
        assert_eq!(is_kept, lists == 2, "{lists} Lists showed it");
        let more = World::new(ShardConfig::undamped("s", "p"), "m2 Idle cpu=4 $1").provider;
        world.provider.machines.extend(more.machines);
        world.run(20.0);
        assert_eq!(world.core.machine(&id("m2")).is_some(), lists == 1);
    }
}

/// SH-10: a Get that fails says nothing, and is made again a while later: of a machine that is known, and of one
/// that an earlier process knew.
#[test]
fn a_get_that_fails_is_made_again_after_a_while() {
    let in_100_seconds = |world: &mut World| {
        let gets = |world: &World| {
            let every = world.every.iter();
            every
                .filter(|effect| matches!(effect, Effect::Get { .. }))
                .count()
        };
        world.run(200.0);
        let before = gets(world);
        world.run(100.0);
        gets(world) - before
    };
    let config = || ShardConfig::undamped("s", "p");
    let mut world = World::new(config(), "m01..m20 Configured a cpu=4 $1");
    world.ask("a", "cpu=80", 60.0);
    world.provider.gets_fail = true;
    world.provider.hidden.insert(id("m1"));
    let made = in_100_seconds(&mut world);
    assert!((5..=20).contains(&made), "{made}");
    let (provider, disk) = (world.provider.clone(), world.disk.found(0));
    let mut again = World::around(config(), provider, 3, disk, world.now + 5.0);
    let made = in_100_seconds(&mut again);
    assert!((5..=20).contains(&made), "{made}");
    assert!(again.core.machine(&id("m2")).is_some());
}

/// SH-9: while an operator drains a machine nothing was asked of the provider, and a Get that finds it where it was is
/// no reason to begin anew.
#[test]
fn a_get_does_not_disturb_an_operator_that_drains() {
    let mut world = World::new(
        ShardConfig::undamped("s", "p"),
        "m1..m20 Configured a cpu=4 $1",
    );
    world.provider.lists_lie = true;
    world.drains = false;
    world.ask("a", "cpu=80", 20.0);
    world.roll_up("a", "cpu=76");
    world.run(5.0);
    let work = |world: &World| world.core.work_page(None).entries;
    let [draining] = &work(&world)[..] else {
        panic!("{:?}", work(&world));
    };
    assert_eq!(draining.stage, Stage::Drain);
    // No List shows it, so it is asked for by name, and found where it was.
    world.provider.hidden = [draining.machine.clone()].into();
    world.clear();
    world.run(60.0);
    let gets = world.effects.iter();
    let gets = gets.filter(|(_, effect)| matches!(effect, Effect::Get { .. }));
    assert!(0 < gets.count(), "nobody asked");
    assert_eq!(work(&world)[0].stage, Stage::Drain);
    assert!(world.calls().is_empty(), "{:?}", world.calls());
}
