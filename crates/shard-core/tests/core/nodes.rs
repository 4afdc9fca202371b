//! Nodes by name and by host: an operator knows a node by what its kubelet says, which is the host it
//! was told of and not always our id (wire G2, G3).

use crate::support::{World, id};
use bigfleet_model::State;
use bigfleet_shard_core::{Event, Frame, NodeFact, SessionId, ShardConfig};

/// One machine that serves, and an operator that reports its node by its host alone.
fn serving() -> (World, SessionId) {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1 Idle cpu=4 $1");
    let session = world.ask("a", "cpu=4", 5.0);
    assert_eq!(world.state("m1"), State::Configured);
    (world, session)
}

fn report(world: &mut World, session: SessionId, provider_id: &str) {
    world.tell(Event::NodesReported {
        session,
        complete: true,
        nodes: vec![NodeFact {
            machine: None,
            provider_id: provider_id.to_owned(),
            node_name: "ip-10-0-0-1".to_owned(),
            ready: true,
            disruption: None,
        }],
    });
}

#[test]
fn a_node_reported_by_its_host_is_its_machines() {
    let (mut world, session) = serving();
    let host = world.core.machine(&id("m1")).unwrap().host().cloned();
    report(&mut world, session, &host.unwrap().reference);
    world.run(700.0);
    assert!(
        !world.core.is_not_ready(&id("m1")),
        "it is there, and ready"
    );
    let (mut world, session) = serving();
    report(&mut world, session, "somebody-elses");
    report(&mut world, session, "");
    world.run(700.0);
    assert!(world.core.is_not_ready(&id("m1")), "nobody saw its node");
}

/// The name the operator gave is the one it is told again: with states, and with the instruction to
/// drain, where a machine id would name nothing.
#[test]
fn the_nodes_name_is_said_back_until_the_machine_is_let_go() {
    let (mut world, session) = serving();
    let host = world.core.machine(&id("m1")).unwrap().host().cloned();
    report(&mut world, session, &host.unwrap().reference);
    world.clear();
    world.roll_up("a", "");
    world.run(30.0);
    assert_eq!(world.state("m1"), State::Idle);
    let named = |frame: &&Frame| match frame {
        Frame::Node(node) => Some((node.state.to_string(), node.node_name.clone())),
        Frame::Reclaim { node_name, .. } => Some(("Reclaim".to_owned(), node_name.clone())),
        _ => None,
    };
    let named: Vec<_> = world.frames(session).iter().filter_map(named).collect();
    let name = |what: &str| (what.to_owned(), "ip-10-0-0-1".to_owned());
    assert_eq!(
        named,
        [name("Draining"), name("Reclaim"), name("Idle")],
        "the last word goes to the cluster it left"
    );
    world.clear();
    world.roll_up("a", "cpu=4");
    world.run(5.0);
    let frames = world.frames(session);
    let unnamed = frames.iter().all(|frame| match frame {
        Frame::Node(node) => node.node_name.is_empty(),
        _ => true,
    });
    assert!(unnamed, "a machine bound anew has no node yet");
}
