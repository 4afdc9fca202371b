//! Pod: a Pod as a drain sees it, and as the pod controller does.

use super::{Metadata, moment, selector};
use bigfleet_k8s::{Condition, LabelSelector, Quantity};
use bigfleet_model::quantity::parse_demand;
use bigfleet_operator_core::{
    ContainerFacts, Controller, LabelRule, OwnerState, PeerTerm, PodBrief, PodFacts, PodPhase,
    SpreadRule,
};
use serde::Deserialize;
use std::collections::BTreeMap;

type Quantities = BTreeMap<String, Quantity>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) node_name: String,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    resources: Option<Resources>,
    overhead: Quantities,
    node_selector: BTreeMap<String, String>,
    affinity: Affinity,
    topology_spread_constraints: Vec<Spread>,
    scheduling_gates: Vec<Gate>,
    priority: Option<i32>,
    priority_class_name: String,
    volumes: Vec<Volume>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Gate {}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    name: String,
    restart_policy: String,
    resources: Resources,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Quantities,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume {
    persistent_volume_claim: Option<Claim>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Claim {
    claim_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spread {
    topology_key: String,
    max_skew: i32,
    when_unsatisfiable: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Affinity {
    node_affinity: NodeAffinity,
    pod_affinity: PodAffinity,
    pod_anti_affinity: PodAffinity,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeTerms>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeTerms {
    pub(crate) node_selector_terms: Vec<NodeTerm>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeTerm {
    pub(crate) match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Expression {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) values: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Vec<PodTerm>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodTerm {
    topology_key: String,
    label_selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    nominated_node_name: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    allocated_resources: Quantities,
}

impl Pod {
    pub(crate) fn brief(&self) -> PodBrief {
        let group = |version: &str| {
            let group = version.split_once('/').map_or("", |(group, _)| group);
            group.to_owned()
        };
        PodBrief {
            key: self.metadata.key(),
            uid: self.metadata.uid.clone(),
            phase: match self.status.phase.as_str() {
                "Pending" => PodPhase::Pending,
                "Running" => PodPhase::Running,
                "Succeeded" => PodPhase::Succeeded,
                "Failed" => PodPhase::Failed,
                _ => PodPhase::Unknown,
            },
            annotations: self.metadata.annotations.clone().unwrap_or_default(),
            controller: self.metadata.controller().map(|owner| Controller {
                group: group(&owner.api_version),
                kind: owner.kind.clone(),
            }),
            is_terminating: self.metadata.deletion_timestamp.is_some(),
        }
    }

    /// What became of it as the owner of a request, if it has this uid.
    pub(crate) fn state(&self, uid: &str) -> OwnerState {
        if self.metadata.uid != uid || self.brief().is_finished() {
            return OwnerState::Over;
        }
        OwnerState::Live {
            is_bound: !self.spec.node_name.is_empty(),
        }
    }

    /// The claims of its volumes, in its namespace.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &str> {
        let claims = self.spec.volumes.iter();
        claims
            .filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
    }

    pub(crate) fn facts(&self, volume_zones: Vec<String>) -> PodFacts {
        let scheduled = self.status.conditions.iter().find(|it| {
            it.kind == "PodScheduled" && it.status == "False" && it.reason == "Unschedulable"
        });
        let unschedulable = scheduled.map(|condition| {
            let since = moment(condition.last_transition_time.as_deref());
            (
                since.unwrap_or(self.metadata.created()),
                condition.message.clone(),
            )
        });
        let terms = |terms: &NodeTerms| terms.node_selector_terms.iter().map(rules).collect();
        let affinity = &self.spec.affinity;
        PodFacts {
            brief: self.brief(),
            labels: self.metadata.labels.clone().unwrap_or_default(),
            node_name: self.spec.node_name.clone(),
            is_gated: !self.spec.scheduling_gates.is_empty(),
            is_nominated: !self.status.nominated_node_name.is_empty(),
            unschedulable,
            containers: self
                .spec
                .containers
                .iter()
                .map(|it| self.container(it))
                .collect(),
            init_containers: self
                .spec
                .init_containers
                .iter()
                .map(|it| self.container(it))
                .collect(),
            pod_requests: self
                .spec
                .resources
                .as_ref()
                .map_or_else(BTreeMap::new, |it| texts(&it.requests)),
            overhead: texts(&self.spec.overhead),
            node_selector: self.spec.node_selector.clone(),
            node_terms: affinity.node_affinity.required.as_ref().map(terms),
            volume_zones,
            priority: self.spec.priority.unwrap_or_default(),
            priority_class: self.spec.priority_class_name.clone(),
            affinity: affinity.pod_affinity.required.iter().map(peers).collect(),
            anti_affinity: affinity
                .pod_anti_affinity
                .required
                .iter()
                .map(peers)
                .collect(),
            spread: self
                .spec
                .topology_spread_constraints
                .iter()
                .map(spread)
                .collect(),
        }
    }

    /// During a resize, the greater of what is asked for and what is allocated counts (OP-49).
    fn container(&self, container: &Container) -> ContainerFacts {
        let mut requests = texts(&container.resources.requests);
        let statuses = self.status.container_statuses.iter();
        for status in statuses.filter(|status| status.name == container.name) {
            for (name, amount) in &status.allocated_resources {
                let milli = |text: &str| parse_demand(text).unwrap_or_default();
                if let Some(asked) = requests.get_mut(name)
                    && milli(asked) < milli(&amount.0)
                {
                    asked.clone_from(&amount.0);
                }
            }
        }
        ContainerFacts {
            requests,
            is_sidecar: container.restart_policy == "Always",
        }
    }

    /// What it asks for in all, for DaemonSets' templates, which are Pods without a status.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Quantities> {
        self.spec
            .containers
            .iter()
            .map(|container| &container.resources.requests)
    }
}

fn texts(quantities: &Quantities) -> BTreeMap<String, String> {
    let text = |(name, amount): (&String, &Quantity)| (name.clone(), amount.0.clone());
    quantities.iter().map(text).collect()
}

fn rules(term: &NodeTerm) -> Vec<LabelRule> {
    let rule = |expression: &Expression| LabelRule {
        key: expression.key.clone(),
        operator: expression.operator.clone(),
        values: expression.values.clone(),
    };
    term.match_expressions.iter().map(rule).collect()
}

fn peers(term: &PodTerm) -> PeerTerm {
    PeerTerm {
        topology_key: term.topology_key.clone(),
        selector: term.label_selector.clone().map(selector),
    }
}

fn spread(spread: &Spread) -> SpreadRule {
    SpreadRule {
        topology_key: spread.topology_key.clone(),
        max_skew: spread.max_skew,
        when_unsatisfiable: spread.when_unsatisfiable.clone(),
    }
}
