//! The pod controller: a request for every Pod that needs one.

use crate::roles::POD_CONTROLLER;
use crate::scene::{Scene, pod_path};
use bigfleet_k8s::{Cluster, ResourceKind};
use bigfleet_operator::{PodSettings, Pods, start_pods};
use bigfleet_operator_core::PodConfig;
use serde_json::{Value, json};

pub(crate) fn pod(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "containers": [{ "name": "c", "image": "none",
            "resources": { "requests": { "cpu": "250m", "ephemeral-storage": "1Gi" } } }],
        "nodeSelector": { "disk": "ssd" },
        "tolerations": [{ "operator": "Exists" }],
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": name } }, "spec": spec,
    })
}

/// A pod controller with no more than its role.
pub(crate) fn controller(scene: &Scene) -> Pods {
    let cluster = Cluster::connect(Some(&scene.world.kubeconfig_of(POD_CONTROLLER)), None).unwrap();
    let settings = PodSettings {
        config: PodConfig::default(),
        unmanaged_nodes: Vec::new(),
        qps: 50,
        burst: 100,
        leading: scene.settings().leading,
    };
    start_pods(cluster, settings)
}

/// OP-47 to OP-50.
pub(crate) async fn pods_have_requests(scene: &mut Scene) {
    let pods = "/api/v1/namespaces/default/pods";
    let requests = ResourceKind::CapacityRequest.path_in("default");
    let made = scene.create(pods, &pod("p1", &json!({}))).await;
    let uid = made["metadata"]["uid"].as_str().unwrap().to_owned();
    let gated = json!({ "schedulingGates": [{ "name": "x.example/wait" }] });
    let gated = scene.create(pods, &pod("p2", &gated)).await;
    let apart = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "p3" } } },
    ] } } });
    let apart = scene.create(pods, &pod("p3", &apart)).await;
    let controller = controller(scene);

    let path = format!("{requests}/cr-pod-{uid}");
    let pending = |it: Option<&Value>| {
        let it = it?;
        (it["status"]["phase"] == "Pending").then(|| it.clone())
    };
    let request = scene.becomes(&path, pending).await;
    assert_eq!(
        request["metadata"]["ownerReferences"][0]["uid"],
        uid.as_str()
    );
    assert_eq!(request["spec"]["resources"], json!({ "cpu": "250m" }));
    let disk = json!([{ "key": "disk", "operator": "In", "values": ["ssd"] }]);
    assert_eq!(request["spec"]["requirements"], disk);
    let apart = apart["metadata"]["uid"].as_str().unwrap().to_owned();
    let apart = scene
        .becomes(&format!("{requests}/cr-pod-{apart}"), pending)
        .await;
    assert_eq!(
        apart["spec"]["antiAffinity"][0]["topologyKey"],
        "kubernetes.io/hostname"
    );

    // A deleted one is made again, a changed one made as it was.
    scene.clear(&[&path]).await;
    let first = request["metadata"]["uid"].clone();
    let again = |it: Option<&Value>| (it?["metadata"]["uid"] != first).then_some(());
    scene.becomes(&path, again).await;
    scene
        .patch(&path, &json!({ "spec": { "priority": 99 } }))
        .await;
    let mended = |it: Option<&Value>| (it?["spec"]["priority"] == 0).then_some(());
    scene.becomes(&path, mended).await;

    // What waits for a gate needs nothing yet.
    let gated = gated["metadata"]["uid"].as_str().unwrap();
    assert_eq!(scene.get(&format!("{requests}/cr-pod-{gated}")).await, None);
    scene
        .patch(
            &pod_path("p2"),
            &json!({ "spec": { "schedulingGates": null } }),
        )
        .await;
    scene
        .becomes(&format!("{requests}/cr-pod-{gated}"), pending)
        .await;
    controller.stop().await;
}
