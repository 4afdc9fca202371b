//! ShardRead: what a shard shows of itself, to people and tools (shard.md §9).
//!
//! ```text
//! reader ─▶ who? ─▶ what? ─▶ a task: ask the core for a page ─▶ words ─▶ [few frames wait] ─▶ reader
//!                                          ▲                                    │
//!                                          └──────── when there is room ◀───────┘
//! ```
//!
//! The core is only ever asked for one bounded page, between two events. A reader that is slow fills its
//! own few frames and its own task waits; one that goes away ends that task. What costs more than a page
//! (explaining, writing a file) runs on a copy, in a thread of its own, and only so many at once.
//!
//! What is streamed by page is as it is when its page is taken; what is promised by the header is what
//! there was when the stream began.

mod actions;
mod clusters;
mod copy;
mod events;
mod explain;
mod explained;
mod explainer;
mod export;
pub(crate) mod leaving;
mod machines;
mod need_status;
mod needs;
mod rails;
mod shard_info;
mod shortfall_text;
mod status;
mod stream;
#[cfg(test)]
mod testing;
mod troubles;
mod work;

pub(crate) use copy::copy as copy_fleet;
pub(crate) use machines::message as machine_message;
pub(crate) use rails::{pause_id, pauses, scope_message};
pub(crate) use shard_info::ShardInfo;
pub(crate) use status::Surroundings;
pub(crate) use work::{all as all_work, concerns};

use std::sync::Arc;

use bigfleet_model::ClusterId;
use bigfleet_net::Caller;
use bigfleet_wire::v1alpha1::shard_read_server::ShardRead;
use bigfleet_wire::v1alpha1::{
    ExplainNeedRequest, ExplainNeedResponse, ExportFleetRequest, ExportFleetResponse,
    InspectActionsRequest, InspectActionsResponse, InspectClustersRequest, InspectClustersResponse,
    InspectEventsRequest, InspectEventsResponse, InspectMachinesRequest, InspectMachinesResponse,
    InspectNeedsRequest, InspectNeedsResponse, InspectRailsRequest, InspectRailsResponse,
    InspectStatusRequest, InspectStatusResponse, InspectWorkRequest, InspectWorkResponse,
};
use tonic::{Request, Response, Status};

use crate::events::Events;
use crate::history::History;
use crate::hub::Hub;
use crate::session::SessionCounts;
use copy::Exports;
use explainer::Explainers;
use stream::{Frames, Place, Places, frames};

/// The service readers call.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    hub: Hub,
    info: Arc<ShardInfo>,
    history: Arc<History>,
    events: Arc<Events>,
    sessions: Arc<SessionCounts>,
    surroundings: Arc<Surroundings>,
    explainers: Arc<Explainers>,
    exports: Exports,
    places: Places,
}

impl Reads {
    pub(crate) fn new(
        hub: Hub,
        info: Arc<ShardInfo>,
        history: Arc<History>,
        events: Arc<Events>,
        sessions: Arc<SessionCounts>,
        surroundings: Surroundings,
    ) -> Self {
        Self {
            explainers: Arc::default(),
            exports: Exports::default(),
            places: Places::default(),
            hub,
            info,
            history,
            events,
            sessions,
            surroundings: Arc::new(surroundings),
        }
    }
}

impl Reads {
    /// A place for an answer, for whoever may read.
    fn place<T>(&self, request: &Request<T>, what: &str) -> Result<Place, Status> {
        let caller = Caller::of(request);
        caller.may_read(what)?;
        self.places.take(&caller)
    }
}

/// An id of a cluster that a filter names; empty is any.
fn cluster_filter(text: &str) -> Result<Option<ClusterId>, Status> {
    match text {
        "" => Ok(None),
        id => cluster_id(id).map(Some),
    }
}

/// The id of a cluster that must be named.
pub(crate) fn cluster_id(text: &str) -> Result<ClusterId, Status> {
    ClusterId::new(text).map_err(|why| Status::invalid_argument(format!("cluster_id {why}")))
}

#[tonic::async_trait]
impl ShardRead for Reads {
    type InspectNeedsStream = Frames<InspectNeedsResponse>;
    type InspectMachinesStream = Frames<InspectMachinesResponse>;
    type InspectClustersStream = Frames<InspectClustersResponse>;
    type InspectWorkStream = Frames<InspectWorkResponse>;
    type InspectActionsStream = Frames<InspectActionsResponse>;
    type InspectEventsStream = Frames<InspectEventsResponse>;
    type ExportFleetStream = Frames<ExportFleetResponse>;

    async fn inspect_needs(
        &self,
        request: Request<InspectNeedsRequest>,
    ) -> Result<Response<Self::InspectNeedsStream>, Status> {
        let place = self.place(&request, "InspectNeeds")?;
        let wanted = needs::NeedsFilter::read(&request.into_inner())?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            needs::send(&reads, &wanted, &out).await
        }))
    }

    async fn inspect_machines(
        &self,
        request: Request<InspectMachinesRequest>,
    ) -> Result<Response<Self::InspectMachinesStream>, Status> {
        let place = self.place(&request, "InspectMachines")?;
        let wanted = machines::MachinesQuery::read(request.into_inner())?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            machines::send(&reads, wanted, &out).await
        }))
    }

    async fn inspect_clusters(
        &self,
        request: Request<InspectClustersRequest>,
    ) -> Result<Response<Self::InspectClustersStream>, Status> {
        let place = self.place(&request, "InspectClusters")?;
        let wanted = cluster_filter(&request.into_inner().cluster_id)?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            clusters::send(&reads, wanted, &out).await
        }))
    }

    async fn inspect_work(
        &self,
        request: Request<InspectWorkRequest>,
    ) -> Result<Response<Self::InspectWorkStream>, Status> {
        let place = self.place(&request, "InspectWork")?;
        let wanted = work::WorkFilter::read(&request.into_inner())?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            work::send(&reads, &wanted, &out).await
        }))
    }

    async fn inspect_actions(
        &self,
        request: Request<InspectActionsRequest>,
    ) -> Result<Response<Self::InspectActionsStream>, Status> {
        let place = self.place(&request, "InspectActions")?;
        let wanted = actions::ActionsFilter::read(&request.into_inner())?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            actions::send(&reads, &wanted, &out).await
        }))
    }

    async fn inspect_events(
        &self,
        request: Request<InspectEventsRequest>,
    ) -> Result<Response<Self::InspectEventsStream>, Status> {
        let place = self.place(&request, "InspectEvents")?;
        let wanted = events::EventsFilter::read(&request.into_inner())?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            events::send(&reads, &wanted, &out).await
        }))
    }

    async fn inspect_rails(
        &self,
        request: Request<InspectRailsRequest>,
    ) -> Result<Response<InspectRailsResponse>, Status> {
        Caller::of(&request).may_read("InspectRails")?;
        rails::inspect(self).await.map(Response::new)
    }

    async fn inspect_status(
        &self,
        request: Request<InspectStatusRequest>,
    ) -> Result<Response<InspectStatusResponse>, Status> {
        Caller::of(&request).may_read("InspectStatus")?;
        status::inspect(self).await.map(Response::new)
    }

    async fn explain_need(
        &self,
        request: Request<ExplainNeedRequest>,
    ) -> Result<Response<ExplainNeedResponse>, Status> {
        Caller::of(&request).may_read("ExplainNeed")?;
        let wanted = explain::NamedNeed::read(&request.into_inner())?;
        explain::explain(self, wanted).await.map(Response::new)
    }

    async fn export_fleet(
        &self,
        request: Request<ExportFleetRequest>,
    ) -> Result<Response<Self::ExportFleetStream>, Status> {
        let place = self.place(&request, "ExportFleet")?;
        let wanted = cluster_filter(&request.into_inner().cluster_id)?;
        let reads = self.clone();
        Ok(frames(&self.hub, place, async move |out| {
            export::send(&reads, wanted, &out).await
        }))
    }
}
