//! A second process of a shard, with a data directory of its own (SH-33).

use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::{shard, until};

#[tokio::test]
async fn an_empty_data_directory_is_no_way_around_fencing() {
    let mut scene = Scene::new("twin", 4, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    drop(a);
    scene.shard.end();

    let elsewhere = scene.folder.file("elsewhere");
    let mut twin = shard(&elsewhere, scene.ledger.addr, &[]);
    let advice = "the provider's records show epoch 1 of this shard, and this process has epoch 1";
    let ready = until("it has seen the provider", async || {
        let ready = twin.http("/readyz");
        (ready.contains(advice), ready)
    })
    .await;
    assert!(ready.contains("503"), "{ready}");
    assert!(
        ready.contains("start it once with --epoch-floor 2"),
        "{ready}"
    );
    let said =
        twin.logged("incident: the provider knows a later epoch of this shard; all mutations stop");
    assert_eq!(
        (&said["fields"]["seen"], &said["fields"]["own"]),
        (&1.into(), &1.into())
    );

    let calls = scene.ledger.ledger.seen().len();
    let a = Operator::connect(twin.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(3)]).await;
    let cycle = || twin.metric("bigfleet_shard_cycle");
    let later = cycle() + 10.0;
    until("more cycles", async || (later <= cycle(), cycle())).await;
    assert_eq!(scene.ledger.ledger.seen().len(), calls, "it does not act");
    drop(a);
    twin.kill();

    let process = shard(&elsewhere, scene.ledger.addr, &["--epoch-floor=2"]);
    let a = Operator::connect(process.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
}
