//! `bigfleet decide --from-shard`: a live fleet taken home.

use serde_json::Value;

use crate::called::call;
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_live_fleet_is_decided_about_as_its_file_is() {
    let scene = Scene::new("verbs-home").await;
    let file = scene.folder.file("fleet.json");
    let file = file.to_str().unwrap();
    let shard = scene.shard.addr.to_string();
    let live = call(&["decide", "--from-shard", &shard, "--save", file, "-o=json"]).done();
    assert_eq!(call(&["decide", file, "-o=json"]).done(), live);
    let live: Value = serde_json::from_str(&live).unwrap();
    let verdicts: Vec<&Value> = live["needs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|need| &need["satisfied"])
        .collect();
    assert_eq!(verdicts, [true, false], "as the shard itself has it");
    assert_eq!(
        live["actions"],
        Value::Array(Vec::new()),
        "at rest there is nothing to do"
    );

    // What if the zone were another one?
    let text = std::fs::read_to_string(file).unwrap();
    let zone = serde_json::to_string("no\u{1b}[2Jwhere").unwrap();
    assert!(text.contains(&zone), "{text}");
    std::fs::write(file, text.replace(&zone, "\"zone-a\"")).unwrap();
    let what_if: Value = serde_json::from_str(&call(&["decide", file]).done()).unwrap();
    assert_eq!(what_if["actions"][0]["kind"], "Provision", "{what_if}");

    let page = call(&["decide", "--from-shard", &shard, "--explain=a", "-o=table"]).done();
    assert!(page.contains("served 1st of 2"), "{page}");
    let one = call(&["decide", "--from-shard", &shard, "--cluster=b"]).undone();
    assert!(one.contains("has no demand and no machines here"), "{one}");
    let unwritable = call(&[
        "decide",
        "--from-shard",
        &shard,
        "--save=/nowhere/fleet.json",
    ])
    .undone();
    assert!(
        unwritable.starts_with("/nowhere/fleet.json: cannot be written"),
        "{unwritable}"
    );
    call(&["decide"]).refused();
    call(&["decide", file, "--from-shard", &shard]).refused();
    call(&["decide", file, "--save", file]).refused();
}
