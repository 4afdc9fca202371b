//! Upcoming: UpcomingNodes and AvailableCapacities, which only the operator writes, as it reads them back.

use super::{Metadata, amounts, moment};
use bigfleet_k8s::{AvailableCapacitySpec, Condition, NodeReference, UpcomingNodeSpec};
use bigfleet_model::{Operator, Requirement};
use bigfleet_operator_core::{
    Availability, AvailableCapacity, AvailableFacts, MACHINE_LABEL, NodeReadiness, Phase, Taint,
    UpcomingFacts, UpcomingNode,
};
use serde::Deserialize;

pub(crate) const PHASES: [(&str, Phase); 7] = [
    ("Provisioning", Phase::Provisioning),
    ("Launched", Phase::Launched),
    ("Registered", Phase::Registered),
    ("Ready", Phase::Ready),
    ("Draining", Phase::Draining),
    ("Drained", Phase::Drained),
    ("Failed", Phase::Failed),
];
pub(crate) const READINESS: [(&str, NodeReadiness); 4] = [
    ("Ready", NodeReadiness::Ready),
    ("NotReady", NodeReadiness::NotReady),
    ("NoNode", NodeReadiness::NoNode),
    ("Ambiguous", NodeReadiness::Ambiguous),
];
pub(crate) const AVAILABILITY: [(&str, Availability); 4] = [
    ("None", Availability::None),
    ("Low", Availability::Low),
    ("Medium", Availability::Medium),
    ("High", Availability::High),
];

/// The word for a value of such a table.
pub(crate) fn word<T: PartialEq + Copy>(table: &[(&'static str, T)], of: T) -> &'static str {
    let found = table.iter().find(|(_, value)| *value == of);
    found.map_or("", |(word, _)| word)
}

fn value<T: Copy>(table: &[(&'static str, T)], word: &str) -> Option<T> {
    let found = table.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value)
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Upcoming {
    #[serde(default)]
    metadata: Metadata,
    spec: UpcomingNodeSpec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    node_ref: Option<NodeReference>,
    #[serde(rename = "providerID")]
    provider_id: String,
    provisioning_start_time: Option<String>,
    last_error: String,
    conditions: Vec<Condition>,
}

impl Upcoming {
    pub(crate) fn facts(self) -> UpcomingFacts {
        let taint = |taint: bigfleet_k8s::Taint| Taint {
            key: taint.key,
            value: taint.value,
            effect: taint.effect,
        };
        let is_it = |condition: &&Condition| condition.kind == "NodeReady";
        let readiness = self.status.conditions.iter().find(is_it);
        UpcomingFacts {
            machine: self.metadata.annotation(MACHINE_LABEL).map(str::to_owned),
            content: UpcomingNode {
                resources: amounts(self.spec.resources.iter()),
                labels: self.spec.labels,
                taints: self.spec.taints.into_iter().map(taint).collect(),
                phase: value(&PHASES, &self.status.phase).unwrap_or(Phase::Provisioning),
                node_name: self
                    .status
                    .node_ref
                    .map(|node| node.name)
                    .unwrap_or_default(),
                provider_id: self.status.provider_id,
                started: moment(self.status.provisioning_start_time.as_deref()),
                last_error: self.status.last_error,
                readiness: readiness.and_then(|it| value(&READINESS, &it.reason)),
            },
            name: self.metadata.name,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Available {
    #[serde(default)]
    metadata: Metadata,
    spec: AvailableCapacitySpec,
}

impl Available {
    pub(crate) fn facts(self) -> AvailableFacts {
        let requirement = |from: bigfleet_k8s::Requirement| {
            let known = Operator::ALL
                .into_iter()
                .find(|it| it.word() == from.operator);
            Requirement::new(from.key, known?, from.values)
        };
        let count = u32::try_from(self.spec.available_count).unwrap_or_default();
        AvailableFacts {
            name: self.metadata.name,
            content: AvailableCapacity {
                resources: amounts(self.spec.resources.iter()),
                requirements: self
                    .spec
                    .requirements
                    .into_iter()
                    .filter_map(requirement)
                    .collect(),
                count,
                availability: value(&AVAILABILITY, &self.spec.availability)
                    .unwrap_or(Availability::None),
                cost: self.spec.cost.0,
            },
        }
    }
}
