//! Drills: what goes wrong around a shard, and what each verb, the metrics and the audit log say about it.
//!
//! Every wait ends as soon as the truth is told, and says how long that took.

use std::time::Instant;

use serde_json::{Value, json};

use crate::called::{Called, call};
use crate::shard_scene::operator::{Manner, cpus};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::until;

/// Runs a verb against the shard of a scene.
fn verb(scene: &Scene, args: &[&str]) -> Called {
    let shard = format!("--shard={}", scene.shard.addr);
    call(&[args, &[&shard]].concat())
}

/// Waits until a verb says this; what it printed.
async fn says(scene: &Scene, args: &[&str], what: &str) -> String {
    let began = Instant::now();
    let said = until(what, async || {
        let said = verb(scene, args).out;
        (said.contains(what), said)
    })
    .await;
    let line = said
        .lines()
        .find(|line| line.contains(what))
        .unwrap_or(what);
    eprintln!(
        "{:?} after {:.1} s: {line}",
        args,
        began.elapsed().as_secs_f64()
    );
    said
}

/// The one Need of cluster a.
fn need(scene: &Scene) -> Value {
    let listed = verb(scene, &["get", "needs", "--cluster=a", "-o", "json"]).done();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["items"][0].clone()
}

async fn until_need(scene: &Scene, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let need = need(scene);
        (holds(&need), need)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_dies_is_said_first_by_everything() {
    let mut scene = Scene::new("drill-dead", 2, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    until_need(&scene, "served", |need| {
        need["serving"] == json!({"cpu": "4"})
    })
    .await;
    assert!(
        !verb(&scene, &["get", "clusters"])
            .done()
            .contains("PROVIDER")
    );
    scene.cloud_dies();
    let began = Instant::now();
    for list in [["get", "clusters"], ["get", "shortfalls"], ["explain", "a"]] {
        let said = says(&scene, &list, "PROVIDER LOST").await;
        assert!(said.starts_with("PROVIDER LOST for "), "{said}");
    }
    assert!(began.elapsed().as_secs() < 30, "within 30 s of its death");
    says(&scene, &["get", "events"], "provider-lost").await;
    until("the metric", async || {
        let lost = scene.shard.metric("bigfleet_shard_provider_lost_seconds");
        (0.0 < lost, lost)
    })
    .await;
    // What is there serves on; what is asked for now is chosen and stuck.
    a.needs(vec![cpus(2)]).await;
    let stuck = until_need(&scene, "stuck", |need| need["stuck"] == json!({"cpu": "4"})).await;
    assert_eq!(stuck["serving"], json!({"cpu": "4"}));
    assert_eq!(stuck["stages"][0]["stuck"], true);
    let listed = verb(&scene, &["get", "needs", "--no-headers"]).done();
    assert!(
        !listed.contains("satisfied") && listed.contains("stuck"),
        "{listed}"
    );
    scene.cloud_returns(&json!({}));
    says(&scene, &["get", "events"], "provider-back").await;
    until_need(&scene, "served", |need| {
        need["serving"] == json!({"cpu": "8"})
    })
    .await;
    assert!(
        !verb(&scene, &["get", "clusters"])
            .done()
            .contains("PROVIDER")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_provider_is_coming_and_not_green() {
    let mood = json!({"latency": {"create": "1h"}});
    let scene = Scene::with("drill-slow", 0, 2, &mood, &[]).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    let coming = until_need(&scene, "coming", |need| {
        need["stages"][0]["stage"] == "Create: the provider works on it"
    })
    .await;
    assert_eq!(
        [
            &coming["serving"],
            &coming["coming"],
            &coming["stuck"],
            &coming["missing"]
        ],
        [&json!({}), &json!({"cpu": "4"}), &json!({}), &json!({})]
    );
    assert_eq!(coming["satisfied"], true, "the old field keeps its meaning");
    let listed = verb(&scene, &["get", "needs"]).done();
    assert!(
        listed.contains("coming") && !listed.contains("satisfied"),
        "{listed}"
    );
    let page = verb(&scene, &["explain", "a"]).done();
    assert!(
        page.contains("coming cpu=4: 1 machine, Create: the provider works on it"),
        "{page}"
    );
    until("a cluster that lacks", async || {
        let lacking = scene.shard.metric("bigfleet_shard_needs_lacking");
        (lacking == 1.0, lacking)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_out_says_which_pool_and_its_age_goes_on() {
    let mood = json!({"stock": [{"instance_type": "m4", "hosts": 0}]});
    let scene = Scene::with("drill-stock", 0, 4, &mood, &[]).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    let short = until_need(&scene, "missing", |need| {
        need["missing"] == json!({"cpu": "4"})
    })
    .await;
    let since = short["lacking_since"].as_str().unwrap().to_owned();
    let page = says(
        &scene,
        &["explain", "a"],
        "left alone for now: m4 in zone zone-a failed",
    )
    .await;
    assert!(!page.contains("priority"), "{page}");
    says(&scene, &["get", "events"], "breaker-opened").await;
    says(&scene, &["get", "rails"], "m4").await;
    scene.cycles(20).await;
    assert_eq!(
        need(&scene)["lacking_since"],
        since.as_str(),
        "it never began anew"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_gone_is_named() {
    let scene = Scene::new("drill-operator", 1, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    a.has(1).await;
    drop(a);
    says(&scene, &["get", "events"], "session-ended").await;
    let page = says(
        &scene,
        &["explain", "a"],
        "no operator of its cluster is connected",
    )
    .await;
    assert!(
        page.contains("find out why the cluster's operator does not connect"),
        "{page}"
    );
    let need = need(&scene);
    assert_eq!(
        (&need["serving"], &need["missing"]),
        (&json!({"cpu": "4"}), &json!({"cpu": "4"}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mass_loss_is_one_event() {
    let mut scene = Scene::new("drill-mass", 12, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(12)]).await;
    a.has(12).await;
    until_need(&scene, "served", |need| {
        need["serving"] == json!({"cpu": "48"})
    })
    .await;
    scene.cloud_dies();
    scene.cloud_returns(&json!({"failure_rate": 1000.0}));
    let said = says(&scene, &["get", "events"], "mass-loss").await;
    assert!(said.contains("of cluster a"), "{said}");
    assert!(
        scene
            .shard
            .all_logged("machine adopted: its provider shows it elsewhere than it was left")
            .is_empty(),
        "not a line each"
    );
    let need = until_need(&scene, "missing", |need| need["missing"] != json!({})).await;
    assert_ne!(need["lacking_since"], Value::Null);
}

/// What is suggested is tried by the shard, and deciding on the saved and edited fleet says the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_would_change_it_is_what_decide_says_of_the_edited_file() {
    let scene = Scene::new("drill-changes", 2, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(10)]).await;
    a.has(2).await;
    let short = until_need(&scene, "short", |need| {
        need["missing"] == json!({"cpu": "32"})
    })
    .await;
    let name = format!("a/{}", short["need"].as_str().unwrap());
    let explained = verb(&scene, &["explain", &name, "-o", "json"]).done();
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let file = scene.folder.file("fleet.json");
    let path = file.display().to_string();
    let from = format!("--from-shard={}", scene.shard.addr);
    call(&["decide", &from, "--save", &path, "-o", "json"]).done();
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let mut marks = Vec::new();
    for change in explained["changes"].as_array().unwrap() {
        let mut edited = saved.clone();
        for edit in change["edit"].as_array().unwrap() {
            let (parent, key) = edit["path"].as_str().unwrap().rsplit_once('/').unwrap();
            match edited.pointer_mut(parent).unwrap() {
                Value::Array(list) if key == "-" => list.push(edit["value"].clone()),
                Value::Object(keys) if edit["op"] == "remove" => drop(keys.remove(key)),
                Value::Object(keys) => drop(keys.insert(key.to_owned(), edit["value"].clone())),
                other => panic!("{other}"),
            }
        }
        let path = scene.folder.file("edited.json");
        std::fs::write(&path, edited.to_string()).unwrap();
        let decided = call(&["decide", &path.display().to_string(), "-o", "json"]).done();
        let decided: Value = serde_json::from_str(&decided).unwrap();
        let satisfied = decided["needs"][0]["satisfied"] == true;
        assert_eq!(satisfied, change["mark"] == "served", "{change}\n{decided}");
        marks.push(change["mark"].as_str().unwrap().to_owned());
    }
    assert_eq!(marks, ["served", "better"], "{explained:#}");
    // The table is the one that decide has, under the same name.
    let offline = call(&["decide", &path, "--explain", &name, "-o", "table"]).done();
    let online = verb(&scene, &["explain", &name]).done();
    for line in ["What would change it", "ask for cpu=8 in all", "FATE"] {
        assert!(
            offline.contains(line) && online.contains(line),
            "{line}\n{offline}\n{online}"
        );
    }
}
