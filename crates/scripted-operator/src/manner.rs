//! Manners: how a scripted operator answers what every operator is asked.

use bigfleet_wire::Feature;
use bigfleet_wire::v1alpha1 as wire;
use wire::operator_message::Payload;
use wire::shard_message::Payload as FromShard;

/// Why an operator that has no blobs has none.
pub const NO_BLOB: &str = "the join token has expired";

/// How it answers a request for a blob, and an instruction to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It gives blobs at once, and does not report drains.
    Plain,
    /// It reports drains, and says at once that a node is drained.
    Reports,
    /// It reports drains, and never gets done.
    Stalls,
    /// It has no blobs to give, and says why.
    WithoutBlobs,
    /// It gives blobs at once, and says which Nodes it sees when it is told to.
    SeesNodes,
    /// It gives blobs at once, and is told where its rows stand.
    FollowsNeeds,
}

impl Manner {
    /// The Hello of a cluster whose operator is of this manner.
    pub fn hello(self, cluster: &str) -> Payload {
        match self {
            Self::Plain | Self::WithoutBlobs => hello(cluster, &[]),
            Self::SeesNodes => hello(cluster, &[Feature::NodeReport]),
            Self::FollowsNeeds => hello(cluster, &[Feature::NeedStatus]),
            Self::Reports | Self::Stalls => {
                hello(cluster, &[Feature::DrainReport, Feature::Resync])
            }
        }
    }

    /// What is answered to a frame.
    pub fn answer(self, frame: &FromShard) -> Option<Payload> {
        match frame {
            FromShard::BootstrapRequest(request) => Some(self.blob(request)),
            FromShard::ReclaimInstruction(instruction) => self.drained(instruction),
            FromShard::Ack(_)
            | FromShard::NodeStateUpdate(_)
            | FromShard::AvailableCapacity(_)
            | FromShard::ReclaimCancel(_)
            | FromShard::NeedStatus(_) => None,
        }
    }

    fn blob(self, request: &wire::BootstrapRequest) -> Payload {
        match self {
            Self::Plain | Self::Reports | Self::Stalls | Self::SeesNodes | Self::FollowsNeeds => {
                blob(request, format!("join {}", request.cluster_id).into_bytes())
            }
            Self::WithoutBlobs => Payload::BootstrapResponse(wire::BootstrapBlobResponse {
                request_id: request.request_id.clone(),
                error: NO_BLOB.to_owned(),
                ..wire::BootstrapBlobResponse::default()
            }),
        }
    }

    fn drained(self, instruction: &wire::ReclaimInstruction) -> Option<Payload> {
        let target = instruction.targets.first()?;
        match self {
            Self::Plain
            | Self::Stalls
            | Self::WithoutBlobs
            | Self::SeesNodes
            | Self::FollowsNeeds => None,
            Self::Reports => Some(Payload::DrainReport(wire::DrainReport {
                instruction_id: instruction.instruction_id.clone(),
                machine_id: target.machine_id.clone(),
                phase: wire::drain_report::Phase::Drained.into(),
                ..wire::DrainReport::default()
            })),
        }
    }
}

/// The Hello of a cluster whose operator understands these.
pub fn hello(cluster: &str, features: &[Feature]) -> Payload {
    Payload::Hello(wire::Hello {
        cluster_id: cluster.to_owned(),
        protocol_version: "v1alpha1".to_owned(),
        features: features.iter().map(|one| one.name().to_owned()).collect(),
    })
}

/// A blob for whoever asked.
pub fn blob(request: &wire::BootstrapRequest, user_data: Vec<u8>) -> Payload {
    Payload::BootstrapResponse(wire::BootstrapBlobResponse {
        request_id: request.request_id.clone(),
        user_data,
        ..wire::BootstrapBlobResponse::default()
    })
}
