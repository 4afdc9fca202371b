//! Audit: one record per action that was executed, suppressed or shown, and per thing that happened
//! to a machine without one (AU-1, AU-3).

use crate::effect::OperationId;
use bigfleet_model::{Action, ActionKind, ClusterId, MachineId, NeedKey, Reason, Time};

/// How an action ended; the labels are those of shard.md §7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Done.
    Success,
    /// The operator did not answer in time; rolled back.
    Timeout,
    /// The provider has seen a newer token.
    Fenced,
    /// No operator; rolled back.
    NoSession,
    /// The operator could not make a blob; rolled back.
    BlobError,
    /// The provider said no, or the machine failed.
    ProviderError,
    /// Certainly never sent; rolled back.
    NeverSent,
    /// The machine is gone.
    InventoryMiss,
    /// The machine went elsewhere by itself.
    Adopted,
    /// It is bound to somebody else than asked.
    Conflict,
    /// A reclaim given up at its deadline.
    DrainBlocked,
    /// A reclaim that was taken back, since a Need wants the machine again (SH-18).
    TakenBack,
    /// Decided while paused.
    Suppressed,
    /// Decided in dry-run.
    DryRun,
    /// Forgotten by an admin.
    Retired,
    /// Marked to leave by an admin (SH-20).
    DrainMarked,
    /// An admin's mark was lifted.
    DrainLifted,
    /// The deadline of an admin's mark has passed: nothing is waited for any more.
    DrainDeadlinePassed,
    /// Its provider says when it takes it away.
    LeavingAnnounced,
    /// Its provider does not take it away after all.
    LeavingWithdrawn,
}

impl Outcome {
    /// How an operation can end: the closed set of `action_execute_outcomes_total`.
    pub const ENDS: [Self; 11] = [
        Self::Success,
        Self::Timeout,
        Self::Fenced,
        Self::NoSession,
        Self::BlobError,
        Self::ProviderError,
        Self::NeverSent,
        Self::InventoryMiss,
        Self::Conflict,
        Self::DrainBlocked,
        Self::TakenBack,
    ];

    /// The label in metrics and in the audit log.
    pub fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "ctx_canceled",
            Self::Fenced => "fenced",
            Self::NoSession => "no_session",
            Self::BlobError => "blob_error",
            Self::ProviderError => "provider_error",
            Self::NeverSent => "never_sent",
            Self::InventoryMiss => "inventory_miss",
            Self::Adopted => "adopted",
            Self::Conflict => "conflict",
            Self::DrainBlocked => "drain_blocked",
            Self::TakenBack => "taken_back",
            Self::Suppressed => "suppressed",
            Self::DryRun => "dryrun",
            Self::Retired => "retired",
            Self::DrainMarked => "drain_marked",
            Self::DrainLifted => "drain_lifted",
            Self::DrainDeadlinePassed => "drain_deadline_passed",
            Self::LeavingAnnounced => "leaving_announced",
            Self::LeavingWithdrawn => "leaving_withdrawn",
        }
    }
}

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// The moment it happened.
    pub time: Time,
    /// The cycle counter then.
    pub cycle: u64,
    /// The cycle that decided it.
    pub decided_cycle: u64,
    /// What; `None` for something that happened without an action.
    pub kind: Option<ActionKind>,
    /// Which operation; `None` where none was committed.
    pub operation: Option<OperationId>,
    /// To which machine.
    pub machine: MachineId,
    /// For or from which cluster.
    pub cluster: Option<ClusterId>,
    /// For which Need.
    pub need: Option<NeedKey>,
    /// That Need's priority; `None` where it is not known any more, as after a restart.
    pub priority: Option<i32>,
    /// The engine's reason; `None` where nothing was decided.
    pub reason: Option<Reason>,
    /// The grace it carried.
    pub grace_seconds: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong, in the words of whoever said so; empty if nothing did or nobody did.
    pub error: String,
    /// What the provider calls the operation; empty where it took none on.
    pub provider_operation: String,
    /// Who said so and why, where somebody did; empty elsewhere.
    pub said: String,
    /// From its commit to its end, in seconds; `None` where nothing was committed.
    pub took_seconds: Option<f64>,
    /// What the machine costs, in dollars per hour; `None` for one that is not known any more.
    pub price: Option<f64>,
    /// The epoch of the process.
    pub epoch: u64,
    /// The number of the event that led to it, counted from 1 in that epoch: with the events up to
    /// it, the same core says the same again (AU-3).
    pub event: u64,
}

impl AuditRecord {
    /// The same about something the engine decided.
    pub(crate) fn decided(self, action: Action) -> Self {
        let (need, terms) = action.purpose.unzip();
        Self {
            kind: Some(action.kind),
            cluster: action.cluster,
            need,
            priority: terms.map(|terms| terms.priority),
            reason: Some(action.reason),
            grace_seconds: action.grace_seconds,
            ..self
        }
    }
}
