//! A provider and an operator that lie on command, over real gRPC, and a ledger between them that writes
//! down what reached the provider. Each attack has its bound; those over minutes are in the simulator.

use std::collections::BTreeSet;

use serde_json::json;
use tonic::Status;

use crate::shard_scene::ledger::CallKind;
use crate::shard_scene::operator::{Manner, cpus};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::until;

/// The machines that were ever configured for a cluster.
fn tried(scene: &Scene, cluster: &str) -> BTreeSet<String> {
    let seen = scene.ledger.ledger.seen();
    let tried = seen
        .into_iter()
        .filter(|call| call.kind == CallKind::Configure && call.cluster == cluster);
    tried.map(|call| call.machine).collect()
}

/// SH-22: machines that never start are tried a few times; the neighbour gets its own, and when the
/// trouble is over so does the cluster.
#[tokio::test]
async fn a_cluster_whose_machines_never_start_uses_up_few_of_them() {
    let scene = Scene::with("cursed", 40, 0, &json!({}), &[]).await;
    let ledger = &scene.ledger.ledger;
    ledger.curse("bad");
    let bad = scene.operator("bad", Manner::Plain).await;
    bad.needs(vec![cpus(5)]).await;
    until("three tried", async || {
        let tried = tried(&scene, "bad").len();
        (3 <= tried, tried)
    })
    .await;
    scene.cycles(20).await;
    let good = scene.operator("good", Manner::Plain).await;
    good.needs(vec![cpus(20)]).await;
    good.has(20).await;
    let used = tried(&scene, "bad");
    assert!(
        used.len() <= 10,
        "twice the five that are missing: {used:?}"
    );
    ledger.lift_curse("bad");
    bad.has(5).await;
    let used = tried(&scene, "bad");
    assert!(used.len() <= 15, "and then the five: {used:?}");
    good.has(20).await;
    scene.is_quiet().await;
}

/// SH-22: a provider that knows nothing of the slots it offers is asked a few times, not all the time.
#[tokio::test]
async fn creates_that_are_not_found_are_probed_and_not_repeated() {
    let scene = Scene::with("not-found", 0, 100, &json!({}), &[]).await;
    let ledger = &scene.ledger.ledger;
    ledger.refuse(CallKind::Create, Status::not_found("no such slot"));
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(20)]).await;
    scene.cycles(25).await;
    let creates = ledger.seen().len();
    assert!(
        creates <= 20 + 3,
        "the first wave, and a few probes: {creates}"
    );
    ledger.relent(CallKind::Create);
    a.has(20).await;
}
