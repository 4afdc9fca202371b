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

/// A Deployment that does not fit anywhere runs; made smaller, its Nodes are drained one Pod at a time, and given back. The
/// operator is killed in the middle of it, and everything of BigFleet at the end: the cluster does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_become_machines_and_machines_are_given_back() {
    let mut fleet = Fleet::start().await;
    fleet.apply(&fleet::deployment("web", 50, "250m"));
    fleet.apply(&fleet::budget("web"));
    fleet.runs("web", 50).await;
    let nodes = fleet.nodes();
    assert!(
        (4..=6).contains(&nodes.len()),
        "12.5 cpu on machines of 3.9: {nodes:?}"
    );

    // Demand that goes is told, and Nodes are drained; a kill in the middle changes nothing.
    fleet.scale("web", 10);
    fleet.some_node_is_cordoned().await;
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
