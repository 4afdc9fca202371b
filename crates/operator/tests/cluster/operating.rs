//! Requests, machines, bootstraps and permissions.

use crate::roles::NOBODY;
use crate::scene::{Scene, node_path, until};
use bigfleet_k8s::ResourceKind;
use bigfleet_operator_core::MACHINE_LABEL;
use bigfleet_wire::v1alpha1 as wire;
use serde_json::{Value, json};
use wire::operator_message::Payload;
use wire::shard_message::Payload as Said;

pub(crate) fn machine(id: &str, state: wire::MachineState) -> wire::NodeStateUpdate {
    wire::NodeStateUpdate {
        supersedes_key: format!("node:{id}"),
        machine_id: id.to_owned(),
        state: state.into(),
        provider_id: format!("cloud:///{id}"),
        labels: [("topology.kubernetes.io/zone".to_owned(), "z1".to_owned())].into(),
        ..wire::NodeStateUpdate::default()
    }
}

fn request(name: &str, operator: &str) -> Value {
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
        "metadata": { "name": name },
        "spec": {
            "resources": { "cpu": "1500m", "memory": 1073741824_i64 },
            "priority": 7,
            "requirements": [{ "key": "zone", "operator": operator, "values": ["a"] }],
        },
    })
}

fn requests() -> String {
    ResourceKind::CapacityRequest.path_in("default")
}

fn rollup_of(rows: usize) -> impl Fn(&Payload) -> Option<wire::ClusterCapacityNeeds> {
    move |payload| match payload {
        Payload::Rollup(rollup) if rollup.needs.len() == rows => Some(rollup.clone()),
        _ => None,
    }
}

/// OP-17 to OP-19, OP-27, OP-28: whatever a schema lets through is demand; a phase is written once the shard has it.
pub(crate) async fn requests_are_acknowledged(scene: &mut Scene) {
    scene.create(&requests(), &request("r1", "In")).await;
    scene.create(&requests(), &request("r2", "In")).await;
    scene.create(&requests(), &request("r3", "Gt")).await;
    let operator = scene.operator().await;
    let rollup = scene.shard.hears("two rows", rollup_of(2)).await;
    let row = |operator: i32| {
        rollup
            .needs
            .iter()
            .find(|need| need.requirements[0].operator == operator)
    };
    let both = row(1).unwrap();
    assert_eq!(both.aggregate_resources["cpu"], "3");
    assert_eq!(
        (both.priority, both.aggregate_resources["memory"].as_str()),
        (7, "2147483648")
    );
    assert_eq!(
        row(3).unwrap().aggregate_resources["cpu"],
        "1500m",
        "Gt reads as Exists"
    );
    for name in ["r1", "r2", "r3"] {
        let path = format!("{}/{name}", requests());
        let is = |it: Option<&Value>| (it?["status"]["phase"] == "Acknowledged").then_some(());
        scene.becomes(&path, is).await;
    }
    let pending = format!("{}?fieldSelector=status.phase%3DPending", requests());
    assert_eq!(scene.get(&pending).await.unwrap()["items"], json!([]));

    // Withdrawn demand is told as soon as it is seen.
    scene.shard.forget();
    scene.clear(&[&format!("{}/r3", requests())]).await;
    scene.shard.hears("one row", rollup_of(1)).await;
    operator.stop().await;
    scene
        .clear(&[&format!("{}/r1", requests()), &format!("{}/r2", requests())])
        .await;
}

/// OP-29 to OP-32, OP-40: found by the cloud's name, labelled, reported.
pub(crate) async fn a_machine_becomes_a_node(scene: &mut Scene) {
    let operator = scene.operator().await;
    let upcoming = format!("{}/un-m1", ResourceKind::UpcomingNode.path());
    let phase = |phase: &'static str| {
        move |it: Option<&Value>| (it?["status"]["phase"] == phase).then_some(())
    };
    scene
        .shard
        .machine(machine("m1", wire::MachineState::Configuring));
    scene.becomes(&upcoming, phase("Registered")).await;
    scene.node("node-1", "cloud:///m1").await;
    scene
        .shard
        .machine(machine("m1", wire::MachineState::Configured));
    scene.becomes(&upcoming, phase("Ready")).await;
    let labelled =
        |it: Option<&Value>| (it?["metadata"]["labels"][MACHINE_LABEL] == "m1").then_some(());
    scene.becomes(&node_path("node-1"), labelled).await;
    let is_known = |it: Option<&Value>| {
        let status = &it?["status"];
        let is_ready = status["conditions"][0]["status"] == "True";
        (status["nodeRef"]["name"] == "node-1" && is_ready).then_some(())
    };
    scene.becomes(&upcoming, is_known).await;
    let report = |payload: &Payload| match payload {
        Payload::NodeReport(report) => {
            let mut nodes = report.nodes.iter();
            nodes
                .find(|node| node.machine_id == "m1" && node.ready)
                .map(|node| node.node_name.clone())
        }
        _ => None,
    };
    assert_eq!(
        scene.shard.hears("a report of the Node", report).await,
        "node-1"
    );
    let available = wire::AvailableCapacityUpdate {
        supersedes_key: "available:x".to_owned(),
        available_count: 3,
        confidence: wire::available_capacity_update::Confidence::High.into(),
        cost_per_hour: 0.25,
        ..wire::AvailableCapacityUpdate::default()
    };
    scene.shard.say(Said::AvailableCapacity(available));
    let hints = ResourceKind::AvailableCapacity.path();
    let is_there = |it: Option<&Value>| {
        let spec = &it?["items"][0]["spec"];
        (spec["availableCount"] == 3 && spec["cost"] == "0.25").then_some(())
    };
    scene.becomes(&hints, is_there).await;
    operator.stop().await;
}

/// EX-OP14 over the wire: what the shard gets for a machine that joins.
pub(crate) async fn ex_op14_bootstrap(scene: &mut Scene) {
    let file = scene.template("join {{ .ClusterID }} as {{ .MachineID }} {{ range .Requirements }}{{ .Key }}={{ .Values }};{{ end }}");
    let mut settings = scene.settings();
    settings.core.template = Some(bigfleet_operator::read_template(&file).unwrap());
    settings.template_file = Some(file.clone());
    let operator = scene.operator_with(settings).await;
    let ask = |id: &str| {
        let requirement = wire::NodeSelectorRequirement {
            key: "zone".to_owned(),
            operator: 1,
            values: vec!["a".to_owned(), "b".to_owned()],
        };
        scene
            .shard
            .say(Said::BootstrapRequest(wire::BootstrapRequest {
                request_id: id.to_owned(),
                requirements: vec![requirement],
                machine_id: "m7".to_owned(),
                ..wire::BootstrapRequest::default()
            }));
    };
    let answer = |id: &'static str| {
        move |payload: &Payload| match payload {
            Payload::BootstrapResponse(response) if response.request_id == id => {
                Some(response.clone())
            }
            _ => None,
        }
    };
    ask("q1");
    let blob = scene.shard.hears("a blob", answer("q1")).await;
    assert_eq!(
        String::from_utf8_lossy(&blob.user_data),
        "join c1 as m7 zone=[a b];"
    );

    // A file that cannot be used leaves the last one in force; one that asks for what is not there is an error answer.
    std::fs::write(&file, "{{ .Nope }}").unwrap();
    let asked = until("the new template is in force", async || {
        ask("q2");
        let heard = scene.shard.heard();
        let failed = |payload: &Payload| answer("q2")(payload).filter(|it| !it.error.is_empty());
        heard.iter().find_map(failed)
    });
    assert!(asked.await.error.contains("Nope"));
    operator.stop().await;
}

/// EX-OP13, OP-41: IDLE deletes it, whatever came before; the Node goes once it has been silent.
pub(crate) async fn ex_op13_a_machine_leaves(scene: &mut Scene) {
    let operator = scene.operator().await;
    let upcoming = format!("{}/un-m2", ResourceKind::UpcomingNode.path());
    scene
        .shard
        .machine(machine("m2", wire::MachineState::Configured));
    scene.becomes(&upcoming, |it| it.map(|_| ())).await;
    scene
        .shard
        .machine(machine("m2", wire::MachineState::Draining));
    scene.shard.machine(machine("m2", wire::MachineState::Idle));
    scene
        .becomes(&upcoming, |it| it.is_none().then_some(()))
        .await;
    operator.stop().await;
}

/// `/readyz` names the verb and the resource, and nothing is sent meanwhile.
pub(crate) async fn a_missing_permission_is_named(scene: &mut Scene) {
    let running = Scene::begin(scene.settings(), &scene.world.kubeconfig_of(NOBODY)).await;
    let health = running.operator.as_ref().unwrap().health();
    let why = until("it says what it may not do", async || {
        let why = health.ready().err()?;
        why.contains("cannot ").then_some(why)
    });
    let why = why.await;
    assert!(why.contains(NOBODY) && why.contains("resource"), "{why}");
    let sent = scene.shard.heard();
    let rollups = sent
        .iter()
        .filter(|payload| matches!(payload, Payload::Rollup(_)));
    assert_eq!(rollups.count(), 0, "nothing is known, so nothing is told");
    drop(running);
}
