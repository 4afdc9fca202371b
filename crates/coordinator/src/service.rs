//! Service: the RPCs, each with its checks in order, and what a refusal says.
//!
//! ```text
//! report   leader ─▶ arguments ─▶ certificate ─▶ the core, as often as something must be agreed on first ─▶ answer
//! change   leader ─▶ certificate ─▶ arguments ─▶ agreed on ─▶ its result
//! read     leader, confirmed by a majority ─▶ certificate ─▶ copies
//! ```
//!
//! A replica that does not lead answers FAILED_PRECONDITION, which means nothing else, and names who does if it knows.

mod admin;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bigfleet_coordinator_core::{AdminRequest, Caller, Code, Refused, Shown, Step};
use bigfleet_model::Time;
use bigfleet_net::Identity;
use bigfleet_wire::v1alpha1 as wire;
use tokio_stream::Stream;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};
use wire::coordinator_server::Coordinator;

use crate::Member;
use crate::consensus::{Consensus, Results};
use crate::counts::Counts;
use crate::raft::SharedCore;
use crate::report_facts::{facts, report_ack, shown_shortfall, shown_summary};
use crate::saved::frames;

/// Who leads, in the trailer of a refusal.
const LEADER_ID: &str = "bigfleet-leader-id";
const LEADER_ADDRESS: &str = "bigfleet-leader-addr";

type Answered<T> = Result<Response<T>, Status>;

/// What every replica serves.
#[derive(Debug)]
pub(crate) struct Service<C> {
    pub(crate) name: String,
    pub(crate) consensus: Arc<C>,
    pub(crate) core: SharedCore,
    pub(crate) counts: Arc<Counts>,
    /// One change of the members at a time.
    pub(crate) joining: Arc<tokio::sync::Mutex<()>>,
}

impl<C> Clone for Service<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            consensus: Arc::clone(&self.consensus),
            core: self.core.clone(),
            counts: Arc::clone(&self.counts),
            joining: Arc::clone(&self.joining),
        }
    }
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    Time::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

fn caller<T>(request: &Request<T>) -> Caller {
    match bigfleet_net::Caller::of(request).certified() {
        None => Caller::Unverified,
        Some(Ok(identity)) => Caller::Named(identity.to_string()),
        Some(Err(why)) => Caller::Unnamed(why.to_string()),
    }
}

impl<C: Consensus> Service<C> {
    /// The refusal as a caller gets it.
    fn refuse(&self, rpc: &'static str, refused: &Refused) -> Status {
        let text = refused.to_string();
        match refused.code() {
            Code::NotLeader => self.not_leader(&text),
            Code::InvalidArgument => Status::invalid_argument(text),
            Code::NotFound => Status::not_found(text),
            Code::AlreadyExists => Status::already_exists(text),
            Code::PermissionDenied => {
                tracing::error!(rpc, reason = text, "a caller was turned away");
                self.counts.turned_away(rpc);
                Status::permission_denied(text)
            }
            Code::Aborted => Status::aborted(text),
            Code::Unavailable => Status::unavailable(text),
        }
    }

    /// The same check for what the core has no part in.
    fn must_be_admin<T>(&self, rpc: &'static str, request: &Request<T>) -> Result<(), Status> {
        let checked = bigfleet_net::Caller::of(request).must_be(&Identity::Admin, rpc);
        checked.inspect_err(|status| {
            tracing::error!(rpc, reason = status.message(), "a caller was turned away");
            self.counts.turned_away(rpc);
        })
    }

    fn not_leader(&self, text: &str) -> Status {
        let view = self.consensus.view();
        let mut names = MetadataMap::new();
        // One that has lost its majority does not send callers to itself.
        let leader = view.leading_member().filter(|one| one.name != self.name);
        if let Some(leader) = leader {
            let named = [
                (LEADER_ID, &leader.name),
                (LEADER_ADDRESS, &leader.grpc_address),
            ];
            for (key, value) in named {
                if let Ok(value) = MetadataValue::try_from(value.as_str()) {
                    names.insert(key, value);
                }
            }
        }
        Status::with_metadata(tonic::Code::FailedPrecondition, text, names)
    }

    fn check_leading(&self) -> Result<(), Refused> {
        if self.consensus.view().has_quorum && self.core.lock().is_leading() {
            return Ok(());
        }
        Err(Refused::NotLeader)
    }

    async fn propose(
        &self,
        commands: &[bigfleet_coordinator_core::Command],
    ) -> Result<Results, Refused> {
        let began = std::time::Instant::now();
        let results = self.consensus.propose(commands).await;
        self.counts.proposed(&results, began.elapsed());
        results
    }

    async fn admin<T>(
        &self,
        rpc: &'static str,
        request: &Request<T>,
        asked: &AdminRequest,
    ) -> Result<(), Status> {
        let done = self.change(&caller(request), asked).await;
        done.map_err(|refused| self.refuse(rpc, &refused))
    }

    async fn change(&self, caller: &Caller, asked: &AdminRequest) -> Result<(), Refused> {
        self.check_leading()?;
        let commands = self.core.lock().admin(now(), caller, asked)?;
        first_refusal(self.propose(&commands).await?)
    }

    /// What this leader knows, once a majority has confirmed that it leads (CO-21).
    async fn read<T, R>(
        &self,
        rpc: &'static str,
        request: &Request<T>,
        shown: impl FnOnce(Shown<'_>) -> R,
    ) -> Result<R, Status> {
        let confirmed = match self.check_leading() {
            Ok(()) => self.consensus.confirm().await,
            Err(refused) => Err(refused),
        };
        let refuse = |refused| self.refuse(rpc, &refused);
        confirmed.map_err(refuse)?;
        let core = self.core.lock();
        core.read(&caller(request)).map(shown).map_err(refuse)
    }

    async fn reported(
        &self,
        caller: &Caller,
        report: wire::ShardReport,
    ) -> Result<wire::ReportAck, Status> {
        let rpc = "ReportShard";
        let refuse = |refused| self.refuse(rpc, &refused);
        self.check_leading().map_err(refuse)?;
        let facts = facts(report)?;
        let mut step = self.core.lock().report(now(), caller, facts);
        loop {
            match step {
                Step::Answer(answer) => return Ok(report_ack(&answer)),
                Step::Refuse(refused) => return Err(refuse(refused)),
                Step::Propose(commands, ticket) => {
                    let results = self.propose(&commands).await.map_err(refuse)?;
                    step = self.core.lock().proceed(now(), ticket, &results);
                }
            }
        }
    }

    async fn join(&self, asked: wire::JoinRaftClusterRequest) -> Result<(), Status> {
        let missing = |what: &str| Err(Status::invalid_argument(format!("{what} is empty")));
        if asked.node_id.is_empty() {
            return missing("node_id");
        }
        if asked.raft_address.is_empty() {
            return missing("raft_address");
        }
        if asked.directory == 0 {
            return missing("directory");
        }
        let (_, own) = self.consensus.identity();
        let group = own.cluster.unwrap_or_default();
        let is_ours = asked.cluster_id.is_empty()
            || (asked.cluster_id == group && asked.generation == own.generation);
        if !is_ours {
            return Err(Status::invalid_argument(format!(
                "this is group {group} after {} restores, and replica {} belongs to {} after {}; to let it join here, empty its data directory",
                own.generation, asked.node_id, asked.cluster_id, asked.generation
            )));
        }
        let member = Member {
            name: asked.node_id,
            raft_address: asked.raft_address,
            grpc_address: asked.grpc_address,
        };
        let _one_at_a_time = self.joining.lock().await;
        let name = member.name.clone();
        let admitted = self.consensus.admit(asked.directory, member).await;
        admitted
            .map_err(|why| Status::unavailable(format!("replica {name} was not let in: {why}")))?;
        tracing::info!(name, "replica joined");
        Ok(())
    }
}

fn first_refusal(results: Results) -> Result<(), Refused> {
    results.into_iter().try_for_each(|result| result.map(drop))
}

fn nanos(at: Option<Time>) -> i64 {
    at.map_or(0, Time::nanos)
}

#[tonic::async_trait]
impl<C: Consensus> Coordinator for Service<C> {
    async fn report_shard(&self, request: Request<wire::ShardReport>) -> Answered<wire::ReportAck> {
        let caller = caller(&request);
        let answered = self.reported(&caller, request.into_inner()).await;
        answered.map(Response::new)
    }

    async fn assign_domain(
        &self,
        request: Request<wire::AssignDomainRequest>,
    ) -> Answered<wire::AssignDomainResponse> {
        let wanted = request.get_ref().clone();
        let asked = AdminRequest::AssignDomain {
            key: wanted.topology_key,
            value: wanted.topology_value,
            shard: wanted.shard_id,
        };
        self.admin("AssignDomain", &request, &asked).await?;
        Ok(Response::new(wire::AssignDomainResponse {}))
    }

    async fn unassign_domain(
        &self,
        request: Request<wire::UnassignDomainRequest>,
    ) -> Answered<wire::UnassignDomainResponse> {
        let wanted = request.get_ref().clone();
        let asked = AdminRequest::UnassignDomain {
            key: wanted.topology_key,
            value: wanted.topology_value,
        };
        self.admin("UnassignDomain", &request, &asked).await?;
        Ok(Response::new(wire::UnassignDomainResponse {}))
    }

    async fn remove_shard(
        &self,
        request: Request<wire::RemoveShardRequest>,
    ) -> Answered<wire::RemoveShardResponse> {
        let wanted = request.get_ref().clone();
        let asked = AdminRequest::RemoveShard {
            shard: wanted.shard_id,
            gone: wanted.gone,
        };
        self.admin("RemoveShard", &request, &asked).await?;
        Ok(Response::new(wire::RemoveShardResponse {}))
    }

    async fn list_shards(
        &self,
        request: Request<wire::ListShardsRequest>,
    ) -> Answered<wire::ListShardsResponse> {
        let of = |shown: Shown<'_>| shown.shards();
        let shards = self.read("ListShards", &request, of).await?;
        let entry = |one: bigfleet_coordinator_core::ShownShard| wire::ShardRegistryEntry {
            shard_id: one.shard.to_string(),
            address: one.row.address,
            registered_at_unix_ns: one.row.registered_at.nanos(),
            last_heartbeat_unix_ns: nanos(one.last_report),
        };
        let shards = shards.into_iter().map(entry).collect();
        Ok(Response::new(wire::ListShardsResponse { shards }))
    }

    async fn list_domain_assignments(
        &self,
        request: Request<wire::ListDomainAssignmentsRequest>,
    ) -> Answered<wire::ListDomainAssignmentsResponse> {
        let of = |shown: Shown<'_>| shown.assignments();
        let assignments = self.read("ListDomainAssignments", &request, of).await?;
        let assignments = assignments.into_iter();
        let assignments = assignments.map(|(shard, domain)| wire::DomainAssignment {
            topology_key: domain.key().to_owned(),
            topology_value: domain.value().to_owned(),
            shard_id: shard.to_string(),
        });
        Ok(Response::new(wire::ListDomainAssignmentsResponse {
            assignments: assignments.collect(),
        }))
    }

    async fn list_shard_reports(
        &self,
        request: Request<wire::ListShardReportsRequest>,
    ) -> Answered<wire::ListShardReportsResponse> {
        let only = request.get_ref().shard_id.clone();
        let only = Some(only).filter(|only| !only.is_empty());
        let of = |shown: Shown<'_>| {
            let shards = shown.shards();
            let provider = |shard: &bigfleet_coordinator_core::ShardId| {
                let mut shards = shards.iter();
                let found = shards.find(|one| one.shard == *shard);
                found.map_or("", |one| one.row.provider.address())
            };
            let reports = shown.reports(now(), only.as_deref()).into_iter();
            let reports = reports.map(|one| wire::ShardReportSnapshot {
                summary: Some(shown_summary(&one.summary, provider(&one.shard))),
                shard_id: one.shard.to_string(),
                cycle: i64::try_from(one.cycle).unwrap_or(i64::MAX),
                received_at_unix_ns: one.received.nanos(),
                shortfalls: one.shortfalls.iter().map(shown_shortfall).collect(),
            });
            reports.collect()
        };
        let reports = self.read("ListShardReports", &request, of).await?;
        Ok(Response::new(wire::ListShardReportsResponse { reports }))
    }

    async fn join_raft_cluster(
        &self,
        request: Request<wire::JoinRaftClusterRequest>,
    ) -> Answered<wire::JoinRaftClusterResponse> {
        let rpc = "JoinRaftCluster";
        self.check_leading()
            .map_err(|refused| self.refuse(rpc, &refused))?;
        self.must_be_admin(rpc, &request)?;
        self.join(request.into_inner()).await?;
        Ok(Response::new(wire::JoinRaftClusterResponse {}))
    }

    type SnapshotSaveStream =
        Pin<Box<dyn Stream<Item = Result<wire::SnapshotSaveChunk, Status>> + Send>>;

    async fn snapshot_save(
        &self,
        request: Request<wire::SnapshotSaveRequest>,
    ) -> Answered<Self::SnapshotSaveStream> {
        let rpc = "SnapshotSave";
        self.check_leading()
            .map_err(|refused| self.refuse(rpc, &refused))?;
        self.must_be_admin(rpc, &request)?;
        let snapshot = self.consensus.snapshot().await;
        let (index, term, data) = snapshot.map_err(Status::unavailable)?;
        self.counts.state_bytes(data.len());
        let frames = frames(index, term, &data).into_iter().map(Ok);
        Ok(Response::new(Box::pin(tokio_stream::iter(frames))))
    }
}
