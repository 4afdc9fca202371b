//! Providers in trouble: dead, slow, out of stock, its machines lost at once.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Drill, is_well, need, until_need, verb};
use crate::called::call;
use crate::shard_scene::operator::{Manner, cpus};
use crate::shard_scene::scene::Scene;

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
    let drill = Drill::begins("provider dead");
    drill.status(&scene, "provider", "does not answer").await;
    for list in [["get", "clusters"], ["get", "shortfalls"], ["explain", "a"]] {
        let said = drill.verb(&scene, &list, "PROVIDER LOST").await;
        assert!(said.starts_with("PROVIDER LOST for "), "{said}");
    }
    drill
        .verb(&scene, &["get", "events"], "provider-lost")
        .await;
    let metric = "bigfleet_shard_provider_lost_seconds";
    drill.metric(&scene, metric, |lost| 0.0 < lost).await;
    let what = "provider-lost: the provider does not answer: ";
    drill.audit(&scene, &["--cluster=a"], what).await;
    drill.is_told_by_all();
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
    let back = Drill::begins("provider back");
    back.verb(&scene, &["get", "events"], "provider-back").await;
    is_well(&scene).await;
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
    // A minute in a second, so that what is said after minutes is heard.
    let flags = ["--trouble=clock-speed=60", "--cycle-interval=12s"];
    let scene = Scene::with("drill-slow", 0, 2, &mood, &flags).await;
    let a = scene.operator("a", Manner::Plain).await;
    let drill = Drill::begins("provider slow (a minute in a second)");
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
    let page = "coming cpu=4: 1 machine, Create: the provider works on it";
    drill.verb(&scene, &["explain", "a"], page).await;
    drill
        .metric(&scene, "bigfleet_shard_needs_lacking", |count| count == 1.0)
        .await;
    let what = "1 Need is not served in full for more than 5 minutes";
    drill.status(&scene, "need", what).await;
    let what = "the provider took it on and has not finished it";
    drill.verb(&scene, &["explain", "a"], what).await;
    drill
        .status(&scene, "work", "1 operation is stuck in Provision")
        .await;
    let aged = "bigfleet_shard_shortfalls_aged{bucket=\"300+\"}";
    drill.metric(&scene, aged, |count| count == 1.0).await;
    drill.verb(&scene, &["get", "needs"], "stuck").await;
    let what = "needs-lacking cluster a: 1 Need is not served";
    drill.audit(&scene, &["--cluster=a"], what).await;
    let what = "1 operation is stuck in Provision: it waits for: provider";
    drill.audit(&scene, &["--kind=work-stuck"], what).await;
    drill.is_told_by_all();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_out_says_which_pool_and_its_age_goes_on() {
    let mood = json!({"stock": [{"instance_type": "m4", "hosts": 0}]});
    let scene = Scene::with("drill-stock", 0, 4, &mood, &[]).await;
    let a = scene.operator("a", Manner::Plain).await;
    let drill = Drill::begins("out of stock").within(Duration::from_secs(90));
    a.needs(vec![cpus(1)]).await;
    let short = until_need(&scene, "missing", |need| {
        need["missing"] == json!({"cpu": "4"})
    })
    .await;
    let since = short["lacking_since"].as_str().unwrap().to_owned();
    let what = "left alone for now: m4 in zone zone-a failed";
    let page = drill.verb(&scene, &["explain", "a"], what).await;
    assert!(!page.contains("priority"), "{page}");
    drill.status(&scene, "breaker", "m4 in zone zone-a").await;
    drill
        .verb(&scene, &["get", "events"], "breaker-opened")
        .await;
    drill.verb(&scene, &["get", "rails"], "m4").await;
    drill.verb(&scene, &["get", "shortfalls"], "missing").await;
    drill
        .audit(&scene, &["--cluster=a", "--kind=Provision"], "error")
        .await;
    drill
        .metric(&scene, "bigfleet_shard_needs_lacking", |count| count == 1.0)
        .await;
    drill.is_told_by_all();
    scene.cycles(20).await;
    assert_eq!(
        need(&scene)["lacking_since"],
        since.as_str(),
        "it never began anew"
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
    let drill = Drill::begins("mass loss");
    let said = drill.verb(&scene, &["get", "events"], "mass-loss").await;
    assert!(said.contains("of cluster a"), "{said}");
    drill.status(&scene, "machines", "of cluster a").await;
    drill.verb(&scene, &["get", "shortfalls"], "missing").await;
    drill
        .verb(&scene, &["explain", "a"], "failed; a person has to look")
        .await;
    drill
        .metric(&scene, "bigfleet_shard_needs_lacking", |count| count == 1.0)
        .await;
    drill.audit(&scene, &["--cluster=a"], "Failed").await;
    drill
        .audit(&scene, &["--cluster=a", "--kind=mass-loss"], "of cluster a")
        .await;
    drill.is_told_by_all();
    let each = "machine adopted: its provider shows it elsewhere than it was left";
    let each = scene.shard.all_logged(each);
    // What is lost later, one by one, has its line; the many have one together.
    assert!(each.len() < 12, "not a line each: {each:#?}");
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
