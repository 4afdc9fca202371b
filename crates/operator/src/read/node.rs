//! Node: a Node as the core and the pod controller see it.

use super::{Metadata, moment, supply};
use bigfleet_k8s::{Condition, Quantity};
use bigfleet_model::{Requirement, Time};
use bigfleet_operator_core::{DRAIN_ANNOTATION, NodeFacts, ShownNode};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) const DISRUPTION: &str = "bigfleet.lucy.sh/disruption";
pub(crate) const EMPTY_SINCE: &str = "bigfleet.lucy.sh/empty-since";
const REMOVABLE_SINCE: &str = "bigfleet.lucy.sh/removable-since";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID")]
    provider_id: String,
    unschedulable: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
    allocatable: BTreeMap<String, Quantity>,
}

impl Node {
    pub(crate) fn facts(self) -> NodeFacts {
        let created = self.metadata.created();
        let noted = |name: &str| self.metadata.annotation(name).map(str::to_owned);
        let ready = self.status.conditions.iter().find(|it| it.kind == "Ready");
        let since = ready.and_then(|ready| moment(ready.last_transition_time.as_deref()));
        NodeFacts {
            created,
            provider_id: self.spec.provider_id,
            is_ready: ready.is_some_and(|ready| ready.status == "True"),
            ready_since: since.unwrap_or(created),
            is_cordoned: self.spec.unschedulable,
            allocatable: supply(&self.status.allocatable),
            drain: noted(DRAIN_ANNOTATION),
            disruption: disruption(&self.metadata),
            empty_since: since_of(&self.metadata, EMPTY_SINCE),
            removable_since: since_of(&self.metadata, REMOVABLE_SINCE),
            name: self.metadata.name,
            uid: self.metadata.uid,
            version: self.metadata.resource_version,
            labels: self.metadata.labels.unwrap_or_default(),
        }
    }

    /// `unmanaged`: labels of Nodes that are none of ours; empty for none.
    pub(crate) fn shown(self, unmanaged: &[Requirement]) -> ShownNode {
        let labels = self.metadata.labels.clone().unwrap_or_default();
        let holds = |rule: &Requirement| rule.accepts(labels.get(rule.key()).map(String::as_str));
        ShownNode {
            disruption: disruption(&self.metadata),
            empty_since: since_of(&self.metadata, EMPTY_SINCE),
            is_unmanaged: !unmanaged.is_empty() && unmanaged.iter().all(holds),
        }
    }
}

fn disruption(metadata: &Metadata) -> Option<u8> {
    let said = metadata.annotation(DISRUPTION)?.parse().ok()?;
    (said <= 15).then_some(said)
}

fn since_of(metadata: &Metadata, name: &str) -> Option<Time> {
    moment(metadata.annotation(name))
}
