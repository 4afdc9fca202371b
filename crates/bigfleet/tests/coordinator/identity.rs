//! Who may call what on a coordinator: every method there is, for every kind of certificate, on both ports, over real TLS.
//!
//! ```text
//!               its own report   reads   changes   between replicas   health
//! shard s1           yes          no       no            no             yes
//! readonly           no           yes      no            no             yes
//! admin              no           yes      yes           yes            yes
//! anyone else        no           no       no            no             yes     (CO-45)
//! ```
//!
//! The methods are those of the descriptors. One that is added tomorrow is an admin's here, until somebody says otherwise.

use crate::group::own;
use crate::processes::{Folder, Process, until};
use crate::verbs::{json, says};
use bigfleet_net::testing::{Authority, Leaf};
use bigfleet_net::{Dial, Tls, TlsFiles};
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use wire::coordinator_client::CoordinatorClient;

/// The methods, by who may call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Report,
    Read,
    Change,
    Peer,
    /// Whoever has a certificate at all.
    Anyone,
    /// It is another process that serves it.
    Elsewhere,
}

const READS: [&str; 7] = [
    "ListShards",
    "ListDomainAssignments",
    "ListShardReports",
    "ListReplicas",
    "ListDomains",
    "ListClusters",
    "ListInstructions",
];

#[derive(Clone, Debug)]
struct Method {
    surface: Surface,
    name: String,
    path: String,
}

impl Method {
    /// Whether it is served on the port of shards and admins, or on that of replicas.
    fn is_on(&self, port: Port) -> bool {
        match self.surface {
            Surface::Elsewhere => false,
            Surface::Peer => port == Port::Raft,
            _ => port == Port::Grpc,
        }
    }

    /// What it answers whom it lets in. What is asked is empty, so that nothing is changed.
    fn let_in(&self, port: Port) -> Code {
        if !self.is_on(port) {
            return Code::Unimplemented;
        }
        match self.name.as_str() {
            "AssignDomain" | "UnassignDomain" | "RemoveShard" | "JoinRaftCluster"
            | "RemovePeer" => Code::InvalidArgument,
            // There is nobody to hand over to, nothing to finish, and no replica of number 0.
            "TransferLeader" | "FinishRestore" | "Exchange" => Code::Aborted,
            _ => Code::Ok,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Grpc,
    Raft,
}

fn methods() -> Vec<Method> {
    let sets = [
        bigfleet_wire::FILE_DESCRIPTOR_SET,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
    ];
    let mut methods = Vec::new();
    for set in sets {
        let set = prost_types::FileDescriptorSet::decode(set).unwrap();
        for file in set.file {
            for service in &file.service {
                let service_name = format!("{}.{}", file.package(), service.name());
                let surface = |name: &str| match service_name.as_str() {
                    "bigfleet.v1alpha1.CoordinatorPeer" => Surface::Peer,
                    "bigfleet.v1alpha1.Coordinator" | "bigfleet.v1alpha1.CoordinatorAdmin" => {
                        match name {
                            "ReportShard" => Surface::Report,
                            name if READS.contains(&name) => Surface::Read,
                            _ => Surface::Change,
                        }
                    }
                    other if other.starts_with("grpc.health") => Surface::Anyone,
                    _ => Surface::Elsewhere,
                };
                methods.extend(service.method.iter().map(|method| Method {
                    surface: surface(method.name()),
                    name: method.name().to_owned(),
                    path: format!("/{service_name}/{}", method.name()),
                }));
            }
        }
    }
    methods
}

async fn first<T>(answer: Result<Response<Streaming<T>>, Status>) -> Result<(), Status> {
    let first = answer?.into_inner().message().await?;
    first
        .map(drop)
        .ok_or_else(|| Status::data_loss("an empty stream"))
}

/// A report of shard s1. One of nobody is refused before anybody asks whose it is.
fn report() -> wire::ShardReport {
    wire::ShardReport {
        shard_id: "s1".to_owned(),
        cycle: 1,
        shard_epoch: 1,
        directory: 7,
        process: "0123456789abcdef".to_owned(),
        summary: Some(wire::ShardSummary::default()),
        ..wire::ShardReport::default()
    }
}

async fn call(method: &Method, channel: &Channel) -> Result<(), Status> {
    if method.surface == Surface::Report {
        let mut client = CoordinatorClient::new(channel.clone());
        return client.report_shard(report()).await.map(drop);
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

const ADMIN: [&str; 1] = ["bigfleet://admin"];

fn tls_flags(files: &TlsFiles) -> Vec<String> {
    vec![
        format!("--tls-cert={}", files.cert.display()),
        format!("--tls-key={}", files.key.display()),
        format!("--tls-ca={}", files.ca.display()),
    ]
}

struct Scene {
    folder: Folder,
    ca: Authority,
    process: Process,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let ca = Authority::new("ca").unwrap();
        let leaf = ca.leaf(&ADMIN).unwrap();
        let files = leaf.write(&folder.file("own"), &ca.pem).unwrap();
        let process = alone(&folder, &tls_flags(&files));
        Self {
            folder,
            ca,
            process,
        }
    }

    fn channel(&self, name: &str, leaf: &Leaf, port: Port) -> Channel {
        let files = leaf.write(&self.folder.file(name), &self.ca.pem).unwrap();
        dial(Some(Tls::load(files).unwrap()), self.addr(port))
    }

    fn addr(&self, port: Port) -> SocketAddr {
        addr(&self.process, port)
    }
}

fn addr(process: &Process, port: Port) -> SocketAddr {
    match port {
        Port::Grpc => process.addr,
        Port::Raft => {
            let line = process.all_logged("listening").remove(0);
            line["fields"]["raft"].as_str().unwrap().parse().unwrap()
        }
    }
}

fn dial(tls: Option<Arc<Tls>>, addr: SocketAddr) -> Channel {
    let target = format!("localhost:{}", addr.port());
    Dial::unknown(tls).channel(&target).unwrap()
}

/// A group of one that leads.
fn alone(folder: &Folder, more: &[String]) -> Process {
    let mut flags = vec![
        "--bootstrap".to_owned(),
        "--listen=127.0.0.1:0".to_owned(),
        "--raft-bind=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        format!("--data-dir={}", folder.file("data").display()),
    ];
    flags.extend(more.iter().cloned());
    let mut process = Process::start(&["coordinator"], &flags);
    process.logged("this replica leads");
    process
}

#[tokio::test]
async fn every_method_lets_in_whom_it_is_for_and_nobody_else() {
    use Surface::{Anyone, Change, Elsewhere, Peer, Read, Report};
    let scene = Scene::new("coordinator-identity");
    let matrix: [(&str, &[&str], &[Surface]); 10] = [
        ("cluster", &["bigfleet://cluster/a"], &[]),
        ("shard", &["bigfleet://shard/s1"], &[Report]),
        ("other-shard", &["bigfleet://shard/s2"], &[]),
        ("longer-shard", &["bigfleet://shard/s1/"], &[]),
        ("provider", &["bigfleet://provider/p"], &[]),
        ("readonly", &["bigfleet://readonly"], &[Read]),
        ("admin", &["bigfleet://admin"], &[Read, Change, Peer]),
        ("foreign", &["spiffe://example.org/admin"], &[]),
        ("none", &[], &[]),
        ("both", &["bigfleet://admin", "bigfleet://shard/s1"], &[]),
    ];
    let (mut cells, mut refused_reports) = (0, 0);
    for (name, uris, surfaces) in matrix {
        for port in [Port::Grpc, Port::Raft] {
            let channel = scene.channel(name, &scene.ca.leaf(uris).unwrap(), port);
            for method in methods() {
                let answer = call(&method, &channel).await;
                let (surface, path) = (method.surface, &method.path);
                let is_open = matches!(surface, Anyone | Elsewhere)
                    || !method.is_on(port)
                    || surfaces.contains(&surface);
                let expected = if is_open {
                    method.let_in(port)
                } else {
                    Code::PermissionDenied
                };
                assert_eq!(code(&answer), expected, "{name} calls {path}: {answer:?}");
                let is_refused = expected == Code::PermissionDenied;
                refused_reports += u32::from(is_refused && surface == Report);
                cells += 1;
            }
        }
    }
    assert!(300 < cells, "{cells}");
    let counted = "bigfleet_coordinator_identity_rejected_total{rpc=\"ReportShard\"}";
    assert_eq!(refused_reports, 9, "of everybody but the shard itself");
    scene.process.shows(counted, refused_reports.into()).await;
}

/// Whoever cannot prove what it is gets no answer at all, not even a refusal.
#[tokio::test]
async fn who_proves_nothing_is_not_answered() {
    let mut scene = Scene::new("coordinator-strangers");
    let expired = scene.ca.expired(&ADMIN).unwrap();
    let stranger = Authority::new("ca").unwrap().leaf(&ADMIN).unwrap();
    let silent = scene.ca.leaf(&ADMIN).unwrap();
    let silent = silent.write(&scene.folder.file("silent"), &scene.ca.pem);
    let silent = Tls::load_without_showing(silent.unwrap()).unwrap();
    for port in [Port::Grpc, Port::Raft] {
        let addr = scene.addr(port);
        let strangers = [
            ("expired", scene.channel("expired", &expired, port)),
            ("wrong ca", scene.channel("stranger", &stranger, port)),
            ("no certificate", dial(Some(Arc::clone(&silent)), addr)),
            ("plaintext", dial(None, addr)),
        ];
        for (name, channel) in strangers {
            for method in methods() {
                let answer = call(&method, &channel).await;
                // A handshake that fails is not a status of the coordinator: the transport says so, in its words.
                let is_cut_off = matches!(
                    code(&answer),
                    Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled
                );
                assert!(is_cut_off, "{name} calls {method:?}: {answer:?}");
            }
        }
    }
    scene.process.logged("a TLS handshake was refused");
}

/// Plaintext is for networks that are trusted as a whole: nobody is checked.
#[tokio::test]
async fn without_tls_nobody_is_checked() {
    let folder = Folder::new("coordinator-plaintext");
    let process = alone(&folder, &[]);
    for port in [Port::Grpc, Port::Raft] {
        let channel = dial(None, addr(&process, port));
        for method in methods() {
            let answer = call(&method, &channel).await;
            assert_eq!(code(&answer), method.let_in(port), "{method:?}: {answer:?}");
        }
    }
    assert!(process.text().contains("no certificates"), "it says so");
}

/// The listening rules of a shard (wire 8.4): other hosts are let in with certificates, or if somebody says so.
#[tokio::test]
async fn other_hosts_are_served_without_certificates_only_if_somebody_says_so() {
    let folder = Folder::new("coordinator-listening");
    for flag in ["--listen=0.0.0.0:0", "--raft-bind=0.0.0.0:0"] {
        let data = format!("--data-dir={}", folder.file("none").display());
        let args = [
            "coordinator",
            "--bootstrap",
            "--metrics-addr=0",
            &data,
            flag,
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        let output = command.args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{flag}: {said}");
        assert!(
            said.contains("--insecure") && said.lines().count() == 1,
            "{flag}: {said}"
        );
    }
    let open = ["--listen=0.0.0.0:0", "--raft-bind=0.0.0.0:0", "--insecure"];
    let data = format!("--data-dir={}", folder.file("open").display());
    let mut flags: Vec<String> = open.map(str::to_owned).to_vec();
    flags.extend([
        "--bootstrap".to_owned(),
        "--metrics-addr=:0".to_owned(),
        data,
    ]);
    let open = Process::start(&["coordinator"], &flags);
    for port in [Port::Grpc, Port::Raft] {
        assert!(addr(&open, port).ip().is_unspecified());
    }
    assert!(open.probes.ip().is_loopback());
}

/// Certificates are replaced under a running replica; what does not load is not taken.
#[tokio::test]
async fn certificates_are_replaced_under_a_running_coordinator() {
    let mut scene = Scene::new("coordinator-rotation");
    let new = Authority::new("new").unwrap();
    let lets_in = async |scene: &Scene, signer: &Authority| {
        let leaf = signer.leaf(&ADMIN).unwrap();
        let files = leaf
            .write(&scene.folder.file("caller"), &signer.pem)
            .unwrap();
        let channel = dial(Some(Tls::load(files).unwrap()), scene.process.addr);
        let mut client = CoordinatorClient::new(channel);
        client.list_shards(wire::ListShardsRequest {}).await.is_ok()
    };
    assert!(lets_in(&scene, &scene.ca).await);
    assert!(!lets_in(&scene, &new).await, "nobody knows it yet");
    let leaf = new.leaf(&ADMIN).unwrap();
    let files = leaf.write(&scene.folder.file("own"), &new.pem).unwrap();
    assert!(lets_in(&scene, &new).await);
    assert!(!lets_in(&scene, &scene.ca).await, "it is trusted no more");
    std::fs::write(&files.cert, "half a certifi").unwrap();
    assert!(lets_in(&scene, &new).await, "the last good one stays");
    scene
        .process
        .logged("changed certificates refused; the last good ones stay");
    std::fs::remove_file(&files.key).unwrap();
    assert!(lets_in(&scene, &new).await, "also if one is gone");
}

/// Three replicas with certificates of `bigfleet certs`: they form, and one that is lost is replaced.
#[tokio::test]
async fn replicas_with_certificates_form_a_group() {
    let folder = Folder::new("coordinator-tls");
    let ports: Vec<(SocketAddr, SocketAddr)> = (0..3).map(|_| (own(), own())).collect();
    let host = ports[0].0.ip().to_string();
    let certs = format!("--dir={}", folder.file("certs").display());
    says(&["certs", "init", &certs]);
    let all: Vec<String> = ports.iter().map(|(at, _)| at.to_string()).collect();
    let files = |role: &str, name: &str| {
        let out = folder.file(name);
        let out_flag = format!("--out={}", out.display());
        let issue = [
            "certs", "issue", role, name, "--host", &host, &certs, &out_flag,
        ];
        says(&issue);
        TlsFiles {
            cert: out.join("cert.pem"),
            key: out.join("key.pem"),
            ca: out.join("ca.pem"),
        }
    };
    let start = |nth: usize, data: &str, files: &TlsFiles| {
        let (grpc, raft) = ports[nth];
        let mut flags = vec![
            format!("--id=coordinator-{nth}"),
            format!("--listen={grpc}"),
            format!("--raft-bind={raft}"),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            format!(
                "--data-dir={}",
                folder.file(&format!("{data}-{nth}")).display()
            ),
            format!("--join-addr={}", all.join(",")),
        ];
        flags.extend(tls_flags(files));
        Process::start(&["coordinator"], &flags)
    };
    let theirs = files("coordinator", "coordinator-0");
    let mut running: Vec<Process> = (0..3).map(|nth| start(nth, "data", &theirs)).collect();
    for process in &mut running {
        process.logged("this replica votes");
    }
    let admin = tls_flags(&files("admin", "me"));
    let at = format!("--coordinator={}", all.join(","));
    let ask = |words: &[&str]| {
        let flags = admin.iter().map(String::as_str);
        let words: Vec<&str> = words
            .iter()
            .copied()
            .chain([at.as_str()])
            .chain(flags)
            .collect();
        json(&words)
    };
    let replicas = ask(&["get", "replicas"]);
    let leads = |one: &&serde_json::Value| one["leader"] == true;
    let items = replicas["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "{replicas}");
    let leader = items.iter().find(leads).unwrap()["name"].clone();
    let nth: usize = leader.as_str().unwrap()[12..].parse().unwrap();
    running[nth].end();
    let shards = ask(&["get", "shards"]);
    assert_eq!(shards["items"].as_array().unwrap().len(), 0);
    // One whose certificate is a shard's joins nothing: replicas are admins to one another.
    let wrong = start(nth, "wrong", &files("shard", "s1"));
    until("a refusal of its calls", async || {
        let text = wrong.text();
        (text.contains("needs bigfleet://admin"), text)
    })
    .await;
}
