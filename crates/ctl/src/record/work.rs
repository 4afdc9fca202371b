//! An operation in flight.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{NeedRef, at};
use crate::enum_names;
use crate::when::{Moment, moment};

/// An operation in progress on a machine, and what it waits for. Keys are those of actions where both
/// have them.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct WorkRecord {
    /// The shard's id of the operation. The same id is in its log, the audit log, actions, the provider's
    /// record and, for a drain, the operator's instruction.
    pub(crate) operation: String,
    pub(crate) machine: String,
    pub(crate) work: String,
    pub(crate) stage: String,
    #[serde(serialize_with = "at")]
    pub(crate) stage_since: Moment,
    #[serde(serialize_with = "at")]
    pub(crate) committed: Moment,
    /// When a drain's grace ends.
    #[serde(serialize_with = "at")]
    pub(crate) deadline: Moment,
    pub(crate) cluster: String,
    /// The Need it is for.
    pub(crate) intent: Option<NeedRef>,
    pub(crate) reason: String,
    pub(crate) decided_cycle: i64,
    pub(crate) attempts: i32,
    pub(crate) last_error: String,
    /// The provider's id of the operation.
    pub(crate) provider_operation: String,
}

impl From<&wire::WorkView> for WorkRecord {
    fn from(view: &wire::WorkView) -> Self {
        Self {
            operation: view.own_operation_id.clone(),
            machine: view.machine_id.clone(),
            work: enum_names::work_kind(view.kind),
            stage: enum_names::work_stage(view.stage),
            stage_since: moment(view.stage_since_unix_nanos),
            committed: moment(view.committed_unix_nanos),
            deadline: moment(view.deadline_unix_nanos),
            cluster: view.cluster_id.clone(),
            intent: view.intent.as_ref().map(Into::into),
            reason: view.reason.clone(),
            decided_cycle: view.decided_cycle,
            attempts: view.attempts,
            last_error: view.last_error.clone(),
            provider_operation: view.operation_id.clone(),
        }
    }
}
