//! `bigfleet shard --coordinator-addr`: what the coordinator hears, and that the shard needs it for
//! nothing. The coordinator is a script in the test, at an address that outlives it.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::{Limits, Serving, listen, serve};
use bigfleet_wire::v1alpha1 as wire;
use ring::digest::{SHA256, digest};
use tonic::{Request, Response, Status};
use wire::coordinator_server::{Coordinator, CoordinatorServer};

/// Writes down every report, and answers with what it was told to ask for.
#[derive(Clone, Default)]
struct Scripted {
    reports: Arc<Mutex<Vec<wire::ShardReport>>>,
    asks: Arc<Mutex<wire::ReportAck>>,
}

impl Scripted {
    async fn serve(&self, addr: SocketAddr) -> Serving {
        let service = CoordinatorServer::new(self.clone());
        let router = Limits::PROVIDER.server().add_service(service);
        serve(listen(&addr.to_string()).await.unwrap(), None, router).unwrap()
    }

    fn asks(&self, asked: wire::ReportAck) {
        *self.asks.lock().unwrap() = wire::ReportAck {
            acknowledged: true,
            ..asked
        };
    }

    fn reports(&self) -> Vec<wire::ShardReport> {
        self.reports.lock().unwrap().clone()
    }

    /// Waits for a report like this, among those from now on.
    async fn hears(
        &self,
        what: &str,
        is: impl Fn(&wire::ShardReport) -> bool,
    ) -> wire::ShardReport {
        let before = self.reports().len();
        let heard = until(what, async || {
            let later = self.reports().split_off(before);
            let found = later.iter().position(&is);
            (found.is_some(), (found, later))
        });
        let (found, later) = heard.await;
        later[found.unwrap()].clone()
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
        self.reports.lock().unwrap().push(request.into_inner());
        Ok(Response::new(self.asks.lock().unwrap().clone()))
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

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A shard with eight machines, told to report to an address.
fn reporting(name: &str, coordinator: SocketAddr, more: &[&str]) -> (Folder, Process, Process) {
    let folder = Folder::new(name);
    let cloud = provider(&[&offerings(&folder, &[("bare_metal", 8)])]);
    let addr = format!("--coordinator-addr={coordinator}");
    let mut flags = vec![
        addr.as_str(),
        "--coordinator-heartbeat-interval=100ms",
        "--advertise-addr=shard-0.example:7780",
    ];
    flags.extend(more);
    let shard = shard(&folder.file("data"), cloud.addr, &flags);
    (folder, cloud, shard)
}

fn lines(domains: &[&str]) -> Vec<u8> {
    let text: String = domains.iter().map(|domain| format!("{domain}\n")).collect();
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

#[tokio::test]
async fn a_shard_whose_coordinator_was_never_there_serves_all_the_same() {
    // What it is not told of it takes in by its own settings only (CO-26).
    let own = ["--own-domain=topology.kubernetes.io/zone=zone-a"];
    let (_folder, _cloud, mut shard) = reporting("alone", nobody(), &own);
    let a = Operator::connect(shard.addr, "a", Manner::Reports).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    shard.logged("coordinator not reached: the shard goes on alone");
    assert!(shard.http("/readyz").contains("200 OK"));
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    let said = shard.all_logged("coordinator not reached: the shard goes on alone");
    assert_eq!(said.len(), 1, "once, not once per try");
    assert_eq!(shard.terminate(), Some(0));
}

#[tokio::test]
async fn a_coordinator_that_dies_and_returns_hears_of_a_shard_that_never_minded() {
    let coordinator = Scripted::default();
    coordinator.asks(wire::ReportAck {
        coordinator_term: 4,
        send_domains: true,
        instructions: vec![wire::CoordinatorInstruction {
            coordinator_term: 4,
            sequence_number: 1,
            instruction_id: "i1".to_owned(),
            payload: Some(wire::coordinator_instruction::Payload::AssignDomain(
                wire::AssignDomain {
                    topology_key: "topology.kubernetes.io/zone".to_owned(),
                    topology_value: "zone-a".to_owned(),
                },
            )),
        }],
        ..wire::ReportAck::default()
    });
    let server = coordinator
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await;
    let addr = server.addr();
    // Two minutes, in which another shard's last call may arrive (CO-27), are four seconds.
    let (_folder, _cloud, mut shard) = reporting(
        "linked",
        addr,
        &["--trouble=clock-speed=30", "--cycle-interval=3s"],
    );

    let a = Operator::connect(shard.addr, "a", Manner::Reports).await;
    a.needs(vec![cpus(3)]).await;
    a.has(3).await;
    let report = coordinator
        .hears("a report of what it serves", |report| {
            let pools = report.summary.iter().flat_map(|summary| &summary.pools);
            pools.map(|pool| pool.configured).sum::<i32>() == 3 && !report.domains.is_empty()
        })
        .await;
    assert_eq!((report.shard_id.as_str(), report.shard_epoch), ("s1", 1));
    assert_eq!(report.shard_address, "shard-0.example:7780");
    assert_eq!(report.coordinator_term_seen, 4);
    assert_eq!(report.clusters, ["a"], "whose operators are connected");
    assert_eq!(report.domains, ["topology.kubernetes.io/zone=zone-a"]);
    assert_eq!(
        report.domains_digest,
        lines(&["topology.kubernetes.io/zone=zone-a"])
    );
    assert_eq!(report.summary.unwrap().free_machines, 5);
    let first = &coordinator.reports()[0];
    assert_eq!(first.cycle, 1);
    assert_eq!(first.domains_digest, b"", "it was never given any");
    assert!(first.domains.is_empty(), "nobody had asked");

    let number = |name: &str| shard.metric(&format!("bigfleet_shard_coordinator_{name}"));
    let reports = |outcome: &str| number(&format!("reports_total{{outcome=\"{outcome}\"}}"));
    let accepted = "instructions_total{outcome=\"accepted\"}";
    until(
        "the instruction answered, and the answer taken",
        async || {
            let seen = (number("connected"), number(accepted));
            (seen.0 == 1.0 && 0.0 < seen.1, seen)
        },
    )
    .await;
    assert!(0.0 < reports("acknowledged"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ago = now.unwrap().as_secs_f64() - number("last_success_timestamp_seconds");
    assert!((0.0..30.0).contains(&ago), "{ago}");

    // It is gone, and so is an operator; the shard does what it did.
    server.stop(Duration::from_millis(50)).await;
    until("a report that nobody hears", async || {
        let seen = (number("connected"), reports("unreachable"));
        (seen.0 == 0.0 && 0.0 < seen.1, seen)
    })
    .await;
    shard.logged("coordinator not reached: the shard goes on alone");
    a.needs(vec![cpus(5)]).await;
    a.has(5).await;
    drop(a);
    coordinator.asks(wire::ReportAck {
        coordinator_term: 5,
        ..wire::ReportAck::default()
    });
    let before = coordinator.reports().len();
    let _again = coordinator.serve(addr).await;
    let report = coordinator
        .hears("a report without the operator", |report| {
            report.clusters.is_empty() && report.coordinator_term_seen == 5
        })
        .await;
    let pools = report.summary.unwrap().pools;
    assert_eq!(pools.iter().map(|pool| pool.configured).sum::<i32>(), 5);
    shard.logged("coordinator reached again");
    let all = coordinator.reports();
    assert!(all[before - 1].cycle < all[before].cycle, "counted on");
    assert_eq!(shard.terminate(), Some(0));
}

const PANICKED: &str = "a task panicked: the shard goes on without its answer";

/// A report that panics is one that did not arrive; the next is not far.
#[tokio::test]
async fn a_report_that_panics_is_said_and_followed_by_the_next() {
    let coordinator = Scripted::default();
    coordinator.asks(wire::ReportAck::default());
    let server = coordinator
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await;
    let (_folder, _cloud, mut shard) =
        reporting("panics", server.addr(), &["--trouble=panic-in=link"]);
    let said = shard.logged(PANICKED);
    assert_eq!(said["level"], "ERROR");
    assert_eq!(said["fields"]["task"], "link");
    coordinator.hears("a report all the same", |_| true).await;
    shard.logged("coordinator reached again");
    let panics = "bigfleet_shard_panics_total{task=\"link\"}";
    shard.shows(panics, 1.0).await;
}

/// The failing arm: the link dies of it, and the coordinator never hears of the shard.
#[tokio::test]
async fn a_report_whose_panic_nobody_hears_is_the_last() {
    let coordinator = Scripted::default();
    let server = coordinator
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await;
    let trouble = ["--trouble=panic-in=link", "--trouble=panics-unheard"];
    let (_folder, _cloud, shard) = reporting("unheard", server.addr(), &trouble);
    until("twenty cycles", async || {
        let cycle = shard.metric("bigfleet_shard_cycle");
        (20.0 <= cycle, cycle)
    })
    .await;
    assert!(
        coordinator.reports().is_empty(),
        "the guard makes no difference"
    );
}

/// What the coordinator refuses, and what it is refused, is counted by kind and said once.
#[tokio::test]
async fn refusals_on_both_sides_are_counted_and_said_once() {
    let coordinator = Scripted::default();
    let asked = wire::ReportAck {
        coordinator_term: 4,
        instructions: vec![wire::CoordinatorInstruction {
            coordinator_term: 4,
            sequence_number: 1,
            instruction_id: "i9".to_owned(),
            payload: None,
        }],
        ..wire::ReportAck::default()
    };
    *coordinator.asks.lock().unwrap() = asked.clone();
    let server = coordinator
        .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await;
    let (_folder, _cloud, mut shard) = reporting("refusals", server.addr(), &[]);
    let seen = async |shard: &Process, series: &str, times: f64| {
        let name = format!("bigfleet_shard_coordinator_{series}");
        until(&name, async || {
            let count = shard.metric(&name);
            (times <= count, count)
        })
        .await
    };
    seen(&shard, "reports_total{outcome=\"not_acknowledged\"}", 2.0).await;
    assert_eq!(shard.metric("bigfleet_shard_coordinator_connected"), 0.0);
    let said = "coordinator not reached: the shard goes on alone";
    shard.logged(said);
    assert_eq!(shard.all_logged(said).len(), 1);

    coordinator.asks(asked);
    let rejected = "instructions_total{outcome=\"rejected_invalid\"}";
    seen(&shard, rejected, 3.0).await;
    let said = shard.logged("coordinator instruction refused");
    assert_eq!(said["fields"]["instruction"], "i9");
    assert_eq!(said["fields"]["disposition"], "RejectedInvalid", "{said}");
    let times = shard.all_logged("coordinator instruction refused").len();
    assert_eq!(times, 1, "not with every report");
}
