//! Operations: one committed action each, from its commit to its end.
//!
//! The machine's state was changed at commit; an operation never chooses it. It only learns whether
//! the provider followed, and takes the change back while nothing has left.

use super::QueuePosition;
use crate::{
    effect::{Barrier, OperationId, RequestId},
    event::Code,
    record::KeptOperation,
};
use bigfleet_model::{Action, ActionKind, ClusterId, Machine, MachineId, NeedKey, Reason, Time};
use std::time::Duration;

/// Where a machine is seen on the walk of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkPosition {
    Source,
    Transitional,
    Target,
    Elsewhere,
    /// Bound, but to somebody else or by somebody else.
    Conflict,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkStage {
    /// Its commit is not on disk yet.
    Disk,
    /// Its next effect may leave, if the gate, a slot and an operator allow.
    Ready,
    /// A blob.
    Blob(RequestId),
    /// The operator's word that the node is empty.
    DrainReport,
    /// The answer to a call, by its sequence number.
    Call(u64),
    /// The provider took it on; a List or Get will show the end.
    Provider,
    /// The time to try again.
    Backoff,
    /// A Get that shows what became of a call.
    Confirm,
}

/// A blob and until when it may be handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) user_data: Vec<u8>,
    pub(crate) until: Option<Time>,
}

/// One committed action.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: OperationId,
    pub(crate) machine: MachineId,
    pub(crate) action: ActionKind,
    pub(crate) reason: Reason,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) need: Option<NeedKey>,
    /// The Need's priority; not journalled, so unknown after a restart.
    pub(crate) priority: Option<i32>,
    pub(crate) decided_cycle: u64,
    pub(crate) grace_seconds: u32,
    pub(crate) preemptor_priority: i32,
    pub(crate) committed: Time,
    pub(crate) deadline: Time,
    pub(crate) stage: WorkStage,
    /// Since when it is in that stage.
    pub(crate) since: Time,
    /// The write its commit is part of.
    pub(crate) barrier: Barrier,
    /// What its last call was refused with.
    pub(crate) refused: Option<(Code, String)>,
    /// What went wrong with it last, in the words of whoever said so; for people.
    pub(crate) trouble: String,
    /// What the provider calls it, once it has taken it on; for people.
    pub(crate) name: String,
    pub(crate) attempts: u32,
    /// Since when its calls are refused or lost; until one is taken on.
    pub(crate) failing_since: Option<Time>,
    /// A call may have reached the provider: no rollback from here on.
    pub(crate) touched: bool,
    /// The provider took it on at least once.
    pub(crate) acked: bool,
    /// Something was read of the machine while its call was out, and will not be shown again.
    pub(crate) overtaken: bool,
    /// The operator was told to drain.
    pub(crate) instructed: bool,
    /// The operator says the node is empty, or need not be asked.
    pub(crate) drained: bool,
    pub(crate) blob: Option<Blob>,
    /// Since when the gate holds it back; its deadline stands still.
    pub(crate) held_since: Option<Time>,
    /// Its machine's node was not ready when it was committed.
    pub(crate) not_ready: bool,
    /// A Get begun since its last call has shown our mark (CO-28).
    pub(crate) mark_seen: bool,
    /// What its commit would have made of the machine: [`crate::Defect::CommitAfterCalling`].
    pub(crate) late: Option<Box<Machine>>,
}

impl Operation {
    pub(crate) fn new(
        id: OperationId,
        action: Action,
        cycle: u64,
        now: Time,
        barrier: Barrier,
    ) -> Self {
        let (need, terms) = action.purpose.unzip();
        Self {
            id,
            machine: action.machine,
            action: action.kind,
            reason: action.reason,
            cluster: action.cluster,
            need,
            priority: terms.map(|terms| terms.priority),
            decided_cycle: cycle,
            grace_seconds: action.grace_seconds,
            preemptor_priority: action.preemptor_priority,
            committed: now,
            deadline: now + Duration::from_secs(action.grace_seconds.into()),
            stage: WorkStage::Disk,
            since: now,
            barrier,
            refused: None,
            trouble: String::new(),
            name: String::new(),
            attempts: 0,
            failing_since: None,
            touched: false,
            acked: false,
            overtaken: false,
            instructed: false,
            drained: false,
            blob: None,
            held_since: None,
            not_ready: false,
            mark_seen: false,
            late: None,
        }
    }

    /// As it was journalled by an earlier process: what became of its calls is unknown (SH-6).
    pub(crate) fn remembered(kept: KeptOperation, machine: MachineId, now: Time) -> Self {
        Self {
            id: kept.id,
            machine,
            action: kept.action,
            reason: kept.reason,
            cluster: kept.cluster,
            need: kept.need,
            priority: None,
            decided_cycle: kept.decided_cycle,
            grace_seconds: kept.grace_seconds,
            preemptor_priority: kept.preemptor_priority,
            committed: now,
            deadline: kept.deadline,
            stage: WorkStage::Ready,
            since: now,
            barrier: Barrier::default(),
            refused: None,
            trouble: String::new(),
            name: String::new(),
            // The earlier process may have sent it.
            attempts: 1,
            failing_since: None,
            touched: true,
            acked: false,
            overtaken: false,
            instructed: false,
            drained: false,
            blob: None,
            held_since: kept.held_since,
            not_ready: kept.not_ready,
            mark_seen: false,
            late: None,
        }
    }

    pub(crate) fn kept(&self) -> KeptOperation {
        KeptOperation {
            id: self.id,
            action: self.action,
            reason: self.reason,
            cluster: self.cluster.clone(),
            need: self.need.clone(),
            decided_cycle: self.decided_cycle,
            grace_seconds: self.grace_seconds,
            preemptor_priority: self.preemptor_priority,
            deadline: self.deadline,
            held_since: self.held_since,
            not_ready: self.not_ready,
        }
    }

    pub(crate) fn is_drain(&self) -> bool {
        matches!(self.action, ActionKind::Preempt | ActionKind::Reclaim)
    }

    /// Whether it can be taken back (SH-18): a Reclaim whose Drain has not been handed over, which it is at
    /// once where the operator does not report. That of an earlier process may have been, until the operator
    /// says that it is still at it.
    pub(crate) fn is_reversible(&self) -> bool {
        let is_before_drain =
            !self.instructed || self.drained || self.stage == WorkStage::DrainReport;
        self.action == ActionKind::Reclaim && !self.not_ready && !self.touched && is_before_drain
    }

    /// Where it stands in line.
    pub(super) fn position(&self) -> QueuePosition {
        (self.rank(), self.id)
    }

    /// Whether it has a blob that may still be handed over.
    pub(crate) fn has_blob(&self, now: Time) -> bool {
        let blob = self.blob.as_ref();
        blob.is_some_and(|blob| blob.until.is_none_or(|until| now < until))
    }

    /// Whether nothing of it can have reached anybody, once a call turned out not to have left.
    pub(crate) fn is_unsent(&self) -> bool {
        self.attempts == 0 && !self.acked && !self.instructed
    }

    /// What leaves first: drains for somebody, then machines for clusters, then what can wait.
    fn rank(&self) -> u8 {
        match self.action {
            ActionKind::Preempt | ActionKind::Restore => 0,
            ActionKind::Bootstrap => 1,
            ActionKind::Provision => 2,
            ActionKind::Reclaim => 3,
            ActionKind::Delete => 4,
        }
    }
}
