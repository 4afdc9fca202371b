//! Read: objects of the API server as facts of the core: the fields somebody looks at, and no others (OP-7).
//!
//! | File | Of what |
//! |---|---|
//! | `request` | CapacityRequests |
//! | `upcoming` | UpcomingNodes and AvailableCapacities |
//! | `node` | Nodes |
//! | `pod` | Pods, as a drain and as the pod controller see them |

pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod request;
pub(crate) mod upcoming;

use bigfleet_k8s::{Place, Quantity, nanos};
use bigfleet_model::quantity::{parse_demand, parse_supply};
use bigfleet_model::{Amounts, Dimension, Time};
use bigfleet_operator_core::{LabelSelector, ObjectKey, Owner, PeerTerm};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What every object has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) creation_timestamp: Option<String>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
    pub(crate) owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
}

impl Metadata {
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, &self.name)
    }

    pub(crate) fn created(&self) -> Time {
        moment(self.creation_timestamp.as_deref()).unwrap_or(Time::ZERO)
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        let owners = self.owner_references.as_ref()?;
        owners.iter().find(|owner| owner.controller == Some(true))
    }

    /// The Pod that owns it.
    pub(crate) fn owner(&self) -> Option<Owner> {
        let owners = self.owner_references.iter().flatten();
        let mut pods = owners.filter(|owner| owner.kind == "Pod" && owner.api_version == "v1");
        pods.next().map(|owner| Owner {
            key: ObjectKey::namespaced(&self.namespace, &owner.name),
            uid: owner.uid.clone(),
        })
    }
}

pub(crate) fn key(place: &Place) -> ObjectKey {
    ObjectKey::namespaced(&place.namespace, &place.name)
}

pub(crate) fn moment(text: Option<&str>) -> Option<Time> {
    nanos(text?).map(Time::from_nanos)
}

/// What was written by us, or is asked for: exactly as it stands.
pub(crate) fn amounts<'a>(texts: impl Iterator<Item = (&'a String, &'a Quantity)>) -> Amounts {
    let entry = |(name, text): (&String, &Quantity)| {
        Some((Dimension::new(name).ok()?, parse_demand(&text.0).ok()?))
    };
    Amounts::from_entries(texts.filter_map(entry))
}

/// What is offered: rounded down.
pub(crate) fn supply(texts: &BTreeMap<String, Quantity>) -> Amounts {
    let entry = |(name, text): (&String, &Quantity)| {
        let milli = parse_supply(&text.0).ok()?;
        Some((Dimension::new(name).ok()?, i128::from(milli)))
    };
    Amounts::from_entries(texts.iter().filter_map(entry))
}

pub(crate) fn selector(from: bigfleet_k8s::LabelSelector) -> LabelSelector {
    let rule = |expression: bigfleet_k8s::LabelExpression| bigfleet_operator_core::LabelRule {
        key: expression.key,
        operator: expression.operator,
        values: expression.values,
    };
    LabelSelector {
        match_labels: from.match_labels,
        match_expressions: from.match_expressions.into_iter().map(rule).collect(),
    }
}

pub(crate) fn peers(from: bigfleet_k8s::Peers) -> PeerTerm {
    PeerTerm {
        topology_key: from.topology_key,
        selector: from.label_selector.map(selector),
    }
}
