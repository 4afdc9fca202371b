//! An operation in flight.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use super::{NeedRef, at};
use crate::when::{Moment, moment};
use crate::words;

/// What is being done to a machine, and what that waits for. Keys are those of actions where both have
/// them.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct WorkRecord {
    /// The shard's own name for it, as in its log, in the audit log, in actions, in the provider's record
    /// and, of a drain, in the operator's instruction.
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
    /// The provider's name for it.
    pub(crate) provider_operation: String,
}

impl From<&wire::WorkView> for WorkRecord {
    fn from(view: &wire::WorkView) -> Self {
        Self {
            operation: view.own_operation_id.clone(),
            machine: view.machine_id.clone(),
            work: words::work_kind(view.kind),
            stage: words::work_stage(view.stage),
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
