//! The verbs that ask and steer a coordinator, against three processes.

use crate::group::Group;
use crate::processes::until;
use serde_json::Value;
use std::process::{Command, Output, Stdio};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args(args)
        .env_remove("BIGFLEET_COORDINATOR")
        .env("BIGFLEET_CONFIG", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a verb prints that is done.
#[track_caller]
pub(crate) fn says(args: &[&str]) -> String {
    let output = run(args);
    let (said, noted) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{args:?}: {said}{noted}");
    said
}

/// What a verb prints that is not done, and its status.
#[track_caller]
pub(crate) fn refuses(args: &[&str], code: i32, words: &str) {
    let output = run(args);
    let noted = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {noted}");
    assert!(noted.contains(words), "{args:?}: {noted}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
}

pub(crate) fn json(args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.extend(["-o", "json"]);
    serde_json::from_str(&says(&all)).unwrap()
}

fn rows(table: &str) -> Vec<Vec<&str>> {
    let lines = table.lines().skip(1);
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[tokio::test]
async fn domains_are_assigned_moved_and_taken_through_any_replica() {
    let group = Group::of("coordinator-verbs", 3).await;
    group.shard_reports("shard-a").await;
    group.shard_reports("shard-b").await;
    let leader = group.leader().await;
    // One that does not lead says who does, and that is enough.
    let follower = group.address((leader + 1) % 3);
    let at = format!("--coordinator={follower}");
    let at = at.as_str();

    let shards = says(&["get", "shards", at, "-o", "name"]);
    assert_eq!(shards, "shard/shard-a\nshard/shard-b\n");
    let dry = says(&["assign", "domain", "rack=r1", "shard-a", "--dry-run", at]);
    assert_eq!(dry, "would assign rack=r1 to shard-a\n");
    assert_eq!(says(&["get", "domains", at]), "", "nothing was done");
    let done = says(&["assign", "domain", "rack=r1", "shard-a", at, "--yes"]);
    assert_eq!(done, "assigned rack=r1 to shard-a\n");
    let again = says(&["assign", "domain", "rack=r1", "shard-a", at]);
    assert_eq!(again, "rack=r1 is shard-a's already\n");
    let other = ["assign", "domain", "rack=r1", "shard-b", at];
    refuses(
        &other,
        1,
        "domain rack=r1 is assigned to shard shard-a, not to shard-b; move it",
    );
    let moved = json(&["move", "domain", "rack=r1", "shard-b", at]);
    assert_eq!(moved["message"], "moved rack=r1 from shard-a to shard-b");
    assert_eq!(moved["coordinator"], group.address(leader).to_string());
    let domains = says(&["get", "domains", at]);
    assert_eq!(
        rows(&domains),
        [["rack=r1", "shard-b", "<none>", "waiting"]]
    );
    let of_shard = ["get", "domains", "-l", "shard=shard-b", at, "-o", "name"];
    assert_eq!(says(&of_shard), "domain/rack=r1\n");
    let taken = says(&["unassign", "domain", "rack=r1", at]);
    assert_eq!(taken, "unassigned rack=r1 from shard-b\n");

    refuses(
        &["assign", "domain", "rack", "shard-a", at],
        2,
        "is not KEY=VALUE",
    );
    refuses(
        &["assign", "domain", "rack=r1", "nobody", at],
        1,
        "shard nobody is not registered",
    );
    refuses(
        &["assign", "domain", "rack=r1", "no/body", at],
        1,
        "shard id `no/body`",
    );
    refuses(
        &["move", "domain", "rack=r9", "shard-a", at],
        1,
        "assigned to no shard; assign it",
    );
    refuses(
        &["get", "domains", "rack=r9", at],
        1,
        "domain \"rack=r9\" not found",
    );
}

#[tokio::test]
async fn a_file_of_domains_is_applied_whole_or_not_at_all() {
    let group = Group::of("coordinator-file", 1).await;
    group.shard_reports("shard-a").await;
    group.shard_reports("shard-b").await;
    let at = format!("--coordinator={}", group.address(0));
    let at = at.as_str();
    says(&["assign", "domain", "rack=r1", "shard-a", at]);
    says(&["assign", "domain", "rack=r2", "shard-b", at]);
    let file = group.file("domains.txt");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "rack=r3 shard-a\nrack=r2 shard-a # was b's\n").unwrap();
    let assign = ["assign", "domain", "-f", path, at];
    refuses(&assign, 1, "rack=r2 is assigned to shard shard-b");
    let listed = json(&["get", "domains", at]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    std::fs::write(&file, "rack=r1 shard-a\nrack=r2 shard-a\n").unwrap();
    let plan = says(&["move", "domain", "-f", path, "--dry-run", at]);
    assert_eq!(plan, "- rack=r2 shard-b\n+ rack=r2 shard-a\n");
}

#[tokio::test]
async fn a_shard_is_described_and_removed() {
    let group = Group::of("coordinator-removes", 1).await;
    group.shard_reports("shard-a").await;
    let at = format!("--coordinator={}", group.address(0));
    let at = at.as_str();
    says(&["assign", "domain", "rack=r1", "shard-a", at]);
    let page = says(&["describe", "shard", "shard-a", at]);
    for line in [
        "Shard:           shard-a",
        "Last report:",
        "Domains:",
        "rack=r1",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    let described = json(&["describe", "shard/shard-a", at]);
    assert_eq!(described["assigned"][0]["domain"], "rack=r1");
    refuses(
        &["describe", "shard", "shard-z", at],
        1,
        "shard \"shard-z\" not found",
    );
    let reports = json(&["get", "reports", at]);
    assert_eq!(reports["items"][0]["shard"], "shard-a");
    assert_eq!(says(&["get", "instructions", at, "-o", "name"]), "");
    assert_eq!(says(&["get", "clusters", at, "-o", "name"]), "");
    let gone = ["remove", "shard", "shard-a", "--gone", at];
    refuses(&gone, 1, "so it is not gone; stop it");
    let dry = says(&["remove", "shard", "shard-a", "--dry-run", at]);
    assert_eq!(
        dry,
        "would remove shard shard-a: 1 domain and 0 clusters become nobody's\n"
    );
    assert_eq!(
        says(&["get", "shards", at, "-o", "name"]),
        "shard/shard-a\n"
    );
    says(&["remove", "shard", "shard-a", at, "--yes"]);
    assert_eq!(says(&["get", "shards", at, "-o", "name"]), "");
    refuses(
        &["remove", "shard", "shard-a", at],
        1,
        "shard \"shard-a\" not found",
    );
}

#[tokio::test]
async fn replicas_are_listed_take_turns_and_leave() {
    let mut group = Group::of("coordinator-replicas", 3).await;
    let all: Vec<String> = (0..3).map(|nth| group.address(nth).to_string()).collect();
    let at = format!("--coordinator={}", all.join(","));
    let at = at.as_str();
    let listed = json(&["get", "replicas", at]);
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "{listed}");
    let leads = |one: &&Value| one["leader"] == true;
    let first = items.iter().find(leads).unwrap();
    assert!(items.iter().all(|one| one["voter"] == true), "{listed}");
    let leader = group.leader().await;
    let next = format!("coordinator-{}", (leader + 1) % 3);
    let said = says(&["raft", "transfer-leader", &next, at, "--yes"]);
    assert_eq!(said, format!("replica {next} leads\n"));
    let listed = json(&["get", "replicas", at]);
    let second = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(leads)
        .unwrap()
        .clone();
    assert_eq!(second["name"], *next);
    assert!(
        first["reign"].as_u64() < second["reign"].as_u64(),
        "{first} {second}"
    );

    refuses(
        &["raft", "remove-peer", &next, at],
        1,
        "leads; let another one lead first",
    );
    refuses(
        &["raft", "remove-peer", "coordinator-9", at],
        1,
        "replica \"coordinator-9\" not found",
    );
    // One that is gone leaves; then the two that are left need each other.
    let gone = format!("coordinator-{leader}");
    group.kill(leader);
    let removed = says(&["raft", "remove-peer", &gone, at]);
    assert!(
        removed.starts_with(&format!("removed replica {gone}")),
        "{removed}"
    );
    let third = 3 - leader - (leader + 1) % 3;
    group.kill(third);
    let name = format!("coordinator-{third}");
    until("a leader that finds itself alone", async || {
        let output = run(&["get", "replicas", at, "--timeout=1s"]);
        (output.status.code() == Some(1), text(&output.stderr))
    })
    .await;
    refuses(
        &["raft", "remove-peer", &name, at, "--timeout=1s"],
        1,
        "no replica of the coordinator leads",
    );
}

#[test]
fn who_is_not_there_is_said() {
    let nobody = "--coordinator=127.0.0.1:1";
    refuses(
        &["get", "shards", nobody],
        1,
        "no replica of the coordinator answers: 127.0.0.1:1",
    );
    refuses(&["get", "shards", "--coordinator=x y"], 2, "--coordinator");
    refuses(
        &["assign", "domain", "a=b", "s", nobody],
        1,
        "no replica of the coordinator answers",
    );
}
