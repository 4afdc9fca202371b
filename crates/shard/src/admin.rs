//! ShardAdmin: what a person tells a running shard to do (SH-16, AD-1, AD-2).
//!
//! ```text
//! request ─▶ admin? ─▶ every required field? ─▶ may it be done? ─┬─ dry run ─▶ what would happen
//!                                                               └─▶ event to the core ─▶ disk ─▶ what did
//!                                            each of them ─▶ audit: who, what, why, outcome
//! ```
//!
//! The core judges again when it takes the event, so what changed since the question cannot slip
//! through; the answer is what it made of it, and comes once that is on disk.

mod answer;
mod audit;
mod checks;
mod drain;
mod drain_plan;
mod pause;
mod release;
mod retire;

use std::sync::Arc;

use bigfleet_model::shown;
use bigfleet_net::{Caller, Identity};
use bigfleet_wire::v1alpha1::resume_request::Target;
use bigfleet_wire::v1alpha1::shard_admin_server::ShardAdmin;
use bigfleet_wire::v1alpha1::{
    DrainMachinesRequest, DrainMachinesResponse, PauseRequest, PauseResponse, PauseScope,
    ReleaseClusterRequest, ReleaseClusterResponse, ResumeRequest, ResumeResponse,
    RetireMachineRequest, RetireMachineResponse, UndrainMachinesRequest, UndrainMachinesResponse,
    pause_scope,
};
use serde_json::{Value, json};
use tonic::{Request, Response, Status};

use crate::audit::AuditLines;
use crate::hub::Hub;
use crate::read::ShardInfo;
use audit::Asked;

/// Ids of a request that are written down.
const MOST_NAMED: usize = 100;

/// The service admins call.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    hub: Hub,
    info: Arc<ShardInfo>,
    /// Where every call is written down.
    audit: Option<AuditLines>,
}

impl Admin {
    pub(crate) fn new(hub: Hub, info: Arc<ShardInfo>, audit: Option<AuditLines>) -> Self {
        Self { hub, info, audit }
    }
}

/// Passes admins only.
fn admitted(caller: &Caller, verb: &'static str) -> Result<(), Status> {
    caller.must_be(&Identity::Admin, verb)
}

/// A scope as it was asked for, whatever it is worth.
fn scope(scope: Option<&PauseScope>) -> String {
    match scope.and_then(|scope| scope.scope.as_ref()) {
        None => String::new(),
        Some(pause_scope::Scope::All(_)) => "all".to_owned(),
        Some(pause_scope::Scope::ClusterId(id)) => format!("cluster {}", shown(id)),
        Some(pause_scope::Scope::ProviderAddress(addr)) => format!("provider {}", shown(addr)),
    }
}

/// The machines a call names, as many as are written down.
fn named(ids: &[String]) -> Vec<String> {
    ids.iter().take(MOST_NAMED).map(|id| shown(id)).collect()
}

fn target(target: Option<&Target>) -> Value {
    match target {
        None => json!({}),
        Some(Target::PauseId(id)) => json!({ "pause_id": shown(id) }),
        Some(Target::Scope(asked)) => json!({ "scope": scope(Some(asked)) }),
    }
}

#[tonic::async_trait]
impl ShardAdmin for Admin {
    async fn pause(
        &self,
        request: Request<PauseRequest>,
    ) -> Result<Response<PauseResponse>, Status> {
        let (verb, caller, request) = ("Pause", Caller::of(&request), request.into_inner());
        let asked = json!({
            "scope": scope(request.scope.as_ref()),
            "expires_after_seconds": request.expires_after_seconds,
        });
        let said = (request.reason.as_str(), request.dry_run);
        let asked = Asked::new(self, verb, &caller, said, asked);
        let done = match admitted(&caller, verb) {
            Ok(()) => pause::pause(self, &request, asked.by()).await,
            Err(refused) => Err(refused),
        };
        asked.answered(done).map(Response::new)
    }

    async fn resume(
        &self,
        request: Request<ResumeRequest>,
    ) -> Result<Response<ResumeResponse>, Status> {
        let (verb, caller, request) = ("Resume", Caller::of(&request), request.into_inner());
        let said = (request.reason.as_str(), request.dry_run);
        let asked = target(request.target.as_ref());
        let asked = Asked::new(self, verb, &caller, said, asked);
        let done = match admitted(&caller, verb) {
            Ok(()) => pause::resume(self, &request).await,
            Err(refused) => Err(refused),
        };
        asked.answered(done).map(Response::new)
    }

    async fn retire_machine(
        &self,
        request: Request<RetireMachineRequest>,
    ) -> Result<Response<RetireMachineResponse>, Status> {
        let verb = "RetireMachine";
        let (caller, request) = (Caller::of(&request), request.into_inner());
        let said = (request.reason.as_str(), request.dry_run);
        let asked = json!({ "machine_id": shown(&request.machine_id) });
        let asked = Asked::new(self, verb, &caller, said, asked);
        let done = match admitted(&caller, verb) {
            Ok(()) => retire::retire(self, &request).await,
            Err(refused) => Err(refused),
        };
        asked.answered(done).map(Response::new)
    }

    async fn release_cluster(
        &self,
        request: Request<ReleaseClusterRequest>,
    ) -> Result<Response<ReleaseClusterResponse>, Status> {
        let verb = "ReleaseCluster";
        let (caller, request) = (Caller::of(&request), request.into_inner());
        let said = (request.reason.as_str(), request.dry_run);
        let asked = json!({
            "cluster_id": shown(&request.cluster_id),
            "confirm_machines": request.confirm_machines,
        });
        let asked = Asked::new(self, verb, &caller, said, asked);
        let done = match admitted(&caller, verb) {
            Ok(()) => release::release(self, &request).await,
            Err(refused) => Err(refused),
        };
        asked.answered(done).map(Response::new)
    }

    async fn drain_machines(
        &self,
        request: Request<DrainMachinesRequest>,
    ) -> Result<Response<DrainMachinesResponse>, Status> {
        let verb = "DrainMachines";
        let (caller, request) = (Caller::of(&request), request.into_inner());
        let said = (request.reason.as_str(), request.dry_run);
        let asked = json!({
            "machine_ids": named(&request.machine_ids),
            "label_selector": shown(&request.label_selector),
            "deadline_unix_nanos": request.deadline_unix_nanos,
        });
        let asked = Asked::new(self, verb, &caller, said, asked);
        let done = match admitted(&caller, verb) {
            Ok(()) => drain::drain(self, &request, asked.by()).await,
            Err(refused) => Err(refused),
        };
        asked.answered(done).map(Response::new)
    }

    async fn undrain_machines(
        &self,
        request: Request<UndrainMachinesRequest>,
    ) -> Result<Response<UndrainMachinesResponse>, Status> {
        let verb = "UndrainMachines";
        let (caller, request) = (Caller::of(&request), request.into_inner());
        let said = (request.reason.as_str(), false);
        let asked = json!({
            "machine_ids": named(&request.machine_ids),
            "label_selector": shown(&request.label_selector),
        });
        let asked = Asked::new(self, verb, &caller, said, asked);
        let done = match admitted(&caller, verb) {
            Ok(()) => drain::undrain(self, &request, asked.by()).await,
            Err(refused) => Err(refused),
        };
        asked.answered(done).map(Response::new)
    }
}
