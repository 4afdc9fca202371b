//! ShardAdmin: what a person tells a running shard to do (SH-16, G14).
//!
//! ```text
//! request ─▶ admin? ─▶ every required field? ─▶ may it be done? ─┬─ dry run ─▶ what would happen
//!                                                               └─▶ event to the core ─▶ what did
//!                                            each of them ─▶ audit: who, what, why, outcome
//! ```
//!
//! The core judges again when it takes the event, so what changed since the question cannot slip
//! through; the answer is what it made of it.

mod audit;
mod checks;
mod pause;
mod release;
mod retire;

use std::sync::Arc;

use bigfleet_net::{Caller, Identity};
use bigfleet_wire::v1alpha1::shard_admin_server::ShardAdmin;
use bigfleet_wire::v1alpha1::{
    PauseRequest, PauseResponse, ReleaseClusterRequest, ReleaseClusterResponse, ResumeRequest,
    ResumeResponse, RetireMachineRequest, RetireMachineResponse,
};
use tonic::{Request, Response, Status};

use crate::hub::Hub;
use crate::read::Place;
use audit::Asked;

/// The service admins call.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    hub: Hub,
    place: Arc<Place>,
}

impl Admin {
    pub(crate) fn new(hub: Hub, place: Arc<Place>) -> Self {
        Self { hub, place }
    }
}

/// Passes admins only.
fn admitted<T>(request: &Request<T>, verb: &'static str) -> Result<Caller, Status> {
    let caller = Caller::of(request);
    caller
        .must_be(&Identity::Admin, verb)
        .inspect_err(|refused| {
            tracing::warn!(verb, caller = ?caller.addr(), reason = refused.message(), "admin refused");
        })?;
    Ok(caller)
}

#[tonic::async_trait]
impl ShardAdmin for Admin {
    async fn pause(
        &self,
        request: Request<PauseRequest>,
    ) -> Result<Response<PauseResponse>, Status> {
        let caller = admitted(&request, "Pause")?;
        let request = request.into_inner();
        let asked = Asked::new("Pause", &caller, &request.reason, request.dry_run);
        let done = pause::pause(self, &request, asked.by()).await;
        asked.answered(done).map(Response::new)
    }

    async fn resume(
        &self,
        request: Request<ResumeRequest>,
    ) -> Result<Response<ResumeResponse>, Status> {
        let caller = admitted(&request, "Resume")?;
        let request = request.into_inner();
        let asked = Asked::new("Resume", &caller, &request.reason, request.dry_run);
        asked
            .answered(pause::resume(self, &request).await)
            .map(Response::new)
    }

    async fn retire_machine(
        &self,
        request: Request<RetireMachineRequest>,
    ) -> Result<Response<RetireMachineResponse>, Status> {
        let caller = admitted(&request, "RetireMachine")?;
        let request = request.into_inner();
        let asked = Asked::new("RetireMachine", &caller, &request.reason, request.dry_run);
        asked
            .answered(retire::retire(self, &request).await)
            .map(Response::new)
    }

    async fn release_cluster(
        &self,
        request: Request<ReleaseClusterRequest>,
    ) -> Result<Response<ReleaseClusterResponse>, Status> {
        let caller = admitted(&request, "ReleaseCluster")?;
        let request = request.into_inner();
        let asked = Asked::new("ReleaseCluster", &caller, &request.reason, request.dry_run);
        asked
            .answered(release::release(self, &request).await)
            .map(Response::new)
    }
}
