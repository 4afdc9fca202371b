//! Drains, from the instruction to the end of it (operator.md §7).

use crate::support::{World, at, config, node, pod};
use bigfleet_operator_core::{
    Controller, DrainRecord, Frame, Heard, MachineState, OperatorConfig, Phase, PodPhase, Reclaim,
    Target, Write,
};
use std::time::Duration;

fn world(pods: &[&str]) -> World {
    let mut world = World::started(config());
    world.serve(1, pods);
    world.run_for(5);
    world.forget_said();
    world
}

fn phase(world: &World, machine: &str) -> Option<Phase> {
    let known = world.upcoming.get(&format!("un-{machine}"));
    known.map(|known| known.content.phase)
}

#[test]
fn an_instruction_cordons_records_acknowledges_and_evicts() {
    let mut world = world(&["p1", "p2"]);
    world.reclaim("i1", "m1", false, 120);
    assert_eq!(world.reports(), ["Started 0", "Drained 0"]);
    let acks = world.frames.iter().filter(|(_, frame)| {
        matches!(
            frame,
            Frame::ReclaimAck {
                nodes_started: 1,
                ..
            }
        )
    });
    assert_eq!(acks.count(), 1);
    let record = DrainRecord::parse(world.nodes["n1"].drain.as_ref().unwrap()).unwrap();
    assert_eq!(
        (record.instruction.as_str(), record.machine.as_str()),
        ("i1", "m1")
    );
    assert_eq!(record.deadline, world.now + Duration::from_secs(120));
    assert!(world.nodes["n1"].is_cordoned && !record.cordoned_before && !record.voluntary);
    assert_eq!(world.evicted.len(), 2);
    assert_eq!(phase(&world, "m1"), Some(Phase::Drained));
}

/// EX-OP6: a process that was killed after the patch is followed by one that goes on when the shard repeats itself.
#[test]
fn ex_op6_a_drain_survives_its_process_and_a_machine_that_serves_again_is_released() {
    let mut world = world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    let cordons = |world: &World| {
        let is_it = |write: &&Write| matches!(write, Write::CordonNode { .. });
        world.writes.iter().filter(is_it).count()
    };
    assert_eq!((cordons(&world), world.evicted.len()), (1, 0));

    world.restart(config());
    world.run_for(60);
    assert!(
        world.nodes["n1"].is_cordoned,
        "nothing is done for a record alone"
    );
    assert_eq!(world.core.drains().len(), 0);
    world.protected.clear();
    world.reclaim("i1", "m1", false, 600);
    assert_eq!(world.evicted.len(), 1);
    assert_eq!(cordons(&world), 1, "one record");

    let mut world = self::world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    world
        .machines
        .insert("m1".to_owned(), MachineState::Configured);
    world.restart(config());
    assert!(!world.nodes["n1"].is_cordoned && world.nodes["n1"].drain.is_none());
    assert_eq!(phase(&world, "m1"), Some(Phase::Ready));
    assert_eq!(world.evicted, []);
}

/// EX-OP7.
#[test]
fn ex_op7_what_a_person_cordoned_stays_cordoned() {
    let mut world = world(&["p1"]);
    world.change_node("n1", |node| node.is_cordoned = true);
    world.reclaim("i1", "m1", true, 600);
    assert!(world.nodes["n1"].drain.is_some());
    world.cancel("i1");
    assert!(world.nodes["n1"].is_cordoned && world.nodes["n1"].drain.is_none());
}

/// EX-OP11: a budget blocks until it gives way; what nobody would miss does not block at all.
#[test]
fn ex_op11_budgets_block_and_static_daemon_and_finished_pods_do_not() {
    let mut world = world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    world.run_for(100);
    assert_eq!(world.reports(), ["Started 0", "Blocked 1"], "said once");
    world.protected.clear();
    world.run_for(30);
    assert_eq!(world.reports(), ["Started 0", "Blocked 1", "Drained 0"]);

    let mut world = self::world(&[]);
    let mut mirror = pod("mirror");
    mirror
        .annotations
        .insert("kubernetes.io/config.mirror".to_owned(), String::new());
    let mut daemon = pod("daemon");
    daemon.controller = Some(Controller {
        group: "apps".to_owned(),
        kind: "DaemonSet".to_owned(),
    });
    let mut finished = pod("finished");
    finished.phase = PodPhase::Succeeded;
    world
        .pods
        .insert("n1".to_owned(), vec![mirror, daemon, finished]);
    world.reclaim("i1", "m1", true, 600);
    assert_eq!(world.reports(), ["Started 0", "Drained 0"], "at once");
    assert_eq!(world.evicted, []);
}

/// EX-OP23: a drain that can wait costs nobody anything if it is taken back within a minute.
#[test]
fn ex_op23_a_voluntary_drain_settles_first() {
    let mut world = world(&["p1"]);
    world.reclaim("i1", "m1", true, 600);
    world.run_for(40);
    assert_eq!(world.evicted, []);
    world.cancel("i1");
    assert!(!world.nodes["n1"].is_cordoned);
    world.run_for(100);
    assert_eq!(
        (world.evicted.len(), phase(&world, "m1")),
        (0, Some(Phase::Ready))
    );

    let mut world = self::world(&["p1"]);
    let began = world.now;
    world.reclaim("i1", "m1", true, 600);
    world.run_for(100);
    assert_eq!(
        world.evicted,
        [(began + Duration::from_secs(60), "uid-p1".to_owned())]
    );

    let mut world = self::world(&["p1"]);
    world.reclaim("i1", "m1", false, 600);
    assert_eq!(world.evicted.len(), 1, "a preemption does not wait");
}

/// EX-OP24.
#[test]
fn ex_op24_a_pod_that_must_not_be_disturbed_stops_only_what_can_wait() {
    let mut world = world(&["p1"]);
    let mut precious = pod("precious");
    precious.annotations.insert(
        "bigfleet.lucy.sh/do-not-disrupt".to_owned(),
        "true".to_owned(),
    );
    world.pods.get_mut("n1").unwrap().push(precious);
    world.reclaim("i1", "m1", true, 600);
    world.run_for(300);
    assert_eq!(world.evicted, []);
    assert_eq!(world.reports(), ["Started 0", "Blocked 2"]);
    let note = world
        .notes
        .iter()
        .find(|note| note.reason == "MustNotBeDisturbed")
        .unwrap();
    assert!(note.message.contains("ns/precious"), "{}", note.message);
    world.reclaim("i2", "m1", false, 30);
    assert_eq!(
        world.evicted.len(),
        2,
        "a preemption evicts it as any other"
    );
}

/// EX-OP10: who cannot tell says BLOCKED, and only a cluster without a Node that could be it says UNRESOLVED.
#[test]
fn ex_op10_a_machine_without_a_node_is_unresolved_only_if_no_node_can_be_it() {
    let mut world = World::started(config());
    let mut stranger = node("n9", "");
    stranger.labels.clear();
    world.put_node(stranger);
    world.machine_is("m1", MachineState::Configured);
    world.run_for(400);
    let reports = world
        .frames
        .iter()
        .filter(|(_, frame)| matches!(frame, Frame::NodeReport { .. }));
    assert_eq!(reports.count(), 0, "nothing was ever resolved");
    world.forget_said();
    world.reclaim("i1", "m1", false, 60);
    assert_eq!(world.reports(), ["Blocked 0"]);
    world.run_for(30);
    world.put_node(node("n1", "m1"));
    assert_eq!(world.reports(), ["Blocked 0", "Started 0", "Drained 0"]);

    let mut world = World::started(config());
    world.put_node(node("n2", "m2"));
    world.machine_is("m1", MachineState::Draining);
    world.reclaim("i1", "m1", false, 60);
    assert_eq!(world.reports(), ["Unresolved 0"]);
    assert_eq!(world.core.drains().len(), 0);
}

#[test]
fn the_deadline_ends_evictions_and_the_same_instruction_gives_more_time() {
    let mut world = world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 60);
    world.run_for(61);
    assert_eq!(world.reports().last().unwrap(), "Blocked 1");
    world.protected.clear();
    world.run_for(100);
    assert_eq!((world.evicted.len(), world.core.drains()["over"]), (0, 1));
    assert_ne!(
        phase(&world, "m1"),
        Some(Phase::Failed),
        "a shard that hears reports decides by itself"
    );
    world.reclaim("i1", "m1", false, 60);
    assert_eq!(world.reports().last().unwrap(), "Drained 0");
    world.reclaim("i1", "m1", false, 60);
    assert_eq!(world.reports().last().unwrap(), "Drained 0");
    assert_eq!(world.evicted.len(), 1);
}

/// OP-35, and the guess about an old shard's reclaims.
#[test]
fn an_old_shard_sees_the_deadline_on_the_upcoming_node() {
    let mut world = World::new(config());
    world.features.clear();
    world.lead();
    world.serve(1, &["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    world.run_for(599);
    assert_eq!(phase(&world, "m1"), Some(Phase::Draining));
    assert_eq!(world.core.drains()["evicting"], 1);
    world.run_for(2);
    let known = &world.upcoming["un-m1"].content;
    assert_eq!(known.phase, Phase::Failed);
    assert_eq!(known.last_error, "the grace is over and 1 Pods are left");
    assert_eq!(world.reports(), [] as [&str; 0]);
}

#[test]
fn a_lost_session_stops_no_drain() {
    let mut world = world(&["p1"]);
    world.reclaim("i1", "m1", true, 600);
    world.is_shard_up = false;
    world.lose_session();
    world.run_for(70);
    assert_eq!(world.evicted.len(), 1);
}

#[test]
fn a_cancel_while_the_patch_is_on_its_way_is_not_lost() {
    let mut world = world(&["p1"]);
    world.holds_writes = true;
    world.reclaim("i1", "m1", false, 600);
    world.cancel("i1");
    world.apply_held();
    world.run_for(5);
    assert!(!world.nodes["n1"].is_cordoned && world.nodes["n1"].drain.is_none());
    assert_eq!((world.evicted.len(), world.core.drains().len()), (0, 0));
}

#[test]
fn another_instruction_replaces_and_remembers_who_cordoned() {
    let mut world = world(&["p1"]);
    world.change_node("n1", |node| node.is_cordoned = true);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    world.reclaim("i2", "m1", false, 600);
    let record = DrainRecord::parse(world.nodes["n1"].drain.as_ref().unwrap()).unwrap();
    assert_eq!(
        (record.instruction.as_str(), record.cordoned_before),
        ("i2", true)
    );
    world.cancel("i1");
    assert!(
        world.nodes["n1"].drain.is_some(),
        "that one is no longer carried out"
    );
}

#[test]
fn a_node_that_is_gone_is_drained_and_one_that_was_replaced_is_left_alone() {
    let mut world = world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    world.pods.insert("n1".to_owned(), vec![]);
    world.show_pods("n1");
    world.lose_node("n1");
    assert_eq!(world.reports().last().unwrap(), "Drained 0");

    let mut world = self::world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 600);
    let mut other = node("n1", "m1");
    other.uid = "another".to_owned();
    world.protected.clear();
    world.put_node(other);
    world.run_for(40);
    assert_eq!(
        world.evicted,
        [],
        "its Pods are not those of the Node that was named"
    );
}

/// OP-41.
#[test]
fn a_machine_that_left_takes_its_node_and_object_along() {
    let mut world = world(&[]);
    world.reclaim("i1", "m1", false, 60);
    world.machine_is("m1", MachineState::Idle);
    assert_eq!(phase(&world, "m1"), None);
    world.run_for(200);
    assert!(world.nodes.contains_key("n1"), "it is Ready");
    let now = world.now;
    world.change_node("n1", |node| {
        (node.is_ready, node.ready_since) = (false, now)
    });
    world.run_for(59);
    assert!(world.nodes.contains_key("n1"));
    world.run_for(2);
    assert!(!world.nodes.contains_key("n1"));

    let mut world = World::started(OperatorConfig {
        node_cleanup: false,
        ..config()
    });
    world.serve(1, &[]);
    world.reclaim("i1", "m1", false, 60);
    world.machine_is("m1", MachineState::Idle);
    assert!(!world.nodes["n1"].is_cordoned && world.nodes["n1"].drain.is_none());
}

/// OP-36.
#[test]
fn drains_and_pods_are_evicted_a_bounded_number_at_once() {
    let mut world = World::started(config());
    for number in 0..80 {
        world.serve(number, &[]);
        let pods = (0..20).map(|at| pod(&format!("p{number}-{at}"))).collect();
        world.pods.insert(format!("n{number}"), pods);
    }
    world.run_for(5);
    world.protected = (0..80)
        .flat_map(|n| (0..20).map(move |at| format!("uid-p{n}-{at}")))
        .collect();
    let target = |number: usize| Target {
        machine: format!("m{number}"),
        ..Target::default()
    };
    world.hear(Heard::Reclaim(Reclaim {
        instruction: "i1".to_owned(),
        targets: (0..80).map(target).collect(),
        grace_seconds: 600,
        ..Reclaim::default()
    }));
    world.run_for(3);
    assert_eq!(world.core.drains()["evicting"], 80);
    assert!(world.core.counters().evictions[2] <= 64 * 20);
    world.protected.clear();
    world.run_for(120);
    assert_eq!(world.evicted.len(), 1600);
    assert_eq!(world.core.drains()["done"], 80);
}

#[test]
fn in_its_last_seconds_a_preemption_gives_pods_what_is_left() {
    let mut world = world(&["p1"]);
    world.protected.insert("uid-p1".to_owned());
    world.reclaim("i1", "m1", false, 20);
    assert_eq!(world.now, at(5));
    world.run_for(6);
    assert!(
        2 <= world.core.counters().evictions[2],
        "it is tried again after five seconds"
    );
}
