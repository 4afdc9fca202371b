//! A provider behind TLS: whom it lets in, for whom they may speak, and certificates that change
//! under it. Real certificates, real handshakes, the real process.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::processes::{Folder, Process, provider};
use bigfleet_net::testing::Authority;
use bigfleet_net::{Dial, Tls, TlsFiles};
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use tonic::{Code, Status};
use wire::capacity_provider_client::CapacityProviderClient;

type Client = CapacityProviderClient<Channel>;

const S1: &str = "bigfleet://shard/s1";

struct Scene {
    folder: Folder,
    ca: Authority,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = Folder::new(&format!("tls-{name}"));
        let ca = Authority::new("ca").unwrap();
        Self { folder, ca }
    }

    fn put(&self, name: &str, signer: &Authority, uris: &[&str], ca: &str) -> TlsFiles {
        let leaf = signer.leaf(uris).unwrap();
        leaf.write(&self.folder.file(name), ca).unwrap()
    }

    fn provider(&self) -> Process {
        let files = self.put("provider", &self.ca, &[], &self.ca.pem);
        let flags = flags(&files);
        provider(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A shard of ours.
    fn shard(&self, uri: &str) -> Option<Arc<Tls>> {
        let name = uri.rsplit('/').next().unwrap();
        Some(Tls::load(self.put(name, &self.ca, &[uri], &self.ca.pem)).unwrap())
    }
}

fn flags(files: &TlsFiles) -> Vec<String> {
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    vec![
        "--seed-count=4".to_owned(),
        flag("tls-cert", &files.cert),
        flag("tls-key", &files.key),
        flag("tls-ca", &files.ca),
    ]
}

/// A client on a connection of its own.
fn client(process: &Process, tls: Option<Arc<Tls>>) -> Client {
    let target = format!("localhost:{}", process.addr.port());
    Client::new(Dial::provider(tls).channel(&target).unwrap())
}

async fn list(process: &Process, tls: Option<Arc<Tls>>) -> Result<wire::MachineList, Status> {
    let answer = client(process, tls).list(wire::ListFilter::default()).await;
    answer.map(tonic::Response::into_inner)
}

async fn refused(process: &Process, tls: Option<Arc<Tls>>) {
    match list(process, tls).await {
        Ok(listed) => panic!("it was let in, and saw {} machines", listed.machines.len()),
        Err(status) => assert_ne!(status.code(), Code::PermissionDenied, "{status}"),
    }
}

fn create(machine_id: &str, shard_id: &str) -> wire::CreateRequest {
    wire::CreateRequest {
        machine_id: machine_id.to_owned(),
        shard_id: shard_id.to_owned(),
        shard_epoch: 5,
        sequence_number: 5,
        ..Default::default()
    }
}

#[tokio::test]
async fn the_right_certificate_gets_in_and_no_other() {
    let scene = Scene::new("callers");
    let mut process = scene.provider();
    let machines = list(&process, scene.shard(S1)).await.unwrap().machines;
    assert_eq!(machines.len(), 4);

    // What the caller gets to see depends on how far it has written; the provider knows why.
    let expired = scene.ca.expired(&[S1]).unwrap();
    let expired = expired.write(&scene.folder.file("expired"), &scene.ca.pem);
    let stranger = Authority::new("ca").unwrap();
    let outsider = scene.put("outsider", &stranger, &[S1], &scene.ca.pem);
    let silent = scene.put("silent", &scene.ca, &[S1], &scene.ca.pem);
    let strangers = [
        (None, "corrupt message"),
        (Some(Tls::load(expired.unwrap())), "expired"),
        (Some(Tls::load(outsider)), "certificate"),
        (Some(Tls::load_without_showing(silent)), "no certificates"),
    ];
    for (n, (tls, why)) in (1..).zip(strangers) {
        refused(&process, tls.map(Result::unwrap)).await;
        let said = process.logged_time(n, "a TLS handshake was refused");
        let said = said["fields"]["error"].to_string();
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(process.terminate(), Some(0));
}

#[tokio::test]
async fn a_shard_speaks_for_itself_only() {
    let scene = Scene::new("shards");
    let process = scene.provider();
    let mut s1 = client(&process, scene.shard(S1));
    let mut s2 = client(&process, scene.shard("bigfleet://shard/s2"));
    let before = s1.list(wire::ListFilter::default()).await.unwrap();
    let before = before.into_inner();
    let id = before.machines[0].id.clone();

    for claimed in ["s2", ""] {
        let denied = s1.create(create(&id, claimed)).await.unwrap_err();
        assert_eq!(denied.code(), Code::PermissionDenied);
        let wanted = format!("bigfleet://shard/{claimed}:");
        assert!(denied.message().contains(&wanted), "{}", denied.message());
        assert!(denied.message().contains(S1), "{}", denied.message());
    }
    let mut admin = client(&process, scene.shard("bigfleet://admin"));
    let denied = admin.create(create(&id, "s1")).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    let drain = wire::DrainRequest {
        machine_id: id.clone(),
        shard_id: "s2".to_owned(),
        ..Default::default()
    };
    let denied = s1.drain(drain).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);

    let after = admin.list(wire::ListFilter::default()).await.unwrap();
    assert_eq!(after.into_inner().revision, before.revision);
    // The refused token has left no mark, so the real s2 may use it.
    s2.create(create(&id, "s2")).await.unwrap();
    let replayed = s2.create(create(&id, "s2")).await.unwrap_err();
    assert_eq!(replayed.code(), Code::FailedPrecondition);
    assert_eq!(
        process.metric(
            "bigfleet_fake_grpc_requests_total{method=\"Create\",code=\"PermissionDenied\"}"
        ),
        3.0
    );
}

#[tokio::test]
async fn certificates_are_replaced_under_a_running_provider() {
    let scene = Scene::new("rotation");
    let mut process = scene.provider();
    let of_old = scene.shard(S1);
    let mut held = client(&process, of_old.clone());
    held.list(wire::ListFilter::default()).await.unwrap();

    let new = Authority::new("new").unwrap();
    let of_new = scene.put("of-new", &new, &[S1], &new.pem);
    let of_new = Some(Tls::load(of_new).unwrap());
    refused(&process, of_new.clone()).await;
    let files = scene.put("provider", &new, &[], &new.pem);
    list(&process, of_new.clone()).await.unwrap();
    refused(&process, of_old).await;
    held.list(wire::ListFilter::default())
        .await
        .expect("a connection that stands is not cut");

    let expiry = "bigfleet_fake_tls_certificate_expiry_timestamp_seconds";
    let before = process.metric(expiry);
    let refusals = "bigfleet_fake_tls_reloads_total{outcome=\"refused\"}";
    let so_far = process.metric(refusals);
    std::fs::write(&files.cert, "no certificate at all").unwrap();
    list(&process, of_new.clone()).await.unwrap();
    let said = process.logged("changed certificates refused; the last good ones stay");
    assert!(said.to_string().contains("cert.pem"), "{said}");
    list(&process, of_new).await.unwrap();
    assert_eq!(process.metric(refusals), so_far + 1.0);
    assert_eq!(process.metric(expiry), before);
}

#[test]
fn some_of_the_files_or_bad_ones_stop_the_start_and_are_named() {
    let scene = Scene::new("start");
    let files = scene.put("provider", &scene.ca, &[], &scene.ca.pem);
    let said = |flags: &[String]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        command.args(["provider", "fake", "--addr=127.0.0.1:0"]);
        let output = command.args(flags).output().unwrap();
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let some = said(&flags(&files)[..3]);
    assert!(
        some.contains("--tls-cert and --tls-key without --tls-ca"),
        "{some}"
    );
    let swapped = TlsFiles {
        key: files.ca.clone(),
        ..files
    };
    let bad = said(&flags(&swapped));
    assert!(bad.contains("ca.pem: no private key"), "{bad}");
}
