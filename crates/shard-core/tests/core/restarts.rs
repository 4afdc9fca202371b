//! Restarts: for every cut of recorded histories, what is remembered and what the provider shows
//! together lose nothing and double nothing (SH-4..SH-8, RS-3).

use crate::support::{FULL, Refusal, World, at, cluster, id, world};
use bigfleet_model::{Machine, State};
use bigfleet_shard_core::{
    Code, Event, Frame, Outcome, PauseNote, PausedBy, Record, Scope, SessionId, ShardConfig, Stage,
};

pub(crate) fn config() -> ShardConfig {
    ShardConfig::undamped("s", "p")
}

/// A new process on what is on disk up to `cut`, in front of the same provider.
fn restarted(world: &World, cut: usize) -> World {
    restarted_as(&config(), world, cut)
}

pub(crate) fn restarted_as(config: &ShardConfig, world: &World, cut: usize) -> World {
    let disk: Vec<Record> = world.disk.records()[..cut].to_vec();
    let provider = world.provider.clone();
    World::around(config.clone(), provider, 2, disk, world.now + 5.0)
}

/// Connects everybody again and says again what they want.
pub(crate) fn reconnect(world: &mut World, before: &World) {
    for (name, needs) in &before.demand {
        world.connect(name, FULL);
        world.roll_up(name, needs);
    }
}

/// EX-RS1: exactly one machine is acquired.
#[test]
fn ex_rs1_a_machine_in_creation_is_not_bought_again() {
    let mut world = world("s1..s4 Speculative cpu=4 $1");
    world.provider.latency = 60.0;
    world.ask("a", "cpu=4", 10.0);
    assert_eq!(world.state("s1"), State::Creating);
    let mut again = restarted(&world, world.disk.durable());
    reconnect(&mut again, &world);
    again.run(300.0);
    assert_eq!(again.provider.creates(), 1);
    assert_eq!(again.state("s1"), State::Configured);
}

/// EX-RS2, RI-4: without a roll-up nothing is reclaimed.
#[test]
fn ex_rs2_no_roll_up_no_reclaim() {
    let mut world = world("m001..m500 Configured a cpu=4 $1");
    world.connect("a", FULL);
    world.run(600.0);
    assert!(world.calls().is_empty());
    assert_eq!(world.core.machines().count(), 500);
}

/// SH-5: a fleet that is as it was left is not written again at every start, only what is otherwise.
#[test]
fn what_is_on_disk_already_is_not_written_again() {
    let mut world = world("m1..m9 Idle cpu=4 $1");
    world.ask("a", "cpu=36", 60.0);
    let mut again = restarted(&world, world.disk.len());
    let moved = again.there("m4");
    moved.set(|facts| facts.cluster = "b".to_owned());
    let before = again.disk.len();
    again.run(20.0);
    let written = &again.disk.records()[before..];
    let machines = written.iter().filter_map(|record| match record {
        Record::Machine { machine, .. } => Some(machine.as_str()),
        _ => None,
    });
    assert_eq!(machines.collect::<Vec<_>>(), ["m4"]);
    assert!(written.contains(&Record::Epoch(2)), "{written:?}");
}

/// EX-RS3: protection survives, from the disk or from the metadata alone.
#[test]
fn ex_rs3_priorities_survive_a_restart() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.ask("a", "cpu=4 prio=1000", 20.0);
    for cut in [0, world.disk.len()] {
        let mut again = restarted(&world, cut);
        again.run(1.0);
        assert_eq!(
            again.core.machine(&id("m1")).unwrap().terms().priority,
            1000
        );
    }
}

/// SH-16: an admin's pause lasts as long as it was asked for, restarts or not; one that was lifted or
/// has run out meanwhile stays over, and the file's is the file's to say again.
#[test]
fn an_admins_pause_survives_a_restart_and_runs_out_after_it() {
    let mut world = world("m1 Idle cpu=4 $1");
    let note = PauseNote {
        requested_by: "somebody".to_owned(),
        reason: "a flood".to_owned(),
    };
    let pause = |by, scope, lasts| Event::Pause {
        by,
        scope,
        since: None,
        until: Some(at(lasts)),
        note: note.clone(),
    };
    let named = |name| Scope::Cluster(cluster(name));
    world.connect("a", FULL);
    world.run(1.0);
    world.tell(pause(PausedBy::Admin, Scope::All, world.now + 100.0));
    world.tell(pause(PausedBy::Admin, named("b"), world.now + 2.0));
    world.tell(pause(PausedBy::Admin, named("c"), world.now + 100.0));
    world.tell(pause(
        PausedBy::Configuration,
        named("d"),
        world.now + 100.0,
    ));
    world.tell(Event::Resume {
        by: PausedBy::Admin,
        scope: named("c"),
    });
    world.roll_up("a", "cpu=4");
    let since = world.core.rails().pauses[0].since;
    world.run(0.5);
    let mut again = restarted(&world, world.disk.durable());
    let pauses = again.core.rails().pauses;
    let shown: Vec<_> = pauses.iter().map(|one| (&one.scope, one.since)).collect();
    assert_eq!(shown, [(&Scope::All, since)]);
    assert_eq!(pauses[0].note, note);
    reconnect(&mut again, &world);
    again.run(90.0);
    assert_eq!(again.state("m1"), State::Idle);
    assert!(0 < again.core.rails().pauses[0].withheld);
    again.run(20.0);
    assert_eq!(again.core.rails().pauses, []);
    assert_eq!(again.state("m1"), State::Configured);
    let last = restarted(&again, again.disk.durable());
    assert_eq!(last.core.rails().pauses, []);
}

/// SH-6: a drain is taken up again only for the binding it was decided for. One that was drained and
/// bound again meanwhile, for the same cluster, is somebody's serving machine.
#[test]
fn a_machine_bound_anew_while_nobody_looked_is_not_drained() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.drains = false;
    world.ask("a", "cpu=4", 20.0);
    assert_eq!(world.state("m1"), State::Configured);
    let again = restarted(&world, world.disk.durable());
    let drained = |world: World, rebound: bool| {
        let mut world = world;
        world.drains = false;
        let session = world.connect("a", FULL);
        world.roll_up("a", "");
        world.run(20.0);
        assert_eq!(world.state("m1"), State::Draining);
        assert!(instructed(&world, session));
        let mut last = restarted_as(&config(), &world, world.disk.durable());
        if rebound {
            let there = last.there("m1");
            let key = "bigfleet.lucy.sh/assigned-intent".to_owned();
            there.metadata.insert(key, "op-9-9".to_owned());
        }
        last.drains = false;
        let session = last.connect("a", FULL);
        last.roll_up("a", "cpu=4");
        last.run(60.0);
        (instructed(&last, session), last.state("m1"))
    };
    // Whoever bound it: the process that drains it, or one before that.
    for world in [world.clone(), again] {
        assert_eq!(drained(world.clone(), false), (true, State::Draining));
        assert_eq!(drained(world, true), (false, State::Configured));
    }
}

fn instructed(world: &World, session: SessionId) -> bool {
    let frames = world.frames(session);
    frames
        .iter()
        .any(|frame| matches!(frame, Frame::Reclaim { .. }))
}

/// How a pause is laid over a restart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    /// An admin paused the old process and lifts it in the new one.
    Admin,
    /// An admin's pause of the old process ran out while no process was there.
    RanOut,
    /// The new process is started paused, and resumed later.
    Flag,
    /// A process that was started paused saw no List, and one that is not comes after it.
    FlagUnseen,
    /// A dry run in between.
    DryRun,
}

/// SH-16, SH-6: the grace of a drain stands still while the gate is closed, also if the process that
/// opens it is not the one that closed it.
#[test]
fn a_pause_over_a_restart_costs_a_drain_nothing_of_its_grace() {
    for over in [
        Over::Admin,
        Over::RanOut,
        Over::Flag,
        Over::FlagUnseen,
        Over::DryRun,
    ] {
        let mut world = world("m1 Configured a cpu=4 $1");
        world.drains = false;
        world.ask("a", "", 100.0);
        assert_eq!(world.state("m1"), State::Draining);
        let by = match over {
            Over::Admin | Over::RanOut => PausedBy::Admin,
            Over::Flag | Over::FlagUnseen | Over::DryRun => PausedBy::Configuration,
        };
        let pause = |until| Event::Pause {
            by,
            scope: Scope::All,
            since: None,
            until,
            note: PauseNote::default(),
        };
        if by == PausedBy::Admin {
            let until = (over == Over::RanOut).then(|| at(world.now + 1000.0));
            world.tell(pause(until));
            world.run(900.0);
        }
        let dry_run = ShardConfig {
            dry_run: over == Over::DryRun,
            ..config()
        };
        let mut again = restarted_as(&dry_run, &world, world.disk.durable());
        again.drains = false;
        match over {
            Over::Admin => again.run(900.0),
            Over::RanOut => again = at_rest(&again, 900.0),
            Over::Flag => {
                again.tell(pause(None));
                again.run(900.0);
                let work = again.core.work_page(None);
                assert_eq!(work.entries[0].stage, Stage::Paused, "{over:?}");
            }
            Over::FlagUnseen => {
                again.provider.list_fails = true;
                again.tell(pause(None));
                again.run(900.0);
                again.provider.list_fails = false;
                again = at_rest(&again, 5.0);
            }
            Over::DryRun => {
                again.run(900.0);
                again = at_rest(&again, 5.0);
            }
        }
        again.drains = false;
        let session = again.connect("a", FULL);
        again.roll_up("a", "");
        if matches!(over, Over::Admin | Over::Flag) {
            let scope = Scope::All;
            again.tell(Event::Resume { by, scope });
        }
        again.run(30.0);
        let graces: Vec<u32> = again
            .frames(session)
            .into_iter()
            .filter_map(|frame| match frame {
                Frame::Reclaim { grace_seconds, .. } => Some(*grace_seconds),
                _ => None,
            })
            .collect();
        let left = graces.iter().min().copied().unwrap_or_default();
        // 600 s, of which some 100 ran before the pause and some seconds between processes.
        assert!((450..=510).contains(&left), "{over:?}: {graces:?}");
        again.run(400.0);
        assert_eq!(again.state("m1"), State::Draining, "{over:?}");
        again.run(200.0);
        assert_eq!(again.state("m1"), State::Configured, "{over:?}: given up");
        assert_eq!(again.provider.drains, [], "{over:?}");
    }
}

/// What is on disk after so many seconds without a process.
fn at_rest(world: &World, seconds: f64) -> World {
    let disk = world.disk.found(0);
    let provider = world.provider.clone();
    World::around(config(), provider, 3, disk, world.now + seconds)
}

/// SH-7: an intent stands until its cluster reports, but not for ever.
#[test]
fn an_intent_ends_ten_minutes_after_the_operator_and_an_hour_without_a_roll_up() {
    let mut world = world("s1 Speculative cpu=4 $1");
    world.provider.latency = 30.0;
    world.ask("a", "cpu=4", 5.0);
    world.disconnect("a");
    world.run(100.0);
    let promised = |world: &World| {
        let machine = world.core.machine(&id("s1")).map(Machine::attribution);
        machine.flatten().is_some()
    };
    assert_eq!(world.state("s1"), State::Idle);
    assert!(promised(&world), "promised, waiting for its operator");
    let mut again = restarted(&world, world.disk.len());
    again.run(500.0);
    assert!(promised(&again));
    again.run(200.0);
    assert!(!promised(&again));
    world.run(600.0);
    assert!(!promised(&world));

    let mut world = World::new(config(), "s1 Speculative cpu=4 $1");
    world.provider.latency = 1e6;
    world.ask("a", "cpu=4", 20.0);
    let mut again = restarted(&world, world.disk.len());
    again.connect("a", FULL);
    again.run(3500.0);
    assert!(promised(&again), "still Creating for it");
    again.run(200.0);
    assert!(!promised(&again), "an hour without a roll-up");
}

/// SH-6: a reclaim is taken up again under the same id, with what is left of its grace, and only
/// once its operator is back.
#[test]
fn a_reclaim_survives_a_restart() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.drains = false;
    world.ask("a", "", 100.0);
    let mut again = restarted(&world, world.disk.len());
    again.run(95.0);
    assert!(again.calls().is_empty(), "nobody to ask");
    let session = again.connect("a", FULL);
    again.run(70.0);
    let sent = again
        .frames(session)
        .into_iter()
        .find_map(|frame| match frame {
            Frame::Reclaim {
                instruction,
                grace_seconds,
                ..
            } => Some((instruction.to_string(), *grace_seconds)),
            _ => None,
        });
    let (instruction, grace) = sent.unwrap();
    assert_eq!(instruction, "0000000100000001");
    assert!((330..=401).contains(&grace), "{grace}");
    assert_eq!(again.state("m1"), State::Idle);
}

/// AU-1: what an earlier process began on a machine that is gone since ends in the audit log.
#[test]
fn an_operation_whose_machine_is_gone_after_a_restart_is_audited() {
    let mut world = world("m1..m2 Configured a cpu=4 $1");
    world.drains = false;
    world.ask("a", "cpu=4", 100.0);
    let reclaimed = ["m1", "m2"].map(|name| world.state(name));
    assert!(reclaimed.contains(&State::Draining));
    world.provider.machines.clear();
    let mut again = restarted(&world, world.disk.len());
    again.run(300.0);
    let misses = again.audits().into_iter();
    let misses: Vec<String> = misses
        .filter(|record| record.outcome == Outcome::InventoryMiss)
        .map(|record| {
            record
                .operation
                .map(|id| id.to_string())
                .unwrap_or_default()
        })
        .collect();
    assert_eq!(misses, ["0000000100000001"]);
}

/// SH-13: a machine that another shard took meanwhile is let go, loudly.
#[test]
fn a_remembered_machine_of_another_shard_is_let_go() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.ask("a", "cpu=4", 20.0);
    let there = world.there("m1");
    let shard = "bigfleet.lucy.sh/assigned-shard".to_owned();
    there.metadata.insert(shard, "other".to_owned());
    let mut again = restarted(&world, world.disk.len());
    again.run(1.0);
    assert!(again.core.machine(&id("m1")).is_none());
    assert_eq!(again.core.counters().conflicts, 1);
}

/// SH-10: until most of what is remembered was seen, nothing is decided.
#[test]
fn nothing_is_decided_on_a_list_that_lacks_what_is_remembered() {
    let mut world = world("m1..m9 Idle cpu=4 $1\n s1..s9 Speculative cpu=4 $2");
    world.ask("a", "cpu=36", 20.0);
    world.provider.hidden = (1..=5).map(|n| id(&format!("m{n}"))).collect();
    let mut again = restarted(&world, world.disk.len());
    reconnect(&mut again, &world);
    again.run(8.0);
    assert!(!again.core.is_ready());
    let awaits = again.core.awaits().unwrap();
    assert_eq!((awaits.lists, awaits.remembered, awaits.unseen), (1, 9, 5));
    again.provider.hidden.clear();
    again.run(60.0);
    assert!(again.core.is_ready() && again.core.awaits().is_none());
    assert_eq!(again.provider.creates(), 0);
}

/// Lists that must agree are whole ones, also of a provider that could tell only what changed: the next whole one
/// would be ten minutes away.
#[test]
fn what_is_gone_for_good_holds_a_restart_up_for_three_lists() {
    let mut world = world("m1..m9 Idle cpu=4 $1");
    world.provider.cursor = b"7".to_vec();
    world.ask("a", "cpu=36", 20.0);
    world.provider.hidden = (1..=5).map(|n| id(&format!("m{n}"))).collect();
    let mut again = restarted(&world, world.disk.len());
    reconnect(&mut again, &world);
    again.run(8.0);
    assert!(!again.core.is_ready());
    again.run(25.0);
    assert!(again.core.is_ready());
    assert_eq!(again.core.machines().count(), 4);
}

/// NT-4: a row that waits keeps its place across a restart, whoever reconnects first.
#[test]
fn arrivals_survive_a_restart() {
    let mut world = world("x1 Speculative cpu=1 $1");
    world.connect("a", FULL);
    world.ask("b", "cpu=4 min:cpu=4", 10.0);
    world.roll_up("a", "cpu=4 min:cpu=4");
    world.run(10.0);
    let mut again = restarted(&world, world.disk.len());
    again.run(1.0);
    reconnect(&mut again, &world);
    let more = World::new(config(), "m1 Idle cpu=4 $1");
    again.provider.machines.extend(more.provider.machines);
    again.run(60.0);
    assert_eq!(again.provider.serving(), [("b".to_owned(), 1)].into());
}

/// SH-14: a reclaim that was given up is not tried again just because the process is new.
#[test]
fn what_was_given_up_stays_given_up() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.drains = false;
    world.ask("a", "", 620.0);
    assert_eq!(world.core.counters().drains_blocked, 1);
    let mut again = restarted(&world, world.disk.len());
    reconnect(&mut again, &world);
    again.run(300.0);
    assert_eq!(again.core.counters().actions.len(), 0, "still backing off");
    again.run(400.0);
    assert_eq!(again.core.counters().actions.len(), 1);
}

/// SH-11: a machine its provider cannot delete is not asked about again after a restart.
#[test]
fn undeletable_survives_a_restart() {
    let mut world = world("m1 Idle cpu=4 $1 OnDemand");
    let no = vec![Refusal::Code(Code::Unimplemented)];
    world.provider.refuse.insert(id("m1"), no);
    world.run(700.0);
    assert_eq!(world.calls(), ["Delete m1"]);
    let mut again = restarted(&world, world.disk.len());
    again.run(1500.0);
    assert!(again.calls().is_empty());
}
