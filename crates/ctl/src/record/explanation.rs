//! Why a Need is served as it is.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{NeedRecord, TableRecord, count};
use crate::enum_names;
use crate::text::quantities;

/// An explanation; its steps are in the order the engine takes them.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ExplanationRecord {
    pub(crate) need: NeedRecord,
    pub(crate) summary: String,
    pub(crate) steps: Vec<StepRecord>,
    pub(crate) claims: Vec<ClaimRecord>,
    pub(crate) claims_capped: bool,
    pub(crate) remedies: Vec<String>,
    /// Why it is short, each cause in a sentence.
    pub(crate) causes: Vec<String>,
    /// Edits that were tried, and what each brings.
    pub(crate) changes: Vec<ChangeRecord>,
    /// What was weighed.
    pub(crate) table: Option<TableRecord>,
}

/// An edit that was tried.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ChangeRecord {
    /// The edit of a fleet file, as JSON Patch.
    pub(crate) edit: serde_json::Value,
    /// `served`, `better` or `no use`.
    pub(crate) mark: String,
    /// The edit in words.
    pub(crate) text: String,
}

impl From<&wire::NeedChange> for ChangeRecord {
    fn from(change: &wire::NeedChange) -> Self {
        Self {
            edit: serde_json::from_str(&change.edit).unwrap_or_default(),
            mark: change.mark.clone(),
            text: change.text.clone(),
        }
    }
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
            causes: explained.causes.clone(),
            changes: explained.changes.iter().map(Into::into).collect(),
            table: explained.table.as_ref().map(Into::into),
        }
    }
}

/// An explanation of what was decided on a fleet file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DecidedRecord {
    pub(crate) cluster: String,
    /// Its short name within the cluster.
    pub(crate) need: String,
    pub(crate) need_fingerprint: String,
    pub(crate) group: String,
    pub(crate) wants: String,
    pub(crate) smallest_unit: String,
    pub(crate) satisfied: bool,
    pub(crate) residual: String,
    pub(crate) unmet_reason: String,
    pub(crate) parked: bool,
    pub(crate) same_domain: String,
    pub(crate) same_satisfiable: bool,
    pub(crate) causes: Vec<String>,
    pub(crate) changes: Vec<ChangeRecord>,
    #[serde(flatten)]
    pub(crate) table: Option<TableRecord>,
}

impl From<&wire::ExplainNeedResponse> for DecidedRecord {
    fn from(explained: &wire::ExplainNeedResponse) -> Self {
        let ExplanationRecord {
            need,
            causes,
            changes,
            table,
            ..
        } = explained.into();
        Self {
            wants: quantities(&need.aggregate_resources),
            smallest_unit: quantities(&need.min_unit),
            residual: quantities(&need.residual_deficit),
            cluster: need.cluster,
            need: need.need,
            need_fingerprint: need.need_fingerprint,
            group: need.group,
            satisfied: need.satisfied,
            unmet_reason: need.unmet_reason,
            parked: need.parked,
            same_domain: need.same_domain,
            same_satisfiable: need.same_satisfiable,
            causes,
            changes,
            table,
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
