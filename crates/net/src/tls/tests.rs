//! Certificates told by what they let in: real handshakes, real calls, files that change underneath.

use super::*;
use crate::testing::Authority;
use crate::{Caller, Dial, Identity, Limits, Serving, listen, serve};
use std::time::Duration;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthService;

const SHARD: &str = "bigfleet://shard/s1";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("bigfleet-net-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(folder))
    }

    fn put(&self, name: &str, authority: &Authority, uris: &[&str], ca: &str) -> TlsFiles {
        let leaf = authority.leaf(uris).unwrap();
        leaf.write(&self.0.join(name), ca).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A server whose only service is for shard s1.
async fn server(tls: Option<Arc<Tls>>) -> Serving {
    let health = HealthService::from_health_reporter(tonic_health::server::HealthReporter::new());
    let for_s1 = |request: tonic::Request<()>| {
        let wanted = Identity::Shard("s1".to_owned());
        Caller::of(&request).must_be(&wanted, "Check")?;
        Ok::<_, Status>(request)
    };
    let service = HealthServer::with_interceptor(health, for_s1);
    let router = Limits::SESSIONS.server().add_service(service);
    serve(listen("127.0.0.1:0").await.unwrap(), tls, router).unwrap()
}

async fn call(server: &Serving, tls: Option<Arc<Tls>>) -> Result<(), Status> {
    let port = server.addr().port();
    let channel = Dial::unknown(tls).channel(&format!("localhost:{port}"));
    let mut client = HealthClient::new(channel.unwrap());
    let answer = client.check(HealthCheckRequest::default()).await;
    answer.map(drop)
}

fn refused(answer: Result<(), Status>) -> String {
    let status = answer.expect_err("it should not have been let in");
    assert_ne!(status.code(), Code::PermissionDenied, "{status}");
    crate::chain(&status)
}

#[test]
fn some_of_the_three_files_are_refused_naming_both_sides() {
    let path = |name: &str| Some(PathBuf::from(name));
    assert_eq!(TlsFiles::all_or_none(None, None, None).unwrap(), None);
    assert_eq!(
        TlsFiles::all_or_none(path(""), None, None).unwrap(),
        None,
        "an empty flag is none"
    );
    let refused = TlsFiles::all_or_none(path("c"), path("k"), None).unwrap_err();
    let text = "TLS needs all three files or none: --tls-cert and --tls-key without --tls-ca";
    assert_eq!(refused.to_string(), text);
}

#[test]
fn a_set_that_cannot_be_used_is_refused_by_file_at_start() {
    let folder = Folder::new("start");
    let ca = Authority::new("ca").unwrap();
    let good = folder.put("a", &ca, &[SHARD], &ca.pem);
    let other = folder.put("b", &ca, &[SHARD], &ca.pem);
    let problem = |files: TlsFiles| Tls::load(files).unwrap_err().to_string();
    let missing = folder.0.join("missing.pem");
    let files = TlsFiles {
        ca: missing,
        ..good.clone()
    };
    assert!(problem(files).contains("missing.pem"));
    let files = TlsFiles {
        ca: good.key.clone(),
        ..good.clone()
    };
    assert!(problem(files).contains("no certificate"));
    let files = TlsFiles {
        key: other.key,
        ..good
    };
    let mismatch = problem(files);
    assert!(mismatch.contains("cert.pem and"), "{mismatch}");
}

#[tokio::test]
async fn the_right_caller_passes_and_others_do_not() {
    let folder = Folder::new("callers");
    let (ca, stranger) = (Authority::new("ca").unwrap(), Authority::new("ca").unwrap());
    let load = |files| Some(Tls::load(files).unwrap());
    let server = server(load(folder.put("server", &ca, &[], &ca.pem))).await;
    call(&server, load(folder.put("s1", &ca, &[SHARD], &ca.pem)))
        .await
        .unwrap();

    let s2 = folder.put("s2", &ca, &["bigfleet://shard/s2"], &ca.pem);
    let denied = call(&server, load(s2)).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    assert!(denied.message().contains("shard/s1") && denied.message().contains("shard/s2"));

    let outsider = folder.put("outsider", &stranger, &[SHARD], &ca.pem);
    refused(call(&server, load(outsider)).await);
    let expired = ca.expired(&[SHARD]).unwrap();
    let expired = expired.write(&folder.0.join("expired"), &ca.pem).unwrap();
    refused(call(&server, load(expired)).await);
    let silent = folder.put("silent", &ca, &[SHARD], &ca.pem);
    let silent = Tls::load_without_showing(silent).unwrap();
    refused(call(&server, Some(silent)).await);
    refused(call(&server, None).await);
    assert!(server.stop(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn a_client_does_not_talk_to_a_server_it_cannot_verify() {
    let folder = Folder::new("servers");
    let (ca, stranger) = (Authority::new("ca").unwrap(), Authority::new("ca").unwrap());
    let load = |files| Some(Tls::load(files).unwrap());
    let client = load(folder.put("client", &ca, &[SHARD], &ca.pem));
    let impostor = server(load(folder.put("server", &stranger, &[], &ca.pem))).await;
    let text = refused(call(&impostor, client.clone()).await);
    assert!(text.contains("certificate"), "{text}");
    let plain = server(None).await;
    refused(call(&plain, client).await);
    call(&plain, None).await.unwrap();
}

#[tokio::test]
async fn replaced_files_count_from_the_next_connection_on() {
    let folder = Folder::new("rotate");
    let (old, new) = (
        Authority::new("old").unwrap(),
        Authority::new("new").unwrap(),
    );
    let ours = Tls::load(folder.put("server", &old, &[], &old.pem)).unwrap();
    let server = server(Some(Arc::clone(&ours))).await;
    let load = |files| Some(Tls::load(files).unwrap());
    let of_old = load(folder.put("of-old", &old, &[SHARD], &old.pem));
    let of_new = load(folder.put("of-new", &new, &[SHARD], &new.pem));
    call(&server, of_old.clone()).await.unwrap();
    refused(call(&server, of_new.clone()).await);

    folder.put("server", &new, &[], &new.pem);
    call(&server, of_new.clone()).await.unwrap();
    refused(call(&server, of_old).await);
    let reloaded = ours.counts().reloaded;
    assert!(0 < reloaded, "nothing was reloaded");

    let before = ours.counts();
    let cert = folder.0.join("server/cert.pem");
    std::fs::write(&cert, "-----BEGIN CERTIFICATE-----\nnot quite").unwrap();
    call(&server, of_new.clone()).await.unwrap();
    call(&server, of_new).await.unwrap();
    let after = ours.counts();
    assert_eq!(after.refused, before.refused + 1, "said once, not per call");
    assert_eq!(after.expires_unix_seconds, before.expires_unix_seconds);
}
