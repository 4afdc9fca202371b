//! Why a Need is served as it is.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{NeedRecord, count};
use crate::enum_names;

/// An explanation; its steps are in the order the engine takes them.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ExplanationRecord {
    pub(crate) need: NeedRecord,
    pub(crate) summary: String,
    pub(crate) steps: Vec<StepRecord>,
    pub(crate) claims: Vec<ClaimRecord>,
    pub(crate) claims_capped: bool,
    pub(crate) remedies: Vec<String>,
}

/// One step of the engine, for this Need.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepRecord {
    pub(crate) step: String,
    pub(crate) text: String,
    pub(crate) considered: u32,
    pub(crate) taken: u32,
    pub(crate) missing: BTreeMap<String, String>,
}

/// A machine that counts for the Need.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClaimRecord {
    pub(crate) machine: String,
    pub(crate) state: String,
    pub(crate) step: String,
}

impl From<&wire::ExplainNeedResponse> for ExplanationRecord {
    fn from(explained: &wire::ExplainNeedResponse) -> Self {
        Self {
            need: NeedRecord::from(&explained.need.clone().unwrap_or_default()),
            summary: explained.summary.clone(),
            steps: explained.steps.iter().map(Into::into).collect(),
            claims: explained.claims.iter().map(Into::into).collect(),
            claims_capped: explained.claims_capped,
            remedies: explained.remedies.clone(),
        }
    }
}

impl From<&wire::ExplanationStep> for StepRecord {
    fn from(step: &wire::ExplanationStep) -> Self {
        let missing = step.missing.as_ref();
        Self {
            step: step.step.clone(),
            text: step.text.clone(),
            considered: count(step.considered),
            taken: count(step.taken),
            missing: missing.map_or_else(BTreeMap::new, |some| some.resources.clone()),
        }
    }
}

impl From<&wire::ClaimView> for ClaimRecord {
    fn from(claim: &wire::ClaimView) -> Self {
        Self {
            machine: claim.machine_id.clone(),
            state: enum_names::state(claim.state),
            step: claim.step.clone(),
        }
    }
}
