//! `bigfleet coordinator` as processes: groups that form, lose their leader, a disk, an address, or everybody.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../processes/mod.rs"]
mod processes;

mod backups;
mod faults;
mod group;
mod identity;
mod numbers;
mod reporter;
mod verbs;

use group::Group;
use processes::{Folder, Process};
use std::process::Command;
use tonic::Code;

#[tokio::test]
async fn three_command_lines_make_one_group_and_a_lost_leader_is_replaced() {
    let mut group = Group::of("coordinator-forms", 3).await;
    group.shard_reports("shard-a").await;
    group.assign("r1", "shard-a").await;
    let first = group.leader().await;
    let id = group.cluster_id(first).await;
    group.kill(first);
    group.assign("r2", "shard-a").await;
    assert_eq!(group.racks().await, ["r1", "r2"]);
    group.start(first);
    group.is_whole().await;
    for nth in 0..3 {
        assert_eq!(group.cluster_id(nth).await, id);
    }
    assert_eq!(group.racks().await, ["r1", "r2"]);
}

#[tokio::test]
async fn who_does_not_lead_refuses_and_says_who_does() {
    let group = Group::of("coordinator-hint", 3).await;
    group.shard_reports("shard-a").await;
    let leader = group.leader().await;
    let address = group.running[leader].as_ref().unwrap().addr.to_string();
    let follower = (leader + 1) % 3;
    let request = bigfleet_wire::v1alpha1::ListShardsRequest {};
    let refused = group.client(follower).list_shards(request).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    let hint = refused.metadata().get("bigfleet-leader-addr").unwrap();
    assert_eq!(hint.to_str().unwrap(), address);
}

/// The replica that would begin a group finds that there is one, and asks to be let in.
#[tokio::test]
async fn the_first_replica_with_an_empty_disk_begins_no_second_group() {
    let mut group = Group::of("coordinator-wiped", 3).await;
    group.shard_reports("shard-a").await;
    group.assign("r1", "shard-a").await;
    let id = group.cluster_id(1).await;
    group.wipe(0);
    group.start(0);
    group.running[0]
        .as_mut()
        .unwrap()
        .logged("this replica votes");
    assert_eq!(group.cluster_id(0).await, id);
    // One of those that kept their disks may go now: what it knew is on the new one as well.
    let leader = group.leader().await;
    group.kill(if leader == 0 { 1 } else { leader });
    group.assign("r2", "shard-a").await;
    assert_eq!(group.racks().await, ["r1", "r2"]);
}

#[tokio::test]
async fn a_replica_that_moves_is_found_at_its_new_address() {
    let mut group = Group::of("coordinator-moves", 3).await;
    let leader = group.leader().await;
    group.kill(leader);
    group.move_elsewhere(leader);
    group.start(leader);
    group.is_whole().await;
}

#[tokio::test]
async fn a_leader_that_is_asked_to_end_hands_over_and_ends_well() {
    let mut group = Group::of("coordinator-hands-over", 3).await;
    group.shard_reports("shard-a").await;
    let leader = group.leader().await;
    let mut leaving = group.running[leader].take().unwrap();
    leaving.ask_to_end();
    leaving.logged("leadership handed over");
    assert_eq!(leaving.over().await.code(), Some(0));
    group.assign("r1", "shard-a").await;
    assert_eq!(group.racks().await, ["r1"]);
}

#[tokio::test]
async fn a_group_that_was_lost_at_once_knows_what_it_knew() {
    let mut group = Group::of("coordinator-restarts", 3).await;
    group.shard_reports("shard-a").await;
    for rack in ["r1", "r2", "r3"] {
        group.assign(rack, "shard-a").await;
    }
    for nth in 0..3 {
        group.kill(nth);
    }
    for nth in 0..3 {
        group.start(nth);
    }
    group.is_whole().await;
    assert_eq!(group.racks().await, ["r1", "r2", "r3"]);
}

#[test]
fn an_empty_disk_without_a_word_is_refused() {
    let folder = Folder::new("coordinator-empty");
    let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args([
            "coordinator",
            "--listen=:0",
            "--raft-bind=:0",
            "--metrics-addr=0",
        ])
        .arg(format!("--data-dir={}", folder.file("data").display()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("--bootstrap") && last.contains("--join-addr"),
        "{said}"
    );
}

#[tokio::test]
async fn one_replica_alone_is_a_group() {
    let folder = Folder::new("coordinator-alone");
    let flags = [
        "--bootstrap".to_owned(),
        "--listen=:0".to_owned(),
        "--raft-bind=:0".to_owned(),
        "--metrics-addr=:0".to_owned(),
        format!("--data-dir={}", folder.file("data").display()),
    ];
    let mut alone = Process::start(&["coordinator"], &flags);
    alone.logged("this replica leads");
    assert!(alone.http("/readyz").contains("200 OK"));
    assert_eq!(alone.terminate(), Some(0));
}
