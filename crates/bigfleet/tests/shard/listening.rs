//! Who reaches what a process serves, and who reads what it leaves on disk (wire 8.4).
//!
//! ```text
//! :0 ─▶ this host        0.0.0.0:0 ──┬─ TLS files, or --insecure ─▶ every host, without reflection
//!                                    └─ neither ─▶ status 1, one line
//! ```

use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::{Dial, testing::Authority};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tonic::Code;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// The answer to a question about what the port serves.
async fn reflection(addr: SocketAddr) -> Code {
    let channel = Dial::unknown(None).channel(&format!("127.0.0.1:{}", addr.port()));
    let mut client = ServerReflectionClient::new(channel.unwrap());
    let request = tokio_stream::once(ServerReflectionRequest::default());
    let answered = client.server_reflection_info(request).await;
    answered.err().map_or(Code::Ok, |status| status.code())
}

#[tokio::test]
async fn an_address_without_a_host_is_this_host() {
    let folder = Folder::new("listening-here");
    let flags = ["--listen=:0", "--metrics-addr=:0"];
    let shard = shard(&folder.file("data"), NOBODY, &flags);
    assert!(shard.addr.ip().is_loopback(), "{}", shard.addr);
    assert!(shard.probes.ip().is_loopback(), "{}", shard.probes);
    assert_eq!(reflection(shard.addr).await, Code::Ok);
    let flags = ["--addr=:0", "--metrics-addr=:0"].map(str::to_owned);
    let provider = Process::start(&["provider", "fake"], &flags);
    assert!(provider.addr.ip().is_loopback(), "{}", provider.addr);
    assert!(provider.probes.ip().is_loopback(), "{}", provider.probes);
    assert_eq!(reflection(provider.addr).await, Code::Ok);
}

#[tokio::test]
async fn other_hosts_are_served_without_certificates_only_if_somebody_says_so() {
    let folder = Folder::new("listening-insecure");
    let everywhere = ["--listen=0.0.0.0:0", "--insecure", "--reflection=true"];
    let shard = shard(&folder.file("data"), NOBODY, &everywhere);
    assert!(shard.addr.ip().is_unspecified(), "{}", shard.addr);
    assert_eq!(reflection(shard.addr).await, Code::Unimplemented);
    let flags = ["--addr=0.0.0.0:0", "--metrics-addr=:0", "--insecure"].map(str::to_owned);
    let provider = Process::start(&["provider", "fake"], &flags);
    assert_eq!(reflection(provider.addr).await, Code::Unimplemented);
    for verb in [
        &["provider", "fake", "--addr=0.0.0.0:0"][..],
        &["up", "--listen=0.0.0.0:0", "--for=1s"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .args(verb)
            .args(["--metrics-addr=127.0.0.1:0", "--log-level=error"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{verb:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{verb:?}: {text}");
        assert!(text.contains("--insecure"), "{verb:?}: {text}");
    }
}

#[tokio::test]
async fn certificates_or_a_host_for_the_probes_are_enough() {
    let folder = Folder::new("listening-tls");
    let authority = Authority::new("fleet").unwrap();
    let leaf = authority.leaf(&["bigfleet://shard/s1"]).unwrap();
    let files = leaf.write(&folder.file("tls"), &authority.pem).unwrap();
    let flag = |name: &str, path: &Path| format!("--tls-{name}={}", path.display());
    let flags = [
        flag("cert", &files.cert),
        flag("key", &files.key),
        flag("ca", &files.ca),
        "--listen=0.0.0.0:0".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let secure = shard(&folder.file("secure"), NOBODY, &flags);
    assert!(secure.addr.ip().is_unspecified(), "{}", secure.addr);
    let scraped = ["--metrics-addr=0.0.0.0:0"];
    let scraped = shard(&folder.file("scraped"), NOBODY, &scraped);
    assert!(scraped.addr.ip().is_loopback(), "{}", scraped.addr);
    assert!(scraped.probes.ip().is_unspecified(), "{}", scraped.probes);
}

#[tokio::test]
async fn what_is_left_on_disk_is_its_owners_alone() {
    let folder = Folder::new("listening-modes");
    let data = folder.file("data");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open_to_all = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // One from before this rule.
    std::fs::create_dir(&data).unwrap();
    open_to_all(&data, 0o755);
    let audit = folder.file("data.audit");
    std::fs::write(&audit, "").unwrap();
    open_to_all(&audit, 0o644);
    let state = format!("--state={}", folder.file("cloud/state").display());
    let provider = provider(&[&state]);
    let shard = shard(&data, provider.addr, &[]);
    let pause = data.join("pause");
    std::fs::write(&pause, "").unwrap();
    open_to_all(&pause, 0o666);
    until("the pause file is private", async || {
        (mode(&pause) == 0o600, mode(&pause))
    })
    .await;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&folder.file("cloud")), 0o700);
    for file in [
        &data.join("shard.redb"),
        &data.join("epoch"),
        &audit,
        &folder.file("cloud/state"),
    ] {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    drop(shard);
}
