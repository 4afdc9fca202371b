//! Admin: what the shared contract lacks, with the checks of the rest.

use std::collections::BTreeSet;

use bigfleet_coordinator_core::{
    AdminRequest, Caller, Domain, Refused, ShardId, Shown, ShownCluster,
};
use bigfleet_wire::v1alpha1 as wire;
use tonic::{Request, Response, Status};
use wire::coordinator_admin_server::CoordinatorAdmin;

use super::{Answered, Service, caller, first_refusal, now};
use crate::consensus::{Consensus, MemberRefused};
use crate::report_facts::instruction;

fn unchanged(refused: MemberRefused) -> Status {
    match refused {
        MemberRefused::Unknown(_) => Status::not_found(refused.to_string()),
        MemberRefused::NotNow(_) => Status::aborted(refused.to_string()),
    }
}

fn text(shard: Option<&ShardId>) -> String {
    shard.map(ToString::to_string).unwrap_or_default()
}

fn asked_for(change: &wire::DomainChange) -> AdminRequest {
    let (key, value) = (change.topology_key.clone(), change.topology_value.clone());
    let shard = change.shard_id.clone();
    match (shard.is_empty(), change.r#move) {
        (true, _) => AdminRequest::UnassignDomain { key, value },
        (false, false) => AdminRequest::AssignDomain { key, value, shard },
        (false, true) => AdminRequest::MoveDomain {
            key,
            value,
            to: shard,
        },
    }
}

impl<C: Consensus> Service<C> {
    /// Changes domains, all or none as far as can be known before: a change of somebody else's may come between.
    async fn changed(
        &self,
        caller: &Caller,
        asked: &wire::ChangeDomainsRequest,
    ) -> Result<Vec<wire::ChangedDomain>, Refused> {
        // What is refused here is refused from tables: they must be those of the group, and not of a leader that was.
        self.check_leading()?;
        self.consensus.confirm().await?;
        let requests: Vec<AdminRequest> = asked.changes.iter().map(asked_for).collect();
        let (commands, changes) = {
            let mut core = self.core.lock();
            let commands = core.admin_all(now(), caller, &requests)?;
            first_refusal(core.rehearse(&commands))?;
            let shown = core.read(caller)?;
            let mut seen = BTreeSet::new();
            let mut changes = Vec::with_capacity(asked.changes.len());
            for change in &asked.changes {
                let domain = Domain::new(&change.topology_key, &change.topology_value)?;
                let row = shown.domain(&domain);
                if !seen.insert(domain.clone()) {
                    return Err(Refused::Twice(domain));
                }
                changes.push(wire::ChangedDomain {
                    topology_key: change.topology_key.clone(),
                    topology_value: change.topology_value.clone(),
                    from_shard_id: text(row.and_then(|row| row.desired.as_ref())),
                    to_shard_id: change.shard_id.clone(),
                    holder_shard_id: text(row.and_then(|row| row.holder.as_ref())),
                });
            }
            (commands, changes)
        };
        if !asked.dry_run && !commands.is_empty() {
            first_refusal(self.propose(&commands).await?)?;
        }
        Ok(changes)
    }
}

impl<C: Consensus> Service<C> {
    /// Whether a change would be made.
    async fn rehearsed(&self, caller: &Caller, asked: &AdminRequest) -> Result<(), Refused> {
        self.check_leading()?;
        self.consensus.confirm().await?;
        let mut core = self.core.lock();
        let commands = core.admin(now(), caller, asked)?;
        first_refusal(core.rehearse(&commands))
    }
}

#[tonic::async_trait]
impl<C: Consensus> CoordinatorAdmin for Service<C> {
    async fn inspect_replica(
        &self,
        request: Request<wire::InspectReplicaRequest>,
    ) -> Answered<wire::InspectReplicaResponse> {
        self.must_be_admin("InspectReplica", &request)?;
        let (directory, belonging) = self.consensus.identity();
        Ok(Response::new(wire::InspectReplicaResponse {
            name: self.name.clone(),
            directory,
            cluster_id: belonging.cluster.unwrap_or_default(),
            generation: belonging.generation,
        }))
    }

    async fn list_replicas(
        &self,
        request: Request<wire::ListReplicasRequest>,
    ) -> Answered<wire::ListReplicasResponse> {
        self.read("ListReplicas", &request, |_| ()).await?;
        let reign = self.core.lock().tables().reign();
        let view = self.consensus.view();
        let members = view.members.iter();
        let mut replicas: Vec<wire::Replica> = members
            .map(|(directory, member, is_voter)| {
                let is_leader = view.leader == Some(*directory);
                wire::Replica {
                    name: member.name.clone(),
                    voter: *is_voter,
                    leader: is_leader,
                    reign: if is_leader { reign } else { 0 },
                    address: member.grpc_address.clone(),
                    raft_address: member.raft_address.clone(),
                }
            })
            .collect();
        replicas.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Response::new(wire::ListReplicasResponse { replicas }))
    }

    async fn list_domains(
        &self,
        request: Request<wire::ListDomainsRequest>,
    ) -> Answered<wire::ListDomainsResponse> {
        let of = |shown: Shown<'_>| {
            let rows = shown.domains();
            let text = |shard: &Option<bigfleet_coordinator_core::ShardId>| {
                shard.as_ref().map(ToString::to_string).unwrap_or_default()
            };
            let states = rows.map(|(domain, row)| wire::DomainState {
                topology_key: domain.key().to_owned(),
                topology_value: domain.value().to_owned(),
                desired_shard_id: text(&row.desired),
                holder_shard_id: text(&row.holder),
            });
            states.collect()
        };
        let domains = self.read("ListDomains", &request, of).await?;
        Ok(Response::new(wire::ListDomainsResponse { domains }))
    }

    async fn list_clusters(
        &self,
        request: Request<wire::ListClustersRequest>,
    ) -> Answered<wire::ListClustersResponse> {
        let of = |shown: Shown<'_>| shown.clusters();
        let clusters = self.read("ListClusters", &request, of).await?;
        let served = |one: ShownCluster| wire::ServedCluster {
            cluster_id: one.cluster.to_string(),
            shard_id: one.shard.to_string(),
            also_at_shard_ids: one.also_at.iter().map(ToString::to_string).collect(),
        };
        let clusters = clusters.into_iter().map(served).collect();
        Ok(Response::new(wire::ListClustersResponse { clusters }))
    }

    async fn list_instructions(
        &self,
        request: Request<wire::ListInstructionsRequest>,
    ) -> Answered<wire::ListInstructionsResponse> {
        let of = |shown: Shown<'_>| shown.instructions();
        let pending = self.read("ListInstructions", &request, of).await?;
        let pending = pending.iter().map(|(shard, one)| wire::PendingInstruction {
            shard_id: shard.to_string(),
            instruction: Some(instruction(one)),
        });
        let instructions = pending.collect();
        Ok(Response::new(wire::ListInstructionsResponse {
            instructions,
        }))
    }

    async fn change_domains(
        &self,
        request: Request<wire::ChangeDomainsRequest>,
    ) -> Answered<wire::ChangeDomainsResponse> {
        let rpc = "ChangeDomains";
        let caller = caller(&request);
        let asked = request.into_inner();
        let changes = self.changed(&caller, &asked).await;
        let changes = changes.map_err(|refused| self.refuse(rpc, &refused))?;
        Ok(Response::new(wire::ChangeDomainsResponse { changes }))
    }

    async fn remove_peer(
        &self,
        request: Request<wire::RemovePeerRequest>,
    ) -> Answered<wire::RemovePeerResponse> {
        let rpc = "RemovePeer";
        self.check_leading()
            .map_err(|refused| self.refuse(rpc, &refused))?;
        self.must_be_admin(rpc, &request)?;
        let name = request.into_inner().name;
        if name.is_empty() {
            return Err(Status::invalid_argument("name is empty"));
        }
        let _one_at_a_time = self.joining.lock().await;
        self.consensus.remove(&name).await.map_err(unchanged)?;
        tracing::info!(name, "replica removed");
        Ok(Response::new(wire::RemovePeerResponse {}))
    }

    async fn transfer_leader(
        &self,
        request: Request<wire::TransferLeaderRequest>,
    ) -> Answered<wire::TransferLeaderResponse> {
        let rpc = "TransferLeader";
        self.check_leading()
            .map_err(|refused| self.refuse(rpc, &refused))?;
        self.must_be_admin(rpc, &request)?;
        let to = request.into_inner().to;
        let to = Some(to.as_str()).filter(|to| !to.is_empty());
        let _one_at_a_time = self.joining.lock().await;
        let leader = self.consensus.hand_over(to).await.map_err(unchanged)?;
        tracing::info!(to = leader, "leadership handed over");
        Ok(Response::new(wire::TransferLeaderResponse { leader }))
    }

    async fn finish_restore(
        &self,
        request: Request<wire::FinishRestoreRequest>,
    ) -> Answered<wire::FinishRestoreResponse> {
        let asked = AdminRequest::FinishRestore;
        if request.get_ref().dry_run {
            let rehearsed = self.rehearsed(&caller(&request), &asked).await;
            rehearsed.map_err(|refused| self.refuse("FinishRestore", &refused))?;
        } else {
            self.admin("FinishRestore", &request, &asked).await?;
        }
        Ok(Response::new(wire::FinishRestoreResponse {}))
    }
}
