//! A shard that lies, and floods: nothing grows without a bound, and no Node is touched by mistake.

use crate::support::{World, config, frame, node};
use bigfleet_model::{Operator, Requirement};
use bigfleet_operator_core::{
    BootstrapRequest, Frame, Heard, MachineState, OperatorConfig, Reclaim, Target, Template,
};
use std::sync::Arc;

#[test]
fn an_instruction_that_lies_touches_nothing() {
    let mut world = World::started(config());
    world.serve(1, &["p1"]);
    world.run_for(3);
    world.forget_said();
    let target = |machine: &str, node: &str| Target {
        machine: machine.to_owned(),
        node_name: node.to_owned(),
        provider_id: String::new(),
    };
    let mut targets = vec![
        target("", "n1"),
        target("m9", "n1"),
        target(&"x".repeat(600), ""),
    ];
    targets.extend((0..100_000).map(|n| target(&format!("ghost{n}"), "")));
    world.hear(Heard::Reclaim(Reclaim {
        instruction: "i1".to_owned(),
        targets,
        grace_seconds: -5,
        ..Reclaim::default()
    }));
    assert!(!world.nodes["n1"].is_cordoned && world.evicted.is_empty());
    assert!(90_000 < world.core.counters().frames_dropped);
    assert_eq!(world.core.drains().len(), 0);
}

#[test]
fn frames_of_other_clusters_are_dropped() {
    let mut world = World::started(config());
    let mut foreign = frame("m1", MachineState::Configured);
    foreign.cluster = "c2".to_owned();
    world.hear(Heard::NodeState(Box::new(foreign)));
    world.hear(Heard::Unknown);
    assert_eq!(
        (world.upcoming.len(), world.core.counters().frames_dropped),
        (0, 2)
    );
}

#[test]
fn an_unreadable_record_is_left_alone_and_an_instruction_replaces_it() {
    let mut world = World::started(config());
    let mut odd = node("n1", "m1");
    odd.drain = Some("nonsense".to_owned());
    odd.is_cordoned = true;
    world.put_node(odd);
    world.machine_is("m1", MachineState::Configured);
    world.run_for(30);
    assert_eq!(world.nodes["n1"].drain.as_deref(), Some("nonsense"));
    world.reclaim("i1", "m1", false, 60);
    world.cancel("i1");
    assert!(
        world.nodes["n1"].is_cordoned,
        "who cordoned it cannot be told"
    );
}

#[test]
fn a_thousand_updates_at_once_are_all_written() {
    let mut world = World::started(OperatorConfig {
        qps: 50,
        burst: 100,
        ..config()
    });
    world.holds_writes = true;
    for n in 0..1000 {
        world.machine_is(&format!("m{n}"), MachineState::Configuring);
        world.machine_is(&format!("m{n}"), MachineState::Configured);
    }
    assert_eq!(world.held_writes.len(), 32, "side by side");
    assert_eq!(world.core.writes_waiting(), 1000, "the newest of each");
    world.apply_held();
    world.run_for(60);
    assert_eq!(world.upcoming.len(), 1000);
}

/// OP-45 on the whole value.
#[test]
fn a_blob_is_rendered_and_a_bad_template_is_an_error_answer() {
    let template = |text: &str| Some(Arc::new(Template::parse(text).unwrap()));
    let ask = |template| {
        let mut world = World::started(OperatorConfig {
            template,
            ..config()
        });
        let zone = Requirement::new("zone".to_owned(), Operator::In, vec!["a".to_owned()]);
        world.hear(Heard::Bootstrap(BootstrapRequest {
            request: "r1".to_owned(),
            cluster: String::new(),
            machine: "m1".to_owned(),
            provider_id: "i-1".to_owned(),
            requirements: zone.into_iter().collect(),
        }));
        let answer = world.frames.into_iter().find_map(|(_, frame)| match frame {
            Frame::BootstrapResponse { answer, .. } => Some(answer),
            _ => None,
        });
        answer
            .unwrap()
            .map(|(blob, ttl)| (String::from_utf8(blob).unwrap(), ttl))
    };
    let text = "{{ .ClusterID }} {{ .MachineID }} {{ .ProviderID }} {{ .MachineLabel }}";
    let filled = "c1 m1 i-1 bigfleet.lucy.sh/machine-id=m1";
    assert_eq!(ask(template(text)), Ok((filled.to_owned(), 0)));
    assert!(ask(template("{{ .Nope }}")).is_err());
    let stub = "#cloud-config\n# bigfleet stub bootstrap for c1\n";
    assert_eq!(ask(None), Ok((stub.to_owned(), 600)));
}
