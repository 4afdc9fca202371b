//! Resources: CapacityRequest, UpcomingNode and AvailableCapacity as types.
//!
//! | Kind | Who writes it | Says |
//! |---|---|---|
//! | CapacityRequest | whoever has a Pod: our pod controller, or anybody's | what one Pod needs |
//! | UpcomingNode | the operator | how far a machine is on its way to being a Node |
//! | AvailableCapacity | the operator | how much more could be had |
//!
//! `crds` writes down the same as schemas, and a test holds every field of a type against them. Nothing is an enum that
//! somebody else writes: a request that is refused is demand lost.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The group of our resources.
pub const GROUP: &str = "bigfleet.lucy.sh";
/// Their group and version.
pub const OBJECT_VERSION: &str = "bigfleet.lucy.sh/v1alpha1";

/// One of our kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// What one Pod needs.
    CapacityRequest,
    /// A machine on its way.
    UpcomingNode,
    /// What could be had.
    AvailableCapacity,
}

impl ResourceKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [
        Self::CapacityRequest,
        Self::UpcomingNode,
        Self::AvailableCapacity,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CapacityRequest => "CapacityRequest",
            Self::UpcomingNode => "UpcomingNode",
            Self::AvailableCapacity => "AvailableCapacity",
        }
    }

    /// Its plural, as in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::CapacityRequest => "capacityrequests",
            Self::UpcomingNode => "upcomingnodes",
            Self::AvailableCapacity => "availablecapacities",
        }
    }

    /// The path of all of them.
    pub fn path(self) -> String {
        format!("/apis/{OBJECT_VERSION}/{}", self.plural())
    }

    /// The path of those in a namespace.
    pub fn path_in(self, namespace: &str) -> String {
        format!(
            "/apis/{OBJECT_VERSION}/namespaces/{namespace}/{}",
            self.plural()
        )
    }
}

/// An amount, as Kubernetes writes it: a number or a text like `1500m` or `2Gi`. Always written as a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Whole(i64),
            Number(f64),
        }
        Ok(Self(match Either::deserialize(from)? {
            Either::Text(text) => text,
            Either::Whole(number) => number.to_string(),
            Either::Number(number) => number.to_string(),
        }))
    }
}

/// A condition on a label of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist; anything else is read as Exists.
    pub operator: String,
    /// The values, for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How Pods are to be spread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpread {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// How much two domains may differ.
    pub max_skew: i32,
    /// DoNotSchedule or ScheduleAnyway.
    pub when_unsatisfiable: String,
}

/// A condition of a label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelExpression {
    /// The label.
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: String,
    /// The values, for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Which Pods are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelExpression>,
}

/// Peers, and the domain in which they count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peers {
    /// The label whose values are the domains.
    pub topology_key: String,
    /// The peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// What one Pod needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequestSpec {
    /// Conditions on the machine; all of them hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// One Pod's request, not the shape of a machine.
    pub resources: BTreeMap<String, Quantity>,
    /// The value of its PriorityClass; higher is served first.
    pub priority: i32,
    /// How its peers are to be spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread: Vec<TopologySpread>,
    /// Peers that must be in the same domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub co_location: Option<Peers>,
    /// Peers that must not be in the same domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anti_affinity: Vec<Peers>,
    /// What it costs to interrupt it, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption_penalty: Option<Quantity>,
    /// What it costs to take its machine away, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclamation_penalty: Option<Quantity>,
}

/// Something that holds, or does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in one word.
    #[serde(default)]
    pub reason: String,
    /// Why, in one sentence.
    #[serde(default)]
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

/// Whether BigFleet has heard of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequestStatus {
    /// Pending, then Acknowledged once the shard has it.
    pub phase: String,
    /// When it was acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<String>,
    /// Stuck: the scheduler finds no Node for the Pod. Served: what BigFleet does about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A taint the Node will carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// NoSchedule, PreferNoSchedule or NoExecute.
    pub effect: String,
    /// When it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// What the Node will be like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpcomingNodeSpec {
    /// What Pods may ask of it.
    pub resources: BTreeMap<String, Quantity>,
    /// Labels it will carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints it will carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// The Node, once it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// The version of the API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// A part of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// Node.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace; a Node has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Which one of that name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// How far the machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpcomingNodeStatus {
    /// Where it stands.
    pub phase: String,
    /// The Node, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeReference>,
    /// The cloud's name for it.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "String::is_empty"
    )]
    pub provider_id: String,
    /// When the operator first heard of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_start_time: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// NodeReady: whether its Node is there and ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How much more could be had of something; a hint, never a promise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AvailableCapacitySpec {
    /// Conditions on the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// What one machine offers.
    pub resources: BTreeMap<String, Quantity>,
    /// How many machines.
    pub available_count: i32,
    /// How sure that is.
    pub availability: String,
    /// Dollars per hour.
    pub cost: Quantity,
}

/// Reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AvailableCapacityStatus {}
