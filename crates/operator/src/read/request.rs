//! Request: a CapacityRequest as the core and the pod controller see it.

use super::{Metadata, moment, peers};
use bigfleet_k8s::{CapacityRequestSpec, Condition, Quantity};
use bigfleet_model::Time;
use bigfleet_operator_core::{
    LabelRule, RequestFacts, RequestSpec, RequestStatus, Served, ShownRequest, SpreadRule, Stuck,
    StuckReason,
};
use serde::Deserialize;

/// The label by which a request names its Pod.
pub(crate) const POD_LABEL: &str = "bigfleet.lucy.sh/owned-by-pod";

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) metadata: Metadata,
    pub(crate) spec: CapacityRequestSpec,
    #[serde(default)]
    status: Option<Status>,
}

/// As the type says, but nothing of it has to be there: another producer may have written it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    acknowledged_at: Option<String>,
    conditions: Vec<Condition>,
}

impl Request {
    pub(crate) fn facts(self) -> RequestFacts {
        let created = self.metadata.created();
        RequestFacts {
            key: self.metadata.key(),
            created,
            owner: self.metadata.owner(),
            uid: self.metadata.uid,
            generation: self.metadata.generation,
            status: self.status.map(|status| status.facts(created)),
            spec: spec(self.spec),
        }
    }

    /// `None` for a request that is for no Pod.
    pub(crate) fn shown(self) -> Option<ShownRequest> {
        let created = self.metadata.created();
        let pod_uid = self.metadata.label(POD_LABEL)?.to_owned();
        // An empty status is none: the phase is what others look for.
        let status = self.status.filter(|status| !status.phase.is_empty());
        let status = status.map(|status| status.facts(created));
        Some(ShownRequest {
            key: self.metadata.key(),
            pod_uid,
            created,
            has_status: status.is_some(),
            stuck: status.as_ref().and_then(|status| status.stuck),
            served: status.and_then(|status| status.served),
            spec: spec(self.spec),
        })
    }
}

impl Status {
    fn facts(self, created: Time) -> RequestStatus {
        let of = |kind: &str| {
            self.conditions
                .iter()
                .find(|condition| condition.kind == kind)
        };
        let is_acknowledged = self.phase == "Acknowledged";
        let at = moment(self.acknowledged_at.as_deref()).unwrap_or(created);
        let stuck = of("Stuck").filter(|condition| condition.status == "True");
        let served = of("Served").filter(|condition| condition.status != "Unknown");
        RequestStatus {
            acknowledged_at: is_acknowledged.then_some(at),
            stuck: stuck.map(|condition| Stuck {
                since: moment(condition.last_transition_time.as_deref()).unwrap_or(created),
                reason: match condition.reason.as_str() {
                    "Insufficient" => StuckReason::Insufficient,
                    "Alone" => StuckReason::Alone,
                    _ => StuckReason::Other,
                },
            }),
            served: served.map(|condition| Served {
                is_served: condition.status == "True",
                reason: condition.reason.clone(),
                message: condition.message.clone(),
            }),
        }
    }
}

fn spec(from: CapacityRequestSpec) -> RequestSpec {
    let rule = |requirement: bigfleet_k8s::Requirement| LabelRule {
        key: requirement.key,
        operator: requirement.operator,
        values: requirement.values,
    };
    let spread = |spread: bigfleet_k8s::TopologySpread| SpreadRule {
        topology_key: spread.topology_key,
        max_skew: spread.max_skew,
        when_unsatisfiable: spread.when_unsatisfiable,
    };
    let text = |quantity: Quantity| quantity.0;
    let resources = from.resources.into_iter();
    RequestSpec {
        requirements: from.requirements.into_iter().map(rule).collect(),
        resources: resources.map(|(name, amount)| (name, amount.0)).collect(),
        priority: from.priority,
        topology_spread: from.topology_spread.into_iter().map(spread).collect(),
        co_location: from.co_location.map(peers),
        anti_affinity: from.anti_affinity.into_iter().map(peers).collect(),
        interruption_penalty: from.interruption_penalty.map(text),
        reclamation_penalty: from.reclamation_penalty.map(text),
    }
}
