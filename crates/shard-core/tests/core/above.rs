//! What a shard may act on, by the word of a coordinator, and that it decides without one (CO-25 to CO-31).
//!
//! Each scenario of a guard runs twice, with the rule kept and with the mistake it guards against.

use crate::support::{FULL, Refusal, World, at, cluster, id};
use bigfleet_model::{Machine, State};
use bigfleet_shard_core::{
    AboveDefect, Answer, Code, Defect, Disposition, Domain, Effect, Event, Frame, HeldScope,
    Instruction, Order, Record, ShardConfig, ShardCore, ToldScope,
};

fn rack(value: &str) -> Domain {
    Domain {
        key: "rack".to_owned(),
        value: value.to_owned(),
    }
}

fn coordinated() -> ShardConfig {
    ShardConfig {
        coordinated: true,
        ..ShardConfig::undamped("s", "p")
    }
}

/// What a scenario shows with the rule kept, and with the mistake.
fn arms<T>(defect: AboveDefect, scenario: impl Fn(ShardConfig) -> T) -> (T, T) {
    let broken = ShardConfig {
        defect: Some(Defect::Above(defect)),
        ..coordinated()
    };
    (scenario(coordinated()), scenario(broken))
}

fn orders(term: u64, first: u64, orders: &[Order]) -> Vec<Instruction> {
    let numbered = (first..).zip(orders);
    let instruction = |(sequence, order): (u64, &Order)| Instruction {
        id: format!("i{sequence}"),
        term,
        sequence,
        order: order.clone(),
    };
    numbered.map(instruction).collect()
}

fn tell(world: &mut World, scope: ToldScope, first: u64, asked: &[Order]) {
    world.tell(Event::Answered(Box::new(Answer {
        term: 1,
        scope,
        instructions: orders(1, first, asked),
        ..Answer::default()
    })));
}

fn assign(value: &str) -> Order {
    Order::AssignDomain(rack(value))
}

fn unassign(value: &str) -> Order {
    Order::UnassignDomain(rack(value))
}

fn known(world: &World) -> Vec<String> {
    let mut known: Vec<String> = world
        .core
        .machines()
        .map(|one| one.id().to_string())
        .collect();
    known.sort();
    known
}

/// What a report says is held: `*` and domains.
fn held(world: &World) -> Option<String> {
    world.core.report().held.map(|held| held.lines())
}

/// A machine at the provider, bound by a shard.
fn mark(world: &mut World, name: &str, shard: &str) {
    let (key, shard) = ("bigfleet.lucy.sh/assigned-shard", shard.to_owned());
    let there = world.there(name);
    there.metadata.insert(key.to_owned(), shard);
}

/// CO-26.
#[test]
fn a_lost_disk_takes_in_no_unbound_machine_before_it_is_told() {
    let taken = arms(AboveDefect::LostDiskTakesAll, |config| {
        let mut world = World::new(
            config,
            "i1 Idle cpu=4 $1 rack=d\n s1 Speculative cpu=4 $1 rack=e\n c1 Configured a cpu=4 $1 rack=d",
        );
        world.run(600.0);
        let waiting = (known(&world), held(&world));
        tell(&mut world, ToldScope::Wait, 1, &[]);
        world.run(60.0);
        let still = known(&world);
        tell(&mut world, ToldScope::Everything, 1, &[]);
        world.run(15.0);
        (waiting, still, known(&world), held(&world))
    });
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (bound, all) = (names(&["c1"]), names(&["c1", "i1", "s1"]));
    let everything = Some("*\n".to_owned());
    assert_eq!(
        taken.0,
        (
            (bound.clone(), None),
            bound,
            all.clone(),
            everything.clone()
        )
    );
    assert_eq!(taken.1, ((all.clone(), None), all.clone(), all, everything));
}

/// An older coordinator says no scope, and never took anything away.
#[test]
fn a_coordinator_that_says_no_scope_means_everything() {
    let mut world = World::new(coordinated(), "i1 Idle cpu=4 $1 rack=d");
    world.run(60.0);
    tell(&mut world, ToldScope::Unsaid, 1, &[]);
    world.run(15.0);
    assert_eq!(held(&world).as_deref(), Some("*\n"));
    assert_eq!(known(&world), ["i1"]);
}

/// CO-25, CO-27.
#[test]
fn a_shard_without_domains_has_no_unbound_machine() {
    let taken = arms(AboveDefect::NothingIsEverything, |config| {
        let mut world = World::new(config, "i1 Idle cpu=4 $1 rack=d\n s1 Speculative cpu=4 $1");
        world.run(15.0);
        tell(&mut world, ToldScope::Assigned, 1, &[assign("d")]);
        world.run(200.0);
        let with = known(&world).len();
        tell(&mut world, ToldScope::Assigned, 2, &[unassign("d")]);
        world.run(200.0);
        (with, known(&world).len(), held(&world))
    });
    assert_eq!(taken.0, (1, 0, Some(String::new())));
    assert_eq!(taken.1.1, 2, "nothing assigned is everything");
}

/// CO-25: the whole table, for a shard that holds one domain.
#[test]
fn whose_a_machine_is_that_was_never_seen() {
    let mut world = World::new(
        coordinated(),
        "ours-in Configured a cpu=4 $1 rack=d
         ours-out Configured a cpu=4 $1 rack=e
         theirs-in Configured a cpu=4 $1 rack=d
         gone-in Configured a cpu=4 $1 rack=d
         gone-out Configured a cpu=4 $1 rack=e
         plain-in Configured a cpu=4 $1 rack=d
         plain-out Configured a cpu=4 $1 rack=e
         strange-in Configured b cpu=4 $1 rack=d
         idle-in Idle cpu=4 $1 rack=d
         idle-out Idle cpu=4 $1 rack=e
         away-in Configured a cpu=4 $1 rack=d",
    );
    for (name, shard) in [
        ("ours-in", "s"),
        ("ours-out", "s"),
        ("theirs-in", "t"),
        ("gone-in", "g"),
        ("gone-out", "g"),
        ("away-in", "s"),
    ] {
        mark(&mut world, name, shard);
    }
    world.provider.hidden = world.provider.machines.keys().cloned().collect();
    world.connect("a", FULL);
    world.roll_up("a", "cpu=400");
    world.blobs = false;
    world.run(5.0);
    world.tell(Event::Answered(Box::new(Answer {
        term: 1,
        scope: ToldScope::Assigned,
        foreign: vec![id("away-in")],
        gone: vec!["g".to_owned()],
        instructions: orders(1, 1, &[assign("d")]),
        ..Answer::default()
    })));
    world.provider.hidden.clear();
    world.run(20.0);
    let at_once = ["gone-in", "ours-in", "ours-out", "plain-in"];
    assert_eq!(known(&world), at_once);
    let lines = held(&world);
    assert_eq!(lines.as_deref(), Some("rack=d\naway away-in \n"));
    let is_known = |world: &World, name: &str| known(world).contains(&name.to_owned());
    world.run(200.0);
    assert!(is_known(&world, "idle-in"), "it was free for two minutes");
    world.there("theirs-in").become_state(State::Idle);
    world.run(60.0);
    assert!(
        !is_known(&world, "theirs-in"),
        "its holder may have called for it last"
    );
    world.run(100.0);
    assert!(is_known(&world, "theirs-in"));
    assert!(!is_known(&world, "idle-out") && !is_known(&world, "away-in"));
    // A mark of a shard that is gone is none in the next life, too.
    let disk = world.disk.records().to_vec();
    let mut again = World::around(coordinated(), world.provider.clone(), 2, disk, world.now);
    again.run(20.0);
    assert!(is_known(&again, "gone-in") && !is_known(&again, "away-in"));
}

/// CO-25, first line.
#[test]
fn what_is_somebody_elses_is_left_alone() {
    let taken = arms(AboveDefect::ForeignTakenIn, |config| {
        let mut world = World::new(config, "i1 Idle cpu=4 $1\n i2 Idle cpu=4 $1");
        world.run(15.0);
        tell(&mut world, ToldScope::Everything, 1, &[]);
        world.run(15.0);
        world.tell(Event::Answered(Box::new(Answer {
            term: 1,
            scope: ToldScope::Everything,
            foreign: vec![id("i1")],
            ..Answer::default()
        })));
        world.run(60.0);
        // It stays so in the next life.
        let disk = world.disk.records().to_vec();
        let config = coordinated();
        let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
        again.run(60.0);
        (known(&world), known(&again))
    });
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(taken.0, (names(&["i2"]), names(&["i2"])));
    assert_eq!(taken.1.0, names(&["i1", "i2"]));
}

/// A shard that has a domain with one machine of each kind: Idle, Creating, Configured.
fn leaving(config: ShardConfig) -> World {
    let mut world = World::new(
        config,
        "i1 Idle cpu=4 $1 rack=d
         k1 Speculative gpu=8 $1 rack=d
         c1 Configured a cpu=4 $1 rack=d",
    );
    mark(&mut world, "c1", "s");
    world.run(15.0);
    tell(&mut world, ToldScope::Assigned, 1, &[assign("d")]);
    world.run(200.0);
    world.provider.latency = 30.0;
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=4\n gpu=8");
    world.run(5.0);
    assert_eq!(world.state("k1"), State::Creating);
    world
}

/// EX-CO-30.
#[test]
fn ex_co_30_a_domain_is_let_go_of_machine_by_machine() {
    let mut world = leaving(coordinated());
    assert_eq!(known(&world), ["c1", "i1", "k1"]);
    let calls = world.calls().len();
    tell(&mut world, ToldScope::Assigned, 2, &[unassign("d")]);
    assert_eq!(known(&world), ["c1", "k1"], "i1 is gone at once");
    assert_eq!(held(&world).as_deref(), Some("rack=d\n"));
    world.run(60.0);
    assert_eq!(known(&world), ["c1"], "k1 was Idle, and is gone");
    assert_eq!(held(&world).as_deref(), Some(""));
    assert_eq!(world.calls().len(), calls, "without a word to the provider");
    world.roll_up("a", "");
    world.run(120.0);
    assert_eq!(
        known(&world),
        [] as [&str; 0],
        "c1 stayed until it was drained"
    );
    assert_eq!(world.core.counters().let_go, 3);
}

#[test]
fn machines_of_a_domain_that_left_are_not_kept() {
    let kept = arms(AboveDefect::LeavingKept, |config| {
        let mut world = leaving(config);
        tell(&mut world, ToldScope::Assigned, 2, &[unassign("d")]);
        known(&world).contains(&"i1".to_owned())
    });
    assert_eq!(kept, (false, true));
}

#[test]
fn a_domain_is_held_while_a_machine_of_it_is_acquired_also_across_a_restart() {
    let reported = arms(AboveDefect::LeavingOverTooSoon, |config| {
        let mut world = leaving(config.clone());
        tell(&mut world, ToldScope::Assigned, 2, &[unassign("d")]);
        world.run(6.0);
        let before = held(&world);
        let disk = world.disk.records().to_vec();
        let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
        let unseen = held(&again);
        again.run(2.0);
        (before, unseen, held(&again))
    });
    let rack = Some("rack=d\n".to_owned());
    assert_eq!(reported.0, (rack.clone(), rack.clone(), rack));
    assert_eq!(reported.1.0, Some(String::new()));
}

/// A Bootstrap that is under way counts as unbound: the provider may not have heard of it.
#[test]
fn a_machine_that_is_being_bound_keeps_its_domain() {
    let mut world = leaving(coordinated());
    world.blobs = false;
    world.roll_up("a", "cpu=8\n gpu=8");
    world.run(5.0);
    assert_eq!(world.state("i1"), State::Configuring);
    world.there("k1").become_state(State::Idle);
    tell(&mut world, ToldScope::Assigned, 2, &[unassign("d")]);
    world.run(20.0);
    assert_eq!(held(&world).as_deref(), Some("rack=d\n"));
    assert_eq!(known(&world), ["c1", "i1"]);
    world.run(120.0);
    assert_eq!(
        held(&world).as_deref(),
        Some(""),
        "there was no blob, and it went back"
    );
}

/// The first domain ends "everything", and everything is reported until the rest is let go.
#[test]
fn who_held_everything_lets_go_of_all_but_its_first_domain() {
    let mut world = World::new(
        coordinated(),
        "i1 Idle cpu=4 $1 rack=d\n k1 Speculative gpu=8 $1 rack=e\n i2 Idle cpu=4 $1 rack=e",
    );
    tell(&mut world, ToldScope::Everything, 1, &[]);
    world.provider.latency = 30.0;
    world.connect("a", FULL);
    world.run(1.0);
    world.roll_up("a", "gpu=8");
    world.run(15.0);
    assert_eq!(world.state("k1"), State::Creating);
    tell(&mut world, ToldScope::Assigned, 1, &[assign("d")]);
    assert_eq!(held(&world).as_deref(), Some("*\nrack=d\n"));
    assert_eq!(known(&world), ["i1", "k1"]);
    world.run(60.0);
    assert_eq!(held(&world).as_deref(), Some("rack=d\n"));
    assert_eq!(known(&world), ["i1"]);
}

/// CO-29.
#[test]
fn a_domain_of_the_settings_is_held_and_cannot_be_taken_away() {
    let config = ShardConfig {
        own_domains: vec![("rack".to_owned(), "d".to_owned())],
        ..coordinated()
    };
    let mut world = World::new(config, "i1 Idle cpu=4 $1 rack=d\n i2 Idle cpu=4 $1 rack=e");
    world.run(15.0);
    assert_eq!(known(&world), ["i1"], "it needs no word from above");
    assert_eq!(held(&world), None);
    tell(&mut world, ToldScope::Assigned, 1, &[unassign("d")]);
    world.run(60.0);
    assert_eq!(held(&world).as_deref(), Some("rack=d\n"));
    assert_eq!(known(&world), ["i1"]);
    let ack = &world.core.report().acks[0];
    assert_eq!(ack.disposition, Disposition::Failed);
    assert!(ack.reason.starts_with("configured here"), "{ack:?}");
}

/// CO-16.
#[test]
fn a_report_waits_until_what_it_speaks_of_is_on_disk() {
    let taken = arms(AboveDefect::ReportBeforeDisk, |config| {
        let mut world = World::new(config, "i1 Idle cpu=4 $1 rack=d");
        world.run(15.0);
        world.disk_delay = None;
        tell(&mut world, ToldScope::Assigned, 1, &[assign("d")]);
        world.tell(Event::ReportWanted);
        let report = world.core.take_report();
        report.map(|report| report.held.unwrap().lines())
    });
    assert_eq!(taken, (None, Some("rack=d\n".to_owned())));
    let mut world = World::new(coordinated(), "i1 Idle cpu=4 $1 rack=d");
    world.run(15.0);
    world.disk_delay = Some(1.0);
    tell(&mut world, ToldScope::Assigned, 1, &[assign("d")]);
    world.tell(Event::ReportWanted);
    assert!(world.core.take_report().is_none());
    world.run(2.0);
    let report = world.core.take_report().unwrap();
    assert_eq!(report.acks.len(), 1);
    assert!(world.core.take_report().is_none(), "each is taken once");
    // A restart keeps what it said.
    let disk = world.disk.records()[..world.disk.durable()].to_vec();
    let again = ShardCore::rebuild(coordinated(), 2, at(world.now), disk).unwrap();
    assert_eq!(again.report().held, report.held);
}

/// CO-14.
#[test]
fn a_shard_that_is_superseded_acts_no_more_nor_does_its_next_process() {
    let acts = arms(AboveDefect::SupersededForgotten, |config| {
        let mut world = World::new(config.clone(), "s1 Speculative cpu=4 $1");
        tell(&mut world, ToldScope::Everything, 1, &[]);
        world.connect("a", FULL);
        world.run(15.0);
        world.tell(Event::Superseded);
        world.roll_up("a", "cpu=4");
        world.run(60.0);
        assert!(world.calls().is_empty() && !world.core.is_ready());
        let disk = world.disk.records().to_vec();
        let mut again = World::around(config, world.provider.clone(), 2, disk, world.now);
        again.ask("a", "cpu=4", 60.0);
        !again.calls().is_empty()
    });
    assert_eq!(acts, (false, true));
}

/// CO-28: the answer to a Drain is lost, and somebody else binds the machine meanwhile.
#[test]
fn a_machine_that_is_ours_by_its_mark_alone_is_looked_at_before_it_is_drained_again() {
    let drained = arms(AboveDefect::DrainedUnseen, |config| {
        let mut world = World::new(config, "c1 Configured a cpu=4 $1 rack=d");
        mark(&mut world, "c1", "s");
        world.ask("a", "cpu=4", 15.0);
        tell(&mut world, ToldScope::Assigned, 1, &[]);
        let refusal = vec![Refusal::Lost(Code::Unavailable)];
        world.provider.refuse.insert(id("c1"), refusal);
        world.roll_up("a", "");
        world.run(2.0);
        assert_eq!(world.provider.drains.len(), 1);
        let there = world.there("c1");
        there.due = None;
        there.become_state(State::Idle);
        there.set(|facts| facts.cluster = "a".to_owned());
        there.become_state(State::Configured);
        mark(&mut world, "c1", "t");
        world.run(60.0);
        (world.provider.drains.len(), known(&world).len())
    });
    assert_eq!(drained.0, (1, 0));
    assert!(1 < drained.1.0, "it was drained under the other shard");
}

/// CO-27.
#[test]
fn what_another_shard_may_be_at_work_on_is_watched_for_two_minutes() {
    let taken = arms(AboveDefect::SharedNotWatched, |config| {
        let mut world = World::new(config, "i1 Idle cpu=4 $1 rack=d\n i2 Idle cpu=4 $1 rack=d");
        world.run(15.0);
        tell(&mut world, ToldScope::Assigned, 1, &[assign("d")]);
        world.run(60.0);
        let soon = known(&world).len();
        // The former holder's last call arrives.
        world
            .there("i2")
            .set(|facts| facts.cluster = "a".to_owned());
        mark(&mut world, "i2", "t");
        world.run(100.0);
        (soon, known(&world))
    });
    assert_eq!(taken.0, (0, vec!["i1".to_owned()]));
    assert_eq!(taken.1.0, 2);
}

/// What an earlier version, or a shard without a coordinator, leaves on disk.
#[test]
fn a_directory_with_a_past_holds_what_it_had() {
    let begun = |records: Vec<Record>| {
        let core = ShardCore::rebuild(coordinated(), 9, at(0.0), records).unwrap();
        core.report().held.map(|held| held.lines())
    };
    assert_eq!(begun(vec![]), None, "a new one waits");
    assert_eq!(begun(vec![Record::Epoch(1)]).as_deref(), Some("*\n"));
    let foreign = vec![Record::Epoch(1), Record::ForeignSeen];
    assert_eq!(
        begun(foreign).as_deref(),
        Some(""),
        "it took nothing new in"
    );
    let unsaid = vec![Record::Epoch(1), Record::Scope(HeldScope::Unsaid)];
    assert_eq!(begun(unsaid), None, "it was never told");
    let alone = ShardConfig::undamped("s", "p");
    let core = ShardCore::rebuild(alone, 9, at(0.0), [Record::Epoch(1)]).unwrap();
    assert_eq!(core.report().held, None);
    assert!(
        !core
            .records()
            .iter()
            .any(|one| matches!(one, Record::Scope(_)))
    );
}

/// How a coordinator fails a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Coordinator {
    None,
    Silent,
    /// It answers what was asked a minute ago.
    Slow,
    /// It says what it has no right to say.
    Lying,
    /// It answers for a while, and is gone.
    Vanished,
}

/// A day of a shard that holds everything: machines bought, failed, preempted and given back.
fn day(coordinator: Coordinator) -> Vec<(f64, Effect)> {
    let has_one = coordinator != Coordinator::None;
    let config = ShardConfig {
        coordinated: has_one,
        ..ShardConfig::production("s", "p")
    };
    let machines = "m1..m20 Configured a cpu=4 $1 rack=d\n i1..i4 Idle cpu=4 $1 rack=e
                    s1..s40 Speculative cpu=4 $2 rack=e\n g1..g4 Speculative gpu=8 $9 rack=f";
    let before = World::new(config.clone(), machines);
    let mut disk = vec![Record::Epoch(1)];
    disk.extend(has_one.then_some(Record::Scope(HeldScope::Everything)));
    let mut world = World::around(config, before.provider, 2, disk, 0.0);
    for nth in 1..=20 {
        mark(&mut world, &format!("m{nth}"), "s");
    }
    (world.provider.latency, world.provider.jitter) = (20.0, 77);
    let lost = vec![
        Refusal::Lost(Code::Unavailable),
        Refusal::Code(Code::Internal),
    ];
    world.provider.refuse.insert(id("s7"), lost);
    let needs = [
        ("a", "cpu=80 prio=100"),
        ("b", "cpu=40 prio=1000\n gpu=16 prio=1000"),
        ("a", "cpu=40 prio=100"),
        ("b", "cpu=100 prio=1000"),
        ("a", ""),
        ("b", "cpu=8 prio=1000"),
    ];
    world.connect("a", FULL);
    world.connect("b", FULL);
    for round in 0..60_u64 {
        if round % 10 == 0 {
            let (name, needs) = needs[(round / 10) as usize];
            world.roll_up(name, needs);
        }
        if round == 25 {
            world.there("m3").become_state(State::Failed);
        }
        world.run(7.3);
        if has_one {
            world.tell(Event::ReportWanted);
            drop(world.core.take_report());
        }
        answer(&mut world, coordinator, round);
        world.run(2.7);
    }
    let effects = world.effects.into_iter();
    let decided =
        effects.filter(|(_, effect)| !matches!(effect, Effect::Persist { .. } | Effect::WakeAt(_)));
    // An audit record names its place among the events, and a report is one.
    let bare = decided.map(|(when, effect)| match effect {
        Effect::Audit(mut record) => {
            record.event = 0;
            (when, Effect::Audit(record))
        }
        // Acks tell operators the highest term heard: the one thing that is passed on.
        Effect::Send {
            session,
            frame:
                Frame::Ack {
                    echo,
                    rollup_id,
                    reason,
                    epoch,
                    ..
                },
        } => {
            let frame = Frame::Ack {
                echo,
                rollup_id,
                reason,
                term: 0,
                epoch,
            };
            (when, Effect::Send { session, frame })
        }
        other => (when, other),
    });
    bare.collect()
}

fn answer(world: &mut World, coordinator: Coordinator, round: u64) {
    let mut say = |answer| world.tell(Event::Answered(Box::new(answer)));
    let good = |term| Answer {
        term,
        scope: ToldScope::Everything,
        ..Answer::default()
    };
    match coordinator {
        Coordinator::None | Coordinator::Silent => {}
        Coordinator::Slow if round % 6 == 5 => say(good(round / 6)),
        Coordinator::Vanished if round < 9 => say(good(3)),
        Coordinator::Slow | Coordinator::Vanished => {}
        Coordinator::Lying => {
            say(good(9));
            let take_all = [assign("d"), unassign("e")];
            say(Answer {
                term: 4,
                scope: ToldScope::Assigned,
                foreign: vec![id("i1"), id("m1")],
                instructions: orders(4, 1, &take_all),
                ..Answer::default()
            });
            say(Answer {
                term: 9,
                scope: ToldScope::Assigned,
                confirmed: vec!["never-heard".to_owned()],
                instructions: [
                    orders(8, 10 * round, &take_all),
                    orders(9, 10 * round + 5, &[Order::Move, Order::Unknown]),
                ]
                .concat(),
                ..Answer::default()
            });
            world.tell(Event::Reported { acks: 9999 });
        }
    }
}

/// A shard decides byte for byte the same with a coordinator that fails it as with none.
#[test]
fn a_shard_decides_the_same_whatever_becomes_of_its_coordinator() {
    let alone = day(Coordinator::None);
    assert!(
        200 < alone.len(),
        "there is something to compare: {}",
        alone.len()
    );
    for coordinator in [
        Coordinator::Silent,
        Coordinator::Slow,
        Coordinator::Lying,
        Coordinator::Vanished,
    ] {
        let told = day(coordinator);
        let differs = alone.iter().zip(&told).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{coordinator:?}");
        assert_eq!(alone.len(), told.len(), "{coordinator:?}");
    }
    // And it can be told apart from one that is heard.
    let config = ShardConfig {
        coordinated: true,
        ..ShardConfig::production("s", "p")
    };
    let mut heard = World::new(config, "i1 Idle cpu=4 $1 rack=d");
    tell(&mut heard, ToldScope::Assigned, 1, &[]);
    heard.ask("a", "cpu=4", 60.0);
    assert!(heard.calls().is_empty());
    assert!(heard.core.machine(&id("i1")).map(Machine::state).is_none());
    assert!(heard.core.report().clusters.contains(&cluster("a")));
}
