//! What stops a shard and what it says of that: pauses over a restart, settings it does not start with,
//! a provider it has not seen enough of, and the words of peers that fail.

use crate::shard_scene::ledger::{CallKind, Ledgered, Lie};
use crate::shard_scene::operator::{Manner, NO_BLOB, Operator, cpus};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, Process, WITHIN, provider, shard, shard_flags, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use std::process::Command;
use wire::capacity_provider_client::CapacityProviderClient;
use wire::shard_read_client::ShardReadClient;

/// A cloud of so many machines of four cpus, behind a ledger.
struct Cloud {
    folder: Folder,
    provider: Process,
    ledger: Ledgered,
}

impl Cloud {
    async fn new(name: &str, machines: usize) -> Self {
        let folder = Folder::new(name);
        let offered = offerings(&folder, &[("bare_metal", machines)]);
        let provider = provider(&[&offered, "--latency=5ms"]);
        let ledger = Ledgered::start(provider.addr).await;
        Self {
            folder,
            provider,
            ledger,
        }
    }

    /// A shard on it; what is given here replaces what is usual.
    fn shard(&self, more: &[&str]) -> Process {
        shard(&self.folder.file("data"), self.ledger.addr, more)
    }

    fn calls(&self, kind: CallKind) -> usize {
        let seen = self.ledger.ledger.seen();
        seen.iter().filter(|one| one.kind == kind).count()
    }

    /// The lines of the audit log that end an action of this kind.
    fn audited(&self, kind: &str) -> Vec<serde_json::Value> {
        let mut lines = self.folder.audit();
        lines.retain(|line| line["kind"] == kind);
        lines
    }
}

/// The lines of a process's log that say this, waited for: operators and the ledger go on meanwhile.
async fn said(process: &Process, message: &str) -> Vec<serde_json::Value> {
    until(message, async || {
        let lines = process.all_logged(message);
        (!lines.is_empty(), lines)
    })
    .await
}

/// SH-16, SH-6: what a pause file holds back at the start has all of its grace left when it is removed,
/// however long that takes.
#[tokio::test]
async fn a_drain_under_a_pause_over_a_restart_keeps_its_grace() {
    let cloud = Cloud::new("gate-pause", 1).await;
    let first = cloud.shard(&[]);
    let a = Operator::connect(first.addr, "a", Manner::Stalls).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    a.needs(Vec::new()).await;
    let told = a
        .sees("an instruction", |heard| !heard.instructions.is_empty())
        .await;
    let told = &told.instructions[0];
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(
        told.instruction_id.len() == 16 && told.instruction_id.bytes().all(is_hex),
        "wire 3.3: {told:?}"
    );
    first.kill();
    drop(a);

    let pause = cloud.folder.file("data").join("pause");
    std::fs::write(&pause, "# a flood\n").unwrap();
    // Forty seconds a cycle, two hundred times as fast: the whole grace passes while it is paused.
    let flags = ["--trouble=clock-speed=200", "--cycle-interval=40s"];
    let second = cloud.shard(&flags);
    let a = Operator::connect(second.addr, "a", Manner::Stalls).await;
    a.needs(Vec::new()).await;
    until("the time of two graces", async || {
        let cycle = second.metric("bigfleet_shard_cycle");
        (30.0 <= cycle, cycle)
    })
    .await;
    assert!(a.heard().instructions.is_empty(), "it is paused");
    assert_eq!(cloud.calls(CallKind::Drain), 0);

    std::fs::remove_file(&pause).unwrap();
    let again = a
        .sees("the instruction again", |heard| {
            !heard.instructions.is_empty()
        })
        .await;
    let again = &again.instructions[0];
    assert_eq!(again.instruction_id, told.instruction_id);
    let grace = again.grace_period_seconds;
    assert!((500..=600).contains(&grace), "{grace} s of 600 are left");
}

/// What a shard says that does not start.
fn refused(flags: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    let output = command.arg("shard").args(flags).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

/// One line that names the part and the reason, and exit status 1.
#[test]
fn settings_that_cannot_be_used_are_refused_with_status_1() {
    let folder = Folder::new("gate-settings");
    let data = format!("--data-dir={}", folder.file("data").display());
    let start = |more: &[&str]| {
        let mut flags = vec!["--metrics-addr=0", "--log-level=error", &data];
        if !more.iter().any(|flag| flag.starts_with("--provider-addr")) {
            flags.push("--provider-addr=127.0.0.1:1");
        }
        flags.retain(|flag| !(flag.starts_with("--log-level") && more[0].starts_with("--log")));
        flags.extend(more);
        refused(&flags)
    };
    for (flags, reason) in [
        (&["--listen="][..], "--listen is empty"),
        (&["--id=a/b"], "--id has to be"),
        (
            &["--reclaim-cap-fraction=1.5"],
            "--reclaim-cap-fraction is not between",
        ),
        (&["--cycle-interval=1ms"], "--cycle-interval is below 100ms"),
        (&["--cycle-interval=1 day"], "\"1 day\" is not a duration"),
        (&["--own-domain=zone"], "it is not key=value"),
        (&["--tls-cert=x"], "--tls"),
        (
            &["--tls-cert=x", "--tls-key=x", "--tls-ca=x"],
            "tls: x: No such file",
        ),
        (&["--listen=nowhere"], "cannot listen on nowhere"),
        (
            &["--listen=0.0.0.0:0"],
            "--listen 0.0.0.0:0 can be reached from other hosts",
        ),
        (&["--listen=[::]:0"], "or --insecure"),
        (&["--listen=this.example:0"], "give --tls-cert"),
        (&["--log-level=loud"], "\"loud\" is not a log level"),
        (
            &["--provider-addr=nonsense"],
            "--provider-addr \"nonsense\" is not an address like host:port",
        ),
        (
            &[
                "--coordinator-addr=nonsense",
                "--advertise-addr=s1.example:7780",
            ],
            "--coordinator-addr \"nonsense\" is not an address like host:port",
        ),
        (
            &["--coordinator-addr=127.0.0.1:1"],
            "--advertise-addr has to be host:port",
        ),
        (
            &["--coordinator-addr=127.0.0.1:1", "--advertise-addr="],
            "--advertise-addr has to be host:port",
        ),
        (
            &[
                "--coordinator-addr=127.0.0.1:1",
                "--listen=0.0.0.0:7780",
                "--insecure",
            ],
            "--advertise-addr has to be host:port",
        ),
        (
            &[
                "--coordinator-addr=127.0.0.1:1",
                "--advertise-addr=[::]:7780",
            ],
            "--advertise-addr has to be host:port",
        ),
    ] {
        let (code, text) = start(flags);
        assert_eq!(code, Some(1), "{flags:?}: {text}");
        assert!(
            text.starts_with("bigfleet shard: ") && text.contains(reason),
            "{flags:?}: {text}"
        );
        assert_eq!(text.lines().count(), 1, "{flags:?}: {text}");
    }
    assert!(!folder.file("data").exists(), "nothing was begun");
    let (code, text) = start(&["--no-such-flag"]);
    assert_eq!(code, Some(2), "not a command line of ours: {text}");
}

/// SH-4: an epoch is used once, and whoever lost the file is told how to go on.
#[tokio::test]
async fn a_start_with_an_epoch_that_was_used_is_refused_and_says_what_to_do() {
    let cloud = Cloud::new("gate-epoch", 1).await;
    let first = cloud.shard(&[]);
    let a = Operator::connect(first.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    first.kill();
    std::fs::remove_file(cloud.folder.file("data").join("epoch")).unwrap();
    let flags = shard_flags(&cloud.folder.file("data"), cloud.ledger.addr);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (code, text) = refused(&flags);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("start once with --epoch-floor 2"), "{text}");
    let mut next = cloud.shard(&["--epoch-floor=2"]);
    assert_eq!(next.logged("listening")["fields"]["epoch"], 2);
}

/// PR-3, SH-10: a shard that has not seen its provider says what it waits for, and keeps no reader
/// waiting for verdicts that will not come.
#[tokio::test]
async fn a_shard_that_waits_for_its_provider_says_so_at_once() {
    let folder = Folder::new("gate-unseen");
    let nobody = "127.0.0.1:1".parse().unwrap();
    // Whoever were kept waiting would be until the next cycle.
    let process = shard(&folder.file("data"), nobody, &["--cycle-interval=1h"]);
    let channel = Dial::unknown(None).channel(&process.addr.to_string());
    let mut reader = ShardReadClient::new(channel.unwrap());
    let read = async {
        let request = wire::InspectNeedsRequest::default();
        let mut frames = reader.inspect_needs(request).await.unwrap().into_inner();
        while frames.message().await.unwrap().is_some() {}
    };
    let read = tokio::time::timeout(WITHIN, read).await;
    assert!(read.is_ok(), "a reader waits for verdicts");
    let ready = process.http("/readyz");
    assert!(
        ready.contains(" 503 ") && ready.contains("no List of the provider has been complete"),
        "{ready}"
    );
}

#[tokio::test]
async fn a_shard_whose_provider_lacks_what_it_remembers_says_how_much() {
    let cloud = Cloud::new("gate-lacks", 8).await;
    let first = cloud.shard(&[]);
    let a = Operator::connect(first.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(8)]).await;
    a.has(8).await;
    first.kill();
    // One List shows half of them, and the next is not answered until somebody has looked.
    cloud.ledger.ledger.lie(Lie::HalfUncounted, 1);
    cloud.ledger.ledger.lie(Lie::Late, 1);
    cloud.ledger.ledger.hold();
    let next = cloud.shard(&[]);
    until("why it is not ready", async || {
        let ready = next.http("/readyz");
        let says = ready.contains("show only 4 of the 8 machines this shard remembers");
        (says, ready)
    })
    .await;
    cloud.ledger.ledger.let_go();
    until("a List that shows them", async || {
        let ready = next.http("/readyz");
        (ready.contains(" 200 "), ready)
    })
    .await;
}

/// wire 6.4.4: what an operator says when it cannot bootstrap is in the log, in the
/// audit log, and wherever somebody looks for why nothing is acquired.
#[tokio::test]
async fn an_operators_reason_reaches_whoever_looks() {
    let cloud = Cloud::new("gate-blob", 1).await;
    let process = cloud.shard(&[]);
    let a = Operator::connect(process.addr, "a", Manner::WithoutBlobs).await;
    a.needs(vec![cpus(1)]).await;
    let line = &said(&process, "action failed").await[0];
    assert_eq!(line["level"], "WARN");
    let fields = &line["fields"];
    assert_eq!(
        [&fields["kind"], &fields["cluster"], &fields["outcome"]],
        ["Bootstrap", "a", "blob_error"]
    );
    assert_eq!(fields["err"], NO_BLOB);
    let audited = until("the line of the audit log", async || {
        let lines = cloud.audited("Bootstrap");
        (!lines.is_empty(), lines)
    })
    .await;
    assert_eq!(audited[0]["error"], NO_BLOB);
    let channel = Dial::unknown(None).channel(&process.addr.to_string());
    let mut reader = ShardReadClient::new(channel.unwrap());
    let rails = reader.inspect_rails(wire::InspectRailsRequest::default());
    let rails = rails.await.unwrap().into_inner().rails;
    let rail = rails.iter().find(|rail| rail.name == "blob-breaker");
    assert!(rail.unwrap().detail.contains(NO_BLOB), "{rails:?}");
    assert_eq!(cloud.calls(CallKind::Configure), 0);
}

/// A call that is refused is said once, however often it is made again; a machine that went
/// elsewhere is no failed action.
#[tokio::test]
async fn a_refused_call_is_a_warning_and_an_adoption_is_not() {
    let cloud = Cloud::new("gate-news", 2).await;
    let process = cloud.shard(&[]);
    let a = Operator::connect(process.addr, "a", Manner::Plain).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;

    let channel = Dial::provider(None).channel(&cloud.provider.addr.to_string());
    let mut client = CapacityProviderClient::new(channel.unwrap());
    let machines = cloud.ledger.ledger.machines().await;
    let machine = machines[&wire::MachineState::Configured][0].id.clone();
    let drain = wire::DrainRequest {
        machine_id: machine.clone(),
        shard_id: "somebody".to_owned(),
        shard_epoch: 1,
        sequence_number: 1,
        ..Default::default()
    };
    client.drain(drain).await.unwrap();
    let adopted = "machine adopted: its provider shows it elsewhere than it was left";
    let line = &said(&process, adopted).await[0];
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["fields"]["machine"], machine.as_str());
    assert!(!process.text().contains("action failed"));

    a.has(1).await;
    cloud.provider.kill();
    a.needs(vec![cpus(2)]).await;
    let line = &said(&process, "call refused").await[0];
    assert_eq!(line["level"], "WARN");
    let fields = &line["fields"];
    assert_eq!(
        [&fields["kind"], &fields["cluster"]],
        ["Bootstrap", "a"],
        "{line}"
    );
    assert!(!fields["err"].as_str().unwrap().is_empty());
    until("three attempts", async || {
        let retries = process.metric("bigfleet_shard_call_retries_total");
        (2.0 <= retries, retries)
    })
    .await;
    let lines = said(&process, "call refused").await;
    let operations = lines
        .iter()
        .map(|line| line["fields"]["operation"].to_string());
    let operations: std::collections::BTreeSet<String> = operations.collect();
    assert_eq!(lines.len(), operations.len(), "once each: {lines:?}");
}
