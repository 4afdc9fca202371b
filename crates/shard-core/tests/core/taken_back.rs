//! Drains that are taken back (SH-18): until the provider hears of one, whoever wants its machine again has it.

use crate::{
    restarts::{config, reconnect, restarted_as},
    support::{FULL, Refusal, World, at, cluster, id, world},
};
use bigfleet_model::{ActionKind, Machine, State};
use bigfleet_shard_core::{
    Code, DrainPhase, Effect, Event, Features, Frame, LateAnswer, NodeFact, OperationId, Outcome,
    PauseNote, PausedBy, Rails, Scope, SessionId, ShardConfig,
};

const BOTH: &str = "cpu=8 min:cpu=4";
const ONE: &str = "cpu=4 min:cpu=4";

/// Two machines that serve, of which one is no longer wanted; nobody says that its node is empty.
fn dip_of(mut world: World, features: Features) -> (World, SessionId) {
    let session = world.connect("a", features);
    world.run(1.0);
    world.roll_up("a", BOTH);
    world.run(5.0);
    world.drains = false;
    world.roll_up("a", ONE);
    world.run(1.0);
    (world, session)
}

fn dip() -> (World, SessionId) {
    let (world, session) = dip_of(world("m1..m2 Idle cpu=4 $1"), FULL);
    assert_eq!(world.state("m2"), State::Draining);
    (world, session)
}

/// The instruction that was sent last, and whether it was one of a reclaim.
fn instruction(world: &World) -> Option<(OperationId, bool)> {
    let mut sent = world.every.iter().rev();
    sent.find_map(|effect| match effect {
        Effect::Send {
            frame:
                Frame::Reclaim {
                    instruction,
                    voluntary,
                    ..
                },
            ..
        } => Some((*instruction, *voluntary)),
        _ => None,
    })
}

fn cancels(world: &World, session: SessionId) -> Vec<OperationId> {
    let frames = world.frames(session).into_iter();
    let cancel = |frame: &Frame| match frame {
        Frame::ReclaimCancel { instruction } => Some(*instruction),
        _ => None,
    };
    frames.filter_map(cancel).collect()
}

fn restores(world: &World) -> u64 {
    let actions = &world.core.counters().actions;
    actions.get(&ActionKind::Restore).copied().unwrap_or(0)
}

fn report(world: &mut World, session: SessionId, phase: DrainPhase) {
    let (instruction, _) = instruction(world).unwrap();
    world.tell(Event::DrainReported {
        session,
        instruction,
        machine: id("m2"),
        phase,
    });
}

/// A dip of a minute: the machine serves on for the Need that wants it, at no cost to anybody.
#[test]
fn a_dip_costs_nothing() {
    let (mut world, session) = dip();
    let (sent, is_voluntary) = instruction(&world).unwrap();
    assert!(is_voluntary && world.core.is_reversible(&id("m2")));
    let paid = world.core.machine(&id("m2")).map(Machine::keep_price);
    report(&mut world, session, DrainPhase::Started);
    world.run(50.0);
    world.clear();
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(world.state("m2"), State::Configured);
    assert!(world.calls().is_empty());
    assert_eq!(cancels(&world, session), [sent]);
    assert_eq!(world.nodes(session), ["m2 Configured"]);
    let m2 = world.core.machine(&id("m2")).unwrap();
    let m1 = world.core.machine(&id("m1")).unwrap();
    assert_eq!(m2.attribution(), m1.attribution());
    assert_eq!(Some(m2.keep_price()), paid);
    assert!(!world.core.is_reversible(&id("m2")));
    let ended: Vec<_> = world
        .audits()
        .iter()
        .map(|one| (one.kind, one.outcome))
        .collect();
    let expected = [
        (Some(ActionKind::Reclaim), Outcome::TakenBack),
        (Some(ActionKind::Restore), Outcome::Success),
    ];
    assert_eq!(ended, expected);
    assert_eq!(
        (restores(&world), world.core.counters().drains_blocked),
        (1, 0)
    );
    // What the operator has to say of it now comes too late.
    report(&mut world, session, DrainPhase::Drained);
    assert_eq!(world.core.counters().late_answers[&LateAnswer::Drain], 1);
    world.run(700.0);
    assert_eq!(
        (world.state("m2"), world.calls().len()),
        (State::Configured, 0)
    );
    // Nothing holds the next reclaim off.
    world.roll_up("a", ONE);
    world.run(1.0);
    assert_eq!(world.state("m2"), State::Draining);
}

/// The operator's word that it is empty does not yet end it: the call does.
#[test]
fn what_the_provider_has_heard_is_not_taken_back() {
    let (mut world, session) = dip_of(world("m1..m3 Idle cpu=4 $1"), FULL);
    world.provider.latency = 20.0;
    report(&mut world, session, DrainPhase::Drained);
    assert!(!world.core.is_reversible(&id("m2")));
    assert_eq!(world.provider.drains.len(), 1);
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(restores(&world), 0);
    assert_eq!(world.state("m2"), State::Draining);
    assert_eq!(world.state("m3"), State::Configuring);
}

/// A drained node whose call waits for a slot is still the cluster's.
#[test]
fn a_drain_that_waits_for_a_slot_is_taken_back() {
    let config = ShardConfig {
        execute_concurrency: 1,
        ..ShardConfig::undamped("s", "p")
    };
    let (mut world, session) = dip_of(
        World::new(config, "m1..m2 Idle cpu=4 $1\ns1 Speculative cpu=64 $1"),
        FULL,
    );
    world.provider.answer_after = 60.0;
    world.roll_up("a", "cpu=4 min:cpu=4\ncpu=64 min:cpu=64 prio=5");
    world.run(1.0);
    assert_eq!(world.calls().last().unwrap(), "Create s1");
    report(&mut world, session, DrainPhase::Drained);
    assert!(world.core.is_reversible(&id("m2")));
    world.roll_up("a", "cpu=8 min:cpu=4\ncpu=64 min:cpu=64 prio=5");
    world.run(1.0);
    assert_eq!(
        (world.state("m2"), restores(&world)),
        (State::Configured, 1)
    );
}

/// An operator that does not report is instructed and the provider told in one go.
#[test]
fn an_operator_that_does_not_report_has_no_time_to_take_back() {
    let silent = Features {
        drain_report: false,
        ..FULL
    };
    let mut before = world("m1..m3 Idle cpu=4 $1");
    before.provider.answer_after = 60.0;
    let (mut world, _) = dip_of(before, silent);
    world.run(130.0);
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(restores(&world), 0);
    assert!(world.calls().contains(&"Drain m2".to_owned()));
}

/// A session that is replaced by one whose operator does not report ends the time to take it back.
#[test]
fn an_operator_that_reports_no_more_ends_it_too() {
    let (mut world, _) = dip();
    world.disconnect("a");
    assert!(
        world.core.is_reversible(&id("m2")),
        "it waits for its operator"
    );
    let silent = Features {
        drain_report: false,
        ..FULL
    };
    world.connect("a", silent);
    world.run(1.0);
    assert!(!world.core.is_reversible(&id("m2")));
    assert_eq!(world.provider.drains.len(), 1);
}

/// Nobody wants a machine back that had no node.
#[test]
fn one_that_was_not_ready_is_not_taken_back() {
    let mut world = world("m1..m3 Idle cpu=4 $1");
    let session = world.ask("a", BOTH, 5.0);
    world.drains = false;
    let nodes = |ready: bool| {
        let node = |name: &str, ready| NodeFact {
            machine: Some(id(name)),
            provider_id: String::new(),
            node_name: name.to_owned(),
            ready,
            disruption: None,
        };
        vec![node("m1", true), node("m2", ready), node("m3", true)]
    };
    let tell = |world: &mut World, ready| {
        let nodes = nodes(ready);
        let complete = true;
        world.tell(Event::NodesReported {
            session,
            complete,
            nodes,
        });
    };
    tell(&mut world, false);
    world.run(640.0);
    assert_eq!(world.state("m2"), State::Draining, "m3 has replaced it");
    assert!(!world.core.is_reversible(&id("m2")));
    // That it is ready by now changes nothing: it goes.
    tell(&mut world, true);
    report(&mut world, session, DrainPhase::Started);
    assert!(!world.core.is_reversible(&id("m2")));
    world.roll_up("a", "cpu=12 min:cpu=4");
    world.run(1.0);
    assert_eq!(restores(&world), 0);
}

/// Somebody waits for what is preempted.
#[test]
fn a_preempted_machine_is_not_taken_back() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.ask("a", "cpu=4 prio=1", 5.0);
    world.drains = false;
    world.ask("b", "cpu=4 prio=1000", 0.5);
    assert_eq!(world.state("m1"), State::Draining);
    assert!(!world.core.is_reversible(&id("m1")));
    assert_eq!(
        instruction(&world).map(|(_, voluntary)| voluntary),
        Some(false)
    );
    world.roll_up("b", "");
    world.run(0.5);
    assert_eq!((world.state("m1"), restores(&world)), (State::Draining, 0));
}

/// SH-18: it only undoes, so a pause does not hold it back, and its cancel leaves.
#[test]
fn a_pause_does_not_hold_it_back() {
    let (mut world, session) = dip();
    for scope in [Scope::Cluster(cluster("a")), Scope::All] {
        world.tell(Event::Pause {
            by: PausedBy::Admin,
            scope,
            since: None,
            until: Some(at(world.now + 5000.0)),
            note: PauseNote::default(),
        });
    }
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(world.state("m2"), State::Configured);
    assert_eq!(cancels(&world, session).len(), 1);
    // One that a pause kept from leaving has nothing to be withdrawn.
    let mut world = self::world("m1..m2 Idle cpu=4 $1");
    let session = world.ask("a", BOTH, 5.0);
    world.disk_delay = None;
    world.roll_up("a", ONE);
    world.run(1.0);
    assert_eq!(world.state("m2"), State::Draining);
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(world.state("m2"), State::Configured);
    assert!(instruction(&world).is_none() && cancels(&world, session).is_empty());
}

/// FE-4: a process that is not the shard any more undoes nothing either.
#[test]
fn a_fence_holds_it_back() {
    let (mut world, session) = dip_of(
        world("m1..m2 Idle cpu=4 $1\ns1 Speculative cpu=64 $1"),
        FULL,
    );
    let refusal = Refusal::Code(Code::FailedPrecondition);
    world.provider.refuse.insert(id("s1"), vec![refusal]);
    world.roll_up("a", "cpu=4 min:cpu=4\ncpu=64 min:cpu=64 prio=5");
    world.run(1.0);
    assert!(world.core.is_paused(), "fenced");
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(world.state("m2"), State::Draining);
    assert!(cancels(&world, session).is_empty());
    assert!(1 <= world.core.counters().suppressed[&ActionKind::Restore]);
}

/// SH-18: rail 1 has its place back, so the next two may go at once.
#[test]
fn rail_1_has_its_place_back() {
    let config = ShardConfig {
        rails: Rails {
            reclaim_cap_per_million: 50_000,
            roll_up_guard: false,
        },
        ..ShardConfig::undamped("s", "p")
    };
    let mut world = World::new(config, "m01..m40 Idle cpu=4 $1");
    world.ask("a", "cpu=160 min:cpu=4", 5.0);
    world.drains = false;
    let draining = |world: &World| {
        let machines = world.core.machines();
        machines
            .filter(|one| one.state() == State::Draining)
            .count()
    };
    for round in 1..=2 {
        world.roll_up("a", "cpu=80 min:cpu=4");
        world.run(0.5);
        assert_eq!(draining(&world), 2);
        world.roll_up("a", "cpu=160 min:cpu=4");
        world.run(0.5);
        assert_eq!((draining(&world), restores(&world)), (0, 2 * round));
    }
}

/// With everything in flight there may be, there is still room to take back.
#[test]
fn it_needs_no_room() {
    let config = ShardConfig {
        max_actions_per_cycle: 1,
        ..ShardConfig::undamped("s", "p")
    };
    let mut world = World::new(config, "m1..m6 Idle cpu=4 $1");
    world.ask("a", "cpu=24 min:cpu=4", 30.0);
    world.drains = false;
    world.roll_up("a", ONE);
    world.run(5.0);
    world.clear();
    world.roll_up("a", "cpu=24 min:cpu=4");
    world.run(0.05);
    assert_eq!(restores(&world), 5, "in one cycle");
}

/// RF-10, SH-18: a promise suspends the mark, and its end brings it back.
#[test]
fn a_promise_suspends_it() {
    let (mut world, _) = dip();
    world.ask("b", "cpu=4 min:cpu=4 prio=9", 0.5);
    let promised = |world: &World| {
        let m2 = world.core.machine(&id("m2")).unwrap();
        m2.intent().map(|intent| intent.need.cluster.to_string())
    };
    assert_eq!(promised(&world).as_deref(), Some("b"));
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!((world.state("m2"), restores(&world)), (State::Draining, 0));
    world.roll_up("b", "");
    world.run(1.0);
    assert_eq!(
        (world.state("m2"), restores(&world)),
        (State::Configured, 1)
    );
    assert_eq!(promised(&world), None);
}

/// SH-18: the process dies before its cancel is heard; the resync is the cancel.
#[test]
fn after_a_restart_the_resync_is_the_cancel() {
    let (mut world, _) = dip();
    world.roll_up("a", BOTH);
    world.run(1.0);
    let mut again = restarted_as(&config(), &world, world.disk.durable());
    again.drains = false;
    let session = again.connect("a", FULL);
    again.run(1.0);
    assert_eq!(again.nodes(session), ["m1 Configured", "m2 Configured"]);
    assert!(instruction(&again).is_none());
    let (instruction, _) = instruction(&world).unwrap();
    again.tell(Event::DrainReported {
        session,
        instruction,
        machine: id("m2"),
        phase: DrainPhase::Drained,
    });
    again.roll_up("a", BOTH);
    again.run(700.0);
    assert_eq!(again.state("m2"), State::Configured);
    assert!(again.calls().is_empty());
}

/// The next process does not know whether the last one told the provider, until the operator says that it is
/// still at it: then it has never said that the node is empty.
#[test]
fn a_drain_of_an_earlier_process_is_taken_back_once_its_operator_is_at_it() {
    let (before, _) = dip();
    let mut world = restarted_as(&config(), &before, before.disk.durable());
    world.drains = false;
    reconnect(&mut world, &before);
    world.run(5.0);
    assert_eq!(instruction(&world), instruction(&before), "the same again");
    assert!(!world.core.is_reversible(&id("m2")));
    let session = world.sessions[&cluster("a")].0;
    report(&mut world, session, DrainPhase::Started);
    assert!(world.core.is_reversible(&id("m2")));
    world.roll_up("a", BOTH);
    world.run(1.0);
    assert_eq!(
        (world.state("m2"), restores(&world)),
        (State::Configured, 1)
    );
    assert_eq!(cancels(&world, session).len(), 1);
}
