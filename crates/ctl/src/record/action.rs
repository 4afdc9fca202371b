//! A decision, and what came of it.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{at, need_name};
use crate::enum_names;
use crate::when::{Moment, moment};

/// An entry of the shard's list of recent decisions. Keys are those of the audit log where it has them.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ActionRecord {
    pub(crate) sequence: i64,
    #[serde(serialize_with = "at")]
    pub(crate) time: Moment,
    pub(crate) cycle: i64,
    pub(crate) decided_cycle: i64,
    /// `Bootstrap`, …; null where something happened without an action.
    pub(crate) kind: Option<String>,
    pub(crate) machine: String,
    pub(crate) cluster: String,
    pub(crate) from_cluster: String,
    /// The short name of the Need it is for; null if it is for none.
    pub(crate) need: Option<String>,
    pub(crate) need_fingerprint: String,
    pub(crate) group: String,
    pub(crate) priority: Option<i32>,
    pub(crate) outcome: String,
    pub(crate) reason: String,
    /// What was done and why, in a sentence.
    pub(crate) detail: String,
    pub(crate) operation: String,
    pub(crate) grace_seconds: i32,
}

impl From<&wire::ActionView> for ActionRecord {
    fn from(view: &wire::ActionView) -> Self {
        let kind = enum_names::action_kind(view.kind);
        let fingerprint = &view.profile_fingerprint;
        Self {
            sequence: view.sequence,
            time: moment(view.time_unix_nanos),
            cycle: view.cycle,
            decided_cycle: view.decided_cycle,
            kind: Some(kind).filter(|word| word != "Unspecified"),
            machine: view.machine_id.clone(),
            cluster: view.cluster_id.clone(),
            from_cluster: view.from_cluster_id.clone(),
            need: (!fingerprint.is_empty()).then(|| need_name(fingerprint, &view.group)),
            need_fingerprint: fingerprint.clone(),
            group: view.group.clone(),
            priority: view.priority,
            outcome: view.outcome.clone(),
            reason: view.reason.clone(),
            detail: view.detail.clone(),
            operation: view.operation_id.clone(),
            grace_seconds: view.grace_seconds,
        }
    }
}
