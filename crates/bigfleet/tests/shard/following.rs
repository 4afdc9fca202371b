//! `bigfleet shard` as a process: what its operators hear and what its provider sees, when things go
//! well and when they do not. Real gRPC, a real store, a provider in a process of its own.

use crate::shard_scene::ledger::{CallKind, Ledgered};
use crate::shard_scene::operator::{Heard, Manner, Operator, cpus, row};
use crate::shard_scene::scene::{Scene, offerings};
use crate::shard_scene::{Folder, Process, provider, shard_flags, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use std::process::Command;
use tokio_stream::wrappers::ReceiverStream;
use wire::MachineState::{Configured, Creating, Draining, Failed, Idle, Speculative};
use wire::operator_message::Payload;
use wire::shard_client::ShardClient;

#[tokio::test]
async fn demand_grows_and_shrinks_and_the_fleet_follows_exactly() {
    let scene = Scene::new("ramp", 6, 10).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(8)]).await;
    a.has(8).await;
    scene.is_quiet().await;
    assert_eq!(
        (
            scene.operations(CallKind::Create),
            scene.operations(CallKind::Configure)
        ),
        (2, 8),
        "metal first, then two are bought"
    );
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    scene.is_quiet().await;
    assert_eq!(scene.operations(CallKind::Drain), 5);
    assert_eq!(a.heard().instructions.len(), 5, "each one was announced");
    assert_eq!(scene.audited("Bootstrap", "success", 8).await, 8);
    assert_eq!(scene.audited("Reclaim", "success", 5).await, 5);
    let held = scene.ledger.ledger.machines().await;
    assert_eq!((held[&Configured].len(), held[&Idle].len()), (3, 5));
    assert!(scene.shard.http("/readyz").contains("200 OK"));
    assert!(scene.shard.http("/config").contains("\"shard\": \"s1\""));
    assert_eq!(scene.shard.terminate(), Some(0), "asked to end, it ends");
}

#[tokio::test]
async fn what_matters_more_takes_machines_from_what_matters_less() {
    let scene = Scene::new("preempt", 4, 0).await;
    let low = scene.operator("low", Manner::Reports).await;
    low.needs(vec![row(16, 100, "")]).await;
    low.has(4).await;
    let high = scene.operator("high", Manner::Reports).await;
    high.needs(vec![row(8, 1_000_000, "")]).await;
    high.has(2).await;
    low.has(2).await;
    scene.is_quiet().await;
    assert_eq!(scene.operations(CallKind::Drain), 2);
    let instructions = low.heard().instructions;
    assert!(
        instructions
            .iter()
            .all(|one| one.preemptor_priority == 1_000_000)
    );
}

/// A slot that could not be bought is a slot again, and is bought when there is something to buy.
#[tokio::test]
async fn a_stock_out_costs_no_slot_and_is_over_when_it_is_over() {
    let hosts = |hosts: usize| {
        let stock = serde_json::json!([{ "instance_type": "m4", "hosts": hosts }]);
        serde_json::json!({ "stock": stock })
    };
    // A clock that runs: what failed is left alone for ten seconds and more.
    let fast = ["--trouble=clock-speed=20", "--cycle-interval=4s"];
    let mut scene = Scene::with("stock", 0, 6, &hosts(3), &fast).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(5)]).await;
    a.has(3).await;
    let short = || scene.shard.metric("bigfleet_shard_shortfalls");
    until("a shortfall", async || (short() == 1.0, short())).await;
    until("three machines, and three slots", async || {
        let there = scene.count([Configured, Speculative, Failed]).await;
        (there == [3, 3, 0], there)
    })
    .await;
    assert_eq!(a.count(Configured), 3, "what is there stays");
    scene.ledger.ledger.check();
    scene.cloud_dies();
    scene.cloud_returns(&hosts(6));
    a.has(5).await;
    assert_eq!(
        scene.count([Configured, Speculative, Failed]).await,
        [5, 1, 0]
    );
    scene.is_quiet().await;
}

#[tokio::test]
async fn a_provider_that_dies_and_returns_costs_nothing_but_time() {
    let mut scene = Scene::new("provider", 8, 0).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    scene.cloud_dies();
    let failed = || scene.shard.metric("bigfleet_shard_lists_failed_total");
    until("Lists that fail", async || (3.0 <= failed(), failed())).await;
    a.needs(vec![cpus(5)]).await;
    let accepted = |heard: &crate::shard_scene::operator::Heard| {
        heard.acks.iter().filter(|ack| ack.echo == "rollup").count() == 2
    };
    a.sees("the second roll-up taken", accepted).await;
    assert_eq!(a.count(Configured), 3, "nobody lost anything");
    assert!(scene.shard.http("/readyz").contains("200 OK"), "latched");
    scene.cloud_returns(&serde_json::json!({}));
    a.has(5).await;
    scene.is_quiet().await;
    assert_eq!(scene.operations(CallKind::Configure), 5);
}

#[tokio::test]
async fn an_operator_that_dies_in_the_middle_of_a_drain_is_told_again() {
    let scene = Scene::new("drain", 4, 0).await;
    let a = scene.operator("a", Manner::Stalls).await;
    a.needs(vec![cpus(4)]).await;
    a.has(4).await;
    a.needs(vec![cpus(2)]).await;
    let told = a
        .sees("two instructions", |heard| heard.instructions.len() == 2)
        .await;
    assert_eq!(a.count(Draining), 2, "said before it is done");
    drop(a);
    until("the session's end", async || {
        let sessions = scene.shard.metric("bigfleet_shard_active_sessions");
        (sessions == 0.0, sessions)
    })
    .await;
    assert_eq!(
        scene.operations(CallKind::Drain),
        0,
        "nobody said they are empty"
    );
    let again = scene.operator("a", Manner::Reports).await;
    again.needs(vec![cpus(2)]).await;
    again.has(2).await;
    scene.is_quiet().await;
    let ids = |of: Vec<wire::ReclaimInstruction>| {
        let ids = of.into_iter().map(|one| one.instruction_id);
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        ids(told.instructions),
        ids(again.heard().instructions),
        "the same ids"
    );
    assert_eq!(scene.operations(CallKind::Drain), 2);
    let marks = again.heard().acks.into_iter();
    let end = marks.rev().find(|ack| ack.echo == "node-state-resync");
    assert_eq!(end.map(|ack| ack.resync_count), Some(4));
}

#[tokio::test]
async fn the_newer_of_two_operators_of_a_cluster_is_the_one() {
    let scene = Scene::new("two", 4, 0).await;
    let first = scene.operator("a", Manner::Plain).await;
    let second = scene.operator("a", Manner::Plain).await;
    let heard = first.sees("its end", |heard| heard.ended.is_some()).await;
    let (code, text) = heard.ended.unwrap().unwrap_err();
    assert_eq!(code, tonic::Code::Aborted, "{text}");
    first.needs(vec![cpus(4)]).await;
    second.needs(vec![cpus(1)]).await;
    second.has(1).await;
    scene.is_quiet().await;
    let replaced = "bigfleet_shard_session_lifecycle_total{event=\"replaced\"}";
    assert_eq!(scene.shard.metric(replaced), 1.0);
}

#[tokio::test]
async fn a_cluster_speaks_for_itself_only_and_says_hello_first() {
    let scene = Scene::new("forged", 4, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    let forged = wire::ClusterCapacityNeeds {
        cluster_id: "b".to_owned(),
        needs: vec![cpus(4)],
        ..wire::ClusterCapacityNeeds::default()
    };
    a.send(Payload::Rollup(forged)).await;
    let heard = a.sees("a rejection", |heard| heard.acks.len() == 2).await;
    let rejected = &heard.acks[1];
    assert_eq!(rejected.echo, "rollup-rejected");
    assert!(rejected.reason.contains("cluster_id \"b\""), "{rejected:?}");
    scene.is_quiet().await;
    assert_eq!(scene.ledger.ledger.seen().len(), 0);
    let nobody = Operator::connect(scene.shard.addr, "", Manner::Plain).await;
    let heard = nobody.sees("its end", |heard| heard.ended.is_some()).await;
    assert_eq!(
        heard.ended.unwrap().unwrap_err().0,
        tonic::Code::InvalidArgument
    );
}

#[tokio::test]
async fn ten_thousand_rows_are_one_roll_up() {
    let scene = Scene::new("rows", 4, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    let rows = (0..10_000).map(|n| row(4, 100 - n % 7, &format!("row-{n}")));
    a.needs(rows.collect()).await;
    a.has(4).await;
    until("ten thousand rows", async || {
        let rows = scene
            .shard
            .metric("bigfleet_shard_demand_machines{interruption_penalty_bucket=\"unspecified\"}");
        (rows == 10_000.0, rows)
    })
    .await;
}

#[tokio::test]
async fn a_pause_file_stops_everything_and_its_end_starts_it_again() {
    let scene = Scene::new("pause", 4, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    let pause = scene.folder.file("data/pause");
    std::fs::write(&pause, "# looking at it\n").unwrap();
    let paused = || scene.shard.metric("bigfleet_shard_actuation_paused");
    until("the pause", async || (paused() == 1.0, paused())).await;
    a.needs(vec![cpus(2)]).await;
    let suppressed = "bigfleet_shard_actions_suppressed_total{kind=\"Bootstrap\"}";
    until("suppressed actions", async || {
        let count = scene.shard.metric(suppressed);
        (2.0 <= count, count)
    })
    .await;
    assert_eq!(scene.ledger.ledger.seen().len(), 0, "nothing left");
    std::fs::remove_file(&pause).unwrap();
    a.has(2).await;
}

/// Rows whose arrivals alone are more than the disk of the test takes.
fn wide_rows() -> Vec<wire::CapacityNeed> {
    let label = |n: usize| format!("{n}-{}", "x".repeat(4000));
    (0..2000).map(|n| row(4, 100, &label(n))).collect()
}

/// A write that fails ends the process, and nothing of it was sent.
#[tokio::test]
async fn a_full_disk_ends_the_process_and_the_next_one_goes_on() {
    let folder = Folder::new("disk");
    let cloud = provider(&[&offerings(&folder, &[("bare_metal", 40)])]);
    let ledger = Ledgered::start(cloud.addr).await;
    let data = folder.file("data");
    let flags = shard_flags(&data, ledger.addr);
    // A limit on file sizes is a disk that is full: writes fail, nothing else does.
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"";
    command
        .args(["-c", script, "sh", "6144"])
        .args([env!("CARGO_BIN_EXE_bigfleet"), "shard", "--log-format=json"])
        .args(&flags);
    let shard = Process::spawn(command);
    let a = Operator::connect(shard.addr, "a", Manner::Plain).await;
    a.needs(wide_rows()).await;
    let (code, text) = shard.ended().await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("bigfleet shard: store: "), "{text}");
    assert_eq!(ledger.ledger.seen().len(), 0, "no call without a record");
    assert_eq!(a.heard().blobs, 0, "nor a question to the operator");
    let second = crate::shard_scene::shard(&data, ledger.addr, &[]);
    let a = Operator::connect(second.addr, "a", Manner::Plain).await;
    a.needs(wide_rows()).await;
    a.has(40).await;
    assert_eq!(ledger.ledger.operations(CallKind::Configure).len(), 40);
    ledger.ledger.check();
    let held = ledger.ledger.machines().await;
    assert!(!held.contains_key(&Creating));
}

/// Asked to end in the middle of its work: what is on the wire comes to its end and is remembered, what
/// waits does not leave, and the next process goes on from there.
#[tokio::test]
async fn a_process_asked_to_end_finishes_what_is_on_the_wire_and_begins_nothing() {
    let mut scene = Scene::with(
        "stop",
        4,
        0,
        &serde_json::json!({}),
        &["--execute-concurrency=1"],
    )
    .await;
    let ledger = scene.ledger.ledger.clone();
    let a = scene.operator("a", Manner::Plain).await;
    ledger.hold();
    a.needs(vec![cpus(3)]).await;
    until("a call on its way", async || {
        (ledger.waiting() == 1, ledger.waiting())
    })
    .await;
    scene.shard.ask_to_end();
    let heard = a.sees("its end", |heard| heard.ended.is_some()).await;
    let (code, text) = heard.ended.unwrap().unwrap_err();
    assert_eq!(code, tonic::Code::Unavailable, "{text}");
    assert!(!scene.shard.has_ended(), "a call is still on the wire");
    ledger.let_go();
    assert_eq!(scene.shard.over().await.code(), Some(0));
    assert_eq!(
        ledger.seen().len(),
        1,
        "two more were decided and never left"
    );
    let begun = ledger.seen();

    scene.next_shard(&[]);
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    scene.is_quiet().await;
    let of_first = |seen: &&crate::shard_scene::ledger::Seen| seen.machine == begun[0].machine;
    assert_eq!(
        ledger.seen().iter().filter(of_first).count(),
        1,
        "it was remembered as done"
    );
    assert_eq!(scene.operations(CallKind::Configure), 3);
}

/// An operator that does not read fills its own outbox and nobody else's: its session ends, the others
/// are served all the while (SE-6).
#[tokio::test]
async fn an_operator_that_does_not_read_loses_its_session_and_holds_up_nobody() {
    let mut scene = Scene::new("unread", 4, 0).await;
    // Little room on the way: what does not fit there waits in the shard.
    let narrow = Dial {
        stream_window: 1 << 16,
        connection_window: 1 << 16,
        ..Dial::unknown(None)
    };
    let channel = narrow.channel(&scene.shard.addr.to_string());
    let (send, frames) = tokio::sync::mpsc::channel(1024);
    let hello = wire::Hello {
        cluster_id: "deaf".to_owned(),
        protocol_version: "v1alpha1".to_owned(),
        features: Vec::new(),
    };
    let hello = Payload::Hello(hello);
    send.send(hello.clone().into()).await.unwrap();
    let mut client = ShardClient::new(channel.unwrap());
    let opened = client.session(ReceiverStream::new(frames)).await;
    let mut unread = opened.unwrap().into_inner();
    // Each is answered, and the answers wait.
    let greeting =
        tokio::spawn(async move { while send.send(hello.clone().into()).await.is_ok() {} });
    let b = scene.operator("b", Manner::Plain).await;
    b.needs(vec![cpus(2)]).await;
    b.has(2).await;
    scene
        .shard
        .logged("session ended: the operator does not read");
    greeting.abort();
    let end = loop {
        match unread.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended as if all were well"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), tonic::Code::ResourceExhausted, "{end}");
    b.needs(vec![cpus(3)]).await;
    b.has(3).await;
    let sessions = || scene.shard.metric("bigfleet_shard_active_sessions");
    until("one session", async || (sessions() == 1.0, sessions())).await;
    assert!(b.heard().ended.is_none());
}

/// SV-11: an operator that asks for it is told where its rows stand, once and again when that changes; nobody else
/// hears of it.
#[tokio::test]
async fn an_operator_that_asks_is_told_where_its_rows_stand() {
    let scene = Scene::new("need-status", 2, 0).await;
    let silent = scene.operator("silent", Manner::Reports).await;
    let a = scene.operator("a", Manner::FollowsNeeds).await;
    a.needs(vec![cpus(2), row(64, 50, "later")]).await;
    let words = |frame: &wire::NeedStatus| -> Vec<String> {
        frame.rows.iter().map(|row| row.reason.clone()).collect()
    };
    let last = |heard: &Heard, priority: &str| {
        let rows = heard.need_status.iter().flat_map(|frame| &frame.rows);
        let mut of = rows.filter(|row| row.profile_fingerprint.contains(priority));
        of.next_back().cloned()
    };
    let is = |heard: &Heard, priority: &str, word: &str| {
        last(heard, priority).is_some_and(|row| row.reason == word)
    };
    let heard = a
        .sees("one row served, one starved", |heard| {
            is(heard, "100", "Served") && is(heard, "50", "PriorityStarved")
        })
        .await;
    let first = &heard.need_status[0];
    assert!(
        first.complete && first.rows.len() == 2,
        "{:?}",
        words(first)
    );
    let starved = last(&heard, "50").unwrap();
    assert_eq!(starved.missing.unwrap().resources["cpu"], "64");
    assert!(
        starved.sentence.starts_with("missing cpu=64: "),
        "{}",
        starved.sentence
    );
    assert!(!starved.sentence.contains(" for "), "it has no age");
    a.needs(vec![cpus(2)]).await;
    let heard = a
        .sees("the row that is left, alone", |heard| {
            heard.need_status.last().is_some_and(|frame| {
                (words(frame), frame.complete) == (vec!["Served".to_owned()], true)
            })
        })
        .await;
    let frames = heard.need_status.len();
    assert!(frames <= 6, "{frames} frames for what changed a few times");
    assert!(silent.heard().need_status.is_empty());
}
