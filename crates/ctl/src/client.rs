//! Client: asks one shard, and tells it what to do.
//!
//! ```text
//! call ─▶ header, entry, entry, … ─▶ handed to the caller one by one      each within --timeout
//! ```
//!
//! The timeout is for the answer to begin and for each next part of it, so listing half a million
//! machines may take as long as it keeps coming. An answer without a header, or one that stops half
//! way, is an error and never passed off as complete.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES, Tls};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};
use wire::shard_admin_client::ShardAdminClient;
use wire::shard_read_client::ShardReadClient;

use crate::coordinator::CoordinatorClient;
use crate::error::CtlError;
use crate::when::local_now;

/// How long to wait by default: longer than the usual cycle, since the first who asks for verdicts
/// waits for one.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);
/// A shard that can be reached accepts a connection well within this.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A shard that can be asked. Connects when it is first used, and again after the connection is lost.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    target: Arc<str>,
    within: Duration,
    tls: Option<Arc<Tls>>,
    coordinator: Option<CoordinatorClient>,
    is_shard_named: bool,
}

/// A frame of a streamed answer: its header, or one entry.
pub(crate) trait Framed {
    type Header;
    type Entry;
    /// What the frame is; `None` for a kind of frame this version does not know.
    fn part(self) -> Option<FramePart<Self::Header, Self::Entry>>;
}

pub(crate) enum FramePart<H, E> {
    Header(H),
    Entry(E),
}

macro_rules! framed {
    ($($response:ident, $module:ident, $header:ident, $entry:ident($view:ident);)*) => {$(
        impl Framed for wire::$response {
            type Header = wire::$header;
            type Entry = wire::$view;
            fn part(self) -> Option<FramePart<Self::Header, Self::Entry>> {
                use wire::$module::Frame;
                Some(match self.frame? {
                    Frame::Header(header) => FramePart::Header(header),
                    Frame::$entry(entry) => FramePart::Entry(entry),
                })
            }
        }
    )*};
}

framed! {
    InspectNeedsResponse, inspect_needs_response, InspectNeedsHeader, Need(NeedView);
    InspectMachinesResponse, inspect_machines_response, InspectHeader, Machine(MachineView);
    InspectClustersResponse, inspect_clusters_response, InspectHeader, Cluster(ClusterView);
    InspectWorkResponse, inspect_work_response, InspectHeader, Work(WorkView);
    InspectActionsResponse, inspect_actions_response, InspectHeader, Action(ActionView);
    InspectEventsResponse, inspect_events_response, InspectHeader, Event(EventView);
}

impl Client {
    /// A client for the shard at `host:port`.
    pub fn new(target: &str, tls: Option<Arc<Tls>>, within: Duration) -> Result<Self, CtlError> {
        let dial = Dial {
            connect_within: within.min(CONNECT_WITHIN),
            ..Dial::unknown(tls.clone())
        };
        let channel = dial
            .channel(target)
            .map_err(|why| CtlError::Usage(format!("--shard {why}")))?;
        Ok(Self {
            channel,
            target: target.into(),
            within,
            tls,
            coordinator: None,
            is_shard_named: true,
        })
    }

    /// The same, with the coordinator of its fleet. If only that was named, it is asked what it can answer.
    #[must_use]
    pub fn with_coordinator(self, coordinator: CoordinatorClient, is_shard_named: bool) -> Self {
        Self {
            coordinator: Some(coordinator),
            is_shard_named,
            ..self
        }
    }

    /// The coordinator of the fleet.
    pub(crate) fn coordinator(&self) -> Result<&CoordinatorClient, CtlError> {
        let missing = || CtlError::Usage("name the coordinator with --coordinator".to_owned());
        self.coordinator.as_ref().ok_or_else(missing)
    }

    /// The coordinator, if nobody named a shard.
    pub(crate) fn only_coordinator(&self) -> Option<&CoordinatorClient> {
        self.coordinator.as_ref().filter(|_| !self.is_shard_named)
    }

    /// The address it calls.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Every Need of a cluster, or of all if `cluster` is empty, handed over as they arrive.
    pub async fn needs(
        &self,
        cluster: &str,
        each: impl FnMut(wire::NeedView),
    ) -> Result<wire::InspectNeedsHeader, CtlError> {
        let request = wire::InspectNeedsRequest {
            cluster_id: cluster.to_owned(),
            accept_new_reasons: true,
            ..wire::InspectNeedsRequest::default()
        };
        let doing = "list Needs";
        let answer = self.one(doing, self.read().inspect_needs(request)).await?;
        self.each(doing, answer, each).await
    }

    /// Machines, handed over as they arrive.
    pub async fn machines(
        &self,
        request: wire::InspectMachinesRequest,
        each: impl FnMut(wire::MachineView),
    ) -> Result<wire::InspectHeader, CtlError> {
        let doing = "list machines";
        let answer = self
            .one(doing, self.read().inspect_machines(request))
            .await?;
        self.each(doing, answer, each).await
    }

    /// All clusters, or only the one of this id.
    pub async fn clusters(
        &self,
        cluster: &str,
    ) -> Result<(wire::InspectHeader, Vec<wire::ClusterView>), CtlError> {
        let request = wire::InspectClustersRequest {
            cluster_id: cluster.to_owned(),
        };
        let doing = "list clusters";
        let answer = self
            .one(doing, self.read().inspect_clusters(request))
            .await?;
        self.gathered(doing, answer).await
    }

    /// Operations in progress, oldest first.
    pub async fn work(
        &self,
        request: wire::InspectWorkRequest,
    ) -> Result<(wire::InspectHeader, Vec<wire::WorkView>), CtlError> {
        let doing = "list work in progress";
        let answer = self.one(doing, self.read().inspect_work(request)).await?;
        self.gathered(doing, answer).await
    }

    /// Recent decisions, newest first.
    pub async fn actions(
        &self,
        request: wire::InspectActionsRequest,
    ) -> Result<(wire::InspectHeader, Vec<wire::ActionView>), CtlError> {
        let doing = "list decisions";
        let answer = self
            .one(doing, self.read().inspect_actions(request))
            .await?;
        self.gathered(doing, answer).await
    }

    /// What changed, oldest first.
    pub async fn events(
        &self,
        request: wire::InspectEventsRequest,
    ) -> Result<(wire::InspectHeader, Vec<wire::EventView>), CtlError> {
        let doing = "list events";
        let answer = self.one(doing, self.read().inspect_events(request)).await?;
        self.gathered(doing, answer).await
    }

    /// Everything that limits or stops the shard: rails, pauses, pools left alone.
    pub async fn rails(&self) -> Result<wire::InspectRailsResponse, CtlError> {
        let request = wire::InspectRailsRequest {};
        self.one("list pauses and limits", self.read().inspect_rails(request))
            .await
    }

    /// Everything that is not as it should be, worst first.
    pub async fn status(&self) -> Result<wire::InspectStatusResponse, CtlError> {
        let request = wire::InspectStatusRequest {};
        self.one("say how it is", self.read().inspect_status(request))
            .await
    }

    /// Why a Need is served as it is; `None` if there is no such Need.
    pub async fn explain(
        &self,
        request: wire::ExplainNeedRequest,
    ) -> Result<Option<wire::ExplainNeedResponse>, CtlError> {
        let mut read = self.read();
        let doing = "explain a Need";
        let answered = self.in_time(read.explain_need(request)).await?;
        match answered {
            Ok(answer) => Ok(Some(answer.into_inner())),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(self.error_of(&status, doing)),
        }
    }

    /// The fleet as a file, in frames that the caller puts together.
    pub(crate) async fn export(
        &self,
        request: wire::ExportFleetRequest,
    ) -> Result<Streaming<wire::ExportFleetResponse>, CtlError> {
        self.one("export the fleet", self.read().export_fleet(request))
            .await
    }

    /// Pauses a scope.
    pub async fn pause(
        &self,
        request: wire::PauseRequest,
    ) -> Result<wire::PauseResponse, CtlError> {
        self.one("pause", self.admin().pause(request)).await
    }

    /// Ends pauses.
    pub async fn resume(
        &self,
        request: wire::ResumeRequest,
    ) -> Result<wire::ResumeResponse, CtlError> {
        self.one("resume", self.admin().resume(request)).await
    }

    /// Removes a Failed machine from the shard's records.
    pub async fn retire_machine(
        &self,
        request: wire::RetireMachineRequest,
    ) -> Result<wire::RetireMachineResponse, CtlError> {
        self.one("retire a machine", self.admin().retire_machine(request))
            .await
    }

    /// Drops the demand of a cluster whose operator is gone.
    pub async fn release_cluster(
        &self,
        request: wire::ReleaseClusterRequest,
    ) -> Result<wire::ReleaseClusterResponse, CtlError> {
        self.one("release a cluster", self.admin().release_cluster(request))
            .await
    }

    /// Marks machines to leave, or says what that would do.
    pub async fn drain_machines(
        &self,
        request: wire::DrainMachinesRequest,
    ) -> Result<wire::DrainMachinesResponse, CtlError> {
        self.one("drain machines", self.admin().drain_machines(request))
            .await
    }

    /// Lifts such marks.
    pub async fn undrain_machines(
        &self,
        request: wire::UndrainMachinesRequest,
    ) -> Result<wire::UndrainMachinesResponse, CtlError> {
        self.one("undrain machines", self.admin().undrain_machines(request))
            .await
    }

    fn read(&self) -> ShardReadClient<Channel> {
        ShardReadClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn admin(&self) -> ShardAdminClient<Channel> {
        ShardAdminClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn error_of(&self, status: &Status, doing: &'static str) -> CtlError {
        match CtlError::of(status, &self.target, doing, self.within) {
            // Our side of the handshake went well, so it is the other side that does not like ours; it says
            // so only by hanging up.
            CtlError::NotAShard { target } if self.tls.is_some() => {
                let is_over = self.tls.as_ref().is_some_and(|tls| {
                    tls.counts().expires_unix_seconds <= local_now() / 1_000_000_000
                });
                CtlError::refused_certificate(target, is_over)
            }
            other => other,
        }
    }

    async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, CtlError> {
        let silent = |_| CtlError::NoAnswer {
            target: self.target.to_string(),
            within: self.within,
        };
        timeout(self.within, answer).await.map_err(silent)
    }

    async fn one<T>(
        &self,
        doing: &'static str,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CtlError> {
        let answered = self.in_time(answer).await?;
        let answered = answered.map_err(|status| self.error_of(&status, doing))?;
        Ok(answered.into_inner())
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next<T>(
        &self,
        doing: &'static str,
        frames: &mut Streaming<T>,
    ) -> Result<Option<T>, CtlError> {
        let frame = self.in_time(frames.message()).await?;
        frame.map_err(|status| match self.error_of(&status, doing) {
            // It did answer: what broke is the answer.
            CtlError::NotListening { target }
            | CtlError::NotAShard { target }
            | CtlError::UnknownHost { target, .. }
            | CtlError::Unreachable { target, .. }
            | CtlError::Certificates { target, .. } => CtlError::Interrupted {
                target,
                why: "the connection was lost".to_owned(),
            },
            other => other,
        })
    }

    async fn each<F: Framed>(
        &self,
        doing: &'static str,
        mut frames: Streaming<F>,
        mut each: impl FnMut(F::Entry),
    ) -> Result<F::Header, CtlError> {
        let malformed = |what: &str| CtlError::Malformed {
            target: self.target.to_string(),
            doing,
            what: what.to_owned(),
        };
        let first = self.next(doing, &mut frames).await?;
        let Some(FramePart::Header(header)) = first.and_then(Framed::part) else {
            return Err(malformed("it does not begin with a header"));
        };
        while let Some(frame) = self.next(doing, &mut frames).await? {
            match frame.part() {
                Some(FramePart::Entry(entry)) => each(entry),
                Some(FramePart::Header(_)) => return Err(malformed("it has a second header")),
                // A kind of frame that a newer shard sends.
                None => {}
            }
        }
        Ok(header)
    }

    async fn gathered<F: Framed>(
        &self,
        doing: &'static str,
        frames: Streaming<F>,
    ) -> Result<(F::Header, Vec<F::Entry>), CtlError> {
        let mut entries = Vec::new();
        let header = self
            .each(doing, frames, |entry| entries.push(entry))
            .await?;
        Ok((header, entries))
    }
}
