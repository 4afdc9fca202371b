//! `bigfleet shard` as a process: what its operators hear and what its provider sees, when things go
//! well and when they do not. Real gRPC, a real store, a provider in a process of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shard_scene;

use bigfleet_wire::v1alpha1 as wire;
use shard_scene::ledger::{Kind, Ledgered};
use shard_scene::operator::{Manner, Operator, cpus, row};
use shard_scene::{Folder, Process, machines, provider, shard, shard_flags, until};
use std::process::Command;
use wire::MachineState::{Configured, Creating, Draining, Idle};
use wire::operator_message::Payload;

/// A provider behind a ledger, and a shard on it.
struct Scene {
    folder: Folder,
    _provider: Process,
    ledger: Ledgered,
    shard: Process,
}

impl Scene {
    async fn new(name: &str, metal: usize, slots: usize, knobs: serde_json::Value) -> Self {
        let folder = Folder::new(name);
        let path = folder.file("knobs.json");
        std::fs::write(&path, knobs.to_string()).unwrap();
        let offerings = machines(&folder, metal, slots);
        let process = provider(&[&offerings, &format!("--knobs={}", path.display())]);
        let ledger = Ledgered::start(process.addr).await;
        let shard = shard(&folder.file("data"), ledger.addr, &[]);
        Self {
            folder,
            _provider: process,
            ledger,
            shard,
        }
    }

    /// A cloud that takes ten milliseconds for everything.
    async fn prompt(name: &str, metal: usize, slots: usize) -> Self {
        let each = "10ms";
        let latency = serde_json::json!({
            "create": each, "configure": each, "drain": each, "delete": each,
        });
        Self::new(
            name,
            metal,
            slots,
            serde_json::json!({ "latency": latency }),
        )
        .await
    }

    async fn operator(&self, cluster: &str, manner: Manner) -> Operator {
        Operator::connect(self.shard.addr, cluster, manner).await
    }

    fn operations(&self, kind: Kind) -> usize {
        self.ledger.ledger.operations(kind).len()
    }

    /// At static demand nothing more is decided: ten cycles, and no call.
    async fn is_quiet(&self) {
        let cycle = self.shard.metric("bigfleet_shard_cycle");
        let seen = self.ledger.ledger.seen().len();
        until("ten cycles", async || {
            let now = self.shard.metric("bigfleet_shard_cycle");
            (cycle + 10.0 <= now, now)
        })
        .await;
        let later = self.ledger.ledger.seen();
        assert_eq!(later.len(), seen, "{:?}", &later[seen..]);
        self.ledger.ledger.check();
    }

    fn audited(&self, kind: &str, outcome: &str) -> usize {
        let text = std::fs::read_to_string(self.folder.file("data.audit")).unwrap();
        let says = |line: &&str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["kind"] == kind && line["outcome"] == outcome
        };
        text.lines().filter(says).count()
    }
}

#[tokio::test]
async fn demand_grows_and_shrinks_and_the_fleet_follows_exactly() {
    let scene = Scene::prompt("ramp", 6, 10).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(8)]).await;
    a.has(8).await;
    scene.is_quiet().await;
    assert_eq!(
        (
            scene.operations(Kind::Create),
            scene.operations(Kind::Configure)
        ),
        (2, 8),
        "metal first, then two are bought"
    );
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    scene.is_quiet().await;
    assert_eq!(scene.operations(Kind::Drain), 5);
    assert_eq!(a.heard().instructions.len(), 5, "each one was announced");
    assert_eq!(scene.audited("Bootstrap", "success"), 8);
    assert_eq!(scene.audited("Reclaim", "success"), 5);
    let held = scene.ledger.ledger.machines().await;
    assert_eq!((held[&Configured].len(), held[&Idle].len()), (3, 5));
    assert!(scene.shard.http("/readyz").contains("200 OK"));
    assert!(scene.shard.http("/config").contains("\"shard\": \"s1\""));
    assert_eq!(scene.shard.terminate(), Some(0), "asked to end, it ends");
}

#[tokio::test]
async fn what_matters_more_takes_machines_from_what_matters_less() {
    let scene = Scene::prompt("preempt", 4, 0).await;
    let low = scene.operator("low", Manner::Reports).await;
    low.needs(vec![row(16, 100, "")]).await;
    low.has(4).await;
    let high = scene.operator("high", Manner::Reports).await;
    high.needs(vec![row(8, 1_000_000, "")]).await;
    high.has(2).await;
    low.has(2).await;
    scene.is_quiet().await;
    assert_eq!(scene.operations(Kind::Drain), 2);
    let instructions = low.heard().instructions;
    assert!(
        instructions
            .iter()
            .all(|one| one.preemptor_priority == 1_000_000)
    );
}

#[tokio::test]
async fn a_stock_out_costs_no_slot_and_is_said() {
    let knobs = serde_json::json!({ "stock": [{ "instance_type": "m4", "hosts": 3 }] });
    let scene = Scene::new("stock", 0, 6, knobs).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(5)]).await;
    a.has(3).await;
    until("a shortfall", async || {
        let short = scene.shard.metric("bigfleet_shard_shortfalls");
        (short == 1.0, short)
    })
    .await;
    scene.ledger.ledger.check();
    assert_eq!(a.count(Configured), 3, "what is there stays");
}

#[tokio::test]
async fn a_provider_that_dies_and_returns_costs_nothing_but_time() {
    let folder = Folder::new("provider");
    let offerings = machines(&folder, 8, 0);
    let state = format!("--state={}", folder.file("cloud.state").display());
    let first = provider(&[&offerings, &state]);
    let addr = first.addr;
    let shard = shard(&folder.file("data"), addr, &[]);
    let a = Operator::connect(shard.addr, "a", Manner::Reports).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    first.kill();
    let failed = || shard.metric("bigfleet_shard_lists_failed_total");
    until("Lists that fail", async || (3.0 <= failed(), failed())).await;
    a.needs(vec![cpus(5)]).await;
    let accepted = |heard: &shard_scene::operator::Heard| {
        heard.acks.iter().filter(|ack| ack.echo == "rollup").count() == 2
    };
    a.sees("the second roll-up taken", accepted).await;
    assert_eq!(a.count(Configured), 3, "nobody lost anything");
    assert!(shard.http("/readyz").contains("200 OK"), "latched");
    let mut flags = vec![offerings, state, format!("--addr={addr}")];
    flags.push("--metrics-addr=127.0.0.1:0".to_owned());
    let _second = Process::start(&["provider", "fake"], &flags);
    a.has(5).await;
}

#[tokio::test]
async fn an_operator_that_dies_in_the_middle_of_a_drain_is_told_again() {
    let scene = Scene::prompt("drain", 4, 0).await;
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
        scene.operations(Kind::Drain),
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
    assert_eq!(scene.operations(Kind::Drain), 2);
    let marks = again.heard().acks.into_iter();
    let end = marks.rev().find(|ack| ack.echo == "node-state-resync");
    assert_eq!(end.map(|ack| ack.resync_count), Some(4));
}

#[tokio::test]
async fn the_newer_of_two_operators_of_a_cluster_is_the_one() {
    let scene = Scene::prompt("two", 4, 0).await;
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
    let scene = Scene::prompt("forged", 4, 0).await;
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
    let nobody = Operator::dial(scene.shard.addr, "a", "", Manner::Plain).await;
    let heard = nobody.sees("its end", |heard| heard.ended.is_some()).await;
    assert_eq!(
        heard.ended.unwrap().unwrap_err().0,
        tonic::Code::InvalidArgument
    );
}

#[tokio::test]
async fn ten_thousand_rows_are_one_roll_up() {
    let scene = Scene::prompt("rows", 4, 0).await;
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
    let scene = Scene::prompt("pause", 4, 0).await;
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
    let offerings = machines(&folder, 40, 0);
    let cloud = provider(&[&offerings]);
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
    let sent = ledger.ledger.operations(Kind::Configure).len();
    let second = shard_scene::shard(&data, ledger.addr, &[]);
    let a = Operator::connect(second.addr, "a", Manner::Plain).await;
    a.needs(wide_rows()).await;
    a.has(40).await;
    assert_eq!(
        ledger.ledger.operations(Kind::Configure).len(),
        40,
        "{sent} before"
    );
    ledger.ledger.check();
    let held = ledger.ledger.machines().await;
    assert!(!held.contains_key(&Creating));
}
