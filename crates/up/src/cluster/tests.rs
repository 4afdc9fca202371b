//! The habits of an operator, one by one.

use super::*;
use bigfleet_wire::v1alpha1::{BootstrapRequest, ReclaimCancel, ReclaimTarget};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn need(cpu: u32) -> CapacityNeed {
    CapacityNeed {
        aggregate_resources: BTreeMap::from([("cpu".to_owned(), cpu.to_string())]),
        ..CapacityNeed::default()
    }
}

/// A cluster whose session stands, to a shard that understands everything.
fn connected() -> Cluster {
    let mut cluster = Cluster::new(ClusterId::new("web").unwrap(), Vec::new());
    cluster.opened(seconds(0));
    let features = Feature::ALL.map(|feature| feature.name().to_owned()).into();
    cluster.tell(ack("hello", 0, features));
    cluster
}

fn ack(echo: &str, resync_count: i32, features: Vec<String>) -> FromShard {
    FromShard::Ack(Acknowledgement {
        echo: echo.to_owned(),
        resync_count,
        features,
        ..Acknowledgement::default()
    })
}

fn node(machine: &str, state: MachineState) -> FromShard {
    FromShard::NodeStateUpdate(NodeStateUpdate {
        machine_id: machine.to_owned(),
        state: state.into(),
        ..NodeStateUpdate::default()
    })
}

fn reclaim(machine: &str) -> FromShard {
    FromShard::ReclaimInstruction(ReclaimInstruction {
        instruction_id: "i1".to_owned(),
        targets: vec![ReclaimTarget {
            machine_id: machine.to_owned(),
            ..ReclaimTarget::default()
        }],
        ..ReclaimInstruction::default()
    })
}

impl Cluster {
    fn tell(&mut self, payload: FromShard) -> Vec<Payload> {
        self.heard(seconds(0), payload)
    }

    fn has(&self) -> Vec<&str> {
        self.nodes.keys().map(String::as_str).collect()
    }
}

/// What it asks for in the roll-up among these frames.
fn asked(said: &[Payload]) -> Option<usize> {
    said.iter().find_map(|payload| match payload {
        Payload::Rollup(roll_up) => Some(roll_up.needs.len()),
        _ => None,
    })
}

fn phases(said: &[Payload]) -> Vec<Phase> {
    let phase = |payload: &Payload| match payload {
        Payload::DrainReport(report) => Some(report.phase()),
        _ => None,
    };
    said.iter().filter_map(phase).collect()
}

#[test]
fn it_greets_and_rolls_up_at_once_and_then_every_ten_seconds() {
    let mut cluster = Cluster::new(ClusterId::new("web").unwrap(), vec![need(4)]);
    let said = cluster.opened(seconds(3));
    assert!(
        matches!(&said[..], [Payload::Hello(hello), Payload::Rollup(_)]
        if hello.cluster_id == "web" && hello.features.len() == Feature::ALL.len())
    );
    assert_eq!(cluster.due(), seconds(13));
    assert_eq!(asked(&cluster.woken(seconds(12))), None);
    assert_eq!(asked(&cluster.woken(seconds(13))), Some(1));
}

#[test]
fn every_roll_up_is_its_whole_demand() {
    let mut cluster = connected();
    cluster.order(Order::Ask("batch".to_owned(), Some(need(4))));
    cluster.order(Order::Ask("web".to_owned(), Some(need(8))));
    assert_eq!(asked(&cluster.woken(seconds(10))), Some(2));
    cluster.order(Order::Ask("batch".to_owned(), None));
    assert_eq!(asked(&cluster.woken(seconds(20))), Some(1));
}

#[test]
fn it_hands_out_a_blob_for_the_machine_that_is_to_join() {
    let said = connected().tell(FromShard::BootstrapRequest(BootstrapRequest {
        request_id: "r1".to_owned(),
        machine_id: "m1".to_owned(),
        ..BootstrapRequest::default()
    }));
    let [Payload::BootstrapResponse(answer)] = &said[..] else {
        panic!("{said:?}");
    };
    assert_eq!(
        (answer.request_id.as_str(), answer.error.as_str()),
        ("r1", "")
    );
    assert!(String::from_utf8_lossy(&answer.user_data).contains("m1 joins web"));
}

#[test]
fn a_node_is_reported_once_it_serves() {
    let mut cluster = connected();
    let seen = |said: &[Payload]| match said {
        [Payload::Rollup(_), Payload::NodeReport(report)] => report.nodes.len(),
        other => panic!("{other:?}"),
    };
    cluster.tell(node("m1", MachineState::Configuring));
    assert_eq!(seen(&cluster.woken(seconds(10))), 0);
    cluster.tell(node("m1", MachineState::Configured));
    assert_eq!(seen(&cluster.woken(seconds(20))), 1);
    cluster.tell(node("m1", MachineState::Failed));
    assert_eq!(seen(&cluster.woken(seconds(30))), 0);
}

#[test]
fn a_drain_is_reported_pod_by_pod_until_none_is_left() {
    let mut cluster = connected();
    cluster.tell(node("m1", MachineState::Configured));
    let said = cluster.tell(reclaim("m1"));
    assert!(matches!(&said[0], Payload::ReclaimAck(ack) if ack.nodes_started == 1));
    assert_eq!(phases(&said), [Phase::Started]);
    let mut reported = Vec::new();
    while reported.last() != Some(&Phase::Drained) {
        let due = cluster.due();
        assert!(due < seconds(10), "it never got done: {reported:?}");
        reported.extend(phases(&cluster.woken(due)));
    }
    assert_eq!(reported, [Phase::Started, Phase::Started, Phase::Drained]);
    // Asked again, on a session after this one: still so.
    assert_eq!(phases(&cluster.tell(reclaim("m1"))), [Phase::Drained]);
}

#[test]
fn a_drain_that_is_withdrawn_stops_and_one_of_a_stranger_is_unresolved() {
    let mut cluster = connected();
    cluster.tell(node("m1", MachineState::Configured));
    cluster.tell(reclaim("m1"));
    cluster.tell(FromShard::ReclaimCancel(ReclaimCancel {
        instruction_id: "i1".to_owned(),
    }));
    assert_eq!(phases(&cluster.woken(seconds(9))), []);
    assert_eq!(phases(&cluster.tell(reclaim("m9"))), [Phase::Unresolved]);
}

/// Nobody waits for the machine: until it has settled, a cancel costs nobody anything, and that it serves is one.
#[test]
fn a_voluntary_drain_settles_before_it_evicts() {
    let mut cluster = connected();
    cluster.tell(node("m1", MachineState::Configured));
    let FromShard::ReclaimInstruction(mut instruction) = reclaim("m1") else {
        panic!("it is one");
    };
    instruction.voluntary = true;
    let instruction = FromShard::ReclaimInstruction(instruction);
    assert_eq!(phases(&cluster.tell(instruction.clone())), [Phase::Started]);
    assert_eq!(phases(&cluster.woken(SETTLE)), []);
    cluster.tell(node("m1", MachineState::Configured));
    assert_eq!(phases(&cluster.woken(seconds(600))), [], "it serves");
    cluster.tell(instruction);
    assert_eq!(phases(&cluster.woken(SETTLE + EVICTION)), [Phase::Started]);
}

#[test]
fn a_resync_deletes_what_was_not_named_only_if_the_count_agrees() {
    let mut cluster = connected();
    for machine in ["m1", "m2"] {
        cluster.tell(node(machine, MachineState::Configured));
    }
    for (count, left) in [(2, vec!["m1", "m2"]), (1, vec!["m2"])] {
        cluster.tell(ack("node-state-resync-begin", 0, Vec::new()));
        cluster.tell(node("m2", MachineState::Configured));
        cluster.tell(ack("node-state-resync", count, Vec::new()));
        assert_eq!(cluster.has(), left);
    }
}

#[test]
fn silence_keeps_what_runs_and_frames_of_ours_go_only_to_whom_understands_them() {
    let mut cluster = connected();
    cluster.tell(node("m1", MachineState::Configured));
    cluster.order(Order::Silence);
    cluster.closed();
    assert!(!cluster.wants_session());
    cluster.order(Order::Return);
    assert!(cluster.wants_session());
    assert_eq!(cluster.has(), ["m1"]);
    cluster.opened(seconds(40));
    cluster.tell(ack("hello", 0, Vec::new())); // a shard that knows no feature of ours
    assert_eq!(
        cluster.woken(seconds(50)).len(),
        1,
        "a roll-up and nothing else"
    );
    assert_eq!(phases(&cluster.tell(reclaim("m1"))), []);
}
