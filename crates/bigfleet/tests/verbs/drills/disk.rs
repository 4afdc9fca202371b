//! A full disk: a shard that cannot write ends and says why, one that cannot write its audit log says so.
//!
//! What a full disk is to whoever writes, a limit on the size of a file is too, and everybody may set one.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Drill, is_well, until_need, verb};
use crate::shard_scene::operator::{Manner, cpus, row};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::{Process, shard_flags};

/// A shard none of whose files may become longer than so many KiB.
fn in_little_room(scene: &Scene, kib: u64) -> Process {
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_bigfleet"), "shard"])
        .args(shard_flags(&scene.folder.file("data"), scene.ledger.addr))
        .arg("--log-format=json");
    Process::spawn(command)
}

fn kib(file: &Path) -> u64 {
    std::fs::metadata(file).unwrap().len().div_ceil(1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_the_shard_with_the_reason_and_nothing_is_lost() {
    let mut scene = Scene::new("drill-disk", 2, 0).await;
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    a.has(2).await;
    drop(a);
    scene.shard.end();
    let store = scene.folder.file("data").join("shard.redb");
    let full = in_little_room(&scene, kib(&store));
    let (addr, probes) = (full.addr, full.probes);
    let a = crate::shard_scene::operator::Operator::connect(addr, "a", Manner::Plain).await;
    let drill = Drill::begins("disk full");
    // What has to be remembered of so many rows does not fit.
    let rows = (0..3000).map(|at| row(4, 1, &format!("r{at}-{}", "x".repeat(200))));
    a.needs(rows.chain([cpus(2)]).collect()).await;
    let (code, text) = full.ended().await;
    assert_eq!(code, Some(1), "{text}");
    let line = text
        .lines()
        .find(|line| line.contains("bigfleet shard:"))
        .unwrap();
    assert!(
        line.contains("shard.redb") && line.contains("nothing leaves any more"),
        "{line}"
    );
    drill.told("its last line", line);
    let gone = crate::called::call(&["status", "--shard", &addr.to_string()]);
    assert_eq!(gone.status, Some(1));
    assert!(gone.out.contains("nothing answers at"), "{gone:?}");
    drill.told("status", gone.out.lines().next().unwrap_or_default());
    for args in [&["get", "machines"][..], &["explain", "a"]] {
        let why = crate::called::call(&[args, &["--shard", &addr.to_string()]].concat()).undone();
        assert!(why.contains("nothing answers at"), "{args:?}: {why}");
        drill.told(args[0], &why);
    }
    assert!(
        std::net::TcpStream::connect(probes).is_err(),
        "nobody scrapes a process that is gone"
    );
    drill.told("metrics", "the scrape fails");
    // The log is what is left, if there is room for it.
    let what = "shard-ends: the shard ends: store: ";
    drill.audit(&scene, &["--kind=shard-ends"], what).await;
    drill.is_told_by_all();
    // With room again it goes on with what it had.
    scene.next_shard(&[]);
    let a = scene.operator("a", Manner::Plain).await;
    a.needs(vec![cpus(2)]).await;
    until_need(&scene, "served", |need| {
        need["serving"] == json!({"cpu": "8"})
    })
    .await;
    is_well(&scene).await;
    scene.ledger.ledger.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_log_that_cannot_be_written_is_said_and_the_shard_goes_on() {
    const ROOM: u64 = 8 * 1024;
    let mut scene = Scene::new("drill-audit", 2, 0).await;
    scene.shard.end();
    let log = scene.folder.file("data.audit");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)
        .unwrap();
    file.write_all(&vec![b'\n'; ROOM as usize * 1024]).unwrap();
    drop(file);
    scene.shard = in_little_room(&scene, ROOM);
    let a = scene.operator("a", Manner::Plain).await;
    let drill = Drill::begins("audit log full");
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    drill
        .status(&scene, "disk", "of the audit log could not be written")
        .await;
    drill
        .metric(&scene, "bigfleet_shard_audit_lines_lost_total", |lost| {
            1.0 <= lost
        })
        .await;
    drill
        .verb(&scene, &["get", "events"], "audit-lines-lost")
        .await;
    // It serves all the same.
    drill
        .verb(&scene, &["explain", "a"], "all of cpu=4 is served")
        .await;
    assert!(
        verb(&scene, &["get", "machines"])
            .done()
            .contains("Configured")
    );
}
