//! Who may call what on a shard: every method, for every kind of certificate, over real TLS.
//!
//! ```text
//!              Session of a   ShardRead   ShardAdmin
//! cluster a        yes           no           no
//! readonly         no            yes          no
//! admin            no            yes          yes
//! anyone else      no            no           no        (SE-2, RD-1, wire 7)
//! ```

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shard_scene;

use std::sync::Arc;

use bigfleet_net::testing::{Authority, Leaf};
use bigfleet_net::{Dial, Tls, TlsFiles};
use bigfleet_wire::v1alpha1 as wire;
use shard_scene::{Folder, Process, shard_flags};
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use wire::operator_message::Payload;
use wire::shard_admin_client::ShardAdminClient;
use wire::shard_client::ShardClient;
use wire::shard_read_client::ShardReadClient;

/// The services, by who may call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Session,
    Read,
    Admin,
}

/// Every method. What is asked is empty, so that an admin changes nothing.
const METHODS: [(&str, Surface); 13] = [
    ("Session", Surface::Session),
    ("InspectNeeds", Surface::Read),
    ("InspectMachines", Surface::Read),
    ("InspectClusters", Surface::Read),
    ("InspectWork", Surface::Read),
    ("InspectActions", Surface::Read),
    ("InspectRails", Surface::Read),
    ("ExplainNeed", Surface::Read),
    ("ExportFleet", Surface::Read),
    ("Pause", Surface::Admin),
    ("Resume", Surface::Admin),
    ("RetireMachine", Surface::Admin),
    ("ReleaseCluster", Surface::Admin),
];

/// What a method answers whom it lets in: those that require something name it as missing.
fn let_in(method: &str) -> Code {
    match method {
        "ExplainNeed" | "Pause" | "Resume" | "RetireMachine" | "ReleaseCluster" => {
            Code::InvalidArgument
        }
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

async fn call(method: &str, channel: &Channel) -> Result<(), Status> {
    let mut read = ShardReadClient::new(channel.clone());
    let mut admin = ShardAdminClient::new(channel.clone());
    match method {
        "Session" => first(ShardClient::new(channel.clone()).session(hello()).await).await,
        "InspectNeeds" => {
            first(
                read.inspect_needs(wire::InspectNeedsRequest::default())
                    .await,
            )
            .await
        }
        "InspectMachines" => {
            first(
                read.inspect_machines(wire::InspectMachinesRequest::default())
                    .await,
            )
            .await
        }
        "InspectClusters" => {
            first(
                read.inspect_clusters(wire::InspectClustersRequest::default())
                    .await,
            )
            .await
        }
        "InspectWork" => first(read.inspect_work(wire::InspectWorkRequest::default()).await).await,
        "InspectActions" => {
            first(
                read.inspect_actions(wire::InspectActionsRequest::default())
                    .await,
            )
            .await
        }
        "InspectRails" => read
            .inspect_rails(wire::InspectRailsRequest {})
            .await
            .map(drop),
        "ExplainNeed" => read
            .explain_need(wire::ExplainNeedRequest::default())
            .await
            .map(drop),
        "ExportFleet" => first(read.export_fleet(wire::ExportFleetRequest::default()).await).await,
        "Pause" => admin.pause(wire::PauseRequest::default()).await.map(drop),
        "Resume" => admin.resume(wire::ResumeRequest::default()).await.map(drop),
        "RetireMachine" => admin
            .retire_machine(wire::RetireMachineRequest::default())
            .await
            .map(drop),
        "ReleaseCluster" => admin
            .release_cluster(wire::ReleaseClusterRequest::default())
            .await
            .map(drop),
        other => panic!("{other} is no method"),
    }
}

fn code(answer: &Result<(), Status>) -> Code {
    answer.as_ref().err().map_or(Code::Ok, Status::code)
}

struct Scene {
    folder: Folder,
    ca: Authority,
    shard: Process,
    _provider: Process,
}

fn flags(files: &TlsFiles) -> Vec<String> {
    vec![
        format!("--tls-cert={}", files.cert.display()),
        format!("--tls-key={}", files.key.display()),
        format!("--tls-ca={}", files.ca.display()),
    ]
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let ca = Authority::new("ca").unwrap();
        let put = |name: &str, uris: &[&str]| {
            let leaf = ca.leaf(uris).unwrap();
            leaf.write(&folder.file(name), &ca.pem).unwrap()
        };
        let mut all = vec![
            "--addr=127.0.0.1:0".to_owned(),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            "--seed-count=2".to_owned(),
        ];
        all.extend(flags(&put("provider", &[])));
        let provider = Process::start(&["provider", "fake"], &all);
        let mut all = shard_flags(&folder.file("data"), provider.addr);
        all.extend(flags(&put("shard", &["bigfleet://shard/s1"])));
        let shard = Process::start(&["shard"], &all);
        Self {
            folder,
            ca,
            shard,
            _provider: provider,
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
    use Surface::{Admin, Read, Session};
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
        for (method, surface) in METHODS {
            let answer = call(method, &channel).await;
            let expected = match surfaces.contains(&surface) {
                true => let_in(method),
                false => Code::PermissionDenied,
            };
            assert_eq!(code(&answer), expected, "{name} calls {method}: {answer:?}");
            refused_sessions += i32::from((surface, expected) == (Session, Code::PermissionDenied));
            if expected == Code::PermissionDenied {
                let said = answer.unwrap_err().message().to_owned();
                assert!(said.contains(method), "{name} calls {method}: {said}");
            }
        }
    }
    let counted = "bigfleet_shard_session_identity_rejected_total";
    assert_eq!(scene.shard.metric(counted), f64::from(refused_sessions));
    assert_eq!(refused_sessions, 8, "of everybody but the cluster itself");
}

/// Whoever cannot prove what it is gets no answer at all, not even a refusal.
#[tokio::test]
async fn who_proves_nothing_is_not_answered() {
    let mut scene = Scene::new("strangers");
    let admin = ["bigfleet://admin"];
    let expired = scene.ca.expired(&admin).unwrap();
    let stranger = Authority::new("ca").unwrap().leaf(&admin).unwrap();
    let silent = scene.ca.leaf(&admin).unwrap();
    let silent = silent.write(&scene.folder.file("silent"), &scene.ca.pem);
    let silent = Tls::load_without_showing(silent.unwrap()).unwrap();
    let strangers = [
        ("expired", scene.channel("expired", &expired)),
        ("wrong ca", scene.channel("stranger", &stranger)),
        ("no certificate", scene.dial(Some(silent))),
        ("plaintext", scene.dial(None)),
    ];
    for (name, channel) in strangers {
        for (method, _) in METHODS {
            let answer = call(method, &channel).await;
            // A handshake that fails is not a status of the shard: the transport says so, in its words.
            let code = code(&answer);
            assert!(
                matches!(
                    code,
                    Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled
                ),
                "{name} calls {method}: {answer:?}"
            );
        }
    }
    scene.shard.logged("a TLS handshake was refused");
}

/// Plaintext is for networks that are trusted as a whole: nobody is checked.
#[tokio::test]
async fn without_tls_nobody_is_checked() {
    let folder = Folder::new("plaintext");
    let provider = shard_scene::provider(&["--seed-count=2"]);
    let shard = shard_scene::shard(&folder.file("data"), provider.addr, &[]);
    let channel = Dial::unknown(None)
        .channel(&shard.addr.to_string())
        .unwrap();
    for (method, _) in METHODS {
        let answer = call(method, &channel).await;
        assert_eq!(code(&answer), let_in(method), "{method}: {answer:?}");
    }
}
