//! `bigfleet drain` and its kin: what people are shown while a machine leaves, and when it stays after all.

use crate::called::{Called, call};
use crate::shard_scene::operator::{Manner, Operator, row};
use crate::shard_scene::{Folder, Process, provider, shard, until};

fn asked(shard: &Process, args: &[&str]) -> Called {
    let called = call(&[args, &[&format!("--shard={}", shard.addr)]].concat());
    assert_eq!(called.status, Some(0), "{called:?}");
    called
}

/// The line of a machine's page that says when the machine leaves at the latest.
fn deadline(shard: &Process, machine: &str) -> String {
    let page = asked(shard, &["describe", "machine", machine]).out;
    let mut lines = page.lines().filter(|line| line.starts_with("Deadline:"));
    lines.next().unwrap_or_default().to_owned()
}

/// Two machines serve, no third is to be had, and no node is ever emptied.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_replacement_is_said_before_and_after_its_deadline_and_it_may_stay() {
    let folder = Folder::new("verbs-drains");
    let cloud = provider(&["--seed-count=2"]);
    let shard = shard(&folder.file("data"), cloud.addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Stalls).await;
    a.needs(vec![row(8, 100, "")]).await;
    a.has(2).await;
    let machines = asked(&shard, &["get", "machines", "-o", "name"]).out;
    let first = machines.lines().next().unwrap();
    let machine = first.strip_prefix("machine/").unwrap();

    let dry_run = asked(&shard, &["drain", machine, "--reason=x", "--dry-run"]);
    assert!(
        dry_run.err.contains("1 machine would leave; ")
            && dry_run.err.contains("1 cannot be replaced now"),
        "{dry_run:?}"
    );
    let drains = asked(&shard, &["get", "drains", "-o", "name"]).out;
    assert_eq!(drains, "", "a dry run marks nothing");

    let drain = ["drain", machine, "--reason=new disks", "--deadline=1h"];
    let done = asked(&shard, &drain);
    assert!(done.err.starts_with("1 machine leaves\n"), "{done:?}");
    until("it is known that nothing can take its place", async || {
        let drains = asked(&shard, &["get", "drains"]).out;
        let is_said =
            drains.contains("no replacement") && drains.contains("nothing free can take its place");
        (is_said, drains)
    })
    .await;
    let ahead = deadline(&shard, machine);
    assert!(ahead.contains(" (in 5") && ahead.ends_with(')'), "{ahead}");
    asked(&shard, &["status"]);

    asked(&shard, &["drain", machine, "--reason=smoke", "--now"]);
    until("status says that it is past its deadline", async || {
        let status = call(&["status", &format!("--shard={}", shard.addr)]);
        let is_said =
            status.status == Some(1) && status.out.contains("is past the deadline of its drain");
        (is_said, status)
    })
    .await;
    let passed = deadline(&shard, machine);
    assert!(passed.ends_with(" ago)"), "{passed}");
    assert!(
        !passed.contains("1970"),
        "it passed when it was said: {passed}"
    );

    let back = asked(&shard, &["undrain", machine, "--reason=false alarm"]);
    assert!(!back.out.contains("mark"), "it is lifted: {back:?}");
    a.has(2).await;
    assert_eq!(asked(&shard, &["get", "drains", "-o", "name"]).out, "");
    let status = asked(&shard, &["status"]).out;
    assert!(status.contains("all is well"), "{status}");
}
