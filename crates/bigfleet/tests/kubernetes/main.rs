//! Everything together on a real Kubernetes: Pods that cannot be scheduled become machines, machines become Nodes, Pods run; and
//! back, with every disruption budget respected.
//!
//! ```text
//! etcd, kube-apiserver, controllers, scheduler     bigfleet: shard, operator, pod-controller, provider exec (Nodes)
//!          └─ its audit log: the ledger               hollow kubelet: the one part that needs containers, and runs none
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../shard_scene/mod.rs"]
mod shard_scene;

mod cluster_site;
mod fleet;
mod ledger;
mod objects;
mod page;
mod watched;
mod why;

use fleet::Fleet;
use objects::{budget, deployment, gang, important, on_nvme, priority_class, spread};
use std::time::Duration;

/// A Deployment that does not fit anywhere runs; made smaller, its Nodes are drained one Pod at a time, and given back. On the way the
/// shard is killed while machines come, all requests are wiped while nobody makes them anew, the API server is away, and the
/// operator is killed in the middle of a drain; at the end everything of BigFleet is: the cluster does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_become_machines_and_machines_are_given_back() {
    let mut fleet = Fleet::start(&[("zone-a", 12)]);
    fleet.home.apply(&deployment("web", 50, "250m"));
    fleet.home.apply(&budget("web", 1));
    fleet.home.some_node("is there", |_| true).await;
    fleet.restart_shard();
    fleet.home.runs("web", 50).await;
    let nodes = fleet.home.nodes();
    assert!(
        (4..=6).contains(&nodes.len()),
        "12.5 cpu on machines of 3.9: {nodes:?}"
    );

    // Whoever waits is told why, by cluster and shard together; whoever runs is told that.
    let web = fleet.why(&fleet.home.pods("web")[0]);
    assert_eq!(web["verdict"], "runs", "{web}");
    fleet.home.apply(&on_nvme("nvme"));
    let nvme = fleet.is_stuck("nvme").await;
    let text = nvme.to_string();
    assert!(
        text.contains("disk") && text.contains("need/home/"),
        "{nvme}"
    );
    fleet.home.delete("deployment", "nvme");
    fleet.home.requests_are(50).await;

    // Requests that vanish while their Pods are there are a loss, not a withdrawal (OP-24).
    fleet.home.wipe_requests();
    fleet.home.alarms("withdrawal-held").await;
    fleet.home.start_pod_controller();
    fleet.home.requests_are(50).await;
    // An API server that is away changes nothing.
    fleet.home.without_api_server(Duration::from_secs(15)).await;
    assert_eq!(fleet.home.nodes(), nodes);
    assert_eq!(fleet.home.pods("web").len(), 50);

    // Demand that goes is told, and Nodes are drained; a kill in the middle changes nothing.
    fleet.home.scale("web", 10);
    fleet
        .home
        .some_node("is cordoned", |node| node["spec"]["unschedulable"] == true)
        .await;
    fleet.home.restart_operator();
    fleet
        .home
        .keeps("web", 9, async |site| site.nodes().len() == 1)
        .await;
    fleet.home.runs("web", 10).await;
    fleet.hosts_are(1).await;

    // Without BigFleet the cluster stays as it is, and goes on.
    let (nodes, pods) = (fleet.home.nodes(), fleet.home.pods("web"));
    fleet.stop_all();
    fleet.home.scale("web", 8);
    fleet.home.runs("web", 8).await;
    assert_eq!(fleet.home.nodes(), nodes);
    assert!(
        fleet.home.pods("web").iter().all(|pod| pods.contains(pod)),
        "nobody was moved"
    );
    fleet.home.ledger().holds();
}

/// Ten 3-cpu Pods ask for 30 cpu, which eight machines of 3.9 have, and run on ten (EX-OP15 with a real scheduler); Pods that
/// are to be spread are, and a gang is in one zone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_do_not_add_up_run_too() {
    let fleet = Fleet::start(&[("zone-a", 14), ("zone-b", 14)]);
    fleet.home.apply(&spread("wide", 4, "1"));
    fleet.home.runs("wide", 4).await;
    let zones = fleet.home.zones("wide");
    assert_eq!(zones.len(), 2, "{zones:?}");
    fleet.home.apply(&gang("gang", 3, "3"));
    fleet.home.runs("gang", 3).await;
    let zones = fleet.home.zones("gang");
    assert_eq!(zones.len(), 1, "{zones:?}");
    fleet.home.apply(&deployment("big", 10, "3"));
    fleet.home.runs("big", 10).await;
    fleet.home.ledger().holds();
}

/// Every machine there is serves a batch job in one cluster; a critical Deployment in another takes one of them, and a second one
/// when the budget of the batch job allows it, and once it is gone the batch job has them back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_matters_more_takes_machines_of_another_cluster() {
    let fleet = Fleet::start(&[("zone-a", 4)]);
    let away = fleet.join("away");
    fleet.home.apply(&deployment("batch", 4, "3"));
    fleet.home.apply(&budget("batch", 1));
    fleet.home.runs("batch", 4).await;

    away.apply(&priority_class("critical", 1_000));
    away.apply(&important("pay", 2, "3", "critical"));
    away.runs("pay", 1).await;
    refused_more(&fleet, 0).await;
    let ledger = fleet.home.ledger();
    assert_eq!(ledger.evicted, 1, "one may be missing: {ledger:?}");
    fleet.home.apply(&budget("batch", 2));
    away.runs("pay", 2).await;
    fleet.home.runs("batch", 2).await;
    let ledger = fleet.home.ledger();
    ledger.holds();
    assert_eq!((ledger.evicted, ledger.drains), (2, 2), "{ledger:?}");
    assert_eq!(fleet.hosts(), 4, "machines moved; none was bought");

    away.delete("deployment", "pay");
    fleet.home.runs("batch", 4).await;
    away.until("no Node is left", async |site| site.nodes().is_empty())
        .await;
    fleet.home.ledger().holds();
    away.ledger().holds();
}

/// A Deployment grows and shrinks while whoever moves its machines is killed: no Pod is evicted from a Node that is not
/// drained, none before a drain has settled, no budget is broken, and in the end no cordon is left. On the way a budget that
/// allows nothing is waited for, and evicts nobody. `cargo xtask e2e --kills 30` goes on for longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_on_the_way_harm_nobody() {
    let kills = std::env::var("BIGFLEET_E2E_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let rounds = usize::div_ceil(kills, 5);
    let mut fleet = Fleet::start(&[("zone-a", 12)]);
    fleet.home.apply(&deployment("web", 24, "1"));
    fleet.home.runs("web", 24).await;
    for round in 1..=rounds {
        // Three Pods fit on a machine; those that stay are on three times as many Nodes as they need.
        let before = fleet.home.ledger();
        fleet.home.apply(&budget("web", 0));
        fleet.home.keep_one_each("web", 6);
        fleet.home.scale("web", 6);
        refused_more(&fleet, before.refused).await;
        fleet.home.restart_operator();
        refused_more(&fleet, fleet.home.ledger().refused).await;
        assert_eq!(
            fleet.home.ledger().evicted,
            before.evicted,
            "the budget allows none"
        );

        fleet.home.apply(&budget("web", 1));
        evicted_more(&fleet, before.evicted).await;
        fleet.restart_shard();
        evicted_more(&fleet, fleet.home.ledger().evicted).await;
        fleet.home.restart_operator();
        fleet
            .home
            .keeps("web", 5, async |site| site.nodes().len() == 2)
            .await;
        fleet.home.runs("web", 6).await;

        fleet.home.scale("web", 24);
        fleet
            .home
            .until("machines come", async |site| 2 < site.nodes().len())
            .await;
        fleet.restart_provider();
        fleet.home.restart_pod_controller();
        fleet.home.runs("web", 24).await;
        let ledger = fleet.home.ledger();
        ledger.holds();
        println!("after {} kills: {}", 5 * round, ledger.summary());
    }
    fleet
        .home
        .until("no drain is left", async |site| {
            let cordoned = |node: &serde_json::Value| node["spec"]["unschedulable"] == true;
            site.ledger().draining.is_empty() && !site.items(&["get", "nodes"]).iter().any(cordoned)
        })
        .await;
}

async fn refused_more(fleet: &Fleet, before: usize) {
    fleet
        .home
        .until("a budget refuses", async |site| {
            before < site.ledger().refused
        })
        .await;
}

async fn evicted_more(fleet: &Fleet, before: usize) {
    fleet
        .home
        .until("a Pod is evicted", async |site| {
            before < site.ledger().evicted
        })
        .await;
}
