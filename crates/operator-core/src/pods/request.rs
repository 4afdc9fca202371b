//! Request: the CapacityRequest of a Pod, as a function of the Pod alone (OP-47 to OP-50).
//!
//! ```text
//! Pod ── finished, gated, mirror, daemon, ignored? ──▶ no request
//!  └──▶ requirements, resources, priority, penalties, co-location, spread, anti-affinity ──▶ cr-pod-<uid>
//! ```

use super::brief::PodBrief;
use crate::objects::{LabelRule, LabelSelector, PeerTerm, RequestSpec, SpreadRule};
use bigfleet_model::{
    Amounts, Dimension, INSTANCE_TYPE_KEY, ZONE_KEY,
    quantity::{format_short, parse_demand},
};
use std::collections::{BTreeMap, BTreeSet};

const IGNORE: &str = "bigfleet.lucy.sh/ignore";
const INTERRUPTION: &str = "bigfleet.lucy.sh/interruption-penalty";
const RECLAMATION: &str = "bigfleet.lucy.sh/reclamation-penalty";

/// What one container asks for, as quantity texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Its requests.
    pub requests: BTreeMap<String, String>,
    /// Whether it is an init container that keeps running.
    pub is_sidecar: bool,
}

/// A Pod as the pod controller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// What a drain sees as well.
    pub brief: PodBrief,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its Node; empty while it has none.
    pub node_name: String,
    /// Whether something holds it back before the scheduler looks at it.
    pub is_gated: bool,
    /// The scheduler already has a Node in mind.
    pub is_nominated: bool,
    /// The message of `PodScheduled` while that is False for want of a Node, and since when.
    pub unschedulable: Option<(bigfleet_model::Time, String)>,
    /// Containers.
    pub containers: Vec<ContainerFacts>,
    /// Init containers, in order.
    pub init_containers: Vec<ContainerFacts>,
    /// Requests of the Pod as a whole, where given.
    pub pod_requests: BTreeMap<String, String>,
    /// What running it takes besides.
    pub overhead: BTreeMap<String, String>,
    /// Labels its Node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: any of these; `None` without such a block.
    pub node_terms: Option<Vec<Vec<LabelRule>>>,
    /// Zones of the volumes it uses that are bound already.
    pub volume_zones: Vec<String>,
    /// Higher is served first.
    pub priority: i32,
    /// The name of its PriorityClass; may be empty.
    pub priority_class: String,
    /// Required peers.
    pub affinity: Vec<PeerTerm>,
    /// Required absence of peers.
    pub anti_affinity: Vec<PeerTerm>,
    /// Spread constraints.
    pub spread: Vec<SpreadRule>,
}

/// Penalties of a PriorityClass, as quantity texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PenaltyDefaults {
    /// What an interruption costs.
    pub interruption: Option<String>,
    /// What losing the machine costs.
    pub reclamation: Option<String>,
}

/// How the pod controller is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodConfig {
    /// Resources nobody asks BigFleet for (OP-49).
    pub ignored_resources: BTreeSet<String>,
    /// Namespaces without requests.
    pub ignored_namespaces: BTreeSet<String>,
    /// Penalties by PriorityClass.
    pub penalties: BTreeMap<String, PenaltyDefaults>,
}

impl Default for PodConfig {
    fn default() -> Self {
        Self {
            ignored_resources: ["ephemeral-storage".to_owned()].into(),
            ignored_namespaces: BTreeSet::new(),
            penalties: BTreeMap::new(),
        }
    }
}

/// The name of a Pod's request.
pub fn request_name(pod: &PodFacts) -> String {
    format!("cr-pod-{}", pod.brief.uid)
}

/// Whether whoever made it asks BigFleet not to look at it.
pub(crate) fn is_ignored(pod: &PodBrief) -> bool {
    pod.annotations
        .get(IGNORE)
        .is_some_and(|value| value == "true")
}

/// What the Pod's request should say; `None` for a Pod that gets none (OP-48). `is_unmanaged`: its Node is none of ours.
pub fn request_of(pod: &PodFacts, config: &PodConfig, is_unmanaged: bool) -> Option<RequestSpec> {
    let brief = &pod.brief;
    let is_ignored = is_ignored(brief) || config.ignored_namespaces.contains(&brief.key.namespace);
    if brief.is_finished()
        || pod.is_gated
        || brief.is_mirror()
        || brief.is_daemon()
        || is_ignored
        || is_unmanaged
    {
        return None;
    }
    let defaults = config.penalties.get(&pod.priority_class);
    let penalty = |key: &str, default: Option<&String>| {
        let written = brief
            .annotations
            .get(key)
            .filter(|text| parse_demand(text).is_ok());
        written.or(default).cloned()
    };
    let hard = pod
        .spread
        .iter()
        .filter(|rule| rule.when_unsatisfiable != "ScheduleAnyway");
    Some(RequestSpec {
        requirements: requirements(pod),
        resources: resources(pod, config),
        priority: pod.priority,
        topology_spread: hard.cloned().collect(),
        co_location: pod.affinity.first().cloned(),
        anti_affinity: pod
            .anti_affinity
            .iter()
            .filter(|term| selects(term, &pod.labels))
            .cloned()
            .collect(),
        interruption_penalty: penalty(INTERRUPTION, defaults.and_then(|d| d.interruption.as_ref())),
        reclamation_penalty: penalty(RECLAMATION, defaults.and_then(|d| d.reclamation.as_ref())),
    })
}

/// Whether a Pod with these labels is among the peers: anti-affinity to others says nothing about how many Nodes are needed.
fn selects(term: &PeerTerm, labels: &BTreeMap<String, String>) -> bool {
    let Some(LabelSelector {
        match_labels,
        match_expressions,
    }) = &term.selector
    else {
        return false;
    };
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    let holds = |rule: &LabelRule| {
        let value = labels.get(&rule.key);
        let is_one = value.is_some_and(|value| rule.values.contains(value));
        match rule.operator.as_str() {
            "In" => is_one,
            "NotIn" => !is_one,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    match_labels.iter().all(has) && match_expressions.iter().all(holds)
}

/// OP-50: what every Node that may have the Pod must be like, and no more.
fn requirements(pod: &PodFacts) -> Vec<LabelRule> {
    let rule = |key: &str, operator: &str, values: Vec<String>| LabelRule {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    };
    let mut rules = match &pod.node_terms {
        Some(terms) => joined(terms),
        None => Vec::new(),
    };
    for (key, value) in &pod.node_selector {
        rules.push(rule(key, "In", vec![value.clone()]));
    }
    if !pod.volume_zones.is_empty() {
        let zones: BTreeSet<String> = pod.volume_zones.iter().cloned().collect();
        rules.push(rule(ZONE_KEY, "In", zones.into_iter().collect()));
    }
    if rules.is_empty() && pod.node_terms.is_none() {
        rules.push(rule(INSTANCE_TYPE_KEY, "Exists", Vec::new()));
    }
    rules
}

/// Terms of which one must hold: one that differs in a single key's `In` is joined with the others; else what all share.
fn joined(terms: &[Vec<LabelRule>]) -> Vec<LabelRule> {
    let looser = |rule: &LabelRule| match rule.operator.as_str() {
        "Gt" | "Lt" => LabelRule {
            key: rule.key.clone(),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        },
        _ => rule.clone(),
    };
    let terms: Vec<Vec<LabelRule>> = terms
        .iter()
        .map(|term| term.iter().map(looser).collect())
        .collect();
    let Some((first, others)) = terms.split_first() else {
        return Vec::new();
    };
    let shared: Vec<LabelRule> = first
        .iter()
        .filter(|rule| others.iter().all(|term| term.contains(rule)))
        .cloned()
        .collect();
    let differing: Vec<Vec<&LabelRule>> = terms
        .iter()
        .map(|term| term.iter().filter(|rule| !shared.contains(rule)).collect())
        .collect();
    let key = differing[0].first().map(|rule| rule.key.clone());
    let is_one_in = |term: &Vec<&LabelRule>| matches!(term.as_slice(), [rule] if rule.operator == "In" && Some(&rule.key) == key.as_ref());
    let mut rules = shared;
    if let Some(key) = key.clone().filter(|_| differing.iter().all(is_one_in)) {
        let values: BTreeSet<String> = differing
            .iter()
            .flatten()
            .flat_map(|rule| rule.values.clone())
            .collect();
        rules.push(LabelRule {
            key,
            operator: "In".to_owned(),
            values: values.into_iter().collect(),
        });
    }
    rules
}

/// OP-49: the greater of what runs together and what the start takes, and the overhead.
fn resources(pod: &PodFacts, config: &PodConfig) -> BTreeMap<String, String> {
    let running = pod
        .containers
        .iter()
        .chain(pod.init_containers.iter().filter(|init| init.is_sidecar));
    let running = running.fold(Amounts::NONE, |sum, container| {
        sum.add(&amounts(&container.requests))
    });
    let mut sidecars = Amounts::NONE;
    let mut peak = Amounts::NONE;
    for init in &pod.init_containers {
        let asked = sidecars.add(&amounts(&init.requests));
        if init.is_sidecar {
            sidecars = asked.clone();
        }
        peak = peak.larger(&asked);
    }
    let mut needed = running.larger(&peak);
    if !pod.pod_requests.is_empty() {
        // Where the Pod says it as a whole, that counts, dimension by dimension.
        let whole = amounts(&pod.pod_requests);
        let others = needed
            .iter()
            .filter(|(name, _)| !pod.pod_requests.contains_key(name.as_str()));
        let others = others.map(|(name, milli)| (name.clone(), milli));
        needed = Amounts::from_entries(others).add(&whole);
    }
    let needed = needed.add(&amounts(&pod.overhead));
    let counted = needed
        .iter()
        .filter(|(name, _)| !config.ignored_resources.contains(name.as_str()));
    counted
        .map(|(name, milli)| (name.to_string(), format_short(milli)))
        .collect()
}

/// Amounts of quantity texts; what cannot be read is left to the operator, which says so.
fn amounts(texts: &BTreeMap<String, String>) -> Amounts {
    let entry = |(name, text): (&String, &String)| {
        Some((Dimension::new(name).ok()?, parse_demand(text).ok()?))
    };
    Amounts::from_entries(texts.iter().filter_map(entry))
}
