//! Backups of a group: saved, exported, looked at, damaged, and restored after everything was lost.

use crate::group::Group;
use crate::processes::{Folder, Process, until};
use crate::reporter::Reporter;
use crate::verbs::{json, refuses, says};
use std::path::{Path, PathBuf};
use std::process::Command;

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Reports until the coordinator has on record that it holds this.
async fn holds(group: &Group, shard: &mut Reporter, domain: &str) {
    until(domain, async || {
        group.hears(shard).await;
        (shard.domains.contains(domain), shard.clone())
    })
    .await;
    // What it was given it says with its next report.
    group.hears(shard).await;
}

/// Typed as docs/coordinator.md has it: everything is lost, and comes back from a file.
#[tokio::test]
async fn everything_is_lost_and_restored_from_a_saved_file() {
    let mut group = Group::of("coordinator-total-loss", 3).await;
    let at = group.at();
    let mut shard = Reporter::new("shard-a");
    group.hears(&mut shard).await;
    says(&["assign", "domain", "rack=r1", "shard-a", &at]);
    holds(&group, &mut shard, "rack=r1").await;
    let file = text(&group.file("backup.tar"));
    let said = says(&["snapshot", "save", &file, &at]);
    assert!(said.starts_with("saved snapshot index="), "{said}");
    assert!(said.ends_with(&format!("to {file}\n")), "{said}");
    // Whatever happens after the backup, elections included, is not in it.
    says(&["raft", "transfer-leader", &at, "--yes"]);
    group.hears(&mut shard).await;
    let heard = shard.mark;
    let cluster = group.cluster_id(0).await;
    for nth in 0..3 {
        group.wipe(nth);
    }

    let whole = says(&["snapshot", "verify", &file]);
    assert!(whole.contains("is whole: index="), "{whole}");
    let inspected = json(&["snapshot", "inspect", &file]);
    assert_eq!(inspected["cluster"], *cluster);
    assert_eq!(inspected["domains"], 1, "{inspected}");
    let data = text(&group.data(0));
    let into = format!("--data-dir={data}");
    let restore = ["snapshot", "restore", &file, &into, "--id=coordinator-0"];
    let dry = says(&[&restore[..], &["--dry-run"]].concat());
    assert!(dry.starts_with("would restore snapshot index="), "{dry}");
    assert!(!group.data(0).exists(), "a dry run writes nothing");
    let said = says(&restore);
    let end = format!("into {data} as single-voter coordinator-0\n");
    assert!(said.ends_with(&end), "{said}");

    group.start(0);
    let first = group.running[0].as_mut().unwrap();
    let leads = first.logged("this replica leads");
    let reign = leads["fields"]["reign"].as_i64().unwrap();
    assert!(heard < reign && 1 << 20 < reign, "{heard}, then {reign}");
    first.shows("bigfleet_coordinator_restored", 1.0).await;
    group.start(1);
    group.start(2);
    group.is_whole().await;
    for nth in 0..3 {
        assert_eq!(group.cluster_id(nth).await, cluster);
    }

    // Nothing is told until all shards were heard.
    refuses(&["finish-restore", &at], 1, "not heard yet: shard-a");
    group.hears(&mut shard).await;
    assert!(reign <= shard.mark, "{reign}, then {}", shard.mark);
    assert_eq!(shard.domains.len(), 1, "what it holds it keeps");
    until("a restore that can be finished", async || {
        group.hears(&mut shard).await;
        let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .args(["finish-restore", "--dry-run", &at])
            .output()
            .unwrap();
        (output.status.success(), output)
    })
    .await;
    let done = says(&["finish-restore", &at]);
    assert!(done.starts_with("the restore is finished"), "{done}");
    refuses(&["finish-restore", &at], 1, "there is no restore to finish");
    let domains = json(&["get", "domains", &at]);
    let row = &domains["items"][0];
    assert_eq!(row["domain"], "rack=r1", "{domains}");
    assert_eq!(row["shard"], "shard-a", "{domains}");
    assert_eq!(row["held_by"], "shard-a", "{domains}");
    says(&["assign", "domain", "rack=r2", "shard-a", &at]);
    holds(&group, &mut shard, "rack=r2").await;
}

/// A replica that was restored and one from before are two groups, and never one.
#[tokio::test]
async fn a_replica_from_before_a_restore_is_not_let_in() {
    let mut group = Group::of("coordinator-generations", 3).await;
    group.shard_reports("shard-a").await;
    let file = text(&group.file("backup.tar"));
    says(&["snapshot", "save", &file, &group.at()]);
    for nth in 0..3 {
        group.kill(nth);
    }
    let into = format!("--data-dir={}", text(&group.data(0)));
    let restored = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args(["snapshot", "restore", &file, &into, "--id=coordinator-0"])
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
    // What was there is kept beside.
    let noted = String::from_utf8(restored.stderr).unwrap();
    let kept = noted
        .lines()
        .find_map(|line| line.strip_prefix("what was there before is in "));
    assert!(Path::new(kept.unwrap()).is_file(), "{noted}");
    group.start(0);
    group.running[0]
        .as_mut()
        .unwrap()
        .logged("this replica leads");
    group.start(1);
    let refused = group.running[1].as_mut().unwrap();
    until("a refusal that says what to do", async || {
        let text = refused.text();
        let is_said = text.contains("to let it join here, empty its data directory");
        (is_said, text)
    })
    .await;
    let replicas = group.replicas().await;
    assert_eq!(replicas.len(), 1, "{replicas:?}");
}

#[tokio::test]
async fn whoever_leads_exports_and_an_export_restores() {
    let mut group = Group::with("coordinator-exports", 3, |folder| {
        vec![
            format!("--snapshot-export-dir={}", folder.file("exports").display()),
            "--snapshot-export-interval=1s".to_owned(),
            "--snapshot-export-retain=2".to_owned(),
        ]
    })
    .await;
    group.shard_reports("shard-a").await;
    group.assign("r1", "shard-a").await;
    let latest = text(&group.file("exports").join("latest"));
    let at = group.at();
    let has = |domains: i64| {
        let latest = latest.clone();
        async move || {
            let there = Path::new(&latest).exists();
            let inspected = there.then(|| json(&["snapshot", "inspect", &latest]));
            let is_in = inspected
                .as_ref()
                .is_some_and(|it| it["domains"] == domains);
            (is_in, inspected)
        }
    };
    until("an export with the domain", has(1)).await;
    // The next leader goes on with it.
    let leader = group.leader().await;
    let metric = "bigfleet_coordinator_snapshot_export_total{outcome=\"success\"}";
    let exported = group.running[leader].as_ref().unwrap().metric(metric);
    assert!(1.0 <= exported, "{exported}");
    group.kill(leader);
    says(&["assign", "domain", "rack=r2", "shard-a", &at]);
    until("an export of the next leader", has(2)).await;
    let folders = std::fs::read_dir(group.file("exports")).unwrap();
    let kept = folders.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("20")
    });
    assert!(
        kept.count() <= 3,
        "two are kept, and one may be on its way out"
    );
    let into = format!("--data-dir={}", text(&group.file("elsewhere")));
    says(&["snapshot", "restore", &latest, &into, "--id=c-0"]);
}

/// A folder that cannot be written holds up no write.
#[tokio::test]
async fn an_export_that_fails_is_counted_and_holds_nothing_up() {
    let group = Group::with("coordinator-export-fails", 1, |folder| {
        let file = folder.file("a-file");
        std::fs::write(&file, "in the way").unwrap();
        vec![
            format!("--snapshot-export-dir={}", file.display()),
            "--snapshot-export-interval=1s".to_owned(),
        ]
    })
    .await;
    group.shard_reports("shard-a").await;
    let metric = "bigfleet_coordinator_snapshot_export_total{outcome=\"error\"}";
    until("a failure that is counted", async || {
        let failed = group.running[0].as_ref().unwrap().metric(metric);
        (1.0 <= failed, failed)
    })
    .await;
    group.assign("r1", "shard-a").await;
    assert_eq!(group.racks().await, ["r1"]);
}

fn alone(folder: &Folder, name: &str) -> (Process, PathBuf) {
    let data = folder.file(name);
    let flags = [
        "--bootstrap".to_owned(),
        "--listen=127.0.0.1:0".to_owned(),
        "--raft-bind=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        format!("--data-dir={}", data.display()),
    ];
    let mut process = Process::start(&["coordinator"], &flags);
    process.logged("this replica leads");
    (process, data)
}

#[test]
fn a_restore_that_is_refused_changes_nothing() {
    let folder = Folder::new("coordinator-restore-refused");
    let (running, data) = alone(&folder, "data");
    let at = format!("--coordinator={}", running.addr);
    let file = text(&folder.file("backup.tar"));
    says(&["snapshot", "save", &file, &at]);
    let into = format!("--data-dir={}", data.display());
    let restore = |file: &str, code, words: &str| {
        let args = ["snapshot", "restore", file, &into, "--id=c-0", "--yes"];
        refuses(&args, code, words);
    };
    // It runs.
    restore(&file, 1, "another process uses it");
    let (other, _) = alone(&folder, "other");
    let others = text(&folder.file("other.tar"));
    let at = format!("--coordinator={}", other.addr);
    says(&["snapshot", "save", &others, &at]);
    running.kill();

    restore(&others, 1, "belongs to group ");
    let whole = std::fs::read(&file).unwrap();
    let damaged = text(&folder.file("flipped.tar"));
    for at in [3, 600, whole.len() - 1500] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&damaged, bytes).unwrap();
        restore(&damaged, 1, "damaged");
        refuses(&["snapshot", "verify", &damaged], 1, "damaged");
    }
    std::fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();
    restore(&damaged, 1, "flipped.tar: ");
    restore("/nonexistent/backup", 1, "/nonexistent/backup");
    refuses(
        &["snapshot", "restore", &file, &into, "--id=a b", "--yes"],
        2,
        "--id",
    );
    let names = || {
        let entries = std::fs::read_dir(&data).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(), ["coordinator.redb"]);
    // A disk that fills up in the middle.
    let full = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"")
        .arg(env!("CARGO_BIN_EXE_bigfleet"))
        .args(["snapshot", "restore", &file, &into, "--id=c-0", "--yes"])
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    let said = String::from_utf8(full.stderr).unwrap();
    assert!(said.contains("coordinator.redb.new"), "{said}");
    assert_eq!(names(), ["coordinator.redb"]);
    // The store is the one from before: of its group, and never restored.
    let cluster = json(&["snapshot", "inspect", &file])["cluster"].clone();
    let (again, _) = alone(&folder, "data");
    let at = format!("--coordinator={}", again.addr);
    says(&["snapshot", "save", &file, &at]);
    let shown = json(&["snapshot", "inspect", &file]);
    assert_eq!(shown["cluster"], cluster, "{shown}");
    assert_eq!(shown["restores"], 0, "{shown}");
}

/// A saved file that cannot be written whole is not there, and the one from before is.
#[test]
fn a_save_that_is_cut_short_replaces_nothing() {
    let folder = Folder::new("coordinator-save-full");
    let (running, _) = alone(&folder, "data");
    let at = format!("--coordinator={}", running.addr);
    let file = folder.file("backup.tar");
    says(&["snapshot", "save", &text(&file), &at]);
    let before = std::fs::read(&file).unwrap();
    let full = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"")
        .arg(env!("CARGO_BIN_EXE_bigfleet"))
        .args(["snapshot", "save", &text(&file), &at])
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    assert!(std::fs::read(&file).unwrap() == before);
    let left = std::fs::read_dir(&folder.0).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, ["backup.tar", "data"]);
}

/// A disk that fills up ends the process with the reason, and nothing that was acknowledged is lost.
#[tokio::test]
async fn a_full_disk_ends_a_replica_and_loses_nothing() {
    let folder = Folder::new("coordinator-disk-full");
    let data = folder.file("data");
    let flags = [
        "--bootstrap".to_owned(),
        "--listen=127.0.0.1:0".to_owned(),
        "--raft-bind=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        format!("--data-dir={}", data.display()),
        "--log-format=json".to_owned(),
    ];
    let mut limited = Command::new("sh");
    limited
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 4096; exec \"$0\" \"$@\"")
        .arg(env!("CARGO_BIN_EXE_bigfleet"))
        .arg("coordinator")
        .args(&flags);
    let mut process = Process::spawn(limited);
    process.logged("this replica leads");
    let mut shard = Reporter::new("shard-a");
    let mut client = crate::group::client(process.addr);
    client.report_shard(shard.report()).await.unwrap();
    let mut acknowledged = Vec::new();
    let domain = |n: usize| bigfleet_wire::v1alpha1::AssignDomainRequest {
        topology_key: "rack".to_owned(),
        topology_value: format!("{n}-{}", "x".repeat(500)),
        shard_id: "shard-a".to_owned(),
    };
    for n in 0.. {
        match client.assign_domain(domain(n)).await {
            Ok(_) => acknowledged.push(domain(n).topology_value),
            Err(_) => break,
        }
    }
    assert_eq!(process.over().await.code(), Some(1));
    let said = process.text();
    assert!(said.contains("the store cannot be written"), "{said}");
    assert!(said.contains("bigfleet coordinator: consensus:"), "{said}");
    let mut again = Process::start(&["coordinator"], &flags[..5]);
    again.logged("this replica leads");
    let mut client = crate::group::client(again.addr);
    let request = bigfleet_wire::v1alpha1::ListDomainAssignmentsRequest {};
    let listed = client.list_domain_assignments(request).await.unwrap();
    let listed = listed.into_inner().assignments.into_iter();
    let listed: std::collections::BTreeSet<String> = listed.map(|one| one.topology_value).collect();
    assert!(100 < acknowledged.len(), "{}", acknowledged.len());
    for one in &acknowledged {
        assert!(listed.contains(one), "{one}");
    }
}

fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, data) in entries {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        let size = format!("{:011o}\0", data.len());
        header[124..136].copy_from_slice(size.as_bytes());
        header[136..148].copy_from_slice(b"14731465700\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(*data);
        bytes.extend(vec![0; data.len().next_multiple_of(512) - data.len()]);
    }
    bytes.extend([0; 1024]);
    bytes
}

/// As the reference writes them (CO-47): a file of `snapshot save`, and a folder of its export.
#[tokio::test]
async fn archives_of_the_reference_are_restored() {
    let meta = br#"{"Version": 1, "ID": "7-1830-1735787045000", "Index": 1830, "Term": 7, "Peers": "kw==",
        "Configuration": {"Servers": [{"Suffrage": 0, "ID": "coordinator-0", "Address": "10.0.0.1:7791"}]},
        "ConfigurationIndex": 3, "Size": 512}"#;
    let state = br#"{
        "shards": [
            {"ID": "shard-0", "Address": "shard-0.shards:7780", "RegisteredAt": "2025-01-02T03:04:05.123456789Z", "LastHeartbeat": "2025-02-03T04:05:06.1Z"},
            {"ID": "shard-1", "Address": "", "RegisteredAt": "2025-01-02T03:04:05Z", "LastHeartbeat": "0001-01-01T00:00:00Z"}
        ],
        "cluster_to_shard": {"prod-eu": "shard-0"},
        "domain_to_shard": [
            {"domain": {"Key": "topology.kubernetes.io/zone", "Value": "eu-1a"}, "shard": "shard-0"},
            {"domain": {"Key": "topology.kubernetes.io/zone", "Value": "eu-1b"}, "shard": "shard-1"}
        ],
        "quotas": [{"provider": "aws", "region": "eu"}], "providers": []
    }"#;
    let folder = Folder::new("coordinator-reference");
    let file = folder.file("reference.tar");
    let entries: [(&str, &[u8]); 2] = [("meta.json", meta), ("state", state)];
    std::fs::write(&file, tar(&entries)).unwrap();
    let export = folder.file("20250203-040506-7-1830-1735787045000");
    std::fs::create_dir(&export).unwrap();
    for (name, data) in entries {
        std::fs::write(export.join(name), data).unwrap();
    }
    for (nth, backup) in [&file, &export].into_iter().enumerate() {
        let backup = text(backup);
        let shown = json(&["snapshot", "inspect", &backup]);
        assert_eq!(shown["written_by"], "reference", "{shown}");
        let data = folder.file(&format!("data-{nth}"));
        let into = format!("--data-dir={}", data.display());
        let said = says(&["snapshot", "restore", &backup, &into, "--id=coordinator-0"]);
        assert!(said.contains("index=1830 term=7"), "{said}");
        let flags = [
            "--listen=127.0.0.1:0".to_owned(),
            "--raft-bind=127.0.0.1:0".to_owned(),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            format!("--data-dir={}", data.display()),
        ];
        let mut process = Process::start(&["coordinator"], &flags);
        let leads = process.logged("this replica leads");
        // Its shards have heard of term 7, and of none above 2²⁰ more.
        let reign = leads["fields"]["reign"].as_i64();
        assert_eq!(reign, Some((1 << 20) + 8));
        let at = format!("--coordinator={}", process.addr);
        let domains = json(&["get", "domains", &at]);
        assert_eq!(domains["items"].as_array().unwrap().len(), 2, "{domains}");
        assert_eq!(domains["items"][0]["shard"], "shard-0", "{domains}");
        let clusters = json(&["get", "clusters", &at]);
        assert_eq!(clusters["items"][0]["shard"], "shard-0", "{clusters}");
        refuses(
            &["finish-restore", &at],
            1,
            "not heard yet: shard-0, shard-1",
        );
        for shard in ["shard-0", "shard-1"] {
            says(&["remove", "shard", shard, "--gone", &at]);
        }
        says(&["finish-restore", &at]);
    }
}
