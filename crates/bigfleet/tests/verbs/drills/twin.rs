//! Two processes of one shard, the second with an empty directory.

use super::Drill;
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::shard;

/// A second process of the same shard, and its own audit log.
fn another(scene: &Scene, name: &str, flags: &[&str]) -> crate::shard_scene::Process {
    shard(&scene.folder.file(name), scene.ledger.addr, flags)
}

/// SH-33: a process that was started with an empty directory finds marks of a later epoch, and does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_twin_says_that_it_does_not_act_and_what_to_do() {
    let mut scene = Scene::new("drill-twin", 4, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    drop(a);
    scene.shard.end();
    let drill = Drill::begins("twin");
    let data = scene.folder.file("data");
    std::fs::rename(&data, scene.folder.file("lost")).unwrap();
    scene.shard = another(&scene, "data", &[]);
    let a = Operator::connect(scene.shard.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    let what = "the provider's records show epoch 1 of this shard, and this process has epoch 1: its data directory is \
                new or an old copy; if no other process runs this shard, start it once with --epoch-floor 2";
    let problem = drill.status(&scene, "fence", what).await;
    assert_eq!(problem["severity"], "critical");
    for list in [
        &["get", "clusters"][..],
        &["get", "shortfalls"],
        &["get", "machines"],
        &["explain", "a"],
    ] {
        let said = drill.verb(&scene, list, what).await;
        assert!(said.starts_with("STOPPED: "), "{list:?}: {said}");
    }
    drill.verb(&scene, &["get", "rails"], what).await;
    drill.verb(&scene, &["get", "events"], "twin").await;
    drill
        .metric(&scene, "bigfleet_shard_twin", |twin| twin == 1.0)
        .await;
    drill.audit(&scene, &["--kind=twin"], what).await;
    drill.is_told_by_all();
}
