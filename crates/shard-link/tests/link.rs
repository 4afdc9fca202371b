//! A real shard, linked to a coordinator from a script: one that instructs, dies, comes back, does not
//! answer, or refuses. The shard's provider is not there either, and it does not mind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bigfleet_net::{Limits, Serving, listen, serve};
use bigfleet_shard::{Settings, Shard, Trouble};
use bigfleet_shard_core::ShardConfig;
use bigfleet_shard_link::{Link, start};
use bigfleet_wire::v1alpha1 as wire;
use tonic::{Request, Response, Status};
use wire::coordinator_server::{Coordinator, CoordinatorServer};
use wire::instruct_ack::Outcome;

/// What the coordinator does with the next report.
#[derive(Clone, Debug)]
enum Manner {
    Answers(Box<wire::ReportAck>),
    Refuses(tonic::Code),
    /// It does not lead, and says who does.
    Names(SocketAddr),
    Hangs,
}

#[derive(Clone)]
struct Scripted {
    manner: Arc<Mutex<Manner>>,
    reports: Arc<Mutex<Vec<(Instant, wire::ShardReport)>>>,
}

fn answer(term: i64, instructions: Vec<wire::CoordinatorInstruction>) -> Manner {
    Manner::Answers(Box::new(wire::ReportAck {
        coordinator_term: term,
        acknowledged: true,
        instructions,
        ..wire::ReportAck::default()
    }))
}

fn assign(id: &str, term: i64, zone: &str) -> wire::CoordinatorInstruction {
    use wire::coordinator_instruction::Payload;
    wire::CoordinatorInstruction {
        coordinator_term: term,
        sequence_number: 1,
        instruction_id: id.to_owned(),
        payload: Some(Payload::AssignDomain(wire::AssignDomain {
            topology_key: "topology.kubernetes.io/zone".to_owned(),
            topology_value: zone.to_owned(),
        })),
    }
}

impl Scripted {
    fn new() -> Self {
        Self {
            manner: Arc::new(Mutex::new(answer(1, Vec::new()))),
            reports: Arc::default(),
        }
    }

    async fn serve(&self, addr: SocketAddr) -> Serving {
        let service = CoordinatorServer::new(self.clone());
        let router = Limits::PROVIDER.server().add_service(service);
        serve(listen(&addr.to_string()).await.unwrap(), None, router).unwrap()
    }

    fn behaves(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    fn reports(&self) -> Vec<(Instant, wire::ShardReport)> {
        self.reports.lock().unwrap().clone()
    }

    /// Waits for a report that is like this, among those from now on.
    async fn hears(
        &self,
        what: &str,
        is: impl Fn(&wire::ShardReport) -> bool,
    ) -> wire::ShardReport {
        let before = self.reports().len();
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let reports = self.reports();
            let mut later = reports[before..].iter().map(|(_, report)| report);
            if let Some(found) = later.find(|report| is(report)) {
                return found.clone();
            }
            let last = reports.last();
            assert!(
                Instant::now() < deadline,
                "never: {what}; the last is {last:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

type Answered<T> = Result<Response<T>, Status>;

fn not_asked<T>() -> Answered<T> {
    Err(Status::unimplemented("nobody asks this here"))
}

#[tonic::async_trait]
impl Coordinator for Scripted {
    type SnapshotSaveStream = tonic::codec::Streaming<wire::SnapshotSaveChunk>;

    async fn report_shard(&self, request: Request<wire::ShardReport>) -> Answered<wire::ReportAck> {
        let report = (Instant::now(), request.into_inner());
        self.reports.lock().unwrap().push(report);
        let manner = self.manner.lock().unwrap().clone();
        match manner {
            Manner::Answers(ack) => Ok(Response::new(*ack)),
            Manner::Refuses(code) => Err(Status::new(code, "coordinator: not leader")),
            Manner::Names(leader) => {
                let mut status = Status::failed_precondition("coordinator: not leader");
                let leader = leader.to_string().parse().unwrap();
                status.metadata_mut().insert("bigfleet-leader-addr", leader);
                Err(status)
            }
            Manner::Hangs => std::future::pending().await,
        }
    }

    async fn assign_domain(
        &self,
        _: Request<wire::AssignDomainRequest>,
    ) -> Answered<wire::AssignDomainResponse> {
        not_asked()
    }

    async fn unassign_domain(
        &self,
        _: Request<wire::UnassignDomainRequest>,
    ) -> Answered<wire::UnassignDomainResponse> {
        not_asked()
    }

    async fn remove_shard(
        &self,
        _: Request<wire::RemoveShardRequest>,
    ) -> Answered<wire::RemoveShardResponse> {
        not_asked()
    }

    async fn list_shards(
        &self,
        _: Request<wire::ListShardsRequest>,
    ) -> Answered<wire::ListShardsResponse> {
        not_asked()
    }

    async fn list_domain_assignments(
        &self,
        _: Request<wire::ListDomainAssignmentsRequest>,
    ) -> Answered<wire::ListDomainAssignmentsResponse> {
        not_asked()
    }

    async fn list_shard_reports(
        &self,
        _: Request<wire::ListShardReportsRequest>,
    ) -> Answered<wire::ListShardReportsResponse> {
        not_asked()
    }

    async fn join_raft_cluster(
        &self,
        _: Request<wire::JoinRaftClusterRequest>,
    ) -> Answered<wire::JoinRaftClusterResponse> {
        not_asked()
    }

    async fn snapshot_save(
        &self,
        _: Request<wire::SnapshotSaveRequest>,
    ) -> Answered<Self::SnapshotSaveStream> {
        not_asked()
    }
}

const INTERVAL: Duration = Duration::from_millis(50);

struct Scene {
    folder: std::path::PathBuf,
    coordinator: Scripted,
    server: Option<Serving>,
    addr: SocketAddr,
    shard: Shard,
    _link: Link,
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Scene {
    async fn new(name: &str) -> Self {
        let folder = format!("bigfleet-link-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        drop(std::fs::remove_dir_all(&folder));
        let coordinator = Scripted::new();
        let server = coordinator
            .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await;
        let addr = server.addr();
        let shard = bigfleet_shard::start(Settings {
            core: ShardConfig {
                cycle_interval: Duration::from_millis(100),
                coordinated: true,
                ..ShardConfig::production("s1", "p")
            },
            listen: "127.0.0.1:0".to_owned(),
            metrics_addr: None,
            data_dir: folder.clone(),
            epoch_floor: 0,
            records_lost: false,
            // Nobody is there.
            provider_addr: "127.0.0.1:1".to_owned(),
            incremental_reconcile: false,
            largest_frame: Settings::LARGEST_FRAME_MIB << 20,
            actuation_paused: false,
            pause_file: folder.join("pause"),
            audit_log: None,
            audit_rotation: bigfleet_shard::Rotation::default(),
            tls: None,
            insecure: false,
            reflection: false,
            speed: 1.0,
            attribution_probe: false,
            trouble: Trouble::default(),
            around: bigfleet_shard::Around::default(),
        });
        let shard = shard.await.unwrap();
        let settings = bigfleet_shard_link::Settings {
            coordinator_addr: addr.to_string(),
            advertise_addr: "shard-0.example:7780".to_owned(),
            provider_addr: "cloud.example:9000".to_owned(),
            interval: INTERVAL,
            tls: None,
        };
        let link = start(shard.hub().clone(), settings).unwrap();
        Self {
            folder,
            coordinator,
            server: Some(server),
            addr,
            shard,
            _link: link,
        }
    }

    async fn cycle(&self) -> u64 {
        self.shard.hub().ask(|core| core.cycle()).await.unwrap()
    }

    /// The shard goes on deciding, whatever the coordinator does.
    async fn goes_on(&self) {
        let later = self.cycle().await + 3;
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.cycle().await < later {
            assert!(Instant::now() < deadline, "no more cycles");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn has_ack(id: &str, outcome: Outcome, reason: &str) -> impl Fn(&wire::ShardReport) -> bool {
    let (id, reason) = (id.to_owned(), reason.to_owned());
    move |report| {
        let mut acks = report.instruction_acks.iter();
        acks.any(|ack| ack.instruction_id == id && ack.outcome() == outcome && ack.reason == reason)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_and_instructions() {
    let scene = Scene::new("talk").await;
    let report = scene.coordinator.hears("a report", |_| true).await;
    assert_eq!((report.shard_id.as_str(), report.shard_epoch), ("s1", 1));
    assert_eq!(report.shard_address, "shard-0.example:7780");
    assert_eq!(
        report.summary.unwrap().provider_address,
        "cloud.example:9000"
    );
    let numbers: Vec<i64> = scene
        .coordinator
        .reports()
        .iter()
        .map(|(_, one)| one.cycle)
        .collect();
    assert!(
        numbers.is_sorted_by(|one, next| one + 1 == *next) && numbers[0] == 1,
        "{numbers:?}"
    );

    scene
        .coordinator
        .behaves(answer(7, vec![assign("i1", 7, "a"), assign("", 7, "b")]));
    scene
        .coordinator
        .hears("done", has_ack("i1", Outcome::Accepted, ""))
        .await;
    let again = has_ack("i1", Outcome::Accepted, "duplicate-redelivery");
    let report = scene.coordinator.hears("said again", again).await;
    assert_eq!(report.coordinator_term_seen, 7);
    assert!(
        report
            .instruction_acks
            .iter()
            .all(|ack| ack.instruction_id == "i1")
    );

    // Somebody who does not lead any more is not listened to.
    scene
        .coordinator
        .behaves(answer(6, vec![assign("i2", 6, "c")]));
    scene
        .coordinator
        .hears("no acks left", |report| report.instruction_acks.is_empty())
        .await;
    let held = scene.shard.hub().ask(|core| core.report().held);
    let held = held.await.unwrap().unwrap();
    assert!(
        held.everything,
        "its provider is not there: nobody knows what is left of the rest"
    );
    assert_eq!(held.domain_texts(), ["topology.kubernetes.io/zone=a"]);
    let asked = wire::ReportAck {
        coordinator_term: 7,
        acknowledged: true,
        send_domains: true,
        ..wire::ReportAck::default()
    };
    scene.coordinator.behaves(Manner::Answers(Box::new(asked)));
    let report = scene
        .coordinator
        .hears("domains", |report| !report.domains.is_empty())
        .await;
    assert_eq!(report.domains, ["topology.kubernetes.io/zone=a"]);
    assert_eq!(report.scope(), wire::Scope::Everything);
    assert_eq!(report.domains_digest.len(), 32);
    assert_ne!(report.directory, 0);
    let first = &scene.coordinator.reports()[0].1;
    assert_eq!(first.scope(), wire::Scope::Unspecified);
    assert_eq!(first.domains_digest, b"", "nothing is on its disk");
    assert_eq!(first.directory, report.directory);
}

/// An answer's scope, what is somebody else's, and who is gone reach the core; it is told of at once what it asks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_an_answer_says_is_passed_on() {
    let scene = Scene::new("passed-on").await;
    let asked = wire::ReportAck {
        coordinator_term: 7,
        acknowledged: true,
        send_domains: true,
        scope: wire::Scope::Assigned.into(),
        foreign_machine_ids: vec!["m1".to_owned(), String::new()],
        gone_shard_ids: vec!["s9".to_owned()],
        confirmed_transfer_ids: vec!["7-1".to_owned()],
        next_report_ms: 1,
        ..wire::ReportAck::default()
    };
    scene.coordinator.behaves(Manner::Answers(Box::new(asked)));
    let named = |report: &wire::ShardReport| !report.exceptions.is_empty();
    let report = scene.coordinator.hears("the exceptions", named).await;
    assert_ne!(report.scope(), wire::Scope::Unspecified);
    let [away] = &report.exceptions[..] else {
        panic!("{:?}", report.exceptions);
    };
    assert_eq!(away.machine_id, "m1");
    assert_eq!(away.kind(), wire::machine_exception::Kind::Away);
    let records = scene.shard.hub().ask(|core| core.records()).await.unwrap();
    let gone = bigfleet_shard_core::Record::GoneShard("s9".to_owned());
    assert!(records.contains(&gone));
}

/// CO-14: once another process is on record, this one acts no more, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_superseded_closes_its_gate() {
    let scene = Scene::new("superseded").await;
    scene.coordinator.hears("a report", |_| true).await;
    let paused = || scene.shard.hub().ask(|core| core.is_paused());
    assert!(!paused().await.unwrap());
    scene
        .coordinator
        .behaves(Manner::Refuses(tonic::Code::AlreadyExists));
    scene.coordinator.hears("a report", |_| true).await;
    scene.coordinator.hears("the one after", |_| true).await;
    assert!(paused().await.unwrap());
    let records = scene.shard.hub().ask(|core| core.records()).await.unwrap();
    assert!(records.contains(&bigfleet_shard_core::Record::Superseded));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_dies_and_comes_back_gets_the_acks() {
    let mut scene = Scene::new("dies").await;
    scene.coordinator.hears("a report", |_| true).await;
    // The answer with the instruction is the last it gives: the ack has nobody to go to.
    let manner = Arc::clone(&scene.coordinator.manner);
    scene
        .coordinator
        .behaves(answer(3, vec![assign("i1", 3, "a")]));
    scene
        .coordinator
        .hears("the ack under way", has_ack("i1", Outcome::Accepted, ""))
        .await;
    *manner.lock().unwrap() = Manner::Refuses(tonic::Code::Unavailable);
    scene
        .server
        .take()
        .unwrap()
        .stop(Duration::from_millis(50))
        .await;
    scene.goes_on().await;
    scene.coordinator.behaves(answer(3, Vec::new()));
    let _again = scene.coordinator.serve(scene.addr).await;
    let report = scene
        .coordinator
        .hears("a report to the new one", |_| true)
        .await;
    assert!(1 < report.cycle, "reports are counted on");
    let left = |report: &wire::ShardReport| report.instruction_acks.is_empty();
    scene.coordinator.hears("every ack delivered", left).await;
}

/// One that hangs costs a report its time and no more; a refused one is tried less and less often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_hangs_or_refuses_is_left_alone_more_and_more() {
    let scene = Scene::new("refuses").await;
    scene.coordinator.hears("a report", |_| true).await;
    for manner in [
        Manner::Hangs,
        Manner::Refuses(tonic::Code::PermissionDenied),
        Manner::Refuses(tonic::Code::AlreadyExists),
    ] {
        scene.coordinator.behaves(manner);
        let before = scene.coordinator.reports().len();
        for _ in 0..4 {
            scene.coordinator.hears("another try", |_| true).await;
        }
        scene.goes_on().await;
        let tries: Vec<Instant> = scene.coordinator.reports()[before..]
            .iter()
            .map(|(at, _)| *at)
            .collect();
        // Pauses of 1, 2 and 4 intervals, a tenth less at most, lie between four failures; a slow machine only adds.
        let took = tries[tries.len() - 1] - tries[0];
        assert!(4 * INTERVAL <= took, "{} tries in {took:?}", tries.len());
        scene.coordinator.behaves(answer(1, Vec::new()));
        scene.coordinator.hears("one that arrived", |_| true).await;
        scene
            .coordinator
            .hears("and the next, in time", |_| true)
            .await;
    }
}

/// A replica that does not lead names the one that does, which is asked at once and from then on; each attempt is a report of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_found_and_kept() {
    let scene = Scene::new("leader").await;
    let leader = Scripted::new();
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let serving = leader.serve(anywhere).await;
    let follower = &scene.coordinator;
    follower.hears("a report", |_| true).await;
    follower.behaves(Manner::Names(serving.addr()));
    leader.behaves(answer(9, vec![assign("i1", 9, "a")]));
    let heard = leader
        .hears("the ack", has_ack("i1", Outcome::Accepted, ""))
        .await;
    assert_eq!(heard.coordinator_term_seen, 9);
    let asked = follower.reports();
    let again = leader
        .hears("the next", |report| heard.cycle < report.cycle)
        .await;
    let numbers = |reports: &[(Instant, wire::ShardReport)]| -> Vec<i64> {
        reports.iter().map(|(_, report)| report.cycle).collect()
    };
    let (here, there) = (numbers(&asked), numbers(&leader.reports()));
    assert!(
        here.iter().all(|number| !there.contains(number)),
        "{here:?} {there:?}"
    );
    assert_eq!(again.process, heard.process);
    assert_eq!(again.process.len(), 16);

    // It dies, and the one that was a follower leads.
    follower.behaves(answer(10, Vec::new()));
    serving.stop(Duration::from_millis(50)).await;
    let later = follower.hears("a report again", |_| true).await;
    assert!(again.cycle < later.cycle);
    scene.goes_on().await;
}

/// Replicas that answer and have no leader yet are asked again with every interval, not less and less often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_election_is_waited_for_in_step() {
    let scene = Scene::new("election").await;
    scene.coordinator.hears("a report", |_| true).await;
    let nobody = Manner::Refuses(tonic::Code::FailedPrecondition);
    scene.coordinator.behaves(nobody);
    // With pauses that double, twelve tries would take longer than the test may wait for one.
    for _ in 0..12 {
        scene.coordinator.hears("another try", |_| true).await;
    }
    scene.coordinator.behaves(answer(2, Vec::new()));
    let seen = |report: &wire::ShardReport| report.coordinator_term_seen == 2;
    scene.coordinator.hears("it is listened to", seen).await;
    scene.goes_on().await;
}
