//! The word for whoever waits: condition and column on the request, Event on the Pod.

use crate::pods;
use crate::roles::{NOBODY, READER};
use crate::scene::{Scene, node_path, pod_path, until};
use bigfleet_k8s::{Cluster, ResourceKind, seconds_text};
use bigfleet_model::{ClusterId, Row};
use bigfleet_operator::read_why;
use bigfleet_operator_core::{Account, HopName, HopState, Verdict, account, need_name};
use bigfleet_wire::{Rollup, v1alpha1 as wire};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::operator_message::Payload;
use wire::shard_message::Payload as Said;

const SENTENCE: &str = "no machine offered has disk=nvme";

/// What kube-scheduler writes about a Pod for which it finds no Node, as of a minute ago.
fn unschedulable() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let a_minute_ago = i64::try_from(now.as_nanos()).unwrap() - 60_000_000_000;
    json!({ "status": { "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "lastTransitionTime": seconds_text(a_minute_ago),
    }] } })
}

/// The row of the Pod that waits, as the shard names it, with nothing on its way.
fn missing(payload: &Payload) -> Option<wire::NeedStatusRow> {
    let Payload::Rollup(rollup) = payload else {
        return None;
    };
    let read = Rollup::read(rollup.clone(), &ClusterId::new("c1").unwrap()).unwrap();
    let is_its = |row: &&Row| row.profile.fingerprint().as_str().contains("nvme");
    let row = read.rows.iter().find(is_its)?;
    Some(wire::NeedStatusRow {
        profile_fingerprint: row.profile.fingerprint().to_string(),
        group: row.group.to_string(),
        missing: Some(wire::Resources {
            resources: [("cpu".to_owned(), "250m".to_owned())].into(),
        }),
        reason: "NoMatchingSupply".to_owned(),
        sentence: SENTENCE.to_owned(),
        ..wire::NeedStatusRow::default()
    })
}

/// OP-53, OP-60: from the shard's word to what `kubectl get cr` and `kubectl describe pod` show, and back.
pub(crate) async fn who_waits_is_told_why(scene: &mut Scene) {
    let folder = "/api/v1/namespaces/default/pods";
    let on_nvme = json!({ "nodeSelector": { "disk": "nvme" } });
    let made = scene.create(folder, &pods::pod("waits", &on_nvme)).await;
    let uid = made["metadata"]["uid"].as_str().unwrap().to_owned();
    scene
        .patch(&format!("{}/status", pod_path("waits")), &unschedulable())
        .await;
    let controller = pods::controller(scene);
    let requests = ResourceKind::CapacityRequest.path_in("default");
    let name = format!("cr-pod-{uid}");
    let path = format!("{requests}/{name}");
    let condition = |kind: &'static str, status: &'static str| {
        move |it: Option<&Value>| {
            let conditions = it?["status"]["conditions"].as_array()?;
            let is = |it: &&Value| it["type"] == kind && it["status"] == status;
            conditions.iter().find(is).cloned()
        }
    };
    let stuck = scene.becomes(&path, condition("Stuck", "True")).await;
    assert_eq!(stuck["reason"], "Insufficient");
    let untold = why(scene).await;
    assert_eq!(untold.waits_at, Some(HopName::Need), "{untold:#?}");
    assert_eq!(
        untold.hops[1].object,
        format!("capacityrequest/{name}"),
        "{untold:#?}"
    );

    let operator = scene.operator().await;
    let row = scene.shard.hears("the row of the Pod", missing).await;
    let read = read_why(&scene.admin, "default", "waits").await.unwrap();
    let request = read.request.unwrap().unwrap();
    let need = need_name("default", &request.spec);
    assert_eq!(need.fingerprint, row.profile_fingerprint);
    assert!(need.groups.contains(&row.group), "{need:?}");
    scene.shard.say(Said::NeedStatus(wire::NeedStatus {
        rows: vec![row],
        complete: true,
    }));
    let told = scene.becomes(&path, condition("Served", "False")).await;
    assert_eq!(
        (told["reason"].as_str(), told["message"].as_str()),
        (Some("NoMatchingSupply"), Some(SENTENCE))
    );
    let request = scene.get(&path).await.unwrap();
    assert_eq!(
        request["status"]["phase"], "Acknowledged",
        "a word about it changes nothing else of it"
    );
    assert!(condition("Stuck", "True")(Some(&request)).is_some());
    assert_eq!(column(scene, &name, "SERVED"), "NoMatchingSupply");
    let short = why(scene).await;
    assert_eq!(
        (short.verdict, short.waits_at, short.sentence.as_str()),
        (Verdict::Stuck, Some(HopName::Need), SENTENCE),
        "{short:#?}"
    );
    let said = event(scene, &uid, "NoMatchingSupply").await;
    assert_eq!(said["message"], SENTENCE);
    assert_eq!(said["source"]["component"], "bigfleet-pod-controller");

    // A Pod that gets a Node no longer waits, whatever the shard says of its row.
    scene.node("node-waits", "cloud:///waits").await;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "waits" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "node-waits" },
    });
    scene
        .create(&format!("{}/binding", pod_path("waits")), &binding)
        .await;
    scene.becomes(&path, condition("Served", "True")).await;
    assert_eq!(column(scene, &name, "SERVED"), "Served");
    let runs = until("the Pod is told to run", async || {
        let told = why(scene).await;
        (told.verdict == Verdict::Runs).then_some(told)
    })
    .await;
    assert_eq!(runs.hops[4].object, "node/node-waits", "{runs:#?}");
    assert_eq!(
        runs.hops[3].state,
        HopState::NotNeeded,
        "nobody said that this Node is a machine: {runs:#?}"
    );
    event(scene, &uid, "Served").await;
    operator.stop().await;
    controller.stop().await;
    scene
        .clear(&[&pod_path("waits"), &path, &node_path("node-waits")])
        .await;
}

async fn why(scene: &Scene) -> Account {
    account(&read_why(&scene.admin, "default", "waits").await.unwrap())
}

/// What cannot be read is said, each thing by itself; nothing of it is a Pod that is not there.
pub(crate) async fn what_cannot_be_read_is_said(scene: &mut Scene) {
    let folder = "/api/v1/namespaces/default/pods";
    scene.create(folder, &pods::pod("waits", &json!({}))).await;
    scene
        .patch(&format!("{}/status", pod_path("waits")), &unschedulable())
        .await;
    let refusal = async |cluster: &Cluster, namespace: &str, name: &str| {
        let read = read_why(cluster, namespace, name).await;
        read.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&scene.admin, "default", "none").await,
        "there is no Pod \"none\" in namespace \"default\"; `kubectl get pods -A` shows all there are"
    );
    assert_eq!(
        refusal(&scene.admin, "kube-system", "waits").await,
        "there is no Pod \"waits\" in namespace \"kube-system\"; there is one in namespace default: -n default"
    );
    let nobody = Cluster::connect(Some(&scene.world.kubeconfig_of(NOBODY)), None).unwrap();
    let said = refusal(&nobody, "", "waits").await;
    assert!(
        said.starts_with("you may not read Pods in namespace \"default\""),
        "{said}"
    );
    // Somebody who may read Pods and nothing else is told what else it takes.
    let reader = Cluster::connect(Some(&scene.world.kubeconfig_of(READER)), None).unwrap();
    let told = account(&read_why(&reader, "default", "waits").await.unwrap());
    assert_eq!(
        (told.verdict, told.hops[1].state),
        (Verdict::Unknown, HopState::Unknown),
        "{told:#?}"
    );
    assert!(told.sentence.contains("capacityrequests"), "{told:#?}");

    // Without our resources BigFleet is not installed, which is no lack of rights.
    for kind in ResourceKind::ALL {
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let crd = format!("{crds}/{}.bigfleet.lucy.sh", kind.plural());
        scene.clear(&[&crd]).await;
    }
    until("BigFleet is not installed", async || {
        let told = why(scene).await;
        let is_it = told.sentence.starts_with("BigFleet is not installed");
        (is_it && told.waits_at == Some(HopName::Request)).then_some(())
    })
    .await;
}

/// What `kubectl get cr` shows in a column.
fn column(scene: &Scene, name: &str, heading: &str) -> String {
    let said = scene.world.kubectl(&["get", "cr", name]).unwrap();
    let table = String::from_utf8(said.stdout).unwrap();
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let at = lines[0].iter().position(|word| *word == heading).unwrap();
    lines[1][at].to_owned()
}

/// The Event on a Pod with this reason.
async fn event(scene: &Scene, uid: &str, reason: &str) -> Value {
    let path = format!(
        "/api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3D{uid}%2Creason%3D{reason}"
    );
    let what = format!("an Event {reason} on the Pod");
    until(&what, async || {
        let found = scene.get(&path).await?;
        found["items"].get(0).cloned()
    })
    .await
}
