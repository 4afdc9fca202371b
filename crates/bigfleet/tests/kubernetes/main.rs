//! Everything together on a real Kubernetes: Pods that cannot be scheduled become machines, machines become Nodes, Pods run; and
//! back, with every disruption budget respected.
//!
//! ```text
//! etcd, kube-apiserver, controllers, scheduler     bigfleet: shard, operator, pod-controller, provider exec (Nodes)
//!                    hollow kubelet: the one part that needs containers, and runs none
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../shard_scene/mod.rs"]
mod shard_scene;

mod fleet;

use fleet::Fleet;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A Deployment that does not fit anywhere runs; made smaller, its Nodes are drained one Pod at a time, and given back. On the way the
/// shard is killed while machines come, all requests are wiped while nobody makes them anew, the API server is away, and the
/// operator is killed in the middle of a drain; at the end everything of BigFleet is: the cluster does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_become_machines_and_machines_are_given_back() {
    let mut fleet = Fleet::start(&[("zone-a", 12)]).await;
    fleet.apply(&fleet::deployment("web", 50, "250m"));
    fleet.apply(&fleet::budget("web"));
    fleet.some_node("is there", |_| true).await;
    fleet.restart_shard();
    fleet.runs("web", 50).await;
    let nodes = fleet.nodes();
    assert!(
        (4..=6).contains(&nodes.len()),
        "12.5 cpu on machines of 3.9: {nodes:?}"
    );

    // Requests that vanish while their Pods are there are a loss, not a withdrawal (OP-24).
    fleet.wipe_requests().await;
    fleet.alarms("withdrawal-held").await;
    fleet.start_pod_controller();
    fleet.requests_are(50).await;
    // An API server that is away changes nothing.
    fleet
        .without_api_server(std::time::Duration::from_secs(15))
        .await;
    assert_eq!(fleet.nodes(), nodes);
    assert_eq!(fleet.pods("web").len(), 50);

    // Demand that goes is told, and Nodes are drained; a kill in the middle changes nothing.
    fleet.scale("web", 10);
    fleet
        .some_node("is cordoned", |node| node["spec"]["unschedulable"] == true)
        .await;
    fleet.restart_operator();
    fleet
        .keeps("web", 9, async |fleet| fleet.nodes().len() == 1)
        .await;
    fleet.runs("web", 10).await;
    fleet.hosts_are(1).await;

    // Without BigFleet the cluster stays as it is, and goes on.
    let (nodes, pods) = (fleet.nodes(), fleet.pods("web"));
    fleet.stop_all();
    fleet.scale("web", 8);
    fleet.runs("web", 8).await;
    assert_eq!(fleet.nodes(), nodes);
    assert!(
        fleet.pods("web").iter().all(|pod| pods.contains(pod)),
        "nobody was moved"
    );
}

/// Ten 3-cpu Pods ask for 30 cpu, which eight machines of 3.9 have, and run on ten (EX-OP15 with a real scheduler); Pods that
/// are to be spread are, and a gang is in one zone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_do_not_add_up_run_too() {
    let fleet = Fleet::start(&[("zone-a", 14), ("zone-b", 14)]).await;
    fleet.apply(&fleet::spread("wide", 4, "1"));
    fleet.runs("wide", 4).await;
    let zones = fleet.zones("wide");
    assert_eq!(zones.len(), 2, "{zones:?}");
    fleet.apply(&fleet::gang("gang", 3, "3"));
    fleet.runs("gang", 3).await;
    let zones = fleet.zones("gang");
    assert_eq!(zones.len(), 1, "{zones:?}");
    fleet.apply(&fleet::deployment("big", 10, "3"));
    fleet.runs("big", 10).await;
}

/// `up --kubernetes` for a person to watch: the first line says where everything is, the last how it is; nothing is left behind.
#[test]
fn a_cluster_can_be_watched() {
    let mut up = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    up.args(["up", "--kubernetes", "--for", "30s", "-o", "json"]);
    let said = up.output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{error}");
    let lines = String::from_utf8(said.stdout).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (first, last) = (&lines[0], lines.last().unwrap());
    let kubeconfig = Path::new(first["kubeconfig"].as_str().unwrap());
    assert!(
        first["shard"].is_string() && !kubeconfig.exists(),
        "{first}"
    );
    assert!(
        last["pods"].is_u64() && last["nodes"].is_u64() && last["last"] == true,
        "{last}"
    );
}

/// Without the programs it says what to type, and starts nothing.
#[test]
fn without_kubernetes_it_says_what_to_type() {
    let mut up = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    up.args(["up", "--kubernetes", "--for", "1s"])
        .env_remove("KUBEBUILDER_ASSETS");
    let nowhere = std::env::temp_dir().join("bigfleet-no-such-cache");
    let said = up.env("XDG_CACHE_HOME", nowhere).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(error.contains("cargo xtask kube"), "{error}");
}
