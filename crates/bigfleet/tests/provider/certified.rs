//! `bigfleet conformance` on what it cannot certify: each ends in one clear line, and leaves nothing running.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::processes::{Folder, provider};
use bigfleet_net::TlsFiles;
use bigfleet_net::testing::Authority;

const BIGFLEET: &str = env!("CARGO_BIN_EXE_bigfleet");

fn conformance(args: &[&str]) -> Output {
    let mut command = Command::new(BIGFLEET);
    command.arg("conformance").args(args);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Status 2, nothing on stdout, one line that says all of this.
fn refused(args: &[&str], says: &[&str]) {
    let output = conformance(args);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    for word in says {
        assert!(line.contains(word), "{args:?}: no {word} in {line}");
    }
}

fn report(folder: &Folder) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.file("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_cannot_be_certified_at_all_is_said_in_a_line() {
    let folder = Folder::new("not-certified");
    let file = folder.file("file");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    refused(&[], &["--binary", "--target"]);
    refused(&["--target", "nowhere"], &["nowhere", "host:port"]);
    refused(
        &["--target", "127.0.0.1:1"],
        &["127.0.0.1:1 does not answer", "refused"],
    );
    refused(
        &["--binary", "/no/such/provider"],
        &["/no/such/provider", "No such file"],
    );
    refused(&["--binary", file], &["file", "Permission denied"]);
    refused(
        &["--binary", "/bin/false"],
        &["ended before it answered", "exit status: 1"],
    );
    refused(
        &[
            "--binary",
            BIGFLEET,
            "--binary-arg",
            "provider",
            "--binary-arg",
            "flake",
        ],
        &["ended before it answered", "flake"],
    );
    let under = format!("{file}/report");
    refused(
        &["--binary", BIGFLEET, "--out", &under],
        &["reports cannot be written to", "report", "directory"],
    );
    refused(
        &["--binary", BIGFLEET, "--filter", "nothing-*"],
        &["nothing-*", "--list"],
    );
    let output = conformance(&["--binary", BIGFLEET, "--profile", "core,clod"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("bare-metal"),
        "the words there are"
    );
}

#[test]
fn a_target_that_is_no_provider_is_named_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let web = std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            if stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback())
                && stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
                    .is_err()
            {
                return;
            }
        }
    });
    refused(
        &["--target", &addr],
        &[&addr, "is not a BigFleet provider", "does not speak gRPC"],
    );
    drop(web);
    let shard_like = provider(&["--seed-count=4"]);
    // The probes of a provider speak HTTP/1, and are not where its calls are answered.
    refused(
        &["--target", &shard_like.probes.to_string()],
        &[&shard_like.probes.to_string()],
    );
}

#[test]
fn a_running_target_is_tried_and_what_needs_a_kill_is_not() {
    let folder = Folder::new("target");
    let running = provider(&["--seed-count=96"]);
    let out = folder.0.to_str().unwrap();
    let output = conformance(&[
        "-target",
        &running.addr.to_string(),
        "-profile=core,durable",
        "-out",
        out,
        "--filter",
        "LIFE-*,DUR-01,X-01",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = report(&folder);
    assert_eq!(report["verdict"], "INCOMPLETE");
    let status = |list: &str, id: &str| {
        let lines = report[list].as_array().unwrap();
        lines.iter().find(|line| line["id"] == id).unwrap().clone()
    };
    assert_eq!(status("behaviors", "LIFE-01")["status"], "passed");
    assert_eq!(status("behaviors", "LIFE-01")["reference"], "B101");
    assert_eq!(status("additional", "X-01")["status"], "passed");
    let killed = status("behaviors", "DUR-01");
    assert_eq!(killed["status"], "not_implemented");
    assert!(
        killed["reason"].as_str().unwrap().contains("--binary"),
        "{killed}"
    );
    for file in ["junit.xml", "badge.json", "report.html"] {
        assert!(folder.file(file).exists(), "{file}");
    }
    let stdout = text(&output.stdout);
    assert!(stdout.ends_with("verdict: INCOMPLETE\n"), "{stdout}");
    let lines = text(&output.stderr);
    assert!(
        lines.contains("LIFE-01 four Configure and Drain rounds leave a clean IDLE ... passed")
    );
}

#[test]
fn too_few_machines_are_no_pass() {
    let folder = Folder::new("few");
    let out = folder.0.to_str().unwrap();
    let output = conformance(&[
        "--binary",
        BIGFLEET,
        "--binary-arg",
        "provider",
        "--binary-arg",
        "fake",
        "--seed-count",
        "1",
        "--filter",
        "LIFE-01,CONC-06",
        "--out",
        out,
    ]);
    assert_eq!(output.status.code(), Some(1));
    let report = report(&folder);
    assert_eq!(report["verdict"], "INCOMPLETE");
    let why = report["incomplete"].to_string();
    assert!(
        why.contains("CONC-06: no SPECULATIVE machine is left"),
        "{why}"
    );
}

/// The handshake is real; that one certificate is one shard is what ours insist on.
#[test]
fn behind_tls_it_is_said_who_may_speak() {
    let folder = Folder::new("tls-target");
    let ca = Authority::new("ca").unwrap();
    let put = |name: &str, uris: &[&str]| -> TlsFiles {
        ca.leaf(uris)
            .unwrap()
            .write(&folder.file(name), &ca.pem)
            .unwrap()
    };
    let flags = |files: &TlsFiles| {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        [
            flag("tls-cert", &files.cert),
            flag("tls-key", &files.key),
            flag("tls-ca", &files.ca),
        ]
    };
    let server = flags(&put("server", &[]));
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let running = provider(&server);
    let target = format!("localhost:{}", running.addr.port());
    let caller = flags(&put("caller", &["bigfleet://shard/s1"]));
    let mut args = vec!["--target", &target];
    args.extend(caller.iter().map(String::as_str));
    let output = conformance(&args);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        stdout.contains("does not let this caller speak for any shard"),
        "{stdout}"
    );
    assert!(stdout.ends_with("verdict: INCOMPLETE\n"), "{stdout}");
    refused(&["--target", &target], &[&target, "say --tls-cert"]);
    // The other way round, and with a certificate of somebody else.
    let (caller, plain) = (caller.each_ref().map(String::as_str), provider(&[]));
    let plain = plain.addr.to_string();
    let mut args = vec!["--target", &plain];
    args.extend(caller);
    refused(&args, &[&plain, "it does not speak TLS"]);
    let other = Authority::new("another").unwrap();
    let stranger = other.leaf(&["bigfleet://shard/s1"]).unwrap();
    let stranger = stranger
        .write(&folder.file("stranger"), &other.pem)
        .unwrap();
    let stranger = flags(&stranger);
    let mut args = vec!["--target", &target];
    args.extend(stranger.iter().map(String::as_str));
    refused(&args, &[&target, "--tls-ca"]);
}
