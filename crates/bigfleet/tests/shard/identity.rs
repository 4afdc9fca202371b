//! Who may call what on a shard: every method there is, for every kind of certificate, over real TLS; and
//! certificates that change under it.
//!
//! ```text
//!              Session of a   ShardRead   ShardAdmin   health, reflection
//! cluster a        yes           no           no              yes
//! readonly         no            yes          no              yes
//! admin            no            yes          yes             yes
//! anyone else      no            no           no              yes      (SE-2, RD-1, wire 7)
//! ```
//!
//! The methods are those of the descriptors, so that one added tomorrow is in the matrix tomorrow.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::shard_scene::{Folder, Process, shard_flags, until};
use bigfleet_net::testing::{Authority, Leaf};
use bigfleet_net::{Dial, Tls, TlsFiles};
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use wire::operator_message::Payload;
use wire::shard_client::ShardClient;

/// The services, by who may call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Session,
    Read,
    Admin,
    /// Whoever has a certificate at all.
    Anyone,
    /// It is another process that serves it.
    Elsewhere,
}

/// One method of a service.
#[derive(Clone, Debug)]
struct Method {
    surface: Surface,
    name: String,
    path: String,
}

/// Every method of the contract, and those every gRPC server has.
fn methods() -> Vec<Method> {
    let sets = [
        bigfleet_wire::FILE_DESCRIPTOR_SET,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    ];
    let mut methods = Vec::new();
    for set in sets {
        let set = prost_types::FileDescriptorSet::decode(set).unwrap();
        for file in set.file {
            for service in &file.service {
                let service_name = format!("{}.{}", file.package(), service.name());
                let surface = match service_name.as_str() {
                    "bigfleet.v1alpha1.Shard" => Surface::Session,
                    "bigfleet.v1alpha1.ShardRead" => Surface::Read,
                    "bigfleet.v1alpha1.ShardAdmin" => Surface::Admin,
                    other if other.starts_with("grpc.") => Surface::Anyone,
                    _ => Surface::Elsewhere,
                };
                methods.extend(service.method.iter().map(|method| Method {
                    surface,
                    name: method.name().to_owned(),
                    path: format!("/{service_name}/{}", method.name()),
                }));
            }
        }
    }
    methods
}

/// What a method answers whom it lets in. What is asked is empty, so that an admin changes nothing: those
/// that require something name it as missing.
fn let_in(method: &Method) -> Code {
    match method.name.as_str() {
        "ExplainNeed" | "Pause" | "Resume" | "RetireMachine" | "ReleaseCluster"
        | "DrainMachines" | "UndrainMachines" => Code::InvalidArgument,
        "ServerReflectionInfo" => Code::InvalidArgument,
        _ if method.surface == Surface::Elsewhere => Code::Unimplemented,
        _ => Code::Ok,
    }
}

async fn first<T>(answer: Result<Response<Streaming<T>>, Status>) -> Result<(), Status> {
    let first = answer?.into_inner().message().await?;
    first
        .map(drop)
        .ok_or_else(|| Status::data_loss("an empty stream"))
}

/// Hello, and then nothing, but without hanging up.
fn hello() -> Request<impl tokio_stream::Stream<Item = wire::OperatorMessage>> {
    let hello = wire::Hello {
        cluster_id: "a".to_owned(),
        protocol_version: "v1alpha1".to_owned(),
        features: Vec::new(),
    };
    let hello = tokio_stream::once(Payload::Hello(hello).into());
    Request::new(hello.chain(tokio_stream::pending()))
}

/// Calls it with a message that has no field, which is one of every type; what comes back is read as one.
async fn call(method: &Method, channel: &Channel) -> Result<(), Status> {
    if method.surface == Surface::Session {
        return first(ShardClient::new(channel.clone()).session(hello()).await).await;
    }
    let mut client = tonic::client::Grpc::new(channel.clone());
    let unready = |why| Status::unavailable(format!("{why}"));
    client.ready().await.map_err(unready)?;
    let path = method.path.parse().unwrap();
    let codec = ProstCodec::<(), ()>::default();
    let answer = client.server_streaming(Request::new(()), path, codec).await;
    first(answer).await
}

fn code(answer: &Result<(), Status>) -> Code {
    answer.as_ref().err().map_or(Code::Ok, Status::code)
}

struct Scene {
    folder: Folder,
    ca: Authority,
    shard: Process,
    provider: Option<Process>,
}

fn flags(files: &TlsFiles) -> Vec<String> {
    vec![
        format!("--tls-cert={}", files.cert.display()),
        format!("--tls-key={}", files.key.display()),
        format!("--tls-ca={}", files.ca.display()),
    ]
}

const SHARD: [&str; 1] = ["bigfleet://shard/s1"];
const ADMIN: [&str; 1] = ["bigfleet://admin"];

/// Puts a leaf where it is read from, with whom its holder trusts.
fn put(folder: &Folder, name: &str, signer: &Authority, uris: &[&str]) -> TlsFiles {
    let leaf = signer.leaf(uris).unwrap();
    leaf.write(&folder.file(name), &signer.pem).unwrap()
}

fn provider(files: &TlsFiles, addr: &str) -> Process {
    let mut all = vec![
        format!("--addr={addr}"),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        "--seed-count=2".to_owned(),
    ];
    all.extend(flags(files));
    Process::start(&["provider", "fake"], &all)
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let ca = Authority::new("ca").unwrap();
        let provider = provider(&put(&folder, "provider", &ca, &[]), "127.0.0.1:0");
        let mut all = shard_flags(&folder.file("data"), provider.addr);
        all.extend(flags(&put(&folder, "shard", &ca, &SHARD)));
        let shard = Process::start(&["shard"], &all);
        Self {
            folder,
            ca,
            shard,
            provider: Some(provider),
        }
    }

    /// A connection of its own, for whoever shows this.
    fn channel(&self, name: &str, leaf: &Leaf) -> Channel {
        let files = leaf.write(&self.folder.file(name), &self.ca.pem).unwrap();
        self.dial(Some(Tls::load(files).unwrap()))
    }

    fn dial(&self, tls: Option<Arc<Tls>>) -> Channel {
        let target = format!("localhost:{}", self.shard.addr.port());
        Dial::unknown(tls).channel(&target).unwrap()
    }
}

#[tokio::test]
async fn every_method_lets_in_whom_it_is_for_and_nobody_else() {
    use Surface::{Admin, Anyone, Elsewhere, Read, Session};
    let scene = Scene::new("identity");
    let mut refused_sessions = 0;
    let matrix: [(&str, &[&str], &[Surface]); 9] = [
        ("cluster-a", &["bigfleet://cluster/a"], &[Session]),
        ("cluster-b", &["bigfleet://cluster/b"], &[]),
        ("shard", &["bigfleet://shard/s1"], &[]),
        ("provider", &["bigfleet://provider/p"], &[]),
        ("readonly", &["bigfleet://readonly"], &[Read]),
        ("admin", &["bigfleet://admin"], &[Read, Admin]),
        ("foreign", &["spiffe://example.org/admin"], &[]),
        ("none", &[], &[]),
        ("both", &["bigfleet://admin", "bigfleet://cluster/a"], &[]),
    ];
    for (name, uris, surfaces) in matrix {
        let channel = scene.channel(name, &scene.ca.leaf(uris).unwrap());
        for method in methods() {
            let answer = call(&method, &channel).await;
            let (surface, path) = (method.surface, &method.path);
            let open = matches!(surface, Anyone | Elsewhere) || surfaces.contains(&surface);
            let expected = if open {
                let_in(&method)
            } else {
                Code::PermissionDenied
            };
            assert_eq!(code(&answer), expected, "{name} calls {path}: {answer:?}");
            refused_sessions += i32::from((surface, expected) == (Session, Code::PermissionDenied));
            if expected == Code::PermissionDenied {
                let said = answer.unwrap_err().message().to_owned();
                assert!(said.contains(&method.name), "{name} calls {path}: {said}");
            }
        }
    }
    let counted = "bigfleet_shard_session_identity_rejected_total";
    let refused = f64::from(refused_sessions);
    scene.shard.shows(counted, refused).await;
    assert_eq!(refused_sessions, 8, "of everybody but the cluster itself");
}

/// Whoever cannot prove what it is gets no answer at all, not even a refusal.
#[tokio::test]
async fn who_proves_nothing_is_not_answered() {
    let mut scene = Scene::new("strangers");
    let expired = scene.ca.expired(&ADMIN).unwrap();
    let stranger = Authority::new("ca").unwrap().leaf(&ADMIN).unwrap();
    let silent = scene.ca.leaf(&ADMIN).unwrap();
    let silent = silent.write(&scene.folder.file("silent"), &scene.ca.pem);
    let silent = Tls::load_without_showing(silent.unwrap()).unwrap();
    let strangers = [
        ("expired", scene.channel("expired", &expired)),
        ("wrong ca", scene.channel("stranger", &stranger)),
        ("no certificate", scene.dial(Some(silent))),
        ("plaintext", scene.dial(None)),
    ];
    for (name, channel) in strangers {
        for method in methods() {
            let answer = call(&method, &channel).await;
            // A handshake that fails is not a status of the shard: the transport says so, in its words.
            let code = code(&answer);
            assert!(
                matches!(
                    code,
                    Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled
                ),
                "{name} calls {method:?}: {answer:?}"
            );
        }
    }
    scene.shard.logged("a TLS handshake was refused");
}

/// Plaintext is for networks that are trusted as a whole: nobody is checked.
#[tokio::test]
async fn without_tls_nobody_is_checked() {
    let folder = Folder::new("plaintext");
    let provider = crate::shard_scene::provider(&["--seed-count=2"]);
    let shard = crate::shard_scene::shard(&folder.file("data"), provider.addr, &[]);
    let channel = Dial::unknown(None)
        .channel(&shard.addr.to_string())
        .unwrap();
    for method in methods() {
        let answer = call(&method, &channel).await;
        assert_eq!(code(&answer), let_in(&method), "{method:?}: {answer:?}");
    }
}

/// Whether an admin with a certificate of this authority's is let in, on a connection of its own.
async fn lets_in(scene: &Scene, signer: &Authority) -> bool {
    let files = put(&scene.folder, "rotated-admin", signer, &ADMIN);
    looks(&scene.dial(Some(Tls::load(files).unwrap()))).await
}

async fn looks(channel: &Channel) -> bool {
    let mut reader = wire::shard_read_client::ShardReadClient::new(channel.clone());
    reader
        .inspect_rails(wire::InspectRailsRequest {})
        .await
        .is_ok()
}

/// All of it is replaced under a running shard: its own certificate, the authority it trusts, and what it
/// shows to the provider.
#[tokio::test]
async fn certificates_are_replaced_under_a_running_shard() {
    let mut scene = Scene::new("rotation");
    let new = Authority::new("new").unwrap();
    assert!(lets_in(&scene, &scene.ca).await);
    assert!(!lets_in(&scene, &new).await, "nobody knows it yet");
    let held = scene.channel("held", &scene.ca.leaf(&ADMIN).unwrap());
    assert!(looks(&held).await);

    let files = put(&scene.folder, "shard", &new, &SHARD);
    assert!(lets_in(&scene, &new).await);
    assert!(
        !lets_in(&scene, &scene.ca).await,
        "it is not trusted any more"
    );
    assert!(looks(&held).await, "a connection that stands is not cut");

    // A provider that trusts the new authority only, and is trusted by it only.
    let of_provider = put(&scene.folder, "provider", &new, &[]);
    let before = scene.provider.take().unwrap();
    let addr = before.addr.to_string();
    before.kill();
    let failed = || scene.shard.metric("bigfleet_shard_lists_failed_total");
    until("a List that fails", async || (1.0 <= failed(), failed())).await;
    scene.provider = Some(provider(&of_provider, &addr));
    let lists = || scene.shard.metric("bigfleet_shard_lists_total");
    let so_far = lists();
    until("Lists that succeed", async || {
        (so_far + 2.0 <= lists(), lists())
    })
    .await;

    std::fs::write(&files.cert, "no certificate at all").unwrap();
    assert!(lets_in(&scene, &new).await, "the last good one stays");
    let said = scene
        .shard
        .logged("changed certificates refused; the last good ones stay");
    assert!(said.to_string().contains("cert.pem"), "{said}");
}

/// SE-9, wire 8.4: whoever never finishes shaking hands costs little and silences no probe; nor does one identity
/// keep others out, however many connections it opens.
#[tokio::test]
async fn connections_cost_little_and_one_caller_does_not_take_them_all() {
    let scene = Scene::new("identity-many");
    let (before, most) = (scene.shard.memory_mb(), 120.0);
    let half_shaken = || {
        let mut stream = std::net::TcpStream::connect(scene.shard.addr).unwrap();
        // The head of a ClientHello of 16 KiB, and next to nothing of it.
        stream.write_all(&[22, 3, 1, 64, 0, 1]).unwrap();
        stream
    };
    let half: Vec<_> = (0..2000).map(|_| half_shaken()).collect();
    let began = Instant::now();
    let answer = scene.shard.http("/healthz");
    assert!(answer.contains(" 200 "), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(1));
    let reader = scene.ca.leaf(&["bigfleet://readonly"]).unwrap();
    let mut open = Vec::new();
    let refused = loop {
        let channel = scene.channel("reader", &reader);
        let asked = tonic_health::pb::HealthCheckRequest::default();
        let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
        match health.watch(asked).await {
            Ok(watching) => open.push((health, watching)),
            Err(status) => break status,
        }
        assert!(open.len() <= 256, "a reader has as many as it likes");
    };
    // Which of these it is depends on how far the call was when the connection closed.
    let closed = [Code::Unavailable, Code::Unknown, Code::Cancelled];
    let is_closed = closed.contains(&refused.code());
    assert!(is_closed && open.len() == 256, "{refused}");
    let admin = scene.channel("admin", &scene.ca.leaf(&ADMIN).unwrap());
    let mut admin = wire::shard_read_client::ShardReadClient::new(admin);
    let asked = wire::InspectRailsRequest::default();
    admin.inspect_rails(asked).await.unwrap();
    let after = scene.shard.memory_mb();
    assert!(after < most, "{before} MB, then {after} MB");
    drop((half, open));
}
