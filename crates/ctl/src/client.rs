//! Client: one shard, asked and told.
//!
//! ```text
//! call ─▶ header, entry, entry, … ─▶ handed over one by one        every step within --timeout
//! ```
//!
//! The time allowed is for the answer to begin and for each next part of it, so a fleet of half a
//! million machines may take as long as it keeps coming. An answer without a header, or that stops,
//! is never taken for a whole one.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES, Tls};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};
use wire::shard_admin_client::ShardAdminClient;
use wire::shard_read_client::ShardReadClient;

use crate::trouble::Trouble;

/// How long to wait where nobody says otherwise: longer than the usual cycle, since the first who
/// asks for verdicts waits for one.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that stands at all stands soon.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A shard that can be asked. Connects when it is first used, and again after a loss.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    target: Arc<str>,
    within: Duration,
}

/// A frame of a streamed answer, taken apart.
pub(crate) trait Framed {
    type Header;
    type Entry;
    /// The header, an entry, or neither.
    fn part(self) -> Option<Part<Self::Header, Self::Entry>>;
}

pub(crate) enum Part<H, E> {
    Header(H),
    Entry(E),
}

macro_rules! framed {
    ($($response:ident, $module:ident, $header:ident, $entry:ident($view:ident);)*) => {$(
        impl Framed for wire::$response {
            type Header = wire::$header;
            type Entry = wire::$view;
            fn part(self) -> Option<Part<Self::Header, Self::Entry>> {
                use wire::$module::Frame;
                Some(match self.frame? {
                    Frame::Header(header) => Part::Header(header),
                    Frame::$entry(entry) => Part::Entry(entry),
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
}

impl Client {
    /// A client for the shard at `host:port`.
    pub fn new(target: &str, tls: Option<Arc<Tls>>, within: Duration) -> Result<Self, Trouble> {
        let dial = Dial {
            connect_within: within.min(CONNECT_WITHIN),
            ..Dial::unknown(tls)
        };
        let channel = dial
            .channel(target)
            .map_err(|why| Trouble::Usage(format!("--shard {why}")))?;
        Ok(Self {
            channel,
            target: target.into(),
            within,
        })
    }

    /// Where it calls.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Every row of demand of a cluster, or of all, handed over as they come.
    pub async fn needs(
        &self,
        cluster: &str,
        each: impl FnMut(wire::NeedView),
    ) -> Result<wire::InspectNeedsHeader, Trouble> {
        let request = wire::InspectNeedsRequest {
            cluster_id: cluster.to_owned(),
            accept_new_reasons: true,
            ..wire::InspectNeedsRequest::default()
        };
        let call = "InspectNeeds";
        let answer = self.one(call, self.read().inspect_needs(request)).await?;
        self.each(call, answer, each).await
    }

    /// Machines, handed over as they come.
    pub async fn machines(
        &self,
        request: wire::InspectMachinesRequest,
        each: impl FnMut(wire::MachineView),
    ) -> Result<wire::InspectHeader, Trouble> {
        let call = "InspectMachines";
        let answer = self
            .one(call, self.read().inspect_machines(request))
            .await?;
        self.each(call, answer, each).await
    }

    /// The clusters, or the one that is called so.
    pub async fn clusters(
        &self,
        cluster: &str,
    ) -> Result<(wire::InspectHeader, Vec<wire::ClusterView>), Trouble> {
        let request = wire::InspectClustersRequest {
            cluster_id: cluster.to_owned(),
        };
        let call = "InspectClusters";
        let answer = self
            .one(call, self.read().inspect_clusters(request))
            .await?;
        self.gathered(call, answer).await
    }

    /// What is under way, oldest first.
    pub async fn work(
        &self,
        request: wire::InspectWorkRequest,
    ) -> Result<(wire::InspectHeader, Vec<wire::WorkView>), Trouble> {
        let call = "InspectWork";
        let answer = self.one(call, self.read().inspect_work(request)).await?;
        self.gathered(call, answer).await
    }

    /// What was decided lately, newest first.
    pub async fn actions(
        &self,
        request: wire::InspectActionsRequest,
    ) -> Result<(wire::InspectHeader, Vec<wire::ActionView>), Trouble> {
        let call = "InspectActions";
        let answer = self.one(call, self.read().inspect_actions(request)).await?;
        self.gathered(call, answer).await
    }

    /// What limits or stops the shard.
    pub async fn rails(&self) -> Result<wire::InspectRailsResponse, Trouble> {
        let request = wire::InspectRailsRequest {};
        self.one("InspectRails", self.read().inspect_rails(request))
            .await
    }

    /// Why a row is served as it is; `None` if there is no such row.
    pub async fn explain(
        &self,
        request: wire::ExplainNeedRequest,
    ) -> Result<Option<wire::ExplainNeedResponse>, Trouble> {
        let mut read = self.read();
        let call = "ExplainNeed";
        let answered = self.patiently(read.explain_need(request)).await?;
        match answered {
            Ok(answer) => Ok(Some(answer.into_inner())),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(self.trouble(&status, call)),
        }
    }

    /// The live fleet as a file, still in frames.
    pub(crate) async fn export(
        &self,
        request: wire::ExportFleetRequest,
    ) -> Result<Streaming<wire::ExportFleetResponse>, Trouble> {
        self.one("ExportFleet", self.read().export_fleet(request))
            .await
    }

    /// Pauses a scope.
    pub async fn pause(&self, request: wire::PauseRequest) -> Result<wire::PauseResponse, Trouble> {
        self.one("Pause", self.admin().pause(request)).await
    }

    /// Lifts pauses.
    pub async fn resume(
        &self,
        request: wire::ResumeRequest,
    ) -> Result<wire::ResumeResponse, Trouble> {
        self.one("Resume", self.admin().resume(request)).await
    }

    /// Forgets a Failed machine.
    pub async fn retire_machine(
        &self,
        request: wire::RetireMachineRequest,
    ) -> Result<wire::RetireMachineResponse, Trouble> {
        self.one("RetireMachine", self.admin().retire_machine(request))
            .await
    }

    /// Drops the demand of a cluster whose operator is gone.
    pub async fn release_cluster(
        &self,
        request: wire::ReleaseClusterRequest,
    ) -> Result<wire::ReleaseClusterResponse, Trouble> {
        self.one("ReleaseCluster", self.admin().release_cluster(request))
            .await
    }

    fn read(&self) -> ShardReadClient<Channel> {
        ShardReadClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn admin(&self) -> ShardAdminClient<Channel> {
        ShardAdminClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    fn trouble(&self, status: &Status, call: &'static str) -> Trouble {
        Trouble::of(status, &self.target, call, self.within)
    }

    async fn patiently<T>(&self, answer: impl Future<Output = T>) -> Result<T, Trouble> {
        let silent = |_| Trouble::Silent {
            target: self.target.to_string(),
            within: self.within,
        };
        timeout(self.within, answer).await.map_err(silent)
    }

    async fn one<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Trouble> {
        let answered = self.patiently(answer).await?;
        let answered = answered.map_err(|status| self.trouble(&status, call))?;
        Ok(answered.into_inner())
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next<T>(
        &self,
        call: &'static str,
        frames: &mut Streaming<T>,
    ) -> Result<Option<T>, Trouble> {
        let frame = self.patiently(frames.message()).await?;
        frame.map_err(|status| match self.trouble(&status, call) {
            // It did answer: what broke is the answer.
            Trouble::Nobody { target } => Trouble::Cut {
                target,
                why: "the connection was lost".to_owned(),
            },
            Trouble::Deaf { target, why } => Trouble::Cut { target, why },
            other => other,
        })
    }

    async fn each<F: Framed>(
        &self,
        call: &'static str,
        mut frames: Streaming<F>,
        mut each: impl FnMut(F::Entry),
    ) -> Result<F::Header, Trouble> {
        let garbled = |what: &str| Trouble::Garbled {
            target: self.target.to_string(),
            call,
            what: what.to_owned(),
        };
        let first = self.next(call, &mut frames).await?;
        let Some(Part::Header(header)) = first.and_then(Framed::part) else {
            return Err(garbled("it does not begin with a header"));
        };
        while let Some(frame) = self.next(call, &mut frames).await? {
            match frame.part() {
                Some(Part::Entry(entry)) => each(entry),
                Some(Part::Header(_)) => return Err(garbled("it has a second header")),
                // A kind of frame that was added after us.
                None => {}
            }
        }
        Ok(header)
    }

    async fn gathered<F: Framed>(
        &self,
        call: &'static str,
        frames: Streaming<F>,
    ) -> Result<(F::Header, Vec<F::Entry>), Trouble> {
        let mut entries = Vec::new();
        let header = self.each(call, frames, |entry| entries.push(entry)).await?;
        Ok((header, entries))
    }
}
