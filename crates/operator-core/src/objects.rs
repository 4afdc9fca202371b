//! Objects: what the operator reads of Kubernetes, as plain values.
//!
//! Whoever talks to the API server decodes an object into one of these, and only the fields named here
//! (OP-7). Texts that a person or another program wrote are kept as written: the core decides what they mean,
//! so that nothing is lost at the edge.

use bigfleet_model::{Amounts, Requirement, Time};
use std::{collections::BTreeMap, fmt};

/// The kinds the operator follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// CapacityRequests.
    Request,
    /// UpcomingNodes.
    Upcoming,
    /// AvailableCapacities.
    Available,
    /// Nodes.
    Node,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Request, Self::Upcoming, Self::Available, Self::Node];
}

/// Where an object is; the namespace is empty for what has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The key of an object of the whole cluster.
    pub fn cluster(name: &str) -> Self {
        Self::namespaced("", name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// A condition on labels, as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelRule {
    /// The label.
    pub key: String,
    /// The operator; any text.
    pub operator: String,
    /// The values.
    pub values: Vec<String>,
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelSelector {
    /// Labels that must have these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    pub match_expressions: Vec<LabelRule>,
}

/// Peers, and the domain in which they count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerTerm {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// The peers; `None` where no selector is given.
    pub selector: Option<LabelSelector>,
}

/// A spread constraint, as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpreadRule {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// The skew; any number.
    pub max_skew: i32,
    /// What to do where it cannot be kept; any text.
    pub when_unsatisfiable: String,
}

/// What a CapacityRequest asks for, as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSpec {
    /// Conditions on the machine.
    pub requirements: Vec<LabelRule>,
    /// One Pod's request, as quantity texts.
    pub resources: BTreeMap<String, String>,
    /// Higher is served first.
    pub priority: i32,
    /// Spread constraints.
    pub topology_spread: Vec<SpreadRule>,
    /// Peers that must share a domain.
    pub co_location: Option<PeerTerm>,
    /// Peers that must not share a domain.
    pub anti_affinity: Vec<PeerTerm>,
    /// What an interruption costs, in dollars, as a quantity text.
    pub interruption_penalty: Option<String>,
    /// What losing the machine costs, in dollars, as a quantity text.
    pub reclamation_penalty: Option<String>,
}

/// Why a Pod cannot be scheduled, by the scheduler's word (OP-60).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StuckReason {
    /// No Node has room.
    Insufficient,
    /// A Node of its own would do.
    Alone,
    /// Something another Node would not change.
    Other,
}

/// The condition `Stuck` of a request, while it is True.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Since when it is True.
    pub since: Time,
    /// Why.
    pub reason: StuckReason,
}

/// The condition `Served` of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Whether it is True.
    pub is_served: bool,
    /// In one word.
    pub reason: String,
    /// In one sentence.
    pub message: String,
}

/// What the status of a CapacityRequest says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestStatus {
    /// When it was acknowledged, if it was.
    pub acknowledged_at: Option<Time>,
    /// Whether its Pod is stuck.
    pub stuck: Option<Stuck>,
    /// What was last said of how it is served.
    pub served: Option<Served>,
}

/// The Pod, or whatever else made an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Where it is.
    pub key: ObjectKey,
    /// Which one of that name.
    pub uid: String,
}

/// A CapacityRequest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// Where it is.
    pub key: ObjectKey,
    /// Which one of that name.
    pub uid: String,
    /// Counts changes of its spec.
    pub generation: i64,
    /// When it was made.
    pub created: Time,
    /// Who made it.
    pub owner: Option<Owner>,
    /// What it asks for.
    pub spec: RequestSpec,
    /// Its status; `None` if it has none yet.
    pub status: Option<RequestStatus>,
}

/// A Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Which one of that name.
    pub uid: String,
    /// Its version, for patches that must not overwrite a change.
    pub version: String,
    /// When it was made.
    pub created: Time,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// The cloud's name for it; may be empty.
    pub provider_id: String,
    /// Whether it is Ready.
    pub is_ready: bool,
    /// Since when it is Ready, or is not.
    pub ready_since: Time,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
    /// What Pods may ask of it.
    pub allocatable: Amounts,
    /// The annotation [`crate::DRAIN_ANNOTATION`], as written.
    pub drain: Option<String>,
    /// What a drain would disturb, by the pod controller's word (OP-60): 0 to 15.
    pub disruption: Option<u8>,
    /// Since when no Pod counts on it.
    pub empty_since: Option<Time>,
    /// Since when its Pods would fit elsewhere.
    pub removable_since: Option<Time>,
}

/// A taint of a Node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value; may be empty.
    pub value: String,
    /// What it does.
    pub effect: String,
}

/// How far a machine is on its way to being a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It is being made.
    Provisioning,
    /// It runs and belongs to nobody.
    Launched,
    /// It is joining the cluster.
    Registered,
    /// It serves.
    Ready,
    /// Its Pods are being moved away.
    Draining,
    /// They have left.
    Drained,
    /// It cannot be used.
    Failed,
}

/// What is known of a machine's Node (OP-43).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeReadiness {
    /// The Node is there and Ready.
    Ready,
    /// The Node is there and is not.
    NotReady,
    /// No Node is this machine.
    NoNode,
    /// More than one Node could be it.
    Ambiguous,
}

/// An UpcomingNode: what it says of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpcomingNode {
    /// Labels the Node will carry.
    pub labels: BTreeMap<String, String>,
    /// What Pods may ask of it.
    pub resources: Amounts,
    /// Taints the Node will carry.
    pub taints: Vec<Taint>,
    /// How far it is.
    pub phase: Phase,
    /// The Node's name, once known; may be empty.
    pub node_name: String,
    /// The cloud's name for it; may be empty.
    pub provider_id: String,
    /// When the operator first heard of it, in whole seconds.
    pub started: Option<Time>,
    /// Why it failed; empty unless it did.
    pub last_error: String,
    /// The condition `NodeReady`.
    pub readiness: Option<NodeReadiness>,
}

/// An UpcomingNode as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpcomingFacts {
    /// Its name.
    pub name: String,
    /// The annotation [`crate::MACHINE_LABEL`], if it has one.
    pub machine: Option<String>,
    /// What it says.
    pub content: UpcomingNode,
}

/// How much of something is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Availability {
    /// None.
    None,
    /// Little.
    Low,
    /// It would have to be bought.
    Medium,
    /// It is idle.
    High,
}

/// An AvailableCapacity: what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableCapacity {
    /// What was asked for.
    pub requirements: Vec<Requirement>,
    /// How much of it one machine offers.
    pub resources: Amounts,
    /// How many machines.
    pub count: u32,
    /// How sure that is.
    pub availability: Availability,
    /// Dollars per hour, as a decimal text.
    pub cost: String,
}

/// An AvailableCapacity as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailableFacts {
    /// Its name.
    pub name: String,
    /// What it says.
    pub content: AvailableCapacity,
}

/// An object of one of the kinds the operator follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A CapacityRequest.
    Request(Box<RequestFacts>),
    /// An UpcomingNode.
    Upcoming(Box<UpcomingFacts>),
    /// An AvailableCapacity.
    Available(Box<AvailableFacts>),
    /// A Node.
    Node(Box<NodeFacts>),
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Request(_) => Kind::Request,
            Self::Upcoming(_) => Kind::Upcoming,
            Self::Available(_) => Kind::Available,
            Self::Node(_) => Kind::Node,
        }
    }
}
