//! Shards that are not there, not ours to ask, too old, or not telling the truth.

use std::net::SocketAddr;
use std::sync::Arc;

use bigfleet_net::testing::{Authority, Leaf};
use bigfleet_wire::v1alpha1 as wire;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codegen::BoxStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use wire::export_fleet_response::Frame;
use wire::shard_read_server::{ShardRead, ShardReadServer};

use crate::called::{call, call_in};
use crate::scene::Scene;
use crate::shard_scene::{Folder, provider, shard};

/// Every verb that asks a shard, with what it must say besides.
const VERBS: [&[&str]; 10] = [
    &["get", "clusters"],
    &["get", "needs"],
    &["get", "machines", "-o=json"],
    &["get", "actions"],
    &["describe", "cluster", "a"],
    &["explain", "a"],
    &["pause", "--reason=x"],
    &["resume", "--reason=x"],
    &["get", "pauses"],
    &["get", "rails"],
];

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listens_there() {
    // Taken, so that nobody else is given it, and not listened at.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let target = taken.local_addr().unwrap().to_string();
    let says = format!(
        "nothing answers at {target}: is a shard running there? start one with `bigfleet up`, or \
         name one with --shard\n"
    );
    for verb in VERBS {
        assert_eq!(call(&[verb, &["--shard", &target]].concat()).undone(), says);
    }
    assert_eq!(call(&["decide", "--from-shard", &target]).undone(), says);
    for wrong in ["nowhere", "a b:1", ":7780:x"] {
        let refused = call(&["get", "clusters", "--shard", wrong]).refused();
        assert!(
            refused.contains("is not an address like host:port"),
            "{refused}"
        );
    }
}

/// Listens and never says a word.
#[tokio::test(flavor = "multi_thread")]
async fn it_listens_and_never_answers() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = silent.local_addr().unwrap().to_string();
    let slow = call(&["get", "clusters", "--shard", &target, "--timeout=300ms"]).undone();
    assert!(
        slow.starts_with(&format!("no answer from {target} within 300ms")),
        "{slow}"
    );
    assert!(slow.contains("--timeout"), "{slow}");
}

/// The port of a shard's metrics speaks HTTP, and an address may be one that nobody can connect to.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_another_port_or_no_host_at_all() {
    let folder = Folder::new("verbs-metrics-port");
    let provider = provider(&[]);
    let shard = shard(&folder.file("data"), provider.addr, &[]);
    let target = shard.probes.to_string();
    let said = call(&["get", "clusters", "--shard", &target]).undone();
    let start = format!("{target} is not a BigFleet shard (the metrics port? try 7780)");
    assert!(said.starts_with(&start), "{said}");
    let nowhere = "255.255.255.255:7780"; // to all hosts at once
    let said = call(&["get", "clusters", "--shard", nowhere]).undone();
    let start = format!("{nowhere} cannot be reached: ");
    assert!(said.starts_with(&start), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_address_the_one_that_up_left_is_asked() {
    let scene = Scene::new("verbs-left").await;
    let folder = scene.folder.0.join("runtime");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("bigfleet-up.addr"),
        format!("{} {}", scene.shard.addr, std::process::id()),
    )
    .unwrap();
    let listed = call_in(&folder, &["get", "clusters", "--no-headers"]).done();
    assert!(listed.contains("live"), "{listed}");
    let decided = call_in(&folder, &["decide", "--from-shard", "-o=table"]).done();
    assert!(decided.contains("all of it"), "{decided}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_no_shard_is_too_old_for_every_verb() {
    let provider = provider(&[]);
    let target = provider.addr.to_string();
    for verb in VERBS {
        let said = call(&[verb, &["--shard", &target]].concat()).undone();
        let start = format!("{target} does not know how to ");
        assert!(said.starts_with(&start), "{said}");
        assert!(said.contains("port 7780"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_shard_is_asked_for_what_it_knows() {
    let target = serve(Old::default()).await.to_string();
    let listed = call(&["get", "needs", "--shard", &target]);
    assert_eq!(
        (listed.status, listed.err.as_str()),
        (
            Some(0),
            "no needs yet: the shard has not finished its first cycle; ask again in a few seconds\n"
        )
    );
    let said = call(&["get", "machines", "--shard", &target]).undone();
    let start = format!("{target} does not know how to list machines: it is an older shard");
    assert!(said.starts_with(&start), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_did_not_arrive_whole_is_not_kept() {
    let folder = Folder::new("verbs-lies");
    let file = folder.file("fleet.json");
    std::fs::write(&file, "what was there before").unwrap();
    let header = Frame::Header(wire::InspectHeader::default());
    let data = || Frame::Data(b"{}".to_vec());
    let end = |size_bytes: i64, crc32: u32| Frame::End(wire::ExportFleetEnd { size_bytes, crc32 });
    let sum = 0x4c77_cd33; // of anything else
    for (frames, says) in [
        (
            vec![header.clone(), data(), end(2, sum)],
            "bytes with checksum",
        ),
        (
            vec![header.clone(), data(), end(3, 0xa3a6_bf43)],
            "bytes with checksum",
        ),
        (
            vec![header.clone(), data()],
            "stopped half way: the end of it never arrived",
        ),
        (vec![data()], "its parts are not in order"),
        (vec![], "stopped half way"),
    ] {
        let target = serve(Old { export: frames }).await.to_string();
        let save = format!("--save={}", file.display());
        let said = call(&["decide", "--from-shard", &target, &save]).undone();
        assert!(said.contains(says), "{said}");
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "what was there before"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_decide_who_may_do_what() {
    let folder = Folder::new("verbs-tls");
    let authority = Authority::new("fleet").unwrap();
    let files = |name: &str, uri: &str| {
        let folder = folder.file(name);
        std::fs::create_dir(&folder).unwrap();
        let files = authority
            .leaf(&[uri])
            .unwrap()
            .write(&folder, &authority.pem)
            .unwrap();
        [
            format!("--tls-cert={}", files.cert.display()),
            format!("--tls-key={}", files.key.display()),
            format!("--tls-ca={}", files.ca.display()),
        ]
    };
    let server = files("server", "bigfleet://shard/s1");
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let provider = provider(&server);
    let shard = shard(&folder.file("data"), provider.addr, &server);
    let target = shard.addr.to_string();
    let call_as = |files: &[String], args: &[&str]| {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        call(&[args, &["--shard", &target], &files].concat())
    };
    let reader = files("reader", "bigfleet://readonly");
    let admin = files("admin", "bigfleet://admin");
    let listed = call_as(&reader, &["get", "clusters"]);
    assert_eq!(listed.status, Some(0), "{listed:?}");
    let denied = call_as(&reader, &["pause", "--reason=x"]).undone();
    assert!(
        denied.contains("does not let you pause") && denied.contains("bigfleet://admin"),
        "{denied}"
    );
    call_as(&admin, &["pause", "--reason=x"]).done();
    let deaf = call_as(&[], &["get", "clusters"]).undone();
    let start = format!("{target} is not a BigFleet shard");
    assert!(
        deaf.starts_with(&start) && deaf.contains("--tls-cert, --tls-key and --tls-ca"),
        "{deaf}"
    );
    let strangers = Authority::new("strangers").unwrap();
    let folder = folder.file("stranger");
    std::fs::create_dir(&folder).unwrap();
    let stranger = strangers.leaf(&["bigfleet://admin"]).unwrap();
    let stranger = stranger.write(&folder, &strangers.pem).unwrap();
    let stranger = [
        format!("--tls-cert={}", stranger.cert.display()),
        format!("--tls-key={}", stranger.key.display()),
        format!("--tls-ca={}", stranger.ca.display()),
    ];
    let distrusted = call_as(&stranger, &["get", "clusters"]).undone();
    assert!(
        distrusted.contains("cannot be reached securely"),
        "{distrusted}"
    );
    let half = call_as(&reader[..1], &["get", "clusters"]).refused();
    assert!(half.contains("tls"), "{half}");
}

/// Every way in which a connection fails is said in words, with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_fails_says_whose_fault_it_is_and_what_to_do() {
    let folder = Folder::new("verbs-connections");
    let authority = Authority::new("fleet").unwrap();
    let flags = |name: &str, leaf: &Leaf, ca: &str| {
        let files = leaf.write(&folder.file(name), ca).unwrap();
        [
            format!("--tls-cert={}", files.cert.display()),
            format!("--tls-key={}", files.key.display()),
            format!("--tls-ca={}", files.ca.display()),
        ]
    };
    let reader = authority.leaf(&["bigfleet://readonly"]).unwrap();
    let reader = flags("reader", &reader, &authority.pem);
    let expired = authority.expired(&["bigfleet://readonly"]).unwrap();
    let expired = flags("expired", &expired, &authority.pem);
    let strangers = Authority::new("strangers").unwrap();
    let stranger = strangers.leaf(&["bigfleet://readonly"]).unwrap();
    // It trusts the shard, and the shard does not trust it.
    let refused = flags("refused", &stranger, &authority.pem);
    let unknown = flags("unknown", &stranger, &strangers.pem);
    let over = authority.expired(&["bigfleet://shard/s1"]).unwrap();
    let over = flags("over", &over, &authority.pem);
    let of_shard = authority.leaf(&["bigfleet://shard/s1"]).unwrap();
    let of_shard = flags("shard", &of_shard, &authority.pem);
    let nobody = "127.0.0.1:1".parse().unwrap();
    let start = |name: &str, flags: &[String]| {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        shard(&folder.file(name), nobody, &flags)
    };
    let (plain, secure) = (start("plain", &[]), start("secure", &of_shard));
    let late = start("late", &over);
    for (target, flags, says) in [
        (
            "nowhere.invalid:7780",
            &[][..],
            &["is not known", "check the spelling"][..],
        ),
        (
            &plain.addr.to_string(),
            &reader,
            &["it speaks without TLS", "leave out --tls-cert"],
        ),
        (
            &secure.addr.to_string(),
            &[],
            &["asks for certificates", "--tls-cert"],
        ),
        (
            &secure.addr.to_string(),
            &expired,
            &["your certificate has expired", "bigfleet certs issue"],
        ),
        (
            &secure.addr.to_string(),
            &refused,
            &["it refuses your certificate", "--tls-cert"],
        ),
        (
            &secure.addr.to_string(),
            &unknown,
            &["not signed by the authority you trust", "--tls-ca"],
        ),
        (
            &late.addr.to_string(),
            &reader,
            &["its certificate has expired", "bigfleet certs issue shard"],
        ),
    ] {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let said = call(&[&["get", "clusters", "--shard", target][..], &flags].concat());
        let said = said.undone();
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in says {
            assert!(said.contains(part), "{target}: no \"{part}\" in {said}");
        }
    }
}

/// A shard from before most of the reads, or one that exports what it likes.
#[derive(Clone, Debug, Default)]
struct Old {
    export: Vec<Frame>,
}

async fn serve(old: Old) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = Server::builder().add_service(ShardReadServer::from_arc(Arc::new(old)));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    addr
}

type Frames<T> = Result<Response<BoxStream<T>>, Status>;

fn unknown<T>() -> Result<T, Status> {
    Err(Status::unimplemented(""))
}

#[tonic::async_trait]
impl ShardRead for Old {
    type InspectNeedsStream = BoxStream<wire::InspectNeedsResponse>;
    type InspectMachinesStream = BoxStream<wire::InspectMachinesResponse>;
    type InspectClustersStream = BoxStream<wire::InspectClustersResponse>;
    type InspectWorkStream = BoxStream<wire::InspectWorkResponse>;
    type InspectActionsStream = BoxStream<wire::InspectActionsResponse>;
    type InspectEventsStream = BoxStream<wire::InspectEventsResponse>;
    type ExportFleetStream = BoxStream<wire::ExportFleetResponse>;

    async fn inspect_needs(
        &self,
        _: Request<wire::InspectNeedsRequest>,
    ) -> Frames<wire::InspectNeedsResponse> {
        let header = wire::InspectNeedsHeader::default();
        let frame = Some(wire::inspect_needs_response::Frame::Header(header));
        let header = Ok(wire::InspectNeedsResponse { frame });
        Ok(Response::new(Box::pin(tokio_stream::once(header))))
    }

    async fn export_fleet(
        &self,
        _: Request<wire::ExportFleetRequest>,
    ) -> Frames<wire::ExportFleetResponse> {
        let frame = |frame| Ok(wire::ExportFleetResponse { frame: Some(frame) });
        let frames: Vec<_> = self.export.clone().into_iter().map(frame).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(frames))))
    }

    async fn inspect_machines(
        &self,
        _: Request<wire::InspectMachinesRequest>,
    ) -> Frames<wire::InspectMachinesResponse> {
        unknown()
    }

    async fn inspect_clusters(
        &self,
        _: Request<wire::InspectClustersRequest>,
    ) -> Frames<wire::InspectClustersResponse> {
        unknown()
    }

    async fn inspect_work(
        &self,
        _: Request<wire::InspectWorkRequest>,
    ) -> Frames<wire::InspectWorkResponse> {
        unknown()
    }

    async fn inspect_actions(
        &self,
        _: Request<wire::InspectActionsRequest>,
    ) -> Frames<wire::InspectActionsResponse> {
        unknown()
    }

    async fn inspect_events(
        &self,
        _: Request<wire::InspectEventsRequest>,
    ) -> Frames<wire::InspectEventsResponse> {
        unknown()
    }

    async fn inspect_rails(
        &self,
        _: Request<wire::InspectRailsRequest>,
    ) -> Result<Response<wire::InspectRailsResponse>, Status> {
        unknown()
    }

    async fn inspect_status(
        &self,
        _: Request<wire::InspectStatusRequest>,
    ) -> Result<Response<wire::InspectStatusResponse>, Status> {
        unknown()
    }

    async fn explain_need(
        &self,
        _: Request<wire::ExplainNeedRequest>,
    ) -> Result<Response<wire::ExplainNeedResponse>, Status> {
        unknown()
    }
}
