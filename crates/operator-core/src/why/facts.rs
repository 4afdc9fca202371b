//! Facts: what was read of a cluster about one Pod, and what could not be.

use crate::{
    objects::{AvailableFacts, NodeFacts, RequestFacts, UpcomingFacts},
    pods::PodFacts,
};
use bigfleet_model::Time;

/// Why something was not read. What was not read is never taken for what is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// The cluster does not know this kind of object.
    NotServed,
    /// Whoever asks may not: in the words of the API server.
    Forbidden(String),
    /// Anything else that went wrong.
    Failed(String),
}

/// A Pod as whoever waits for it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPod {
    /// What the pod controller sees as well.
    pub facts: PodFacts,
    /// When it was made.
    pub created: Time,
    /// The scheduling gates it has.
    pub gates: Vec<String>,
    /// Who schedules it.
    pub scheduler: String,
    /// Since when it has its Node.
    pub scheduled_at: Option<Time>,
    /// The Node on which the scheduler makes room for it; may be empty.
    pub nominated: String,
    /// Since when it is Ready.
    pub ready_at: Option<Time>,
    /// What a container of it waits for: a word and a sentence.
    pub container: Option<(String, String)>,
    /// The newest Warning among its Events: a word and a sentence.
    pub warning: Option<(String, String)>,
    /// Why it ended, where that was said.
    pub ended_because: String,
}

/// The lease of one of our processes: whoever renews it acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSeen {
    /// Its namespace.
    pub namespace: String,
    /// When it was last renewed.
    pub renewed: Option<Time>,
    /// Whether somebody holds it.
    pub is_held: bool,
}

/// What the shard says of the Need that a request is a part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeedSaid {
    /// The cluster, by the shard's name.
    pub cluster: String,
    /// The Need, by its short name.
    pub name: String,
    /// Where it stands, in a sentence.
    pub summary: String,
    /// Whether it has all it asks for.
    pub is_served: bool,
    /// Whether something is on its way to it.
    pub is_coming: bool,
    /// Why it is short.
    pub causes: Vec<String>,
    /// What would change that.
    pub changes: Vec<String>,
}

/// What the shard was asked, and said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardSaid {
    /// The Need; `None` if the shard has none like it.
    pub need: Option<NeedSaid>,
    /// Where the machine of the hop `machine` stands, in a sentence.
    pub machine: Option<String>,
}

/// Everything that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyFacts {
    /// The moment it was read, by the clock of the API server.
    pub now: Time,
    /// The Pod.
    pub pod: WaitingPod,
    /// Its CapacityRequest, if it has one.
    pub request: Result<Option<RequestFacts>, NotRead>,
    /// All UpcomingNodes.
    pub upcoming: Result<Vec<UpcomingFacts>, NotRead>,
    /// All AvailableCapacities.
    pub available: Result<Vec<AvailableFacts>, NotRead>,
    /// The Node [`super::node_to_read`] names, if it is there.
    pub node: Result<Option<NodeFacts>, NotRead>,
    /// Leases of operators.
    pub operators: Result<Vec<LeaseSeen>, NotRead>,
    /// Leases of pod controllers.
    pub pod_controllers: Result<Vec<LeaseSeen>, NotRead>,
    /// What the shard said; `None` if it was not asked.
    pub shard: Option<ShardSaid>,
}
