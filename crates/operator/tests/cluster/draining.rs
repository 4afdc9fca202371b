//! Drains on a real API server: budgets, kills, and drains that are taken back.

use crate::operating::machine;
use crate::scene::{Scene, node_path, pod_path};
use bigfleet_operator_core::DRAIN_ANNOTATION;
use bigfleet_wire::v1alpha1 as wire;
use serde_json::{Value, json};
use wire::drain_report::Phase;
use wire::operator_message::Payload;
use wire::shard_message::Payload as Said;

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn reclaim(id: &str, machine: &str, voluntary: bool) -> Said {
    Said::ReclaimInstruction(wire::ReclaimInstruction {
        instruction_id: id.to_owned(),
        targets: vec![wire::ReclaimTarget {
            machine_id: machine.to_owned(),
            provider_id: format!("cloud:///{machine}"),
            ..wire::ReclaimTarget::default()
        }],
        grace_period_seconds: 600,
        preemptor_priority: if voluntary { 0 } else { 100 },
        voluntary,
        ..wire::ReclaimInstruction::default()
    })
}

/// What the disruption controller would say of a budget: so many of its Pods may go.
async fn allow(scene: &Scene, name: &str, disruptions: u32) {
    let status = json!({ "status": {
        "observedGeneration": 1, "disruptionsAllowed": disruptions,
        "currentHealthy": 2, "desiredHealthy": 2 - disruptions, "expectedPods": 2,
    } });
    scene
        .patch(&format!("{BUDGETS}/{name}/status"), &status)
        .await;
}

async fn budget(scene: &Scene, name: &str, allowed: u32) {
    let body = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": name } } },
    });
    scene.create(BUDGETS, &body).await;
    allow(scene, name, allowed).await;
}

fn is_gone(it: Option<&Value>) -> Option<()> {
    it.is_none().then_some(())
}

fn is_cordoned(it: Option<&Value>) -> Option<()> {
    (it?["spec"]["unschedulable"] == true).then_some(())
}

/// A machine whose Node is there, bound to this cluster.
async fn bound(scene: &Scene, id: &str) {
    scene.node(id, &format!("cloud:///{id}")).await;
    scene
        .shard
        .machine(machine(id, wire::MachineState::Configured));
}

pub(crate) async fn ex_op11_a_budget_is_respected(scene: &mut Scene) {
    let operator = scene.operator().await;
    bound(scene, "d1").await;
    scene.pod("web-1", "d1", json!({})).await;
    scene.pod("web-2", "d1", json!({})).await;
    budget(scene, "web", 1).await;
    scene.shard.say(reclaim("i1", "d1", false));
    scene.becomes(&node_path("d1"), is_cordoned).await;
    // One goes, and counts until it is gone; the budget keeps the other.
    let is_blocked_by_one = |payload: &Payload| match payload {
        Payload::DrainReport(report) if report.machine_id == "d1" => {
            (report.phase() == Phase::Blocked && report.pods_remaining == 1).then_some(())
        }
        _ => None,
    };
    scene.shard.hears("BLOCKED 1", is_blocked_by_one).await;
    let left = [pod_path("web-1"), pod_path("web-2")];
    let mut there = 0;
    for path in &left {
        there += usize::from(
            scene
                .get(path)
                .await
                .is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null()),
        );
    }
    assert_eq!(there, 1);
    allow(scene, "web", 1).await;
    scene.shard.hears_drain("d1", Phase::Drained).await;
    for path in &left {
        scene.becomes(path, is_gone).await;
    }
    let ack = |payload: &Payload| match payload {
        Payload::ReclaimAck(ack) if ack.instruction_id == "i1" => Some(ack.nodes_started),
        _ => None,
    };
    assert_eq!(scene.shard.hears("an ack", ack).await, 1);
    operator.stop().await;
}

/// EX-OP6: its record is on the Node, so the next process goes on with the same instruction; nothing is evicted before
/// it is heard again (OP-34).
pub(crate) async fn ex_op6_killed_in_the_middle(scene: &mut Scene) {
    let operator = scene.operator().await;
    bound(scene, "d2").await;
    scene.pod("api-1", "d2", json!({})).await;
    budget(scene, "api", 0).await;
    scene.shard.say(reclaim("i2", "d2", false));
    scene.shard.hears_drain("d2", Phase::Blocked).await;
    operator.kill();

    let record = |it: Option<&Value>| {
        it?["metadata"]["annotations"][DRAIN_ANNOTATION]
            .as_str()
            .map(str::to_owned)
    };
    let before = scene.becomes(&node_path("d2"), record).await;
    assert!(before.contains("i2"), "{before}");
    allow(scene, "api", 1).await;
    scene.shard.forget();
    scene
        .shard
        .machine(machine("d2", wire::MachineState::Draining));
    let operator = scene.operator().await;
    // A whole roll-up later it still has evicted nobody.
    let rollup = |payload: &Payload| matches!(payload, Payload::Rollup(_)).then_some(());
    scene.shard.hears("a roll-up", rollup).await;
    let pod = scene.get(&pod_path("api-1")).await.unwrap();
    assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
    scene.shard.say(reclaim("i2", "d2", false));
    scene.shard.hears_drain("d2", Phase::Drained).await;
    scene.becomes(&pod_path("api-1"), is_gone).await;
    operator.stop().await;
}

/// EX-OP7, EX-OP23.
pub(crate) async fn ex_op7_ex_op23_taken_back(scene: &mut Scene) {
    let mut settings = scene.settings();
    settings.core.reclaim_settle = std::time::Duration::from_secs(600);
    let operator = scene.operator_with(settings).await;
    for id in ["d3", "d4"] {
        bound(scene, id).await;
    }
    scene.pod("job-1", "d3", json!({})).await;
    scene
        .patch(
            &node_path("d4"),
            &json!({ "spec": { "unschedulable": true } }),
        )
        .await;
    for (id, machine) in [("i3", "d3"), ("i4", "d4")] {
        scene.shard.say(reclaim(id, machine, true));
        let is_recorded = |it: Option<&Value>| {
            it?["metadata"]["annotations"][DRAIN_ANNOTATION]
                .as_str()
                .map(|_| ())
        };
        scene.becomes(&node_path(machine), is_recorded).await;
        scene
            .shard
            .hears_drain(
                machine,
                if machine == "d3" {
                    Phase::Started
                } else {
                    Phase::Drained
                },
            )
            .await;
    }
    for (id, machine) in [("i3", "d3"), ("i4", "d4")] {
        scene.shard.say(Said::ReclaimCancel(wire::ReclaimCancel {
            instruction_id: id.to_owned(),
        }));
        let is_off = |it: Option<&Value>| {
            it?["metadata"]["annotations"][DRAIN_ANNOTATION]
                .is_null()
                .then_some(())
        };
        scene.becomes(&node_path(machine), is_off).await;
    }
    let cordoned = async |name: &str| {
        let node = scene.get(&node_path(name)).await.unwrap();
        node["spec"]["unschedulable"] == true
    };
    assert!(
        !cordoned("d3").await,
        "what the operator cordoned it uncordons"
    );
    assert!(cordoned("d4").await, "what a person cordoned stays so");
    let pod = scene.get(&pod_path("job-1")).await.unwrap();
    assert!(
        pod["metadata"]["deletionTimestamp"].is_null(),
        "nobody was evicted: {pod}"
    );
    operator.stop().await;
}
