//! Peers that mean harm, over real sockets: what they send, hold open or do not read costs them and nobody
//! else (SE-9, wire 6.1, 8.1, 8.4).

use crate::shard_scene::scene::Scene;
use crate::shard_scene::{Process, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};
use wire::operator_message::Payload;
use wire::shard_read_client::ShardReadClient;

/// Bytes as they are, in and out.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, bytes: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(bytes.copy_to_bytes(bytes.remaining())))
    }
}

fn channel(addr: SocketAddr) -> Channel {
    Dial::unknown(None).channel(&addr.to_string()).unwrap()
}

/// A session that says whatever it is told to, byte for byte.
struct Wild {
    frames: Option<mpsc::Sender<Bytes>>,
    answers: Streaming<Bytes>,
}

impl Wild {
    async fn open(channel: Channel) -> Self {
        let mut client = Grpc::new(channel);
        client.ready().await.unwrap();
        let (frames, outgoing) = mpsc::channel(64);
        let path = "/bigfleet.v1alpha1.Shard/Session".parse().unwrap();
        let request = Request::new(ReceiverStream::new(outgoing));
        let answers = client.streaming(request, path, Raw).await.unwrap();
        Self {
            frames: Some(frames),
            answers: answers.into_inner(),
        }
    }

    /// One that has said Hello.
    async fn greeted(addr: SocketAddr, cluster: &str) -> Self {
        let wild = Self::open(channel(addr)).await;
        wild.greet(cluster).await;
        wild
    }

    async fn greet(&self, cluster: &str) {
        let hello = wire::Hello {
            cluster_id: cluster.to_owned(),
            ..wire::Hello::default()
        };
        self.say(Payload::Hello(hello)).await;
    }

    async fn say(&self, payload: Payload) {
        let message: wire::OperatorMessage = payload.into();
        self.send(message.encode_to_vec().into()).await;
    }

    async fn send(&self, bytes: Bytes) {
        // A stream that has ended takes nothing more, which the test sees by its end.
        drop(self.frames.as_ref().unwrap().send(bytes).await);
    }

    fn hang_up(&mut self) {
        self.frames = None;
    }

    /// How the stream ends, whatever came before.
    async fn end(&mut self) -> Result<(), Status> {
        let end = async {
            while self.answers.message().await?.is_some() {}
            Ok(())
        };
        tokio::time::timeout(crate::shard_scene::WITHIN, end)
            .await
            .unwrap()
    }
}

fn roll_up(cluster: &str) -> Payload {
    Payload::Rollup(wire::ClusterCapacityNeeds {
        cluster_id: cluster.to_owned(),
        needs: vec![crate::shard_scene::operator::cpus(1)],
        rollup_id: "last".to_owned(),
        ..wire::ClusterCapacityNeeds::default()
    })
}

/// wire 8.4: half a request is no reason to take a live process for dead, on either port.
#[tokio::test]
async fn half_sent_requests_keep_no_probe_from_its_answer() {
    let scene = Scene::new("hostile-probes", 1, 0).await;
    let open = |addr: SocketAddr, said: &[u8]| {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.write_all(said).unwrap();
        stream
    };
    let shard = &scene.shard;
    let mut half: Vec<TcpStream> = (0..200)
        .map(|_| open(shard.probes, b"GET /healthz HTTP/1.1\r\nhost:"))
        .collect();
    half.extend((0..200).map(|_| open(shard.addr, b"PRI * HTTP/2")));
    let began = Instant::now();
    let mut answer = String::new();
    let mut probe = open(shard.probes, b"GET /healthz HTTP/1.0\r\n\r\n");
    probe.read_to_string(&mut answer).unwrap();
    let took = began.elapsed();
    assert!(answer.contains(" 200 "), "{answer}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    let mut health = HealthClient::new(channel(shard.addr));
    health.check(asked("")).await.unwrap();
}

fn asked(service: &str) -> tonic_health::pb::HealthCheckRequest {
    tonic_health::pb::HealthCheckRequest {
        service: service.to_owned(),
    }
}

/// wire 6.1: the status says what was wrong, and so does a line at WARN.
#[tokio::test]
async fn a_frame_that_cannot_be_read_ends_its_session_with_the_reason() {
    let mut scene = Scene::new("hostile-frames", 1, 0).await;
    let addr = scene.shard.addr;
    let too_large = vec![0; (32 << 20) + 1];
    for (cluster, frame, code) in [
        ("a", vec![0xff; 20], Code::InvalidArgument),
        ("b", vec![0xff; 20_000], Code::InvalidArgument),
        ("c", too_large, Code::ResourceExhausted),
    ] {
        let mut wild = Wild::greeted(addr, cluster).await;
        wild.send(frame.into()).await;
        let status = wild.end().await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
    }
    let line = scene
        .shard
        .logged_time(3, "session ended: a frame cannot be read");
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["fields"]["cluster"], "c");
    // A first frame is no roll-up.
    let mut wild = Wild::open(channel(addr)).await;
    wild.send(vec![0; (64 << 10) + 1].into()).await;
    let status = wild.end().await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
}

/// wire 6.1: an operator that says something and hangs up has said it.
#[tokio::test]
async fn what_was_said_before_a_half_close_is_heard() {
    let scene = Scene::new("hostile-half-close", 1, 0).await;
    for number in 0..20 {
        let cluster = format!("c{number}");
        let mut wild = Wild::greeted(scene.shard.addr, &cluster).await;
        wild.say(roll_up(&cluster)).await;
        wild.hang_up();
        wild.end().await.unwrap();
        let mut reader = ShardReadClient::new(channel(scene.shard.addr));
        let request = wire::InspectClustersRequest {
            cluster_id: cluster.clone(),
        };
        let mut frames = reader.inspect_clusters(request).await.unwrap().into_inner();
        let mut shown = String::new();
        while let Some(frame) = frames.message().await.unwrap() {
            shown.push_str(&format!("{frame:?}"));
        }
        assert!(shown.contains("rows: 1"), "{cluster}: {shown}");
    }
}

/// What a peer names itself is in the log as it is, and on one line.
#[tokio::test]
async fn an_id_does_not_forge_a_line() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    let scene = Scene::new("hostile-log", 1, 0).await;
    let data = format!("--data-dir={}", scene.folder.file("other").display());
    command.args([
        "shard",
        "--log-format=text",
        "--listen=127.0.0.1:0",
        "--metrics-addr=0",
        &data,
    ]);
    command.arg(format!("--provider-addr={}", scene.ledger.addr));
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let addr = loop {
        let line = lines.next().unwrap().unwrap();
        if let Some((_, rest)) = line.split_once(" listening addr=") {
            break rest.split(' ').next().unwrap().parse().unwrap();
        }
    };
    let forged = "x\n2026-01-01T00:00:00Z ERROR shard: all machines are gone \u{1b}[2J";
    let mut wild = Wild::greeted(addr, forged).await;
    wild.end().await.unwrap_err();
    let refused = lines.map(Result::unwrap);
    let refused = refused.filter(|line| line.contains("all machines are gone"));
    let refused = refused.take(1).collect::<Vec<_>>().remove(0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(refused.contains("session refused"), "{refused}");
    assert!(!refused.contains('\u{1b}'), "{refused:?}");
}

/// wire 2.6: health follows `/readyz`, and a name that is not served is not known.
#[tokio::test]
async fn health_says_whether_the_shard_is_ready_and_knows_its_services() {
    let folder = crate::shard_scene::Folder::new("hostile-health");
    let nobody = "127.0.0.1:1".parse().unwrap();
    let waiting = crate::shard_scene::shard(&folder.file("data"), nobody, &[]);
    let ready = Scene::new("hostile-ready", 1, 0).await;
    until("a shard that is ready", async || {
        let says = ready.shard.http("/readyz");
        (says.contains(" 200 "), says)
    })
    .await;
    let status = async |process: &Process, name: &str| {
        let mut health = HealthClient::new(channel(process.addr));
        let answer = health.check(asked(name)).await;
        answer.map(|answer| answer.into_inner().status())
    };
    for name in ["", "bigfleet.v1alpha1.Shard"] {
        let said = status(&waiting, name).await.unwrap();
        assert_eq!(said, ServingStatus::NotServing, "{name}");
        until("health that follows", async || {
            let said = status(&ready.shard, name).await.unwrap();
            (said == ServingStatus::Serving, said)
        })
        .await;
    }
    for name in [
        "bigfleet.v1alpha1.ShardRead",
        "bigfleet.v1alpha1.ShardAdmin",
    ] {
        let said = status(&waiting, name).await.unwrap();
        assert_eq!(said, ServingStatus::Serving, "{name}");
    }
    let unknown = status(&waiting, "bigfleet.v1alpha1.CapacityProvider").await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
}

/// wire 2.6: what the port serves and nothing else, in both versions.
#[tokio::test]
async fn reflection_lists_what_the_port_serves() {
    let scene = Scene::new("hostile-reflection", 1, 0).await;
    let served = [
        "bigfleet.v1alpha1.Shard",
        "bigfleet.v1alpha1.ShardAdmin",
        "bigfleet.v1alpha1.ShardRead",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    macro_rules! listed {
        ($version:ident) => {{
            use $version::server_reflection_client::ServerReflectionClient;
            use $version::server_reflection_request::MessageRequest;
            use $version::server_reflection_response::MessageResponse;
            let mut client = ServerReflectionClient::new(channel(scene.shard.addr));
            let request = $version::ServerReflectionRequest {
                host: String::new(),
                message_request: Some(MessageRequest::ListServices(String::new())),
            };
            let request = tokio_stream::once(request);
            let answers = client.server_reflection_info(request).await.unwrap();
            let answer = answers.into_inner().message().await.unwrap().unwrap();
            let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
                panic!("{answer:?}");
            };
            let names = list.service.into_iter().map(|service| service.name);
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        }};
    }
    assert_eq!(listed!(v1), served);
    assert_eq!(listed!(v1alpha), served);
}

/// SE-9: what streams hold that never say who they are, and what a reader asks for and does not read.
#[tokio::test]
async fn memory_is_bounded_whatever_is_sent_and_not_read() {
    let scene = Scene::new("hostile-memory", 200, 0).await;
    let most = 120.0;
    let before = scene.shard.memory_mb();
    // Eight streams, each with as much as it may hold back, and no Hello.
    let mut wild = Vec::new();
    for _ in 0..8 {
        let one = Wild::open(channel(scene.shard.addr)).await;
        one.send(vec![0; 100 << 20].into()).await;
        wild.push(one);
    }
    for one in &mut wild {
        let status = one.end().await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    }
    let streams = scene.shard.memory_mb();
    assert!(streams < most, "{before} MB, then {streams} MB");
    // As many answers as the connection holds and one may have at once, and none of them read.
    let mut reader = ShardReadClient::new(channel(scene.shard.addr));
    let mut unread = Vec::new();
    let refused = loop {
        let request = wire::InspectMachinesRequest::default();
        match reader.inspect_machines(request).await {
            Ok(answer) => unread.push(answer),
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(16 <= unread.len(), "{} answers", unread.len());
    let readers = scene.shard.memory_mb();
    assert!(readers < most, "{before} MB, then {readers} MB");
    drop(unread);
}

/// SE-9: operators that say a lot and read nothing of what is answered: they cost little, and each is ended as soon
/// as more waits for it than may. One for whom less waits is ended after a while, which tests of the outbox show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_that_do_not_read_cost_little() {
    let mut scene = Scene::new("hostile-unread", 200, 0).await;
    let (before, most) = (scene.shard.memory_mb(), 120.0);
    // A window of one byte: nothing is taken that is not asked for.
    let deaf = Dial {
        stream_window: 1,
        connection_window: 65_535,
        ..Dial::unknown(None)
    };
    let mut wild = Vec::new();
    for number in 0..8 {
        let cluster = format!("deaf-{number}");
        let channel = deaf.channel(&scene.shard.addr.to_string()).unwrap();
        let one = Wild::open(channel).await;
        // Each Hello after the first has all machines told again, between two marks.
        for _ in 0..300 {
            one.greet(&cluster).await;
        }
        wild.push(one);
    }
    let line = scene
        .shard
        .logged_time(8, "session ended: the operator does not read");
    assert_eq!(line["level"], "WARN");
    until("no session", async || {
        let active = scene.shard.metric("bigfleet_shard_active_sessions");
        (active == 0.0, active)
    })
    .await;
    let unread = scene.shard.memory_mb();
    assert!(unread < most, "{before} MB, then {unread} MB");
}

/// SE-9: an operator that has said what it needs and waits costs little.
#[tokio::test]
async fn a_session_at_rest_costs_little() {
    let scene = Scene::new("hostile-at-rest", 1, 0).await;
    let shard = &scene.shard;
    let mut sessions = Vec::new();
    let mut grown_to = async |count: u32| {
        while sessions.len() < count as usize {
            let cluster = format!("cluster-{}", sessions.len());
            let session = Wild::greeted(shard.addr, &cluster).await;
            session.say(roll_up(&cluster)).await;
            sessions.push(session);
        }
        until("all sessions", async || {
            let active = shard.metric("bigfleet_shard_active_sessions");
            (active == f64::from(count), active)
        })
        .await;
        scene.cycles(3).await;
        shard.memory_mb()
    };
    // The first of them also pay for what all share.
    let before = grown_to(50).await;
    let after = grown_to(550).await;
    let each = (after - before) * 1000.0 / 500.0;
    println!("{each:.0} kB a session");
    assert!(each <= 100.0, "{each} kB: {before} MB, then {after} MB");
}
