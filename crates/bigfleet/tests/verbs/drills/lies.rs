//! A provider that lies: Lists that lack half of the machines, Lists from the past, quantities that are none.

use serde_json::json;
use std::time::Duration;

use super::{Drill, is_well, need, until_need};
use crate::shard_scene::ledger::{CallKind, Lie};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::Scene;

/// A shard with everything that is asked for, which reads the whole List each time.
async fn served(name: &str, machines: usize) -> (Scene, Operator) {
    let flags = ["--incremental-reconcile=false"];
    let scene = Scene::with(name, machines, 0, &json!({}), &flags).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(machines)]).await;
    a.has(machines).await;
    is_well(&scene).await;
    (scene, a)
}

/// Whatever a lying List lacks stays, and is not bought again.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_lacks_half_of_the_machines_is_doubted() {
    let (scene, a) = served("drill-half", 8).await;
    let ledger = &scene.ledger.ledger;
    let before = ledger.seen().len();
    let drill = Drill::begins("provider lies: half a List");
    ledger.lie(Lie::HalfUncounted, 1000);
    let what = "machines were missing from the provider's last List and are kept";
    drill.status(&scene, "rail", what).await;
    drill
        .verb(&scene, &["get", "events"], "removals-held")
        .await;
    drill.verb(&scene, &["get", "rails"], "removal-sweep").await;
    drill
        .metric(&scene, "bigfleet_shard_removals_held", |held| held == 4.0)
        .await;
    // What serves goes on serving: nobody was drained, nothing bought, and no surface says otherwise.
    assert_eq!(need(&scene)["serving"], json!({"cpu": "32"}));
    assert_eq!(ledger.seen().len(), before);
    a.has(8).await;
    drill
        .verb(&scene, &["explain", "a"], "all of cpu=32 is served")
        .await;
    let what = "4 machines are missing from the List, and kept until more Lists agree";
    drill.audit(&scene, &["--cluster=a"], what).await;
    drill.is_told_by_all();
}

/// A List from before the machines were configured shows them idle: they are asked for one by one, and stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_from_the_past_changes_nothing() {
    let flags = ["--incremental-reconcile=false"];
    let scene = Scene::with("drill-stale", 4, 0, &json!({}), &flags).await;
    let ledger = &scene.ledger.ledger;
    ledger.remember().await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(4)]).await;
    a.has(4).await;
    is_well(&scene).await;
    let before = ledger.seen().len();
    ledger.lie(Lie::Stale, 5);
    scene.cycles(20).await;
    assert_eq!(ledger.lies_left(), 0, "they were told");
    assert_eq!(ledger.seen().len(), before, "nothing was called");
    assert_eq!(need(&scene)["serving"], json!({"cpu": "16"}));
    is_well(&scene).await;
}

/// A provider that takes calls and shows nothing of them: the Need says at which stage it stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_what_it_offers_is_quoted() {
    let scene = Scene::new("drill-refuses", 2, 0).await;
    let refused = tonic::Status::invalid_argument("no such machine type");
    scene.ledger.ledger.refuse(CallKind::Configure, refused);
    let a = scene.operator("a", Manner::Plain).await;
    // Once is no trouble yet; three in a row are, and between the second and the third are twenty seconds.
    let drill = Drill::begins("provider lies: refuses what it offers");
    let drill = drill.within(Duration::from_secs(90));
    a.needs(vec![cpus(1)]).await;
    drill
        .verb(&scene, &["get", "events"], "breaker-opened")
        .await;
    drill
        .verb(&scene, &["explain", "a"], "no such machine type")
        .await;
    drill
        .audit(&scene, &["--cluster=a"], "no such machine type")
        .await;
    drill
        .status(&scene, "breaker", "no such machine type")
        .await;
    drill
        .metric(&scene, "bigfleet_shard_breakers_opened_total", |opened| {
            1.0 <= opened
        })
        .await;
    drill.is_told_by_all();
    let lacks = |need: &serde_json::Value| need["serving"] == json!({});
    until_need(&scene, "it does not serve", lacks).await;
}

/// What cannot be read counts as nothing, and that is said with the words that cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_quantity_that_is_none_is_said() {
    let (scene, _a) = served("drill-garbled", 2).await;
    let drill = Drill::begins("provider lies: quantities that are none");
    scene.ledger.ledger.lie(Lie::Garbled, 1000);
    drill.status(&scene, "provider", "lots").await;
    let what = "no machine is large enough: the smallest unit is cpu=4, and the largest machine that meets the \
                rest has cpu=0";
    drill.verb(&scene, &["explain", "a"], what).await;
    drill
        .verb(&scene, &["get", "events"], "records-doubted")
        .await;
    drill
        .metric(&scene, "bigfleet_shard_record_warnings_total", |doubts| {
            1.0 <= doubts
        })
        .await;
    drill.audit(&scene, &["--kind=event"], "lots").await;
    drill.is_told_by_all();
}

/// A provider whose List says that there are more machines than it shows answers, and cannot be believed: that is
/// not a provider that is away, and whoever is paged looks elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_contradicts_itself_is_no_silence() {
    let (scene, _a) = served("drill-count", 4).await;
    let drill = Drill::begins("provider lies: a List shorter than it says");
    scene.ledger.ledger.lie(Lie::Half, 1000);
    let what = "answers, and its List cannot be used: the List has 2 of 4 machines";
    drill.status(&scene, "provider", what).await;
    for list in [["get", "clusters"], ["explain", "a"]] {
        let said = drill.verb(&scene, &list, what).await;
        assert!(said.starts_with("PROVIDER LOST for "), "{said}");
    }
    let lost = "bigfleet_shard_provider_lost_seconds";
    drill.metric(&scene, lost, |seconds| 0.0 < seconds).await;
    drill.audit(&scene, &["--kind=provider-lost"], what).await;
    drill.is_told_by_all();
}
