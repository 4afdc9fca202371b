//! Clusters in trouble: an operator that is silent, Nodes that are not Ready.

use bigfleet_wire::v1alpha1 as wire;
use serde_json::json;
use wire::operator_message::Payload;

use super::{Drill, need, until_need};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_gone_is_named() {
    let scene = Scene::new("drill-operator", 1, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    a.has(1).await;
    let drill = Drill::begins("operator silent");
    drop(a);
    let what = "the operator of cluster a is not connected: its 1 machine stays";
    drill.status(&scene, "session", what).await;
    drill
        .verb(&scene, &["get", "events"], "session-ended")
        .await;
    drill.verb(&scene, &["get", "clusters"], "gone").await;
    let page = drill
        .verb(
            &scene,
            &["explain", "a"],
            "no operator of its cluster is connected",
        )
        .await;
    let advice = "find out why the cluster's operator does not connect";
    assert!(page.contains(advice), "{page}");
    drill
        .metric(&scene, "bigfleet_shard_active_sessions", |count| {
            count == 0.0
        })
        .await;
    let what = "session-ended cluster a: the operator's session ended";
    drill.audit(&scene, &["--cluster=a"], what).await;
    drill.is_told_by_all();
    let need = need(&scene);
    assert_eq!(
        (&need["serving"], &need["missing"]),
        (&json!({"cpu": "4"}), &json!({"cpu": "4"}))
    );
}

/// Says what the cluster sees of the machines it was told of.
async fn sees(operator: &Operator, is_ready: bool) {
    let machines = operator.heard().nodes.into_keys();
    let nodes = machines.map(|machine_id| wire::ReportedNode {
        node_name: format!("node-of-{machine_id}"),
        machine_id,
        ready: is_ready,
        ..wire::ReportedNode::default()
    });
    let report = wire::NodeReport {
        complete: true,
        nodes: nodes.collect(),
    };
    operator.send(Payload::NodeReport(report)).await;
}

/// A machine that is Configured and whose Node does not come, or is lost, does not serve.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_not_ready_does_not_serve() {
    let scene = Scene::new("drill-node", 1, 0).await;
    let a = scene.operator("a", Manner::SeesNodes).await;
    sees(&a, false).await;
    let drill = Drill::begins("Node never Ready");
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    let coming = until_need(&scene, "a Node that is waited for", |need| {
        need["stages"][0]["stage"] == "waits for its Node to be Ready"
    })
    .await;
    assert_eq!(
        (&coming["serving"], &coming["coming"]),
        (&json!({}), &json!({"cpu": "4"}))
    );
    drill.verb(&scene, &["get", "needs"], "coming").await;
    drill
        .verb(&scene, &["explain", "a"], "waits for its Node to be Ready")
        .await;
    drill
        .metric(&scene, "bigfleet_shard_needs_lacking", |count| count == 1.0)
        .await;
    sees(&a, true).await;
    until_need(&scene, "served", |need| {
        need["serving"] == json!({"cpu": "4"})
    })
    .await;
    let drill = Drill::begins("Node not Ready any more");
    sees(&a, false).await;
    drill
        .verb(&scene, &["explain", "a"], "its Node is not Ready any more")
        .await;
    drill.verb(&scene, &["get", "shortfalls"], "stuck").await;
    drill
        .metric(&scene, "bigfleet_shard_needs_lacking", |count| count == 1.0)
        .await;
}
