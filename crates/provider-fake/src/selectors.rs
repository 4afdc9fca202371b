//! Selectors: faults that a caller picks over the wire, by the cluster it configures for.
//!
//! They exist only where fault hooks are on. A machine stays under the selector of its last
//! Configure until it is created anew, so that a fault can strike at a later drain or delete.

use std::time::Duration;

use bigfleet_provider_kit::Machine;

/// A slot with this label and the value `error` cannot be created.
pub(crate) const CREATE_FAULT_LABEL: &str = "conformance.fault/create";

/// What is to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    /// `fault-error`: Configure fails.
    Error,
    /// `fault-timeout`: Configure never ends.
    Timeout,
    /// `fault-slow-ok`: Configure ignores that it was given up, and succeeds a second later.
    SlowOk,
    /// `fault-drain-error`: the later Drain fails.
    DrainError,
    /// `fault-drain-slow`: the later Drain takes all the grace there is.
    DrainSlow,
    /// `fault-delete-error`: the later Delete fails.
    DeleteError,
    /// `fault-readiness-block`: the node never becomes Ready.
    ReadinessBlock,
    /// `fault-panic`: the backend panics.
    Panic,
    /// `fault-reprice`: the price doubles as soon as the machine is configured.
    Reprice,
    /// `fault-host-loss`: the host is gone as soon as the machine is configured.
    HostLoss,
    /// `fault-notice-<ms>`: once configured, it is announced to be gone in an hour; withdrawn after so long.
    Notice(Duration),
    /// `fault-dwell-<ms>`: Configure takes this long.
    Dwell(Duration),
}

impl Selector {
    /// The selector a cluster name stands for, if it does.
    pub(crate) fn of(cluster: &str) -> Option<Self> {
        Some(match cluster {
            "fault-error" => Self::Error,
            "fault-timeout" => Self::Timeout,
            "fault-slow-ok" => Self::SlowOk,
            "fault-drain-error" => Self::DrainError,
            "fault-drain-slow" => Self::DrainSlow,
            "fault-delete-error" => Self::DeleteError,
            "fault-readiness-block" => Self::ReadinessBlock,
            "fault-panic" => Self::Panic,
            "fault-reprice" => Self::Reprice,
            "fault-host-loss" => Self::HostLoss,
            other => {
                let millis = |start: &str| {
                    let millis = other.strip_prefix(start)?.parse().ok()?;
                    Some(Duration::from_millis(millis))
                };
                let notice = millis("fault-notice-").map(Self::Notice);
                return notice.or_else(|| millis("fault-dwell-").map(Self::Dwell));
            }
        })
    }
}

/// Whether the slot is marked as one that cannot be created.
pub(crate) fn cannot_be_created(machine: &Machine) -> bool {
    machine
        .offer
        .labels
        .get(CREATE_FAULT_LABEL)
        .is_some_and(|value| value == "error")
}
