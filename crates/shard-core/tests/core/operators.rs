//! Operators: sessions, resync, drains, nodes (shard.md §6).

use crate::support::{FULL, World, cluster, id, rows, world};
use bigfleet_model::State;
use bigfleet_shard_core::{
    CloseReason, Confidence, Defect, Echo, Effect, Event, Features, Frame, NodeFact, Outcome,
    Record, RollUpLane, SessionId, ShardConfig,
};
use std::collections::BTreeSet;

fn closed(world: &World) -> Vec<(SessionId, CloseReason)> {
    let close = |effect: &Effect| match effect {
        Effect::Close { session, reason } => Some((*session, *reason)),
        _ => None,
    };
    world
        .effects
        .iter()
        .filter_map(|(_, one)| close(one))
        .collect()
}

fn reclaims(world: &World) -> Vec<(u64, u32)> {
    let reclaim = |effect: &Effect| match effect {
        Effect::Send {
            frame:
                Frame::Reclaim {
                    instruction,
                    grace_seconds,
                    ..
                },
            ..
        } => Some((instruction.number, *grace_seconds)),
        _ => None,
    };
    world
        .effects
        .iter()
        .filter_map(|(_, one)| reclaim(one))
        .collect()
}

fn echoes(world: &World, session: SessionId) -> Vec<Echo> {
    let echo = |frame: &&Frame| match frame {
        Frame::Ack { echo, .. } => Some(*echo),
        _ => None,
    };
    world.frames(session).iter().filter_map(echo).collect()
}

/// EX-SE1.
#[test]
fn ex_se1_a_newer_session_takes_over_and_waiters_fail_at_once() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.blobs = false;
    let first = world.ask("a", "cpu=4", 0.5);
    let second = world.connect("a", FULL);
    assert_eq!(closed(&world), [(first, CloseReason::Replaced)]);
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::NoSession)]);
    world.tell(Event::SessionClosed { session: first });
    assert_eq!(
        world.core.gauges().sessions,
        1,
        "the late end unregisters nobody"
    );
    world.blobs = true;
    world.run(10.0);
    assert_eq!(world.state("m1"), State::Configured);
    assert!(!world.frames(second).is_empty());
    assert_eq!(world.core.counters().sessions_replaced, 1);
}

/// EX-SE2.
#[test]
fn ex_se2_a_certificate_for_another_cluster_is_refused() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.tell(Event::SessionOpened {
        session: SessionId(7),
        cluster: cluster("a"),
        features: FULL,
        identity: Some(cluster("b")),
    });
    assert_eq!(closed(&world), [(SessionId(7), CloseReason::Identity)]);
    assert_eq!(world.core.gauges().sessions, 0);
    assert_eq!(world.core.counters().identity_rejected, 1);
}

/// RI-5: nobody speaks for another cluster; a rejected roll-up is never echoed as `rollup`.
#[test]
fn a_roll_up_for_another_cluster_is_rejected() {
    let mut world = world("m1 Idle cpu=4 $1");
    let session = world.connect("a", FULL);
    world.tell(Event::RolledUp {
        session,
        cluster: cluster("b"),
        rollup_id: "r".to_owned(),
        rows: Ok(rows("b", "cpu=4")),
    });
    assert_eq!(echoes(&world, session), [Echo::Hello, Echo::RollUpRejected]);
    assert!(!world.core.is_cluster_ready(&cluster("a")));
    assert!(!world.core.is_cluster_ready(&cluster("b")));
    assert_eq!(world.core.counters().rollups_rejected[&cluster("a")], 1);
}

/// EX-SE4: a roll-up at work holds up no blob.
#[test]
fn ex_se4_a_blob_is_taken_while_a_roll_up_is_at_work() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.connect("a", FULL);
    world.run(1.0);
    let mut lane = RollUpLane::default();
    world.roll_up("a", "cpu=4");
    // The next one is being decoded for five seconds; the lane holds it, not the session.
    assert_eq!(lane.arrived("cpu=8"), Some("cpu=8"));
    world.run(0.5);
    assert_eq!(world.calls(), ["Configure m1"], "the blob came through");
    world.run(4.5);
    world.roll_up("a", "cpu=8");
    assert_eq!(lane.done(), None);
}

/// EX-NS1 and SH-15: begin, every bound machine by id, end with the count.
#[test]
fn ex_ns1_a_returning_operator_is_told_what_it_missed() {
    let mut world = world("m1..m3 Idle cpu=4 $1");
    world.provider.latency = 20.0;
    world.ask("a", "cpu=12", 5.0);
    world.disconnect("a");
    world.run(60.0);
    world.clear();
    let session = world.connect("a", FULL);
    let told = ["m1 Configured", "m2 Configured", "m3 Configured"];
    assert_eq!(world.nodes(session), told);
    let expected = [Echo::Hello, Echo::ResyncBegin, Echo::ResyncEnd(3)];
    assert_eq!(echoes(&world, session), expected);
}

/// SH-15: no resync before the first List.
#[test]
fn nobody_is_told_anything_before_the_first_list() {
    let mut world = world("m1 Configured a cpu=4 $1");
    let session = world.connect("a", FULL);
    assert_eq!(echoes(&world, session), [Echo::Hello]);
    world.run(1.0);
    assert_eq!(world.nodes(session), ["m1 Configured"]);
}

/// EX-NS3.
#[test]
fn ex_ns3_an_unbound_machine_is_nobodys_news() {
    let mut world = world("s1 Speculative cpu=4 $1");
    world.provider.latency = 100.0;
    let session = world.ask("a", "cpu=4", 5.0);
    assert_eq!(world.state("s1"), State::Creating);
    assert!(world.nodes(session).is_empty());
}

/// EX-NS4.
#[test]
fn ex_ns4_labels_carry_type_and_zone() {
    let mut world = world("m1 Configured a cpu=4 $1 type=m5 zone=a zone-label=x");
    let session = world.connect("a", FULL);
    world.run(1.0);
    let labels = world
        .frames(session)
        .into_iter()
        .find_map(|frame| match frame {
            Frame::Node(node) => Some(node.labels.clone()),
            _ => None,
        });
    let labels: Vec<(String, String)> = labels.unwrap().into_iter().collect();
    let expected = [
        ("node.kubernetes.io/instance-type", "m5"),
        ("topology.kubernetes.io/zone", "a"),
        ("zone-label", "x"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(labels, expected);
}

/// SH-14: Drain follows the operator's word, with what is left of the grace but at least 30 s.
#[test]
fn a_drain_waits_for_the_operators_word() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.ask("a", "", 0.5);
    assert!(world.calls().is_empty(), "instructed, not drained");
    assert_eq!(reclaims(&world), [(1, 600)]);
    world.run(2.0);
    assert_eq!(world.provider.drains, [(id("m1"), 599)]);
    assert_eq!(world.state("m1"), State::Idle);
}

/// SH-14: a reclaim that a disruption budget blocks is given up, and not tried again soon.
#[test]
fn a_blocked_reclaim_is_cancelled_and_backs_off() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.drains = false;
    let session = world.ask("a", "", 601.0);
    assert_eq!(world.state("m1"), State::Configured);
    assert!(world.calls().is_empty());
    assert_eq!(world.outcomes(), [("m1".to_owned(), Outcome::DrainBlocked)]);
    let frames = world.frames(session);
    let cancelled = frames
        .iter()
        .any(|one| matches!(one, Frame::ReclaimCancel { .. }));
    assert!(cancelled, "uncordon");
    world.run(590.0);
    assert_eq!(reclaims(&world).len(), 1, "ten minutes of peace");
    world.run(30.0);
    assert_eq!(reclaims(&world).len(), 2);
    assert_eq!(world.core.counters().drains_blocked, 1);
}

/// SH-14: a Preempt does not wait past its deadline.
#[test]
fn a_preempt_goes_ahead_at_its_deadline() {
    let mut world = world("m1 Configured b cpu=4 $1 stamp=1 own-raw=F,");
    world.drains = false;
    world.connect("a", FULL);
    world.connect("b", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=4 prio=1000000");
    world.run(60.0);
    assert_eq!(world.provider.drains, [(id("m1"), 0)]);
    assert_eq!(
        world.core.machine(&id("m1")).unwrap().cluster(),
        Some(&cluster("a"))
    );
}

/// SH-14, SH-3: an operator that does not report is instructed and not waited for; without an
/// operator a Reclaim is not even committed, and a Preempt is.
#[test]
fn operators_that_do_not_report_or_are_gone() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.connect("a", Features::default());
    world.run(1.0);
    world.roll_up("a", "");
    world.run(1.0);
    assert_eq!(world.provider.drains, [(id("m1"), 600)]);

    let mut world = self::world("m1 Configured a cpu=4 $1\n m2 Configured a cpu=4 $2");
    world.there("m2").become_state(State::Failed);
    world.connect("a", FULL);
    world.connect("c", FULL);
    world.run(1.0);
    world.roll_up("a", "cpu=4 prio=1");
    world.run(5.0);
    world.disconnect("a");
    world.there("m2").become_state(State::Configured);
    world.run(30.0);
    assert_eq!(
        world.state("m2"),
        State::Configured,
        "excess, but nobody to drain it"
    );
    world.roll_up("c", "cpu=4 prio=1000000");
    world.run(5.0);
    assert_eq!(
        world.provider.drains.len(),
        1,
        "a Preempt does not wait for an operator"
    );
    assert_eq!(reclaims(&world), []);
}

/// SH-15: after a reconnect every open instruction comes again, same id, what is left of its grace.
#[test]
fn an_open_instruction_survives_a_reconnect() {
    let mut world = world("m1 Configured a cpu=4 $1");
    world.drains = false;
    world.ask("a", "", 100.0);
    world.disconnect("a");
    world.run(50.0);
    world.drains = true;
    world.connect("a", FULL);
    let sent = reclaims(&world);
    assert_eq!(sent, [(1, 600), (1, 450)]);
    world.run(5.0);
    assert_eq!(world.state("m1"), State::Idle);
}

/// SH-17: a node that does not become ready is not credited, its demand is driven again, and it
/// is let go only when something else serves.
#[test]
fn a_node_that_never_becomes_ready_is_replaced() {
    let mut world = world("m1 Idle cpu=4 $1\n m2 Idle cpu=4 $2");
    let session = world.ask("a", "cpu=4", 5.0);
    let report = |world: &mut World, machine: &str, ready| {
        world.tell(Event::NodesReported {
            session,
            complete: false,
            nodes: vec![NodeFact {
                machine: Some(id(machine)),
                provider_id: String::new(),
                node_name: format!("node-{machine}"),
                ready,
                disruption: None,
            }],
        });
    };
    report(&mut world, "m1", false);
    world.run(500.0);
    assert!(!world.core.is_not_ready(&id("m1")));
    world.run(110.0);
    let marked = |record: &Record| {
        matches!(record, Record::Machine { machine, kept: Some(kept) }
            if *machine == id("m1") && kept.not_ready)
    };
    assert!(world.disk.records().iter().any(marked), "marked, durably");
    assert_eq!(
        world.state("m2"),
        State::Configured,
        "its demand is driven again"
    );
    assert_eq!(world.state("m1"), State::Idle, "let go once m2 serves");
}

/// SH-17: an operator that reports no nodes is not held to it, and a mass flip is not believed.
#[test]
fn a_mass_flip_of_nodes_is_not_believed() {
    let mut world = world("m1..m20 Configured a cpu=4 $1");
    let session = world.ask("a", "cpu=80", 5.0);
    world.tell(Event::NodesReported {
        session,
        complete: true,
        nodes: Vec::new(),
    });
    world.run(620.0);
    let marked = world
        .core
        .machines()
        .filter(|one| world.core.is_not_ready(one.id()))
        .count();
    assert_eq!(marked, 2, "a tenth");
    let frozen = world.effects.iter().any(|(_, one)| {
        matches!(
            one,
            Effect::Alert(bigfleet_shard_core::Alert::NodesFrozen { .. })
        )
    });
    assert!(frozen);
}

/// SH-17: more than half of the nodes an operator names, and at least three, are not Ready.
#[test]
fn a_partitioned_cluster_is_not_bought_twice() {
    let marked = |defect, nodes: u32, ready: u32| {
        let config = ShardConfig {
            defect,
            ..ShardConfig::undamped("s", "p")
        };
        let machines =
            format!("m1..m{nodes} Configured a cpu=4 $1\n s01..s40 Speculative cpu=4 $1");
        let mut world = World::new(config, &machines);
        let session = world.connect("a", FULL);
        world.run(1.0);
        world.roll_up("a", &format!("cpu={}", 4 * nodes));
        world.run(5.0);
        let node = |number: u32| NodeFact {
            machine: Some(id(&format!("m{number}"))),
            provider_id: String::new(),
            node_name: format!("node-{number}"),
            ready: number <= ready,
            disruption: None,
        };
        world.tell(Event::NodesReported {
            session,
            complete: true,
            nodes: (1..=nodes).map(node).collect(),
        });
        world.run(3_600.0);
        let marked = world
            .disk
            .records()
            .iter()
            .filter_map(|record| match record {
                Record::Machine {
                    machine,
                    kept: Some(kept),
                } if kept.not_ready && machine.as_str().starts_with('m') => Some(machine),
                _ => None,
            });
        let marked: BTreeSet<_> = marked.collect();
        (marked.len(), world.provider.creates())
    };
    assert_eq!(marked(None, 20, 0), (0, 0));
    assert_eq!(marked(None, 20, 9), (0, 0), "eleven of twenty");
    assert_eq!(marked(None, 20, 10).0, 10, "half is not more than half");
    assert_eq!(marked(None, 2, 0).0, 2, "two are too few to tell");
    let (believed, bought) = marked(Some(Defect::PartitionBelieved), 20, 0);
    assert_eq!(believed, 20);
    assert!(0 < bought, "{bought} were bought");
}

/// AV-1..AV-3, in a world: told at once, told of changes, told once that it is over.
#[test]
fn hints_follow_what_is_free() {
    let mut world = world("m1..m3 Idle cpu=4 $1 type=x\n s1 Speculative cpu=4 $2 type=x");
    let session = world.ask("a", "cpu=4", 30.0);
    world.roll_up("a", "");
    world.run(20.0);
    let hint = |frame: &&Frame| match frame {
        Frame::Available {
            count, confidence, ..
        } => Some((*count, *confidence)),
        _ => None,
    };
    let hints: Vec<_> = world.frames(session).iter().filter_map(hint).collect();
    let expected = [(3, Confidence::High), (0, Confidence::None)];
    assert_eq!(
        hints, expected,
        "one of four is taken when the first is counted"
    );
}
