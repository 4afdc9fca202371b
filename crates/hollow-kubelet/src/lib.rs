//! A kubelet with nothing inside: it says what a kubelet would say of Pods, and runs none of them.
//!
//! ```text
//! Pod with a Node ─▶ Running, Ready        Pod that is to end ─▶ gone        Node of a test ─▶ there, Ready
//! ```
//!
//! The kubelet is the one part of Kubernetes that cannot run without containers. This stands for those of all Nodes at
//! once, and does no more than this table. A Pod with the annotation `hollow-kubelet/stays` takes its time to end: its grace.

use bigfleet_k8s::{
    Call, Cluster, Condition, Follow, Followed, Followers, Refused, nanos, seconds_text,
};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Calls at once.
const AT_ONCE: usize = 16;
const STAYS: &str = "hollow-kubelet/stays";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    deletion_timestamp: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<String>,
    conditions: Vec<Condition>,
}

/// Kubelets of all Nodes; over when dropped.
#[derive(Debug)]
pub struct HollowKubelet(JoinHandle<()>);

impl HollowKubelet {
    /// Begins to stand for the kubelets of a cluster.
    pub fn start(cluster: &Cluster) -> Self {
        let pods = Follow {
            path: "/api/v1/pods".to_owned(),
            fields: "spec.nodeName!=".to_owned(),
        };
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let cluster_of_calls = cluster.clone();
        let tell = move |told: Followed<Pod>| {
            let (cluster, places) = (cluster_of_calls.clone(), Arc::clone(&places));
            async move {
                if let Followed::Seen(seen) = told
                    && let Ok(pod) = seen.object
                    && let Ok(place) = places.acquire_owned().await
                {
                    tokio::spawn(async move {
                        // Whatever was refused comes again with the next change of the Pod.
                        drop(look_after(&cluster, &pod).await);
                        drop(place);
                    });
                }
                true
            }
        };
        Self(Followers::default().follow(cluster, pods, tell))
    }
}

impl Drop for HollowKubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

async fn look_after(cluster: &Cluster, pod: &Pod) -> Result<(), Refused> {
    let is_bound = pod
        .spec
        .node_name
        .as_ref()
        .is_some_and(|node| !node.is_empty());
    if !is_bound {
        return Ok(());
    }
    let Metadata {
        name, namespace, ..
    } = &pod.metadata;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    if let Some(ends) = &pod.metadata.deletion_timestamp {
        let notes = pod.metadata.annotations.as_ref();
        if notes.is_some_and(|notes| notes.contains_key(STAYS)) {
            let left = nanos(ends).unwrap_or_default().saturating_sub(now());
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or_default());
            tokio::time::sleep(left).await;
        }
        let call = Call::delete_now(&path, &pod.metadata.uid);
        return cluster.done(call).await;
    }
    let is_not_ready = |it: &Condition| it.kind == "Ready" && it.status != "True";
    let was_given_up = pod.status.conditions.iter().any(is_not_ready);
    match pod.status.phase.as_deref() {
        Some("Pending") => {}
        // Its Node was silent for a while, and is back.
        Some("Running") if was_given_up => {}
        _ => return Ok(()),
    }
    let at = seconds_text(now());
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": at });
    let body = json!({
        "metadata": { "uid": pod.metadata.uid },
        "status": {
            "phase": "Running",
            "startTime": at,
            "conditions": [condition("Initialized"), condition("ContainersReady"), condition("Ready")],
        },
    });
    let status = format!("{path}/status");
    cluster.done(Call::strategic_patch(&status, &body)).await
}

/// What a Node of a test is like.
#[derive(Clone, Debug, Default)]
pub struct HollowNode {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it offers, as quantity texts.
    pub offers: BTreeMap<String, String>,
    /// The cloud's name for it; may be empty.
    pub provider_id: String,
}

/// Registers a Node that is Ready, or makes one that is there so.
pub async fn register(cluster: &Cluster, node: &HollowNode) -> Result<(), Refused> {
    let mut body = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": node.name, "labels": node.labels },
    });
    if !node.provider_id.is_empty() {
        body["spec"] = json!({ "providerID": node.provider_id });
    }
    match cluster.done(Call::create("/api/v1/nodes", &body)).await {
        Err(refused) if refused.code() != Some(409) => return Err(refused),
        Ok(()) | Err(_) => {}
    }
    set_ready(cluster, node, true).await
}

/// Says that a Node is Ready, or is not.
pub async fn set_ready(cluster: &Cluster, node: &HollowNode, ready: bool) -> Result<(), Refused> {
    let at = seconds_text(now());
    let status = if ready { "True" } else { "False" };
    let mut offers = node.offers.clone();
    offers.entry("pods".to_owned()).or_insert("110".to_owned());
    let body = json!({ "status": {
        "capacity": offers,
        "allocatable": offers,
        "conditions": [{
            "type": "Ready", "status": status, "reason": "HollowKubelet",
            "lastHeartbeatTime": at, "lastTransitionTime": at,
        }],
    } });
    let path = format!("/api/v1/nodes/{}/status", node.name);
    cluster.done(Call::strategic_patch(&path, &body)).await
}
